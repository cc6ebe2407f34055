"""A TCP proxy of a rig: it passes bytes on, and can be cut like a network.

    proxy = Proxy(rig, lambda: ("127.0.0.1", postgres.port))    `proxy.port`; the target is looked up for each connection
    proxy.cut()                                  nothing passes, and nobody is told: as behind a cable that was pulled
    proxy.mend()                                 connections of before are ended; new ones pass
    proxy.failure = 0.02                         so often a connection is ended within what its client asks
"""

import random
import selectors
import socket
import threading

BYTES = 1 << 18
# Of a request that fails, fewer than so many pass.
PIECES = 4


class Proxy:
    """Listens on a free port, and connects to the target for each client."""

    def __init__(self, rig, target, seed=0, address="127.0.0.1"):
        self.target, self.failure = target, 0.0
        self.lots = random.Random(seed)
        self.passing = threading.Event()
        self.passing.set()
        self.failures = 0
        self.pairs, self.lock = set(), threading.Lock()
        self.listener = socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        rig.stack.callback(self.listener.close)

    def cut(self):
        self.passing.clear()

    def mend(self):
        self.drop()
        self.passing.set()

    def drop(self):
        """Ends all connections."""
        with self.lock:
            pairs, self.pairs = self.pairs, set()
        for pair in pairs:
            for one in pair:
                shut(one)

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client):
        self.passing.wait()
        try:
            server = socket.create_connection(self.target(), timeout=3)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = (client, server)
        with self.lock:
            self.pairs.add(pair)
        try:
            self._pass(client, server)
        except OSError:
            pass  # one of both is gone
        with self.lock:
            self.pairs.discard(pair)
        client.close()
        server.close()

    def _pass(self, client, server):
        # Chosen once for each request, however many pieces it comes in: a long one would hardly ever arrive.
        is_answered, pieces_left = True, None
        with selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in selector.select():
                    data = key.fileobj.recv(BYTES)
                    # What was on its way when the cable was pulled is lost with the connection.
                    self.passing.wait()
                    if not data:
                        return
                    if key.fileobj is client and is_answered:
                        pieces_left = self.lots.randrange(PIECES) if self.lots.random() < self.failure else None
                    is_answered = key.fileobj is server
                    # In the middle of the request, or before its answer: then it was carried out.
                    if pieces_left is not None and (pieces_left == 0 or is_answered):
                        self.failures += 1
                        return
                    pieces_left = pieces_left and pieces_left - 1
                    key.data.sendall(data)


def shut(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is closed already
