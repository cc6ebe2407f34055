"""Compares answers before anything is timed.

The truth is what DuckDB counts in the rows, without rollups or states, in the plainest statement. Every
statement of every store is held against it, and what our program answers; and the plans of the stores
are read, so that a class about rollups is about rollups.
"""

import re
from dataclasses import dataclass, field

from classes import Class
from duck import DUCK
from sides import Answer, Ours, OursAgain, Peer
from sql import APPROXIMATE, EXACT, raw
from workload import Facts

DIFFERENCES_SHOWN = 5
TABLES = re.compile(r"\b(events|[a-z]+_(?:hourly|daily|sketches))\b")


@dataclass
class Checked:
    """What the comparison found."""

    # Rows of the answer, by name of the class.
    rows: dict[str, int] = field(default_factory=dict)
    # The largest relative error, by name of the class, side and statement.
    errors: dict[tuple[str, str, str], float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def hold(self, one: Class, side: str, text: str, answer: Answer, truth: Answer, tolerance: float) -> None:
        """Holds an answer against the truth."""
        errors = {
            key: error(answer.get(key, 0.0), truth.get(key, 0.0)) for key in answer.keys() | truth.keys()
        }
        self.errors[one.name, side, text] = max(errors.values(), default=0.0)
        too_large = sorted((key for key in errors if errors[key] > tolerance), key=str)
        for key in too_large[:DIFFERENCES_SHOWN]:
            self.wrong.append(
                f"{one.name}: {key}: {answer.get(key)} instead of {truth.get(key)}: {side} {text}"
            )
        if len(too_large) > DIFFERENCES_SHOWN:
            self.wrong.append(f"{one.name}: and {len(too_large) - DIFFERENCES_SHOWN} more: {side}")


def error(value: float, right: float) -> float:
    return abs(value - right) / max(abs(value), abs(right))


def check(classes: list[Class], facts: Facts, ours: Ours | None, peers: list[Peer]) -> Checked:
    """Stops with the differences unless all answers are right."""
    duck = next(peer for peer in peers if peer.name == DUCK.name)
    checked = Checked()
    for one in classes:
        exactly = one.query | {"metric": one.query["metric"].removesuffix("_approx")}
        truth = duck.answer(raw(DUCK, exactly, facts)[0].text)
        checked.rows[one.name] = len(truth)
        if not truth:
            checked.wrong.append(f"{one.name}: the answer is empty, so nothing would be compared")
        if ours:
            tolerance = EXACT if exactly == one.query else APPROXIMATE
            # What is kept from the second answer gives the third.
            for side in (ours, OursAgain(ours), OursAgain(ours)):
                checked.hold(one, side.name, "", side.answer(one), truth, tolerance)
        for peer in peers:
            for statement in one.statements.get(peer.name, []):
                answer = peer.answer(statement.text)
                checked.hold(one, peer.name, statement.text, answer, truth, statement.tolerance)
                if one.rollup and "events" in tables(peer, statement.text):
                    checked.wrong.append(f"{one.name}: reads rows: {peer.name} {statement.text}")
    if checked.wrong:
        raise SystemExit("\n".join(checked.wrong))
    return checked


def tables(peer: Peer, text: str) -> list[str]:
    """The tables that a store's plan reads."""
    found = sorted(set(TABLES.findall(peer.call("plan", text))))
    assert found, f"{peer.name}: no table in the plan of {text}"
    return found
