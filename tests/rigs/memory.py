#!/usr/bin/env python3
"""Gives the server 512 MB and asks for everything at once.

The server runs in a control group of its own whose memory is limited; a process that wants more is
killed by the kernel. It is given two million events in batches of 1,000, each event with a property
that no other has; then 64 clients ask the worst questions that the API takes, in parallel, while
the load goes on; then clients send batches of the largest size, 10 MiB. Answers may be refusals
(`query_too_large`, `query_timeout`, 503), but the process must live, and all numbers must be right,
also after it was killed and started again under the same limit.

    python3 tests/rigs/memory.py PATH/TO/inlay [--events 2000000] [--limit-mb 512]

Needs root and the memory controller, of control groups version 1 or 2.
"""

import collections
import contextlib
import os
import pathlib
import random
import threading
import urllib.parse

from common import Connection, Failed, Gone, Skipped, main, register
from ledger import TENANTS, Ledger
from load import Load
from machine import need_root
from questions import EVENT

CLIENTS = 4
QUERY_CLIENTS = 64
QUERIES_OF_A_CLIENT = 3
LARGE_CLIENTS = 8
LARGE_BATCHES_OF_A_CLIENT = 4
# Two of the largest property values: a batch of 1,000 events is just below 10 MiB.
PAD_BYTES = 4_096
NEVER = 1 << 60
CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup")
# Shapes that need a state for each group, each bucket, or each value.
WORST = (
    {"metric": "p99", "group_by": "trace", "granularity": "hour"},
    {"metric": "count_unique", "group_by": "batch", "granularity": "hour"},
    {"metric": "p95", "group_by": "batch", "granularity": "day"},
    {"metric": "sum", "group_by": "trace"},
    {"metric": "count_unique_approx", "group_by": "trace", "granularity": "day"},
    {"metric": "p99"},
    {"metric": "count", "group_by": "trace", "granularity": "hour", "limit": 1_000},
)
REFUSALS = ("query_too_large", "query_timeout", "overloaded")


def options(parser):
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--wide", action="store_true", help="some batches have 2,000 properties")
    parser.add_argument("--limit-mb", type=int, default=512)
    parser.add_argument("--query-clients", type=int, default=QUERY_CLIENTS)
    parser.add_argument("--large-clients", type=int, default=LARGE_CLIENTS)


