#!/usr/bin/env python3
"""Moves the server's clock about while it runs, and looks where the events are.

The server runs with libfaketime, whose offset is read from a file, so that the wall clock can jump
while the monotonic clock goes on as it does on a real machine. The jumps: an hour and 400 days,
both ways, the beginning of 1970, the end of 32-bit seconds in 2038, the year 2106, a leap second,
and a clock that stands still. After each jump

- events are sent with timestamps from 1970, with the server's own hour as timestamp, and without a
  timestamp, which then is the server's present;
- what was sent before is sent again: all of it must be a duplicate, except events more than a day
  ahead of the clock, which must be refused;
- each tenant is asked for its events by month, from 1969 to 2107, and by hour around jumps: each
  event must be in its place, once.

A long run asks for all events by month after each jump, sends the newest and a sample of the others
again, and looks at their hours; after every hundredth jump and after the last one it does so with
everything. In the end the server is killed while the clock is wrong, started, and asked again.

    python3 tests/rigs/clock.py PATH/TO/inlay [--jumps 9]

Needs libfaketime.
"""

import collections
import random
import time
from datetime import datetime, timedelta, timezone

from common import Connection, Failed, main, register
from faketime import DAY, Clock, at, by
from questions import iso

EVENT = "tick"
TENANTS = ("acme", "borealis")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# The API refuses events further ahead than this.
AHEAD_MAX = timedelta(days=1)
# The specification's limit of one request.
BATCH_EVENTS = 1_000
# One event may be sent as late as this after the clock was read.
SLACK = timedelta(seconds=5)
EVENTS_OF_A_KIND = 40
UPKEEP_SECONDS = 0.3
# What is looked at again after each jump of a long run: of this many jumps, the newest for a third.
AGAIN_JUMPS = 30
EVERYTHING_EVERY = 100
WINDOW = {"from": "1969-01-01T00:00:00Z", "to": "2107-06-01T00:00:00Z"}


JUMPS = (
    ("+1 h", by(3_600)),
    ("-1 h", by(-3_600)),
    ("+400 d", by(400 * DAY)),
    ("-400 d", by(-400 * DAY)),
    ("1970", at(1970, 1, 1, 12)),
    ("2038", at(2038, 1, 19, 3, 14, 5)),
    ("2106", at(2106, 2, 7, 6, 28, 13)),
    ("leap second", by(-1)),
    ("frozen", None),
)


def options(parser):
    parser.add_argument("--jumps", type=int, default=len(JUMPS), help="beyond 9: by lot")


