#!/usr/bin/env python3
"""Three processes with one store, and everything that may happen to them.

Clients send batches to any of the three, and each answer goes into the ledger. Two more send one event to one
process and ask another at once: what was acknowledged there has to be seen here. Meanwhile processes are
killed, with or without their directory; stopped for longer than a lease, and woken up; cut off from all others, or from the
database and the bucket; the database itself fails over to its synchronous standby; and the bucket fails one call
in fifty. A process that ends by itself, because another one leads, is started again as a supervisor would. Meanwhile an alert rule
fires for a tenant at each fault.

Each process is in a network of its own where the machine allows that, and half of the cuts pull its cable; the others are made by
proxies.

    python3 tests/rigs/nodes.py PATH/TO/inlay [--kills 6 --pauses 2 --cuts 2 --failovers 1]

From time to time clients stop, and each process is compared with the ledger: every acknowledged event once, every
other batch whole or not at all; and every alert has fired once, and its notification has arrived. Writes may pause for as long as a lease and a take-over.
"""

import collections
import os
import random
import shutil
import signal
import threading
import time

from alarms import SETTINGS, Alarms
from common import Connection, Failed, Gone, NotStarted, Server, main, register
from ledger import Ledger, summary
from network import Network
from proxy import Proxy
from services import Bucket, Pair, environment

NODES = ("a", "b", "c")
WRITERS, WATCHERS = 4, 2
# A client gives up a process that stands still, and tries another one.
PATIENCE_SECONDS, READ_PATIENCE_SECONDS = 4, 2
# So long a balancer sends nothing to a process that did not answer.
AVOIDED_SECONDS = 1
# Between two faults.
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.2, 2.5
# Longer than a lease of six seconds.
STOPPED_SECONDS_MIN, STOPPED_SECONDS_MAX = 6.5, 9.0
# Without the time that the database needs for itself: here it is made anew on two busy cores.
BUCKET_FAILURE = 0.02
# Of other processes, after each fault: fewer would show little.
READS_MIN = 5
ALARM_ATTEMPTS = 600
# Then everybody is compared with the ledger.
ROUND = 12
SETTLED_SECONDS = 60
EVENT = "seen"


def options(parser):
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--pauses", type=int, default=2)
    parser.add_argument("--cuts", type=int, default=2)
    parser.add_argument("--failovers", type=int, default=1)
    # A lease, its margin, and the way to the next process: ten on a machine that does nothing else.
    parser.add_argument("--pause-seconds", type=float, default=25)
    parser.add_argument("--cache-mb", type=int, help="how much of the files each may have on its disk; all of them without it")
    parser.add_argument("--apart", action="store_true", help="all are ready again before the next fault: pauses are those of one")
    parser.add_argument("--rate", type=float, default=0, help="batches a second of each writer; as many as it can where it is 0")


def run(rig):
    cluster = Cluster(rig)
    arguments = rig.arguments
    faults = ["kill"] * arguments.kills + ["pause"] * arguments.pauses
    faults += ["cut"] * arguments.cuts + ["failover"] * arguments.failovers
    cluster.lots.shuffle(faults)
    for first in range(0, len(faults), ROUND):
        cluster.round(faults[first : first + ROUND])
        if cluster.wrong():
            break
    if max(cluster.writes.longest, cluster.writes.of_failovers) > arguments.pause_seconds:
        cluster.found.append("writes paused for longer")
    if max(cluster.reads.longest, cluster.reads.of_failovers) > arguments.pause_seconds:
        cluster.found.append("reads paused for longer")
    if sum(one.asked for one in cluster.watched) < READS_MIN * len(faults):
        cluster.found.append("hardly any read of another process was answered")
    return cluster.wrong(), cluster.summary()


