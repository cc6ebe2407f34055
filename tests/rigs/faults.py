#!/usr/bin/env python3
"""Lets system calls fail, one after the other, and looks whether the server ever lies about it.

The server runs under `strace`, which answers the k-th call of a kind with an error instead of
carrying it out: `fdatasync`, `fsync`, `rename`, `pwrite64`, `fallocate` and `ftruncate`; EIO,
ENOSPC and EDQUOT; once, or from k on. strace counts for each thread apart, so one run can meet the
fault in the log and in a flush. Each run starts on a copy of the same directory, which holds
segments and a log to replay. Clients post small batches, two of them wide enough to cause a flush,
and change the metadata, which erases tenants; half of the runs end with SIGKILL, half with SIGTERM,
which writes segments too.

With `--upkeep` the directory was made by a server whose clock was hours behind (libfaketime), so that
each run begins with work on segments: with `merge` fresh ones have settled, with `seal` units
of days that are over have two merged ones.

Every refusal must be 503 with `Retry-After`. While the faulty server runs, it must answer
questions, and show every acknowledged batch and no half one. After a restart without faults nothing
acknowledged is missing and writes are taken. A server that does not start because of the fault is
in its rights, as long as it ends with an error.

    python3 tests/rigs/faults.py PATH/TO/inlay [--runs 40] [--upkeep seal]
    python3 tests/rigs/faults.py PATH/TO/inlay --all [--first 8000] [--last 11999]

Needs strace, and leave to trace one's own processes.
"""

import collections
import random
import re
import shutil
import subprocess
import sys
import time

from common import Failed, Gone, Skipped, main, register
from faketime import Clock, by
from ledger import Ledger
from load import Load
from machine import need_tool
from metadata import Metadata

# Patterns of system calls: not every machine has each of them under each name.
CALLS = {
    "fdatasync": "^fdatasync$",
    "fsync": "^fsync$",
    "rename": "^rename",
    "pwrite64": "^pwrite64$",
    "allocate": "^(fallocate|ftruncate)$",
}
ERRORS = ("EIO", "ENOSPC", "EDQUOT")
MODES = ("", "+")
CLIENTS, REQUESTS, EVENTS_MAX, WIDE_EVERY = 3, 8, 60, 10
# Segments are merged when they are an hour old, and sealed when they are another one old.
HOURS_BEHIND = {"merge": (5.0, 2.5), "seal": (7.5, 5.0, 2.5)}
MERGED_WITHIN_SECONDS = 30
# Under a tracer that takes longer than the load.
UPKEEP_SECONDS = 2


def options(parser):
    parser.add_argument("--runs", type=int, default=40, help="drawn by lot from all faults")
    parser.add_argument("--all", action="store_true", help="every fault, which takes hours")
    parser.add_argument("--first", type=int, default=0, help="of all, where a run before ended")
    parser.add_argument("--last", type=int, default=10**9, help="of all, where another run begins")
    parser.add_argument("--upkeep", choices=HOURS_BEHIND, help="work that is due at the start")
    parser.add_argument("--calls", nargs="*", choices=CALLS, default=list(CALLS))


def run(rig):
    need_tool("strace")
    if subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"]).returncode != 0:
        raise Skipped("may not trace processes")
    lots = random.Random(rig.random_seed)
    template = Template(rig)
    counts = template.count_calls()
    faults = [
        (call, k, error, mode)
        for call in rig.arguments.calls
        for k in range(1, counts[call] + 1)
        for error in ERRORS
        for mode in MODES
    ]
    if not rig.arguments.all:
        faults = drawn(lots, faults, rig.arguments.runs)
    wrong, seen = [], collections.Counter()
    first, last = rig.arguments.first, rig.arguments.last
    for number, fault in enumerate(faults):
        if not first <= number <= last:
            continue
        if number % 500 == 0:
            print(f"{number} of {len(faults)}, {len(wrong)} findings", file=sys.stderr, flush=True)
        seen["runs"] += 1
        call, k, error, mode = fault
        name = f"{call} {error} {k}{mode}"
        found = template.run(number, fault, lots, seen, rig.arguments.sabotage)
        wrong += [f"{name}: {finding}" for finding in found]
    if seen["injected"] == 0:
        wrong.append("not a single fault was met")
    return wrong, (
        f"{seen['runs']} runs, {seen['met']} met their fault, {seen['injected']:,} calls failed; "
        f"{seen['acknowledged']:,} batches acknowledged, {seen['refused']:,} refused (of these "
        f"{seen['whole']:,} whole at the next start, {seen['absent']:,} absent), "
        f"{seen['not started']} did not start; calls in a run: {dict(counts)}"
    )


def drawn(lots, faults, count):
    """Every kind of call alike, though some have many more calls; early calls are more telling."""
    of_call = collections.defaultdict(list)
    for fault in faults:
        of_call[fault[0]].append(fault)
    chosen = []
    while len(chosen) < count and of_call:
        for some in of_call.values():
            chosen.append(some[int(lots.random() ** 2 * len(some))])
    return chosen[:count]


