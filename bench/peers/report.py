"""The result as Markdown: one line for each class, then what it was measured on."""

import json
import platform
import statistics
from dataclasses import dataclass
from pathlib import Path

from check import Checked, tables
from classes import Class
from sides import PEERS, Ours, OursAgain, Peer, Sample
from workload import Facts

# Questions whose time tells what asking costs at all.
EMPTY = "SELECT 1 AS result"
EMPTY_REPEATS = 1_000


@dataclass
class Measured:
    """The samples of one class by side, and the statement of each store with the form of its answer."""

    one: Class
    samples: dict[str, list[Sample]]
    questions: dict[str, tuple[str, str]]

    def median(self, side: str) -> float:
        return statistics.median(sample.mean for sample in self.samples[side])

    def least(self, side: str) -> float:
        return min(sample.least for sample in self.samples[side])

    def cpu(self, side: str) -> float:
        return statistics.median(sample.cpu for sample in self.samples[side])


def print_table(measured: list[Measured], checked: Checked) -> None:
    """A line for each class: median, minimum and CPU time of each side, and the ratios to the best."""
    sides = [Ours.name, OursAgain.name, *PEERS]
    print("Wall time: median / minimum; CPU time: median. Ratios: the best of the others to ours, by median,")
    print("minimum and CPU time, asked anew and again.\n")
    print(f"| class | rows | {' | '.join(sides)} | best of the others | anew | again |")
    print("|---|---|" + "---|" * (len(sides) + 3))
    for line in measured:
        best = min(line.questions, key=line.median)
        both = " | ".join(ratios(line, best, side.name) for side in (Ours, OursAgain))
        cells = " | ".join(cell(line, side) for side in sides)
        print(f"| {line.one.name} | {checked.rows[line.one.name]:,} | {cells} | {best} | {both} |")


def ratios(line: Measured, best: str, side: str) -> str:
    if side not in line.samples:
        return "–"
    pairs = ((part(best), part(side)) for part in (line.median, line.least, line.cpu))
    return " / ".join(f"{theirs / ours:.3g}" for theirs, ours in pairs)


def cell(line: Measured, side: str) -> str:
    if side not in line.samples:
        return "–"
    return f"{time(line.median(side))} / {time(line.least(side))}; {time(line.cpu(side))}"


def time(nanoseconds: float) -> str:
    """Three digits with a unit."""
    value, unit = (nanoseconds / 1e6, "ms") if nanoseconds >= 1e6 else (nanoseconds / 1e3, "µs")
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"


def print_conditions(facts: Facts, versions: dict, options, peers: list[Peer]) -> None:
    """Rows, versions, machine, and what asking nothing costs."""
    print(
        f"\n{facts.rows:,} events; {facts.event} of {facts.largest} (largest), {facts.median} (median), "
        f"{facts.tiny} (tiny). Medians of {options.rounds} rounds; {options.threads} threads."
    )
    print(
        ", ".join(f"{name} {version}" for name, version in versions.items())
        + f", Python {platform.python_version()}."
    )
    print(f"{processor()}, {cores()} cores, {platform.system()} {platform.release()}.")
    empty = []
    for peer in peers:
        peer.call("answer", EMPTY)
        empty.append(f"{peer.name} {time(peer.time((EMPTY, peer.forms[0]), EMPTY_REPEATS).mean)}")
    print(f"An empty question takes {', '.join(empty)}.")
    sizes = (f"{peer.name} {bytes_an_event(peer.call('sizes'), facts)}" for peer in peers)
    print(f"Bytes an event on disk, rows + rollups + states: {', '.join(sizes)}.")


def bytes_an_event(sizes: dict[str, int], facts: Facts) -> str:
    """Rows, rollups, states."""
    rows = sizes["events"]
    states = sum(size for table, size in sizes.items() if table.endswith("_sketches"))
    rollups = sum(sizes.values()) - rows - states
    return " + ".join(f"{size / facts.rows:.1f}" for size in (rows, rollups, states))


def print_errors(measured: list[Measured], checked: Checked) -> None:
    """How far off the approximate answers were that were timed."""
    for line in measured:
        if line.one.query["metric"].endswith("_approx"):
            sides = (side for side in line.samples if side != OursAgain.name)
            texts = {side: line.questions.get(side, ("", ""))[0] for side in sides}
            errors = (
                f"{side} {checked.errors[line.one.name, side, text]:.2%}" for side, text in texts.items()
            )
            print(f"Largest error, {line.one.name}: {', '.join(errors)}.")


def print_statements(measured: list[Measured], peers: list[Peer]) -> None:
    """The questions and what the stores were asked."""
    print("\n| class | side | reads | form | statement |\n|---|---|---|---|---|")
    for line in measured:
        print(f"| {line.one.name} | {Ours.name} | | JSON | `{json.dumps(line.one.query)}` |")
        for peer in peers:
            if question := line.questions.get(peer.name):
                text, form = question
                print(
                    f"| {line.one.name} | {peer.name} | {', '.join(tables(peer, text))} | {form} | `{text}` |"
                )


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.machine())


def cores() -> int:
    return sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines())
