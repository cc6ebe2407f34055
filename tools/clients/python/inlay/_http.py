"""Requests with retries, over connections that are used again.

A request is repeated after a lost connection, 429, 500 to 504, and a 409 that says when to come again, with exponential backoff and
jitter, and not before the server's `Retry-After`. Events have ids and other POSTs an `Idempotency-Key`, so nothing is done twice; a
DELETE that finds nothing when it is repeated has done its work before.
"""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import time
import uuid
from typing import Any, Mapping
from urllib.parse import urlencode, urlsplit

BACKOFF_SECONDS = 0.25
BACKOFF_SECONDS_MAX = 30.0
RETRIED = {429, 500, 502, 503, 504}
IDLE_MAX = 8


class InlayError(Exception):
    """The server refused a request, or could not be reached.

    `status` is the HTTP status, 0 without a response; `code` is for programs (`connection` without a response); `field` is the
    part of the request that is to blame; `request_id` finds the request in the server's log.
    """

    def __init__(self, status: int, code: str, message: str, field: str | None = None, request_id: str | None = None,
                 details: list[dict[str, Any]] | None = None) -> None:  # fmt: skip
        super().__init__(f"{message} ({code})")
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        self.request_id = request_id
        self.details = details or []

    def __reduce__(self) -> tuple[Any, ...]:
        return InlayError, (self.status, self.code, self.message, self.field, self.request_id, self.details)


class Http:
    """A server, and idle connections to it. All threads may use it."""

    def __init__(self, url: str, key: str, timeout: float, retry_seconds: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must begin with http:// or https://, and is {url!r}")
        # A port that is none is refused here, too.
        self._address = (parts.hostname, parts.port)
        self._prefix = parts.path.rstrip("/")
        self._key = key.strip()
        self._timeout = timeout
        self._retry_seconds = retry_seconds
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None

    def call(self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Any = None,
             idempotency_key: str | None = None, retry_seconds: float | None = None) -> Any:  # fmt: skip
        """The JSON of the response, `None` of an empty one. Raises `InlayError`."""
        target = self._prefix + path + (f"?{urlencode(params, doseq=True)}" if params else "")
        if not target.isascii() or any(char <= " " for char in target):
            raise ValueError(f"a path must be percent-encoded: {path!r}")
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        data = None
        if body is not None:
            data = json.dumps(body, separators=(",", ":")).encode()
            headers["Content-Type"] = "application/json"
        if method == "POST" and path != "/v1/events":
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        limit = time.monotonic() + (self._retry_seconds if retry_seconds is None else retry_seconds)
        attempt = 0
        while True:
            answer, retry_after = self._attempt(method, target, headers, data)
            if not isinstance(answer, InlayError):
                return answer
            if method == "DELETE" and answer.status == 404 and attempt > 0:
                return None
            wait = backoff(attempt, retry_after)
            is_under_way = answer.status == 409 and retry_after > 0
            comes_again = answer.status == 0 or answer.status in RETRIED or is_under_way
            if not comes_again or time.monotonic() + wait > limit:
                raise answer
            time.sleep(wait)
            attempt += 1

    def _attempt(self, method: str, target: str, headers: dict[str, str], data: bytes | None) -> tuple[Any, float]:
        """The response's JSON or an `InlayError`, and the seconds of `Retry-After`."""
        while True:
            connection, is_used = self._take()
            try:
                connection.request(method, target, data, headers)
                response = connection.getresponse()
                text = response.read()
                break
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # The server has closed it meanwhile, and its neighbours as well: a new one tells.
                if is_used and not isinstance(error, TimeoutError):
                    self.close()
                    continue
                return InlayError(0, "connection", f"{type(error).__name__}: {error}"), 0.0
        with self._lock:
            is_kept = not response.will_close and len(self._idle) < IDLE_MAX
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.close()
        try:
            answer = json.loads(text) if text else None
        except ValueError:
            answer = NO_JSON
        if 200 <= response.status < 300:
            if answer is NO_JSON:
                return InlayError(response.status, "http", "the response is no JSON: is this the address of Inlay?"), 0.0
            return answer, 0.0
        body = answer if isinstance(answer, dict) else {}
        refused = InlayError(response.status, body.get("code", "http"), body.get("error", response.reason or ""),
                           body.get("field"), body.get("request_id"), body.get("details"))  # fmt: skip
        return refused, seconds_of(response.getheader("Retry-After"))

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it was used before."""
        with self._lock:
            if self._idle:
                return self._idle.pop(), True
        host, port = self._address
        if self._tls is not None:
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._tls), False
        return http.client.HTTPConnection(host, port, timeout=self._timeout), False

    def after_fork(self) -> None:
        """In a child process: the connections are the parent's."""
        self._lock = threading.Lock()
        self._idle = []

    def close(self) -> None:
        """Closes idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


# Of a body that is none; `None` is an empty one.
NO_JSON = object()


def backoff(attempt: int, retry_after: float) -> float:
    """Seconds before the attempt after number `attempt`, from 0: half of it fixed, half by chance."""
    full = min(BACKOFF_SECONDS * 2.0**attempt, BACKOFF_SECONDS_MAX)
    return max(full / 2 + random.random() * full / 2, retry_after)


def seconds_of(header: str | None) -> float:
    """`Retry-After` in seconds; 0 without one that is a number."""
    try:
        return max(float(header or 0), 0.0)
    except ValueError:
        return 0.0
