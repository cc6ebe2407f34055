#!/usr/bin/env python3
"""Analysts' statements in our SQL beside the same in DuckDB and ClickHouse: answers compared, then times.

    pip install -r bench/peers/requirements.txt
    python3 bench/peers/statements.py PATH/TO/inlay --rows 10000000 --work DIRECTORY [--set foreign|fresh|unseen|held_out|strangers|outsiders|visitors|newcomers|calendars]

The rows are those of `queries.py` (made up by `--rows`, or a file of `--data`), sent to a server over
HTTP and loaded into each store sorted by our key, with dictionaries for what repeats and a column of
instants. `analysts.py` lists what is asked, of all events of an organisation; `foreign.py`, `fresh.py`, `unseen.py`, `held_out.py`, `strangers.py`, `outsiders.py`, `visitors.py` and `newcomers.py` have thirty
more each, and `calendars.py` sixteen joins by a range, beside DuckDB alone, that were written from the documentation by somebody who had not read the code.

Ours is asked as an analyst asks it: `POST /v1/query/adhoc` over HTTP, a process of its own for each
statement, the answer as JSON. The others answer within their own process, already connected, in the form
that is fastest to fetch. All have two threads, and our server and DuckDB four fifths of the machine's memory; everything is in files and warm, and there is a pause
before and behind each statement of ours, in which a process is started ahead and opens the organisation's segments, as
there is between an analyst's statements.

With `--live 200000`, our server has as many rows more, of the last minutes, in memory, and gets a thousand further events a
second while it is measured. The others have the same rows more, which nothing follows. Ours are flushed after a minute, and as many come
again, for all. Answers are compared before that.
"""

import argparse
import contextlib
import http.client
import json
import queue
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import analysts
import calendars
import foreign
import fresh
import held_out
import newcomers
import outsiders
import strangers
import unseen
import visitors
from analysts import CLICK, DUCK, OURS
from clickhouse import Click
from duck import Duck
from queries import provide_rows
from report import processor, time as shown
from sides import Peer, say
from workload import Facts, connect, find_facts

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "rigs"))

BATCH_EVENTS = 1_000
# Of a second each, for the statement that is measured.
PREPARED_BATCHES = 120
# More are being made, or else there are too few.
PREPARED_WITHIN = 20
CLIENTS = 3
# The others' approximate percentiles differ from each other by as much.
APPROXIMATE, EXACT = 0.05, 1e-9
# An organisation may ask five statements a second.
PAUSE_SECONDS = 0.3
ROUNDS = 9
# Of a second in which everything is merged and sealed, the share of a core that the server takes.
IDLE_SHARE = 0.05


class RowsOfDuck(Duck):
    """The rows alone, with instants."""

    def load(self, parquet, facts):
        self.path.unlink(missing_ok=True)
        db = connect(self.path, self.threads)
        coded = ("tenant", "name", *facts.strings)
        for name in coded:
            db.execute(
                f"CREATE TYPE {name}_values AS ENUM (SELECT DISTINCT {name} FROM '{parquet}' ORDER BY 1)"
            )
        db.execute(f"CREATE TABLE events AS {self.rows_of(parquet, facts)}")
        db.execute("CHECKPOINT")
        db.close()

    def insert(self, parquet, facts):
        """Adds the rows of a file, whose texts are those of the first one but for ids."""
        self.db.execute(f"INSERT INTO events {self.rows_of(parquet, facts)}")
        self.db.execute("CHECKPOINT")

    @staticmethod
    def rows_of(parquet, facts):
        columns = ", ".join(f"{name}::{name}_values AS {name}" for name in facts.strings)
        return (
            "SELECT tenant::tenant_values AS tenant_id, name::name_values AS event_name, "
            "make_timestamp_ms(time_ms) AS timestamp, event_id, user_id, "
            f"{columns}, {', '.join(facts.numbers)} FROM '{parquet}'"
        )


class RowsOfClick(Click):
    """The rows alone, with instants."""

    def load(self, parquet, facts):
        self.connect()
        self.create(
            "events",
            "tenant_id LowCardinality(String), event_name LowCardinality(String), timestamp DateTime64(3, 'UTC'), "
            "event_id String, user_id String"
            + "".join(f", {name} LowCardinality(String)" for name in facts.strings)
            + "".join(f", {name} Float64" for name in facts.numbers),
            "MergeTree",
            "tenant_id, event_name, timestamp",
            self.rows_of(parquet, facts),
        )
        self.db.close()

    def insert(self, parquet, facts):
        """Adds the rows of a file."""
        self.db.query(f"INSERT INTO events {self.rows_of(parquet, facts)}")

    @staticmethod
    def rows_of(parquet, facts):
        return (
            "SELECT tenant, name, fromUnixTimestamp64Milli(time_ms, 'UTC'), event_id, user_id, "
            f"{', '.join([*facts.strings, *facts.numbers])} FROM file('{parquet}', Parquet)"
        )


