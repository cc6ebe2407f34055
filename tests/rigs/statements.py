#!/usr/bin/env python3
"""Statements that want more than they may are refused or bounded, and nobody else notices.

`attacks.py` has them. One organisation sends them, three at a time, of which one waits or is refused and sent again, as
is one that needs memory which another statement has; another organisation has events with markers, which no answer may
hold. A third asks small questions meanwhile, of which one in a hundred may take twice as long as before, or a
millisecond longer, and sends a statement now and then, which must be answered. The server's process must stay the
same, its memory and that of its workers within their limits, and no answer may come later than the limit and a second.

With `--sabotage` an honest statement counts as one that must be refused: the rig must fail.
"""

import contextlib
import json
import multiprocessing
import pathlib
import re
import statistics
import threading
import time

import attacks
from common import Connection, Failed, main, register

EVENTS = 6_000
LIMIT_MS = 3_000
# An answer is made, read and checked after the limit.
LATE_SECONDS = 1.0
WORKER_MIB_MAX = 1_400
SERVER_MIB_MORE = 150
AT_ONCE = 3
REFUSALS = ("invalid_sql", "query_timeout", "query_too_large")
# Said to a statement that would have got the memory that it needs if it ran alone.
MEMORY_IS_TAKEN = b"other statements have the memory that it needs"
# A value of another organisation; a statement may hold the word itself.
MARKER = re.compile(rb"marker\d")


def options(parser):
    parser.add_argument("--limit-ms", type=int, default=LIMIT_MS)
    parser.add_argument("--slack-ms", type=float, default=1, help="others may wait so much longer in any case; more beside other rigs")
    parser.add_argument("--part", type=int, default=1, help="every so manieth statement only")


def fill(host, key, word):
    connection = Connection(host, key)
    for start in range(0, EVENTS, 1_000):
        events = [
            {"event_name": f"{word}_call", "tenant_id": f"{word}{n % 9}", "user_id": f"{word}{n % 997}", "event_id": f"{word}-{n}",
             "string_props": {"a": f"{word}{n % 7}", f"{word}_prop": "x"}, "numeric_props": {"ms": n % 977}}
            for n in range(start, start + 1_000)
        ]  # fmt: skip
        status, _, answer = connection.call("POST", "/v1/events", {"events": events})
        if status != 200:
            raise Failed(f"events: {status} {answer}")


def children(pid):
    """Processes that this one has started, as the kernel tells of them."""
    found = []
    for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(status, thread.read_text().split())
    return list(filter(None, found))


def status(pid):
    with contextlib.suppress(OSError):
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        return dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return None


def workers(pid):
    """Processes that answer statements: copies of the template, which is the server's child."""
    return [worker for template in children(pid) for worker in children(int(template["Pid"]))]


def mib(lines, name):
    return int(lines.get(name, "0 kB").split()[0]) // 1_024


def ask(host, key, is_over, told):
    """Asks small questions as somebody else, in a process of its own: attackers keep this one busy."""
    connection, took = Connection(host, key), []
    while not is_over.wait(0.005):
        began = time.monotonic()
        connection.get("/v1/query", tenant_id="quiet1", event_name="quiet_call", metric="p95", numeric_prop="ms", period="24h")
        took.append((time.monotonic() - began) * 1_000)
    told.put(took)


class Asking:
    """Somebody else, from now on."""

    def __init__(self, server, key):
        self.is_over, self.told = multiprocessing.Event(), multiprocessing.Queue()
        self.process = multiprocessing.Process(target=ask, args=(server.host, key, self.is_over, self.told))
        self.process.start()

    def p99(self):
        """What one in a hundred questions took, in milliseconds."""
        self.is_over.set()
        took = self.told.get(timeout=60)
        self.process.join()
        return statistics.quantiles(took[100:], n=100)[98]


def watch(server, is_over, peak):
    """Looks at the memory of workers."""
    while not is_over.wait(0.2):
        peak[0] = max([peak[0], *(mib(worker, "RssAnon") for worker in workers(server.pid))])


class Analyst(threading.Thread):
    """Somebody else's honest statements, which find a place."""

    def __init__(self, server, key):
        super().__init__()
        self.connection, self.is_over = Connection(server.host, key), threading.Event()
        self.wrong, self.took = [], []

    def run(self):
        while not self.is_over.wait(0.5):
            began = time.monotonic()
            status, _, answer = self.connection.call("POST", "/v1/query/adhoc", {"sql": "SELECT count(*) FROM events"})
            self.took.append(time.monotonic() - began)
            if status != 200 or answer["rows"] != [[EVENTS]]:
                self.wrong.append(f"somebody else's statement: {status} {answer}")


