#!/usr/bin/env python3
"""Takes all descriptors away from the server, and gives them back.

While clients post batches, 200 connections are opened and held: some say nothing, some send half a
request, some ask for something and never read. The server runs with 64 descriptors, hard and soft, so
that it cannot raise them, and leaves half of them to the store: in every second cycle it must answer
every batch all the same. In the others it is given less than it knows of, so that the store finds no
descriptor for its next file: that may cost answers (503, or no connection), never an event and never
the process. Then the connections are closed, and within seconds a new client must be served, a batch
that makes the server write a segment must be accepted, and after a kill everything must be there.

    python3 tests/rigs/descriptors.py PATH/TO/inlay [--cycles 2]
"""

import contextlib
import pathlib
import re
import socket
import subprocess
import time

from common import Connection, Failed, Gone, main, register
from ledger import Ledger
from load import Load
from machine import need_tool

DESCRIPTORS, DESCRIPTORS_SHORT = 64, 40
CONNECTIONS = 200
# The server closes a connection that sends no whole headers within 10 s; held shorter, the
# connections are there all the time.
HOLD_SECONDS = 4
RECOVERY_SECONDS = 10
# Every batch is asked for by name in each comparison, so there are not too many of them.
CLIENTS, PAUSE_SECONDS = 4, 0.02
# One process lives through so many cycles; then a kill settles what became of refused batches.
KILL_EVERY = 20
BEGINNINGS = (
    b"",
    b"GET /healthz HTTP/1.1\r\nHost: rig\r\n",
    b"GET /openapi.json HTTP/1.1\r\nHost: rig\r\n\r\n" * 4,
    b"POST /v1/events HTTP/1.1\r\nHost: rig\r\nContent-Length: 1000000\r\n\r\n{",
)


def options(parser):
    parser.add_argument("--cycles", type=int, default=2)


def run(rig):
    need_tool("prlimit")
    ledger = Ledger(rig.folder / "ledger.jsonl")
    limit = ("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}")
    server = rig.start(before=limit)
    key = register(server.host)
    recovered, statuses, lost = [], {}, 0
    for cycle in range(rig.arguments.cycles):
        most, is_short = 0, cycle % 2 == 0
        load = Load(
            server.host, key, ledger, f"{rig.random_seed} {cycle}",
            clients=CLIENTS, pause=PAUSE_SECONDS,
            sabotage=rig.arguments.sabotage if cycle == 0 else None,
        )  # fmt: skip
        with contextlib.ExitStack() as held:
            time.sleep(0.3)
            if is_short:
                allow(server.pid, DESCRIPTORS_SHORT)
            hold(held, server.host)
            until = time.monotonic() + HOLD_SECONDS
            while time.monotonic() < until:
                server.expect_alive()
                most = max(most, len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir())))
                time.sleep(0.1)
            load.stop()
        server.expect_alive()
        allow(server.pid, DESCRIPTORS)
        if is_short and most < DESCRIPTORS_SHORT:
            ledger.wrong.append(f"cycle {cycle + 1}: at most {most} descriptors were ever open")
        if not is_short and (set(load.statuses) != {200} or load.gone):
            ledger.wrong.append(
                f"cycle {cycle + 1}: beside idle connections: {load.statuses}, {load.gone} cut off"
            )
        recovered.append(seconds_until_served(server, key))
        server.expect_alive()
        log_begin = server.log.stat().st_size
        after = Load(server.host, key, ledger, f"{rig.random_seed} {cycle} after", clients=2)
        time.sleep(1)
        after.stop()
        if set(after.statuses) != {200} or after.gone:
            ledger.wrong.append(
                f"cycle {cycle + 1}: after the release: {after.statuses}, {after.gone} cut off; "
                f"the log says why: {causes(server.log, log_begin)}"
            )
        # A refused batch may still be in the log: the next start says whether it is.
        ledger.compare(server.host, key, settle=False)
        lost += load.gone
        for status, count in load.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
        if (cycle + 1) % KILL_EVERY == 0:
            server.kill()
            server = rig.start(before=limit)
            ledger.compare(server.host, key)
            ledger.close_round()
    server.kill()
    server = rig.start()
    ledger.compare(server.host, key)
    return ledger.wrong, (
        f"{rig.arguments.cycles} cycles of {CONNECTIONS} connections on {DESCRIPTORS} descriptors, "
        f"answers meanwhile {statuses}, {lost} cut off, served again after "
        f"{max(recovered):.1f} s; {ledger.summary()}"
    )


def allow(pid, descriptors):
    """How many descriptors the process may have open from now on."""
    limit = f"--nofile={descriptors}:{DESCRIPTORS}"
    subprocess.run(["prlimit", f"--pid={pid}", limit], check=True)


def hold(held, host):
    """200 connections that the kernel takes, whether the server does or not."""
    name, _, port = host.partition(":")
    for number in range(CONNECTIONS):
        connection = socket.socket()
        held.callback(connection.close)
        connection.settimeout(0.1)
        # A full backlog is as good as a refusal.
        with contextlib.suppress(OSError):
            connection.connect((name, int(port)))
            connection.sendall(BEGINNINGS[number % len(BEGINNINGS)])


def seconds_until_served(server, key):
    started = time.monotonic()
    while time.monotonic() - started < RECOVERY_SECONDS:
        with contextlib.suppress(Gone):
            status, _, _ = Connection(server.host, key, timeout=1).call("GET", "/v1/auth/me")
            if status == 200:
                return time.monotonic() - started
        time.sleep(0.05)
    raise Failed(f"no new client was served within {RECOVERY_SECONDS} s after the release")


def causes(log, begin):
    """Why requests were refused since the log had `begin` bytes, numbers apart."""
    with open(log, "rb") as file:
        file.seek(begin)
        said = file.read().decode(errors="replace")
    return sorted(set(re.findall(r'cause="([^"]*)"', re.sub(r"\d{4,}", "N", said))))


if __name__ == "__main__":
    main("descriptors", __doc__, run, options)
