#!/usr/bin/env python3
"""How fast a server takes events over HTTP, and whether it kept every one of them.

    python3 bench/http_ingest.py PATH/TO/inlay [--events 1000000] [--connections 4]

A server is started on a fresh directory. Four connections send a million events in requests of a
thousand, each waiting for its answer: 200 means that the batch is on disk and visible. Bodies are
made before the clock starts. One event in two hundred was sent before, in another request or the
same; twenty tenants share the events as tenants do, a few with most of them; times are spread over
30 days without order, which is the hard case for a store that sorts by time.

Then counts and sums of every tenant are compared with what was sent, the server is killed with
SIGKILL, started again on the same directory, and everything is compared once more.

The disk decides much of such a number, so its own rate is measured beside it: appends of the size
of one request's body to a preallocated file in the same directory, each followed by fdatasync. The
clients run on the same machine and take their share of its cores.

The result is a Markdown table.
"""

import argparse
import bisect
import http.client
import itertools
import json
import math
import os
import pathlib
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from datetime import datetime, timedelta, timezone

# The specification's limit of one request.
BATCH_EVENTS = 1_000
TENANTS = 20
DAYS = 30
DUPLICATES_SHARE = 0.005
EVENT = "api_call"
SEED = 20
# Appends of the disk's own measurement: enough for a steady median, done within seconds.
SYNCS = 200
SYNC_BYTES = 300_000
# Both sides add up 64-bit floats, in another order.
TOLERANCE = 1e-9

MODELS = ["nova-large", "nova-small", "lyra", "orion-2"]
ENDPOINTS = ["/v1/chat/completions", "/v1/embeddings", "/v1/images", "/v1/audio", "/v1/batches"]
STATUSES = ["ok"] * 18 + ["error", "timeout"]
PLANS = ["enterprise", "growth", "starter", "free"]
SOURCES = ["api", "api", "api", "web", "mobile"]


# ---- What is sent --------------------------------------------------------------------------------


class Workload:
    """Request bodies, and what a server that lost and doubled nothing must answer."""

    def __init__(self, events):
        self.until = datetime.now(timezone.utc).replace(microsecond=0)
        self.since = self.until - timedelta(days=DAYS)
        self.sent = events
        self.duplicates = 0
        self.counts = [0] * TENANTS
        self.tokens = [0] * TENANTS
        self.latencies = [[] for _ in range(TENANTS)]
        self.random = random.Random(SEED)
        # The tenant of rank r has 1/r of the events of the first.
        self.shares = list(itertools.accumulate(1 / rank for rank in range(1, TENANTS + 1)))
        self.past = []
        sizes = [min(BATCH_EVENTS, events - first) for first in range(0, events, BATCH_EVENTS)]
        self.bodies = [self.body(size) for size in sizes]
        # Only needed to repeat events; holding it would take memory from the server.
        self.past = None

    def body(self, size):
        return ('{"events":[' + ",".join(self.event() for _ in range(size)) + "]}").encode()

    def event(self):
        """A new event, or now and then one that was sent before, letter by letter."""
        if self.past and self.random.random() < DUPLICATES_SHARE:
            self.duplicates += 1
            return self.random.choice(self.past)
        event = self.new_event()
        # One in ten is kept for repetition: what is repeated need not be any event.
        if self.random.random() < 0.1:
            self.past.append(event)
        return event

    def new_event(self):
        draw = self.random.random
        tenant = bisect.bisect(self.shares, draw() * self.shares[-1])
        number = self.counts[tenant]
        tokens, latency = int(draw() * 4_000), round(20 + draw() * draw() * 2_000, 3)
        self.counts[tenant] += 1
        self.tokens[tenant] += tokens
        self.latencies[tenant].append(latency)
        at = self.since + timedelta(milliseconds=int(draw() * DAYS * 86_400_000))
        return (
            f'{{"tenant_id":"{name_of(tenant)}","event_name":"{EVENT}","timestamp":"{iso(at)}",'
            f'"event_id":"{tenant:02}-{number:08}","user_id":"user-{int(draw() * draw() * 5_000)}",'
            f'"string_props":{{"model":"{pick(MODELS, draw)}","endpoint":"{pick(ENDPOINTS, draw)}",'
            f'"status":"{pick(STATUSES, draw)}","plan":"{pick(PLANS, draw)}",'
            f'"source":"{pick(SOURCES, draw)}"}},'
            f'"numeric_props":{{"tokens":{tokens},"latency_ms":{latency}}}}}'
        )


