#!/usr/bin/env python3
"""Three processes with one store behind a balancer, started and stopped like one server.

Whatever starts `inlay serve` as a child process may start this instead, with the same arguments and settings, and so runs over three
processes of which each request meets another one:

    python3 tests/rigs/three.py PATH/TO/inlay serve [--demo]

PostgreSQL, an S3 server, three processes and haproxy as `server/doc/cluster.md` describes it are started in a folder of
their own; the balancer listens where `INLAY_HTTP_ADDR` says. The store is empty at each start. It ends with SIGTERM or SIGKILL: what it has started ends with it.
"""

import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from common import Connection, Failed, Gone
from services import Bucket, Postgres, environment, free_port, missing

NODES = ("a", "b", "c")
READY_SECONDS = 60
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "server" / "doc" / "cluster.md"
DEFAULTS = """
defaults
    mode http
    timeout connect 3s
    timeout client 75s
    timeout server 75s

"""


class Balancer:
    """haproxy before some addresses, as it is documented, with `address` as its own."""

    def __init__(self, rig, hosts, address):
        if shutil.which("haproxy") is None:
            missing("haproxy")
        file = rig.folder / "haproxy.cfg"
        file.write_text(DEFAULTS + configuration(hosts, address), encoding="utf-8")
        with open(rig.folder / "haproxy.txt", "wb") as log:
            self.process = subprocess.Popen(
                ["haproxy", "-db", "-f", str(file)], stdout=log, stderr=log, preexec_fn=end_with_parent
            )
        self.host = address
        rig.stack.callback(self.end)

    def end(self):
        self.process.kill()
        self.process.wait()


def configuration(hosts, address):
    """The documented one, with other addresses, and without TLS."""
    text = DOCUMENT.read_text(encoding="utf-8")
    text = text[text.index("frontend inlay") :].partition("```")[0]
    text = re.sub(r"bind .*", f"bind {address}", text)
    addresses = iter(hosts.values())
    return re.sub(r"(server \w+) \S+", lambda found: f"{found[1]} {next(addresses)}", text)


class Folder:
    """What services need of a rig."""

    def __init__(self, stack):
        self.stack = stack
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rig-three-"))
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)


def end_with_parent():
    """For a child process, which is to end however this one does."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def wait_until_ready(hosts):
    limit = time.monotonic() + READY_SECONDS
    for host in hosts:
        while True:
            try:
                if Connection(host, timeout=5).fetch("GET", "/readyz")[0] == 200:
                    break
            except Gone:
                pass  # it has not begun to listen
            if time.monotonic() > limit:
                raise Failed(f"{host} was not ready after {READY_SECONDS} s")
            time.sleep(0.05)


def main():
    """Everything is done by a child process, which gets SIGTERM however this one ends."""
    if child := os.fork():
        signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    run(*sys.argv[1:])


def run(binary, *arguments):
    with contextlib.ExitStack() as stack:
        rig = Folder(stack)
        shared = environment(Postgres(rig), Bucket(rig))
        address = os.environ.get("INLAY_HTTP_ADDR", "127.0.0.1:8080")
        hosts = {name: f"127.0.0.1:{free_port()}" for name in NODES}
        for name, host in hosts.items():
            settings = os.environ | shared | {
                "INLAY_DATA_DIR": str(rig.folder / name),
                "INLAY_HTTP_ADDR": host,
                "INLAY_GRPC_ADDR": "127.0.0.1:0",
                "INLAY_BASE_URL": os.environ.get("INLAY_BASE_URL", f"http://{address}"),
                "INLAY_TRUSTED_PROXIES": "127.0.0.0/8",
            }
            process = subprocess.Popen(
                [binary, *arguments], env=settings, preexec_fn=end_with_parent, stdout=subprocess.DEVNULL
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            # The first one leads, and makes what `--demo` asks for.
            wait_until_ready([host])
        Balancer(rig, hosts, address)
        wait_until_ready([address])
        print(f"ready at http://{address} (gRPC on 127.0.0.1:0)", flush=True)
        while True:
            signal.pause()


if __name__ == "__main__":
    main()
