"""DuckDB: the rows and rollups in one file, read by two threads.

Rows are sorted by our key, so that a tenant's are found by the bounds of row groups; what repeats is
an ENUM. States of `approx_count_distinct` and `approx_quantile` can be stored from version 2.0 on. The
former has a standard error of 3.3 %, measured over 200 sets of 50,000 values, the worst of which was off
by 9 %: it answers a cheaper question than the others, and is timed all the same.

A question is a prepared statement; its answer is fetched as tuples, as arrays of numpy or as columns of
Arrow, whatever is fastest.
"""

import warnings
from pathlib import Path

from sql import APPROXIMATE, EXACT, Dialect
from workload import DIMENSIONS, HOUR_MS, Facts, connect

# What `approx_count_distinct` may be off: more than four standard errors.
COARSE = 0.15
# Rows of one batch of Arrow: more than any answer has.
BATCH_ROWS = 100_000
BLOCK_BYTES = 262_144

DISTINCT = (
    ("count(DISTINCT user_id)", EXACT),
    ("count(DISTINCT user_code)", EXACT),
    ("bit_count(bitstring_agg(user_code, 0, {codes}))", EXACT),
)
DUCK = Dialect(
    name="DuckDB",
    metrics={
        "count": (("count(*)", EXACT),),
        "sum": (("sum({x})", EXACT),),
        "avg": (("avg({x})", EXACT),),
        "p95": (("quantile_cont({x}, 0.95)", EXACT),),
        "p99": (("quantile_cont({x}, 0.99)", EXACT),),
        "p95_approx": (("quantile_cont({x}, 0.95)", EXACT), ("approx_quantile({x}, 0.95)", APPROXIMATE)),
        "count_unique": DISTINCT,
        "count_unique_approx": (
            *DISTINCT,
            ("approx_count_distinct(user_id)", COARSE),
            ("approx_count_distinct(user_code)", COARSE),
        ),
    },
    states={
        "count_unique_approx": (("finalize(combine_aggr(users))", COARSE),),
        "p95_approx": (("finalize(combine_aggr(digest))", APPROXIMATE),),
    },
    divide="({a} // {b})",
)


class Duck:
    """The store in a process of its own."""

    forms = ("tuples", "numpy", "Arrow")

    def __init__(self, directory: Path, threads: int):
        self.path = directory / "peer.duckdb"
        self.threads = threads
        self.db = None
        self.prepared: dict[str, str] = {}
        # Arrow by a connection that runs prepared statements warns of a copy; the way without is slower.
        warnings.simplefilter("ignore", UserWarning)

    def load(self, parquet: Path, facts: Facts) -> None:
        """Writes rows, rollups and states."""
        self.path.unlink(missing_ok=True)
        db = connect(self.path, self.threads)
        for name in ("tenant", "name", *facts.strings):
            db.execute(
                f"CREATE TYPE {name}_values AS ENUM (SELECT DISTINCT {name} FROM '{parquet}' ORDER BY 1)"
            )
        coded = ", ".join(f"{name}::{name}_values AS {name}" for name in ("tenant", "name", *facts.strings))
        db.execute(
            f"CREATE TABLE events AS SELECT * REPLACE ({coded}, try_cast(event_id AS UUID) AS event_id) "
            f"FROM '{parquet}'"
        )
        measures = "count(*)::INTEGER AS n" + "".join(
            f", sum({x}) AS {x}_sum, min({x}) AS {x}_min, max({x}) AS {x}_max" for x in facts.numbers
        )
        for name in ("total", *DIMENSIONS):
            value, order = (f"{name} AS value, ", "value, ") if name != "total" else ("", "")
            users = ", count(DISTINCT user_code)::INTEGER AS users" if name == "total" else ""
            for unit, time in (("hour", f"(time_ms // {HOUR_MS})::INTEGER"), ("day", "day")):
                table = f"{name}_{'hourly' if unit == 'hour' else 'daily'}"
                db.execute(
                    f"CREATE TABLE {table} AS SELECT tenant, name, {value}{time} AS {unit}, {measures}"
                    f"{users if unit == 'day' else ''} FROM events GROUP BY ALL ORDER BY tenant, name, {order}{unit}"
                )
        states = (
            "approx_count_distinct(user_code) EXPORT_STATE AS users, "
            f"approx_quantile({facts.number}, 0.95) EXPORT_STATE AS digest"
        )
        for table, value in (("total_sketches", ""), ("plan_sketches", "plan AS value, ")):
            db.execute(
                f"CREATE TABLE {table} AS SELECT tenant, name, {value}day, {states} FROM events "
                f"GROUP BY ALL ORDER BY tenant, name, {'value, ' if value else ''}day"
            )
        db.execute("CHECKPOINT")
        db.close()

    def open(self, read_only: bool = True) -> str:
        """Opens what was loaded; the version."""
        self.db = connect(self.path, self.threads, read_only=read_only)
        return self.db.execute("SELECT version()").fetchone()[0]

    def answer(self, text: str) -> tuple[list[str], list[tuple]]:
        """Names and rows. Makes the statement ready for `ask`."""
        name = self.prepared.get(text)
        if not name:
            name = f"question_{len(self.prepared)}"
            self.db.execute(f"PREPARE {name} AS {text}")
            self.prepared[text] = f"EXECUTE {name}"
        cursor = self.db.execute(self.prepared[text])
        rows = cursor.fetchall()
        return [column[0] for column in cursor.description], rows

    def asker(self, text: str, form: str):
        """What is timed."""
        execute, prepared = self.db.execute, self.prepared[text]
        return {
            "tuples": lambda: execute(prepared).fetchall(),
            "numpy": lambda: execute(prepared).fetchnumpy(),
            "Arrow": lambda: execute(prepared).to_arrow_reader(BATCH_ROWS).read_all(),
        }[form]

    def plan(self, text: str) -> str:
        """How the store would answer, naming the tables."""
        return self.db.execute(f"EXPLAIN (FORMAT json) {text}").fetchall()[0][1]

    def sizes(self) -> dict[str, int]:
        """Bytes on disk by table, in whole blocks."""
        names = [row[0] for row in self.db.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return {name: self.blocks(name) * BLOCK_BYTES for name in names}

    def blocks(self, table: str) -> int:
        blocks = (
            "SELECT count(DISTINCT block) FROM (SELECT unnest(list_prepend(block_id, additional_block_ids)) "
            f"AS block FROM pragma_storage_info('{table}') WHERE persistent) WHERE block >= 0"
        )
        return self.db.execute(blocks).fetchone()[0]
