#!/usr/bin/env python3
"""A year of a small company: segments, start, and a dashboard of twelve widgets.

    python3 bench/year.py PATH/TO/inlay [--a-day 20000] [--days 365]

Events of two hundred tenants are sent over HTTP in the order of their days. When everything is merged the server is
ended and started again: the time until it is ready is printed, and that of the twelve queries of a dashboard about one
tenant, one after the other over one connection, the first time and again.
"""

import argparse
import contextlib
import datetime
import pathlib
import random
import statistics
import sys
import tempfile
import time
import urllib.parse

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "rigs"))

from common import Connection, Server, register

from customers import settle

TENANTS = 200
TENANT = "tenant 3"
BATCH_ROWS = 1_000
DAY_MS = 86_400_000
EPOCH = datetime.date(1970, 1, 1).toordinal()
WIDGETS = [
    {"metric": "count", "granularity": "day"},
    {"metric": "count", "group_by": "model"},
    {"metric": "count", "group_by": "status", "granularity": "day"},
    {"metric": "count", "f_status": "error", "granularity": "day"},
    {"metric": "count_unique_approx"},
    {"metric": "count_unique_approx", "granularity": "day"},
    {"metric": "count_unique_approx", "group_by": "plan"},
    {"metric": "sum", "numeric_prop": "tokens", "granularity": "day"},
    {"metric": "avg", "numeric_prop": "latency_ms"},
    {"metric": "p95_approx", "numeric_prop": "latency_ms"},
    {"metric": "sum", "numeric_prop": "tokens", "group_by": "model"},
    {"metric": "max", "numeric_prop": "latency_ms", "granularity": "week"},
]


def bodies(a_day, days, now_ms):
    """Batches of events as JSON, day after day."""
    chance = random.Random(8)
    first = now_ms - days * DAY_MS
    step = DAY_MS / a_day
    models, statuses, plans = ("small", "medium", "large"), ("ok", "ok", "ok", "error"), ("free", "pro", "team")
    lines, day, date = [], None, None
    for number in range(a_day * days):
        bits = chance.getrandbits(64)
        days_in, ms = divmod(int(first + number * step), DAY_MS)
        if days_in != day:
            day, date = days_in, datetime.date.fromordinal(EPOCH + days_in).isoformat()
        seconds, ms = divmod(ms, 1_000)
        at = f"{date}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}Z"
        tenant = min(int(chance.paretovariate(0.9)), TENANTS)
        user = bits % 400
        lines.append(
            f'{{"tenant_id":"tenant {tenant}","event_name":"api_call","timestamp":"{at}",'
            f'"event_id":"{number:x}-{bits:016x}","user_id":"user {tenant}-{user}","string_props":{{"model":"{models[bits % 3]}",'
            f'"status":"{statuses[bits >> 8 & 3]}","plan":"{plans[user % 3]}"}},'
            f'"numeric_props":{{"latency_ms":{(bits >> 16 & 4095) / 8},"tokens":{bits >> 32 & 2047}}}}}'
        )
        if len(lines) == BATCH_ROWS:
            yield f'{{"events":[{",".join(lines)}]}}'.encode()
            lines = []
    if lines:
        yield f'{{"events":[{",".join(lines)}]}}'.encode()


def ask_all(connection, period):
    """Milliseconds of all widgets, and those of the slowest."""
    times = []
    for widget in WIDGETS:
        asked = {"tenant_id": TENANT, "event_name": "api_call", "period": period} | widget
        started = time.perf_counter()
        status, _, answer = connection.call("GET", "/v1/query?" + urllib.parse.urlencode(asked))
        times.append((time.perf_counter() - started) * 1e3)
        assert status == 200, answer
    return sum(times), max(times)


class Side:
    """A server as `customers.settle` knows it."""

    def __init__(self, server, key, folder):
        self.server, self.key, self.folder = server, key, folder
        self.connection = Connection(server.host, key)

    def segments(self):
        return sorted(str(path.relative_to(self.folder)) for path in (self.folder / "seg").rglob("*.seg"))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("binary", type=pathlib.Path)
    arguments.add_argument("--a-day", type=int, default=20_000)
    arguments.add_argument("--days", type=int, default=365)
    chosen = arguments.parse_args()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())) / "data"
        server = Server(chosen.binary, folder)
        side = Side(server, register(server.host), folder)
        started = time.time()
        for body in bodies(chosen.a_day, chosen.days, int(time.time() * 1e3)):
            status, _, answer = side.connection.call("POST", "/v1/events", body)
            assert status == 200, answer
        print(f"sent in {time.time() - started:.0f} s, with what made them")
        settle([side], 300)
        rows = chosen.a_day * chosen.days
        held = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.parent.name != "wal")
        print(f"{len(side.segments())} segments, {held / rows:.1f} bytes an event without the log")
        server.end()
        times = []
        for _ in range(5):
            began = time.perf_counter()
            server = Server(chosen.binary, folder)
            times.append((time.perf_counter() - began) * 1e3)
            if len(times) < 5:
                server.end()
        stack.callback(server.end)
        print(f"start until ready: {statistics.median(times):.0f} ms")
        connection = Connection(server.host, side.key)
        connection.call("GET", "/v1/query?" + urllib.parse.urlencode(
            {"tenant_id": "nobody", "event_name": "api_call", "metric": "count", "period": "24h"}))  # fmt: skip
        for period in ("90d", "30d"):
            first = ask_all(connection, period)
            again = [ask_all(connection, period) for _ in range(20)]
            all_ms, slowest_ms = (statistics.median(column) for column in zip(*again))
            print(
                f"{period}: twelve widgets the first time {first[0]:.1f} ms (slowest {first[1]:.1f}), "
                f"again {all_ms:.1f} ms (slowest {slowest_ms:.2f})"
            )


if __name__ == "__main__":
    main()
