"""The client beside a real server.

    TEST_INLAY=target/debug/inlay python3 -m unittest discover -s tools/clients/python/tests -t tools/clients/python
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from inlay import Dropped, Inlay, InlayError, Rejected, WebhookError, verify_webhook
from tests.server import DroppingProxy, Server, Stub

WIDGET = {
    "id": "calls", "kind": "number", "title": "Calls", "viz": {}, "layout": {"x": 0, "y": 0, "w": 4, "h": 4},
    "query": {"event_name": "call", "metric": "count"},
}  # fmt: skip


class ClientTest(unittest.TestCase):
    server: Server

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server(INLAY_WEBHOOK_ALLOW="127.0.0.0/8")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.close()

    def setUp(self) -> None:
        self.problems: list[Any] = []
        self.inlay = self.client(self.server.url)
        self.addCleanup(self.inlay.close)

    def client(self, url: str, **settings: Any) -> Inlay:
        return Inlay(url, self.server.key, on_problem=self.problems.append, **settings)

    def count(self, tenant: str) -> int:
        answer = self.inlay.query(tenant_id=tenant, event_name="call", metric="count", period="7d")
        return int(answer["data"][0]["value"] or 0)

    def test_tracked_events_are_there_after_a_flush(self) -> None:
        for n in range(1_300):
            self.inlay.track("tracked", "call", user_id=f"u{n % 7}", string_props={"model": "large" if n % 2 else "small"},
                             numeric_props={"ms": n})  # fmt: skip
        self.assertTrue(self.inlay.flush())
        self.assertEqual(self.count("tracked"), 1_300)
        users = self.inlay.query(tenant_id="tracked", event_name="call", metric="count_unique", period="7d")
        self.assertEqual(users["data"][0]["value"], 7)
        large = self.inlay.query(tenant_id="tracked", event_name="call", metric="sum", numeric_prop="ms", period="7d",
                                 filters={"model": "large"})  # fmt: skip
        self.assertEqual(large["data"][0]["value"], sum(range(1, 1_300, 2)))
        self.assertEqual(self.problems, [])

    def test_events_are_sent_without_a_flush_too(self) -> None:
        client = self.client(self.server.url, flush_seconds=0.2)
        client.track("by itself", "call")
        limit = time.monotonic() + 5
        while self.count("by itself") == 0 and time.monotonic() < limit:
            time.sleep(0.05)
        self.assertEqual(self.count("by itself"), 1)
        client.close()

    def test_the_end_of_a_process_sends_what_is_buffered(self) -> None:
        program = f"from inlay import Inlay; Inlay({self.server.url!r}, {self.server.key!r}).track('ended', 'call')"
        subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[1])
        self.assertEqual(self.count("ended"), 1)

    def test_a_lost_response_counts_no_event_twice(self) -> None:
        proxy = DroppingProxy(self.server, 2)
        client = self.client(proxy.url)
        for _ in range(50):
            client.track("dropped", "call")
        self.assertTrue(client.flush())
        self.assertEqual((proxy.left, self.count("dropped")), (0, 50))
        self.assertEqual(self.problems, [])
        # A session whose response was lost is minted once: the second attempt has the same key.
        proxy.left = 1
        board = self.board()
        session = client.embed_session("dropped", board)
        minted = self.inlay.request("GET", "/v1/embed-sessions")["data"]
        self.assertEqual([one["tenant_id"] for one in minted].count("dropped"), 1)
        self.assertIn(board, session.embed_url)
        client.close()
        proxy.close()

    def test_refused_events_are_reported_one_by_one(self) -> None:
        self.inlay.track("reported", "call")
        self.inlay.track("reported", "", event_id="nameless")
        self.inlay.track("reported", "call", event_id="ahead", timestamp=datetime.now(timezone.utc) + timedelta(days=3))
        self.assertTrue(self.inlay.flush())
        self.assertEqual({one.event["event_id"] for one in self.problems if isinstance(one, Rejected)}, {"nameless", "ahead"})
        self.assertEqual(self.count("reported"), 1)
        with self.assertRaises(ValueError):
            self.inlay.track("reported", "call", numeric_props={"ms": float("nan")})

    def test_a_server_that_is_away_drops_events_in_the_end_and_raises_nowhere(self) -> None:
        client = self.client("http://127.0.0.1:1", send_seconds=0.5, retry_seconds=0.2)
        client.track("away", "call")
        self.assertTrue(client.flush(10))
        self.assertIsInstance(self.problems[0], Dropped)
        with self.assertRaises(InlayError) as raised:
            client.sql("SELECT 1")
        self.assertEqual(raised.exception.code, "connection")
        client.close()

    def test_a_full_buffer_drops_and_does_not_wait(self) -> None:
        client = self.client("http://127.0.0.1:1", buffer_events=10, send_seconds=0.2)
        started = time.monotonic()
        for _ in range(2_000):
            client.track("full", "call")
        self.assertLess(time.monotonic() - started, 10)
        self.assertTrue(any(isinstance(one, Dropped) and "full" in one.error for one in self.problems))
        client.close()

    def test_a_backfill_is_sent_in_parts_and_can_be_repeated(self) -> None:
        day = datetime.now(timezone.utc) - timedelta(days=2)
        events = [{"tenant_id": "old", "event_name": "call", "event_id": str(n), "timestamp": day.isoformat()}
                  for n in range(2_500)]  # fmt: skip
        self.assertEqual(self.inlay.send(events), 2_500)
        self.assertEqual(self.inlay.send(events), 2_500)
        self.assertEqual(self.count("old"), 2_500)

    def test_too_many_requests_wait_for_their_turn(self) -> None:
        slow = Server(INLAY_RATE_LIMITS="query=2")
        client = Inlay(slow.url, slow.key)
        for _ in range(5):
            client.query(tenant_id="a", event_name="call", metric="count", period="1h")
        client.close()
        slow.close()

    def test_threads_share_a_client(self) -> None:
        def work(n: int) -> None:
            for _ in range(100):
                self.inlay.track("threads", "call", user_id=str(n))
            self.count("threads")

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.inlay.flush()
        self.assertEqual(self.count("threads"), 800)

    def test_errors_name_the_field_and_statements_answer(self) -> None:
        with self.assertRaises(InlayError) as raised:
            self.inlay.query(tenant_id="a", event_name="call", metric="p95", period="7d")
        error = raised.exception
        self.assertEqual((error.status, error.code, error.field), (400, "missing_field", "numeric_prop"))
        self.assertTrue(error.request_id)
        with self.assertRaises(InlayError) as raised:
            Inlay(self.server.url, "inlay_admin_wrong").sql("SELECT 1")
        self.assertEqual(raised.exception.status, 401)
        self.assertEqual(self.inlay.sql("SELECT 1 AS one")["rows"], [[1]])

    def test_a_child_process_has_its_own_connections_and_events(self) -> None:
        self.count("forked")
        self.inlay.track("forked", "call")
        children = []
        for n in range(8):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    self.inlay.track(f"child {n}", "call")
                    status = 0 if self.inlay.flush(10) and self.count(f"child {n}") == 1 else 1
                finally:
                    os._exit(status)
            children.append(child)
        self.assertEqual([os.waitpid(child, 0)[1] for child in children], [0] * 8)
        self.assertTrue(self.inlay.flush(10))
        self.assertEqual(self.count("forked"), 1, "what the parent buffered, no child sends again")

    def test_events_of_a_multiprocessing_child_arrive(self) -> None:
        # A client that was closed, whose lock a thread of ours holds while the child begins.
        closed = self.client(self.server.url)
        closed.close()
        is_held, may_go = threading.Event(), threading.Event()

        def hold() -> None:
            with closed._changed:
                is_held.set()
                may_go.wait(60)

        holder = threading.Thread(target=hold)
        holder.start()
        is_held.wait(10)
        child = multiprocessing.get_context("fork").Process(target=lambda: self.inlay.track("worker", "call"))
        child.start()
        child.join(30)
        exit_code = child.exitcode
        # One that hangs would keep this process from ending.
        child.kill()
        may_go.set()
        holder.join()
        self.assertEqual(exit_code, 0, "it has ended")
        self.assertEqual(self.count("worker"), 1)

    def test_html_instead_of_json_is_reported_and_does_not_hang(self) -> None:
        stub = Stub(lambda _: (200, b"<html>log in</html>"))
        self.addCleanup(stub.close)
        client = self.client(stub.url)
        for _ in range(600):
            client.track("lost", "call")
        self.assertTrue(client.flush(10))
        self.assertEqual(sum(len(one.events) for one in self.problems), 600)
        with self.assertRaises(InlayError):
            client.sql("SELECT 1")

    def test_what_may_not_be_so_large_is_sent_in_halves(self) -> None:
        def answer(body: bytes) -> tuple[int, bytes]:
            if len(body) > 20_000:
                return 413, b"too large"
            return 200, json.dumps({"accepted": len(json.loads(body)["events"]), "errors": []}).encode()

        stub = Stub(answer)
        self.addCleanup(stub.close)
        events = [{"tenant_id": "a", "event_name": "call", "string_props": {"text": "x" * 1_000}} for _ in range(100)]
        self.assertEqual(self.client(stub.url).send(events), 100)
        self.assertEqual(self.problems, [])

    def test_unsent_events_are_reported_on_close(self) -> None:
        client = self.client("http://127.0.0.1:1")
        for _ in range(100):
            client.track("left", "call")
        client.close(0.2)
        self.assertEqual(sum(len(one.events) for one in self.problems), 100)

    def test_ids_that_are_none_are_made(self) -> None:
        proxy = DroppingProxy(self.server, 1)
        self.addCleanup(proxy.close)
        event = {"tenant_id": "none", "event_name": "call", "event_id": None, "timestamp": datetime.now() - timedelta(hours=1)}
        self.assertEqual(self.client(proxy.url).send([event] * 5 + [event | {"event_id": ""}]), 6)
        self.assertEqual(self.count("none"), 6)

    def test_connections_that_the_server_closed_are_replaced_at_once(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        client = Inlay(server.url, server.key)
        ask = lambda: client.query(tenant_id="a", event_name="call", metric="count", period="1h")  # noqa: E731
        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.restart()
        started = time.monotonic()
        ask()
        self.assertLess(time.monotonic() - started, 10)

    def test_errors_travel_between_processes(self) -> None:
        error = pickle.loads(pickle.dumps(InlayError(400, "missing_field", "no", "metric")))
        self.assertEqual((error.status, error.field), (400, "metric"))

    def board(self) -> str:
        board = self.inlay.request("POST", "/v1/dashboards", body={"name": "Usage", "widgets": [WIDGET]})
        self.inlay.request("POST", f"/v1/dashboards/{board['id']}/publish")
        return str(board["id"])

    def test_a_session_opens_its_dashboard(self) -> None:
        session = self.inlay.embed_session("acme", self.board(), expires_in=600)
        self.assertLess(abs((session.expires_at - datetime.now(timezone.utc)).total_seconds() - 600), 60)
        path = session.embed_url.removeprefix(self.server.url)
        self.assertIn(b"Usage", self.server.call("GET", path))

    def test_a_webhook_is_verified(self) -> None:
        receiver = Stub(lambda _: (200, b""))
        self.addCleanup(receiver.close)
        rule = {"dashboard_id": self.board(), "widget_id": "calls", "name": "Silence", "condition_type": "no_data",
                "webhook_url": receiver.url + "/hook", "webhook_signed": True}  # fmt: skip
        made = self.inlay.request("POST", "/v1/alerts", body=rule)
        self.inlay.request("POST", f"/v1/alerts/{made['id']}/test")
        headers, body = receiver.received[0]
        secret = made["webhook_secret"]
        self.assertTrue(verify_webhook(secret, headers, body))
        self.assertEqual(json.loads(body)["alert_id"], made["id"])
        for wrong in (
            lambda: verify_webhook(secret, headers, body + b" "),
            lambda: verify_webhook("whsec_" + "A" * 32, headers, body),
            lambda: verify_webhook(secret, headers, body, now=time.time() + 3_600),
            lambda: verify_webhook(secret, {}, body),
            lambda: verify_webhook(secret, headers | {"webhook-timestamp": "9" * 400}, body),
        ):
            self.assertRaises(WebhookError, wrong)
        for empty in ("", "whsec_", "whsec_????"):
            self.assertRaises(ValueError, lambda: verify_webhook(empty, headers, body))


if __name__ == "__main__":
    unittest.main()
