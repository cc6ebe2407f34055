#!/usr/bin/env python3
"""Writes the .slt files beside it, with what DuckDB answers.

    pip install duckdb
    python3 server/sql/tests/slt/make.py

Statements are those of `statements.py`, over the rows of `events()` here, which `server/sql/tests/slt.rs` makes alike. Where the two
dialects differ the statement says what DuckDB is asked instead; where there is no such question, the answer was worked out
by hand and stands there.
"""

import datetime
import decimal
import pathlib

import duckdb

from statements import STATEMENTS

FOLDER = pathlib.Path(__file__).resolve().parent
NOW_MS = 1_795_169_856_789
ROWS = 2_000


def events():
    """Rows that hold what is odd: nulls, empty texts, equal times, quotes, other scripts, numbers of all sizes."""
    words = ["small", "large", "it's", "Größe", "", "a much longer name of a model", "日本"]
    for n in range(ROWS):
        strings = {}
        if n % 11:
            strings["model"] = words[n % 7]
        if n % 3:
            strings["plan"] = ["free", "pro", "team"][n // 3 % 3]
        numbers = {}
        if n % 5:
            numbers["ms"] = (n * 7919 % 1000) / 4
        if n % 13 == 0:
            numbers["cost"] = -(n % 100) * 0.125
        yield (
            f"t{n * n % 7}",
            ["call", "login", "export"][n % 10 // 4],
            datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=NOW_MS - n // 2 * 613_000),
            f"e{n}" if n % 4 else None,
            f"u{n * 31 % 97}" if n % 6 else None,
            strings,
            numbers,
        )


def database():
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    db.execute(
        "CREATE TABLE events (tenant_id VARCHAR, event_name VARCHAR, timestamp TIMESTAMP, event_id VARCHAR, user_id VARCHAR,"
        " string_props MAP(VARCHAR, VARCHAR), numeric_props MAP(VARCHAR, DOUBLE))"
    )
    db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", [list(row) for row in events()])
    for name, part in (("events_hourly", "hour"), ("events_daily", "day")):
        db.execute(
            f"CREATE VIEW {name} AS SELECT tenant_id, event_name, date_trunc('{part}', timestamp)::TIMESTAMP AS {part},"
            f" count(*) AS count FROM events GROUP BY 1, 2, 3"
        )
    return db


def shown(value):
    """A value as `slt.rs` writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (float, decimal.Decimal)):
        # As many digits as both are sure of.
        text = f"{float(value):.9g}"
        return str(int(float(text))) if float(text).is_integer() and abs(float(text)) < 1e9 else text
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, int):
        return str(value)
    # An empty text would be no column.
    return value.replace(" ", "_") if value else "(empty)"


def main():
    db = database()
    count = 0
    for name, statements in STATEMENTS.items():
        lines = [f"# Written by make.py from statements.py; the answers are those of DuckDB {duckdb.__version__}.\n"]
        for statement in statements:
            sql, asked, answer = statement if isinstance(statement, tuple) else (statement, statement, None)
            if answer is None:
                answer = db.execute(asked).fetchall()
            is_sorted = "ORDER BY" in sql.rsplit(")", 1)[-1]
            columns = "?" * len(answer[0]) if answer else "?"
            lines.append(f"query {columns}{'' if is_sorted else ' rowsort'}\n{sql}\n----\n")
            rows = [" ".join(shown(value) for value in row) for row in answer]
            lines.append("\n".join(rows if is_sorted else sorted(rows)) + ("\n\n" if rows else "\n"))
            count += 1
        (FOLDER / f"{name}.slt").write_text(lines[0] + "\n" + "".join(lines[1:]))
    print(f"{count} statements")


if __name__ == "__main__":
    main()