class Template:
    """A directory with a segment and a log, and what is known of it."""

    def __init__(self, rig):
        self.rig = rig
        self.data = rig.folder / "template"
        self.log = rig.folder / "server.log"
        self.key = None
        self.merged = set()
        self.ledger = Ledger(rig.folder / "ledger.jsonl")
        self.shape = {"clients": 2, "requests": 10, "events_max": EVENTS_MAX}
        if rig.arguments.upkeep:
            self._make_in_the_past()
            return
        server = rig.start(self.data, log=self.log)
        self.key = register(server.host)
        self._load(server)
        server.stop()
        server = rig.start(self.data, log=self.log)
        self._load(server)
        server.kill()
        self.ledger.close_round()

    def _load(self, server):
        Load(server.host, self.key, self.ledger, self.rig.random_seed, **self.shape).join()

    def _make_in_the_past(self):
        """Segments that are old enough for something, and a log. Each start finds the fresh segments
        of the one before settled, and merges them.
        """
        clock, kind = Clock(self.rig), self.rig.arguments.upkeep
        for number, hours in enumerate(HOURS_BEHIND[kind]):
            clock.jump(by(-hours * 3_600))
            server = clock.start_server(self.data, log=self.log)
            self.key = self.key or register(server.host)
            if number > 0:
                self._wait_until_merged(server)
            if kind == "merge" or number + 1 < len(HOURS_BEHIND[kind]):
                self._load(server)
            server.stop()
        # Nothing is due yet by this clock.
        server = clock.start_server(self.data, log=self.log)
        self._load(server)
        server.kill()
        self.ledger.close_round()

    def _wait_until_merged(self, server):
        """Until there are merged segments that were not there the last time, and no fresh ones."""
        limit = time.monotonic() + MERGED_WITHIN_SECONDS
        while True:
            found = set(self.data.glob("seg/*/*.seg"))
            is_fresh = any(path.parent.name == "l0" for path in found)
            if found - self.merged and not is_fresh:
                self.merged = found
                return
            if time.monotonic() > limit:
                raise Failed(f"not merged: {found}\n{server.log_end()}")
            time.sleep(0.05)

    def count_calls(self):
        """Of each kind, the most calls that one thread makes in a run without faults."""
        trace = self.rig.folder / "trace"
        seen = collections.Counter()
        wrong = self.run("count", None, random.Random(0), seen, None)
        if wrong or seen["not started"]:
            raise Failed(f"the server does not run under strace: {wrong} {self.log_end()}")
        threads = collections.Counter()
        for line in trace.read_text().splitlines():
            found = re.match(r"(\d+) +(\w+)\(", line)
            if found:
                threads[found.groups()] += 1
        return {
            call: max([n for (_, name), n in threads.items() if re.match(pattern, name)] + [0])
            for call, pattern in CALLS.items()
        }

    def log_end(self):
        return self.log.read_text(errors="replace")[-500:]

    def run(self, number, fault, lots, seen, sabotage):
        """What was wrong with one fault."""
        data, trace = self.rig.folder / f"data-{number}", self.rig.folder / "trace"
        subprocess.run(["cp", "-r", "--sparse=always", self.data, data], check=True)
        ledger, metadata = self.ledger.copy(), Metadata(lots.random())
        ledger.prefix, ledger.pool = f"{number}-", self.ledger.pool.copy()
        try:
            self._with_fault(data, trace, fault, ledger, metadata, lots, sabotage, seen)
            server = self.rig.start(data, log=self.log)
            absent = ledger.compare(server.host, self.key)
            metadata.compare(server.host, self.key)
            healed = Load(server.host, self.key, ledger, number, clients=1, requests=2)
            healed.join()
            if set(healed.statuses) != {200}:
                ledger.wrong.append(f"after the restart: {healed.statuses}, {absent} in doubt")
            server.kill()
        except (Failed, Gone) as failure:
            ledger.wrong.append(str(failure))
        finally:
            shutil.rmtree(data, ignore_errors=True)
        for name in ("acknowledged", "refused", "whole", "absent"):
            seen[name] += ledger.seen[name]
        return ledger.wrong + metadata.wrong

    def _with_fault(self, data, trace, fault, ledger, metadata, lots, sabotage, seen):
        before = ["strace", "-D", "-f", "-qq", "--seccomp-bpf", "-o", str(trace)]
        before += ["-e", "trace=/" + "|".join(CALLS.values())]
        if fault:
            call, k, error, mode = fault
            before += ["-e", f"inject=/{CALLS[call]}:error={error}:when={k}{mode}"]
        trace.unlink(missing_ok=True)
        server = None
        try:
            server = self.rig.start(data, before=before, log=self.log)
            load = Load(
                server.host, self.key, ledger, lots.random(), clients=CLIENTS, requests=REQUESTS,
                events_max=EVENTS_MAX, wide_every=WIDE_EVERY, sabotage=sabotage,
            )  # fmt: skip
            metadata.start(server.host, self.key)
            load.join()
            if load.gone:
                ledger.wrong.append(f"{load.gone} connections were cut off")
            ledger.compare(server.host, self.key, settle=False)
            if self.rig.arguments.upkeep:
                time.sleep(UPKEEP_SECONDS)
            metadata.stop()
            server.expect_alive()
            if fault and lots.random() < 0.5:
                server.kill()
            else:
                server.stop()
        except Failed:
            # Not to start is an answer; to end later is not.
            if server is not None:
                raise
            seen["not started"] += 1
        injected = trace.read_text(errors="replace").count("(INJECTED)") if trace.exists() else 0
        seen["injected"] += injected
        seen["met"] += injected > 0


if __name__ == "__main__":
    main("faults", __doc__, run, options)
