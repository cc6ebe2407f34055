#!/usr/bin/env python3
"""The same random queries to a store in a directory and to three processes with one store.

A store is filled in a directory of its own and moved to PostgreSQL and a bucket with `inlay migrate`. Then both
get the same further events, dashboards stay as they were, and each query goes to the directory's process and to
one of the three. Their answers are compared byte for byte, but for times and counts of work. At the end a backup
of the three is restored to an ordinary directory, which is asked as well.

    python3 tests/rigs/equal.py PATH/TO/inlay [--count 100000]

Queries are drawn by lot: every metric over every property, granularities, time zones, filters, groups, comparisons with the window before;
widgets of embed sessions with locked filters; SQL of the grammar that is compared with other databases; lists. With `--cache-mb` the three
have so much of the files on their disks, and something has to be evicted and fetched again. With `--sabotage` one event more goes to the three processes: the rig must fail.
"""

import collections
import concurrent.futures
import json
import pathlib
import random
import re
import sys
import threading
import time
import urllib.parse
from datetime import datetime, timedelta, timezone

import diskless
from common import Connection, Failed, Gone, main, register_with_session
from history import must
from idle import SETTLED_SECONDS, until_idle
from questions import iso
from services import Bucket, Postgres, environment

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"))
from grammar import NUMBERS, OURS, STRINGS, Grammar  # noqa: E402

NODES, CLIENTS = 3, 3
EVENTS, BATCH_EVENTS = 40_000, 1_000
# Events that come after the move: in memory on each side, and in the log of the three.
EVENTS_AFTER = 3_000
# The store is stopped so often meanwhile, so that there are segments of several ages.
STOPS = 6
# Events that were sent before, and change nothing.
RESENT_SHARE = 0.1
# Of all queries so many go to the restored backup too.
RESTORED_SHARE = 0.1
DAYS = 60
TENANTS, NAMES = ("acme", "100%", "O'Brien & Co", "Zoë_1"), ("login", "api_call", "page view")
METRICS = (
    "count", "count_unique", "count_unique_approx", "sum", "avg", "min", "max", "p50", "p95", "p99",
    "p50_approx", "p95_approx", "p99_approx",
)  # fmt: skip
DIMENSIONS = {
    "model": ("nova", "lyra", "orion"),
    "status": ("ok", "error", "", "timeout"),
    "plan": ("", "free", "pro", "Pro"),
    "city": ("Zürich", "São Paulo", "東京", "O'Brien", "100%"),
    "code": tuple(str(n) for n in range(200)),
}
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Auckland", "America/Sao_Paulo")
FLUSH_SECONDS = 65
# A statement of SQL that the directory's process answers in several ways itself is asked so often, to know them.
AGAIN = 12
DIGITS = 12
# Times, and numbers about the work.
VOLATILE = re.compile(rb'"(?:query_time_ms|rows_scanned|wall_ms|took_ms|request_id|expires_in_seconds)":(?:"[^"]*"|[\d.]+)')
# Parts of its plan: which table has answered it.
PLANNED = re.compile(rb',"(?:source_table|planned_by|rollup_granularity)":"[^"]*"')
# The end of a window that ends now.
NOW = re.compile(rb'"(?:from|to|previous_from|previous_to)":"[^"]*"')

Query = collections.namedtuple("Query", "kind method path body credential")


def options(parser):
    parser.add_argument("--count", type=int, default=4_000)
    parser.add_argument("--cache-mb", type=int, help="how much of the files each of the three may have on its disk; all of them without it")


def run(rig):
    comparison = Comparison(rig)
    comparison.fill()
    comparison.move()
    comparison.ask(rig.arguments.count, comparison.hosts)
    if not comparison.wrong:
        comparison.restore()
        comparison.ask(int(rig.arguments.count * RESTORED_SHARE), [comparison.restored.host])
    bounded = comparison.bounded() if rig.arguments.cache_mb else ""
    asked = ", ".join(f"{count:,} {kind}" for kind, count in sorted(comparison.asked.items()))
    refused = ", ".join(f"{count:,} with {status}" for status, count in sorted(comparison.refused.items()))
    return comparison.wrong, (
        f"{sum(comparison.asked.values()):,} queries alike ({asked}), of them refused {refused or 'none'}; "
        f"{comparison.undefined} of SQL to {DIGITS} digits, which one process alone answers in several ways{bounded}"
    )


