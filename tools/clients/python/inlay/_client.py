"""The client: events in batches behind the caller's back, everything else as calls."""

from __future__ import annotations

import atexit
import json
import logging
import multiprocessing.util
import os
import threading
import uuid
import weakref
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, Callable, Iterable, Iterator, Mapping, TypedDict

from ._http import Http, InlayError

log = logging.getLogger("inlay")

# Of one request to POST /v1/events.
EVENTS_MAX = 1_000
BYTES_MAX = 8 << 20


class Row(TypedDict, total=False):
    """A row of a query's answer."""

    bucket: str
    group: str | None
    value: float | None
    previous: float | None


class QueryAnswer(TypedDict):
    """The answer of a metric query."""

    data: list[Row]
    meta: dict[str, Any]


class SqlAnswer(TypedDict):
    """The answer of a statement."""

    columns: list[dict[str, Any]]
    rows: list[list[Any]]


@dataclass(frozen=True)
class EmbedSession:
    """A signed session of one tenant: `embed_url` goes into a frame of the host's page."""

    token: str
    embed_url: str
    expires_at: datetime


@dataclass(frozen=True)
class Rejected:
    """An event that the server refused for good, and why."""

    event: dict[str, Any]
    error: str


@dataclass(frozen=True)
class Dropped:
    """Events that were not sent: the buffer was full, or the server could not be reached for too long."""

    events: list[dict[str, Any]]
    error: str


Problem = Rejected | Dropped


