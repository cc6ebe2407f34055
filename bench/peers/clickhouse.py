"""ClickHouse in this process (chDB): MergeTree tables sorted by our key, each merged into one part.

What repeats is LowCardinality. Counts, sums and bounds are in a SummingMergeTree by hour and by day,
states in an AggregatingMergeTree by day: `uniqCombined(14)`, whose error is that of our sketch, a
roaring bitmap of the users' codes, which counts them exactly, and a t-digest. As all parts are merged,
a statement may take rows of rollups as they are; one that adds them up, as documentation asks for, is
tried too.

Answers are fetched in the fastest of its own formats. Settings are the defaults: reading by `pread`, an
uncompressed cache, smaller granules of rows, no profiler and no logs made no difference above noise.
"""

import json
import shutil
from pathlib import Path

from sql import APPROXIMATE, EXACT, Dialect
from workload import DAY_MS, DIMENSIONS, HOUR_MS, Facts

DISTINCT = (
    ("uniqExact(user_id)", EXACT),
    ("uniqExact(user_code)", EXACT),
    ("groupBitmap(user_code)", EXACT),
)
CLICK = Dialect(
    name="ClickHouse",
    metrics={
        "count": (("count()", EXACT),),
        "sum": (("sum({x})", EXACT),),
        "avg": (("avg({x})", EXACT),),
        "p95": (("quantileExactInclusive(0.95)({x})", EXACT),),
        "p99": (("quantileExactInclusive(0.99)({x})", EXACT),),
        "p95_approx": (
            ("quantileExactInclusive(0.95)({x})", EXACT),
            ("quantileTDigest(0.95)({x})", APPROXIMATE),
        ),
        "count_unique": DISTINCT,
        "count_unique_approx": (
            *DISTINCT,
            ("uniq(user_code)", APPROXIMATE),
            ("uniqCombined(14)(user_code)", APPROXIMATE),
            ("uniqCombined(14)(user_id)", APPROXIMATE),
        ),
    },
    states={
        "count_unique": (("groupBitmapMerge(bitmap)", EXACT),),
        "count_unique_approx": (
            ("groupBitmapMerge(bitmap)", EXACT),
            ("uniqCombinedMerge(14)(users)", APPROXIMATE),
        ),
        "p95_approx": (("quantileTDigestMerge(0.95)(digest)", APPROXIMATE),),
    },
    divide="intDiv({a}, {b})",
    merges_later=True,
)
# Rows of rollups and states that one mark stands for: a question needs some hundred of them.
ROLLUP_GRANULE = 1_024


