#!/usr/bin/env python3
"""No webhook reaches an address that is not public: the packets are the judge.

The rig runs in a network of its own in which every address is this machine, so that nothing is sent to
anybody and nothing fails to connect. Each URL of `webhooks.tsv` is given to the server as the webhook of an
alert, when it is made and when it is changed, and where it was taken, a test is sent there. A raw socket
records every connection attempt. Names are resolved by a stand-in of ours, some to internal addresses, some
to another address each time they are asked for.

    blocked     refused when it is saved
    resolved    a name that leads inside: refused when it is saved, or taken where nobody knows it; no packet
                goes anywhere
    ADDRESS PORT    taken, and a connection is made to exactly this

With `--sabotage` the server may reach everything: the rig must fail.
"""

import collections
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time

from common import Connection, Failed, Skipped, main, register

TABLE = pathlib.Path(__file__).with_suffix(".tsv")
# A name server and receivers live on addresses that are public elsewhere.
NAME_SERVER = "9.9.9.10"
PORTS = (80, 443, 1024, 8080, 8081)
PUBLIC, PUBLIC_SIX = "8.8.4.4", "2606:4700::1111"
# What is told of every name that leads nowhere or inside, so that nobody learns which names exist.
REFUSED = "address not allowed, or its name could not be resolved"
# A packet is recorded within this time after the answer.
SETTLE_SECONDS = 0.03

A, CNAME, AAAA = 1, 5, 28
ALIASES = {"in-alias.public.net": "in-loopback.public.net", "alias.public.net": "hook.public.net"}
ADDRESSES = {
    "hook.public.net": [PUBLIC],
    "redirect.public.net": [PUBLIC],
    "xn--bcher-kva.public.net": [PUBLIC],
    "six.public.net": [PUBLIC_SIX],
    "in-loopback.public.net": ["127.0.0.1"],
    "in-private.public.net": ["10.1.2.3"],
    "in-metadata.public.net": ["169.254.169.254"],
    "in-mixed.public.net": [PUBLIC, "10.1.2.3"],
    "in-six.public.net": ["::1"],
    "in-both.public.net": [PUBLIC, "fd00::1"],
    "in-mapped.public.net": ["::ffff:8.8.8.8"],
    "in-translated.public.net": ["64:ff9b::808:808"],
    "in-zero.public.net": ["0.0.0.0"],
}
# Public when it is asked for first, internal ever after: the answer changes between check and connect.
CHANGING = "changing.public.net"


class Names(threading.Thread):
    """A name server that answers over UDP, and what it was asked."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((NAME_SERVER, 53))
        self.asked, self.changes_after = collections.Counter(), 1
        self.start()

    def run(self):
        while True:
            question, sender = self.socket.recvfrom(4_096)
            self.socket.sendto(self.answer(question), sender)

    def answer(self, question):
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1 : at + 1 + question[at]].decode().lower())
            at += question[at] + 1
        name, (kind,) = ".".join(labels), struct.unpack("!H", question[at + 1 : at + 3])
        asked = question[12 : at + 5]
        self.asked[name, kind] += 1
        answers = self.records(name, kind)
        # An answer of authority, with recursion, or no such name.
        known = name in ADDRESSES or name in ALIASES or name == CHANGING
        head = question[:2] + struct.pack("!HHHHH", 0x8580 if known else 0x8583, 1, len(answers), 0, 0)
        return head + asked + b"".join(answers)

    def records(self, name, kind):
        out = []
        owner = b"\xc0\x0c"
        if name in ALIASES:
            target = encoded(ALIASES[name])
            out.append(owner + struct.pack("!HHIH", CNAME, 1, 0, len(target)) + target)
            owner, name = target, ALIASES[name]
        addresses = ADDRESSES.get(name, [])
        if name == CHANGING:
            addresses = [PUBLIC] if self.asked[name, kind] <= self.changes_after else ["127.0.0.1"]
        for address in addresses:
            family, type_of = (socket.AF_INET6, AAAA) if ":" in address else (socket.AF_INET, A)
            if type_of == kind:
                data = socket.inet_pton(family, address)
                out.append(owner + struct.pack("!HHIH", kind, 1, 0, len(data)) + data)
        return out


def encoded(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


class Wire(threading.Thread):
    """Every first packet of a TCP connection and every UDP packet, by its destination."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self.socket.bind(("lo", 0))
        self.seen = []
        self.start()

    def run(self):
        while True:
            packet, (_, _, direction, *_) = self.socket.recvfrom(65_536)
            # On the loopback each packet is seen leaving and coming.
            if direction == socket.PACKET_OUTGOING and (found := destination(packet)):
                self.seen.append(found)

    def take(self):
        time.sleep(SETTLE_SECONDS)
        seen, self.seen = self.seen, []
        return seen


