#!/usr/bin/env python3
"""Statements while rows wait in memory and events keep coming, of one binary or of two in turn.

    python3 bench/live_statements.py PATH/TO/inlay
    python3 bench/live_statements.py PATH/TO/inlay --before PATH/TO/other     with ratios

Each server gets the same events over HTTP: a million of a thousand tenants over ninety days, which end in segments, then
200,000 that stay in memory. A statement's time is that of `POST /v1/query/adhoc` from the request to the last byte, the
median of some rounds with a pause before each, in turn between the binaries. Then once more, while a thousand
events a second arrive. Answers of both binaries are compared as long as nothing arrives.
"""

import argparse
import contextlib
import datetime
import json
import pathlib
import random
import statistics
import sys
import tempfile
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "rigs"))

from common import Connection, Server, register

TENANTS, DAYS = 1_000, 90
SEALED_ROWS, LIVE_ROWS = 1_000_000, 200_000
BATCH_ROWS = 1_000
PAUSE_SECONDS = 0.4
NAMES = ("api_call", "login", "page_view", "signup", "purchase")
MODELS = ("small", "medium", "large", "huge")

STATEMENTS = {
    "nothing": "SELECT 1",
    "all events": "SELECT count(*) FROM events",
    "events by day": "SELECT date_trunc('day', timestamp), count(*) FROM events GROUP BY 1 ORDER BY 1",
    "newest of one tenant": "SELECT timestamp, event_id, event_name, user_id FROM events WHERE tenant_id = 'tenant 7'"
    " ORDER BY timestamp DESC, event_id LIMIT 100",
    "newest of all": "SELECT timestamp, event_id, tenant_id FROM events ORDER BY timestamp DESC, event_id LIMIT 100",
    "like on users": "SELECT string_props['endpoint'], count(*) FROM events WHERE user_id LIKE '%9' AND"
    " numeric_props['ms'] > 100 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20",
    "largest tenants": "SELECT tenant_id, count(*) FROM events GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20",
    "users by tenant": "SELECT tenant_id, count(DISTINCT user_id), round(sum(numeric_props['ms'])) FROM events"
    " GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20",
    "a join of one tenant": "SELECT count(*) FROM events a JOIN events b ON a.user_id = b.user_id WHERE"
    " a.tenant_id = 'tenant 7' AND b.tenant_id = 'tenant 7' AND a.event_name = 'signup' AND"
    " b.event_name = 'purchase' AND b.timestamp > a.timestamp",
    "the last hour": "SELECT event_name, count(*), avg(numeric_props['ms']) FROM events WHERE"
    " timestamp > now() - INTERVAL '1 hour' GROUP BY 1 ORDER BY 1",
}
# Their answers follow the clock.
OF_NOW = {"the last hour"}


def bodies(rows, first, last, seed):
    """Batches of events between two instants, as JSON."""
    chance = random.Random(seed)
    for start in range(0, rows, BATCH_ROWS):
        events = []
        for number in range(start, min(rows, start + BATCH_ROWS)):
            tenant = min(int(chance.paretovariate(0.9)) - 1, TENANTS - 1)
            at = first + (last - first) * chance.random()
            events.append({
                "tenant_id": f"tenant {tenant}",
                "event_name": chance.choice(NAMES),
                "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "event_id": f"{seed}-{number}-{chance.getrandbits(64):x}",
                "user_id": f"user {tenant}-{chance.randrange(200)}",
                "string_props": {"model": chance.choice(MODELS), "endpoint": f"/v1/{chance.randrange(40)}"},
                "numeric_props": {"ms": chance.randrange(4_000) / 8},
            })  # fmt: skip
        yield json.dumps({"events": events}, separators=(",", ":"))


