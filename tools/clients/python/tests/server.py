"""A real server for tests, in a folder of its own, and things that go wrong on the way to it."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
from typing import Any, Callable


class Server:
    """`inlay serve` of the program in `TEST_INLAY`, with an organisation and its admin key."""

    def __init__(self, **environment: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.port, grpc = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [os.environ["TEST_INLAY"], "serve", "--data-dir", self.folder.name + "/data", "--http-addr",
                   f"127.0.0.1:{self.port}", "--grpc-addr", f"127.0.0.1:{grpc}"]  # fmt: skip
        self.command, self.environment = command, os.environ | environment
        self.log = open(self.folder.name + "/log", "w")
        self.start()
        account = {"email": "ada@example.com", "password": "a long enough password", "name": "Ada", "org_name": "Acme"}
        self.key = self.call("POST", "/v1/auth/register", account)["api_key"]["key"]

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, env=self.environment, stdout=self.log, stderr=self.log)
        limit = time.monotonic() + 30
        while True:
            try:
                self.call("GET", "/readyz")
                return
            except OSError:
                if time.monotonic() > limit or self.process.poll() is not None:
                    raise
                time.sleep(0.05)

    def restart(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.start()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        text = connection.getresponse().read()
        connection.close()
        return json.loads(text) if text.startswith(b"{") else text

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
        self.folder.cleanup()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class DroppingProxy:
    """A proxy that drops the responses of the first requests, which the server has carried out."""

    def __init__(self, server: Server, dropped: int) -> None:
        self.server, self.left = server, dropped
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client: socket.socket) -> None:
        upstream = socket.create_connection(("127.0.0.1", self.server.port))

        def back() -> None:
            while data := upstream.recv(65_536):
                if self.left > 0:
                    self.left -= 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)

        threading.Thread(target=back, daemon=True).start()
        try:
            while data := client.recv(65_536):
                upstream.sendall(data)
        except OSError:
            pass
        upstream.close()

    def close(self) -> None:
        # It wakes the thread that accepts.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Stub:
    """An HTTP server of the test: remembers each request's headers and body, and answers it as `answer` says, with status and body."""

    def __init__(self, answer: Callable[[bytes], tuple[int, bytes]]) -> None:
        self.received: list[tuple[dict[str, str], bytes]] = []
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                stub.received.append((dict(self.headers.items()), body))
                status, text = answer(body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
