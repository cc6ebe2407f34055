#!/usr/bin/env python3
"""Lets the server work steadily, for long, and looks whether anything drifts.

A few clients post batches at a steady pace, askers ask what dashboards ask, metadata changes. Every
few seconds the rig writes down what the process holds: memory of its own (`RssAnon`; mapped files
belong to the system), descriptors, threads, fresh segments; and how long questions took. The first
third warms up. Of the other two thirds the medians are compared:

- memory that no pool of `/metrics` accounts for may grow by one part in a hundred an hour of all that
  there is, and by sixteen MiB that come and go; all of it stays below what the server was given;
- descriptors and threads stay;
- fresh segments do not pile up;
- the slowest of a hundred questions takes no more than twice as long.

At the end everything is compared with the ledger, and again after a restart.

    python3 tests/rigs/soak.py PATH/TO/inlay [--minutes 10]
"""

import pathlib
import random
import statistics
import threading
import time
import urllib.request

from common import Connection, Failed, Gone, main, register
from ledger import TENANTS, Ledger
from load import Load
from metadata import Metadata
from questions import EVENT

CLIENTS, PAUSE_SECONDS, EVENTS_MAX = 2, 0.5, 200
# Each segment keeps a directory of its columns in memory; thousands of rare properties in each of the
# segments of days that are not sealed yet are no drift.
WIDE_EVERY = 1 << 60
ASKERS, ASK_EVERY_SECONDS = 2, 0.1
CHANGE_EVERY_SECONDS = 1
SAMPLES = 120
# What a dashboard asks, of the last days and of all that there is.
DASHBOARD = (
    {"metric": "count", "granularity": "day"},
    {"metric": "count", "granularity": "hour", "group_by": "model"},
    {"metric": "sum", "granularity": "day", "group_by": "model"},
    {"metric": "count_unique", "granularity": "day"},
    {"metric": "p95", "granularity": "day"},
    {"metric": "count", "group_by": "round", "limit": 10},
)
MEMORY_MB = 256
GROWTH_MAX_OF_AN_HOUR, GROWTH_FLOOR_BYTES = 0.01, 16 << 20
DESCRIPTORS_MORE, THREADS_MORE, FRESH_MAX = 8, 8, 24
# Other rigs may run beside this one, and not all the time.
P99_TIMES, P99_FLOOR_SECONDS = 2, 0.1


def options(parser):
    parser.add_argument("--minutes", type=float, default=10)


def run(rig):
    seconds = rig.arguments.minutes * 60
    # Little memory, so that what is kept within bounds reaches them while it warms up.
    server = rig.start(environment={"INLAY_MEMORY_MB": str(MEMORY_MB)})
    key = register(server.host)
    ledger, metadata = Ledger(rig.folder / "ledger.jsonl"), Metadata(rig.random_seed)
    load = Load(
        server.host, key, ledger, rig.random_seed, clients=CLIENTS, pause=PAUSE_SECONDS,
        events_max=EVENTS_MAX, wide_every=WIDE_EVERY, sabotage=rig.arguments.sabotage,
    )  # fmt: skip
    metadata.start(server.host, key, pause=CHANGE_EVERY_SECONDS)
    askers = [Asker(server.host, key, ledger.window, rig.random_seed + n) for n in range(ASKERS)]
    samples, begun = [], time.monotonic()
    while time.monotonic() - begun < seconds:
        time.sleep(seconds / SAMPLES)
        server.expect_alive()
        samples.append(Sample(server, time.monotonic() - begun))
        # The ledger itself must not grow without bound.
        if len(samples) % 10 == 0:
            settle(server, key, ledger, load)
    for asker in askers:
        asker.stop()
    load.stop()
    metadata.stop()
    wrong = drift(samples, askers, seconds) + [line for each in askers for line in each.wrong]
    ledger.compare(server.host, key)
    metadata.compare(server.host, key)
    server.stop()
    server = rig.start()
    ledger.compare(server.host, key)
    metadata.compare(server.host, key)
    asked = sum(len(asker.took) for asker in askers)
    return wrong + ledger.wrong + metadata.wrong, (
        f"{rig.arguments.minutes:g} minutes, {ledger.summary()}, {asked:,} questions, "
        f"{metadata.summary()}; {story(samples, askers, seconds)}"
    )


def settle(server, key, ledger, load):
    """Compares what there is, and forgets the parts of what was right."""
    load.running.clear()
    time.sleep(2 * PAUSE_SECONDS)
    ledger.compare(server.host, key, settle=False)
    ledger.close_round()
    load.running.set()


