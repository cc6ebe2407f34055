#!/usr/bin/env python3
"""Sends very many events, three of ten twice, kills the server now and then, and counts.

Batches of 1,000 come from four connections and walk through ninety days; one event in a hundred is of
another day. After three of ten batches an earlier one, from anywhere in the run, is sent again: all of
it must be known, and none of it may count. At even distances the server is killed with SIGKILL; what it
did not acknowledge is sent again, and must be known wholly or not at all.

In the end the server is killed once more. Measured is the time from its start to the first right answer
about the largest tenant; then counts and sums of each tenant by day are compared with the ledger, a sample of
all batches is sent again, and the counts are compared again.

    python3 tests/rigs/mass.py PATH/TO/inlay [--events 1000000] [--kills 3] [--limit-mb 512]

With `--limit-mb` the server runs in a control group with so much memory, where that is possible here.

The ledger is arithmetic: a batch is one of some templates with its number in each event id and its day
in each timestamp, so what it adds to each number is known before it is made.
"""

import collections
import json
import random
import threading
import time
from datetime import date, timedelta

from common import Connection, Failed, Gone, Skipped, main, register
from memory import ControlGroup

EVENT = "mass"
BATCH_EVENTS = 1_000
TEMPLATES = 64
TENANTS = 200
USERS = 20_000
CLIENTS = 4
AGAIN_SHARE = 0.3
# Of the last check: batches from anywhere in the run.
SAMPLE_BATCHES = 300
FIRST_DAY, DAYS = date(2026, 6, 1), 90
# Placeholders as long as what replaces them.
NUMBER, DAY = b"@@@@@@@@", b"YYYY-MM-DD"
WINDOW = {"from": "2026-06-01T00:00:00Z", "to": "2026-08-30T00:00:00Z"}
# So often may a client find nobody listening while the server is being started.
RETRY_SECONDS, RETRIES = 0.1, 600


def options(parser):
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--limit-mb", type=int)
    parser.add_argument("--start-max", type=float, default=2.0, help="seconds to the first answer")


class Template:
    """A batch without its number and day, and what it adds to the count and sum of a tenant."""

    def __init__(self, lots):
        events = []
        # (tenant, day or None for the batch's own) to count and sum.
        self.adds = collections.defaultdict(lambda: [0, 0])
        for _ in range(BATCH_EVENTS):
            tenant = f"tenant-{min(int(lots.paretovariate(0.8)), TENANTS)}"
            day = day_of(lots.random()) if lots.random() < 0.01 else None
            tokens = lots.randrange(4_000)
            clock = f"{lots.randrange(24):02}:{lots.randrange(60):02}:{lots.randrange(60):02}.123Z"
            events.append(
                {
                    "tenant_id": tenant,
                    "event_name": EVENT,
                    "event_id": NUMBER.decode() + lots.randbytes(12).hex(),
                    "user_id": f"user-{lots.randrange(USERS)}",
                    "timestamp": f"{day or DAY.decode()}T{clock}",
                    "string_props": {"model": f"m-{lots.randrange(8)}"},
                    "numeric_props": {"tokens": tokens},
                }
            )
            added = self.adds[tenant, day]
            added[0] += 1
            added[1] += tokens
        self.text = json.dumps({"events": events}, separators=(",", ":")).encode()

    def batch(self, number, day):
        return self.text.replace(NUMBER, b"%08x" % number).replace(DAY, day.encode())


def limited(rig):
    """A control group with the limit that was asked for, none where it cannot be had; and words about it."""
    limit = rig.arguments.limit_mb
    if limit is None:
        return None, ""
    try:
        return ControlGroup(rig.stack, rig.folder.name, limit * 1_000_000), f"{limit} MB at most, "
    except Skipped as reason:
        return None, f"NO LIMIT OF MEMORY ({reason}), "


def day_of(share):
    return str(FIRST_DAY + timedelta(days=int(share * DAYS)))


