#!/usr/bin/env python3
"""Queries of ordinary customers: which rollups serve them, in how much time, and what their rows take on disk.

    python3 bench/customers.py PATH/TO/inlay
    python3 bench/customers.py PATH/TO/inlay --before PATH/TO/other     with ratios

Each server gets the same history over HTTP: one tenant with 1,500 events a day for ninety days, and a thousand tenants
of very different size beside it. As soon as the directory says that all of it was merged, or two minutes after the last
event, the six queries that the contract calls safe are asked about the one tenant, then random ones about all others,
of ten events a day and more. Answers of both binaries are compared. A query's time is that of `GET /v1/query` from the
request to the last byte: the first time, with nothing cached, and the median of ten more.
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
import time
import urllib.parse

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "rigs"))

from common import Connection, Server, register

DAYS = 90
A_DAY = 1_500
BATCH_ROWS = 1_000
NAMES, SHARES = ("api_call", "page_view", "login"), (6, 3, 1)
VALUES = {
    "model": ("small", "medium", "large", "huge"),
    "endpoint": tuple(f"/v1/{number}" for number in range(12)),
    "status": ("ok", "ok", "ok", "ok", "error"),
    "source": ("web", "api", "batch"),
}
PLANS = ("free", "pro", "team")
ORDINARY = "ordinary"
SAFE = {
    "count by day": {"metric": "count", "granularity": "day"},
    "count where status": {"metric": "count", "f_status": "ok", "granularity": "day"},
    "count by model": {"metric": "count", "group_by": "model"},
    "count_unique by day": {"metric": "count_unique", "granularity": "day"},
    "count_unique_approx": {"metric": "count_unique_approx"},
    "count_unique_approx by plan": {"metric": "count_unique_approx", "group_by": "plan", "granularity": "day"},
}


def event(chance, tenant, users, at):
    user = chance.randrange(users)
    return {
        "tenant_id": tenant,
        "event_name": chance.choices(NAMES, SHARES)[0],
        "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "event_id": f"{chance.getrandbits(128):032x}",
        "user_id": f"{tenant}-{user}",
        "string_props": {name: chance.choice(values) for name, values in VALUES.items()} | {"plan": PLANS[user % 3]},
        "numeric_props": {"latency_ms": chance.randrange(4_000) / 8, "tokens": chance.randrange(2_000)},
    }


def bodies(rows, now):
    """Batches of events of the ordinary tenant and of the others, as JSON."""
    chance = random.Random(5)

    def at():
        return now - datetime.timedelta(days=DAYS) * chance.random()

    def events():
        for _ in range(DAYS * A_DAY):
            yield event(chance, ORDINARY, 2_000, at())
        for _ in range(rows):
            tenant = min(int(chance.paretovariate(0.8)), 1_000)
            yield event(chance, f"tenant {tenant}", 200, at())

    batch = []
    for one in events():
        batch.append(one)
        if len(batch) == BATCH_ROWS:
            yield json.dumps({"events": batch}, separators=(",", ":"))
            batch = []
    if batch:
        yield json.dumps({"events": batch}, separators=(",", ":"))


class Side:
    """A server with its rows."""

    def __init__(self, binary, folder, stack):
        folder.mkdir()
        self.folder = folder / "data"
        self.server = Server(binary, self.folder)
        stack.callback(self.server.end)
        self.key = register(self.server.host)
        self.connection = Connection(self.server.host, self.key)

    def ask(self, parameters):
        path = "/v1/query?" + urllib.parse.urlencode(parameters)
        while True:
            started = time.perf_counter()
            status, headers, answer = self.connection.call("GET", path)
            took = time.perf_counter() - started
            if status != 429:
                assert status == 200, answer
                return took, answer
            time.sleep(0.5)

    def disk_bytes(self):
        return {part: sum(file.stat().st_size for file in (self.folder / part).rglob("*") if file.is_file())
                for part in ("seg", "ids")}  # fmt: skip

    def segments(self):
        return sorted(str(path.relative_to(self.folder)) for path in (self.folder / "seg").rglob("*.seg"))


def settle(sides, seconds):
    """Waits until every server has merged what it was sent, for `seconds` at most."""
    end = time.time() + seconds
    is_merged = lambda side: side.server.metric("inlay_memtable_rows") == 0 and not any("/l0/" in path for path in side.segments())
    while time.time() < end and not all(map(is_merged, sides)):
        time.sleep(1)
    for side in sides:
        side.connection = Connection(side.server.host, side.key)


def same(answers):
    rows = [answer["data"] for answer in answers]
    return all(other == rows[0] for other in rows)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("binary", type=pathlib.Path)
    arguments.add_argument("--before", type=pathlib.Path, help="another binary, asked in turn with the first")
    arguments.add_argument("--rows", type=int, default=500_000, help="events of the thousand tenants")
    arguments.add_argument("--queries", type=int, default=1_000, help="random queries")
    arguments.add_argument("--wait", type=int, default=120, help="seconds after the last event, at most")
    chosen = arguments.parse_args()
    now = datetime.datetime.now(datetime.timezone.utc)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        binaries = [chosen.binary] + ([chosen.before] if chosen.before else [])
        sides = [Side(binary, folder / str(at), stack) for at, binary in enumerate(binaries)]
        rows = DAYS * A_DAY + chosen.rows
        for body in bodies(chosen.rows, now):
            for side in sides:
                status, _, answer = side.connection.call("POST", "/v1/events", body)
                assert status == 200, answer
        settle(sides, chosen.wait)
        for side, name in zip(sides, ("now", "before")):
            held = {part: round(size / rows, 1) for part, size in side.disk_bytes().items()}
            print(f"{name}: {len(side.segments())} segments; bytes an event {held}")
        print("\n| query of the ordinary tenant | " + " | ".join(
            f"{name}: served by | rows read | first, ms | again, ms" for name in ("now", "before")[: len(sides)]) + " |")
        print("|---|" + "---|---|---|---|" * len(sides))
        served = [0 for _ in sides]
        for period in ("90d", "30d"):
            for title, parameters in SAFE.items():
                asked = {"tenant_id": ORDINARY, "event_name": "api_call", "period": period} | parameters
                cells, answers = [], []
                for at, side in enumerate(sides):
                    first, answer = side.ask(asked)
                    again = statistics.median(side.ask(asked)[0] for _ in range(10))
                    meta = answer["meta"]
                    served[at] += "source_table" in meta
                    cells += [meta.get("source_table", "rows"), str(meta["rows_scanned"]),
                              f"{first * 1e3:.2f}", f"{again * 1e3:.2f}"]  # fmt: skip
                    answers.append(answer)
                assert same(answers), (asked, answers)
                print(f"| {title}, {period} | " + " | ".join(cells) + " |")
        print(f"\nserved by rollups: {served} of {2 * len(SAFE)}")
        compare_random(sides, chosen)


def compare_random(sides, chosen):
    """Random safe queries of tenants by size."""
    chance = random.Random(6)
    sizes = [(10, 30), (30, 100), (100, 300), (300, 10_000)]
    totals = {}
    for tenant in range(1, 1_001):
        _, answer = sides[0].ask({"tenant_id": f"tenant {tenant}", "event_name": "api_call", "metric": "count", "period": "90d"})
        a_day = answer["data"][0]["value"] * sum(SHARES) / SHARES[0] / DAYS
        for size in sizes:
            if size[0] <= a_day < size[1]:
                totals.setdefault(size, []).append(f"tenant {tenant}")
    print("\n| events a day | tenants | queries | " + " | ".join(
        f"{name}: served | mean, ms" for name in ("now", "before")[: len(sides)]) + " |")
    print("|---|---|---|" + "---|---|" * len(sides))
    for size, tenants in sorted(totals.items()):
        served, times, count = [0 for _ in sides], [[] for _ in sides], chosen.queries // len(totals)
        for _ in range(count):
            dimension = chance.choice(("model", "endpoint", "status", "plan", "source"))
            parameters = {
                "tenant_id": chance.choice(tenants), "event_name": chance.choice(NAMES),
                "period": chance.choice(("7d", "30d", "90d")), "metric": chance.choice(("count", "count_unique_approx")),
            }  # fmt: skip
            shape = chance.randrange(3)
            if shape == 1:
                parameters["group_by"] = dimension
            if shape == 2:
                values = PLANS if dimension == "plan" else VALUES[dimension]
                parameters[f"f_{dimension}"] = chance.choice(values)
            if chance.randrange(2):
                parameters["granularity"] = "day"
            answers = []
            for at, side in enumerate(sides):
                took, answer = side.ask(parameters)
                times[at].append(took)
                served[at] += "source_table" in answer["meta"]
                answers.append(answer)
            assert same(answers), (parameters, answers)
        cells = (f"{served[at] / count:.0%} | {statistics.mean(times[at]) * 1e3:.2f}" for at in range(len(sides)))
        print(f"| {size[0]} to {size[1]} | {len(tenants)} | {count} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