PEERS = {DUCK: RowsOfDuck, CLICK: RowsOfClick}
SETS = {"analysts": (analysts.STATEMENTS, (DUCK, CLICK)), "foreign": (foreign.STATEMENTS, (DUCK,)), "fresh": (fresh.STATEMENTS, (DUCK,)), "unseen": (unseen.STATEMENTS, (DUCK,)), "held_out": (held_out.STATEMENTS, (DUCK,)), "strangers": (strangers.STATEMENTS, (DUCK,)), "outsiders": (outsiders.STATEMENTS, (DUCK,)), "visitors": (visitors.STATEMENTS, (DUCK,)), "newcomers": (newcomers.STATEMENTS, (DUCK,)), "calendars": (calendars.STATEMENTS, (DUCK,))}


class Refused(Exception):
    """Our server gives no answer."""


def memory_mb() -> int:
    """Memory of a server: four fifths of the machine's, as DuckDB takes by default."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    kib = next(int(line.split()[1]) for line in lines if line.startswith("MemTotal:"))
    return kib * 4 // 5 // 1_024


class Ours:
    """The server, asked over HTTP."""

    def __init__(self, binary: Path, directory: Path, parquet: Path, facts):
        from common import Server, register

        data, key_file = directory / "ours", directory / "ours.key"
        self.key_file = key_file
        if not key_file.exists():
            # A load that was broken off.
            shutil.rmtree(data, ignore_errors=True)
        settings = {"INLAY_SQL_IDLE_WORKERS": "2", "INLAY_MEMORY_MB": str(memory_mb())}
        self.server = Server(str(binary), data, environment=settings)
        try:
            if not key_file.exists():
                key = register(self.server.host)
                start = time.monotonic()
                send(self.server.host, key, bodies(f"SELECT * FROM '{parquet}'", facts))
                self.wait_until_idle()
                key_file.write_text(key)
                say(f"loaded {OURS} in {time.monotonic() - start:.0f} s")
            self.key = key_file.read_text()
        except BaseException:
            self.server.end()
            raise

    def wait_until_idle(self):
        """Until everything is merged and sealed."""
        idle = 0
        while idle < 5:
            before = self.cpu_seconds()
            time.sleep(1)
            idle = idle + 1 if self.cpu_seconds() - before < IDLE_SHARE else 0

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.server.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def ask(self, text: str) -> dict:
        from common import Connection

        # One that waited for the others would have been closed.
        connection = Connection(self.server.host, self.key)
        status, _, answer = connection.call("POST", "/v1/query/adhoc", {"sql": text})
        connection.close()
        if status != 200:
            raise Refused(f"{status} {answer.get('code')}: {answer.get('error')}")
        return answer

    def answer(self, text: str) -> list[list]:
        return self.ask(text)["rows"]

    def time(self, text: str) -> float:
        """Nanoseconds from the request to the parsed answer."""
        start = time.perf_counter_ns()
        self.ask(text)
        return time.perf_counter_ns() - start

    def close(self):
        code = self.server.stop()
        if code != 0:
            raise SystemExit(f"{OURS} ended with {code}")


class Live:
    """Rows in memory, and events that go on coming."""

    def __init__(self, ours: Ours, peers: dict[str, Peer], rows: int, parquet: Path, facts: Facts):
        self.ours, self.peers, self.rows, self.parquet, self.facts = ours, peers, rows, parquet, facts
        self.copies, self.over, self.failure = 0, threading.Event(), None
        self.prepared: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self.arrive)

    def __enter__(self):
        self.fill()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        # The next run begins without the rows of this one.
        self.ours.key_file.unlink()
        for peer in self.peers.values():
            peer.loaded.unlink()
        if self.failure:
            raise self.failure

    def copy(self, count: int, later_ms: int) -> Path:
        """A file with copies of some rows, with ids of their own and times of the minute before now, the last ones later."""
        now, number = int(time.time() * 1_000), self.copies
        self.copies += 1
        path = self.parquet.with_name("copy.parquet")
        connect(":memory:", 1).execute(
            f"COPY (SELECT * REPLACE (event_id || '-{number}' AS event_id, {now} + (row_number() OVER () * {later_ms / count}"
            f" - random() * 60000)::BIGINT AS time_ms) FROM '{self.parquet}' USING SAMPLE {count} ROWS) TO '{path}'"
        )
        return path

    def fill(self) -> None:
        """Rows are flushed after a minute. Bodies are made while nothing is measured, since that takes processor time."""
        if self.failure:
            raise self.failure
        if self.ours.server.metric("inlay_memtable_rows") < self.rows // 2:
            copy = self.copy(self.rows, 0)
            for peer in self.peers.values():
                peer.call("insert", copy, self.facts)
            send(self.ours.server.host, self.ours.key, self.bodies_of(copy), 1)
        if self.prepared.qsize() < PREPARED_BATCHES // 2:
            for body in self.bodies_of(self.copy(PREPARED_BATCHES * BATCH_EVENTS, PREPARED_BATCHES * 1_000)):
                self.prepared.put(body)

    def bodies_of(self, copy: Path) -> Iterator[bytes]:
        return bodies(f"SELECT * FROM '{copy}'", self.facts)

    def arrive(self):
        try:
            while not self.over.wait(1):
                send(self.ours.server.host, self.ours.key, iter([self.prepared.get(timeout=PREPARED_WITHIN)]), 1)
        except queue.Empty:
            self.failure = SystemExit("no prepared events are left: a statement took too long")
        except SystemExit as failure:
            self.failure = failure


def bodies(rows: str, facts) -> Iterator[bytes]:
    """Requests with the rows of a query over Parquet, a batch each. DuckDB writes them."""
    strings = ", ".join(f"'{name}', {name}" for name in facts.strings)
    numbers = ", ".join(f"'{name}', {name}" for name in facts.numbers)
    written = connect(":memory:", 1).execute(
        f"""SELECT '{{"events":[' || string_agg(json_object('event_id', event_id, 'tenant_id', tenant,
            'event_name', name, 'user_id', user_id, 'timestamp',
            strftime(make_timestamp_ms(time_ms), '%Y-%m-%dT%H:%M:%S.%gZ'),
            'string_props', json_object({strings}), 'numeric_props', json_object({numbers}))::VARCHAR, ',') || ']}}'
            FROM (SELECT *, row_number() OVER (ORDER BY time_ms) - 1 AS place FROM ({rows}))
            GROUP BY place // {BATCH_EVENTS} ORDER BY place // {BATCH_EVENTS}"""
    )
    while row := written.fetchone():
        yield row[0].encode()


