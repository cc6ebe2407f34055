#!/usr/bin/env python3
"""What a store in PostgreSQL and a bucket costs beside one in a directory, and what several processes are like.

    python3 bench/cluster.py PATH/TO/inlay [--events 300000] [--takeovers 5] [--questions 2000]

PostgreSQL and an S3 server (`moto`, which keeps objects in memory) run on the same cores, and so do the clients. Measured
in turn: a process with a directory of its own, one with its store elsewhere, and three of them, where each connection sends to
another one. Four connections send requests of a thousand events (those of `http_ingest.py`). Then a question about thirty days of
one tenant is asked again and again, each time with another end: by the process with a directory, the leader and a follower, in turns. At last
the leader is killed and started again several times, each time with a clock until another process takes a write; and a process with an
empty directory is started beside the others, until it has answered a question.

The result is a Markdown table.
"""

import argparse
import contextlib
import pathlib
import statistics
import sys
import tempfile
import threading
import time

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "tests" / "rigs")]
from common import Connection, Gone, Server, register  # noqa: E402
from http_ingest import EVENT, Workload, iso, name_of  # noqa: E402
from services import Bucket, Postgres, environment  # noqa: E402

CONNECTIONS = 4
# Requests after which the log is weighed: before anything of it may be dropped.
WEIGHED = 60


class Place:
    """What the services need of a rig."""

    def __init__(self, folder, stack):
        self.folder, self.stack = folder, stack
        folder.mkdir()


def new_folder(stack):
    """A folder that goes with the stack."""
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    # PostgreSQL runs as a user of its own, below this folder.
    folder.chmod(0o711)
    return folder


class Store:
    """Some processes with one store."""

    def __init__(self, binary, place, nodes, is_elsewhere):
        self.binary, self.place = binary, place
        self.settings = {}
        if is_elsewhere:
            self.postgres, self.bucket = Postgres(place), Bucket(place)
            self.settings = environment(self.postgres, self.bucket)
        self.servers = [self.start(number) for number in range(nodes)]
        self.key = register(self.leader().host)

    def start(self, number):
        data = self.place.folder / f"data {number}"
        server = Server(self.binary, data, environment=self.settings)
        self.place.stack.callback(server.end)
        return server

    def leads(self, server):
        try:
            return Connection(server.host, timeout=5).fetch("GET", "/leaderz")[0] == 200
        except Gone:
            return False

    def leader(self):
        while True:
            for server in self.servers:
                if server.process.poll() is None and self.leads(server):
                    return server
            time.sleep(0.01)


def ingest(store, workload):
    """Events a second, and bytes of log an event where it is in a database."""
    weighed = None
    if store.settings:
        connection = Connection(store.servers[0].host, store.key)
        for body in workload.bodies[:WEIGHED]:
            send(connection, body)
        weighed = int(store.postgres.sql("SELECT sum(octet_length(body)) FROM inlay.log"))
        weighed /= WEIGHED * 1_000
    bodies, lock = iter(workload.bodies), threading.Lock()

    def client(number):
        connection = Connection(store.servers[number % len(store.servers)].host, store.key)
        while True:
            with lock:
                body = next(bodies, None)
            if body is None:
                return
            send(connection, body)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(CONNECTIONS)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return workload.sent / (time.monotonic() - started), weighed


def send(connection, body):
    status, _, answer = connection.call("POST", "/v1/events", body)
    if status != 200:
        raise SystemExit(f"events were refused: {status} {answer}")


def question(workload, number):
    until = workload.until.timestamp() * 1_000 - number
    end = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(until / 1_000)) + f".{int(until) % 1_000:03}Z"
    return (
        f"/v1/query?tenant_id={name_of(3)}&event_name={EVENT}&metric=count&granularity=day"
        f"&from={iso(workload.since)}&to={end}"
    )


def questions(asked, workload, count):
    """Milliseconds of the median, by name, asked in turns."""
    connections = {name: Connection(server.host, key) for name, (server, key) in asked.items()}
    times = {name: [] for name in asked}
    for number in range(count):
        for name, connection in connections.items():
            path = question(workload, number)
            started = time.perf_counter()
            connection.get(path)
            times[name].append((time.perf_counter() - started) * 1_000)
    return {name: (statistics.median(of), sorted(of)[int(len(of) * 0.95)]) for name, of in times.items()}


def take_over(store, body):
    """Seconds from the end of the leader until another process takes a write."""
    leader = store.leader()
    number = store.servers.index(leader)
    others = [server for server in store.servers if server is not leader]
    leader.process.kill()
    started = time.monotonic()
    leader.process.wait()
    while True:
        for server in others:
            try:
                if Connection(server.host, store.key, timeout=5).call("POST", "/v1/events", body)[0] == 200:
                    taken = time.monotonic() - started
                    store.servers[number] = store.start(number)
                    return taken
            except Gone:
                pass
        time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--questions", type=int, default=2_000)
    parser.add_argument("--takeovers", type=int, default=5)
    arguments = parser.parse_args()
    workload = Workload(arguments.events)
    print("| | |\n|---|--:|")
    with contextlib.ExitStack() as stack:
        folder = new_folder(stack)
        stores, rates = {}, {}
        for name, nodes, is_elsewhere in (("own", 1, False), ("one", 1, True), ("three", 3, True)):
            stores[name] = Store(arguments.binary, Place(folder / name, stack), nodes, is_elsewhere)
            rates[name], weighed = ingest(stores[name], workload)
            share = f", {rates[name] / rates['own']:.2f} of a directory" if is_elsewhere else ""
            label = {"own": "a directory", "one": "one process, store elsewhere", "three": "three processes"}[name]
            print(f"| ingest, {label} | {rates[name]:,.0f} events a second{share} |", flush=True)
        print(f"| log in the database | {weighed:.1f} bytes an event |", flush=True)
        three = stores["three"]
        follower = next(server for server in three.servers if server is not three.leader())
        asked = {
            "a directory": (stores["own"].servers[0], stores["own"].key),
            "the leader": (three.leader(), three.key),
            "a follower": (follower, three.key),
        }
        for name, (median, late) in questions(asked, workload, arguments.questions).items():
            print(f"| a question, {name} | median {median:.3f} ms, p95 {late:.3f} ms |", flush=True)
        taken = [take_over(three, workload.bodies[0]) for _ in range(arguments.takeovers)]
        if taken:
            listed = ", ".join(f"{seconds:.1f}" for seconds in sorted(taken))
            print(f"| take-over after SIGKILL, until a write | {listed} s |", flush=True)
        started = time.monotonic()
        fresh = three.start(9)
        Connection(fresh.host, three.key).get(question(workload, 0))
        print(f"| a process with an empty directory, first answer | {time.monotonic() - started:.2f} s |")


if __name__ == "__main__":
    main()
