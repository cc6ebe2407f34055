"""What every rig needs: a server of its own, connections to it, and an orderly end.

A rig is a black box test of a promise. It starts the binary on free ports in a folder of its own,
does something terrible to it, and compares what it answers with a ledger that the rig keeps outside
(`ledger.py`). It knows nothing of the server but its API, its settings and its exit code.

A rig ends in one of three ways, and its last line says which:

    kill: 20 kills, ...; 12.3 s           exit code 0
    power: skipped: needs root            exit code 0
    WRONG kill: 3 findings; 12.3 s        exit code 1, the findings above it

Mounts, processes and folders are given to an `ExitStack` the moment they exist, so that they are
gone at the end however the rig ends.
"""

import argparse
import contextlib
import http.client
import http.cookies
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

# A start replays at most one memtable of log; a slow disk or a tracer may stretch that.
READY_SECONDS = 60
# The server gives running requests 20 s at a stop, and then writes what is in memory.
STOP_SECONDS = 60
# Findings that are printed; the first ones tell the story.
FINDINGS_SHOWN = 20
LOG_LINES_READ, LOG_LINES_SHOWN = 2_000, 8
LAST_WORDS_BYTES = 2_000
# So that the rigs still run when limits are enforced: they measure other things.
RATE_LIMITS = ",".join(
    f"{name}=1000000"
    for name in ("ingest", "query", "embed", "sql", "management", "login", "register")
)


class Failed(Exception):
    """The rig cannot go on: the server ended, hung, or answered what it must never answer."""


class NotStarted(Failed):
    """The server ended before it was ready. `code` is its exit code, `said` its last words."""

    def __init__(self, code, said):
        super().__init__(f"the server ended with {code} before it was ready:\n{said}")
        self.code, self.said = code, said


class Skipped(Exception):
    """This machine lacks what the rig needs."""


class Gone(Exception):
    """The connection ended before the whole answer was there."""


# ---- The server ----------------------------------------------------------------------------------


class Server:
    """The binary on a data directory, on free ports of the loopback.

    `before` are words in front of the command, `environment` is added to the settings.
    """

    def __init__(self, binary, data, before=(), environment=None, log=None):
        self.log = log or data.with_name("server.log")
        settings = {k: v for k, v in os.environ.items() if not k.startswith("INLAY_")}
        settings |= {
            "INLAY_DATA_DIR": str(data),
            "INLAY_HTTP_ADDR": "127.0.0.1:0",
            "INLAY_GRPC_ADDR": "127.0.0.1:0",
            "INLAY_LOG": "warn",
            "INLAY_RATE_LIMITS": RATE_LIMITS,
            # Rigs that are not about SQL look at one process.
            "INLAY_SQL_IDLE_WORKERS": "0",
        } | (environment or {})
        started = time.monotonic()
        with open(self.log, "ab") as log_file:
            self.log_begin = log_file.tell()
            self.process = subprocess.Popen(
                [*before, binary, "serve"],
                env=settings, stdout=subprocess.PIPE, stderr=log_file, text=True,
            )  # fmt: skip
        self.pid = self.process.pid
        self.host = self.grpc = None

        # A start that hangs must not hang the rig.
        limit = threading.Timer(READY_SECONDS, self.process.kill)
        limit.start()
        try:
            self.host = self._wait_until_ready()
        finally:
            limit.cancel()
        self.ready_seconds = time.monotonic() - started

    def _wait_until_ready(self):
        for line in self.process.stdout:
            if "ready at http" in line:
                # A full pipe would stop the server one day.
                threading.Thread(target=self.process.stdout.read, daemon=True).start()
                self.grpc = line.partition("gRPC on ")[2].rstrip(")\n")
                return urllib.parse.urlsplit("http" + line.split("http", 1)[1].split()[0]).netloc
        code = self.process.wait()
        # The error comes first; a backtrace may follow.
        said = self.log.read_bytes()[self.log_begin :][:LAST_WORDS_BYTES]
        raise NotStarted(code, said.decode(errors="replace"))

    def metric(self, name, label=""):
        """The sum of the samples of `/metrics` whose names begin so and have the label."""
        _, _, text = Connection(self.host).fetch("GET", "/metrics")
        lines = (line.rsplit(" ", 1) for line in text.decode().splitlines() if line.startswith(name))
        return sum(float(value) for key, value in lines if label in key)

    def log_end(self):
        return self.log.read_text(errors="replace")[-LAST_WORDS_BYTES:]

    def expect_alive(self):
        """Nothing that a rig does may end the process, but the rig's own signals."""
        code = self.process.poll()
        if code is not None:
            raise Failed(f"the server ended by itself with {code}:\n{self.log_end()}")

    def kill(self):
        """SIGKILL, as at a moment that nobody chose."""
        self.expect_alive()
        self.end()

    def end(self):
        """Whatever state it is in: for the end of a rig."""
        if self.process.poll() is None:
            # A stopped process takes SIGKILL too.
            self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGTERM; the exit code."""
        self.process.terminate()
        try:
            return self.process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"the server still ran {STOP_SECONDS} s after SIGTERM") from None

    def memory_peak_mib(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1_024
        return 0


class Connection:
    """One connection, kept alive, with one key or session. It connects again after it was lost."""

    def __init__(self, host, key=None, timeout=60, session=None):
        self.connection = http.client.HTTPConnection(host, timeout=timeout)
        self.key, self.session = key, session

    def call(self, method, path, body=None):
        """Status, headers, and the parsed answer. Raises `Gone` when there is none."""
        status, headers, content = self.fetch(method, path, body)
        try:
            return status, headers, json.loads(content) if content else None
        except ValueError:
            # Something between here and the server has answered.
            return status, headers, content.decode(errors="replace")

    def fetch(self, method, path, body=None):
        """Status, headers, and the answer as it came. Raises `Gone` when there is none."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if self.session:
            headers["Cookie"] = f"service_session={self.session}"
        if isinstance(body, dict):
            body = json.dumps(body, separators=(",", ":"))
        try:
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Gone(f"{method} {path}: {error!r}") from None
        return answer.status, answer.headers, content

    def get(self, path, **parameters):
        """The answer to a question that must be answered."""
        if parameters:
            path += "?" + urllib.parse.urlencode(parameters, doseq=True)
        status, _, answer = self.call("GET", path)
        if status != 200:
            raise Failed(f"GET {path}: {status} {answer}")
        return answer

    def close(self):
        self.connection.close()