def send(host: str, key: str, requests: Iterator[bytes], clients: int = CLIENTS) -> None:
    """Sends requests with events until there are no more."""
    lock, failures = threading.Lock(), []

    def send_some():
        connection = http.client.HTTPConnection(host, timeout=60)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        while not failures:
            with lock:
                body = next(requests, None)
            if body is None:
                return
            connection.request("POST", "/v1/events", body, headers)
            answer = connection.getresponse()
            said = answer.read()
            accepted = json.loads(said).get("accepted") if answer.status == 200 else None
            if not accepted:
                failures.append(f"{answer.status} {said[:300]}")

    threads = [threading.Thread(target=send_some) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(f"{OURS}: {failures[0]}")


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(options.work or temporary).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        _, parquet = provide_rows(options, directory)
        facts = find_facts(parquet)
        statements, stores = SETS[options.set]
        peers = {name: Peer(name, directory, options.threads, PEERS[name]) for name in stores}
        for peer in peers.values():
            peer.load(parquet, facts)
        versions = {name: peer.call("open", not options.live) for name, peer in peers.items()}
        ours = Ours(options.binary, directory, parquet, facts)
        try:
            asked, wrong = [], []
            for one in (one for one in statements if options.only in one.name):
                fault = compare(one, facts, ours, peers)
                if fault:
                    say(f"WRONG {one.name}: {fault}")
                (wrong if fault else asked).append(one)
            say(f"{len(asked)} statements: all answers agree" + (f"; {len(wrong)} do not" if wrong else ""))
            with Live(ours, peers, options.live, parquet, facts) if options.live else contextlib.nullcontext() as live:
                measured = []
                for one in asked:
                    if live:
                        live.fill()
                    measured.append((one, measure(one, facts, ours, peers, options.rounds)))
            if measured:
                print_table(measured)
        finally:
            ours.close()
            for peer in peers.values():
                peer.close()
        said = ", ".join(f"{name} {version}" for name, version in versions.items())
        print(f"\n{facts.rows:,} events; {said}. {processor()}, {options.threads} threads.")
        if wrong:
            raise SystemExit(f"Without an answer that agrees: {', '.join(one.name for one in wrong)}.")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("binary", type=lambda text: Path(text).resolve(strict=True))
    parser.add_argument("--data", type=Path, help="rows as our bench exports them")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows to make up when there is no --data")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", help="directory to keep what was loaded in, for the next run")
    parser.add_argument("--live", type=int, default=0, help="rows more that wait in memory while others arrive")
    parser.add_argument("--set", choices=SETS, default="analysts", help="which statements")
    parser.add_argument("--only", default="", help="only statements with this text in their name")
    return parser.parse_args()