class Attack:
    """Sends statements, and judges what comes back."""

    def __init__(self, rig, server, key):
        self.rig, self.server, self.key = rig, server, key
        self.wrong, self.slowest, self.counts, self.waited = [], 0.0, {}, 0
        self.left = [each for n, each in enumerate(attacks.corpus()) if n % rig.arguments.part == 0]
        self.count = len(self.left)
        if rig.arguments.sabotage:
            self.left.insert(0, ("no", "SELECT 1"))
        self.lock = threading.Lock()

    def run(self):
        connection = Connection(self.server.host, self.key)
        while True:
            with self.lock:
                if not self.left:
                    return
                verdict, statement = self.left.pop(0)
            began = time.monotonic()
            status, _, content = connection.fetch("POST", "/v1/query/adhoc", {"sql": statement})
            took = time.monotonic() - began
            if status == 429 or status == 503 and MEMORY_IS_TAKEN in content:
                # Its turn comes later, and the refusal came in time.
                with self.lock:
                    self.waited += 1
                    self.left.append((verdict, statement))
                    if took > self.rig.arguments.limit_ms / 1_000:
                        self.wrong.append(f"{took:.1f} s to a {status}")
                continue
            with self.lock:
                self.judge(verdict, statement, status, content, took)

    def judge(self, verdict, statement, status, content, took):
        # What is answered is not parsed: of 16 MiB that would keep a processor busy, which is not the server's doing.
        answer = {} if status == 200 else json.loads(content)
        if status == 200 and not (content.startswith(b'{"columns":') and content.endswith(b"}}")):
            self.wrong.append(f"an answer without its end: {statement[:100]}")
        shown = statement[:100] + ("…" if len(statement) > 100 else "")
        code = answer.get("code", "answered")
        self.counts[code] = self.counts.get(code, 0) + 1
        self.slowest = max(self.slowest, took)
        if took > self.rig.arguments.limit_ms / 1_000 + LATE_SECONDS:
            self.wrong.append(f"{took:.1f} s: {shown}")
        if status == 200 and MARKER.search(content) and not MARKER.search(statement.encode()):
            self.wrong.append(f"another one's events: {shown}")
        fits = {
            "no": status == 400 and code in ("invalid_sql", "invalid_field"),
            "some": status == 200 or status == 400 and code in REFUSALS,
            "yes": status == 200,
        }
        if not fits[verdict]:
            self.wrong.append(f"{status} {code} where {verdict} was expected: {shown}: {str(answer)[:200]}")


def run(rig):
    # A worker may have 512 MiB and 1,075 MiB more of these, whatever the machine has.
    memory = {"INLAY_MEMORY_MB": "8192"}
    settings = {"INLAY_QUERY_MS_MAX": str(rig.arguments.limit_ms), "INLAY_SQL_IDLE_WORKERS": "2"} | memory
    server = rig.start(environment=settings)
    keys = {word: register(server.host, word) for word in ("attacker", "marker", "quiet")}
    for word, key in keys.items():
        fill(server.host, key, word)
    asking = Asking(server, keys["quiet"])
    time.sleep(4)
    before, asking = asking.p99(), Asking(server, keys["quiet"])
    memory, peak, is_over = server.memory_peak_mib(), [0], threading.Event()
    watching = threading.Thread(target=watch, args=(server, is_over, peak))
    watching.start()
    analyst = Analyst(server, keys["quiet"])
    analyst.start()
    attack = Attack(rig, server, keys["attacker"])
    attackers = [threading.Thread(target=attack.run) for _ in range(AT_ONCE)]
    for attacker in attackers:
        attacker.start()
    for attacker in attackers:
        attacker.join()
    for each in (is_over, analyst.is_over):
        each.set()
    watching.join()
    analyst.join()
    wrong, during = attack.wrong + analyst.wrong, asking.p99()
    server.expect_alive()

    more = server.memory_peak_mib() - memory
    if attack.count != sum(attack.counts.values()) - bool(rig.arguments.sabotage):
        wrong.append(f"{attack.count} statements and {attack.counts} answers")
    if not 0 < peak[0] <= WORKER_MIB_MAX:
        wrong.append(f"a worker had {peak[0]} MiB")
    if more > SERVER_MIB_MORE:
        wrong.append(f"the server took {more} MiB more")
    # A quick answer takes a millisecond; what is added to it by a processor that is busy is as much again, or a little more.
    if during > max(2 * before, before + rig.arguments.slack_ms):
        wrong.append(f"others waited {during:.1f} ms instead of {before:.1f} ms")
    time.sleep(1)
    waiting = workers(server.pid)
    if len(waiting) > 2:
        wrong.append(f"{len(waiting)} workers are left")
    idle = max((mib(worker, "RssAnon") for worker in waiting), default=0)
    if server.stop() != 0:
        wrong.append("the server did not end well")
    told = ", ".join(f"{count} {code}" for code, count in sorted(attack.counts.items()))
    return wrong, (
        f"{attack.count} statements: {told}; the slowest {attack.slowest:.1f} s of {rig.arguments.limit_ms / 1_000:.0f} s; workers had "
        f"{peak[0]} MiB at most and {idle} MiB while they wait, the server {more} MiB more; "
        f"{attack.waited} sent again; an honest one in {statistics.median(analyst.took) * 1_000:.0f} ms, {max(analyst.took):.1f} s at most; others' p99 {before:.1f} ms before and {during:.1f} ms meanwhile"
    )


if __name__ == "__main__":
    main("statements", __doc__, run, options)
