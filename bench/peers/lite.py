"""SQLite: clustered tables in one file, mapped into memory, with no other process beside it.

Rollups are WITHOUT ROWID, and hold counts and sums but no bounds, which keeps them narrow. Hourly ones
are ordered by value and hour; daily ones by day and value, with an index by value and day that holds
the count too, so that any question reads neighbouring rows only. Rows are clustered by our key as well,
which makes it the fastest of all for tenants with few of them; questions about many rows are not its
trade and are not asked.

Answers are fetched as tuples or, where that is faster, as one text of JSON that SQLite writes.
"""

from pathlib import Path

from sql import EXACT, Dialect
from workload import DAY_MS, DIMENSIONS, HOUR_MS, Facts, connect

LITE = Dialect(
    name="SQLite",
    metrics={
        "count": (("count(*)", EXACT),),
        "sum": (("sum({x})", EXACT),),
        "count_unique": (("count(DISTINCT user_id)", EXACT), ("count(DISTINCT user_code)", EXACT)),
        "p95": (("percentile_cont({x}, 0.95)", EXACT),),
    },
    states={},
    divide="{a} / {b}",
    seeks=True,
)
PAGE_BYTES = 8_192
MAP_BYTES = 1 << 36
CACHE_KIB = 1 << 20
# Rows that are handed over at once while loading.
LOAD_ROWS = 100_000


class Lite:
    """The store in a process of its own."""

    forms = ("tuples", "JSON")

    def __init__(self, directory: Path, threads: int):
        del threads  # A statement runs on one thread.
        self.path = directory / "peer.sqlite"
        self.db = self.no_rows = None

    def connect(self):
        import apsw  # Only the process that asks needs it.

        self.no_rows = apsw.ExecutionCompleteError
        self.db = apsw.Connection(str(self.path))
        for pragma in (
            f"page_size = {PAGE_BYTES}",
            f"mmap_size = {MAP_BYTES}",
            f"cache_size = -{CACHE_KIB}",
            "locking_mode = EXCLUSIVE",
            "journal_mode = OFF",
            "synchronous = OFF",
            "temp_store = MEMORY",
        ):
            self.db.execute(f"PRAGMA {pragma}").fetchall()

    def load(self, parquet: Path, facts: Facts) -> None:
        """Writes rows and rollups."""
        self.path.unlink(missing_ok=True)
        self.connect()
        self.db.execute(
            "CREATE TABLE events (tenant TEXT, name TEXT, time_ms INTEGER, day INTEGER, event_id BLOB, user_id TEXT, "
            "user_code INTEGER"
            + "".join(f", {name} TEXT" for name in facts.strings)
            + "".join(f", {name} REAL" for name in facts.numbers)
            + ", PRIMARY KEY (tenant, name, time_ms, event_id)) WITHOUT ROWID"
        )
        source = connect(":memory:", 1)
        columns = [row[0] for row in source.execute(f"DESCRIBE SELECT * FROM '{parquet}'").fetchall()]
        # An id that is a UUID takes 16 bytes, as it does elsewhere.
        uuid = "coalesce(unhex(replace(try_cast(event_id AS UUID)::VARCHAR, '-', '')), event_id::BLOB)"
        rows = source.execute(f"SELECT * REPLACE ({uuid} AS event_id) FROM '{parquet}'")
        insert = f"INSERT INTO events VALUES ({', '.join('?' * len(columns))})"
        with self.db:
            while chunk := rows.fetchmany(LOAD_ROWS):
                self.db.executemany(insert, chunk)
        sums = "".join(f", sum({x})" for x in facts.numbers)
        measures = "".join(f", {x}_sum REAL" for x in facts.numbers)
        for name in ("total", *DIMENSIONS):
            total = name == "total"
            value = "" if total else "value, "
            self.rollup(
                f"{name}_hourly",
                f"tenant, name, {value}hour",
                measures,
                f"SELECT tenant, name, {'' if total else name + ', '}time_ms / {HOUR_MS}, count(*){sums} FROM events",
            )
            self.rollup(
                f"{name}_daily",
                f"tenant, name, day{'' if total else ', value'}",
                measures + (", users INTEGER" if total else ""),
                f"SELECT tenant, name, time_ms / {DAY_MS}{'' if total else ', ' + name}, count(*){sums}"
                f"{', count(DISTINCT user_code)' if total else ''} FROM events",
            )
            if not total:
                self.db.execute(
                    f"CREATE INDEX {name}_daily_by_value ON {name}_daily (tenant, name, value, day, n)"
                )
        self.db.execute("ANALYZE")
        self.db.close()

    def rollup(self, table, key, measures, select):
        """A table clustered by its key."""
        typed = ", ".join(
            f"{column} {'INTEGER' if column in ('hour', 'day') else 'TEXT'}" for column in key.split(", ")
        )
        by = ", ".join(str(n + 1) for n in range(len(key.split(", "))))
        self.db.execute(
            f"CREATE TABLE {table} ({typed}, n INTEGER{measures}, PRIMARY KEY ({key})) WITHOUT ROWID"
        )
        self.db.execute(f"INSERT INTO {table} {select} GROUP BY {by} ORDER BY {by}")

    def open(self) -> str:
        """Opens what was loaded; the version."""
        self.connect()
        return self.db.execute("SELECT sqlite_version()").fetchall()[0][0]

    def answer(self, text: str) -> tuple[list[str], list[tuple]]:
        """Names and rows."""
        cursor = self.db.execute(text)
        try:
            return [column[0] for column in cursor.get_description()], cursor.fetchall()
        except self.no_rows:
            return [], []  # Without rows there are no names either.

    def asker(self, text: str, form: str):
        """What is timed. The statement stays compiled in the connection's cache."""
        execute = self.db.execute
        if form == "JSON":
            names = ", ".join(self.answer(text)[0])
            text = f"SELECT json_group_array(json_array({names})) FROM ({text})"
        return lambda: execute(text).fetchall()

    def plan(self, text: str) -> str:
        """How the store would answer, naming the tables."""
        return "\n".join(row[3] for row in self.db.execute(f"EXPLAIN QUERY PLAN {text}"))

    def sizes(self) -> dict[str, int]:
        """Bytes on disk by table, indexes included."""
        return dict(
            self.db.execute(
                "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name) GROUP BY 1"
            )
        )