class Click:
    """The store in a process of its own."""

    forms = ("Native", "RowBinary", "TSV")

    def __init__(self, directory: Path, threads: int):
        self.path = directory / "clickhouse"
        self.threads = threads
        self.db = None

    def connect(self):
        from chdb import session  # Starts threads, so only in the process that asks.

        self.db = session.Session(str(self.path))
        self.db.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic")
        self.db.query("USE bench")
        self.db.query(f"SET max_threads = {self.threads}")

    def load(self, parquet: Path, facts: Facts) -> None:
        """Writes rows, rollups and states."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.connect()
        key = "tenant LowCardinality(String), name LowCardinality(String)"
        self.create(
            "events",
            f"{key}, time_ms Int64, day UInt16, event_id UUID, user_id String, user_code UInt32"
            + "".join(f", {name} LowCardinality(String)" for name in facts.strings)
            + "".join(f", {name} Float64" for name in facts.numbers),
            "MergeTree",
            "tenant, name, time_ms",
            f"SELECT tenant, name, time_ms, day, toUUIDOrZero(event_id), user_id, user_code, "
            f"{', '.join([*facts.strings, *facts.numbers])} FROM file('{parquet}', Parquet)",
        )
        sums = "n UInt32" + "".join(f", {x}_sum Float64" for x in facts.numbers)
        bounds = "".join(
            f", {x}_{end} SimpleAggregateFunction({end}, Float64)"
            for x in facts.numbers
            for end in ("min", "max")
        )
        measures = "count()" + "".join(f", sum({x})" for x in facts.numbers)
        measures += "".join(f", min({x}), max({x})" for x in facts.numbers)
        summed = ", ".join(["n", *(f"{x}_sum" for x in facts.numbers)])
        for name in ("total", *DIMENSIONS):
            total = name == "total"
            value, grouped, typed = (
                ("", "", "") if total else ("value, ", f"{name}, ", ", value LowCardinality(String)")
            )
            for table, unit, kind, time in (
                ("hourly", "hour", "UInt32", f"intDiv(time_ms, {HOUR_MS})"),
                ("daily", "day", "UInt16", f"intDiv(time_ms, {DAY_MS})"),
            ):
                distinct = total and unit == "day"
                users = ", uniqExact(user_code)" if distinct else ""
                self.create(
                    f"{name}_{table}",
                    f"{key}{typed}, {unit} {kind}, {sums}{bounds}"
                    + (", users SimpleAggregateFunction(anyLast, UInt32)" if distinct else ""),
                    f"SummingMergeTree(({summed}))",
                    f"tenant, name, {value}{unit}",
                    f"SELECT tenant, name, {grouped}{time} AS t, {measures}{users} "
                    f"FROM events GROUP BY tenant, name, {grouped}t",
                    f"SETTINGS index_granularity = {ROLLUP_GRANULE}",
                )
        for name, value, grouped in (("total", "", ""), ("plan", "value, ", "plan, ")):
            self.create(
                f"{name}_sketches",
                f"{key}{', value LowCardinality(String)' if value else ''}, day UInt16, "
                "users AggregateFunction(uniqCombined(14), UInt32), bitmap AggregateFunction(groupBitmap, UInt32), "
                "digest AggregateFunction(quantileTDigest(0.95), Float64)",
                "AggregatingMergeTree",
                f"tenant, name, {value}day",
                f"SELECT tenant, name, {grouped}day, uniqCombinedState(14)(user_code), groupBitmapState(user_code), "
                f"quantileTDigestState(0.95)({facts.number}) FROM events GROUP BY tenant, name, {grouped}day",
                f"SETTINGS index_granularity = {ROLLUP_GRANULE}",
            )
        self.db.close()

    def create(self, name, columns, engine, key, select, settings=""):
        """A table with the rows of a SELECT, merged into one part."""
        self.db.query(f"CREATE TABLE {name} ({columns}) ENGINE = {engine} ORDER BY ({key}) {settings}")
        self.db.query(f"INSERT INTO {name} {select}")
        parts = f"SELECT count() FROM system.parts WHERE active AND database = 'bench' AND table = '{name}'"
        if self.answer(parts)[1] != [[1]]:
            self.db.query(f"OPTIMIZE TABLE {name} FINAL")

    def open(self, _read_only: bool = True) -> str:
        """Opens what was loaded; the version. It is always writable."""
        self.connect()
        return json.loads(str(self.db.query("SELECT version()", "JSONCompactEachRow")))[0]

    def answer(self, text: str) -> tuple[list[str], list[tuple]]:
        """Names and rows."""
        lines = str(self.db.query(text, "JSONCompactEachRowWithNames")).splitlines()
        names, *rows = (json.loads(line) for line in lines)
        return names, rows

    def asker(self, text: str, form: str):
        """What is timed."""
        query = self.db.query
        return lambda: query(text, form).bytes()

    def plan(self, text: str) -> str:
        """How the store would answer, naming the tables; a scalar subquery is named by the syntax tree alone."""
        return "".join(str(self.db.query(f"EXPLAIN {kind} {text}", "TSVRaw")) for kind in ("PLAN", "AST"))

    def sizes(self) -> dict[str, int]:
        """Bytes on disk by table, without what merging replaced."""
        sizes = "SELECT table, sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'bench' GROUP BY 1"
        return dict(self.answer(sizes)[1])
