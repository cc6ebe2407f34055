"""Thirty statements in shapes that `analysts.py`, `foreign.py`, `fresh.py`, `unseen.py` and `held_out.py` do not have.

They were written from the documentation of the API alone, by somebody who had read neither the code behind it nor
its history. They are asked of our SQL and of DuckDB, there is no text for ClickHouse. Names of tenants, users and
values are those of `synthetic.py`, in which every event has every property. The first eleven are about all tenants
and the whole history, the next ten about one tenant or a few, the last nine about a time.

Every row has its place in the order, no cell is NULL, and an answer has 5,000 rows at most, however many events
there are. No function is approximate.
"""

from analysts import DUCK, OURS
from fresh import AskedAfresh

STORES = (OURS, DUCK)
# What differs, besides the words of `analysts.py`, `foreign.py` and `fresh.py`: the last value that is there, and a
# time as a text.
STRANGE_WORDS = {
    OURS: {
        "last_touch": "last_value(CASE WHEN event_name = 'page_view' THEN {source} END) IGNORE NULLS",
        "label": "to_char(min(slot), '%a %d %H:%M')",
    },
    DUCK: {
        "last_touch": "last_value(CASE WHEN event_name = 'page_view' THEN {source} END IGNORE NULLS)",
        "label": "strftime(min(slot), '%a %d %H:%M')",
    },
}


class AskedStrange(AskedAfresh):
    """A statement for the stores of `STORES`, with the words of `STRANGE_WORDS` and those of `fresh.py`."""

    own_words = STRANGE_WORDS


