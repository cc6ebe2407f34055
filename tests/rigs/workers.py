#!/usr/bin/env python3
"""What becomes of the processes that answer SQL, whatever happens to them, to the server and to who asks.

Workers wait with the segments of who asked last: the next statement of that organisation runs there and sees what came
since, that of another one does not. Workers that wait are killed: the next statement is answered. One that computes is killed: a clear error. The process that they are copies of is killed: they end with it, and the
next statement is answered; that process hangs: another one takes its place. A client goes away,
with a name for its request and without: the worker ends. The server is killed: the worker ends by itself, in time. Many
clients ask for large answers and read nothing: the server's memory stays, and others are answered. The server is started
where processes get little memory: its workers start all the same, or statements are refused and the log says why. Code is in
huge pages where there is much memory, and else is not. A statement that needs more memory than a worker has is granted it where the server has
some, and a grant comes back, however the statement ends.

    python3 tests/rigs/workers.py PATH/TO/inlay
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import threading
import time

from common import Connection, main, register
from statements import children, fill, workers

LIMIT_MS = 3_000
ENDED_SECONDS = 1.5
# A worker waits with segments so long.
AHEAD_SECONDS = 30
# Clients that read nothing, of two organisations; what their answers may take of the server's memory.
IDLERS = 24
UNREAD_MIB_MAX = 150
LARGE = "SELECT concat(a.event_id, '" + "x" * 2_600 + "') AS x FROM events a"
SLOW = "SELECT max(levenshtein(concat(a.event_id, a.event_name, a.timestamp), concat(b.event_id, b.timestamp))) FROM events a JOIN events b ON a.event_name = b.event_name"

# Four million rows in an order: more than a worker begins with.
SORTED = "SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY a.timestamp, b.event_id) AS r FROM events a JOIN events b ON a.tenant_id = b.tenant_id) x WHERE r > 0"
PAIRS = "SELECT count(*) FROM events a JOIN events b ON a.tenant_id = b.tenant_id"


def wait_for(what, seconds):
    """Whether something becomes true within so many seconds."""
    limit = time.monotonic() + seconds
    while not what():
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


def busy(server):
    """Process ids of workers that have computed for a while."""
    return [pid for pid in map(pid_of, workers(server.pid)) if cpu_seconds(pid) > 0.4]


def huge_mib(pid):
    """How much code of a process is in huge pages; nothing is known of one that has ended."""
    mib, is_code = 0, False
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps") as mappings:
        for line in mappings:
            if " r-xp " in line:
                is_code = True
            elif is_code and line.startswith("AnonHugePages"):
                mib, is_code = mib + int(line.split()[1]) // 1_024, False
        return mib
    return None


def code(server, is_huge):
    """Workers have their code in huge pages, which the template copied it to, where there is memory for it."""
    setting = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    is_huge = is_huge and setting.exists() and "[never]" not in setting.read_text()
    for process in map(pid_of, [*children(server.pid), *workers(server.pid)]):
        mib = huge_mib(process)
        if mib is not None and (mib > 0) != is_huge:
            yield f"{mib} MiB of code in huge pages"


def pid_of(lines):
    return int(lines["Pid"])


def cpu_seconds(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / 100


def is_there(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] != "Z"
    return False


def ask(server, key, sql):
    status, _, answer = Connection(server.host, key).call("POST", "/v1/query/adhoc", {"sql": sql})
    return status, answer


def send(server, key, sql, *headers, receive_bytes=None):
    """Asks, and leaves the answer where it is."""
    body = json.dumps({"sql": sql})
    host, port = server.host.split(":")
    connection = socket.socket()
    if receive_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.connect((host, int(port)))
    lines = ["POST /v1/query/adhoc HTTP/1.1", f"Host: {server.host}", f"Authorization: Bearer {key}",
             "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]  # fmt: skip
    connection.sendall(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
    return connection


def with_segments(server):
    """Workers that have segments open, by process id."""
    found = []
    for pid in map(pid_of, workers(server.pid)):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as maps:
            if ".seg" in maps.read():
                found.append(pid)
    return found


def opened_ahead(server, keys):
    """Segments are open before the statement comes, for one organisation only, and nothing is seen twice or too late."""
    first, second = keys[:2]
    count = "SELECT count(*) AS n, count(DISTINCT tenant_id) AS t FROM events"

    def counted(key):
        status, answer = ask(server, key, count)
        return answer["rows"][0] if status == 200 else (status, answer)

    before, other = counted(first), counted(second)
    # Workers that answered have segments too, until they have ended.
    time.sleep(ENDED_SECONDS)
    if not wait_for(lambda: len(with_segments(server)) == 2, 5):
        return [f"{len(with_segments(server))} workers wait with segments, not 2"]
    waiting, wrong = set(with_segments(server)), []
    event = {"event_id": "ahead", "tenant_id": "ahead", "event_name": "ahead", "timestamp": "2026-11-01T00:00:00Z"}
    status, _, answer = Connection(server.host, first).call("POST", "/v1/events", {"events": [event]})
    if status != 200 or answer["accepted"] != 1:
        wrong.append(f"the event was not taken: {status} {answer}")
    after = counted(first)
    if list(after) != [before[0] + 1, before[1] + 1]:
        wrong.append(f"{before} became {after}")
    if counted(second) != other:
        wrong.append("another organisation's count changed")
    if not wait_for(lambda: not waiting & set(map(pid_of, workers(server.pid))), ENDED_SECONDS):
        wrong.append("who waited with segments was not asked")
    if not wait_for(lambda: len(with_segments(server)) == 2, 5):
        wrong.append("nobody waits with segments again")
    if not wait_for(lambda: not with_segments(server), AHEAD_SECONDS + 5):
        wrong.append("workers keep segments open for nobody")
    return wrong


def opened_by_new_ones(rig, server, keys, settings):
    """Where statements leave no idle worker, a new one opens the segments."""
    for _ in range(3):
        server.stop()
        server = rig.start(environment=settings | {"INLAY_SQL_IDLE_WORKERS": "1"})
        for key in keys[:2]:
            ask(server, key, "SELECT count(*) FROM events")
        time.sleep(ENDED_SECONDS)
        if not wait_for(lambda server=server: len(with_segments(server)) == 2, 5):
            yield f"of one idle worker, {len(with_segments(server))} wait with segments, not 2"
    server.stop()


def killed(server, key):
    ask(server, key, "SELECT count(*) FROM events")
    if not wait_for(lambda: with_segments(server), 5):
        yield "nobody waits with segments to be killed"
    waiting = list(map(pid_of, workers(server.pid)))
    for pid in waiting:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(map(is_there, waiting)), ENDED_SECONDS)
    status, answer = ask(server, key, "SELECT count(*) FROM events")
    if status != 200:
        yield f"after workers that waited were killed: {status} {answer}"
    told = []
    asking = threading.Thread(target=lambda: told.append(ask(server, key, SLOW)))
    asking.start()
    if not wait_for(lambda: busy(server), LIMIT_MS / 1_000):
        yield "no worker computes"
    for pid in busy(server):
        os.kill(pid, signal.SIGKILL)
    asking.join()
    status, answer = told[0]
    if status != 400 or answer["code"] != "query_too_large":
        yield f"a worker killed while it computed: {status} {answer}"


def template_killed(server, key):
    """The process that workers are copies of ends, and with it all of them."""
    told = []
    asking = threading.Thread(target=lambda: told.append(ask(server, key, SLOW)))
    asking.start()
    if not wait_for(lambda: busy(server), LIMIT_MS / 1_000):
        yield "no worker computes"
    yield from modest(server)
    template, all_workers = children(server.pid), list(map(pid_of, workers(server.pid)))
    if len(template) != 1:
        yield f"{len(template)} templates"
    for pid in map(pid_of, template):
        threads = os.listdir(f"/proc/{pid}/task")
        if len(threads) != 1:
            yield f"the template has {len(threads)} threads"
        os.kill(pid, signal.SIGKILL)
    if not wait_for(lambda: not any(map(is_there, all_workers)), ENDED_SECONDS):
        yield "workers live on without a template"
    asking.join()
    if told[0][0] != 500:
        yield f"a statement whose template was killed: {told[0]}"
    for _ in range(3):
        status, answer = ask(server, key, "SELECT count(*) FROM events")
        if status != 200:
            yield f"after the template was killed: {status} {answer}"


def template_hangs(server, key):
    """It is there and does nothing: another one takes its place, and statements are answered."""
    template = children(server.pid)[0]["Pid"]
    os.kill(int(template), signal.SIGSTOP)
    # Workers that wait are copied already, and each statement has another one opened ahead: how many are answered before
    # the first that needs a new copy depends on the machine. That statement times out, and the next one may as well.
    refused = 0
    for _ in range(12):
        status, answer = ask(server, key, "SELECT count(*) FROM events")
        refused += status != 200
        if status == 200 and any(child["Pid"] != template for child in children(server.pid)):
            break
    else:
        yield f"a template that hangs has no successor: {status} {answer}"
    if not wait_for(lambda: not is_there(template), ENDED_SECONDS):
        yield "a template that hangs is left alone"
    for _ in range(3):
        status, answer = ask(server, key, "SELECT count(*) FROM events")
        refused += 3 * (status != 200)
    if refused > 2:
        yield f"beside a template that hangs: {refused} statements refused, the last with {status} {answer}"


def modest(server):
    """What copies may take, and how urgent they are, while one of them computes; the template lives as long as the server."""
    found = workers(server.pid)
    if len(found) < 2:
        yield f"{len(found)} workers, not one that computes and one that waits"
    for pid in map(pid_of, found):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat") as stat:
                nice = int(stat.read().rpartition(")")[2].split()[16])
            if nice != 13:
                yield f"a thread of a worker has niceness {nice}"
        with open(f"/proc/{pid}/oom_score_adj") as score:
            if int(score.read()) != 1_000:
                yield "a worker is not the first to go"
        if limits(pid, "cpu time") != "60" or limits(pid, "data size") == "unlimited":
            yield "a worker may take what it likes"
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        if descriptors > 12:
            yield f"a worker has {descriptors} descriptors"
    for pid in map(pid_of, children(server.pid)):
        if limits(pid, "cpu time") != "unlimited":
            yield "the template's time will be over"


def limits(pid, name):
    with open(f"/proc/{pid}/limits") as lines:
        return next(line.split()[-3] for line in lines if name in line)


def left_alone(server, key):
    for headers in ([], ["Accept: application/x-ndjson"], ["Idempotency-Key: a statement"]):
        connection = send(server, key, SLOW, *headers)
        if not wait_for(lambda: busy(server), LIMIT_MS / 1_000):
            yield "no worker computes"
        connection.close()
        if not wait_for(lambda: not busy(server), ENDED_SECONDS):
            yield f"a worker computes on for nobody: {headers}"


def unread(server, keys):
    before = server.memory_peak_mib()
    open_ones = []
    for n in range(IDLERS):
        open_ones.append(send(server, keys[n % 2], LARGE, receive_bytes=4_096))
        time.sleep(0.25)
    more = server.memory_peak_mib() - before
    if more > UNREAD_MIB_MAX:
        yield f"answers that nobody reads took {more} MiB"
    status, answer = ask(server, keys[2], "SELECT count(*) FROM events")
    if status != 200:
        yield f"while others do not read: {status} {answer}"
    for connection in open_ones:
        connection.close()
    if not wait_for(lambda: ask(server, keys[0], "SELECT 1")[0] == 200, 5):
        yield "who has gone still holds his place"


def orphaned(rig, server, key):
    """Kills the server; the next one has the same data."""
    connection = send(server, key, SLOW)
    if not wait_for(lambda: busy(server), LIMIT_MS / 1_000):
        yield "no worker computes"
    processes = [*map(pid_of, workers(server.pid)), *map(pid_of, children(server.pid))]
    server.kill()
    if not wait_for(lambda: not any(map(is_there, processes)), LIMIT_MS / 1_000 + 1):
        yield f"workers live on without a server: {[pid for pid in processes if is_there(pid)]}"
    connection.close()


def little(rig, key):
    """Little memory for any process: enough, and not enough."""
    for mib, expected in ((512, 200), (100, 503)):
        limit = ["prlimit", f"--data={mib << 20}:{mib << 20}"]
        data = rig.folder / f"little-{mib}"
        server = rig.start(data=data, before=limit, log=rig.folder / f"little-{mib}.log",
                           environment={"INLAY_SQL_IDLE_WORKERS": "16", "INLAY_MEMORY_MB": "256"})  # fmt: skip
        own = register(server.host, "little")
        status, answer = ask(server, own, "SELECT 1")
        if status != expected:
            yield f"with {mib} MiB: {status} {answer}: {server.log_end()[-300:]}"
        yield from code(server, is_huge=False)
        time.sleep(1)
        before = cpu_seconds(server.pid)
        time.sleep(1)
        if cpu_seconds(server.pid) - before > 0.5:
            yield f"with {mib} MiB the server is busy starting workers"
        if expected == 503 and "cannot start" not in server.log_end():
            yield "the log does not say why there are no workers"
        processes = [*map(pid_of, workers(server.pid)), *map(pid_of, children(server.pid))]
        server.end()
        if not wait_for(lambda: not any(map(is_there, processes)), ENDED_SECONDS):
            yield f"with {mib} MiB processes live on without a server"


def granted(rig, key):
    """A server with memory to grant."""
    settings = {"INLAY_QUERY_MS_MAX": "10000", "INLAY_SQL_IDLE_WORKERS": "2", "INLAY_MEMORY_MB": "12288"}
    server = rig.start(environment=settings)
    pairs = ask(server, key, PAIRS)[1]["rows"]
    for _ in range(3):
        status, answer = ask(server, key, SORTED)
        if status != 200 or answer["rows"] != pairs:
            yield f"a statement that needs more memory: {status} {answer}"
        # One that goes away, with what it has got by then.
        connection = send(server, key, SORTED)
        wait_for(lambda: busy(server), 1)
        connection.close()
        if not wait_for(lambda: not busy(server), ENDED_SECONDS):
            yield "a statement with more memory goes on without its client"
    server.end()


def run(rig):
    settings = {"INLAY_QUERY_MS_MAX": str(LIMIT_MS), "INLAY_SQL_IDLE_WORKERS": "2", "INLAY_MEMORY_MB": "4096"}
    server = rig.start(environment=settings)
    keys = [register(server.host, word) for word in ("first", "second", "third")]
    for key, word in zip(keys, ("first", "second", "third"), strict=True):
        fill(server.host, key, word)
    # A stop writes segments.
    wrong = list(opened_by_new_ones(rig, server, keys, settings))
    server = rig.start(environment=settings)
    wait_for(lambda: workers(server.pid), LIMIT_MS / 1_000)
    wrong += [*code(server, is_huge=True), *opened_ahead(server, keys), *killed(server, keys[0]), *template_killed(server, keys[0]),
             *template_hangs(server, keys[0]), *left_alone(server, keys[0])]
    before = server.memory_peak_mib()
    wrong += unread(server, keys)
    more = server.memory_peak_mib() - before
    status, answer = ask(server, keys[0], SORTED)
    if (status, answer.get("code")) != (400, "query_too_large"):
        wrong.append(f"more memory than there is: {status} {answer}")
    server.expect_alive()
    wrong += orphaned(rig, server, keys[0])
    wrong += granted(rig, keys[0])
    wrong += little(rig, keys[0])
    return wrong, f"{IDLERS} clients that do not read took {more} MiB"


if __name__ == "__main__":
    main("workers", __doc__, run)