class Run:
    """What is sent, by all clients together."""

    def __init__(self, rig, templates):
        self.rig, self.templates = rig, templates
        self.count = max(rig.arguments.events // BATCH_EVENTS, 1)
        self.lock = threading.Lock()
        self.next, self.wrong = 0, []
        self.known = self.unsure = 0
        self.group, self.limit = limited(rig)
        self.before = self.group.words() if self.group else ()
        # Changes when the server is started again.
        self.server = self.start()
        self.key = register(self.server.host)

    def start(self):
        return self.rig.start(before=self.before)

    def day(self, number):
        return day_of(number / self.count)

    def body(self, number):
        return self.templates[number % TEMPLATES].batch(number, self.day(number))

    def take(self):
        """The number of the next batch, or none."""
        with self.lock:
            self.next += 1
            return self.next - 1 if self.next <= self.count else None

    def client(self, seed):
        lots, connection, mine = random.Random(seed), None, []
        while (number := self.take()) is not None and len(self.wrong) < 100:
            spoiled = self.spoiled(number)
            connection, sure, known = self.send(connection, spoiled or self.body(number))
            if known and (sure or known != BATCH_EVENTS):
                self.wrong.append(f"of new batch {number}, {known} events were known")
            with self.lock:
                self.unsure += not sure
            mine.append(number)
            if lots.random() < AGAIN_SHARE:
                again = lots.choice(mine)
                connection, _, known = self.send(connection, self.body(again))
                with self.lock:
                    self.known += known
                if known != BATCH_EVENTS and not spoiled:
                    self.wrong.append(f"of batch {again}, sent again, {known} events were known")

    def send(self, connection, body):
        """The connection, whether it was sent only once, and how many events were known."""
        for attempt in range(RETRIES):
            try:
                connection = connection or Connection(self.server.host, self.key)
                status, _, answer = connection.call("POST", "/v1/events", body)
            except Gone:
                connection = None
                time.sleep(RETRY_SECONDS)
                continue
            if status == 503:
                time.sleep(RETRY_SECONDS)
                continue
            if status != 200 or answer["rejected"]:
                raise Failed(f"a batch was answered with {status} {answer}")
            return connection, attempt == 0, answer["duplicates"]
        raise Failed(f"a batch was not taken in {RETRIES} attempts")

    def spoiled(self, number):
        """What a server that is wrong would do; the ledger does not know."""
        kind = self.rig.arguments.sabotage
        if kind is None or number != self.count // 2:
            return None
        events = json.loads(self.body(number))["events"]
        if kind == "lose":
            events.pop()
        elif kind == "double":
            # A twin of an event, under an id of its own.
            self.send(None, {"events": [events[0] | {"event_id": "another"}]})
        else:
            del events[BATCH_EVENTS // 2 :]
        return {"events": events}

    def with_kills(self):
        """All clients, and the kills at even distances."""
        kills = self.rig.arguments.kills
        clients = [threading.Thread(target=self.guarded, args=(seed,)) for seed in range(CLIENTS)]
        for client in clients:
            client.start()
        for kill in range(1, kills + 1):
            while self.next < self.count * kill // (kills + 1) and any(client.is_alive() for client in clients):
                time.sleep(0.05)
            try:
                self.server.kill()
            except Failed as failure:
                oom_kills = self.group.oom_kills() if self.group else 0
                raise Failed(f"{oom_kills} kills for want of memory; {failure}") from None
            self.server = self.start()
            print(f"mass: {self.next * BATCH_EVENTS:,} events, {kill} kills", flush=True)
        for client in clients:
            client.join()

    def guarded(self, seed):
        try:
            self.client(seed)
        except Failed as failure:
            self.wrong.append(str(failure))
            self.next = self.count

    def expected(self):
        """(tenant, day) to count and sum."""
        found = collections.defaultdict(lambda: [0, 0])
        for number in range(self.count):
            for (tenant, day), (count, total) in self.templates[number % TEMPLATES].adds.items():
                sums = found[tenant, day or self.day(number)]
                sums[0] += count
                sums[1] += total
        return found


def ask(connection, metric, **more):
    if metric == "sum":
        more["numeric_prop"] = "tokens"
    asked = {"event_name": EVENT, "metric": metric} | WINDOW | more
    return connection.get("/v1/query", **asked)["data"]


def compare(connection, expected):
    """Count and sum of every tenant, whole and by day."""
    wrong = []
    for tenant in sorted({tenant for tenant, _ in expected}):
        for place, metric in enumerate(("count", "sum")):
            days = {day: sums[place] for (owner, day), sums in expected.items() if owner == tenant}
            rows = ask(connection, metric, tenant_id=tenant, granularity="day", fill="none")
            found = {row["bucket"][:10]: row["value"] for row in rows}
            [whole] = ask(connection, metric, tenant_id=tenant)
            if found != days or whole["value"] != sum(days.values()):
                off = sum(found.values()) - sum(days.values())
                wrong.append(f"{tenant}: {metric} by day differs by {off}, whole {whole['value']}")
    return wrong


def run(rig):
    lots = random.Random(rig.random_seed)
    templates = [Template(lots) for _ in range(TEMPLATES)]
    load = Run(rig, templates)
    started = time.monotonic()
    load.with_kills()
    seconds = time.monotonic() - started
    wrong, expected = load.wrong, load.expected()
    total = load.count * BATCH_EVENTS
    peak = load.server.memory_peak_mib()

    load.server.kill()
    began = time.monotonic()
    load.server = load.start()
    connection = Connection(load.server.host, load.key)
    [row] = ask(connection, "count", tenant_id="tenant-1")
    first_answer = time.monotonic() - began
    of_largest = sum(count for (owner, _), (count, _) in expected.items() if owner == "tenant-1")
    if row["value"] != of_largest:
        wrong.append(f"the first answer was {row['value']} instead of {of_largest}")
    if first_answer > rig.arguments.start_max:
        wrong.append(f"the first answer after the kill took {first_answer:.2f} s")
    wrong += [f"after the kill: {line}" for line in compare(connection, expected)]

    for number in lots.sample(range(load.count), min(SAMPLE_BATCHES, load.count)):
        connection, _, known = load.send(connection, load.body(number))
        if known != BATCH_EVENTS:
            wrong.append(f"of batch {number}, sent again at the end, {known} events were known")
    wrong += [f"at the end: {line}" for line in compare(connection, expected)]
    code = load.server.stop()
    if code != 0:
        wrong.append(f"exit code {code}")
    if load.group and load.group.oom_kills():
        wrong.append(f"{load.group.oom_kills()} kills for want of memory")
    return wrong, (
        f"{load.limit}{total:,} events acknowledged, {load.known:,} sent again and known, "
        f"{rig.arguments.kills + 1} kills, {load.unsure} batches of unknown fate sent again; "
        f"{(total + load.known) / seconds:,.0f} events/s, most memory {peak} MiB, "
        f"first right answer after the last kill {first_answer:.2f} s"
    )


if __name__ == "__main__":
    main("mass", __doc__, run, options)