def destination(packet):
    """Protocol, address and port that a packet goes to, if it opens something."""
    if packet[0] >> 4 == 4:
        protocol, start = packet[9], (packet[0] & 15) * 4
        address = socket.inet_ntop(socket.AF_INET, packet[16:20])
    else:
        protocol, start = packet[6], 40
        address = socket.inet_ntop(socket.AF_INET6, packet[24:40])
    both = packet[start : start + 4] if protocol in (6, 17) else bytes(4)
    source, port = struct.unpack("!HH", both)
    if protocol == 17 and source == 53:
        return None  # The name server answers.
    if protocol == 6:
        syn, ack = packet[start + 13] & 2, packet[start + 13] & 16
        return ("tcp", address, port) if syn and not ack else None
    return ("udp" if protocol == 17 else f"protocol {protocol}", address, port)


class Receivers:
    """Listen on some ports of all addresses; one of them redirects inside."""

    def __init__(self):
        for port in PORTS:
            listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listener.bind(("::", port))
            listener.listen(64)
            threading.Thread(target=self.serve, args=(listener, port), daemon=True).start()

    def serve(self, listener, port):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.answer, args=(connection, port), daemon=True).start()

    def answer(self, connection, port):
        with connection:
            connection.settimeout(5)
            try:
                connection.recv(65_536)
                status = b"302 X\r\nLocation: http://127.0.0.1:8080/inside" if port == 8081 else b"200 OK"
                connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
            except OSError:
                pass  # Whoever speaks TLS gets no answer that he understands.


def options(parser):
    parser.add_argument("--inside", action="store_true", help="it is in its network already")


def enter(rig):
    """Starts the rig again in a network and with mounts of its own."""
    if os.geteuid() != 0:
        raise Skipped("needs root, for a network of its own")
    probe = ["unshare", "--net", "--mount", "true"]
    try:
        subprocess.run(probe, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise Skipped("needs `unshare` and the right to make a network") from None
    done = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, *sys.argv, "--inside"], stdout=subprocess.PIPE, text=True
    )
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        raise Failed("\n".join(lines[-12:]) or "the rig ended without a word in its network")
    return [], lines[-1].partition(": ")[2].rpartition("; ")[0]


def build(folder):
    """Every address is local, and names are resolved by our stand-in."""
    for command in (
        "ip link set lo up",
        "ip route add local 0.0.0.0/0 dev lo",
        "ip -6 route add local ::/0 dev lo",
    ):
        subprocess.run(command.split(), check=True)
    resolv = folder / "resolv.conf"
    resolv.write_text(f"nameserver {NAME_SERVER}\n")
    target = os.path.realpath("/etc/resolv.conf")
    pathlib.Path(target).touch()
    subprocess.run(["mount", "--bind", resolv, target], check=True)