class Inlay:
    """A server of Inlay, for one API key. All threads may use it.

    Events are buffered and sent by a thread of its own, at the latest after `flush_seconds`, and at the end of the process. Each has
    an `event_id`, so that one that is sent again is counted once. `on_problem` hears of events that are refused or dropped;
    without it the log does.
    """

    def __init__(self, url: str, key: str, *, timeout: float = 10.0, retry_seconds: float = 30.0, batch_events: int = 500,
                 flush_seconds: float = 1.0, buffer_events: int = 100_000, send_seconds: float = 300.0,
                 on_problem: Callable[[Problem], None] | None = None) -> None:  # fmt: skip
        if not 1 <= batch_events <= EVENTS_MAX:
            raise ValueError(f"batch_events must be between 1 and {EVENTS_MAX}")
        self._http = Http(url, key, timeout, retry_seconds)
        self._batch_events = batch_events
        self._buffer_events = buffer_events
        self._flush_seconds = flush_seconds
        self._send_seconds = send_seconds
        self._on_problem = on_problem or log_problem
        self._begin()
        CLIENTS.add(self)
        multiprocessing.util.register_after_fork(self, end_with_worker)

    def _begin(self) -> None:
        """Nothing is buffered, and no thread sends: so it is at first, and in the child after a fork."""
        self._changed = threading.Condition()
        self._buffer: deque[dict[str, Any]] = deque()
        self._under_way: list[dict[str, Any]] = []
        # Events that were tracked, those of them that are sent or dropped, and how far a flush waits.
        self._tracked = self._settled = self._flush_target = 0
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def _after_fork(self) -> None:
        # What the parent buffered is the parent's to send, and a lock that one of its threads held is nobody's to release: closed
        # clients have one, too.
        is_closed = self._is_closed
        self._begin()
        self._is_closed = is_closed
        self._http.after_fork()

    # Events

    def track(self, tenant_id: str, event_name: str, *, user_id: str | None = None,
              string_props: Mapping[str, str] | None = None, numeric_props: Mapping[str, float] | None = None,
              timestamp: datetime | None = None, event_id: str | None = None) -> str:  # fmt: skip
        """Buffers an event, and returns its id. Does not wait, and does not raise when the server cannot be reached.

        Raises `TypeError` or `ValueError` for what cannot be written as JSON, such as NaN.
        """
        event = event_of(tenant_id, event_name, user_id, string_props, numeric_props, timestamp, event_id)
        why = None
        with self._changed:
            if self._is_closed:
                why = "the client is closed"
            elif len(self._buffer) >= self._buffer_events:
                why = "the buffer is full"
            else:
                self._buffer.append(event)
                self._tracked += 1
                self._start()
                # The first one begins the wait for others, and a full batch ends it.
                if len(self._buffer) in (1, self._batch_events):
                    self._changed.notify_all()
        if why is not None:
            self._report(Dropped([event], why))
        return str(event["event_id"])

    def send(self, events: Iterable[Mapping[str, Any]]) -> int:
        """Sends events now, in as many requests as it takes; returns how many were accepted. For backfills.

        Events are as the API has them; a `timestamp` may be a `datetime`. Without an `event_id` they get one, without a time that of the
        call. Those that are refused are reported to `on_problem`. Raises `InlayError` when a request fails in the end; those before
        it are stored, and sending all of them again counts none twice if they have ids.
        """
        now = datetime.now(timezone.utc)

        def ready(event: Mapping[str, Any]) -> dict[str, Any]:
            known = {name: text_of(value) for name, value in event.items() if value is not None}
            return known | {
                "event_id": known.get("event_id") or str(uuid.uuid4()),
                "timestamp": known.get("timestamp") or text_of(now),
            }

        return sum(self._send(batch, None) for batch in batches(map(ready, events)))

    def flush(self, seconds: float | None = None) -> bool:
        """Waits until all events that were tracked before are sent or dropped, for so long at most; whether they are."""
        if threading.current_thread() is self._thread:
            return False
        with self._changed:
            target = self._tracked
            self._flush_target = max(self._flush_target, target)
            self._start()
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._settled >= target, seconds)

    def close(self, seconds: float | None = 10.0) -> None:
        """Sends what is buffered, for so long at most, and ends; the rest is reported as dropped.

        The end of the process does that, too. A signal that ends it at once does not: handle SIGTERM.
        """
        if self._is_closed:
            return
        is_done = self.flush(seconds)
        with self._changed:
            left = [] if is_done or self._is_closed else [*self._under_way, *self._buffer]
            self._is_closed = True
            self._buffer.clear()
            self._changed.notify_all()
        if left:
            self._report(Dropped(left, "the client was closed before they were sent"))
        self._http.close()

    def __enter__(self) -> Inlay:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # Questions and sessions

    def query(self, *, event_name: str, metric: str, tenant_id: str | None = None, filters: Mapping[str, str] | None = None,
              **parameters: Any) -> QueryAnswer:  # fmt: skip
        """A metric query: `period` or `from_` and `to`, `granularity`, `group_by`, `numeric_prop`, `limit`, `timezone`, …

        `filters` are values of properties: `{"status": "ok"}`.
        """
        asked = {"event_name": event_name, "metric": metric, "tenant_id": tenant_id}
        asked |= {name.rstrip("_"): value for name, value in parameters.items()}
        asked |= {f"f_{name}": value for name, value in (filters or {}).items()}
        asked = {name: text_of(value) for name, value in asked.items() if value is not None}
        answer: QueryAnswer = self._http.call("GET", "/v1/query", params=asked)
        return answer

    def sql(self, statement: str) -> SqlAnswer:
        """A SELECT over the events of the key's environment."""
        answer: SqlAnswer = self._http.call("POST", "/v1/query/adhoc", body={"sql": statement})
        return answer

    def embed_session(self, tenant_id: str, dashboard_id: str, *, expires_in: int | None = None,
                      permissions: Mapping[str, Any] | None = None) -> EmbedSession:  # fmt: skip
        """Mints a session that shows one tenant one dashboard."""
        body = {"tenant_id": tenant_id, "dashboard_id": dashboard_id, "expires_in": expires_in, "permissions": permissions}
        body = {name: value for name, value in body.items() if value is not None}
        answer = self._http.call("POST", "/v1/embed-sessions", body=body)
        expires_at = datetime.fromisoformat(answer["expires_at"].replace("Z", "+00:00"))
        return EmbedSession(answer["token"], answer["embed_url"], expires_at)

    def request(self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Any = None,
                idempotency_key: str | None = None) -> Any:  # fmt: skip
        """Any operation of the API reference, such as `request("GET", "/v1/dashboards")`; the JSON of the response."""
        return self._http.call(method, path, params=params, body=body, idempotency_key=idempotency_key)

    # The thread that sends

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="inlay", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (events := self._next()) is not None:
            self._send_all(events)
            with self._changed:
                self._settled += len(events)
                self._under_way = []
                self._changed.notify_all()

    def _next(self) -> list[dict[str, Any]] | None:
        """The next events, once there are enough, one of them has waited, or somebody flushes. `None` after `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._buffer or self._is_closed)
            if self._is_closed:
                return None
            is_due = lambda: len(self._buffer) >= self._batch_events or self._flush_target > self._settled or self._is_closed  # noqa: E731
            self._changed.wait_for(is_due, self._flush_seconds)
            count = min(len(self._buffer), self._batch_events)
            self._under_way = [self._buffer.popleft() for _ in range(count)]
            return self._under_way

    def _send_all(self, events: list[dict[str, Any]]) -> None:
        """Sends events of the buffer; every failure is reported."""
        for batch in batches(events):
            try:
                self._send(batch, self._send_seconds)
            except Exception as error:
                if not self._is_closed:
                    self._report(Dropped(batch, str(error)))

    def _send(self, batch: list[dict[str, Any]], retry_seconds: float | None) -> int:
        try:
            answer = self._http.call("POST", "/v1/events", body={"events": batch}, retry_seconds=retry_seconds)
        except InlayError as error:
            # What stands before the server may take less at once.
            if error.status == 413 and len(batch) > 1:
                half = len(batch) // 2
                return self._send(batch[:half], retry_seconds) + self._send(batch[half:], retry_seconds)
            # None of them is valid: nothing will become better by trying again.
            if error.status not in (400, 413):
                raise
            for event in batch:
                self._report(Rejected(event, str(error)))
            return 0
        for fault in answer["errors"]:
            self._report(Rejected(batch[fault["index"]], fault["message"]))
        return int(answer["accepted"])

    def _report(self, problem: Problem) -> None:
        try:
            self._on_problem(problem)
        except Exception:
            log.exception("on_problem failed")


def log_problem(problem: Problem) -> None:
    """Logs events that are refused or dropped."""
    if isinstance(problem, Rejected):
        log.warning("an event was refused: %s", problem.error)
    else:
        log.warning("%d events were dropped: %s", len(problem.events), problem.error)


def event_of(tenant_id: str, event_name: str, user_id: str | None, string_props: Mapping[str, str] | None,
             numeric_props: Mapping[str, float] | None, timestamp: datetime | None, event_id: str | None) -> dict[str, Any]:  # fmt: skip
    """An event as it is sent. The time is that of the call."""
    event: dict[str, Any] = {
        "tenant_id": tenant_id,
        "event_name": event_name,
        "event_id": event_id or str(uuid.uuid4()),
        "timestamp": text_of(timestamp or datetime.now(timezone.utc)),
    }
    if user_id is not None:
        event["user_id"] = user_id
    if string_props:
        event["string_props"] = dict(string_props)
    if numeric_props:
        event["numeric_props"] = dict(numeric_props)
    # What is no JSON is the caller's mistake, and he should hear of it here.
    json.dumps(event, allow_nan=False)
    return event


def batches(events: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Events in lists that fit into a request each."""
    batch: list[dict[str, Any]] = []
    size = 0
    for event in events:
        length = len(json.dumps(event, separators=(",", ":"), allow_nan=False)) + 1
        if batch and (len(batch) == EVENTS_MAX or size + length > BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += length
    if batch:
        yield batch


def text_of(value: Any) -> Any:
    """A time as RFC 3339 (one without a zone is local, as everywhere in Python), a boolean in JSON's words."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


CLIENTS: weakref.WeakSet[Inlay] = weakref.WeakSet()


def close_all() -> None:
    """At the end of the process."""
    for client in list(CLIENTS):
        client.close()


def end_with_worker(client: Inlay) -> None:
    """In a child of multiprocessing, which ends without `atexit`."""
    multiprocessing.util.Finalize(client, Inlay.close, (client,), exitpriority=10)


def after_fork() -> None:
    """In a child process."""
    for client in list(CLIENTS):
        client._after_fork()


atexit.register(close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
