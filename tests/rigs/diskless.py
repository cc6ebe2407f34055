#!/usr/bin/env python3
"""Kills a server whose store is in PostgreSQL and a bucket, and takes its disk away.

As in `kill.py`, eight clients post batches and one changes metadata, until the process gets SIGKILL at a
moment that nobody chose. Then its data directory is deleted, and the next start has an empty one. Beside it,
connections to the database are ended in the middle of what they do, and in one life of eight the database
itself crashes. The ledger is compared after each start: every acknowledged event once, every other batch whole
or not at all.

    python3 tests/rigs/diskless.py PATH/TO/inlay [--kills 20]

At the end a backup is taken and restored, which is an ordinary data directory, and moved to another database
and bucket with `inlay migrate`: all three answer alike.
"""

import pathlib
import random
import shutil
import subprocess
import threading
import time
from datetime import datetime, timedelta, timezone

import kill
import metadata_parts
from common import Connection, Failed, main, register
from ledger import summary
from questions import iso
from services import Bucket, Postgres, environment

# A start waits until the lease of the process before has ended, so lives are longer than in `kill.py`.
LIFE_SECONDS_MIN, LIFE_SECONDS_MAX = 0.3, 4.0
CUT_SECONDS_MIN, CUT_SECONDS_MAX = 0.02, 0.4
CRASHES = 0.125
FILL_BATCH = 1_000
# In a store of many events.
ERASED_WITHIN_SECONDS = 180
# A lease, and the way to it where connections are cut.
LEADING_SECONDS = 20


def options(parser):
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--events", type=int, default=0, help="of another tenant, there before the first kill")
    parser.add_argument("--answer-seconds", type=float, default=60, help="until a start with an empty directory answers")


def run(rig):
    if rig.arguments.events:
        # Merges of large segments, which are fetched, go before erasures.
        metadata_parts.ERASED_WITHIN_SECONDS = ERASED_WITHIN_SECONDS
    postgres, bucket = Postgres(rig), Bucket(rig)
    series = Series(rig, postgres, bucket)
    series.fill(rig.arguments.events)
    wrong = series.run(rig.arguments.kills)
    if max(series.answering) > rig.arguments.answer_seconds:
        wrong.append(f"a start took {max(series.answering):.1f} s until it answered")
    if not wrong:
        wrong = series.move()
    cuts, crashes = series.trouble.cuts, series.trouble.crashes
    return wrong, (
        f"{rig.arguments.events:,} events before, {len(series.starts)} kills and disks, {cuts} connections cut, {crashes} crashes of the database, "
        f"{summary(series.ledger.seen)}, {series.metadata.summary()}; "
        f"longest start {max(series.answering) * 1_000:.0f} ms until it answers, "
        f"{max(series.starts) * 1_000:.0f} ms until it leads"
    )


class Trouble:
    """Cuts connections of the database, and crashes it, beside a life."""

    def __init__(self, postgres, lots):
        self.postgres, self.lots = postgres, lots
        self.cuts = self.crashes = 0

    def start(self):
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def stop(self):
        self.ending.set()
        self.thread.join()

    def _run(self):
        if self.lots.random() < CRASHES:
            self.ending.wait(self.lots.uniform(LIFE_SECONDS_MIN, LIFE_SECONDS_MAX) / 2)
            self.postgres.crash()
            self.crashes += 1
        while not self.ending.wait(self.lots.uniform(CUT_SECONDS_MIN, CUT_SECONDS_MAX)):
            self.postgres.cut()
            self.cuts += 1


class Series(kill.Series):
    """One database, and processes that come and go, each with an empty directory."""

    def __init__(self, rig, postgres, bucket):
        self.settings = environment(postgres, bucket)
        self.number, self.answering = 0, []
        lots = random.Random(rig.random_seed)
        self.trouble = Trouble(postgres, lots)
        super().__init__(rig, lots, rig.random_seed, rig.arguments.sabotage)

    def _start(self):
        shutil.rmtree(self.folder / f"data {self.number}", ignore_errors=True)
        self.number += 1
        data = self.folder / f"data {self.number}"
        started = time.monotonic()
        server = self.rig.start(data, environment=self.settings, log=self.rig.folder / "server.log")
        self.answering.append(server.ready_seconds)
        # It answers what only asks from then on; it leads when the lease of the process before has ended.
        connection = Connection(server.host)
        while connection.fetch("GET", "/leaderz")[0] != 200:
            if time.monotonic() > started + LEADING_SECONDS:
                raise Failed(f"the server did not lead after {LEADING_SECONDS} s")
            time.sleep(0.05)
        server.ready_seconds = time.monotonic() - started
        return server

    def fill(self, count):
        """Events that each start has to have, over ninety days."""
        connection, now = Connection(self.server.host, self.key), datetime.now(timezone.utc)
        for first in range(0, count, FILL_BATCH):
            at = iso(now - timedelta(seconds=90 * 86_400 * (1 - first / count) + 60))
            events = ",".join(
                f'{{"tenant_id":"full {n % 50}","event_name":"call","timestamp":"{at}","event_id":"{first + n:x}","user_id":"u{n * 7 % 997}",'
                f'"string_props":{{"model":"m{n % 7}","status":"s{n % 3}"}},"numeric_props":{{"ms":{first * 31 % 9_973 + n}}}}}'
                for n in range(FILL_BATCH)
            )
            while connection.call("POST", "/v1/events", f'{{"events":[{events}]}}')[0] == 503:
                time.sleep(0.1)

    def _live(self, kill):
        super()._live(kill)
        self.trouble.start()
        time.sleep(self.lots.uniform(LIFE_SECONDS_MIN, LIFE_SECONDS_MAX))
        self.trouble.stop()

    def move(self):
        """A backup runs as an ordinary store, and that one can be moved to another place: answers stay."""
        rig, self.server = self.rig, self._start()
        for step in ("backup", "restore", "migrate"):
            if wrong := self._moved(step):
                return [*wrong, f"found after {step}"]
        return []

    def _moved(self, step):
        folder, binary = self.rig.folder, self.rig.arguments.binary
        settings = {k: v for k, v in self.settings.items() if not k.startswith("INLAY_")}
        if step == "backup":
            grpc = self.server.grpc
            call([binary, "backup", folder / "backup", "--grpc-addr", grpc], settings)
            self.server.stop()
            return []
        if step == "restore":
            call([binary, "restore", folder / "backup", "--data-dir", folder / "own"], settings)
            self.server = self.rig.start(folder / "own", log=folder / "server.log")
        else:
            self.server.stop()
            (folder / "other").mkdir()
            other = Elsewhere(self.rig, folder / "other")
            elsewhere = environment(Postgres(other), Bucket(other))
            call([binary, "migrate", "--data-dir", folder / "own"], settings | elsewhere)
            self.server = self.rig.start(
                folder / "cache", environment=elsewhere, log=folder / "server.log"
            )
        self._compare()
        return self.wrong()


class Elsewhere:
    """What services need of a rig, with another folder."""

    def __init__(self, rig, folder):
        self.stack, self.folder = rig.stack, folder


def call(command, settings):
    """A command that must succeed."""
    path = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [str(part) for part in command], env=path | settings, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise Failed(f"{command[1]}: {done.stdout[-500:]} {done.stderr[-1_000:]}")


if __name__ == "__main__":
    main("diskless", __doc__, run, options)