def compare(one, facts, ours: Ours, peers) -> str | None:
    """The mismatch, or None when all answers agree."""
    time.sleep(PAUSE_SECONDS)
    try:
        mine = [plain(row) for row in ours.answer(one.of(OURS, facts))]
    except Refused as refused:
        return str(refused)
    if not mine:
        return "the answer is empty, so nothing would be compared"
    for name, peer in peers.items():
        theirs = [plain(row) for row in peer.call("answer", one.of(name, facts))[1]]
        tolerance = APPROXIMATE if one.approximate else EXACT
        alike = len(mine) == len(theirs) and all(
            same(a, b, tolerance) for left, right in zip(mine, theirs, strict=True) for a, b in zip(left, right, strict=True)
        )
        if not alike:
            differ = [pair for pair in zip(mine, theirs, strict=False) if pair[0] != pair[1]][:3]
            return f"{len(mine)} and {len(theirs)} rows of {name}: {differ}"
    return None


def plain(row) -> list:
    """Instants as seconds, numbers as floats, whatever the store made of them."""
    return [cell_of(cell) for cell in row]


def cell_of(cell):
    if isinstance(cell, datetime):
        return cell.replace(tzinfo=UTC).timestamp()
    if isinstance(cell, str):
        try:
            return datetime.fromisoformat(cell).replace(tzinfo=UTC).timestamp()
        except ValueError:
            pass
        # Large numbers come as text.
        return float(cell) if cell.replace(".", "", 1).isdigit() else cell
    return cell.toordinal() * 86_400.0 - 62_135_683_200.0 if hasattr(cell, "toordinal") else float(cell)


def same(mine, theirs, tolerance: float) -> bool:
    if isinstance(mine, str) or isinstance(theirs, str):
        return mine == theirs
    return abs(mine - theirs) <= tolerance * max(abs(mine), abs(theirs), 1.0)


def measure(one, facts, ours: Ours, peers, rounds: int) -> dict[str, list[float]]:
    """Nanoseconds a statement: each side in turn, in every round."""
    questions = {}
    for name, peer in peers.items():
        text = one.of(name, facts)
        forms = {form: peer.time((text, form), 1).mean for form in peer.forms}
        questions[name] = (text, min(forms, key=forms.get))
    samples: dict[str, list[float]] = {OURS: [], **{name: [] for name in peers}}
    for _ in range(rounds):
        time.sleep(PAUSE_SECONDS)
        try:
            samples[OURS].append(ours.time(one.of(OURS, facts)))
        except Refused as refused:
            raise SystemExit(f"{one.name}, while it is measured: {refused}") from refused
        # Nor is anybody in the way of the others.
        time.sleep(PAUSE_SECONDS)
        for name, peer in peers.items():
            samples[name].append(peer.time(questions[name], 1).mean)
    say(one.name)
    return samples


def print_table(measured) -> None:
    """A line a statement: median and minimum of each side, ours to theirs."""
    stores = [name for name in PEERS if name in measured[0][1]]
    print(f"| statement | {' | '.join([OURS, *stores])} | {' | '.join(f'to {name}' for name in stores)} |")
    print("|---|" + "---|" * (1 + 2 * len(stores)))
    ratios = {name: [] for name in stores}
    for one, samples in measured:
        median = {name: statistics.median(times) for name, times in samples.items()}
        cells = [f"{shown(median[name])} / {shown(min(samples[name]))}" for name in (OURS, *stores)]
        for name, all_ratios in ratios.items():
            all_ratios.append(median[OURS] / median[name])
        compared = [f"{all_ratios[-1]:.2f}" for all_ratios in ratios.values()]
        print(f"| {one.name} | {' | '.join(cells + compared)} |")
    means = " | ".join(f"{statistics.geometric_mean(each):.2f}" for each in ratios.values())
    print(f"| geometric mean | {'| ' * (1 + len(stores))}| {means} |")


if __name__ == "__main__":
    main()
