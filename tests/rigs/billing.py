#!/usr/bin/env python3
"""The server and the billing provider's own library, asked about the same signatures.

    python3 tests/rigs/billing.py PATH/TO/inlay --mutations 1000

Headers and bodies are signed well and then spoiled: bytes changed, added and removed, parts repeated,
swapped, renamed, times that are odd, keys that are others. Both must say the same, but for what we do on
purpose: several signatures may come while keys change, a time may be off by some minutes in both
directions, and a value ends where its part ends. Node with `@paddle/paddle-node-sdk` in `NODE_PATH` is
needed.
"""

import hashlib
import hmac
import http.client
import json
import pathlib
import random
import shutil
import subprocess
import time

from common import Skipped, main

KEY = "pdl_ntfset_of_this_run"
SCRIPT = pathlib.Path(__file__).resolve().with_name("billing.cjs")
# Between the tolerance of the library (5 s) and ours (300 s) the two differ on purpose.
LIBRARY_SECONDS, OUR_SECONDS = 5, 300


def options(parser):
    parser.add_argument("--mutations", type=int, default=1_000)


def sign(key, ts, body):
    return hmac.new(key.encode(), f"{ts}:{body}".encode(), hashlib.sha256).hexdigest()


class Library:
    """The provider's library, in a process of its own."""

    def __init__(self, stack):
        if not shutil.which("node"):
            raise Skipped("node is not installed here")
        found = subprocess.run(
            ["node", "-e", "require('@paddle/paddle-node-sdk')"], capture_output=True
        )
        if found.returncode:
            raise Skipped("@paddle/paddle-node-sdk is not in NODE_PATH")
        self.process = subprocess.Popen(
            ["node", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        stack.callback(self.process.kill)

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def event(lots, number):
    return json.dumps(
        {
            "event_id": f"evt_{number}_{lots.random()}",
            "event_type": lots.choice(("subscription.updated", "transaction.paid")),
            "occurred_at": "2026-11-20T10:00:00Z",
            "data": {"note": lots.choice(("", "é", "💩", '"quoted"', "a;b=c"))},
        },
        ensure_ascii=lots.random() < 0.5,
    )


def spoil(lots, text):
    """One small change of a text."""
    at = lots.randrange(len(text) + 1)
    kind = lots.randrange(4)
    if kind == 0:
        return text[:at] + lots.choice("0123456789abcdef;=,. xT") + text[at:]
    if kind == 1:
        return text[:at] + text[at + 1 :]
    if kind == 2:
        return text[:at] + lots.choice("0123456789abcdef;=AF+-") + text[at + 1 :]
    return text[:at] + text[at:].swapcase()


def question(lots, number):
    """Header, body, and whether the two may differ on it, for the reason that is given."""
    body, now = event(lots, number), int(time.time())
    age = lots.choice((0, 0, 0, 0, 1, 60, 299 - 20, 400, 100_000, -60, -400))
    ts, key = now - age, lots.choice((KEY, KEY, KEY, "another key", ""))
    h1 = sign(key or "x", ts, body)
    why = None
    if LIBRARY_SECONDS - 3 < age <= OUR_SECONDS:
        why = "older than the library takes it"
    if age < 0:
        why = "from the future"
    form = lots.randrange(8)
    if form == 0:
        header, why = f"ts={ts};h1={h1};h1={'0' * 64}", "the first of two signatures"
    elif form == 1:
        header = f"ts={ts};h1={'0' * 64};h1={h1}"
    elif form == 2:
        header = f"h1={h1};ts={ts}"
    elif form == 3:
        odd = (f"{ts}.0", "-1", "NaN", "", "9" * 20, f"0{ts}", f"{ts}x", f"0x{ts}")
        header = f"ts={lots.choice(odd)};h1={h1}"
    elif form == 4:
        header = lots.choice((f"ts={ts}", f"h1={h1}", f"ts={ts};h2={h1}", f"v=1;ts={ts};h1={h1}"))
    else:
        header = f"ts={ts};h1={h1}"
    if lots.random() < 0.4:
        header = spoil(lots, header)
    if lots.random() < 0.2:
        body = spoil(lots, body)
    if "=" in "".join(part.partition("=")[2] for part in header.split(";")):
        why = why or "a value with an equals sign"
    return header, body, why


def verdict(connection, header, body):
    """Whether the server takes a signature; what it thinks of the body is another thing."""
    headers = {"Content-Type": "application/json", "Billing-Signature": header}
    connection.request("POST", "/webhooks/billing", body.encode(), headers)
    answer = connection.getresponse()
    answer.read()
    if answer.status not in (200, 400, 401):
        raise ValueError(f"{answer.status} to {header}")
    return answer.status != 401


def run(rig):
    library = Library(rig.stack)
    lots = random.Random(rig.random_seed)
    server = rig.start(environment={"BILLING_NOTIFICATION_KEY": KEY})
    connection = http.client.HTTPConnection(server.host, timeout=30)
    rig.stack.callback(connection.close)
    wrong, good, differ = [], 0, 0
    for number in range(rig.arguments.mutations):
        header, body, why = question(lots, number)
        try:
            header.encode("latin-1")
        except UnicodeEncodeError:
            continue
        if header != header.strip():
            continue
        ours = verdict(connection, header, body)
        theirs = library.ask({"header": header, "body": body, "key": KEY})
        good += ours
        differ += ours != theirs
        if ours != theirs and not why:
            wrong.append(f"ours {ours}, the library's {theirs}: {header!r} over {body!r}")
    # What the library's own means sign, we take.
    body, ts = event(lots, "own"), int(time.time())
    signed = library.ask({"sign": {"ts": ts, "body": body, "key": KEY}})
    if not verdict(connection, f"ts={ts};h1={signed}", body):
        wrong.append("what the library would send is refused")
    if good < rig.arguments.mutations // 20:
        wrong.append(f"only {good} signatures were good: the comparison shows little")
    return wrong, f"{rig.arguments.mutations} signatures, {good} good, {differ} differ on purpose"


if __name__ == "__main__":
    main("billing", __doc__, run, options)
