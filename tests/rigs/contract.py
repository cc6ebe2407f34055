#!/usr/bin/env python3
"""Everything that the OpenAPI document says, tried by a generator of requests.

    python3 tests/rigs/contract.py PATH/TO/inlay --examples 20

Schemathesis reads the served document and sends what it allows and what it forbids, as an admin key, as
the owner's session, and as nobody. No answer may be a failure of the server, and none may have a status,
a media type, a header or a body that the document does not know; what the document forbids is refused.
`contract.toml` names the few operations whose rules a schema cannot say.
"""

import http.server
import json
import os
import pathlib
import shutil
import subprocess
import threading

from common import Skipped, main, register_with_session

# What ends the credentials that a run needs; another run tries them.
ENDS = {
    "admin key": ("RevokeApiKey", "DeleteOrg"),
    "session": ("Logout", "DeleteOrg", "DeleteMember"),
    "nobody": (),
}
CONFIG = pathlib.Path(__file__).resolve().with_name("contract.toml")
SECONDS_MAX = 1_200
FAILURES_SHOWN_CHARS = 6_000


def options(parser):
    parser.add_argument("--examples", type=int, default=20, help="of each operation, at most")


class Portal(http.server.BaseHTTPRequestHandler):
    """A stand-in of the billing API."""

    def do_POST(self):
        body = json.dumps({"data": {"urls": {"general": {"overview": "https://x.example"}}}})
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def run(rig):
    if not shutil.which("schemathesis"):
        raise Skipped("schemathesis is not installed here")
    portal = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Portal)
    threading.Thread(target=portal.serve_forever, daemon=True).start()
    rig.stack.callback(portal.shutdown)
    settings = {
        "INLAY_BILLING_API_URL": f"http://127.0.0.1:{portal.server_port}",
        "INLAY_BILLING_API_KEY": "key",
        "INLAY_BILLING_CLIENT_TOKEN": "token",
        "INLAY_BILLING_PRICES": "growth=pri_1",
        "INLAY_DEFAULT_PLAN": "self_hosted",
        "BILLING_NOTIFICATION_KEY": "key",
    }
    environment = os.environ | {"SCHEMATHESIS_HOOKS": str(CONFIG.with_name("contract_hooks.py"))}
    wrong, sent = [], 0
    for who, ends in ENDS.items():
        folder = rig.folder / who.replace(" ", "-")
        folder.mkdir()
        server = rig.start(folder / "data", environment=settings)
        key, session = register_with_session(server.host, "contract")
        headers = {
            "admin key": ["--header", f"Authorization: Bearer {key}"],
            "session": ["--header", f"Cookie: service_session={session}"],
            "nobody": [],
        }[who]
        # One thread: several share what Python parses its sources with, which before 3.12 fails now and then for that.
        command = [
            "schemathesis", "--config-file", str(CONFIG), "run",
            f"http://{server.host}/openapi.json",
            "--phases", "examples,coverage,fuzzing", "--continue-on-failure",
            "--max-examples", str(rig.arguments.examples), "--seed", str(rig.random_seed),
            "--workers", "1", "--warnings", "off", "--output-truncate", "true", *headers,
        ]  # fmt: skip
        for operation in ends:
            command += ["--exclude-operation-id", operation]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS_MAX, cwd=folder, env=environment
        )
        server.expect_alive()
        server.end()
        sent += cases(done.stdout)
        if done.returncode:
            start = max(done.stdout.find("== FAILURES"), done.stdout.find("== ERRORS"), 0)
            said = done.stdout[start:][:FAILURES_SHOWN_CHARS] + done.stderr[:500]
            wrong.append(f"as {who}:\n{said}")
    if sent < 1_000 and not wrong:
        wrong.append(f"only {sent} requests were sent")
    return wrong, f"{sent} requests as {', '.join(ENDS)}"


def cases(output):
    """How many requests were generated."""
    lines = [line for line in output.splitlines() if " generated" in line]
    return int(lines[-1].split()[0]) if lines else 0


if __name__ == "__main__":
    main("contract", __doc__, run, options)
