#!/usr/bin/env python3
"""What alerts and reports tell arrives: by mail over SMTP, by webhook, and over kills.

Mail goes to a real SMTP server (aiosmtpd) over implicit TLS, over STARTTLS, and in the clear; it refuses some
receivers for good, asks others to come back, and takes the rest. Webhooks go to a receiver that fails at
random, while the server is killed at random times: every change of an alert must arrive, the alarm before
its recovery, and each attempt is doubled by no more than the kills that met it. Reports are drawn as CSV, PNG
and PDF; text is taken out of the pages again, and hostile values must be there as plain text.

With `--sabotage` the ledger expects a change that never was: the rig must fail.
"""

import collections
import csv
import email
import email.policy
import http.server
import io
import json
import logging
import random
import shutil
import ssl
import subprocess
import threading
import time

from common import Connection, Failed, Skipped, main, register

# What the server may use at most while it draws.
MEMORY_MIB_MAX = 400
HOSTILE = [
    "<script>alert(1)</script>", "=1+1", "@SUM(A1)", "\u202egnp.exe", "a\u0301\u0327", "😀 emoji", "x" * 300,
    "]]>&amp;", "line\nbreak", "quote\"'", "العربية", "日本語",
]  # fmt: skip


def options(parser):
    parser.add_argument("--kills", type=int, default=10)


