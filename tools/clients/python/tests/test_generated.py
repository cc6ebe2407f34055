"""A client that a public generator makes of the OpenAPI document registers, sends, queries and mints.

Needs `openapi-python-client`. Without it the test is skipped, and where `CI` is set, it fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.server import Server

DOCUMENT = Path(__file__).parents[4] / "server/doc/openapi.json"
GENERATOR = "openapi-python-client"

PROGRAM = """
import sys
from datetime import datetime, timezone
from generated import AuthenticatedClient, Client, models
from generated.api.auth import register
from generated.api.dashboards import create_dashboard, publish_dashboard
from generated.api.embed_sessions import create_embed_session
from generated.api.events import ingest_events
from generated.api.query import query, query_sql

url = sys.argv[1]
account = models.Register(email="grace@example.com", password="a long enough password", name="Grace", org_name="Navy")
made = register.sync(client=Client(url, raise_on_unexpected_status=True), body=account)
assert isinstance(made, models.Registered), made
client = AuthenticatedClient(url, made.api_key.key, raise_on_unexpected_status=True)

events = models.Events.from_dict({"events": [
    {"tenant_id": "acme", "event_name": "call", "event_id": str(n), "string_props": {"model": "large"}, "numeric_props": {"ms": n}}
    for n in range(10)]})
sent = ingest_events.sync(client=client, body=events)
assert isinstance(sent, models.Ingested) and sent.accepted == 10, sent

answer = query.sync(client=client, event_name="call", tenant_id="acme", metric="sum", numeric_prop="ms", period="24h")
assert isinstance(answer, models.DataAnswer) and answer.data[0].value == 45, answer
statement = query_sql.sync(client=client, body=models.AskSql(sql="SELECT count(*) AS n FROM events"))
assert isinstance(statement, models.SqlAnswer) and statement.rows == [[10]], statement
wrong = query.sync(client=client, event_name="call", tenant_id="acme", metric="p95", period="24h")
assert isinstance(wrong, models.Error) and wrong.field == "numeric_prop", wrong

board = create_dashboard.sync(client=client, body=models.CreateDashboard.from_dict({"name": "Usage", "widgets": [
    {"id": "calls", "kind": "number", "title": "Calls", "query": {"event_name": "call", "metric": "count"}, "viz": {},
     "layout": {"x": 0, "y": 0, "w": 4, "h": 4}}]}))
assert isinstance(board, models.Dashboard), board
assert publish_dashboard.sync_detailed(board.id, client=client).status_code == 204
session = create_embed_session.sync(
    client=client, body=models.CreateEmbedSession(tenant_id="acme", dashboard_id=board.id, expires_in=600))
assert isinstance(session, models.NewEmbedSession), session
assert session.expires_at > datetime.now(timezone.utc)
print(session.embed_url)
"""


class GeneratedClientTest(unittest.TestCase):
    def test_a_generated_client_registers_sends_queries_and_mints(self) -> None:
        if shutil.which(GENERATOR) is None:
            self.assertNotIn("CI", os.environ, f"CI installs {GENERATOR}")
            self.skipTest(f"needs {GENERATOR}")
        server = Server()
        self.addCleanup(server.close)
        with tempfile.TemporaryDirectory() as folder:
            command = [GENERATOR, "generate", "--path", str(DOCUMENT), "--output-path", f"{folder}/generated", "--meta", "none"]
            made = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
            # Everything but the second form of the body of events, of which no client needs more than one.
            left_out = [line for line in (made.stdout + made.stderr).splitlines() if "parsing" in line]
            self.assertEqual(left_out, ["WARNING parsing POST /v1/events within events."])
            python = Path(shutil.which(GENERATOR) or "").resolve().parent / "python"
            interpreter = str(python) if python.exists() else sys.executable
            ran = subprocess.run([interpreter, "-c", PROGRAM, server.url], cwd=folder, capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn(b"Usage", server.call("GET", ran.stdout.strip().removeprefix(server.url)))


if __name__ == "__main__":
    unittest.main()