class Node:
    """One process, started again whenever it has ended."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        self.data = cluster.rig.folder / f"data {name}"
        self.log = cluster.rig.folder / f"{name}.log"
        self.link = cluster.network.link(name) if cluster.network else None
        self.address, address = self.link.address if self.link else "127.0.0.1", cluster.address
        self.database = Proxy(cluster.rig, lambda: ("127.0.0.1", cluster.postgres.port), address=address)
        self.files = Proxy(cluster.rig, lambda: ("127.0.0.1", cluster.bucket.port), seed=name, address=address)
        self.files.failure = BUCKET_FAILURE
        # Where the other processes reach it.
        self.own = Proxy(cluster.rig, lambda: (self.address, self._port()), address=address)
        self.server, self.is_wanted = None, True
        self.starts = self.own_ends = 0
        self.thread = threading.Thread(target=self._supervise)
        self.thread.start()
        cluster.rig.stack.callback(self.end)

    def settings(self):
        address = self.cluster.address
        url = f"postgres://inlay@{address}:{self.database.port}/inlay?sslmode=disable"
        bucket = f"s3://rig/prefix?region=us-east-1&endpoint=http://{address}:{self.files.port}"
        cache_mb = self.cluster.rig.arguments.cache_mb
        bound = {"INLAY_CACHE_MB": str(cache_mb)} if cache_mb else {}
        return environment(self.cluster.postgres, self.cluster.bucket) | SETTINGS | {
            "INLAY_METADATA_URL": url,
            "INLAY_EVENTS_URL": bucket,
            "INLAY_NODE_URL": f"http://{address}:{self.own.port}",
            "INLAY_HTTP_ADDR": f"{self.address}:0",
        } | bound

    def _port(self):
        server = self.server
        return int(server.host.rpartition(":")[2]) if server else 1

    def _supervise(self):
        while self.is_wanted:
            try:
                server = Server(
                    self.cluster.rig.arguments.binary,
                    self.data,
                    before=self.link.command if self.link else (),
                    environment=self.settings(),
                    log=self.log,
                )
            except (NotStarted, OSError):
                # The database is away, or the bucket failed: a supervisor tries again.
                time.sleep(0.5)
                continue
            self.server = server
            self.starts += 1
            code = server.process.wait()
            self.server = None
            if code != -signal.SIGKILL and self.is_wanted:
                self.own_ends += 1
            time.sleep(0.1)

    def kill(self, with_directory):
        if server := self.server:
            server.process.kill()
            server.process.wait()
            if with_directory:
                shutil.rmtree(self.data, ignore_errors=True)
            return True
        return False

    def leads(self):
        """Whether it says so."""
        server = self.server
        if server is None:
            return False
        try:
            return Connection(server.host, timeout=2).fetch("GET", "/leaderz")[0] == 200
        except Gone:
            return False

    def end(self):
        self.is_wanted = False
        for proxy in (self.database, self.files, self.own):
            proxy.mend()
        if self.link:
            self.link.mend()
        if server := self.server:
            server.end()
        self.thread.join()


class Cluster:
    """The processes, their database and bucket, and the clients."""

    def __init__(self, rig):
        self.rig = rig
        self.lots = random.Random(rig.random_seed)
        self.postgres, self.bucket = Pair(rig), Bucket(rig)
        self.network = Network(rig) if Network.is_possible() else None
        self.address = self.network.address if self.network else "127.0.0.1"
        self.alarms = Alarms(rig, self.address)
        self.ledger = Ledger(rig.folder / "ledger.jsonl")
        self.seen = collections.Counter()
        self.found = []
        self.writes, self.reads = Pauses(), Pauses()
        self.nodes = [Node(self, name) for name in NODES]
        self.settle()
        self.key = register(self.some_host())
        self.watched = [Watched(f"watched {number}") for number in range(WATCHERS)]

    def wrong(self):
        return self.ledger.wrong + self.found

    def summary(self):
        ends = sum(node.own_ends for node in self.nodes)
        failures = sum(node.files.failures for node in self.nodes)
        seen, watched = self.seen, sum(one.asked for one in self.watched)
        return (
            f"{seen['kill']} kills ({seen['leader killed']} of a leader, {seen['directories']} with the directory), "
            f"{seen['pause']} pauses, {seen['cut']} cuts ({seen['cable pulled']} of a cable), {seen['failover']} failovers, {failures} failures of the bucket, "
            f"{ends} processes ended by themselves, {summary(self.ledger.seen)}, "
            f"{watched:,} reads of another process, {self.alarms.fired} alerts fired ({self.alarms.doubled} notifications doubled); "
            f"longest pause of writes {self.writes}, of reads {self.reads}"
        )

    def some_host(self, lots=None):
        """Any process that runs."""
        running = [server.host for node in self.nodes if (server := node.server)]
        return (lots or self.lots).choice(running) if running else None

    def settle(self):
        """Until all three are ready, and one of them leads."""
        limit = time.monotonic() + SETTLED_SECONDS
        while time.monotonic() < limit:
            try:
                hosts = [node.server.host for node in self.nodes if node.server]
                ready = [Connection(host, timeout=5).fetch("GET", "/readyz")[0] for host in hosts]
                leading = sum(node.leads() for node in self.nodes)
                if ready == [200] * len(NODES) and leading == 1:
                    return
            except (Gone, AttributeError):
                pass  # one of them is starting
            time.sleep(0.1)
        raise Failed(f"the processes were not ready after {SETTLED_SECONDS} s")

    # ---- One round ---------------------------------------------------------------------------

    def round(self, faults):
        self.stopping = threading.Event()
        self.writes.done(), self.reads.done()
        self.is_failing_over = False
        self.patience = PATIENCE_SECONDS
        self.alarms.begin(self.some_host(), self.key)
        self.may_send = threading.Event()
        self.may_send.set()
        clients = [
            threading.Thread(target=self._write, args=(self.lots.random(),)) for _ in range(WRITERS)
        ]
        clients += [
            threading.Thread(target=self._watch, args=(one, self.lots.random()))
            for one in self.watched
        ]
        clients.append(threading.Thread(target=self._read, args=(self.lots.random(),)))
        clients.append(threading.Thread(target=self._time_pauses))
        for client in clients:
            client.start()
        try:
            self._inject(faults, clients)
            self.settle()
        finally:
            self.stopping.set()
            self.may_send.set()
            for client in clients:
                client.join()
        # What a client has given up may still be carried out.
        time.sleep(1)
        self._compare()

    def _inject(self, faults, clients):
        for fault in faults:
            alarm = threading.Thread(target=self._alarm, args=(self.lots.random(),))
            alarm.start()
            clients.append(alarm)
            time.sleep(self.lots.uniform(PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX))
            getattr(self, fault)()
            self.seen[fault] += 1
            if self.rig.arguments.apart:
                self.settle()

    def kill(self):
        node = self._leader() if self.lots.random() < 0.5 else self.lots.choice(self.nodes)
        was_leading, with_directory = node.leads(), self.lots.random() < 0.5
        if node.kill(with_directory):
            self.seen["directories"] += with_directory
            self.seen["leader killed"] += was_leading

    def pause(self):
        """Stands still for longer than its lease, and wakes up."""
        if self.lots.random() < 0.4:
            return self._wake_up_unnoticed()
        node = self._leader() if self.lots.random() < 0.7 else self.lots.choice(self.nodes)
        if (server := node.server) is None:
            return
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(self.lots.uniform(STOPPED_SECONDS_MIN, STOPPED_SECONDS_MAX))
        os.kill(server.pid, signal.SIGCONT)

    def _wake_up_unnoticed(self):
        """The leader stands still with requests under way, nobody sends anything until another one leads, and then it goes on with them: at its next write the
        log is as it was. A write that would be acknowledged now is one of which the new leader knows nothing.
        """
        node = self._leader()
        if (server := node.server) is None:
            return
        self.patience = 4 * STOPPED_SECONDS_MAX
        time.sleep(0.3)
        os.kill(server.pid, signal.SIGSTOP)
        self.may_send.clear()
        limit = time.monotonic() + 2 * STOPPED_SECONDS_MAX
        while time.monotonic() < limit and not any(
            other.leads() for other in self.nodes if other is not node
        ):
            time.sleep(0.1)
        os.kill(server.pid, signal.SIGCONT)
        time.sleep(1)
        self.patience = PATIENCE_SECONDS
        self.writes.done(), self.reads.done()
        self.may_send.set()

    def cut(self):
        """Some of what a process needs is out of its reach for longer than a lease."""
        node = self._leader() if self.lots.random() < 0.7 else self.lots.choice(self.nodes)
        # From the other processes alone, from database and bucket, from both, or from everything.
        kinds = self.lots.choice(
            [(node.own,), (node.database, node.files), (node.own, node.database, node.files)]
        )
        # A short run has one of them at least.
        if node.link and (not self.seen["cable pulled"] or self.lots.random() < 0.5):
            kinds = (node.link,)
            self.seen["cable pulled"] += 1
        for proxy in kinds:
            proxy.cut()
        time.sleep(self.lots.uniform(STOPPED_SECONDS_MIN, STOPPED_SECONDS_MAX))
        for proxy in kinds:
            proxy.mend()

    def failover(self):
        """The primary dies, and its standby takes over."""
        self.is_failing_over = True
        self.postgres.fail_over()
        for node in self.nodes:
            node.database.drop()
        self.postgres.make_standby()
        self.settle()
        self.is_failing_over = False

    def _leader(self):
        leading = [node for node in self.nodes if node.leads()]
        return leading[0] if leading else self.lots.choice(self.nodes)

    def _compare(self):
        if self.rig.arguments.sabotage == "lose":
            batch = self.ledger.make(self.lots)
            honest = {"accepted": len(batch.events), "duplicates": batch.copies, "rejected": 0}
            self.ledger.sent(batch)
            self.ledger.acknowledged(batch, honest)
        for node in self.nodes:
            self.ledger.compare(node.server.host, self.key)
            for one in self.watched:
                one.compare(Connection(node.server.host, self.key), self.found)
        self.alarms.judge(Connection(self.some_host(), self.key), self.found)
        self.ledger.close_round()

    # ---- Clients -----------------------------------------------------------------------------

    def _write(self, seed):
        lots, again = random.Random(seed), None
        while not self.stopping.is_set():
            batch = again or self.ledger.make(lots)
            again = None
            status, headers, answer = self._send(lots, batch.body(), lambda b=batch: self.ledger.sent(b))
            if status == 200:
                self.ledger.acknowledged(batch, answer)
                self.writes.done()
                self.stopping.wait(1 / self.rig.arguments.rate if self.rig.arguments.rate else 0)
                continue
            if status is None:
                continue
            self.ledger.refused(batch, status)
            if status not in (0, 503) or (status == 503 and "Retry-After" not in headers):
                self.found.append(f"{batch.name} was refused with {status}: {answer}")
            if lots.random() < 0.5:
                again = batch
            self.stopping.wait(0.05)

    def _send(self, lots, body, before):
        """Status, headers and answer of some process; the status is 0 where there is no answer, `None` where nothing was sent."""
        self.may_send.wait()
        host = self.some_host(lots)
        if host is None:
            time.sleep(0.1)
            return None, None, None
        before()
        connection = Connection(host, self.key, timeout=self.patience)
        try:
            return connection.call("POST", "/v1/events", body)
        except Gone:
            return 0, {}, None
        finally:
            connection.close()

    def _watch(self, one, seed):
        """One event to a process; then another one is asked, which has to know it."""
        lots = random.Random(seed)
        while not self.stopping.is_set():
            status, _, _ = self._send(lots, one.next_body(), one.sent)
            if status != 200:
                self.stopping.wait(0.05)
                continue
            one.acknowledged += 1
            host = self.some_host(lots)
            if host is None:
                continue
            connection = Connection(host, self.key, timeout=10)
            try:
                status, _, answer = connection.call("GET", one.path())
            except Gone:
                continue
            finally:
                connection.close()
            if status == 200:
                one.asked += 1
                one.judge(answer, self.found)
            elif status != 503:
                self.found.append(f"a read was refused with {status}: {answer}")

    def _read(self, seed):
        """Only asks, any process of which a balancer would believe that it answers. Nothing that was acknowledged before is missing."""
        lots, one, avoided = random.Random(seed), self.watched[0], {}
        while not self.stopping.wait(0.02):
            self.may_send.wait()
            host = self.some_host(lots)
            if host is None or avoided.get(host, 0) > time.monotonic():
                continue
            connection, least = Connection(host, self.key, timeout=READ_PATIENCE_SECONDS), one.acknowledged
            try:
                status, _, answer = connection.call("GET", one.path())
            except Gone:
                status, answer = 503, None
            finally:
                connection.close()
            if status == 503:
                avoided[host] = time.monotonic() + AVOIDED_SECONDS
            elif status == 200:
                self.reads.done()
                one.judge(answer, self.found, least)
            else:
                self.found.append(f"a read was refused with {status}: {answer}")

    def _alarm(self, seed):
        """The event by which the rule fires for one more tenant, until some process has taken it."""
        lots = random.Random(seed)
        tenant = f"alarm {seed}"
        self.stopping.wait(lots.uniform(0, PAUSE_SECONDS_MAX))
        # Those of a round that has ended well are all there: clients run until then.
        for _ in range(ALARM_ATTEMPTS):
            if self._send(lots, self.alarms.body(tenant), lambda: None)[0] == 200:
                return self.alarms.raised(tenant)
            time.sleep(0.1)
        self.found.append(f"{tenant} was not taken")

    def _time_pauses(self):
        while not self.stopping.wait(0.05):
            if self.may_send.is_set():
                self.writes.look(self.is_failing_over)
                self.reads.look(self.is_failing_over)


class Pauses:
    """How long at most nothing of a kind was answered; apart from that, while the database failed over."""

    def __init__(self):
        self.longest = self.of_failovers = 0.0
        self.is_of_failover = False
        self.done()

    def done(self):
        self.at = time.monotonic()

    def look(self, is_failing_over):
        pause = time.monotonic() - self.at
        self.is_of_failover = is_failing_over or (self.is_of_failover and pause > 1)
        if self.is_of_failover:
            self.of_failovers = max(self.of_failovers, pause)
        else:
            self.longest = max(self.longest, pause)

    def __str__(self):
        return f"{self.longest:.1f} s, with a failover {self.of_failovers:.1f} s"


class Watched:
    """Events of one tenant, sent one by one."""

    def __init__(self, tenant):
        self.tenant = tenant
        self.number = self.acknowledged = self.asked = 0

    def next_body(self):
        return (
            f'{{"events":[{{"tenant_id":"{self.tenant}","event_name":"{EVENT}","event_id":"{self.number + 1}"}}]}}'
        )

    def sent(self):
        self.number += 1

    def path(self):
        tenant = self.tenant.replace(" ", "%20")
        return f"/v1/query?tenant_id={tenant}&event_name={EVENT}&metric=count&period=7d"

    def judge(self, answer, found, least=None):
        """`least` where events come in meanwhile: those that were acknowledged when it was asked."""
        least = self.acknowledged if least is None else least
        count = answer["data"][0]["value"] if answer["data"] else 0
        if not least <= count <= self.number:
            found.append(f"{self.tenant}: {count:g} events, of {least} acknowledged and {self.number} sent")

    def compare(self, connection, found):
        self.judge(connection.get(self.path()), found)


if __name__ == "__main__":
    main("nodes", __doc__, run, options)
