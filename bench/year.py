#!/usr/bin/env python3
"""A year of a small company: segments, start, and a dashboard of twelve widgets.

    python3 bench/year.py PATH/TO/inlay [--a-day 20000] [--days 365]

Events of two hundred tenants are sent over HTTP in the order of their days. When everything is merged the server is
ended and started again: the time until it is ready is printed, and that of a dashboard of twelve widgets about one
tenant, over one connection, the first time and again: as its embed page asks, all in one request, and as twelve queries one
after the other. Each first time is that of a server that has just been started.
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


def kind_of(widget):
    if "granularity" in widget:
        return "line"
    return "bar_list" if "group_by" in widget else "number"


def mint(connection):
    """Publishes a dashboard of all widgets; gives the token of a session of the tenant."""
    widgets = []
    for number, widget in enumerate(WIDGETS):
        filters = {name.removeprefix("f_"): value for name, value in widget.items() if name.startswith("f_")}
        query = {name: value for name, value in widget.items() if not name.startswith("f_")}
        query |= {"event_name": "api_call"} | ({"filters": filters} if filters else {})
        layout = {"x": number % 3 * 4, "y": number // 3 * 4, "w": 4, "h": 4}
        widgets.append({
            "id": f"w{number}", "kind": kind_of(widget), "title": f"Widget {number}", "query": query, "viz": {}, "layout": layout,
        })  # fmt: skip
    status, _, made = connection.call("POST", "/v1/dashboards", {"name": "Usage", "widgets": widgets})
    assert status == 201, made
    status, _, answer = connection.call("POST", f"/v1/dashboards/{made['id']}/publish")
    assert status == 204, answer
    asked = {"dashboard_id": made["id"], "tenant_id": TENANT, "expires_in": 86_400}
    status, _, minted = connection.call("POST", "/v1/embed-sessions", asked)
    assert status == 201, minted
    return minted["token"]


def ask_embed(connection, period):
    """Milliseconds of all widgets in one request."""
    asked = {"widgets": [f"w{number}" for number in range(len(WIDGETS))], "filters": {"period": period}}
    started = time.perf_counter()
    status, _, answer = connection.call("POST", "/v1/embed/data", asked)
    taken = (time.perf_counter() - started) * 1e3
    assert status == 200 and all("data" in widget for widget in answer["widgets"].values()), answer
    return taken


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
        stack.callback(lambda: server.end())
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
        token = mint(side.connection)
        server.end()
        times = []

        def restart():
            nonlocal server
            began = time.perf_counter()
            server = Server(chosen.binary, folder)
            times.append((time.perf_counter() - began) * 1e3)
            connection = Connection(server.host, side.key)
            connection.call("GET", "/v1/query?" + urllib.parse.urlencode(
                {"tenant_id": "nobody", "event_name": "api_call", "metric": "count", "period": "24h"}))  # fmt: skip
            return connection

        for period in ("90d", "30d"):
            connection = restart()
            first = ask_all(connection, period)
            again = [ask_all(connection, period) for _ in range(20)]
            all_ms, slowest_ms = (statistics.median(column) for column in zip(*again))
            print(
                f"{period}: twelve queries the first time {first[0]:.1f} ms (slowest {first[1]:.1f}), "
                f"again {all_ms:.1f} ms (slowest {slowest_ms:.2f})"
            )
            server.end()
            restart()
            viewer = Connection(server.host, token)
            viewer.call("GET", "/v1/embed/dashboard")
            first = ask_embed(viewer, period)
            again = statistics.median(ask_embed(viewer, period) for _ in range(20))
            print(f"{period}: the embed's request for twelve widgets the first time {first:.1f} ms, again {again:.1f} ms")
            server.end()
        print(f"start until ready: {statistics.median(times):.0f} ms")


if __name__ == "__main__":
    main()