class Sample:
    """What the process holds at one moment."""

    def __init__(self, server, at):
        self.at = at
        place = pathlib.Path(f"/proc/{server.pid}")
        status = dict(
            line.split(":", 1) for line in (place / "status").read_text().splitlines() if ":" in line
        )
        self.threads = int(status["Threads"])
        self.descriptors = len(list((place / "fd").iterdir()))
        with urllib.request.urlopen(f"http://{server.host}/metrics") as answer:
            text = answer.read().decode()
        numbers = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
        self.pools = {
            name.split('"')[1]: float(value)
            for name, value in numbers.items()
            if name.startswith("inlay_memory_bytes{")
        }
        self.memory = int(status["RssAnon"].split()[0]) * 1_024
        self.unaccounted = self.memory - sum(self.pools.values())
        self.fresh = int(numbers['inlay_segments{level="fresh"}'])


class Asker:
    """Asks the questions of a dashboard in turn, and notes how long each took."""

    def __init__(self, host, key, window, seed):
        self.host, self.key, self.window = host, key, window
        self.lots = random.Random(seed)
        self.took, self.wrong = [], []
        self.begun, self.stopping = time.monotonic(), threading.Event()
        self.thread = threading.Thread(target=self._ask_all)
        self.thread.start()

    def stop(self):
        self.stopping.set()
        self.thread.join()

    def _ask_all(self):
        connection = Connection(self.host, self.key)
        while not self.stopping.wait(ASK_EVERY_SECONDS):
            asked = {"event_name": EVENT, "tenant_id": self.lots.choice(TENANTS)} | self.window
            asked |= self.lots.choice(DASHBOARD)
            if asked["metric"] in ("sum", "p95"):
                asked["numeric_prop"] = "n"
            before = time.monotonic()
            try:
                connection.get("/v1/query", **asked)
            except (Failed, Gone) as failure:
                self.wrong.append(str(failure))
                return
            self.took.append((before - self.begun, time.monotonic() - before))


def thirds(samples, seconds, at=lambda sample: sample.at):
    """What came in the second third, and what in the last."""
    middle = [each for each in samples if seconds / 3 <= at(each) < 2 * seconds / 3]
    return middle, [each for each in samples if at(each) >= 2 * seconds / 3]


def medians(samples, seconds, name):
    return [statistics.median(getattr(s, name) for s in part) for part in thirds(samples, seconds)]


def p99s(askers, seconds):
    took = [each for asker in askers for each in asker.took]
    parts = thirds(took, seconds, at=lambda each: each[0])
    return [statistics.quantiles([t for _, t in part], n=100)[-1] for part in parts]


def drift(samples, askers, seconds):
    """What is more at the end than it was in the middle."""
    wrong = []
    hours = seconds / 3 / 3_600
    growth = GROWTH_MAX_OF_AN_HOUR * hours * medians(samples, seconds, "memory")[0]
    for name, more in (
        ("unaccounted", growth + GROWTH_FLOOR_BYTES),
        ("descriptors", DESCRIPTORS_MORE),
        ("threads", THREADS_MORE),
    ):
        middle, last = medians(samples, seconds, name)
        if last > middle + more:
            wrong.append(f"{name} went from {middle:,.0f} to {last:,.0f}; {pools(samples)}")
    most = max(sample.memory for sample in samples)
    if most > MEMORY_MB << 20:
        wrong.append(f"{most:,.0f} bytes of memory, and {MEMORY_MB} MiB were given")
    fresh = max(sample.fresh for sample in samples)
    if fresh > FRESH_MAX:
        wrong.append(f"{fresh} fresh segments")
    middle, last = p99s(askers, seconds)
    if last > max(P99_TIMES * middle, P99_FLOOR_SECONDS):
        wrong.append(f"p99 of questions went from {middle * 1e3:.1f} to {last * 1e3:.1f} ms")
    return wrong


def pools(samples):
    """What the pools were at the beginning of the last third, and at the end."""
    early, late = samples[len(samples) * 2 // 3].pools, samples[-1].pools
    shown = [f"{name} {early[name] / 1e6:.1f} to {late[name] / 1e6:.1f}" for name in late]
    return "MB in pools: " + ", ".join(shown)


def story(samples, askers, seconds):
    told = []
    for name, scale, unit in (
        ("memory", 1 << 20, " MiB"),
        ("unaccounted", 1 << 20, " MiB"),
        ("descriptors", 1, ""),
        ("threads", 1, ""),
    ):
        middle, last = medians(samples, seconds, name)
        told.append(f"{name} {middle / scale:.1f} to {last / scale:.1f}{unit}")
    middle, last = p99s(askers, seconds)
    told.append(f"p99 {middle * 1e3:.1f} to {last * 1e3:.1f} ms")
    told.append(f"at most {max(sample.fresh for sample in samples)} fresh segments")
    return ", ".join(told) + "; " + pools(samples)


if __name__ == "__main__":
    main("soak", __doc__, run, options)
