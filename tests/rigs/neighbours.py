#!/usr/bin/env python3
"""Somebody whose 32 connections ask heavy queries without a pause does not make others wait.

One organisation asks percentiles over ninety days of rows, each of another period, so that nothing is known of them.
Another one asks small queries meanwhile, of which one in a hundred may take twice as long as before, or some milliseconds
longer (`--slack-ms`, more where rigs run beside it). This is tried without rate limits, where the heavy queries take all
the processors there are, and with the limits that servers have, where many are refused. All small queries must be
answered, the heavy ones answered or refused with 429.

The client of the heavy queries has niceness 19: it would run on another machine.

With `--sabotage` both organisations are one, and the rig must fail.
"""

import asyncio
import collections
import json
import multiprocessing
import os
import statistics
import time
import urllib.parse

from common import Connection, Failed, main, register

DAYS = 90
CONNECTIONS = 32
DAY_MS = 86_400_000
SMALL = {"tenant_id": "small", "event_name": "call", "metric": "p95", "numeric_prop": "ms", "period": "24h"}
# Small queries before the first one that counts.
WARM = 20
NO_LIMITS = "no limits"


def options(parser):
    parser.add_argument("--events", type=int, default=150_000, help="of the organisation that asks heavy queries")
    parser.add_argument("--seconds", type=int, default=8, help="of each of the measurements")
    parser.add_argument("--slack-ms", type=float, default=1, help="others may wait so much longer in any case; more beside other rigs")


def fill(host, key, tenant, events):
    """Stores events, evenly over ninety days up to now."""
    connection, now_ms = Connection(host, key), int(time.time() * 1_000)
    for start in range(0, events, 1_000):
        batch = [
            {"event_name": "call", "tenant_id": tenant, "user_id": f"u{n % 997}", "timestamp": iso(now_ms - DAYS * DAY_MS * n // events),
             "string_props": {"endpoint": f"e{n % 40}"}, "numeric_props": {"ms": n * 7 % 9_973}}
            for n in range(start, min(start + 1_000, events))
        ]  # fmt: skip
        status, _, answer = connection.call("POST", "/v1/events", {"events": batch})
        if status != 200:
            raise Failed(f"events: {status} {answer}")


def iso(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms / 1_000)) + f".{ms % 1_000:03}Z"


def ask_small(host, key, seconds, answer):
    """Asks small queries, in a process of its own; gives what each took, in milliseconds."""
    connection, took, wrong = Connection(host, key), [], []
    path = "/v1/query?" + urllib.parse.urlencode(SMALL)
    until = time.monotonic() + seconds
    while time.monotonic() < until or len(took) < 2 * WARM:
        began = time.monotonic()
        status, _, content = connection.call("GET", path)
        took.append((time.monotonic() - began) * 1_000)
        if status != 200:
            wrong.append(f"a small query: {status} {content}")
        time.sleep(0.008)
    answer.put((took, wrong))


def ask(server, key, seconds):
    """The p99 and the median of small queries, and those that were not answered."""
    answer = multiprocessing.Queue()
    process = multiprocessing.Process(target=ask_small, args=(server.host, key, seconds, answer))
    process.start()
    took, wrong = answer.get(timeout=seconds + 120)
    process.join()
    return statistics.quantiles(took[WARM:], n=100)[98], statistics.median(took[WARM:]), wrong


class Busy:
    """Asks heavy queries from now on, in a process of its own, until it is stopped."""

    def __init__(self, server, key):
        self.is_over, self.counts = multiprocessing.Event(), multiprocessing.Queue()
        self.process = multiprocessing.Process(target=self._run, args=(server.host, key))
        self.process.start()

    def stop(self):
        """How often each status came."""
        self.is_over.set()
        counts = self.counts.get(timeout=60)
        self.process.join()
        return counts

    def _run(self, host, key):
        os.nice(19)
        counts = collections.Counter()
        asyncio.run(self._ask_all(host, key, counts))
        self.counts.put(counts)

    async def _ask_all(self, host, key, counts):
        await asyncio.gather(*(self._ask(host, key, counts, n) for n in range(CONNECTIONS)))

    async def _ask(self, host, key, counts, number):
        name, port = host.split(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        now_ms, asked = int(time.time() * 1_000), 0
        while not self.is_over.is_set():
            asked += 1
            # No two queries alike: from the hour they begin in to the millisecond.
            start_ms = now_ms - DAYS * DAY_MS + (asked * CONNECTIONS + number) * 61_001 % DAY_MS
            query = {"tenant_id": "large", "event_name": "call", "metric": "p95", "numeric_prop": "ms", "group_by": "endpoint",
                     "from": iso(start_ms), "to": iso(now_ms - asked % 1_000), "granularity": "day"}  # fmt: skip
            path = "/v1/query?" + urllib.parse.urlencode(query)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length:")[2].split()[0])
            content = await reader.readexactly(length)
            status = int(head.split()[1])
            counts[status] += 1
            if status not in (200, 429):
                counts[f"{status} {content[:200]}"] += 1
        writer.close()


def compare(rig, server, keys, limits):
    """Small queries alone and beside heavy ones: findings, and a line of figures."""
    seconds = rig.arguments.seconds
    alone, alone_median, wrong = ask(server, keys["small"], seconds)
    busy = Busy(server, keys["small" if rig.arguments.sabotage else "large"])
    time.sleep(1)
    together, median, more = ask(server, keys["small"], seconds)
    counts = busy.stop()
    wrong = (wrong + more)[:3]
    if together > max(2 * alone, alone + rig.arguments.slack_ms):
        wrong.append(f"{limits}: p99 {together:.1f} ms beside heavy queries, {alone:.1f} alone")
    # Whether some are refused depends on how many the machine answers.
    if set(counts) - {429} != {200} or limits == NO_LIMITS and 429 in counts:
        wrong.append(f"{limits}: heavy queries were answered {json.dumps(dict(counts))}")
    answered = ", ".join(f"{count} × {status}" for status, count in sorted(counts.items(), key=str))
    return wrong, f"{limits}: p99 {alone:.1f} → {together:.1f} ms, median {alone_median:.1f} → {median:.1f}, heavy ones {answered}"


def run(rig):
    server = rig.start()
    keys = {name: register(server.host, name) for name in ("large", "small")}
    fill(server.host, keys["large"], "large", rig.arguments.events)
    fill(server.host, keys["small"], "small", 5_000)
    if rig.arguments.sabotage:
        fill(server.host, keys["small"], "large", rig.arguments.events)
    time.sleep(5)
    wrong, figures = compare(rig, server, keys, NO_LIMITS)
    if server.stop() != 0:
        wrong.append("the server did not end well")
    server = rig.start(environment={"INLAY_RATE_LIMITS": "login=1000"})
    more, other_figures = compare(rig, server, keys, "usual limits")
    return wrong + more, f"{figures}; {other_figures}"


if __name__ == "__main__":
    main("neighbours", __doc__, run, options)
