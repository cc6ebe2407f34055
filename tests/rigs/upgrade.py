#!/usr/bin/env python3
"""Three processes behind haproxy are replaced one after the other, and clients see nothing but one take-over.

The configuration of the balancer is that of `server/doc/cluster.md`. Clients write and read through it without a
pause while each process is stopped in good order, as a supervisor does it, and started again: those that follow first, the
leader last. `--from` names the build that is replaced; without it each process is replaced by its own build.

    python3 tests/rigs/upgrade.py PATH/TO/inlay [--from PATH/TO/older/inlay --rounds 3]

Reads are answered throughout. Writes may be refused with 503 and `Retry-After` for the moment of one take-over a round. Nothing else may happen: no
other status, no connection that ends, nothing lost or doubled. With `--sabotage` processes are killed instead of stopped: the rig must fail.
"""

import pathlib
import random
import threading
import time

from common import Connection, Gone, Server, main, register
from ledger import Ledger, summary
from services import Bucket, Postgres, environment, free_port
from three import NODES, Balancer, wait_until_ready

WRITERS, READERS = 3, 2
REFUSED_SECONDS_MAX = 3


def options(parser):
    parser.add_argument("--from", dest="older", type=lambda text: str(pathlib.Path(text).resolve(strict=True)))
    parser.add_argument("--rounds", type=int, default=1)


def run(rig):
    upgrade = Upgrade(rig)
    for number in range(rig.arguments.rounds):
        upgrade.round(number)
        if upgrade.wrong():
            break
    return upgrade.wrong(), upgrade.summary()


class Upgrade:
    """The processes by name, and clients at the balancer."""

    def __init__(self, rig):
        self.rig, self.found = rig, []
        self.shared = environment(Postgres(rig), Bucket(rig))
        self.hosts = {name: f"127.0.0.1:{free_port()}" for name in NODES}
        self.older = rig.arguments.older or rig.arguments.binary
        self.servers = {name: self._start(name, self.older) for name in NODES}
        self.host = Balancer(rig, self.hosts, f"127.0.0.1:{free_port()}").host
        wait_until_ready([self.host])
        self.key = register(self.host)
        self.ledger = Ledger(rig.folder / "ledger.jsonl")
        self.reads = self.refusals = self.replaced = 0
        self.longest, self.take_overs = 0.0, 0

    def _start(self, name, binary):
        settings = self.shared | {"INLAY_HTTP_ADDR": self.hosts[name], "INLAY_TRUSTED_PROXIES": "127.0.0.0/8"}
        server = Server(binary, self.rig.folder / f"data {name}", environment=settings, log=self.rig.folder / f"{name}.log")
        self.rig.stack.callback(server.end)
        return server

    def wrong(self):
        return self.ledger.wrong + self.found

    def summary(self):
        return (
            f"{self.replaced} processes replaced, {self.take_overs} take-overs, {summary(self.ledger.seen)}, {self.reads:,} reads; "
            f"{self.refusals} writes refused meanwhile, for {self.longest:.2f} s at most"
        )

    def _epoch(self):
        return max(int(server.metric("inlay_cluster_epoch")) for server in self.servers.values())

    def round(self, number):
        self.stopping, self.refused_since = threading.Event(), None
        lots = random.Random(f"{self.rig.random_seed} {number}")
        clients = [threading.Thread(target=self._write, args=(lots.random(),)) for _ in range(WRITERS)]
        clients += [threading.Thread(target=self._read) for _ in range(READERS)]
        for client in clients:
            client.start()
        try:
            before = self._epoch()
            for name in self._order():
                self._replace(name)
            take_overs = self._epoch() - before
            self.take_overs += take_overs
            if take_overs != 1:
                self.found.append(f"{take_overs} take-overs in one round")
            time.sleep(1)
        finally:
            self.stopping.set()
            for client in clients:
                client.join()
        for host in self.hosts.values():
            self.ledger.compare(host, self.key)
        self.ledger.close_round()

    def _order(self):
        """Those that follow first."""
        leads = {name: Connection(host).fetch("GET", "/leaderz")[0] == 200 for name, host in self.hosts.items()}
        return sorted(leads, key=leads.get)

    def _replace(self, name):
        if self.rig.arguments.sabotage:
            self.servers[name].kill()
        elif (code := self.servers[name].stop()) != 0:
            self.found.append(f"{name} ended with {code}: {self.servers[name].log_end()}")
        self.servers[name] = self._start(name, self.rig.arguments.binary)
        self.replaced += 1
        wait_until_ready([self.hosts[name]])
        # The balancer takes it back after two answers, a second apart.
        time.sleep(4)

    def _write(self, seed):
        lots, connection, again = random.Random(seed), Connection(self.host, self.key), None
        while not self.stopping.is_set():
            batch = again or self.ledger.make(lots)
            again = None
            self.ledger.sent(batch)
            try:
                status, headers, answer = connection.call("POST", "/v1/events", batch.body())
            except Gone as gone:
                self.ledger.refused(batch, "gone")
                self.found.append(f"a write had no answer: {gone}")
                time.sleep(0.05)
                continue
            if status == 200:
                self.ledger.acknowledged(batch, answer)
                self.refused_since = None
                continue
            self.ledger.refused(batch, status)
            self.refusals += 1
            now = time.monotonic()
            since = self.refused_since = self.refused_since or now
            self.longest = max(self.longest, now - since)
            if status != 503 or "Retry-After" not in headers or now - since > REFUSED_SECONDS_MAX:
                self.found.append(f"a write was refused with {status} for {now - since:.1f} s: {answer}")
            again = batch
            time.sleep(0.05)

    def _read(self):
        connection = Connection(self.host, self.key)
        path = "/v1/query?tenant_id=acme&event_name=rig&metric=count&period=7d"
        while not self.stopping.is_set():
            try:
                status, _, answer = connection.call("GET", path)
            except Gone as gone:
                self.found.append(f"a read had no answer: {gone}")
                time.sleep(0.05)
                continue
            self.reads += 1
            if status != 200:
                self.found.append(f"a read was refused with {status}: {answer}")
            time.sleep(0.01)


if __name__ == "__main__":
    main("upgrade", __doc__, run, options)
