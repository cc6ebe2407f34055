"""A fixed set of questions, and what was answered.

About two hundred questions, drawn by lot from a seed: every metric over every property, groups,
filters, windows and widths, of each tenant by key and of all tenants by session, of two
organisations; dashboards, keys, the audit and a key that was revoked; and events that are sent
again, which must be known. Nothing that is asked changes anything.

An answer is its status and its body without what differs from one time to the next. A status of 500
or more is an explicit error, and as such right.
"""

import collections
import itertools
import json
import random
import urllib.parse
from datetime import timedelta

from common import Connection
from history import ENDPOINTS, EVENT_NAMES, MODELS, OWNERS, PLANS
from questions import iso

QUERIES = 170
METRICS = (
    "count", "count_unique", "count_unique_approx", "sum", "avg", "min", "max", "p50", "p95", "p99",
    "p50_approx", "p95_approx", "p99_approx",
)  # fmt: skip
NUMBERS = ("n", "price", "ratio", "rare")
GROUPS = (None, None, "model", "endpoint", "plan", "note", "batch")
# Groups, by width of the buckets: an answer of a megabyte would show no more.
LIMITS = {None: (5, 100, 1_000), "month": (5, 100), "week": (5, 100), "day": (5, 20), "hour": (3,)}
# Times, and numbers about the work.
VOLATILE = {"query_time_ms", "rows_scanned", "request_id", "last_used_at"}

Question = collections.namedtuple("Question", "organisation credential method path body")


def questions(history):
    lots = random.Random(f"{history.seed} questions")
    metrics = itertools.cycle(METRICS)
    asked = [query(lots, history, next(metrics)) for _ in range(QUERIES)]
    for organisation in history.keys:
        paths = ["/v1/dashboards", "/v1/api-keys", "/v1/audit", "/v1/auth/me", "/v1/erasures"]
        asked += [Question(organisation, "key", "GET", path, None) for path in paths]
    asked += [
        Question("mine", "key", "GET", f"/v1/dashboards/{each}", None)
        for each in history.dashboards
    ]
    asked.append(Question("mine", "revoked", "GET", "/v1/auth/me", None))
    # At the end: what a server does about a damaged index of ids must not hide other damage.
    asked += [
        Question("mine", "key", "POST", "/v1/events", json.dumps({"events": events}))
        for events in history.copies[::2]
    ]
    return asked


def query(lots, history, metric):
    organisation, tenant = lots.choice([*OWNERS])
    asked = {"event_name": lots.choice(EVENT_NAMES), "metric": metric, **window(lots, history)}
    credential = "session" if lots.random() < 0.15 else "key"
    if credential == "key":
        asked["tenant_id"] = tenant
    if not metric.startswith("count"):
        asked["numeric_prop"] = lots.choice(NUMBERS)
    if lots.random() < 0.5:
        asked["granularity"] = lots.choice(("hour", "day", "week", "month"))
        asked |= lots.choice(({}, {"fill": "none"}, {"compare": "previous"}))
    group = lots.choice(GROUPS)
    if group:
        limits = LIMITS[asked.get("granularity")]
        asked |= {"group_by": group, "limit": lots.choice(limits)}
    own = OWNERS[organisation, tenant]
    filters = {
        "f_model": lots.sample(MODELS, 2),
        "f_plan": lots.choice(PLANS),
        "f_endpoint": lots.sample(ENDPOINTS, 3),
        "f_note": [f"{own} ü {lots.randrange(3_000)}" for _ in range(40)],
    }
    for name in lots.sample(sorted(filters), lots.choice((0, 0, 1, 1, 2))):
        asked[name] = filters[name]
    path = "/v1/query?" + urllib.parse.urlencode(asked, doseq=True)
    return Question(organisation, credential, "GET", path, None)


def window(lots, history):
    """All of it, some whole days, or anything: borders of hours are treated in a way of their own."""
    end = history.now + timedelta(hours=1)
    begin = end - timedelta(days=8)
    kind = lots.random()
    if kind < 0.4:
        return {"from": iso(begin), "to": iso(end)}
    if kind < 0.6:
        day = begin + timedelta(days=lots.randrange(2, 7))
        return {"from": day.date().isoformat(), "to": (day + timedelta(days=2)).date().isoformat()}
    one, two = sorted(begin + (end - begin) * lots.random() for _ in range(2))
    return {"from": iso(one), "to": iso(two + timedelta(hours=1))}


def ask(host, history, asked):
    """The answers, in order."""
    connections = {"revoked": Connection(host, history.revoked)}
    for name in history.keys:
        connections[name, "key"] = Connection(host, history.keys[name])
        connections[name, "session"] = Connection(host, session=history.sessions[name])
    answers = []
    for organisation, credential, method, path, body in asked:
        connection = connections.get((organisation, credential)) or connections[credential]
        status, _, answer = connection.call(method, path, body)
        answers.append((status, without_volatile(answer)))
    for connection in connections.values():
        connection.close()
    return answers


def without_volatile(answer):
    """The rows of a list of keys have a time in them, answers to queries have some in `meta`."""
    if answer:
        rows = answer["data"] if "next" in answer else []
        for part in (answer, answer.get("meta", {}), *rows):
            for name in VOLATILE & part.keys():
                del part[name]
    return answer


def compare(asked, expected, answers):
    """What is wrong, and how many answers were explicit errors."""
    wrong, errors = [], 0
    for question, right, answer in zip(asked, expected, answers, strict=True):
        if answer[0] >= 500:
            errors += 1
        elif answer != right:
            what = "another answer" if not strangers(question, answer) else "ANOTHER TENANT'S ROWS"
            wrong.append(f"{what} to {question.path}: {difference(right, answer)}")
    return wrong, errors


def strangers(question, answer):
    """Names in an answer that belong to others than who was asked for."""
    parameters = urllib.parse.parse_qs(urllib.parse.urlsplit(question.path).query)
    tenants = parameters.get("tenant_id") or [t for o, t in OWNERS if o == question.organisation]
    own = {OWNERS[question.organisation, tenant] for tenant in tenants}
    text = json.dumps(answer)
    return [name for name in OWNERS.values() if name not in own and name in text]


def difference(right, answer):
    """The first place where two answers differ."""
    one, two = (json.dumps(each, ensure_ascii=False) for each in (right, answer))
    at = next((n for n, pair in enumerate(zip(one, two)) if pair[0] != pair[1]), 0)
    begin = max(at - 40, 0)
    return f"…{two[begin : at + 60]}… instead of …{one[begin : at + 60]}…"
