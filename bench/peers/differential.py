#!/usr/bin/env python3
"""Random statements in our SQL and in DuckDB: whatever one answers, the other has to answer.

    pip install -r bench/peers/requirements.txt
    python3 bench/peers/differential.py PATH/TO/inlay --count 5000 --seed 1
    python3 bench/peers/differential.py PATH/TO/inlay --seed 1 --statement 4711

`grammar.py` draws statements from a seed, each in the words of both sides, and `nasty_events` some five
thousand events: few tenants, absent users and properties, empty texts, quotes and signs of patterns, numbers
that are negative, zero, fractional or huge, times at the borders of hours, months and years and where clocks
are set. The server is started on free ports in a folder of its own and gets the events over HTTP, half of
them before it is started again, so that there are segments as well as rows in memory. DuckDB has the same in
a table with a column for each property.

Answers are compared as sets with repetitions, and line by line where a statement orders by all of its
columns: doubles to nine digits, times as instants. A statement ends as

    equal      both answer the same
    different  both answer
    ours       ours refuses, DuckDB answers
    theirs     DuckDB refuses, ours answers
    both       both refuse
    cut        our answer was longer than an answer may be, so nothing is compared

What is not equal is made smaller, part by part, as long as it ends the same way. `EXCEPTIONS` lists what is
right by PostgreSQL or by our documentation. All else but what both refuse is a finding: findings of the same
shape are printed once, with the shortest statement, and the exit code is 1.
"""

import argparse
import math
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
from grammar import DUCK, NUMBERS, OURS, STRINGS, Grammar, Node
from sides import say

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "rigs"))
from common import Connection, Gone, Server, register  # noqa: E402