def register(host, name="rig"):
    """A fresh organisation; its admin key."""
    return register_with_session(host, name)[0]


def register_with_session(host, name):
    """A fresh organisation; its admin key, and the session of its owner."""
    account = {
        "email": f"{name}@example.com",
        "password": "a rig on the loopback",
        "name": name,
        "org_name": name,
    }
    status, headers, answer = Connection(host).call("POST", "/v1/auth/register", account)
    if status != 201:
        raise Failed(f"register: {status} {answer}")
    session = http.cookies.SimpleCookie(headers.get("Set-Cookie", ""))["service_session"].value
    return answer["api_key"]["key"], session


# ---- One run -------------------------------------------------------------------------------------


class Rig:
    """What a rig is given: its arguments, its folder, and the stack of what must be undone."""

    def __init__(self, arguments, folder, stack):
        self.arguments = arguments
        self.folder = folder
        self.stack = stack
        self.random_seed = arguments.seed

    def start(self, data=None, stack=None, **more):
        """A server that ends with the rig, or with a part of it that has a stack of its own."""
        server = Server(self.arguments.binary, data or self.folder / "data", **more)
        (stack or self.stack).callback(server.end)
        return server


def main(name, story, run, add_options=lambda parser: None):
    """Runs a rig: `run(rig)` gives the findings, and one line of numbers."""
    parser = argparse.ArgumentParser(description=story.partition("\n\n")[0])
    parser.add_argument("binary", type=lambda text: str(pathlib.Path(text).resolve(strict=True)))
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn by lot")
    parser.add_argument("--dir", help="where the folder of the run is made")
    parser.add_argument(
        "--sabotage",
        choices=("lose", "double", "tear"),
        help="spoil the ledger on purpose: the rig must fail",
    )
    add_options(parser)
    arguments = parser.parse_args()

    # Undo everything when asked to end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"rig-{name}-", dir=arguments.dir))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            wrong, summary = run(Rig(arguments, folder, stack))
            wrong = wrong + panics(folder)
        except Skipped as reason:
            print(f"{name}: skipped: {reason}")
            return
        except (Failed, Gone) as failure:
            wrong, summary = [str(failure), *panics(folder)], "did not finish"
        last_words = ends_of_logs(folder) if wrong else []
    seconds = time.monotonic() - started
    for finding in wrong[:FINDINGS_SHOWN]:
        print("  WRONG", finding)
    for line in last_words:
        print("  LOG", line)
    if wrong:
        print(f"WRONG {name}: {len(wrong)} findings; {summary}; {seconds:.1f} s", flush=True)
        # Clients of a run that has broken off may go on, and nobody would wait for them.
        os._exit(1)
    print(f"{name}: {summary}; {seconds:.1f} s")


def panics(folder):
    """A panic is a finding, even where the process went on."""
    logs = [log.read_text(errors="replace") for log in folder.rglob("*.log")]
    return [finding for log in logs for finding in panics_in(log)]


def panics_in(log):
    lines = [each for each in log.splitlines() if "panicked" in each or "stack overflow" in each]
    return [f"the log says: {line[:300]}" for line in lines]


def ends_of_logs(folder):
    """What the servers said at last, once each: many lines differ in time and request only."""
    kept = {}
    for log in sorted(folder.rglob("*.log")):
        for line in log.read_text(errors="replace").splitlines()[-LOG_LINES_READ:]:
            kept[line.partition("cause=")[2] or line[28:90]] = f"{log.name}: {line}"
    return list(kept.values())[-LOG_LINES_SHOWN:]