class Side:
    """A server with its rows."""

    def __init__(self, binary, folder, stack):
        self.server = Server(binary, folder / "data", environment={"INLAY_SQL_IDLE_WORKERS": "2"})
        stack.callback(self.server.end)
        self.key = register(self.server.host)

    def send(self, batches):
        connection = Connection(self.server.host, self.key)
        for body in batches:
            status, _, answer = connection.call("POST", "/v1/events", body)
            assert status == 200, answer

    def live_rows(self):
        return self.server.metric("inlay_memtable_rows")

    def ask(self, text):
        connection = Connection(self.server.host, self.key)
        connection.connection.connect()
        started = time.perf_counter()
        status, _, answer = connection.call("POST", "/v1/query/adhoc", {"sql": text})
        took = time.perf_counter() - started
        if status == 429:
            time.sleep(1)
            return self.ask(text)
        assert status == 200, answer
        return took, answer["rows"]


def fill_memory(sides, rows, old, now):
    """Rows that stay in memory are flushed after a minute."""
    if min(side.live_rows() for side in sides) >= rows // 2:
        return
    batches = list(bodies(rows, old, now, random.getrandbits(32)))
    for side in sides:
        side.send(batches)


def measure(sides, rounds, same, fill):
    """Seconds of each statement by side."""
    times = {name: [[] for _ in sides] for name in STATEMENTS}
    for name, text in STATEMENTS.items():
        fill()
        for _ in range(rounds):
            answers = []
            for at, side in enumerate(sides):
                time.sleep(PAUSE_SECONDS)
                took, answer = side.ask(text)
                times[name][at].append(took)
                answers.append(answer)
            if same and name not in OF_NOW:
                assert all(answer == answers[0] for answer in answers), (name, answers)
    return times


def show(title, times):
    print(f"\n| {title} | ms |" + (" before | ratio |" if len(next(iter(times.values()))) > 1 else ""))
    print("|---|---|" + ("---|---|" if len(next(iter(times.values()))) > 1 else ""))
    ratios = []
    for name, of_sides in times.items():
        medians = [statistics.median(taken) * 1_000 for taken in of_sides]
        line = f"| {name} | {medians[0]:.1f} |"
        if len(medians) > 1:
            ratios.append(medians[0] / medians[1])
            line += f" {medians[1]:.1f} | {ratios[-1]:.2f} |"
        print(line)
    if ratios:
        print(f"| geometric mean | | | {statistics.geometric_mean(ratios):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=lambda text: pathlib.Path(text).resolve(strict=True))
    parser.add_argument("--before", type=lambda text: pathlib.Path(text).resolve(strict=True))
    parser.add_argument("--live", type=int, default=LIVE_ROWS, help="rows in memory; 0 for segments alone")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    now = datetime.datetime.now(datetime.UTC)
    with contextlib.ExitStack() as stack:
        sides = []
        for number, binary in enumerate(filter(None, [arguments.binary, arguments.before])):
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            sides.append(Side(binary, folder, stack))
        old = (now - datetime.timedelta(days=DAYS), now - datetime.timedelta(hours=3))
        batches = list(bodies(SEALED_ROWS, *old, 1))
        for side in sides:
            side.send(batches)
        while max(side.live_rows() for side in sides) > 0:
            time.sleep(1)

        def fill():
            fill_memory(sides, arguments.live, old[1], now)

        show("nothing arrives", measure(sides, arguments.rounds, True, fill))

        if arguments.live == 0:
            return
        more = list(bodies(20_000, now - datetime.timedelta(minutes=5), now, 3))
        over = threading.Event()

        def arrive(side):
            connection = Connection(side.server.host, side.key)
            number = 0
            while not over.is_set():
                # The same events again are known; ids make them new.
                body = more[number % len(more)].replace('"event_id":"3-', f'"event_id":"{number}-')
                connection.call("POST", "/v1/events", body)
                number += 1
                over.wait(1)

        threads = [threading.Thread(target=arrive, args=(side,)) for side in sides]
        for thread in threads:
            thread.start()
        try:
            times = measure(sides, arguments.rounds, False, fill)
        finally:
            over.set()
        show("a thousand events a second arrive", times)


if __name__ == "__main__":
    main()
