#!/usr/bin/env python3
"""A process whose disk has not room for all files, and a bucket that is not there when they are needed.

A store is filled through one process. A second one follows with a bound (`INLAY_CACHE_MB`) and an empty directory, and reaches the bucket
through a proxy. Then, in turn: the bucket answers; it refuses connections; it does not answer at all; it is back; and the directory of copies is
deleted under the process. Queries and SQL have to give the right answer, or 503 with `Retry-After`: never another one, and never an error that
says it is the question's fault.

    python3 tests/rigs/bounded.py PATH/TO/inlay [--events 100000]
"""

import collections
import random
import shutil
import time
from datetime import datetime, timedelta, timezone

from common import Connection, Failed, main, register
from idle import SETTLED_SECONDS, until_idle
from proxy import Proxy
from questions import iso
from services import Bucket, Postgres, environment

TENANTS = 4
DAYS = 30
# More than a query waits for a part of a file that does not come.
ANSWER_SECONDS = 60
STATEMENTS = (
    "SELECT tenant_id, count(*) AS n, sum(numeric_props['ms']) AS s FROM events GROUP BY 1 ORDER BY 1",
    "SELECT count(DISTINCT event_id) AS n, max(string_props['model']) AS m FROM events",
)


def options(parser):
    parser.add_argument("--events", type=int, default=100_000)


def run(rig):
    trial = Trial(rig)
    trial.fill(rig.arguments.events)
    right = trial.ask(trial.full)
    if rig.arguments.sabotage:
        trial.send([trial.event(0)])
    trial.start()
    trial.expect("cold", right, {200})
    trial.expect("warm", right, {200})
    for name, cut in (("refused", trial.refuse), ("hanging", trial.files.cut)):
        trial.evict()
        cut()
        # Some of them: each waits for its attempts, or as long as a part may take.
        trial.expect(name, right, {200, 503}, every=11 if name == "hanging" else 3)
        trial.back()
        trial.expect(f"after {name}", right, {200})
    for name in ("seg", "parts"):
        shutil.rmtree(rig.folder / "bounded" / name, ignore_errors=True)
    trial.expect("deleted", right, {200})
    return trial.wrong, trial.summary()


class Trial:
    """The two processes, and what was answered."""

    def __init__(self, rig):
        self.rig, self.lots = rig, random.Random(rig.random_seed)
        self.wrong, self.statuses = [], collections.Counter()
        self.postgres, self.bucket = Postgres(rig), Bucket(rig)
        self.is_refused, self.evicted = False, 0
        self.files = Proxy(rig, lambda: ("127.0.0.1", 1 if self.is_refused else self.bucket.port))
        self.settings = environment(self.postgres, self.bucket)
        self.full = rig.start(rig.folder / "full", environment=self.settings, log=rig.folder / "full.log")
        while Connection(self.full.host).fetch("GET", "/leaderz")[0] != 200:
            time.sleep(0.05)
        self.key = register(self.full.host)
        self.now = datetime.now(timezone.utc).replace(microsecond=0)

    def event(self, number):
        lots = self.lots
        return {
            "tenant_id": f"t{lots.randrange(TENANTS)}", "event_name": "call", "event_id": f"{lots.getrandbits(80):x}",
            "user_id": f"u{lots.randrange(5_000)}", "timestamp": iso(self.now - timedelta(seconds=lots.randrange(DAYS * 86_400))),
            "string_props": {"model": f"m{lots.randrange(50)}"}, "numeric_props": {"ms": lots.randrange(1 << 30), "n": number},
        }  # fmt: skip

    def send(self, events):
        connection = Connection(self.full.host, self.key)
        status, _, answer = connection.call("POST", "/v1/events", {"events": events})
        if status != 200:
            raise Failed(f"events were refused: {status} {answer}")

    def fill(self, count):
        """Until they are in merged segments."""
        for first in range(0, count, 1_000):
            self.send([self.event(number) for number in range(first, first + 1_000)])
        # A start writes what is in memory to segments.
        self.full.stop()
        self.full = self.rig.start(
            self.rig.folder / "full", environment=self.settings, log=self.rig.folder / "full.log"
        )
        until_idle(self.rig.folder)

    def start(self):
        url = f"s3://rig/prefix?region=us-east-1&endpoint=http://127.0.0.1:{self.files.port}"
        settings = self.settings | {"INLAY_EVENTS_URL": url, "INLAY_CACHE_MB": "1"}
        self.bounded = self.rig.start(
            self.rig.folder / "bounded", environment=settings, log=self.rig.folder / "bounded.log"
        )

    def refuse(self):
        self.is_refused = True
        self.files.drop()

    def back(self):
        self.is_refused = False
        self.files.mend()

    def evict(self):
        """Until what was read is gone: id runs alone are more than the bound."""
        limit, before = time.monotonic() + SETTLED_SECONDS, self.evicted
        while (self.evicted and self.metric("evicted_total") == before) or not self.metric("evicted_total"):
            if time.monotonic() > limit:
                raise Failed(f"nothing was evicted: {self.metric('bytes')} bytes")
            time.sleep(0.2)
        # The rest of the round.
        time.sleep(1.5)
        self.evicted = self.metric("evicted_total")

    def metric(self, name):
        text = Connection(self.bounded.host).fetch("GET", "/metrics")[2].decode()
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"inlay_cluster_cache_{name} "))

    def questions(self):
        """Method, path and body of each question."""
        asked = []
        for tenant in range(TENANTS):
            for metric in ("count", "count_unique", "sum&numeric_prop=ms", "p95&numeric_prop=ms", "count&group_by=model"):
                # Seconds that no rollup begins with: rows are read.
                until = iso(self.now - timedelta(seconds=17))
                path = f"/v1/query?tenant_id=t{tenant}&event_name=call&metric={metric}&from={iso(self.now - timedelta(days=29, seconds=7))}&to={until}"
                asked.append(("GET", path, None))
        return asked + [("POST", "/v1/query/adhoc", {"sql": sql}) for sql in STATEMENTS]

    def ask(self, server, every=1):
        """Status, headers and answer of each question."""
        connection = Connection(server.host, self.key, timeout=ANSWER_SECONDS)
        # From the last one on, which is of SQL.
        return [connection.call(*question) for question in self.questions()[::-every]]

    def expect(self, name, right, statuses, every=1):
        """Compares answers with those of the other process; times are not of interest."""
        answers = zip(self.questions()[::-every], self.ask(self.bounded, every), right[::every], strict=True)
        for (_, *question), (status, headers, answer), (_, _, expected) in answers:
            data, expected = ([one.get(part) for part in ("data", "rows")] for one in (answer, expected))
            self.statuses[name, status] += 1
            if status not in statuses:
                self.wrong.append(f"{name}: {question}: {status} {answer}")
            elif status == 503 and "Retry-After" not in headers:
                self.wrong.append(f"{name}: {question}: 503 without Retry-After")
            elif status == 200 and data != expected:
                self.wrong.append(f"{name}: {question}: {data}, and not {expected}")

    def summary(self):
        listed = ", ".join(f"{name} {count} × {status}" for (name, status), count in self.statuses.items())
        return f"{listed}; {self.metric('evicted_total'):.0f} evicted, {self.metric('reads_total'):.0f} parts fetched"


if __name__ == "__main__":
    main("bounded", __doc__, run, options)