class Receiver(http.server.ThreadingHTTPServer):
    """Takes webhooks, and fails as often as it is told."""

    def __init__(self, failing, lots):
        super().__init__(("127.0.0.1", 0), Handler)
        self.failing, self.lots, self.lock = failing, lots, threading.Lock()
        self.received = []
        self.url = f"http://127.0.0.1:{self.server_port}/in/"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            fails = self.server.lots.random() < self.server.failing
            self.server.received.append((self.path, dict(self.headers.items()), body, not fails))
        self.send_response(500 if fails else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Mailbox:
    """What an SMTP server is told to do with receivers, and what it took."""

    def __init__(self):
        self.taken, self.tries, self.was_encrypted = [], collections.Counter(), []

    async def handle_RCPT(self, server, session, envelope, address, _options):
        self.tries[address] += 1
        if address.startswith("gone"):
            return "550 5.1.1 no such mailbox"
        if address.startswith("later") and self.tries[address] == 1:
            return "451 4.7.1 greylisted, come back"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.was_encrypted.append(session.ssl is not None)
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.taken.append((envelope.rcpt_tos[0], mail))
        return "250 taken"


def certificate(folder):
    """A certificate for the loopback that nobody but this rig trusts."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-keyout", key, "-out", cert, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-addext", "basicConstraints=critical,CA:FALSE"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context


class Account:
    """One organisation with a dashboard."""

    def __init__(self, server, name="rig"):
        self.connection = Connection(server.host, register(server.host, name))
        layout = {"x": 0, "y": 0, "w": 6, "h": 4}
        widgets = [
            {"id": "calls", "kind": "line", "title": "Calls", "viz": {}, "layout": layout,
             "query": {"event_name": "call", "metric": "count", "period": "7d"}},
            {"id": "list", "kind": "table", "title": "All <values>", "viz": {}, "layout": layout | {"y": 4, "w": 12, "h": 6},
             "query": {"event_name": "call", "metric": "count", "period": "7d", "group_by": "plan", "limit": 1000}},
            {"id": "bars", "kind": "bar_list", "title": "Bars", "viz": {}, "layout": layout | {"x": 6},
             "query": {"event_name": "call", "metric": "count", "period": "7d", "group_by": "plan"}},
        ]  # fmt: skip
        self.dashboard = self.call("POST", "/v1/dashboards", {"name": "D & <D>", "widgets": widgets}, 201)["id"]

    def call(self, method, path, body=None, expected=200):
        status, _, answer = self.connection.call(method, path, body)
        if status != expected:
            raise Failed(f"{method} {path}: {status} {answer}")
        return answer

    def send(self, count, plan="p"):
        event = {"event_name": "call", "tenant_id": "t", "string_props": {"plan": plan}}
        self.call("POST", "/v1/events", {"events": [event] * count})

    def alert(self, **parts):
        rule = {
            "dashboard_id": self.dashboard, "widget_id": "calls", "name": "A", "condition_type": "threshold",
            "operator": "gt", "threshold_value": 0,
        }  # fmt: skip
        return self.call("POST", "/v1/alerts", rule | parts, 201)["id"]

    def report(self, file_format, **parts):
        rule = {"dashboard_id": self.dashboard, "name": "R <r>", "schedule": "monthly", "format": file_format}
        report = self.call("POST", "/v1/reports", rule | parts, 201)["id"]
        self.call("POST", f"/v1/reports/{report}/run", None, 202)
        return self.wait(lambda: self.ended(report), f"the run of report {report} to end")

    def ended(self, report):
        runs = self.call("GET", f"/v1/reports/{report}/runs")["data"]
        return runs[0] if runs and runs[0]["status"] != "running" else None

    @staticmethod
    def wait(happened, what, seconds=60):
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            if found := happened():
                return found
            time.sleep(0.05)
        raise Failed(f"waited {seconds} s for {what}")


def by_mail(rig, wrong):
    """Receivers who take, who refuse, and who ask to come back, in the clear, by STARTTLS and TLS."""
    from aiosmtpd.controller import Controller

    cert, context = certificate(rig.folder)
    ways = {
        "smtp://127.0.0.1:{}": {},
        "smtp://localhost:{}?tls=required": {"tls_context": context, "require_starttls": True},
        "smtps://localhost:{}": {"ssl_context": context},
    }
    sent = 0
    for number, (url, settings) in enumerate(ways.items()):
        box = Mailbox()
        controller = Controller(box, hostname="127.0.0.1", port=free_port(), **settings)
        controller.start()
        rig.stack.callback(controller.stop)
        server = rig.start(
            data=rig.folder / f"mail{number}",
            environment={
                "INLAY_SMTP_URL": url.format(controller.port), "INLAY_MAIL_FROM": "Rig <rig@sender.example>",
                "INLAY_ALERT_INTERVAL_SECONDS": "1", "SSL_CERT_FILE": str(cert),
            },
        )  # fmt: skip
        account = Account(server)
        to = ["ok@a.example", "gone@a.example"]
        alert = account.alert(email_to=to, name="Line <b>")
        account.send(1)
        told = account.wait(lambda: settled(account, alert), "the mails of an alert")
        statuses = {one["to"]: (one["status"], one["error"] or "") for one in told["deliveries"]}
        if statuses["ok@a.example"] != ("sent", ""):
            wrong.append(f"{url}: {statuses}")
        if statuses["gone@a.example"][0] != "failed" or "no such mailbox" not in statuses["gone@a.example"][1]:
            wrong.append(f"{url}: a bounce is told as {statuses['gone@a.example']}")
        if box.tries["gone@a.example"] != 1:
            wrong.append(f"{url}: a receiver who refused for good was tried {box.tries['gone@a.example']} times")
        # Over implicit TLS there is nothing else; the server only tells of STARTTLS.
        if number == 1 and box.was_encrypted != [True]:
            wrong.append(f"{url}: encrypted {box.was_encrypted}")
        _, mail = box.taken[0]
        parts = {part.get_content_type() for part in mail.walk()}
        if not {"text/plain", "text/html"} <= parts or mail["From"] != "Rig <rig@sender.example>":
            wrong.append(f"{url}: {parts}, {mail['From']}")
        if number == 0:
            # A receiver who asks to come back gets it half a minute later; a report waits for him as well.
            account.alert(email_to=["later@a.example"])
            run = account.report("pdf", recipients=["ok@a.example", "gone@a.example"])
            if run["status"] != "partial" or run["bytes"] < 1_000:
                wrong.append(f"a report with a bounce: {run}")
            account.wait(lambda: any(to == "later@a.example" for to, _ in box.taken), "the second try", 90)
            if box.tries["later@a.example"] != 2:
                wrong.append(f"greylisted: {box.tries['later@a.example']} tries")
            files = [part for _, mail in box.taken for part in mail.iter_attachments()]
            if [part.get_content_type() for part in files] != ["application/pdf"]:
                wrong.append(f"attachments: {[part.get_content_type() for part in files]}")
        sent += len(box.taken)
        server.stop()
    return sent


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def settled(account, alert):
    """The newest event of an alert, when nothing of it is on its way any more."""
    events = account.call("GET", f"/v1/alerts/{alert}/events")["data"]
    if events and all(one["status"] != "pending" for one in events[0]["deliveries"]):
        return events[0]
    return None


def drawn(rig, wrong):
    """Reports of hostile values in the three formats; how long each took."""
    receiver = Receiver(0, random.Random(0))
    server = rig.start(data=rig.folder / "drawn", environment={"INLAY_WEBHOOK_ALLOW": "127.0.0.0/8"})
    account = Account(server)
    for at, value in enumerate(HOSTILE):
        account.send(at + 1, value)
    for at in range(900):
        account.send(1, f"group {at:03}")
    took, files = {}, {}
    for file_format in ("csv", "png", "pdf"):
        run = account.report(file_format, webhook_url=receiver.url)
        if run["status"] != "succeeded":
            raise Failed(f"{file_format}: {run}")
        began, ended = (time_of(run[name]) for name in ("started_at", "finished_at"))
        took[file_format] = ended - began
        files[file_format] = receiver.received[-1][2]
    rows = list(csv.reader(io.StringIO(files["csv"].decode("utf-8-sig"))))
    groups = {row[3] for row in rows[1:] if row[0] == "list"}
    expected = {f"'{value}" if value[0] in "=+-@\t\r" else value for value in HOSTILE}
    if not expected <= groups:
        wrong.append(f"CSV lacks {expected - groups}")
    if not files["png"].startswith(b"\x89PNG\r\n"):
        wrong.append("the picture is no PNG")
    if shutil.which("pdftotext"):
        path = rig.folder / "report.pdf"
        path.write_bytes(files["pdf"])
        text = subprocess.run(["pdftotext", "-layout", path, "-"], check=True, capture_output=True, text=True).stdout
        # The table has all of its rows, over many pages; what is markup elsewhere is text here.
        for part in ("<script>alert(1)</script>", "=1+1", "group 000", "group 899", "D & <D>", "All <values>"):
            if part not in text:
                wrong.append(f"the pages lack {part!r}")
        fonts = subprocess.run(["pdffonts", path], check=True, capture_output=True, text=True).stdout
        lines = [line for line in fonts.splitlines()[2:] if "Inter" in line]
        if not lines or not all(" yes yes yes " in line for line in lines):
            wrong.append(f"fonts are not embedded: {fonts}")
    else:
        raise Skipped("needs pdftotext (poppler-utils)")
    took["large pdf"] = large(account, receiver, wrong)
    memory = server.memory_peak_mib()
    server.stop()
    if memory > MEMORY_MIB_MAX:
        wrong.append(f"drawing took {memory} MiB")
    return took, memory


def large(account, receiver, wrong):
    """Fifty widgets, of which eleven are tables of all groups: ten thousand rows."""
    ask = {"event_name": "call", "period": "7d", "group_by": "plan", "metric": "count", "limit": 1000}
    widgets = []
    for at in range(50):
        layout = {"x": at % 3 * 4, "y": at // 3 * 6, "w": 4, "h": 6}
        kind = "table" if at < 11 else ("bar_list", "donut", "bar")[at % 3]
        widgets.append({"id": f"w{at}", "kind": kind, "title": f"W{at}", "viz": {}, "layout": layout, "query": ask})
    board = account.call("POST", "/v1/dashboards", {"name": "Large", "widgets": widgets}, 201)["id"]
    run = account.report("pdf", webhook_url=receiver.url, dashboard_id=board)
    if run["status"] != "succeeded":
        wrong.append(f"a large report: {run}")
    return time_of(run["finished_at"]) - time_of(run["started_at"])


def time_of(text):
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


def over_kills(rig, wrong):
    """Alerts that fire and recover while the receiver fails and the server is killed."""
    lots = random.Random(rig.random_seed)
    receiver = Receiver(0.3, lots)
    settings = {
        "INLAY_WEBHOOK_ALLOW": "127.0.0.0/8", "INLAY_ALERT_INTERVAL_SECONDS": "1",
        "INLAY_WEBHOOK_BACKOFF_SECONDS": "0,1,1,1,1,1,1,1,1,1",
    }  # fmt: skip
    data = rig.folder / "kills"
    server = rig.start(data=data, environment=settings)
    account = Account(server)
    key, alerts, changes = account.connection.key, {}, 0
    account.send(1)
    for kill in range(rig.arguments.kills):
        for turn in range(3):
            # Every rule fires at once; every other one is then made to recover.
            alert = account.alert(webhook_url=f"{receiver.url}{kill}.{turn}", name=f"{kill}.{turn}")
            alerts[f"/in/{kill}.{turn}"] = alert
            changes += 1
        time.sleep(lots.uniform(0.05, 2.5))
        server.kill()
        server = rig.start(data=data, environment=settings)
        account.connection = Connection(server.host, key)
    changes += 1 if rig.arguments.sabotage else 0

    def arrived():
        with receiver.lock:
            return {path for path, _, _, took in receiver.received if took}

    try:
        account.wait(lambda: len(arrived()) >= changes, "every change to arrive", 60)
    except Failed:
        missing = [path for path in alerts if path not in arrived()]
        wrong.append(f"{changes - len(arrived())} of {changes} changes did not arrive: {missing[:5]}")
    time.sleep(2)
    for path, alert in alerts.items():
        taken = [one for one in receiver.received if one[0] == path and one[3]]
        events = account.call("GET", f"/v1/alerts/{alert}/events")["data"]
        if len(events) != 1 or json.loads(taken[0][2])["state"] != "firing":
            wrong.append(f"{path}: events {events}")
        if len(taken) > 2:
            wrong.append(f"{path} was taken {len(taken)} times, and met at most one kill while it was under way")
        if events and events[0]["deliveries"][0]["status"] != "sent":
            wrong.append(f"{path}: {events[0]['deliveries']}")
    doubled = len([one for one in receiver.received if one[3]]) - len(arrived())
    server.stop()
    return changes, len(receiver.received), doubled


def run(rig):
    try:
        import aiosmtpd  # noqa: F401
    except ImportError:
        raise Skipped("needs aiosmtpd (PyPI)") from None
    logging.getLogger("mail.log").setLevel(logging.CRITICAL)
    if not shutil.which("openssl"):
        raise Skipped("needs openssl")
    wrong = []
    changes, attempts, doubled = over_kills(rig, wrong)
    took, memory = drawn(rig, wrong)
    mails = by_mail(rig, wrong)
    times = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in took.items())
    return wrong, (
        f"{changes} changes arrived over {rig.arguments.kills} kills in {attempts} attempts, {doubled} doubled; "
        f"{mails} mails in the clear, by STARTTLS and TLS; reports with 911 rows: {times}, {memory} MiB at most"
    )


if __name__ == "__main__":
    main("deliveries", __doc__, run, options)
