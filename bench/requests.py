#!/usr/bin/env python3
"""What a request costs over HTTP, beside a bare server of the same library.

    cargo build --release -p inlay -p inlay-bench --example bare
    python3 bench/requests.py PATH/TO/inlay [--bare PATH/TO/bare] [--other PATH/TO/inlay] [--seconds 5] [--turns 3]

`wrk` (Debian's package) asks over sixteen connections, on the same cores. Asked are `/healthz`, one metric query again
and again (counts of ninety days of one tenant, known from before), the same with another end each time, and the bare server,
which answers with as many bytes as the first query has. The processor time of the server's process is the cost, since
wrk takes its share of the cores; requests a second are shown beside it. Everything is measured in turns.

The result is a Markdown table, medians of the turns.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "rigs"))
from common import Connection, Server, register  # noqa: E402

DAY_MS = 86_400_000
DAYS, EVENTS = 90, 45_000
CONNECTIONS = 16
TICKS = os.sysconf("SC_CLK_TCK")
# Asks with another end each time: the counter is the millisecond.
COUNTING = """
local n = 0
request = function()
  n = n + 1
  return wrk.format("GET", string.format("%s&to=%s.%03dZ", wrk.path, "TO", n % 1000))
end
"""


def iso(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms / 1_000)) + f".{ms % 1_000:03}Z"


def fill(host, key, now_ms):
    connection = Connection(host, key)
    for start in range(0, EVENTS, 1_000):
        events = [
            {"event_name": "call", "tenant_id": "acme", "user_id": f"u{n % 997}", "timestamp": iso(now_ms - DAYS * DAY_MS * n // EVENTS),
             "string_props": {"model": f"m{n % 4}"}, "numeric_props": {"ms": n * 7 % 9_973}}
            for n in range(start, start + 1_000)
        ]  # fmt: skip
        status, _, answer = connection.call("POST", "/v1/events", {"events": events})
        assert status == 200, answer


def wait_until_merged(host, key, query):
    """Rows are in segments after a minute, and in segments of days soon after: what a query costs differs before."""
    for _ in range(100):
        answer = json.loads(Connection(host, key).fetch("GET", query + "&explain=true")[2])
        if all(step["level"] in ("merged", "sealed") for step in answer["meta"]["plan"] if step["rows"]):
            return
        time.sleep(3)
    raise SystemExit("the rows were not merged")


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def ask(pid, url, key, seconds, script=None):
    """Requests a second, and microseconds of processor for each."""
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-H", f"Authorization: Bearer {key}"]
    before = processor_seconds(pid)
    output = subprocess.run([*command, *(["-s", script] if script else []), url], capture_output=True, text=True, check=True).stdout
    used = processor_seconds(pid) - before
    if "Non-2xx" in output:
        raise SystemExit(f"{url} was not answered:\n{output}")
    requests = int(re.search(r"(\d+) requests in", output)[1])
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1])
    return rate, used / requests * 1e6


def start_bare(stack, binary, size):
    process = subprocess.Popen([binary, str(size)], stdout=subprocess.PIPE, text=True)
    stack.callback(process.kill)
    return process.pid, process.stdout.readline().split()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--bare", help="the bare server; without it costs are compared with `/healthz`")
    parser.add_argument("--other", help="another build of the server, measured in turns with the first")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cases, hosts = {}, []
        script = folder / "counting.lua"
        now_ms = int(time.time() * 1_000) // 1_000 * 1_000
        script.write_text(COUNTING.replace("TO", iso(now_ms)[:19]))
        for name, binary in (("", arguments.binary), ("other: ", arguments.other)):
            if not binary:
                continue
            server = Server(binary, folder / f"data{len(cases)}")
            stack.callback(server.end)
            key = register(server.host, "bench")
            fill(server.host, key, now_ms)
            query = {"tenant_id": "acme", "event_name": "call", "metric": "count", "granularity": "day"}
            known = "/v1/query?" + urllib.parse.urlencode(query | {"period": "90d"})
            moving = "/v1/query?" + urllib.parse.urlencode(query | {"from": iso(now_ms - DAYS * DAY_MS)})
            url = f"http://{server.host}"
            hosts.append((server.host, key, known))
            cases[f"{name}`/healthz`"] = (server.pid, url + "/healthz", key, None)
            cases[f"{name}a query again"] = (server.pid, url + known, key, None)
            cases[f"{name}a query with another end"] = (server.pid, url + moving, key, script)
        for host, key, known in hosts:
            wait_until_merged(host, key, known)
        sizes = [len(Connection(host, key).fetch("GET", known)[2]) for host, key, known in hosts]
        size, base = sizes[0], "`/healthz`"
        if arguments.bare:
            pid, url = start_bare(stack, arguments.bare, size)
            base = f"bare server, {size} bytes"
            cases[base] = (pid, url, "none", None)
        found = {name: [] for name in cases}
        for _ in range(arguments.turns):
            for name, (pid, url, key, more) in cases.items():
                found[name].append(ask(pid, url, key, arguments.seconds, more))
        least = statistics.median(cost for _, cost in found[base])
        print(f"| asked | requests a second | µs of processor a request | to {base} |\n|---|---|---|---|")
        for name, each in found.items():
            rate, cost = (statistics.median(values) for values in zip(*each))
            print(f"| {name} | {rate:,.0f} | {cost:.1f} | {cost / least:.1f} |")


if __name__ == "__main__":
    main()
