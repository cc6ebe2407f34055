#!/usr/bin/env python3
"""Stands in for our program, to try the protocol of `queries.py` without it. Its times mean nothing.

python3 bench/peers/queries.py --rows 300000 --ours bench/peers/stand_in.py
"""

import json
import sys
import time
from pathlib import Path

from duck import DUCK
from sql import raw
from workload import DAY_MS, connect, find_facts, iso, prepare


def main():
    command, *rest = sys.argv[1:]
    if command == "load":
        rows_file, directory = Path(rest[0]), Path(rest[1])
        directory.mkdir(parents=True)
        prepare(rows_file, directory / "rows.parquet", threads=1)
    else:
        serve(Path(rest[0]) / "rows.parquet")


def serve(parquet):
    facts = find_facts(parquet)
    db = connect(":memory:", 1)
    db.execute(f"CREATE TABLE events AS SELECT * FROM '{parquet}'")
    for line in sys.stdin:
        request = json.loads(line)
        text = raw(DUCK, request["query"], facts)[0].text
        samples, cpu = [], time.process_time_ns()
        for _ in range(request["repeat"]):
            start = time.perf_counter_ns()
            cursor = db.execute(text)
            rows = [
                dict(zip([column[0] for column in cursor.description], row, strict=True))
                for row in cursor.fetchall()
            ]
            samples.append(time.perf_counter_ns() - start)
        answer = {"rows": [view(row) for row in rows]}
        cpu = time.process_time_ns() - cpu
        print(json.dumps({"wall_ns": samples, "cpu_ns": cpu, "answer": answer}), flush=True)


def view(row):
    """A row as the API shows it."""
    shown = {"value": row["result"]}
    if "grp" in row:
        shown["group"] = row["grp"]
    for unit in ("day", "week"):
        if unit in row:
            shown["bucket"] = iso(row[unit] * DAY_MS)
    return shown


main()