class Lab:
    """One server in the network, with one alert whose webhook is tried."""

    def __init__(self, rig):
        build(rig.folder)
        self.names, self.wire = Names(), Wire()
        Receivers()
        allow = {"INLAY_WEBHOOK_ALLOW": "0.0.0.0/0,::/0"} if rig.arguments.sabotage else {}
        server = rig.start(environment=allow)
        self.server = server
        self.own = ("127.0.0.1", int(server.host.rpartition(":")[2]))
        self.orgs = self.sent = 0
        self.enter()

    def enter(self):
        """Goes on in a new organisation: each may send a few tests a minute."""
        self.orgs += 1
        self.connection = Connection(self.server.host, register(self.server.host, f"org{self.orgs}"))
        widget = {
            "id": "w", "kind": "number", "title": "W", "viz": {}, "layout": {"x": 0, "y": 0, "w": 3, "h": 3},
            "query": {"event_name": "e", "metric": "count", "period": "7d"},
        }  # fmt: skip
        made = self.call("POST", "/v1/dashboards", {"name": "D", "widgets": [widget]})[1]
        self.rule = {
            "dashboard_id": made["id"], "widget_id": "w", "name": "A", "condition_type": "no_data",
        }  # fmt: skip
        self.alert = self.call("POST", "/v1/alerts", self.rule)[1]["id"]

    def call(self, method, path, body=None):
        status, _, answer = self.connection.call(method, path, body)
        return status, answer

    def packets(self):
        """What left since the last look, but for talk with us and with the name server."""
        known = {("udp", NAME_SERVER, 53), ("tcp", *self.own)}
        out = []
        for protocol, address, port in self.wire.take():
            if (protocol, address, port) not in known:
                out.append(f"{address} {port}" if protocol == "tcp" else f"{protocol} {address} {port}")
        return out

    def set(self, url):
        """Gives the URL to a new alert and to the one there is; the statuses."""
        created, answer = self.call("POST", "/v1/alerts", self.rule | {"webhook_url": url})
        if created == 201:
            self.call("DELETE", f"/v1/alerts/{answer['id']}")
        patched, told = self.call("PATCH", f"/v1/alerts/{self.alert}", {"webhook_url": url})
        if created == 400 and answer.get("field") != "webhook_url":
            raise Failed(f"{url!r}: {answer}")
        if patched == 400 and "127.0.0.1" in told["error"]:
            raise Failed(f"the refusal of {url!r} tells an address: {told}")
        return created, patched

    def send(self):
        """Sends a test; the error that is told, and the packets."""
        self.sent += 1
        status, answer = self.call("POST", f"/v1/alerts/{self.alert}/test")
        if status != 200:
            raise Failed(f"a test: {status} {answer}")
        return answer["deliveries"][0]["error"], self.packets()


def try_case(lab, url, verdict):
    """What is wrong about one row of the table."""
    if lab.sent >= 15 * lab.orgs:
        lab.enter()
    created, patched = lab.set(url)
    if verdict == "blocked":
        if (created, patched) != (400, 400):
            error, packets = lab.send()
            return f"taken with {created} and {patched}; sending it: {error}, {packets}"
        packets = lab.packets()
        return f"refused, and yet there were packets: {packets}" if packets else None
    if verdict == "resolved" and (created, patched) == (400, 400):
        packets = lab.packets()
        return f"refused, and yet there were packets: {packets}" if packets else None
    if (created, patched) != (201, 200):
        return f"refused with {created} and {patched}"
    lab.packets()
    error, packets = lab.send()
    if verdict == "resolved":
        is_right = not packets and error == REFUSED
    else:
        is_right = packets == [verdict]
    return None if is_right else f"expected {verdict}: {error}, {packets}"


def try_changing(lab):
    """A name whose answer changes: looked up once an attempt, and connected to what was looked at."""
    lab.names.changes_after = 10**9
    if lab.set(f"http://{CHANGING}:8080/") != (201, 200):
        return ["a name that is public was refused"]
    lab.names.asked.clear()
    lab.names.changes_after = 1
    first, second = lab.send(), lab.send()
    wrong = []
    if first[1] != [f"{PUBLIC} 8080"]:
        wrong.append(f"changing name, first: {first}")
    if second != (REFUSED, []):
        wrong.append(f"changing name, later: {second}")
    if lab.names.asked[CHANGING, A] != 2:
        wrong.append(f"changing name: asked {lab.names.asked[CHANGING, A]} times in two attempts")
    return wrong


def run(rig):
    if not rig.arguments.inside:
        return enter(rig)
    lab = Lab(rig)
    wrong, counts = [], collections.Counter()
    for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]:
        text, verdict, why = line.split("\t")
        url = json.loads(f'"{text}"')
        fault = try_case(lab, url, verdict)
        counts[verdict if verdict in ("blocked", "resolved") else "allowed"] += 1
        if fault:
            wrong.append(f"{ascii(url)[:100]} ({why}): {fault}")
    wrong += try_changing(lab)
    lab.server.expect_alive()
    return wrong, (
        f"{counts['blocked']} URLs refused, {counts['resolved']} names that lead inside without a packet, "
        f"{counts['allowed']} connections to exactly the address that was allowed; 1 name that changes"
    )


if __name__ == "__main__":
    main("webhooks", __doc__, run, options)