STATEMENTS = (
    # All tenants, the whole history.
    AskedStrange(
        "where tenants stand by tokens of a user",
        """WITH spend AS (
             SELECT tenant_id, count(*) AS n, count(DISTINCT user_id) AS users, sum({tokens}) AS tokens
             FROM events GROUP BY tenant_id)
           SELECT tenant_id, users, tokens / users AS tokens_of_user,
             cume_dist() OVER (ORDER BY tokens / users) AS stands_at,
             percent_rank() OVER (ORDER BY n) AS stands_by_events,
             ntile(20) OVER (ORDER BY tokens DESC, tenant_id) AS twentieth
           FROM spend ORDER BY tokens_of_user DESC, tenant_id LIMIT 2000""",
    ),
    AskedStrange(
        "weeks in which tenants beat their record",
        """WITH weekly AS (
             SELECT tenant_id, {week} AS week, sum({tokens}) AS tokens, count(DISTINCT user_id) AS users
             FROM events GROUP BY 1, 2)
           SELECT tenant_id, week, tokens, users, max(tokens) OVER before_it AS record,
             tokens / max(tokens) OVER before_it - 1 AS ahead
           FROM weekly
           WINDOW before_it AS (PARTITION BY tenant_id ORDER BY week ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
           QUALIFY count(*) OVER before_it >= 4 AND tokens > max(tokens) OVER before_it
           ORDER BY week DESC, tokens DESC, tenant_id LIMIT 3000""",
    ),
    AskedStrange(
        "users by the weeks of their first and last export",
        """SELECT first_week, last_week, count(*) AS users, count(DISTINCT tenant_id) AS tenants, sum(n) AS exports,
             count(*) * 1.0 / sum(count(*)) OVER (PARTITION BY first_week) AS share_of_first_week
           FROM (
             SELECT tenant_id, user_id, min({week}) AS first_week, max({week}) AS last_week, count(*) AS n
             FROM events WHERE event_name = 'export' GROUP BY tenant_id, user_id) AS exporters
           GROUP BY first_week, last_week ORDER BY first_week, last_week""",
    ),
    AskedStrange(
        "when tenants adopted each endpoint",
        """WITH adopted AS (
             SELECT tenant_id, {endpoint} AS endpoint, min(timestamp) AS since FROM events
             WHERE event_name = 'api_call' AND {status} = 'ok' GROUP BY 1, 2)
           SELECT endpoint, date_trunc('week', since) AS week, count(*) AS tenants, min(since) AS earliest,
             sum(count(*)) OVER (PARTITION BY endpoint ORDER BY date_trunc('week', since)) AS tenants_so_far
           FROM adopted GROUP BY endpoint, date_trunc('week', since) ORDER BY endpoint, week""",
    ),
    AskedStrange(
        "failure rates of sources as if all called the same endpoints",
        """WITH cells AS (
             SELECT {source} AS source, {endpoint} AS endpoint, count(*) AS n,
               sum(CASE WHEN {status} = 'ok' THEN 0 ELSE 1 END) AS failed
             FROM events WHERE event_name = 'api_call' GROUP BY 1, 2),
           mix AS (
             SELECT endpoint, sum(n) * 1.0 / (SELECT sum(n) FROM cells) AS weight FROM cells GROUP BY endpoint)
           SELECT c.source, sum(c.n) AS n, sum(c.failed) * 1.0 / sum(c.n) AS rate,
             sum(c.failed * 1.0 / c.n * m.weight) / sum(m.weight) AS adjusted_rate,
             max(c.failed * 1.0 / c.n) AS worst_rate
           FROM cells c JOIN mix m ON m.endpoint = c.endpoint GROUP BY c.source ORDER BY c.source""",
    ),
    AskedStrange(
        "four means of latency by model and status",
        """SELECT {model} AS model, {status} AS status, count(*) AS n, exp(avg(ln({latency_ms}))) AS geometric,
           count(*) / sum(1 / {latency_ms}) AS harmonic, sqrt(avg(power({latency_ms}, 2))) AS quadratic,
           sum({latency_ms} * {tokens}) / sum({tokens}) AS weighted
           FROM events WHERE {tokens} > 0 GROUP BY {model}, {status} ORDER BY model, status""",
    ),
    AskedStrange(
        "from each export to the next by plan",
        """WITH numbered AS (
             SELECT tenant_id, user_id, timestamp, {plan} AS plan,
               row_number() OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id) AS place
             FROM events WHERE event_name = 'export')
           SELECT a.plan, a.place, count(*) AS users, count(b.user_id) AS went_on,
             count(b.user_id) * 1.0 / count(*) AS share,
             coalesce(avg(extract(epoch FROM b.timestamp) - extract(epoch FROM a.timestamp)), 0.0) / 86400 AS days
           FROM numbered a LEFT JOIN numbered b
             ON b.tenant_id = a.tenant_id AND b.user_id = a.user_id AND b.place = a.place + 1
           WHERE a.place <= 10 GROUP BY a.plan, a.place ORDER BY a.plan, a.place""",
    ),
    AskedStrange(
        "months in which users met timeouts as letters",
        """SELECT pattern, count(*) AS users, count(DISTINCT tenant_id) AS tenants, sum(n) AS timeouts,
           max(n) AS most
           FROM (
             SELECT tenant_id, user_id, count(*) AS n,
               max(CASE WHEN extract(month FROM timestamp) = 8 THEN 'a' ELSE '-' END)
               || max(CASE WHEN extract(month FROM timestamp) = 9 THEN 's' ELSE '-' END)
               || max(CASE WHEN extract(month FROM timestamp) = 10 THEN 'o' ELSE '-' END)
               || max(CASE WHEN extract(month FROM timestamp) = 11 THEN 'n' ELSE '-' END) AS pattern
             FROM events WHERE {status} = 'timeout' GROUP BY tenant_id, user_id) AS met
           GROUP BY pattern ORDER BY pattern""",
    ),
    AskedStrange(
        "what is usual among the users of each tenant",
        """WITH people AS (
             SELECT tenant_id, user_id, CAST(count(*) AS DOUBLE) AS n, sum({tokens}) AS tokens,
               max({latency_ms}) AS slowest
             FROM events GROUP BY tenant_id, user_id)
           SELECT tenant_id, count(*) AS users, median(n) AS median_events,
             percentile_cont(0.25) WITHIN GROUP (ORDER BY tokens) AS lower_tokens,
             percentile_cont(0.9) WITHIN GROUP (ORDER BY tokens) AS high_tokens,
             percentile_cont(0.5) WITHIN GROUP (ORDER BY slowest) AS usual_slowest
           FROM people GROUP BY tenant_id HAVING count(*) >= 5 ORDER BY tenant_id LIMIT 2000""",
    ),
    AskedStrange(
        "users who are in another country within five minutes",
        """WITH traced AS (
             SELECT tenant_id, user_id, timestamp, {country} AS country, lag({country}) OVER w AS country_before,
               lag(timestamp) OVER w AS seen_before
             FROM events WINDOW w AS (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id))
           SELECT tenant_id, user_id, count(*) AS jumps, count(DISTINCT country) AS countries,
             min(timestamp) AS first_jump, max(timestamp) AS last_jump
           FROM traced WHERE country <> country_before AND timestamp - seen_before <= INTERVAL '5 minutes'
           GROUP BY tenant_id, user_id HAVING count(*) >= 3
           ORDER BY jumps DESC, tenant_id, user_id LIMIT 500""",
    ),
    AskedStrange(
        "events by the beginning of an id",
        """SELECT event_id, tenant_id, timestamp, event_name, user_id, {endpoint} AS endpoint, {status} AS status,
           {latency_ms} AS latency_ms
           FROM events WHERE event_id LIKE '0a7f%' ORDER BY event_id, tenant_id LIMIT 1000""",
    ),
    # One tenant or a few.
    AskedStrange(
        "feed of what is notable at a tenant",
        """SELECT happened_at, kind, user_id, event_id, detail FROM (
             SELECT e.timestamp AS happened_at, 'first use' AS kind, e.user_id, e.event_id,
               CAST(e.{endpoint} AS VARCHAR) AS detail
             FROM events e
             WHERE e.tenant_id = 'tenant-5' AND e.event_name = 'api_call' AND e.timestamp >= {ago_3}
               AND NOT EXISTS (
                 SELECT 1 FROM events p WHERE p.tenant_id = e.tenant_id AND p.user_id = e.user_id
                   AND p.{endpoint} = e.{endpoint} AND p.event_name = 'api_call' AND p.timestamp < e.timestamp)
             UNION ALL
             SELECT timestamp, 'timeout', user_id, event_id, CAST({model} AS VARCHAR) FROM events
             WHERE tenant_id = 'tenant-5' AND {status} = 'timeout' AND timestamp >= {ago_3}
             UNION ALL
             SELECT timestamp, 'large export', user_id, event_id, CAST({source} AS VARCHAR) FROM events
             WHERE tenant_id = 'tenant-5' AND event_name = 'export' AND {tokens} > 5000 AND timestamp >= {ago_3}
           ) AS feed ORDER BY happened_at DESC, kind, event_id LIMIT 300""",
    ),
    AskedStrange(
        "sources that exports are owed to by last touch",
        """WITH touched AS (
             SELECT tenant_id, user_id, event_name, {tokens} AS tokens,
               {last_touch} OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id
                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS touch
             FROM events WHERE tenant_id IN ('tenant-2', 'tenant-9', 'tenant-33'))
           SELECT tenant_id, coalesce(CAST(touch AS VARCHAR), 'none') AS owed_to, count(*) AS exports,
             count(DISTINCT user_id) AS users, sum(tokens) AS tokens,
             count(*) * 1.0 / sum(count(*)) OVER (PARTITION BY tenant_id) AS share
           FROM touched WHERE event_name = 'export'
           GROUP BY tenant_id, coalesce(CAST(touch AS VARCHAR), 'none') ORDER BY tenant_id, owed_to""",
    ),
    AskedStrange(
        "what came before exports by what was seen last",
        """WITH marked AS (
             SELECT event_name, {plan} AS plan, timestamp,
               max(CASE WHEN event_name = 'page_view' THEN timestamp END) OVER earlier AS viewed_at,
               max(CASE WHEN event_name = 'api_call' AND {status} = 'ok' THEN timestamp END) OVER earlier AS called_at
             FROM events WHERE tenant_id IN ({largest}, 'tenant-25')
             WINDOW earlier AS (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
           SELECT date_trunc('month', timestamp) AS sent_month, plan, count(*) AS exports, count(viewed_at) AS viewed,
             count(*) FILTER (WHERE called_at > viewed_at) AS viewed_then_called,
             count(*) FILTER (WHERE called_at > viewed_at AND viewed_at >= timestamp - INTERVAL '1 day')
               AS within_a_day
           FROM marked WHERE event_name = 'export' GROUP BY 1, 2 ORDER BY 1, 2""",
    ),
    AskedStrange(
        "exporters of the seven days up to each day",
        """WITH active AS (
             SELECT DISTINCT user_id, {day} AS day FROM events
             WHERE tenant_id = {largest} AND event_name = 'export'),
           days AS (SELECT DISTINCT day FROM active)
           SELECT d.day, count(DISTINCT a.user_id) AS users_of_week,
             count(DISTINCT CASE WHEN a.day = d.day THEN a.user_id END) AS users_of_day, count(*) AS user_days
           FROM days d JOIN active a ON a.day > d.day - INTERVAL '7 days' AND a.day <= d.day
           GROUP BY d.day ORDER BY d.day""",
    ),
    AskedStrange(
        "what users do and spend up to their next export",
        """WITH numbered AS (
             SELECT tenant_id, user_id, timestamp, {tokens} AS tokens,
               sum(CASE WHEN event_name = 'export' THEN 1 ELSE 0 END) OVER (PARTITION BY tenant_id, user_id
                 ORDER BY timestamp DESC, event_id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS stretch
             FROM events WHERE tenant_id IN ('tenant-3', 'tenant-7', 'tenant-70')),
           stretches AS (
             SELECT tenant_id, user_id, stretch, count(*) AS n, sum(tokens) AS tokens, min(timestamp) AS began,
               max(timestamp) AS ended
             FROM numbered WHERE stretch > 0 GROUP BY tenant_id, user_id, stretch)
           SELECT tenant_id, least(n, 20) AS number_of_events, count(*) AS stretches, avg(tokens) AS mean_tokens,
             max(tokens) AS most_tokens, median(tokens) AS median_tokens,
             avg(extract(epoch FROM ended) - extract(epoch FROM began)) AS mean_seconds
           FROM stretches GROUP BY tenant_id, least(n, 20) ORDER BY tenant_id, number_of_events""",
    ),
    AskedStrange(
        "calls much slower than the twenty before them",
        """SELECT timestamp, event_id, user_id, endpoint, latency_ms, usual, latency_ms / usual AS times FROM (
             SELECT timestamp, event_id, user_id, {endpoint} AS endpoint, {latency_ms} AS latency_ms,
               avg({latency_ms}) OVER w AS usual, count(*) OVER w AS seen
             FROM events WHERE tenant_id = {largest} AND event_name = 'api_call' AND {status} = 'ok'
             WINDOW w AS (PARTITION BY {endpoint} ORDER BY timestamp, event_id
               ROWS BETWEEN 20 PRECEDING AND 1 PRECEDING)) AS compared
           WHERE seen = 20 AND latency_ms > 6 * usual ORDER BY timestamp DESC, event_id LIMIT 500""",
    ),
    AskedStrange(
        "forty users of a list from the sales team",
        """SELECT user_id, count(*) AS n, count(DISTINCT {day}) AS active_days, max(timestamp) AS last_seen,
           sum({tokens}) AS tokens, count(*) FILTER (WHERE {status} <> 'ok') AS failed
           FROM events
           WHERE tenant_id = 'tenant-4' AND event_name IN ('api_call', 'export') AND user_id IN (
             'user-4-0', 'user-4-3', 'user-4-8', 'user-4-11', 'user-4-17', 'user-4-21', 'user-4-22', 'user-4-30',
             'user-4-34', 'user-4-41', 'user-4-47', 'user-4-52', 'user-4-58', 'user-4-63', 'user-4-69', 'user-4-70',
             'user-4-76', 'user-4-82', 'user-4-88', 'user-4-91', 'user-4-99', 'user-4-104', 'user-4-110',
             'user-4-117', 'user-4-123', 'user-4-130', 'user-4-138', 'user-4-144', 'user-4-151', 'user-4-159',
             'user-4-163', 'user-4-172', 'user-4-180', 'user-4-188', 'user-4-195', 'user-4-203', 'user-4-214',
             'user-4-226', 'user-4-900000', 'user-4-900001')
           GROUP BY user_id ORDER BY user_id""",
    ),
    AskedStrange(
        "search for a text in any column",
        """SELECT timestamp, event_id, event_name, user_id, {endpoint} AS endpoint, {model} AS model,
           {country} AS country, {source} AS source, {tokens} AS tokens
           FROM events
           WHERE tenant_id = 'tenant-6' AND (
             concat_ws(' ', user_id, {endpoint}, {model}, {country}, {source}) ILIKE '%c17%'
             OR concat_ws(' ', user_id, {endpoint}) LIKE '%-17 %/17')
           ORDER BY timestamp DESC, event_id LIMIT 100""",
    ),
    AskedStrange(
        "newest three failures of the heaviest users",
        """WITH heaviest AS (
             SELECT tenant_id, user_id, sum({tokens}) AS tokens FROM events
             WHERE tenant_id IN ({largest}, 'tenant-2', 'tenant-3') GROUP BY tenant_id, user_id
             ORDER BY tokens DESC, user_id LIMIT 20)
           SELECT h.tenant_id, h.user_id, h.tokens, f.timestamp, f.event_id, f.endpoint, f.status
           FROM heaviest h CROSS JOIN LATERAL (
             SELECT e.timestamp, e.event_id, e.{endpoint} AS endpoint, e.{status} AS status FROM events e
             WHERE e.tenant_id = h.tenant_id AND e.user_id = h.user_id AND e.{status} <> 'ok'
             ORDER BY e.timestamp DESC, e.event_id LIMIT 3) AS f
           ORDER BY h.tokens DESC, h.user_id, f.timestamp DESC, f.event_id""",
    ),
    AskedStrange(
        "three tenants by source and event with all totals",
        """SELECT coalesce(tenant, 'all tenants') AS of_tenant, coalesce(source, 'all sources') AS of_source,
           coalesce(name, 'all events') AS of_event, count(*) AS n, sum(tokens) AS tokens, max(latency) AS slowest,
           avg(latency) AS mean
           FROM (SELECT CAST(tenant_id AS VARCHAR) AS tenant, CAST({source} AS VARCHAR) AS source,
                   CAST(event_name AS VARCHAR) AS name, {tokens} AS tokens, {latency_ms} AS latency
                 FROM events WHERE tenant_id IN ('tenant-5', 'tenant-50', 'tenant-500')) AS used
           GROUP BY CUBE (tenant, source, name) ORDER BY of_tenant, of_source, of_event""",
    ),
    # A time.
    AskedStrange(
        "hours against the same hours of the week before",
        """WITH hourly AS (
             SELECT date_trunc('hour', timestamp) AS slot, {source} AS source, event_name, count(*) AS n,
               sum({tokens}) AS tokens
             FROM events WHERE timestamp >= {ago_14} AND timestamp < {ago_0} GROUP BY 1, 2, 3)
           SELECT a.slot, a.source, a.event_name, a.n, coalesce(b.n, 0) AS n_before,
             a.n * 1.0 / greatest(coalesce(b.n, 0), 1) AS ratio, a.tokens - coalesce(b.tokens, 0) AS more_tokens
           FROM hourly a LEFT JOIN hourly b
             ON b.slot = a.slot - INTERVAL '7 days' AND b.source = a.source AND b.event_name = a.event_name
           WHERE a.slot >= {ago_7} ORDER BY a.slot, a.source, a.event_name""",
    ),
    AskedStrange(
        "bad quarter hours in a row",
        """WITH slots AS (
             SELECT {quarter_hour} AS slot, count(*) AS n, count(*) FILTER (WHERE {status} <> 'ok') AS failed
             FROM events WHERE event_name = 'api_call' AND timestamp >= {month} AND timestamp < {ago_0} GROUP BY 1),
           bad AS (
             SELECT slot, n, failed, CAST(extract(epoch FROM slot) / 900 AS BIGINT)
               - CAST(row_number() OVER (ORDER BY slot) AS BIGINT) AS island
             FROM slots WHERE failed * 11 > n)
           SELECT min(slot) AS began, max(slot) + INTERVAL '15 minutes' AS ended, {label} AS label,
             count(*) AS slots, sum(n) AS calls, sum(failed) AS failed, max(failed * 1.0 / n) AS worst
           FROM bad GROUP BY island HAVING count(*) >= 2 ORDER BY slots DESC, began LIMIT 300""",
    ),
    AskedStrange(
        "log of one hour",
        """SELECT timestamp, tenant_id, event_name, user_id, event_id, {model} AS model, {endpoint} AS endpoint,
           {status} AS status, {plan} AS plan, {source} AS source, {country} AS country, {latency_ms} AS latency_ms,
           {tokens} AS tokens
           FROM events
           WHERE timestamp >= {ago_9} + INTERVAL '13 hours' AND timestamp < {ago_9} + INTERVAL '14 hours'
           ORDER BY timestamp, event_id, tenant_id LIMIT 5000""",
    ),
    AskedStrange(
        "tenants with less in each of three weeks",
        """WITH weekly AS (
             SELECT tenant_id, {week} AS week, count(*) AS n, sum({tokens}) AS tokens FROM events
             WHERE timestamp >= date_trunc('week', {ago_0}) - INTERVAL '42 days'
               AND timestamp < date_trunc('week', {ago_0}) GROUP BY 1, 2),
           traced AS (
             SELECT tenant_id, week, n, tokens, lag(n) OVER w AS one_before, lag(n, 2) OVER w AS two_before,
               lag(n, 3) OVER w AS three_before
             FROM weekly WINDOW w AS (PARTITION BY tenant_id ORDER BY week))
           SELECT tenant_id, week, n, one_before, two_before, three_before, tokens, n * 1.0 / three_before - 1 AS change
           FROM traced WHERE n < one_before AND one_before < two_before AND two_before < three_before
           ORDER BY tenant_id, week LIMIT 2000""",
    ),
    AskedStrange(
        "tokens that tenants will have used by the end of the month",
        """WITH months AS (
             SELECT tenant_id,
               sum(CASE WHEN timestamp >= date_trunc('month', {ago_0}) THEN {tokens} ELSE 0 END) AS to_date,
               sum(CASE WHEN timestamp < date_trunc('month', {ago_0}) THEN {tokens} ELSE 0 END) AS month_before,
               count(DISTINCT timestamp::date) AS active_days
             FROM events
             WHERE timestamp >= date_trunc('month', {ago_0}) - INTERVAL '1 month' AND timestamp < {ago_0}
             GROUP BY tenant_id)
           SELECT tenant_id, active_days, to_date, month_before,
             to_date / extract(day FROM {ago_0} - INTERVAL '1 day')
               * extract(day FROM date_trunc('month', {ago_0}) + INTERVAL '1 month' - INTERVAL '1 day') AS forecast
           FROM months WHERE to_date > 0 AND month_before > 0
           ORDER BY to_date DESC, tenant_id LIMIT 400""",
    ),
    AskedStrange(
        "users whose newest event failed",
        """SELECT plan, source, event_name, count(*) AS users, count(DISTINCT tenant_id) AS tenants,
           min(timestamp) AS longest_ago
           FROM (
             SELECT DISTINCT ON (tenant_id, user_id) tenant_id, user_id, timestamp, event_name, {plan} AS plan,
               {source} AS source, {status} AS status
             FROM events WHERE timestamp >= {ago_5}
             ORDER BY tenant_id, user_id, timestamp DESC, event_id) AS newest
           WHERE status <> 'ok' GROUP BY plan, source, event_name ORDER BY plan, source, event_name""",
    ),
    AskedStrange(
        "users by the number of days they came in four weeks",
        """WITH people AS (
             SELECT tenant_id, user_id, max({plan}) AS plan, count(DISTINCT {day}) AS days, count(*) AS n FROM events
             WHERE timestamp >= {ago_28} AND timestamp < {ago_0} GROUP BY tenant_id, user_id)
           SELECT days, count(*) AS users, count(*) FILTER (WHERE plan = 'free') AS of_free, sum(n) AS n,
             count(*) * 1.0 / sum(count(*)) OVER () AS share,
             sum(count(*)) OVER (ORDER BY days DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS at_least
           FROM people GROUP BY days ORDER BY days""",
    ),
    AskedStrange(
        "tenants whose users are spread over countries alike",
        """WITH largest AS (
             SELECT tenant_id FROM events WHERE timestamp >= {month}
             GROUP BY tenant_id ORDER BY count(*) DESC, tenant_id LIMIT 40),
           vectors AS (
             SELECT tenant_id, {country} AS country, CAST(count(*) AS DOUBLE) AS n FROM events
             WHERE timestamp >= {month} AND tenant_id IN (SELECT tenant_id FROM largest) GROUP BY 1, 2),
           lengths AS (SELECT tenant_id, sqrt(sum(n * n)) AS length FROM vectors GROUP BY tenant_id)
           SELECT a.tenant_id, b.tenant_id AS other_tenant, count(*) AS shared_countries,
             sum(a.n * b.n) / (la.length * lb.length) AS similarity
           FROM vectors a JOIN vectors b ON b.country = a.country AND b.tenant_id > a.tenant_id
             JOIN lengths la ON la.tenant_id = a.tenant_id JOIN lengths lb ON lb.tenant_id = b.tenant_id
           GROUP BY a.tenant_id, b.tenant_id, la.length, lb.length
           ORDER BY similarity DESC, a.tenant_id, b.tenant_id LIMIT 200""",
    ),
    AskedStrange(
        "whether users come back the day after a timeout",
        """WITH people AS (
             SELECT tenant_id, user_id, max({plan}) AS plan, count(*) AS n FROM events
             WHERE timestamp >= {ago_5} AND timestamp < {ago_4} GROUP BY tenant_id, user_id),
           judged AS (
             SELECT p.plan, p.n,
               CASE WHEN EXISTS (
                 SELECT 1 FROM events t WHERE t.tenant_id = p.tenant_id AND t.user_id = p.user_id
                   AND t.{status} = 'timeout' AND t.timestamp >= {ago_5} AND t.timestamp < {ago_4})
                 THEN 'met a timeout' ELSE 'met none' END AS met,
               CASE WHEN EXISTS (
                 SELECT 1 FROM events r WHERE r.tenant_id = p.tenant_id AND r.user_id = p.user_id
                   AND r.timestamp >= {ago_4} AND r.timestamp < {ago_3}) THEN 1 ELSE 0 END AS returned
             FROM people p)
           SELECT plan, met, count(*) AS users, sum(returned) AS returned, sum(returned) * 1.0 / count(*) AS share,
             avg(n) AS mean_events
           FROM judged GROUP BY plan, met ORDER BY plan, met""",
    ),
)
