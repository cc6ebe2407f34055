#!/usr/bin/env python3
"""Moves the clock far ahead for some seconds while old events expire, and brings it back.

The server keeps 30 days. It gets events of the last 25 days: some in a segment, some in memory. Then
its wall clock jumps 400 days ahead, as it does on a machine with a broken battery or a wrong time
server, stays there for some seconds of the monotonic clock, and comes back. While it is ahead, the
server runs on, is stopped in good order, is killed, or is started again and again; events arrive
all the while. With the true clock again, every event that was ever acknowledged must be in its
place, once, also after another start; and sent again, each must be known.

What the server shows while the clock is wrong is its own affair, as long as it answers. That the
retention is on at all is seen by an event of 40 days ago, which must be refused.

    python3 tests/rigs/retention.py PATH/TO/inlay [--rounds 1]

Needs libfaketime.
"""

import collections
import concurrent.futures
import random
import shutil
import time
from datetime import timedelta

from common import Connection, Failed, main, panics, register
from faketime import DAY, Clock, by
from questions import iso

EVENT = "tick"
TENANTS = ("acme", "borealis")
DAYS_KEPT, DAYS_SENT, DAYS_GONE = 30, 25, 40
AHEAD_SECONDS = 400 * DAY
EVENTS = 400
# Background work looks every half second, and a flush by age becomes due by the jump alone.
HOLD_SECONDS = 2.5
STARTS = 3


def runs_on(run):
    run.hold()


def is_stopped(run):
    run.restart(run.server.stop)
    run.hold()


def is_killed(run):
    run.restart(run.server.kill)
    run.hold()


def is_started_often(run):
    for _ in range(STARTS):
        run.restart(run.server.kill)
        run.hold()


def sees_many_jumps(run):
    for _ in range(STARTS):
        run.hold()
        # What arrives in the past expires by right, so nothing does.
        run.clock.jump(by(-AHEAD_SECONDS))
        time.sleep(HOLD_SECONDS)
        run.clock.jump(by(0))
        run.hold()
        run.clock.jump(by(AHEAD_SECONDS))


SITUATIONS = (runs_on, is_stopped, is_killed, is_started_often, sees_many_jumps)


def options(parser):
    parser.add_argument("--rounds", type=int, default=1, help="of five situations each")


def run(rig):
    wrong, events = [], 0
    for number in range(rig.arguments.rounds):
        runs = [Run(rig, situation, number) for situation in SITUATIONS]
        # They mostly wait.
        with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
            for found in pool.map(Run.run, runs):
                wrong += found
        events += sum(len(each.events) for each in runs)
        # A hundred rounds would fill a disk.
        for each in runs:
            wrong += panics(each.folder)
            if not wrong:
                shutil.rmtree(each.folder, ignore_errors=True)
        if number % 10 == 9:
            print(f"retention: {number + 1} rounds, {len(wrong)} findings", flush=True)
    count = rig.arguments.rounds * len(SITUATIONS)
    return wrong, f"{count} jumps of 400 days and back, {events:,} events of 30 days kept"


class Run:
    """One directory, and one jump there and back."""

    def __init__(self, rig, situation, number):
        self.rig, self.situation = rig, situation
        self.name = situation.__name__.replace("_", " ")
        self.lots = random.Random(f"{rig.random_seed} {self.name} {number}")
        self.folder = rig.folder / f"{self.name} {number}"
        self.folder.mkdir()
        self.clock, self.events = Clock(rig, self.folder), []
        self.server = self._start()
        self.key = register(self.server.host)
        self.begin = self.clock.now()

    def run(self):
        """What was wrong."""
        sabotage = self.rig.arguments.sabotage
        self._send_old()
        self.restart(self.server.stop)
        self._send_old(sabotage)
        self._expect_refused()
        self.clock.jump(by(AHEAD_SECONDS))
        self.situation(self)
        self.clock.jump(by(0))
        # Background work sees the true time before it is asked about.
        time.sleep(HOLD_SECONDS)
        wrong = self._compare("afterwards")
        self.restart(self.server.kill)
        wrong += self._compare("after another start")
        wrong += self._send_again()
        if self.server.stop() != 0:
            wrong.append("the server did not end well")
        return [f"the server {self.name}: {line}" for line in wrong]

    def restart(self, end):
        if end() not in (None, 0):
            raise Failed(f"the server did not end well:\n{self.server.log_end()}")
        self.server = self._start()

    def hold(self):
        """Some seconds, with an event of the server's present at each end."""
        for seconds in (HOLD_SECONDS, 0):
            self._post([self._event(self.clock.now())])
            time.sleep(seconds)

    def _start(self):
        return self.clock.start_server(INLAY_RETENTION_DAYS=str(DAYS_KEPT))

    # ---- Events ------------------------------------------------------------------------------

    def _event(self, at):
        return {
            "tenant_id": self.lots.choice(TENANTS),
            "event_name": EVENT,
            "event_id": str(self.lots.getrandbits(64)),
            "timestamp": iso(at),
        }

    def _send_old(self, sabotage=None):
        ages = [self.lots.uniform(0, DAYS_SENT * DAY) for _ in range(EVENTS)]
        events = [self._event(self.begin - timedelta(seconds=age)) for age in ages]
        sent = list(events)
        if sabotage == "lose":
            sent.pop()
        elif sabotage == "double":
            sent.append(sent[0] | {"event_id": "another"})
        elif sabotage == "tear":
            sent[0] = sent[0] | {"timestamp": iso(self.begin - timedelta(days=DAYS_SENT + 1))}
        self._post(events, sent)

    def _post(self, events, sent=None):
        status, _, answer = self._connect().call("POST", "/v1/events", {"events": sent or events})
        if status != 200 or answer["rejected"]:
            raise Failed(f"events were answered with {status} {answer}")
        self.events += events

    def _expect_refused(self):
        event = self._event(self.begin - timedelta(days=DAYS_GONE))
        status, _, answer = self._connect().call("POST", "/v1/events", {"events": [event]})
        if status != 400:
            raise Failed(f"an event that has expired was answered with {status} {answer}")

    def _send_again(self):
        """Those of the true time: each must be known."""
        now = iso(self.clock.now())
        events = [event for event in self.events if event["timestamp"] <= now]
        status, _, answer = self._connect().call("POST", "/v1/events", {"events": events})
        if status != 200 or answer["duplicates"] != len(events):
            return [f"{len(events)} events were sent again, and answered with {status} {answer}"]
        return []

    def _compare(self, when):
        wrong = []
        for tenant in TENANTS:
            own = [event for event in self.events if event["tenant_id"] == tenant]
            expected = collections.Counter(event["timestamp"][:10] for event in own)
            found = self._days(tenant)
            if found != expected:
                lost, extra = expected - found, found - expected
                wrong.append(
                    f"{when}, {tenant}: {lost.total()} of {len(own)} events are missing "
                    f"on {len(lost)} days, {extra.total()} are too many"
                )
        return wrong

    def _days(self, tenant):
        rows = self._connect().get(
            "/v1/query", event_name=EVENT, tenant_id=tenant, metric="count", granularity="day",
            fill="none", **{"from": iso(self.begin - timedelta(days=DAYS_KEPT)),
                            "to": iso(self.begin + timedelta(days=410))},
        )["data"]  # fmt: skip
        return collections.Counter({row["bucket"][:10]: row["value"] for row in rows})

    def _connect(self):
        return Connection(self.server.host, self.key)


if __name__ == "__main__":
    main("retention", __doc__, run, options)