EVENTS, BATCH_EVENTS = 5_000, 1_000
TOLERANCE = 1e-9
# Statements that are tried to make one smaller.
TRIALS = 250
# Shapes that are printed beside the one they were taken for.
OTHERS_SHOWN = 8
BORDERS = (
    "2023-12-31T23:59:59.999", "2024-02-28T23:59:59.999", "2024-02-29T12:00:00", "2024-03-31T01:00:00",
    "2024-12-30T00:00:00", "2025-01-01T00:00:00", "2025-10-26T00:59:59.999", "2025-12-31T23:00:00",
    "2026-01-01T00:00:00", "2026-01-31T23:59:59", "2026-02-28T23:59:59.999", "2026-03-08T07:00:00",
    "2026-03-29T00:59:59.999", "2026-03-29T01:00:00", "2026-03-31T22:00:00", "2026-04-04T15:30:00",
    "2026-06-30T23:30:00", "2026-10-04T00:00:00", "2026-10-25T00:30:00", "2026-10-25T01:00:00",
    "2026-11-01T06:00:00",
)  # fmt: skip
NEAR_MS = (0, 0, 0, 1, -1, 1_000, -1_000, 3_600_000, -3_600_000, 86_400_000, 1_800_000, -60_000)
TENANTS = ("acme", "acme", "acme", "100%", "O'Brien & Co", "Zoë_1", "b")
NAMES = ("login", "login", "api_call", "page view", "it's", "Ü")
USERS = (None, None, None, "u1", "u2", "u3", "U1", "Zoë", "O'Brien", "a%b", *(f"u{i}" for i in range(10, 30)))
VALUES = {
    "plan": (None, "", "free", "pro", "Pro", "enterprise"),
    "city": (None, "", "Zürich", "São Paulo", "東京", "O'Brien", "100%", "a_b", " padded ",
             "😀 x", "NULL", "a\"b\\c", "l1\nl2"),
    "code": (None, "0", "007", "42", "abc", "-5", "1e3", "9223372036854775807"),
    "ms": (None, 0.0, 0.25, 0.5, 1.5, 2.5, 3.5, -0.5, -2.5, 12.0, 250.75, 1000.0, -100.0),
    "delta": (None, 0.0, 1.0, -1.0, 2.0, -7.0, 1e6, -1e6, 0.25),
    "cost": (None, 0.1, 0.2, 0.3, 1e-9, 19.99, -0.01),
    "big": (None, None, 0.0, 1e15, 9007199254740992.0, 4503599627370496.5),
}  # fmt: skip
# What may differ: a pattern in our statement, or in what was said about it, and the reason.
EXCEPTIONS = (
    (r"(?s)ours: .*integer out of range",
     "a sum of integers that is too large is an error (README of the server, SQL)"),
    (r"(?s)CASE WHEN.*a string that is no Int64",
     "what is cast has a value before rows are read, and PostgreSQL refuses it too"),
    (r"INTERSECT ALL or EXCEPT ALL is not answered", "refused, as the changelog says"),
    (r"different: [^\n]*RANGE BETWEEN INTERVAL '[^']*(month|year)",
     "PostgreSQL counts months back from the row, as we do; DuckDB forth from the others"),
    (r"different: [^\n]*rank\(\) OVER \(ORDER BY [^\n]*(avg|stddev|var|corr|regr|covar)",
     "doubles that are added up in another order may have another rank"),
    (r"different: SELECT [^\n]*corr\([^,\n]*\d\.?\d*\)[^,\n]*, ",
     "a correlation with a rounded constant is noise in PostgreSQL, too"),
    (r"the function md5 is not offered", "no hashes: the functions that are offered are a list (README of the server, SQL)"),
    (r"different: [^\n]*round\([^\n]*bigint|CAST round", "round goes away from zero, a cast to the even one"),
    (r"Projections require unique expression names[^\n]*", "columns of a subquery have names of their own (README of the server, SQL)"),
    (r"No field named[^\n]*nowhere|UNION[^\n]*SELECT DISTINCT[^\n]*\n[^\n]*No field named",
     "a set operation whose first part is empty by its constants and whose second is DISTINCT"),
    (r"(?s) IN \(\(SELECT.*Expected: \), found: ,", "a list that begins with a subquery is not parsed (README of the server, SQL)"),
    (r"(?s)(CUBE|ROLLUP|GROUPING SETS).*HAVING.*duplicate unqualified field name",
     "HAVING of the same aggregate with and without a cast, over several sets of groups (README of the server, SQL)"),
    (r"did not return a BoundFunctionExpression", "a fault of DuckDB's"),
)  # fmt: skip


@dataclass
class Ended:
    """How a statement ended: the class, what each side said, and a message where one refuses."""

    how: str
    ours: object
    theirs: object

    def shape(self, statement: Node) -> str:
        """The same for statements that ended alike for the same reason, as far as can be told."""
        if self.how == "different":
            text = STRING.sub("''", GROUPS.sub("", statement.text(OURS)))
            words = re.findall(r"\w+(?=\()|\b[A-Z]{2,}\b|[-+*/%~|<>=]+|\[\d", text)
            return "different: " + (
                " ".join(dict.fromkeys(word for word in words if word not in FRAME)) or text
            )
        said = str(self.theirs if self.how == "theirs" else self.ours).split("\n")[0]
        said = re.sub(r"(?<!function )'[^']*'+|(?<![\w'])\d+", "…", re.sub('".*"', '"…"', said))
        return f"{self.how}: {said[:200]}"


STRING = re.compile(r"'[^']*'")
# What a finding is not told by, as long as there is something else.
GROUPS = re.compile(r"SELECT tenant_id, \S+ AS k, .*? AS latest FROM events")
FRAME = set(
    "SELECT FROM WHERE AS GROUP ORDER BY ON WITH TRUE FALSE AND TIMESTAMP CASE WHEN THEN ELSE END =".split()
)