class Ticks:
    """The ledger: each event, and its place: an instant, or the bounds of one."""

    def __init__(self):
        # One list for each jump.
        self.events = []
        self.series = collections.defaultdict(list)
        self.jumps = []
        self.numbers = collections.Counter()

    def make(self, lots, jump, now):
        """Events of three kinds: old, of this hour, and of whatever the server thinks."""
        made = []
        for kind in ("old", "now", "unsaid"):
            for _ in range(EVENTS_OF_A_KIND):
                tenant = lots.choice(TENANTS)
                self.numbers[tenant] += 1
                place = {
                    "old": EPOCH + timedelta(milliseconds=lots.randrange(3_600_000)),
                    "now": whole_ms(now) - timedelta(milliseconds=lots.randrange(3_600_000)),
                    "unsaid": None,
                }[kind]
                event = {
                    "tenant_id": tenant,
                    "event_name": EVENT,
                    "event_id": str(self.numbers[tenant]),
                    "string_props": {"series": f"{kind} {jump}"},
                }
                if place is not None:
                    event["timestamp"] = iso(place)
                made.append((event, place))
        return made

    def keep(self, made, jump, before, after):
        self.jumps.append(jump)
        self.events.append([])
        for event, place in made:
            bounds = (place, place) if place else (before - SLACK, after + SLACK)
            self.events[-1].append((event, bounds))
            self.series[event["tenant_id"], event["string_props"]["series"]].append(bounds)


    def count(self):
        return sum(map(len, self.events))

    def chosen(self, lots, last):
        """The positions of the jumps that are looked at now."""
        count = len(self.jumps)
        if last or count <= AGAIN_JUMPS or count % EVERYTHING_EVERY == 0:
            return range(count)
        old = count - AGAIN_JUMPS // 3
        return [*lots.sample(range(old), AGAIN_JUMPS - AGAIN_JUMPS // 3), *range(old, count)]


def whole_ms(instant):
    return instant.replace(microsecond=instant.microsecond // 1_000 * 1_000)


def run(rig):
    lots = random.Random(rig.random_seed)
    clock, ticks, wrong = Clock(rig), Ticks(), []
    server = clock.start_server()
    key = register(server.host)
    connection = Connection(server.host, key)
    jumps = [("none", by(0)), *JUMPS[: rig.arguments.jumps]]
    while len(jumps) - 1 < rig.arguments.jumps:
        far = lots.randrange(-56 * 365 * DAY, 80 * 365 * DAY)
        jumps.append((f"{far} s", by(lots.choice([far, far // 1_000, far // 100_000]))))
    duplicates = refused = 0
    for number, (name, rule) in enumerate(jumps):
        last = number == len(jumps) - 1
        clock.jump(rule)
        before = clock.now()
        made = ticks.make(lots, name, before)
        sent = [event for event, _ in made]
        if last:
            spoil(rig.arguments.sabotage, sent)
        answer = post(connection, sent)
        ticks.keep(made, name, before, clock.now())
        # Time for upkeep to look at the new clock: what is old enough is written to a segment.
        time.sleep(UPKEEP_SECONDS)
        if answer["accepted"] != len(made) or answer["duplicates"]:
            wrong.append(f"{name}: new events were answered with {short(answer)}")
        chosen = ticks.chosen(lots, last)
        known, ahead, found = send_again(connection, ticks, chosen, clock.now())
        duplicates, refused = duplicates + known, refused + ahead
        wrong += [f"{name}: {line}" for line in found]
        wrong += [f"{name}: {line}" for line in misplaced(connection, ticks, chosen)]
        server.expect_alive()
        if number and number % EVERYTHING_EVERY == 0:
            print(f"clock: {number} jumps, {len(wrong)} findings", flush=True)
    server.kill()
    server = clock.start_server()
    wrong += [f"restart: {line}" for line in misplaced(Connection(server.host, key), ticks, range(len(ticks.jumps)))]
    code = server.stop()
    if code != 0:
        wrong.append(f"exit code {code}")
    return wrong, (
        f"{len(jumps) - 1} jumps, {ticks.count():,} events, {duplicates:,} sent again and "
        f"known, {refused:,} refused for being ahead"
    )


def post(connection, events):
    status, _, answer = connection.call("POST", "/v1/events", {"events": events})
    if status not in (200, 400):
        raise Failed(f"events were answered with {status} {answer}")
    return answer


def short(answer):
    return {name: answer.get(name) for name in ("accepted", "duplicates", "rejected", "error")}


def spoil(kind, sent):
    """What a server that is wrong would do; the ledger does not know."""
    if kind == "lose":
        sent.pop()
    elif kind == "double":
        sent.append(sent[0] | {"event_id": "another"})
    elif kind == "tear":
        # "now" becomes two hours earlier.
        event = sent[EVENTS_OF_A_KIND]
        earlier = datetime.fromisoformat(event["timestamp"]) - timedelta(hours=2)
        sent[EVENTS_OF_A_KIND] = event | {"timestamp": iso(earlier)}


def send_again(connection, ticks, chosen, now):
    """Of the chosen jumps: how many were known, how many ahead of the clock, and what was wrong."""
    known = ahead = 0
    wrong = []
    events = [event for jump in chosen for event in ticks.events[jump]]
    for first in range(0, len(events), BATCH_EVENTS):
        batch, late, soon = [], 0, 0
        for event, (earliest, _) in events[first : first + BATCH_EVENTS]:
            # Without a timestamp an event is never ahead. At the very limit nobody knows.
            distance = earliest - now - AHEAD_MAX if "timestamp" in event else -AHEAD_MAX
            if abs(distance) < SLACK:
                continue
            batch.append(event)
            late, soon = late + (distance < timedelta(0)), soon + (distance > timedelta(0))
        answer = post(connection, batch)
        if (answer["accepted"], answer["duplicates"], answer["rejected"]) != (late, late, soon):
            wrong.append(f"{late} known events and {soon} ahead were answered with {short(answer)}")
        known, ahead = known + late, ahead + soon
    return known, ahead, wrong


def misplaced(connection, ticks, chosen):
    """Events that are not where they belong: all by month, those of the chosen jumps by hour."""
    wrong = []
    names = {f"{kind} {ticks.jumps[jump]}" for kind in ("old", "now", "unsaid") for jump in chosen}
    for tenant in TENANTS:
        months = collections.Counter()
        for (owner, _), places in ticks.series.items():
            if owner == tenant:
                months.update(iso(earliest)[:7] for earliest, _ in places)
        found = ask(connection, tenant, WINDOW, granularity="month")
        found = {bucket[:7]: count for bucket, count in found.items()}
        if found != months:
            wrong.append(f"{tenant}, months: {found} instead of {dict(months)}")
    for (tenant, series), places in ticks.series.items():
        if series not in names:
            continue
        first, last = min(places)[0], max(latest for _, latest in places)
        window = {"from": iso(first), "to": iso(last + timedelta(milliseconds=1))}
        found = ask(connection, tenant, window, granularity="hour", f_series=series)
        expected = collections.Counter(f"{iso(earliest)[:13]}:00:00.000Z" for earliest, _ in places)
        if series.startswith("unsaid"):
            # The hour may end between the bounds; the window is narrow enough.
            found, expected = sum(found.values()), len(places)
        if found != expected:
            wrong.append(f"{tenant}, {series}, hours: {found} instead of {expected}")
    return wrong


def ask(connection, tenant, window, **more):
    """Bucket to count."""
    asked = {"event_name": EVENT, "tenant_id": tenant, "metric": "count", "fill": "none"}
    rows = connection.get("/v1/query", **asked, **window, **more)["data"]
    return {row["bucket"]: row["value"] for row in rows}


if __name__ == "__main__":
    main("clock", __doc__, run, options)
