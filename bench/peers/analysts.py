"""Ten statements that analysts ask, in the words of each store.

Every one is written once; what the stores say differently (a property, a day, a percentile) is a word in
braces, replaced by the store's own. Each orders its rows, so that answers can be compared line by line.
"""

from dataclasses import dataclass

from sql import literal
from workload import Facts

OURS = "Inlay"
DUCK = "DuckDB"
CLICK = "ClickHouse"
# What differs. `{p95}` and `{users}` are about latencies and users.
WORDS = {
    OURS: {
        "table": "events",
        "p95": "approx_percentile_cont(0.95) WITHIN GROUP (ORDER BY {latency_ms})",
        "week": "date_trunc('week', timestamp)",
        "day": "date_trunc('day', timestamp)",
        "weekday": "date_part('dow', timestamp)",
        "hour": "date_part('hour', timestamp)",
        "distinct": "count(DISTINCT user_id)",
    },
    DUCK: {
        "table": "events",
        "p95": "approx_quantile({latency_ms}, 0.95)",
        "week": "date_trunc('week', timestamp)",
        "day": "date_trunc('day', timestamp)",
        "weekday": "date_part('dow', timestamp)",
        "hour": "date_part('hour', timestamp)",
        "distinct": "count(DISTINCT user_id)",
    },
    CLICK: {
        "table": "events",
        "p95": "quantileTDigest(0.95)({latency_ms})",
        "week": "toStartOfWeek(timestamp, 1)",
        "day": "toStartOfDay(timestamp)",
        "weekday": "toDayOfWeek(timestamp) % 7",
        "hour": "toHour(timestamp)",
        "distinct": "uniqExact(user_id)",
    },
}
STRINGS = ("model", "endpoint", "status", "plan", "source", "country")
NUMBERS = ("latency_ms", "tokens")


@dataclass(frozen=True)
class Asked:
    """A statement: its name, its text, and whether its numbers are approximate."""

    name: str
    text: str
    approximate: bool = False

    def of(self, store: str, facts: Facts) -> str:
        """What the store is asked."""
        words = dict(WORDS[store])
        for name in STRINGS:
            words[name] = f"string_props['{name}']" if store == OURS else name
        for name in NUMBERS:
            words[name] = f"numeric_props['{name}']" if store == OURS else name
        words["p95"] = words["p95"].format(**words)
        words["month"] = instant(store, facts.midnight(30))
        words["event"], words["tenant"] = literal(facts.event), literal(facts.median)
        return " ".join(self.text.format(**words).split())


def instant(store: str, ms: int) -> str:
    """A time of day, as the store writes it."""
    from workload import iso

    if store == CLICK:
        return f"fromUnixTimestamp64Milli({ms})"
    return f"TIMESTAMP '{iso(ms).rstrip('Z').replace('T', ' ')}'"


STATEMENTS = (
    Asked("events by name", "SELECT event_name, count(*) AS n FROM events GROUP BY event_name ORDER BY event_name"),
    Asked(
        "days of one event",
        """SELECT {day} AS day, count(*) AS n FROM events
           WHERE event_name = {event} AND timestamp >= {month} GROUP BY 1 ORDER BY 1""",
    ),
    Asked(
        "largest tenants and their users",
        """SELECT tenant_id, count(*) AS n, {distinct} AS users FROM events
           GROUP BY tenant_id ORDER BY n DESC, tenant_id LIMIT 20""",
    ),
    Asked(
        "latency by model",
        """SELECT {model} AS model, count(*) AS n, avg({latency_ms}) AS mean, min({latency_ms}) AS least,
           max({latency_ms}) AS most FROM events WHERE event_name = {event} GROUP BY 1 ORDER BY 1""",
    ),
    Asked(
        "p95 by endpoint",
        "SELECT {endpoint} AS endpoint, {p95} AS p95 FROM events WHERE event_name = {event} GROUP BY 1 ORDER BY 1",
        approximate=True,
    ),
    Asked(
        "share of errors by hour of the week",
        """SELECT {weekday} AS weekday, {hour} AS hour, count(*) AS n,
           sum(CASE WHEN {status} = 'error' THEN 1 ELSE 0 END) * 1.0 / count(*) AS share
           FROM events GROUP BY 1, 2 ORDER BY 1, 2""",
    ),
    Asked(
        "slowest calls of one tenant",
        """SELECT timestamp, user_id, {endpoint} AS endpoint, {latency_ms} AS latency FROM events
           WHERE tenant_id = {tenant} AND event_name = {event} AND {latency_ms} > 100
           ORDER BY latency DESC, timestamp, user_id LIMIT 100""",
    ),
    Asked(
        "moving average by plan",
        """WITH daily AS (SELECT {plan} AS plan, {day} AS day, sum({tokens}) AS tokens FROM events GROUP BY 1, 2)
           SELECT plan, day, tokens, avg(tokens) OVER (PARTITION BY plan ORDER BY day
           ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS smooth FROM daily ORDER BY 1, 2""",
    ),
    Asked(
        "weeks after which users return",
        """WITH seen AS (SELECT DISTINCT tenant_id, user_id, {week} AS week FROM events WHERE event_name = {event}),
           first AS (SELECT tenant_id, user_id, min(week) AS first_week FROM seen GROUP BY 1, 2)
           SELECT first_week, week, count(*) AS users FROM seen JOIN first
           ON seen.tenant_id = first.tenant_id AND seen.user_id = first.user_id
           GROUP BY 1, 2 ORDER BY 1, 2""",
    ),
    Asked(
        "spend by plan and country",
        """SELECT {plan} AS plan, {country} AS country, sum({tokens}) AS tokens, count(*) AS n FROM events
           WHERE timestamp >= {month} AND {endpoint} LIKE '/v1/resource/1%' AND {source} IN ('web', 'sdk')
           GROUP BY 1, 2 HAVING count(*) > 10 ORDER BY tokens DESC, 1, 2 LIMIT 50""",
    ),
)