class Ours:
    """The server, asked over HTTP."""

    def __init__(self, binary: Path, directory: Path, events: list[dict]):
        self.binary, self.directory = str(binary), directory / "data"
        self.start()
        self.key = register(self.server.host)
        self.send(events[: len(events) // 2])
        self.server.stop()
        self.start()
        self.send(events[len(events) // 2 :])

    def start(self) -> None:
        self.server = Server(self.binary, self.directory, environment={"INLAY_SQL_IDLE_WORKERS": "2"})

    def send(self, events: list[dict]) -> None:
        connection = Connection(self.server.host, self.key)
        for start in range(0, len(events), BATCH_EVENTS):
            batch = events[start : start + BATCH_EVENTS]
            status, _, answer = connection.call("POST", "/v1/events", {"events": batch})
            if status != 200 or answer["accepted"] != len(batch):
                raise SystemExit(f"{OURS} did not take events: {status} {answer}")
        self.connection = connection

    def ask(self, text: str) -> tuple[bool, object, bool]:
        """Whether it was answered, rows or the refusal, and whether there were more rows."""
        try:
            status, _, answer = self.connection.call("POST", "/v1/query/adhoc", {"sql": text})
        except Gone as gone:
            self.server.expect_alive()
            return False, f"no answer: {gone}", False
        if status != 200:
            return False, f"{answer.get('code')}: {answer.get('error')}", False
        types = [column["type"] for column in answer["columns"]]
        rows = [[read(cell, kind) for cell, kind in zip(row, types, strict=True)] for row in answer["rows"]]
        return True, rows, answer["stats"]["truncated"]


class Theirs:
    """DuckDB, with a column for each property."""

    def __init__(self, events: list[dict]):
        self.db = duckdb.connect(":memory:", config={"threads": 1})
        self.db.execute("SET TimeZone = 'UTC'; SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        self.db.execute("SET order_by_non_integer_literal = true")
        properties = [*(f"{name} VARCHAR" for name in STRINGS), *(f"{name} DOUBLE" for name in NUMBERS)]
        self.db.execute(
            "CREATE TABLE events (tenant_id VARCHAR, event_name VARCHAR, timestamp TIMESTAMP, "
            f"event_id VARCHAR, user_id VARCHAR, {', '.join(properties)})"
        )
        self.db.executemany(
            f"INSERT INTO events VALUES ({', '.join('?' * (5 + len(properties)))})", rows_of(events)
        )

    def ask(self, text: str) -> tuple[bool, object]:
        try:
            table = self.db.sql(text).to_arrow_table()
        except duckdb.Error as error:
            return False, str(error)
        columns = [[plain(cell) for cell in column.to_pylist()] for column in table.columns]
        return True, [list(row) for row in zip(*columns, strict=True)]


def nasty_events(seed: int) -> list[dict]:
    """Events as they are sent."""
    lot = random.Random(f"events {seed}")
    events = []
    for number in range(EVENTS):
        when = datetime.fromisoformat(lot.choice(BORDERS)) + timedelta(milliseconds=lot.choice(NEAR_MS))
        drawn = {name: lot.choice(values) for name, values in VALUES.items()}
        event = {
            "tenant_id": lot.choice(TENANTS),
            "event_name": lot.choice(NAMES),
            "event_id": f"e{number:04}",
            "user_id": lot.choice(USERS),
            "timestamp": when.isoformat(timespec="milliseconds") + "Z",
            "string_props": {name: drawn[name] for name in STRINGS if drawn.get(name) is not None},
            "numeric_props": {name: drawn[name] for name in NUMBERS if drawn[name] is not None},
        }
        events.append(event)
    return events


def rows_of(events: list[dict]) -> list[tuple]:
    """The same for a table."""
    return [
        (
            event["tenant_id"], event["event_name"], event["timestamp"].removesuffix("Z"),
            event["event_id"], event["user_id"],
            *(event["string_props"].get(name) for name in STRINGS),
            *(event["numeric_props"].get(name) for name in NUMBERS),
        )
        for event in events
    ]  # fmt: skip


def read(cell, kind: str):
    """A cell of our JSON."""
    if not isinstance(cell, str) or kind == "VARCHAR":
        return cell
    if kind.startswith(("TIMESTAMP", "DATE")):
        return plain(datetime.fromisoformat(cell))
    return int(cell) if re.fullmatch(r"-?\d+", cell) else float(cell)


def plain(cell):
    """A cell of DuckDB's: times are instants, decimals numbers."""
    if isinstance(cell, datetime):
        return cell.replace(tzinfo=UTC) if cell.tzinfo is None else cell.astimezone(UTC)
    if isinstance(cell, date):
        return datetime.combine(cell, time(), UTC)
    return (
        (int(cell) if cell == cell.to_integral_value() else float(cell))
        if isinstance(cell, Decimal)
        else cell
    )


def place(row: list) -> list[tuple]:
    """What rows are sorted by: of numbers the first digits."""
    return [
        (1, float(f"{cell:.10g}") + 0.0, "") if is_number(cell) else (2 * (cell is None), 0.0, str(cell))
        for cell in row
    ]


def is_number(cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def same(mine, his) -> bool:
    if not (is_number(mine) and is_number(his)):
        return type(mine) is type(his) and mine == his
    if math.isnan(mine) or math.isnan(his) or math.isinf(mine) or math.isinf(his):
        return str(float(mine)) == str(float(his))
    return abs(mine - his) <= TOLERANCE * max(abs(mine), abs(his), 1e-3)


def alike(mine: list, theirs: list, ordered: bool) -> bool:
    if not ordered:
        mine, theirs = sorted(mine, key=place), sorted(theirs, key=place)
    return len(mine) == len(theirs) and all(
        len(a) == len(b) and all(map(same, a, b)) for a, b in zip(mine, theirs, strict=True)
    )


def compare(statement: Node, ours: Ours, theirs: Theirs) -> Ended:
    """Asks both."""
    answered, mine, cut = ours.ask(statement.text(OURS))
    answered_too, his = theirs.ask(statement.text(DUCK))
    if not (answered and answered_too):
        return Ended(
            {(False, True): "ours", (True, False): "theirs"}.get((answered, answered_too), "both"), mine, his
        )
    if cut:
        return Ended("cut", mine, his)
    equal = alike(mine, his, is_ordered(statement))
    return Ended("equal" if equal else "different", mine, his)


def is_ordered(statement: Node) -> bool:
    """Whether it ends with an order of all columns."""
    last = statement.parts[-1]
    return is_ordered(last) if last.kind == "query" else last.text(OURS).startswith(" ORDER BY 1")


def reduced(statement: Node, ended: Ended, ours: Ours, theirs: Theirs) -> tuple[Node, Ended]:
    """The smallest statement found that ends the same way."""
    trials, tried = TRIALS, set()
    while True:
        shorter = [other for other in statement.smaller() if length(other) < length(statement)]
        for other in sorted(shorter, key=length):
            text = other.text(OURS)
            if text in tried:
                continue
            tried.add(text)
            trials -= 1
            if trials < 0:
                return statement, ended
            result = compare(other, ours, theirs)
            if result.how == ended.how and (
                ended.how == "different" or result.shape(other) == ended.shape(statement)
            ):
                statement, ended = other, result
                break
        else:
            return statement, ended


def length(statement: Node) -> int:
    return len(statement.text(OURS))


def reason(statement: Node, ended: Ended) -> str | None:
    """Why it is right that the answers differ, where it is."""
    said = f"{ended.how}: {statement.text(OURS)}\n{ended.ours if ended.how != 'theirs' else ''}"
    said += f"\n{ended.theirs}" if ended.how in ("theirs", "both") else ""
    return next((why for pattern, why in EXCEPTIONS if re.search(pattern, said)), None)


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        events = nasty_events(options.seed)
        theirs, ours = Theirs(events), Ours(options.binary, directory.resolve(), events)
        try:
            ends, right, findings = run(options, ours, theirs)
        finally:
            code = ours.server.stop()
    findings = folded(findings)
    for shape, found in sorted(findings.items(), key=lambda item: -len(item[1])):
        print_finding(shape, found)
    for why, count in right.most_common():
        print(f"right, {count} times: {why}")
    counts = ", ".join(f"{count} {how}" for how, count in ends.most_common())
    print(f"{sum(ends.values())} statements: {counts}; {sum(right.values())} as they should be, "
          f"{sum(map(len, findings.values()))} findings in {len(findings)} groups")  # fmt: skip
    if findings or code != 0:
        raise SystemExit(1)


def run(options, ours: Ours, theirs: Theirs):
    """Asks all statements: how they ended, reasons of exceptions, findings by shape."""
    ends, right, findings = Counter(), Counter(), defaultdict(list)
    numbers = range(options.count) if options.statement is None else [options.statement]
    for number in numbers:
        statement = Grammar(random.Random(f"{options.seed} {number}")).statement()
        if options.statement is not None:
            print(f"{OURS}: {statement.text(OURS)}\n{DUCK}: {statement.text(DUCK)}")
        ended = compare(statement, ours, theirs)
        ends[ended.how] += 1
        if ended.how == "both":
            right[f"both refuse: {ended.shape(statement)}"] += 1
        elif ended.how not in ("equal", "cut"):
            why = reason(statement, ended) if ended.how != "different" else None
            if not why:
                statement, ended = reduced(statement, ended, ours, theirs)
                why = reason(statement, ended)
            if why:
                right[why] += 1
            else:
                findings[ended.shape(statement)].append((length(statement), number, statement, ended))
        if number % 500 == 499:
            say(f"{number + 1} statements, {sum(map(len, findings.values()))} findings")
    return ends, right, findings


def folded(findings: dict) -> dict:
    """Shapes whose words all stand in a longer one are taken for the reason of that one, too."""
    kept = defaultdict(list)
    for shape in sorted(findings, key=lambda shape: (len(shape.split()), shape)):
        words = set(shape.split())
        reason = next((other for other in kept if set(other.split()) <= words), shape)
        kept[reason] += findings[shape]
    return kept


def print_finding(shape: str, found: list) -> None:
    _, number, statement, ended = min(found, key=lambda each: each[:2])
    print(f"{len(found)} times {shape}\n  statement {number}: {statement.text(OURS)}")
    others = Counter(other.shape(part) for _, _, part, other in found)
    others.pop(ended.shape(statement))
    if others:
        print(
            "  also " + "; ".join(other.partition(": ")[2] for other, _ in others.most_common(OTHERS_SHOWN))
        )
    if statement.text(DUCK) != statement.text(OURS):
        print(f"  {DUCK}'s words: {statement.text(DUCK)}")
    mine, his = ended.ours, ended.theirs
    if ended.how == "different":
        mine, his = differences(mine, his)
    print(f"  {OURS}: {str(mine)[:300]}\n  {DUCK}: {str(his)[:300]}")


def differences(mine: list, theirs: list) -> list[str]:
    """The rows of each that the other has not."""
    counted = [Counter(str(place(row)) for row in rows) for rows in (mine, theirs)]
    said = []
    for rows, other in ((mine, counted[1]), (theirs, counted[0])):
        own = [row for row in rows if str(place(row)) not in other]
        some = own or [row for a, b in zip(sorted(mine, key=place), sorted(theirs, key=place), strict=False)
                       if not all(map(same, a, b)) for row in (a if rows is mine else b,)]  # fmt: skip
        said.append(f"{len(rows)} rows; {some[:3] or 'in another order or number'}")
    return said


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("binary", type=lambda text: Path(text).resolve(strict=True))
    parser.add_argument("--count", type=int, default=5_000, help="statements to ask")
    parser.add_argument("--seed", type=int, default=1, help="of events and statements")
    parser.add_argument("--statement", type=int, help="ask this one only")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="an empty directory for the server's data, which is kept"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
