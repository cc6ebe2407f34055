"""The rows that every store of the comparison holds, and what the questions need to know about them.

Rows come as a text file, one event a line, fields parted by tabs: tenant, event name, time in
milliseconds, event id, user, then properties. The first line may name the columns; without it they
are those of the storage bench. Every event has every property; a column all of whose values in the
first thousands of rows are numbers is a number. Lines are in the order in which events arrive, so a
late event stands behind younger ones; of lines with the same tenant and event id the first counts.

`prepare` writes the rows that count, sorted by our key, as Parquet: each store loads that file. `Facts`
are the tenants, the window and the values that the questions are about; they are found in the rows, so
any file will do.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

# The columns of a file without a line of names.
KEY = ("tenant", "name", "time_ms", "event_id", "user_id")
STORAGE_BENCH = (*KEY, "model", "endpoint", "status", "plan", "source", "latency_ms", "tokens")
# The properties that have rollups. One that is not among them is free.
DIMENSIONS = ("model", "endpoint", "status", "plan", "source")
# Rows that are looked at to tell numbers from text.
SAMPLE_ROWS = 5_000


@dataclass(frozen=True)
class Facts:
    """What the questions are about."""

    rows: int
    strings: tuple[str, ...]
    numbers: tuple[str, ...]
    free: str  # a string property without rollups; empty when the file has none
    event: str  # the most frequent event of the largest tenant
    largest: str
    median: str
    tiny: str
    model: str  # the most frequent one
    free_values: dict[str, str]  # by tenant: a value of some events, not of most
    user_codes: int  # a bound of the codes of users
    to: int  # the hour after the last event

    @property
    def number(self) -> str:
        """The number that sums, means and percentiles are computed over."""
        return self.numbers[0]

    def midnight(self, days: int) -> int:
        """The midnight so many days before the last one that the window holds."""
        return self.to // DAY_MS * DAY_MS - days * DAY_MS

    def since(self, days: int) -> int:
        """The start of a period of so many days, on an hour."""
        return self.to - days * DAY_MS


def iso(ms: int) -> str:
    """A time as the API writes it."""
    return datetime.fromtimestamp(ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def milliseconds(text: str) -> int:
    """A time of the API, which is on a second here."""
    return int(datetime.fromisoformat(text).timestamp()) * 1_000


def columns_of(path: Path) -> tuple[list[str], bool, list[str]]:
    """Names of the columns, whether the file names them itself, and which are numbers."""
    with open(path, encoding="utf-8") as lines:
        first = next(lines).rstrip("\n").split("\t")
        named = first[: len(KEY)] == list(KEY)
        columns = first if named else list(STORAGE_BENCH)
        if len(first) != len(columns):
            raise SystemExit(
                f"{path}: {len(first)} columns; without a line of names there must be {len(columns)}"
            )
        sample = [line.rstrip("\n").split("\t") for line, _ in zip(lines, range(SAMPLE_ROWS), strict=False)]
    numeric = [
        n for at, n in enumerate(columns) if n not in KEY and all(is_number(row[at]) for row in sample)
    ]
    return columns, named, numeric


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def connect(path: Path | str, threads: int, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """A database of DuckDB that does not write to the terminal."""
    db = duckdb.connect(str(path), read_only=read_only)
    db.execute(f"SET threads = {threads}")
    db.execute("SET enable_progress_bar = false")
    return db


def prepare(rows_file: Path, parquet: Path, threads: int) -> None:
    """Writes the rows that count, sorted by tenant, event name and time; there is one namespace."""
    columns, named, numeric = columns_of(rows_file)
    types = {c: "BIGINT" if c == "time_ms" else "DOUBLE" if c in numeric else "VARCHAR" for c in columns}
    listed = ", ".join(f"'{name}': '{kind}'" for name, kind in types.items())
    db = connect(parquet.with_suffix(".loading"), threads)
    db.execute(
        f"CREATE TABLE lines AS SELECT * FROM read_csv('{rows_file}', delim = '\t', quote = '', escape = '', "
        f"header = {named}, auto_detect = false, columns = {{{listed}}})"
    )
    # A table keeps the order of the file: the least row number is the first line.
    db.execute(
        "CREATE TABLE again AS SELECT tenant, event_id, min(rowid) AS first FROM lines "
        "GROUP BY tenant, event_id HAVING count(*) > 1"
    )
    db.execute(
        "CREATE TABLE users AS SELECT tenant, user_id, "
        "(row_number() OVER (PARTITION BY tenant ORDER BY user_id) - 1)::INTEGER AS user_code "
        "FROM (SELECT DISTINCT tenant, user_id FROM lines)"
    )
    properties = ", ".join(columns[len(KEY) :])
    db.execute(
        f"COPY (SELECT tenant, name, time_ms, (time_ms // {DAY_MS})::INTEGER AS day, event_id, lines.user_id, "
        f"user_code, {properties} FROM lines JOIN users USING (tenant, user_id) "
        "LEFT JOIN again USING (tenant, event_id) "
        "WHERE first IS NULL OR first = lines.rowid ORDER BY tenant, name, time_ms, event_id) "
        f"TO '{parquet}' (FORMAT parquet)"
    )
    db.close()
    parquet.with_suffix(".loading").unlink()


def find_facts(parquet: Path) -> Facts:
    """Looks for the tenants and values that the questions are about."""
    db = connect(":memory:", 1)
    db.execute(f"CREATE VIEW events AS SELECT * FROM '{parquet}'")

    def rows(sql, *values):
        return db.execute(sql, values).fetchall()

    schema = {name: kind for name, kind, *_ in rows("DESCRIBE events")}
    properties = [name for name in schema if name not in (*KEY, "day", "user_code")]
    strings = tuple(name for name in properties if schema[name] == "VARCHAR")
    free = next((name for name in strings if name not in DIMENSIONS), "")
    count, last, codes = rows("SELECT count(*), max(time_ms), max(user_code) FROM events")[0]
    frequent = "GROUP BY 1 ORDER BY count(*) DESC, 1"
    largest = rows(f"SELECT tenant FROM events {frequent}")[0][0]
    event = rows(f"SELECT name FROM events WHERE tenant = ? {frequent}", largest)[0][0]
    # Tenants who have the event at all, largest first.
    have = rows(f"SELECT tenant FROM events WHERE name = ? {frequent}", event)
    median, tiny = have[len(have) // 2][0], have[-1][0]

    def value(name, tenant, at):
        """A value of the tenant's, counted from the most frequent one."""
        values = rows(f"SELECT {name} FROM events WHERE tenant = ? AND name = ? {frequent}", tenant, event)
        return values[min(at, len(values) - 1)][0]

    return Facts(
        rows=count,
        strings=strings,
        numbers=tuple(name for name in properties if name not in strings),
        free=free,
        event=event,
        largest=largest,
        median=median,
        tiny=tiny,
        model=value("model", largest, 0),
        free_values={one: value(free, one, 4) for one in (largest, median, tiny)} if free else {},
        user_codes=codes + 1,
        to=(last // HOUR_MS + 1) * HOUR_MS,
    )