def name_of(tenant):
    return f"tenant-{tenant:02}"


def pick(choices, draw):
    return choices[int(draw() * len(choices))]


def iso(instant):
    return instant.strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant.microsecond // 1_000:03}Z"


# ---- The server ----------------------------------------------------------------------------------


class Failed(Exception):
    """The server lost, doubled or refused something, or ended."""


class Server:
    """The binary on a data directory, on free ports of the loopback."""

    def __init__(self, binary, folder):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("INLAY_")}
        environment |= {
            "INLAY_DATA_DIR": str(folder / "data"),
            "INLAY_HTTP_ADDR": "127.0.0.1:0",
            "INLAY_GRPC_ADDR": "127.0.0.1:0",
            # A line per request is not what is measured here.
            "INLAY_LOG": "warn",
        }
        with open(folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                [binary, "serve"], env=environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.host = self.wait_until_ready()

    def wait_until_ready(self):
        for line in self.process.stdout:
            if "ready at http" in line:
                # A full pipe would stop the server one day.
                threading.Thread(target=self.process.stdout.read, daemon=True).start()
                url = "http" + line.split("http", 1)[1].split()[0]
                return urllib.parse.urlsplit(url).netloc
        raise Failed(f"the server ended with {self.process.wait()} before it was ready")

    def memory_peak_bytes(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1_024
        return 0

    def cpu_seconds(self):
        """Time on all cores, in user and kernel mode."""
        text = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        # The program's name comes before, and may hold spaces.
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        code = self.process.wait(timeout=120)
        if code != 0:
            raise Failed(f"the server ended with {code} after SIGTERM")


class Connection:
    """One connection with one key. Any answer but 2xx ends the run: a retry would hide it."""

    def __init__(self, host, key=None):
        self.connection = http.client.HTTPConnection(host, timeout=120)
        self.headers = {"Content-Type": "application/json"}
        if key:
            self.headers["Authorization"] = f"Bearer {key}"

    def call(self, method, path, body=None):
        self.connection.request(method, path, body, self.headers)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise Failed(f"{method} {path}: {answer.status} {content[:500]!r}")
        return json.loads(content)


def register(host):
    account = {
        "email": "bench@example.com",
        "password": "a bench on the loopback",
        "name": "Bench",
        "org_name": "Bench",
    }
    answer = Connection(host).call("POST", "/v1/auth/register", json.dumps(account))
    return answer["api_key"]["key"]


# ---- Sending -------------------------------------------------------------------------------------


class Sent:
    """What one run of requests gave."""

    def __init__(self):
        self.milliseconds = []
        self.accepted = 0
        self.duplicates = 0
        self.failures = []


def send(host, key, bodies, connections):
    """All bodies, each by the next connection that is free; the wall time and what came back.

    Threads are enough: all of their time is spent in the kernel, where Python's lock is open.
    """
    waiting = queue.SimpleQueue()
    for body in bodies:
        waiting.put(body)
    all_sent = [Sent() for _ in range(connections)]
    # Everyone is connected before the clock starts.
    start = threading.Barrier(connections + 1)
    threads = [
        threading.Thread(target=send_some, args=(host, key, waiting, start, sent))
        for sent in all_sent
    ]
    for thread in threads:
        thread.start()
    start.wait()
    started = time.monotonic()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - started
    for sent in all_sent:
        for failure in sent.failures:
            raise Failed(f"a connection ended: {failure!r}")
    return seconds, all_sent


def send_some(host, key, waiting, start, sent):
    connection = Connection(host, key)
    connection.connection.connect()
    start.wait()
    try:
        while True:
            body = waiting.get_nowait()
            before = time.monotonic()
            answer = connection.call("POST", "/v1/events", body)
            sent.milliseconds.append((time.monotonic() - before) * 1_000)
            sent.accepted += answer["accepted"]
            sent.duplicates += answer["duplicates"]
    except queue.Empty:
        pass
    except (Failed, OSError, http.client.HTTPException) as failure:
        # Told by the thread that waits for this one.
        sent.failures.append(failure)


# ---- Checking ------------------------------------------------------------------------------------


def ask(connection, workload, tenant, metric, numeric_prop=None):
    question = {
        "event_name": EVENT,
        "tenant_id": name_of(tenant),
        "metric": metric,
        "from": iso(workload.since),
        "to": iso(workload.until),
    }
    if numeric_prop:
        question["numeric_prop"] = numeric_prop
    answer = connection.call("GET", "/v1/query?" + urllib.parse.urlencode(question))
    return answer["data"][0]["value"]


def wrong_answers(host, key, workload):
    """Every tenant's count and sums that differ from what was sent."""
    connection, wrong = Connection(host, key), []
    for tenant in range(TENANTS):
        name = name_of(tenant)
        count = ask(connection, workload, tenant, "count")
        if count != workload.counts[tenant]:
            wrong.append(f"{name}: {count} events instead of {workload.counts[tenant]}")
        # Whole numbers: their sum is exact in any order.
        tokens = ask(connection, workload, tenant, "sum", "tokens")
        if tokens != workload.tokens[tenant]:
            wrong.append(f"{name}: {tokens} tokens instead of {workload.tokens[tenant]}")
        latency = ask(connection, workload, tenant, "sum", "latency_ms")
        expected = math.fsum(workload.latencies[tenant])
        if not math.isclose(latency, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            wrong.append(f"{name}: {latency} ms in all instead of {expected}")
    return wrong


# ---- Measuring -----------------------------------------------------------------------------------


def sync_milliseconds(folder):
    """The disk's own time to write one request's body and make it durable.

    A measure of the disk, not of the log: what a server writes for a request may well be smaller.
    """
    path, block = folder / "sync", os.urandom(SYNC_BYTES)
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.posix_fallocate(file, 0, SYNCS * SYNC_BYTES)
        os.fsync(file)
        spent = []
        for _ in range(SYNCS):
            started = time.monotonic()
            os.write(file, block)
            os.fdatasync(file)
            spent.append((time.monotonic() - started) * 1_000)
        return spent
    finally:
        os.close(file)
        path.unlink()


class Disk:
    """Space that a data directory takes. The log is apart: it is preallocated, in big steps."""

    def __init__(self, folder):
        self.log = disk_bytes(folder / "wal")
        self.data = disk_bytes(folder) - self.log

    def text(self):
        return f"{self.data / 2**20:.1f} MiB and {self.log / 2**20:.0f} MiB of log, preallocated"


def disk_bytes(folder):
    """Space taken, which is not the length of a file. A file may go while we look."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except FileNotFoundError:
            pass
    return total


def percentile(values, share):
    """The smallest value that is at least as large as this share of all."""
    return sorted(values)[max(math.ceil(len(values) * share) - 1, 0)]


def reopen(binary, folder, key, workload):
    """A new server on the directory, and the seconds until it gave its first right answer."""
    started = time.monotonic()
    server = Server(binary, folder)
    ready = time.monotonic() - started
    count = ask(Connection(server.host, key), workload, 0, "count")
    seconds = time.monotonic() - started
    # The caller checks every answer; here only, that the time is that of a right one.
    if count != workload.counts[0]:
        server.kill()
        raise Failed(f"the first answer after kill -9: {count} instead of {workload.counts[0]}")
    return server, ready, seconds


def expect(wrong, when):
    if wrong:
        raise Failed(f"{when}:\n  " + "\n  ".join(wrong))


def measure(binary, folder, workload, connections):
    """The whole run; rows of the table as pairs of name and text."""
    syncs = sync_milliseconds(folder)
    server = Server(binary, folder)
    try:
        key = register(server.host)
        cpu = server.cpu_seconds()
        seconds, all_sent = send(server.host, key, workload.bodies, connections)
        cpu = server.cpu_seconds() - cpu
        accepted = sum(sent.accepted for sent in all_sent)
        duplicates = sum(sent.duplicates for sent in all_sent)
        if (accepted, duplicates) != (workload.sent, workload.duplicates):
            raise Failed(
                f"the answers say {accepted} accepted, {duplicates} duplicates instead of "
                f"{workload.sent}, {workload.duplicates}"
            )
        expect(wrong_answers(server.host, key, workload), "after the load")
        memory, disk = server.memory_peak_bytes(), Disk(folder / "data")
        server.kill()
        server, ready, reopened = reopen(binary, folder, key, workload)
        expect(wrong_answers(server.host, key, workload), "after kill -9")
        server.stop()
        disk_stopped = Disk(folder / "data")
    finally:
        server.kill()
    syncs_after = sync_milliseconds(folder)

    spent = [each for sent in all_sent for each in sent.milliseconds]
    sent_bytes = sum(len(body) for body in workload.bodies)
    stored = workload.sent - workload.duplicates
    sync_rate = 2 * SYNCS * 1_000 / (sum(syncs) + sum(syncs_after))
    return [
        ("events sent", f"{workload.sent:,} ({sent_bytes / workload.sent:.0f} bytes each)"),
        ("of these known already", f"{workload.duplicates:,}"),
        ("connections", f"{connections}, {BATCH_EVENTS:,} events a request"),
        ("wall time", f"{seconds:.2f} s"),
        ("**events a second**", f"**{workload.sent / seconds:,.0f}**"),
        ("requests a second", f"{len(spent) / seconds:.1f}"),
        ("latency of a request, p50", f"{percentile(spent, 0.5):.1f} ms"),
        ("latency of a request, p99", f"{percentile(spent, 0.99):.1f} ms"),
        ("latency of a request, longest", f"{max(spent):.1f} ms"),
        ("CPU time of the server", f"{cpu:.1f} s, {cpu / workload.sent * 1e6:.1f} µs an event"),
        ("peak memory of the server", f"{memory / 2**20:.0f} MiB"),
        ("on disk after the load", disk.text()),
        ("on disk after kill, restart, stop", disk_stopped.text()),
        ("on disk at last without the log", f"{disk_stopped.data / stored:.1f} bytes an event"),
        ("reopen after kill -9: ready", f"{ready * 1_000:.0f} ms"),
        ("reopen after kill -9: first right answer", f"{reopened * 1_000:.0f} ms"),
        ("lost, doubled", "0, 0"),
        (
            f"this disk: {SYNC_BYTES // 1_000} KB append + fdatasync",
            f"{sync_rate:.0f}/s; p50 {percentile(syncs, 0.5):.1f} ms before, "
            f"{percentile(syncs_after, 0.5):.1f} ms after",
        ),
        (
            "requests a second ÷ syncs a second of one writer",
            f"{len(spent) / seconds / sync_rate:.2f}",
        ),
    ]


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    models = {
        line.partition(":")[2].strip()
        for line in text.splitlines()
        if line.startswith("model name")
    }
    return f"{os.cpu_count()} cores, {', '.join(models) or os.uname().machine}"


def main():
    story, _, _ = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=story)
    parser.add_argument("binary", type=pathlib.Path, help="path of the inlay binary")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--dir", help="where the data directory is made; decides the disk")
    arguments = parser.parse_args()

    folder = pathlib.Path(tempfile.mkdtemp(prefix="http-ingest-", dir=arguments.dir))
    try:
        print("making the request bodies", file=sys.stderr)
        workload = Workload(arguments.events)
        print("running", file=sys.stderr)
        rows = measure(arguments.binary.resolve(), folder, workload, arguments.connections)
    except Failed as failure:
        log = (folder / "server.log").read_text(errors="replace")[-4_000:]
        sys.exit(f"WRONG {failure}\nthe end of the server's log:\n{log}")
    finally:
        shutil.rmtree(folder)
    print(f"| {machine()} | |\n|---|---|")
    for name, text in rows:
        print(f"| {name} | {text} |")


if __name__ == "__main__":
    main()