class Comparison:
    """A store in a directory, three processes with a copy of it, and what both were asked."""

    def __init__(self, rig):
        self.rig, self.lots = rig, random.Random(rig.random_seed)
        self.now = datetime.now(timezone.utc)
        self.asked, self.refused, self.wrong = collections.Counter(), collections.Counter(), []
        self.lock, self.undefined = threading.Lock(), 0
        self.settings = {"INLAY_SQL_IDLE_WORKERS": "1"}
        self.number, self.resent = 0, []
        self.own = self._start()

    def _start(self):
        return self.rig.start(environment=self.settings, log=self.rig.folder / "own.log")

    # ---- What there is to ask about ----------------------------------------------------------

    def fill(self):
        # More than the bound.
        count = EVENTS * 4 if self.rig.arguments.cache_mb else EVENTS
        self.key, self.session = register_with_session(self.own.host, "equal")
        for _ in range(STOPS):
            self._send([self.own.host], count // STOPS)
            if self.own.stop() != 0:
                raise Failed("the server did not end well")
            self.own = self._start()
        connection = Connection(self.own.host, self.key)
        self.tokens, self.boards = [], []
        for number in range(4):
            widgets = [self._widget(f"w{n}") for n in range(6)]
            board = must(connection, "POST", "/v1/dashboards", {"name": f"Board {number}", "widgets": widgets})
            must(connection, "POST", f"/v1/dashboards/{board['id']}/publish")
            self.boards.append(board["id"])
            for tenant in TENANTS:
                locked = {"status": "ok"} if self.lots.random() < 0.5 else {}
                asked = {
                    "tenant_id": tenant, "dashboard_id": board["id"], "expires_in": 86_400,
                    "permissions": {"locked_filters": locked, "hidden_widgets": ["w5"]},
                }  # fmt: skip
                self.tokens.append(must(connection, "POST", "/v1/embed-sessions", asked)["token"])
        saved = {"name": "Logins", "sql": "SELECT count(*) FROM events", "dataset": "events"}
        must(connection, "POST", "/v1/saved-queries", saved)

    def _widget(self, name):
        lots = self.lots
        metric = lots.choice(METRICS)
        query = {"event_name": lots.choice(NAMES), "metric": metric, "period": lots.choice(("24h", "7d", "30d", "90d"))}
        if not metric.startswith("count"):
            query["numeric_prop"] = lots.choice(NUMBERS)
        kind = lots.choice(("number", "line", "bar", "table"))
        if kind == "line":
            query["granularity"] = lots.choice(("day", "week"))
        if kind in ("bar", "table"):
            query["group_by"] = lots.choice((*DIMENSIONS,))
        layout = {"x": 0, "y": 0, "w": 6, "h": 4}
        return {"id": name, "kind": kind, "title": name, "query": query, "viz": {}, "layout": layout}

    def _send(self, hosts, count):
        """The same events to each of the hosts."""
        for _ in range(0, count, BATCH_EVENTS):
            body = json.dumps({"events": [self._event() for _ in range(BATCH_EVENTS)]})
            for host in hosts:
                must(Connection(host, self.key), "POST", "/v1/events", body)

    def _event(self):
        lots = self.lots
        self.number += 1
        strings = {name: lots.choice(values) for name, values in DIMENSIONS.items() if lots.random() < 0.8}
        if lots.random() < 0.2:
            strings["nowhere"] = "here"
        numbers = {"ms": lots.randrange(-40, 4_000) / 4, "delta": float(lots.randrange(-9, 9)), "cost": lots.random() * 20}
        if lots.random() < 0.1:
            numbers["big"] = lots.choice((1e15, 9007199254740992.0, 0.0))
        at = self.now - timedelta(milliseconds=int(lots.random() ** 2 * DAYS * 86_400_000) + 3_600_000)
        event = {
            "tenant_id": lots.choice(TENANTS), "event_name": lots.choice(NAMES), "timestamp": iso(at),
            "event_id": f"e{self.number}", "string_props": strings, "numeric_props": numbers,
        }  # fmt: skip
        if lots.random() < 0.9:
            event["user_id"] = f"u{lots.randrange(900)}"
        if lots.random() < RESENT_SHARE and self.resent:
            return lots.choice(self.resent)
        self.resent.append(event)
        return event

    # ---- There and back ----------------------------------------------------------------------

    def move(self):
        """The directory's store goes to the database and the bucket; then both have a process."""
        self._wait_until_idle()
        if self.own.stop() != 0:
            raise Failed("the server did not end well")
        rig, binary = self.rig, self.rig.arguments.binary
        self.shared = environment(Postgres(rig), Bucket(rig))
        if rig.arguments.cache_mb:
            self.shared["INLAY_CACHE_MB"] = str(rig.arguments.cache_mb)
        diskless.call([binary, "migrate", "--data-dir", rig.folder / "data"], self.shared)
        self.own = self._start()
        self.nodes = [
            rig.start(rig.folder / f"node {n}", environment=self.shared | self.settings, log=rig.folder / f"{n}.log")
            for n in range(NODES)
        ]
        self.hosts = [node.host for node in self.nodes]
        limit = time.monotonic() + SETTLED_SECONDS
        while [Connection(host).fetch("GET", "/readyz")[0] for host in self.hosts] != [200] * NODES:
            if time.monotonic() > limit:
                raise Failed("the three processes are not ready")
            time.sleep(0.1)
        for number in range(0, EVENTS_AFTER, BATCH_EVENTS):
            self._send([self.own.host, self.hosts[number // BATCH_EVENTS % NODES]], BATCH_EVENTS)
        self._wait_until_idle()
        if rig.arguments.sabotage:
            must(Connection(self.hosts[0], self.key), "POST", "/v1/events", {"events": [self._event()]})

    def _wait_until_idle(self):
        """Until nothing is merged any more: all have merged the same then, on which the last digits of estimates and sizes depend."""
        until_idle(self.rig.folder)

    def restore(self):
        """A backup of the three processes, in an ordinary directory."""
        folder, binary = self.rig.folder, self.rig.arguments.binary
        leader = [node for node in self.nodes if Connection(node.host).fetch("GET", "/leaderz")[0] == 200][0]
        bare = {name: value for name, value in self.shared.items() if not name.startswith("INLAY_")}
        diskless.call([binary, "backup", folder / "backup", "--grpc-addr", leader.grpc], bare)
        diskless.call([binary, "restore", folder / "backup", "--data-dir", folder / "restored"], bare)
        self.restored = self.rig.start(
            folder / "restored", environment=self.settings, log=folder / "restored.log"
        )
        self._wait_until_idle()

    def bounded(self):
        """What came of the bound on copies, in words: something has to."""
        names = ("evicted", "reads", "read_bytes")
        counts = dict.fromkeys(names, 0)
        for host in self.hosts:
            text = Connection(host).fetch("GET", "/metrics")[2].decode()
            for name in names:
                counts[name] += int(re.search(rf"^inlay_cluster_cache_{name}_total (\d+)", text, re.MULTILINE)[1])
        if not counts["evicted"] or not counts["reads"]:
            self.wrong.append(f"the bound changed nothing: {counts}")
        return f"; {counts['evicted']:,} segments evicted, {counts['reads']:,} parts fetched, {counts['read_bytes'] / 2**20:.0f} MB"

    # ---- Queries -----------------------------------------------------------------------------

    def ask(self, count, hosts):
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            shares = [pool.submit(self._client, hosts, count // CLIENTS + 1, self.lots.random()) for _ in range(CLIENTS)]
            for share in shares:
                share.result()

    def _client(self, hosts, count, seed):
        lots, grammar, connections = random.Random(seed), Grammar(random.Random(seed)), {}
        for number in range(count):
            if len(self.wrong) > 20:
                return
            query = self._draw(lots, grammar)
            host = lots.choice(hosts)
            # The end of an hour, or of a minute, may lie between the two; and one may have written its memory to a segment, which the other does within a minute.
            for pause in (0, 0, 1, FLUSH_SECONDS) if depends_on_time(query) else (0,):
                time.sleep(pause)
                right = self._answer(connections, self.own.host, query)
                answer = self._answer(connections, host, query)
                if right == answer:
                    break
            if 503 in (right[0], answer[0]):
                # This machine is too busy for SQL.
                right, answer = (self._answer(connections, one, query) for one in (self.own.host, host))
            if right != answer and query.kind != "sql":
                # Whether a rollup alone has answered depends on what is in memory still.
                right, answer = ((status, PLANNED.sub(b"", content)) for status, content in (right, answer))
            if right != answer and query.kind == "sql":
                right, answer = self._judge_sql(connections, query, right, answer)
            with self.lock:
                self.asked[query.kind] += 1
                if right[0] >= 400:
                    self.refused[right[0]] += 1
                if right != answer:
                    self.wrong.append(f"{query.kind} {query.path} {query.body or ''}: {difference(right, answer)}")

    def _judge_sql(self, connections, query, right, answer):
        """Doubles are added up in the order in which threads come: where one process gives several answers as well, all but the first digits may differ."""
        answers = {self._answer(connections, self.own.host, query) for _ in range(AGAIN)} | {right}
        if answer in answers:
            return answer, answer
        if len(answers) > 1:
            with self.lock:
                self.undefined += 1
            return short(right), short(answer)
        return right, answer

    def _answer(self, connections, host, query):
        key = host, query.credential
        if key not in connections:
            kind, value = query.credential
            connections[key] = Connection(host, **{kind: value})
        try:
            status, _, content = connections[key].fetch(query.method, query.path, query.body)
        except Gone:
            # Nothing was asked over it for so long that the server has closed it.
            status, _, content = connections[key].fetch(query.method, query.path, query.body)
        content = VOLATILE.sub(b"", content)
        if query.kind in ("embed", "list"):
            content = NOW.sub(b"", content)
        if query.kind == "sql" and status == 200:
            # Without an order of all columns, any order is right.
            answer = json.loads(content.replace(b",}", b"}").replace(b"{,", b"{").replace(b",,", b","))
            rows = sorted(map(json.dumps, answer["rows"]))
            if answer["stats"]["truncated"]:
                # Which of them are within the limit is not said.
                rows = len(rows)
            content = json.dumps([answer["columns"], rows]).encode()
        return status, content

    def _draw(self, lots, grammar):
        kind = lots.random()
        if kind < 0.78:
            return self._metric(lots)
        if kind < 0.9:
            token = "key", lots.choice(self.tokens)
            if lots.random() < 0.1:
                return Query("embed", "GET", "/v1/embed/dashboard", None, token)
            names = lots.sample([f"w{n}" for n in range(6 if lots.random() < 0.1 else 5)], lots.randrange(1, 4))
            filters = {"period": lots.choice(("24h", "7d", "30d", "90d"))} if lots.random() < 0.7 else {}
            if lots.random() < 0.3:
                filters["plan"] = lots.choice(DIMENSIONS["plan"])
            return Query("embed", "POST", "/v1/embed/data", {"widgets": names, "filters": filters}, token)
        if kind < 0.97:
            # Sums of numbers that are not whole may be added up in any order, and then differ in the last digit.
            statement = grammar.statement().text(OURS).replace("'cost'", "'delta'")
            return Query("sql", "POST", "/v1/query/adhoc", {"sql": statement}, ("key", self.key))
        path = lots.choice(
            ("/v1/dashboards", f"/v1/dashboards/{lots.choice(self.boards)}", "/v1/discover", "/v1/saved-queries",
             "/v1/datasets", "/v1/audit", "/v1/alerts", "/v1/reports", "/v1/events/unknown")
        )  # fmt: skip
        return Query("list", "GET", path, None, ("key", self.key))

    def _metric(self, lots):
        metric = lots.choice(METRICS)
        asked = {"event_name": lots.choice(NAMES), "metric": metric, **self._window(lots)}
        credential = "key", self.key
        if lots.random() < 0.2:
            credential = "session", self.session
        if credential[0] == "key" or lots.random() < 0.5:
            asked["tenant_id"] = lots.choice(TENANTS)
        if not metric.startswith("count"):
            asked["numeric_prop"] = lots.choice((*NUMBERS, "none"))
        if lots.random() < 0.5:
            asked["granularity"] = lots.choice(("hour", "day", "week", "month"))
            asked |= lots.choice(({}, {}, {"fill": "none"}))
        if lots.random() < 0.4:
            asked["timezone"] = lots.choice(ZONES)
        if lots.random() < 0.2:
            asked["compare"] = "previous"
        if lots.random() < 0.4:
            asked |= {"group_by": lots.choice((*DIMENSIONS, "nowhere")), "limit": lots.choice((1, 5, 100, 1_000))}
        for name in lots.sample(sorted(DIMENSIONS), lots.choice((0, 0, 1, 1, 2))):
            asked[f"f_{name}"] = lots.sample(DIMENSIONS[name], lots.choice((1, 1, 2)))
        path = "/v1/query?" + urllib.parse.urlencode(asked, doseq=True)
        return Query("metric", "GET", path, None, credential)

    def _window(self, lots):
        """All of it, whole days, or anything: borders of hours are treated in a way of their own."""
        begin, end = self.now - timedelta(days=DAYS + 1), self.now + timedelta(hours=1)
        kind = lots.random()
        if kind < 0.3:
            return {"from": iso(begin), "to": iso(end)}
        if kind < 0.6:
            day = begin + timedelta(days=lots.randrange(2, DAYS))
            return {"from": day.date().isoformat(), "to": (day + timedelta(days=lots.choice((1, 7)))).date().isoformat()}
        one, two = sorted(begin + (end - begin) * lots.random() for _ in range(2))
        return {"from": iso(one), "to": iso(two + timedelta(hours=1))}


def depends_on_time(query):
    """Whether the answer has a window that ends now, or an estimate or a size that depends on what is in memory."""
    return query.kind in ("embed", "list") or "_approx" in query.path


def short(answer):
    """An answer with the first digits of its numbers."""
    status, content = answer
    number = re.compile(rb"-?\d+\.\d+(?:e[-+]?\d+)?")
    return status, number.sub(lambda found: b"%.*g" % (DIGITS, float(found[0])), content)


def difference(right, answer):
    """The first position where two answers differ."""
    one, two = (f"{status} {content.decode(errors='replace')}" for status, content in (right, answer))
    at = next((n for n, pair in enumerate(zip(one, two)) if pair[0] != pair[1]), min(len(one), len(two)))
    begin = max(at - 60, 0)
    return f"…{two[begin : at + 60]}… instead of …{one[begin : at + 60]}…"


if __name__ == "__main__":
    main("equal", __doc__, run, options)