class ControlGroup:
    """A memory limit for one process."""

    def __init__(self, stack, name, limit_bytes):
        first = CONTROL_GROUPS / "memory"
        self.is_first_version = (first / "memory.limit_in_bytes").exists()
        self.path = (first if self.is_first_version else CONTROL_GROUPS) / name
        limit = "memory.limit_in_bytes" if self.is_first_version else "memory.max"
        try:
            if not self.is_first_version:
                (CONTROL_GROUPS / "cgroup.subtree_control").write_text("+memory")
            self.path.mkdir()
            stack.callback(self._remove)
            (self.path / limit).write_text(str(limit_bytes))
        except OSError as error:
            raise Skipped(f"no memory controller: {error}") from None

    def _remove(self):
        # It goes when its last process has gone.
        for _ in range(50):
            try:
                return self.path.rmdir()
            except OSError:
                threading.Event().wait(0.1)

    def words(self):
        """In front of a command: the shell joins the group, and becomes the command."""
        return ("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self.path))

    def oom_kills(self):
        name = "memory.oom_control" if self.is_first_version else "memory.events"
        lines = (self.path / name).read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


class Watched:
    """The server in its group, started again whenever the kernel has killed it."""

    def __init__(self, rig, group):
        self.rig, self.group = rig, group
        self.peaks, self.findings = {}, []
        self.server = self.start()

    def start(self):
        self.server = self.rig.start(before=self.group.words(), environment={"INLAY_SQL_IDLE_WORKERS": "2"})
        return self.server

    def phase(self, name, work):
        """Runs a phase; whatever it does, the process must not end."""
        kills, done = self.group.oom_kills(), threading.Event()
        peak = [0]

        def watch():
            # Resident memory is gone with the process: it must be looked at while it is there.
            while not done.wait(0.02):
                with contextlib.suppress(OSError):
                    peak[0] = max(peak[0], self.server.memory_peak_mib())

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            work()
            self.server.expect_alive()
        except (Failed, Gone) as failure:
            if self.group.oom_kills() == kills:
                raise
            self.findings.append(f"{name}: killed for want of memory, {peak[0]} MiB resident")
            self.findings.append(str(failure).splitlines()[0])
            self.server.end()
            self.start()
        finally:
            done.set()
            watcher.join()
        self.peaks[name] = peak[0]


def run(rig):
    need_root()
    asked = rig.arguments
    group = ControlGroup(rig.stack, rig.folder.name, asked.limit_mb * 1_000_000)
    ledger = Ledger(rig.folder / "ledger.jsonl")
    watched = Watched(rig, group)
    key = register(watched.server.host)
    answers = collections.Counter()

    def ingest(count, **more):
        more = {"clients": CLIENTS, "is_full": True, "extra": trace} | more
        more |= {} if asked.wide else {"wide_every": NEVER}
        seed = f"{asked.seed} {count}"
        load = Load(watched.server.host, key, ledger, seed, requests=count, **more)
        load.join()
        if load.gone:
            raise Failed(f"{load.gone} connections were cut off: {load.statuses}")

    def ask():
        host = watched.server.host
        load = Load(
            host, key, ledger, f"{asked.seed} more", clients=1, extra=trace, wide_every=NEVER
        )
        try:
            ask_the_worst(host, key, ledger, asked.query_clients, answers)
        finally:
            load.stop()
        if answers["cut off"]:
            raise Failed(f"{answers['cut off']} questions were cut off")

    def compare():
        ledger.compare(watched.server.host, key)

    requests = max(asked.events // 1_000 // CLIENTS, 1)
    watched.phase("ingest", lambda: ingest(requests, sabotage=asked.sabotage))
    watched.phase("queries", ask)
    large = {"clients": asked.large_clients, "extra": pad, "wide_every": NEVER}
    watched.phase("largest batches", lambda: ingest(LARGE_BATCHES_OF_A_CLIENT, **large))
    watched.phase("comparison", compare)
    watched.server.kill()
    watched.start()
    watched.phase("restart", compare)
    if not answers["200"]:
        ledger.wrong.append(f"no question was answered: {dict(answers)}")
    return watched.findings + ledger.wrong, (
        f"{asked.limit_mb} MB, {group.oom_kills()} kills for want of memory, "
        f"{ledger.seen['events']:,} events acknowledged, {ledger.seen['refused']:,} requests "
        f"refused, {asked.query_clients} askers got {dict(answers)}, "
        f"peak resident MiB {watched.peaks}"
    )


def trace(lots):
    return f',"trace":"{lots.getrandbits(64):016x}"'


def pad(lots):
    """Two values of the largest size, which nothing compresses much."""
    return f',"pad":"{lots.randbytes(PAD_BYTES // 2).hex()}","more":"{os.urandom(2_048).hex()}"'


def ask_the_worst(host, key, ledger, clients, answers):
    """Everybody asks at once; what must not be answered is a finding."""

    def ask(lots):
        connection = Connection(host, key, timeout=120)
        for _ in range(QUERIES_OF_A_CLIENT):
            question = {"event_name": EVENT, "tenant_id": lots.choice(TENANTS), "numeric_prop": "n"}
            question |= ledger.window | lots.choice(WORST)
            try:
                query = "/v1/query?" + urllib.parse.urlencode(question)
                status, _, answer = connection.call("GET", query)
            except Gone:
                with ledger.lock:
                    answers["cut off"] += 1
                return
            code = "200" if status == 200 else answer["code"]
            with ledger.lock:
                answers[code] += 1
                if status != 200 and code not in REFUSALS:
                    ledger.wrong.append(f"{status} {code} for {question}")

    threads = [
        threading.Thread(target=ask, args=(random.Random(number),)) for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main("memory", __doc__, run, options)
