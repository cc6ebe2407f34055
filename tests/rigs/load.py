"""Clients that post batches until they are told to stop, or until the server is gone.

Each client has one connection and waits for each answer. The ledger is written before the request
and before the next one. A batch that was refused or cut off is sent again half of the time, as a
good client would: whether it was stored at the first time or not, it must count once.

503 needs `Retry-After`; any other refusal of a valid batch is a finding.

A rig that cannot fail shows nothing, so a run can be spoiled on purpose, once:

- `lose`: a batch is written down as acknowledged and never sent;
- `double`: a batch is sent a second time with other ids, and not written down;
- `tear`: half a batch is sent, and the whole written down as sent.
"""

import random
import threading
import time

from common import Connection, Gone

CLIENTS = 8
# A client that is told to come back later asks again sooner: it is the server that is tested.
REFUSED_WAIT_SECONDS = 0.05
# A server that refuses a batch this long is not busy but stuck.
RETRY_SECONDS = 20
# Batches that are acknowledged before the run is spoiled, so that there is something to spoil.
SABOTAGE_AFTER = 8


class Load:
    """Posts batches from several threads. The same ledger may see one load after another."""

    def __init__(
        self, host, key, ledger, seed, clients=CLIENTS, requests=None, pause=0, sabotage=None, **shape
    ):
        """`requests` of each client, if not until the end, with a pause of so many seconds after
        each; `shape` is that of `Ledger.make`.
        """
        self.host, self.key, self.ledger = host, key, ledger
        self.requests, self.pause, self.shape = requests, pause, shape
        self.sabotage = sabotage
        self.stopping = threading.Event()
        # Cleared by a rig that looks at something else for a while.
        self.running = threading.Event()
        self.running.set()
        # How the connections ended, and the answers by status.
        self.gone = 0
        self.statuses = {}
        self.failure = None
        self.threads = [
            threading.Thread(target=self._guarded, args=(random.Random(f"{seed} {number}"),))
            for number in range(clients)
        ]
        for thread in self.threads:
            thread.start()

    def stop(self):
        """Lets every request that runs come to its end."""
        self.stopping.set()
        self.running.set()
        self.join()

    def join(self):
        for thread in self.threads:
            thread.join()
        if self.failure is not None:
            raise self.failure

    def is_over(self):
        return not any(thread.is_alive() for thread in self.threads)

    def _guarded(self, lots):
        try:
            self._client(lots)
        except Exception as failure:  # told by the thread that joins
            self.failure = failure

    def _client(self, lots):
        connection, again, left = Connection(self.host, self.key), None, self.requests
        while not self.stopping.is_set() and left != 0:
            self.running.wait()
            batch = again or self.ledger.make(lots, **self.shape)
            again, left = None, left and left - 1
            self._spoil(connection, lots)
            self.ledger.sent(batch)
            try:
                status, headers, answer = connection.call("POST", "/v1/events", batch.body())
            except Gone as cause:
                self.gone += 1
                self.ledger.refused(batch, cause)
                return
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status == 200:
                self.ledger.acknowledged(batch, answer)
                self.stopping.wait(self.pause)
                continue
            self.ledger.refused(batch, status)
            if status != 503 or "Retry-After" not in headers:
                self.ledger.wrong.append(f"{batch.name} was refused with {status}: {answer}")
            if lots.random() < 0.5:
                again = batch
            self.stopping.wait(REFUSED_WAIT_SECONDS)

    def _spoil(self, connection, lots):
        with self.ledger.lock:
            if not self.sabotage or self.ledger.seen["acknowledged"] < SABOTAGE_AFTER:
                return
            kind, self.sabotage = self.sabotage, None
        batch = self.ledger.make(lots)
        while len(batch.events) - batch.copies < 2 or not self.ledger.pool:
            batch = self.ledger.make(lots)
        honest = {"accepted": len(batch.events), "duplicates": batch.copies, "rejected": 0}
        bodies = {
            "lose": [],
            "double": [batch.body(), batch.body().replace('"event_id":"', '"event_id":"x')],
            "tear": [half_of(batch)],
        }[kind]
        self.ledger.sent(batch)
        try:
            for body in bodies:
                connection.call("POST", "/v1/events", body)
        except Gone:
            # Too late in this life: the next one is spoiled.
            self.sabotage = kind
            return
        if kind != "tear":
            self.ledger.acknowledged(batch, honest)


def half_of(batch):
    own = {event for event in batch.events if f'"{batch.name}"' in event}
    return '{"events":[' + ",".join(sorted(own)[::2]) + "]}"


def retry(host, key, ledger, batches):
    """Sends batches again whose first answer was lost, after they were looked for."""
    connection = Connection(host, key)
    for batch in batches:
        limit = time.monotonic() + RETRY_SECONDS
        while True:
            ledger.sent(batch)
            status, _, answer = connection.call("POST", "/v1/events", batch.body())
            if status == 200:
                ledger.acknowledged(batch, answer)
                break
            ledger.refused(batch, status)
            if status != 503 or time.monotonic() > limit:
                ledger.wrong.append(
                    f"{batch.name}, sent again, was refused with {status}: {answer}"
                )
                break
            time.sleep(REFUSED_WAIT_SECONDS)


def load_for(seconds, *arguments, **more):
    """A load over some time, ended in good order."""
    load = Load(*arguments, **more)
    time.sleep(seconds)
    load.stop()
    return load
