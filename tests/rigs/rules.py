#!/usr/bin/env python3
"""Thousands of alert rules are each evaluated once an interval, and a slow one delays no other.

The rules belong to several organisations and watch widgets of events that come in meanwhile; a few ask slow
questions. After two intervals every rule must have been looked at within the last one, by its own word.
Questions of others are asked meanwhile, and timed beside those before.

With `--sabotage` one rule is switched off: the rig must fail.
"""

import json
import statistics
import threading
import time
from datetime import datetime, timezone

from common import Connection, Failed, main, register

ORGS = 4
EVENTS = 20_000
# Made at once, by so many connections an organisation.
MAKERS = 2
# Evaluating and writing down take a moment after a rule's turn.
LATE_SECONDS = 4


def options(parser):
    parser.add_argument("--rules", type=int, default=10_000)
    parser.add_argument("--interval", type=int, default=60)


def call(connection, method, path, body=None, expected=(200, 201)):
    status, _, answer = connection.call(method, path, body)
    if status not in expected:
        raise Failed(f"{method} {path}: {status} {answer}")
    return answer


def fill(connection):
    """Events of many tenants and plans, and a dashboard that shows them."""
    for start in range(0, EVENTS, 1_000):
        events = [
            {"event_name": "call", "tenant_id": f"t{n % 50}", "user_id": f"u{n}", "string_props": {"plan": f"p{n % 7}"},
             "numeric_props": {"ms": n % 977}}
            for n in range(start, start + 1_000)
        ]  # fmt: skip
        call(connection, "POST", "/v1/events", {"events": events})
    layout = {"x": 0, "y": 0, "w": 3, "h": 3}
    widget = {"kind": "number", "title": "W", "viz": {}, "layout": layout}
    asks = {"quick": {"metric": "count"}, "slow": {"metric": "p99", "numeric_prop": "ms"}, "users": {"metric": "count_unique"}}
    widgets = [
        {"id": name, **widget, "query": {"event_name": "call", "period": "7d", **ask}} for name, ask in asks.items()
    ]
    return call(connection, "POST", "/v1/dashboards", {"name": "D", "widgets": widgets})["id"]


def make(host, key, dashboard, count, first):
    connection = Connection(host, key)
    for n in range(first, first + count):
        widget = "slow" if n % 100 == 0 else "users" if n % 10 == 0 else "quick"
        rule = {
            "dashboard_id": dashboard, "widget_id": widget, "name": f"Rule {n}", "condition_type": "threshold",
            "operator": "gt", "threshold_value": 10**9, "lookback_minutes": 60 + n % 1_000, "tenant_id": f"t{n % 50}",
        }  # fmt: skip
        call(connection, "POST", "/v1/alerts", rule)


def ask(host, key, seconds):
    """The median time of a question in milliseconds."""
    connection, took = Connection(host, key), []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        connection.get("/v1/query", tenant_id="t1", event_name="call", metric="count", period="24h")
        took.append((time.monotonic() - began) * 1_000)
        time.sleep(0.02)
    return statistics.median(took)


def listed(connection):
    """All rules of an organisation, page by page."""
    rules, path = [], "/v1/alerts?limit=1000"
    while path:
        page = connection.get(path)
        rules += page["data"]
        path = page["next"] and f"/v1/alerts?limit=1000&cursor={page['next']}"
    return rules


def age(rule):
    """Seconds since a rule was looked at; none when it never was."""
    at = rule["last_evaluated_at"]
    return at and (datetime.now(timezone.utc) - datetime.fromisoformat(at)).total_seconds()


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def run(rig):
    count, interval = rig.arguments.rules, rig.arguments.interval
    settings = {"INLAY_ALERT_INTERVAL_SECONDS": str(interval)}
    server = rig.start(environment=settings)
    keys = [register(server.host, f"rules{n}") for n in range(ORGS)]
    boards = [fill(Connection(server.host, key)) for key in keys]
    before = ask(server.host, keys[0], 2)
    makers, each = [], count // ORGS // MAKERS
    for key, board in zip(keys, boards):
        for maker in range(MAKERS):
            job = threading.Thread(target=make, args=(server.host, key, board, each, maker * each))
            job.start()
            makers.append(job)
    for job in makers:
        job.join()
    if rig.arguments.sabotage:
        call(Connection(server.host, keys[0]), "PATCH", "/v1/alerts/1", {"enabled": False})
    used = cpu_seconds(server.pid)
    began = time.monotonic()
    during = ask(server.host, keys[0], 2 * interval)
    share = (cpu_seconds(server.pid) - used) / (time.monotonic() - began)

    wrong, oldest, seen = [], 0.0, 0
    for key in keys:
        for rule in listed(Connection(server.host, key)):
            seen += 1
            since = age(rule)
            oldest = max(oldest, since or 0.0)
            if since is None or since > interval + LATE_SECONDS:
                wrong.append(f"rule {rule['id']} was looked at {since} s ago: {json.dumps(rule)[:200]}")
            elif rule["last_error"]:
                wrong.append(f"rule {rule['id']}: {rule['last_error']}")
    if seen != each * MAKERS * ORGS:
        wrong.append(f"{seen} rules are listed")
    server.expect_alive()
    memory = server.memory_peak_mib()
    if server.stop() != 0:
        wrong.append("the server did not end well")
    return wrong, (
        f"{seen} rules of {ORGS} organisations, each within {interval} s (the oldest look {oldest:.1f} s ago), with "
        f"{share:.2f} of a core; a question {before:.1f} ms before and {during:.1f} ms meanwhile; {memory} MiB"
    )


if __name__ == "__main__":
    main("rules", __doc__, run, options)
