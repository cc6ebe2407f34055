#!/usr/bin/env python3
"""Our queries beside the same in DuckDB, ClickHouse and SQLite: answers compared, then times.

    pip install -r bench/peers/requirements.txt
    python3 bench/peers/queries.py --rows 1000000                          the others alone
    python3 bench/peers/queries.py --data rows.tsv --ours PATH/TO/queries-ours --rounds 9

Rows come from a file that our bench exports (`--data`; the format is in `workload.py`) or are made up
(`--rows`). Each store gets them in its best layout, with rollups of its own (`duck.py`,
`clickhouse.py`, `lite.py`). `classes.py` lists what is asked. Where several statements answer a
question, or several forms of the answer can be fetched, each is tried and the fastest is what counts.

First every statement's answer is compared with one that DuckDB computes from the rows: equal, within
1e-9 for sums of floats, within 3 % where an approximate metric is asked for (the sketch of DuckDB is
less exact, see `duck.py`). If one differs, the difference is printed and nothing is timed. A class about
rollups also fails when a store's plan reads rows.

Then, for each class and round, ours and each of the others are asked in turn. A sample is the mean over
repeats that take a millisecond together; from the samples of all rounds come the median of wall time,
its minimum over single questions, and the median of CPU time.

What is timed is the whole call within the process: for the others through Python's own interface of
each, statements prepared where that exists, up to the answer in the form that is fastest to fetch; what
an empty question costs there is told below the table. For us it is up to the bytes of the JSON answer.
Only two threads work at a time, all data lies in files and is warm.

Our side is a program that knows two commands:

    queries-ours load ROWS_FILE DATA_DIR     makes the data directory; not timed
    queries-ours serve DATA_DIR              answers lines of JSON on stdin with lines on stdout:

    {"query": {"event_name": "api_call", "tenant_id": "tenant-1", "metric": "p95",
               "numeric_prop": "latency_ms", "granularity": "day", "group_by": "model",
               "from": "2026-08-15T14:00:00Z", "to": "2026-11-13T14:00:00Z",
               "f_country": "C00", "limit": "1000"},
     "repeat": 7, "again": false}
    {"wall_ns": [7 times], "cpu_ns": of all seven together, all threads,
     "answer": {"rows": [{"bucket": "2026-08-15T00:00:00Z", "group": "model-1", "value": 1.5}]}}

A bucket may also be in milliseconds; bucket and group are missing where the question has none. Empty
buckets may be answered or not. Without `"again": true` nothing of an answer before may be used, as it is in
the others; with it, what each segment gave to the same question before may. Both are timed, in columns of their
own. What cannot be answered is {"error": "why"}. Options of `serve` are its own business.
"""

import argparse
import json
import tempfile
from pathlib import Path

import report
from check import check
from classes import Class, all_classes
from report import Measured
from sides import PEERS, Ours, OursAgain, Peer, Sample, repeats, say
from sql import Statement
from synthetic import synthesize
from workload import find_facts, prepare

ROUNDS_MIN = 7
# Rounds in which the fastest statement of a store is found.
TRIALS = 3


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(options.work or temporary).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        rows_file, parquet = provide_rows(options, directory)
        facts = find_facts(parquet)
        classes = [one for one in all_classes(facts) if options.only in one.name]
        peers = [Peer(name, directory, options.threads) for name in PEERS]
        versions = {}
        for peer in peers:
            peer.load(parquet, facts)
            versions[peer.name] = peer.call("open")
        ours = None
        if options.ours != "none":
            ours = Ours(Path(options.ours), rows_file, Path(options.ours_data or directory / "ours"))
        checked = check(classes, facts, ours, peers)
        say(f"{len(classes)} classes: all answers agree")
        measured = []
        for one in classes:
            say(one.name)
            measured.append(measure(one, options.rounds, ours, peers))
        report.print_table(measured, checked)
        report.print_conditions(facts, versions, options, peers)
        report.print_errors(measured, checked)
        if options.sql:
            report.print_statements(measured, peers)
        for side in [*peers, *([ours] if ours else [])]:
            side.close()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, help="rows as our bench exports them")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows to make up when there is no --data")
    parser.add_argument("--ours", default="none", help="program that answers for us, or none")
    parser.add_argument("--ours-data", help="its data directory; made from the rows unless it exists")
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", help="directory to keep what was loaded in, for the next run")
    parser.add_argument("--only", default="", help="only classes with this text in their name")
    parser.add_argument("--sql", action="store_true", help="print the statements that counted")
    options = parser.parse_args()
    if options.rounds < ROUNDS_MIN:
        parser.error(f"a median needs {ROUNDS_MIN} rounds")
    return options


def provide_rows(options, directory: Path) -> tuple[Path, Path]:
    """The file of rows and what counts of it. What a directory holds already is not made again."""
    source = directory / "source.json"
    wanted = [str(options.data.resolve()), options.data.stat().st_size] if options.data else options.rows
    if source.exists() and json.loads(source.read_text()) != wanted:
        raise SystemExit(f"{directory} holds other rows: {source.read_text()}")
    rows_file, parquet = options.data or directory / "rows.tsv", directory / "rows.parquet"
    if not source.exists():
        if not options.data:
            say(f"making up {options.rows:,} rows")
            synthesize(rows_file, options.rows, options.threads)
        say("sorting rows")
        prepare(rows_file, parquet, options.threads)
        source.write_text(json.dumps(wanted))
    return rows_file, parquet


def measure(one: Class, rounds: int, ours: Ours | None, peers: list[Peer]) -> Measured:
    """Asks every side once a round."""
    asked = []
    if ours:
        for side in (ours, OursAgain(ours)):
            asked.append((side, one, repeats(side.time(one, 3))))
    for peer in peers:
        if one.statements.get(peer.name):
            asked.append((peer, *fastest(peer, one.statements[peer.name])))
    samples: dict[str, list[Sample]] = {side.name: [] for side, _, _ in asked}
    for _ in range(rounds):
        for side, question, repeat in asked:
            samples[side.name].append(side.time(question, repeat))
    return Measured(one, samples, {side.name: question for side, question, _ in asked if not isinstance(side, Ours)})


def fastest(peer: Peer, statements: list[Statement]) -> tuple[tuple[str, str], int]:
    """The statement and form that take a store least time, and how often to ask for a sample."""
    trials = {}
    for question in ((statement.text, form) for statement in statements for form in peer.forms):
        repeat = repeats(peer.time(question, 2))
        trials[question] = min(peer.time(question, repeat).mean for _ in range(TRIALS))
    best = min(trials, key=trials.get)
    return best, repeats(peer.time(best, 2))


if __name__ == "__main__":
    main()
