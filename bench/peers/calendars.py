"""Sixteen statements that join by a range, without an equality, where one side has groups.

They were written from the documentation of the API alone, by somebody who had read neither the code behind it nor
its history. They are asked of our SQL and of DuckDB, there is no text for ClickHouse. Names of tenants, users and
values are those of `synthetic.py`, in which every event has every property. The first five are calendars of days and
weeks, the next four limits and tiers that are found in the data, then come sessions, groups that are compared with
groups, incidents, and a calendar with gaps.

With two million events no join by a range has more than about 60 million pairs, those that do not meet included.

Every row has its place in the order, no cell is NULL, and an answer has 5,000 rows at most, however many events
there are. No function is approximate. Where numbers are compared with a percentile, a small number is added, so that
its last digit does not decide; the odd shares of the statement about failing and slow hours are for the same.
"""

from analysts import DUCK, OURS
from fresh import AskedAfresh

STORES = (OURS, DUCK)
# What differs, besides the words of `analysts.py`, `foreign.py` and `fresh.py`: an hour as a text.
CALENDARS_WORDS = {
    OURS: {"hour_label": "to_char(h.slot, '%a %H:00')"},
    DUCK: {"hour_label": "strftime(h.slot, '%a %H:00')"},
}


class AskedOfCalendars(AskedAfresh):
    """A statement for the stores of `STORES`, with the words of `CALENDARS_WORDS` and those of `fresh.py`."""

    own_words = CALENDARS_WORDS


STATEMENTS = (
    # Calendars of days and weeks.
    AskedOfCalendars(
        "users of the day, the week and four weeks at each day of the largest tenant",
        """WITH active AS (SELECT DISTINCT user_id, {day} AS day FROM events WHERE tenant_id = {largest}),
           calendar AS (
             SELECT DISTINCT {day} AS day FROM events WHERE timestamp >= {ago_60} AND timestamp < {ago_0})
           SELECT c.day, count(DISTINCT a.user_id) FILTER (WHERE a.day = c.day) AS daily_users,
             count(DISTINCT a.user_id) FILTER (WHERE a.day > c.day - INTERVAL '7 days') AS weekly_users,
             count(DISTINCT a.user_id) AS monthly_users,
             count(DISTINCT a.user_id) FILTER (WHERE a.day = c.day) * 1.0 / count(DISTINCT a.user_id) AS stickiness
           FROM calendar c JOIN active a ON a.day > c.day - INTERVAL '28 days' AND a.day <= c.day
           GROUP BY c.day ORDER BY c.day""",
    ),
    AskedOfCalendars(
        "exporters of the seven days up to each day by plan",
        """SELECT c.day, e.{plan} AS plan, count(DISTINCT e.user_id) AS exporters, count(*) AS exports,
             sum(e.{tokens}) AS tokens, count(*) FILTER (WHERE e.{status} <> 'ok') * 1.0 / count(*) AS failed
           FROM (SELECT DISTINCT {day} AS day FROM events) AS c, events e
           WHERE e.event_name = 'export' AND e.timestamp >= c.day - INTERVAL '6 days'
             AND e.timestamp < c.day + INTERVAL '1 day'
           GROUP BY c.day, e.{plan} ORDER BY c.day, plan""",
    ),
    AskedOfCalendars(
        "users between their first and their last event on each day",
        """WITH lives AS (
             SELECT tenant_id, user_id, min(timestamp) AS first_seen, max(timestamp) AS last_seen, count(*) AS n
             FROM events GROUP BY tenant_id, user_id),
           calendar AS (SELECT {day} AS day, count(DISTINCT user_id) AS came FROM events GROUP BY 1)
           SELECT c.day, c.came, count(*) AS living, c.came * 1.0 / count(*) AS share_that_came,
             count(DISTINCT l.tenant_id) AS tenants, count(*) FILTER (WHERE l.first_seen >= c.day) AS begun,
             count(*) FILTER (WHERE l.last_seen < c.day + INTERVAL '1 day') AS seen_no_more, avg(l.n) AS mean_events
           FROM calendar c JOIN lives l ON l.first_seen < c.day + INTERVAL '1 day' AND l.last_seen >= c.day
           GROUP BY c.day, c.came ORDER BY c.day""",
    ),
    AskedOfCalendars(
        "users known before each day and those of them who return on it",
        """WITH active AS (
             SELECT DISTINCT user_id, {day} AS day FROM events
             WHERE tenant_id IN ('tenant-1', 'tenant-2', 'tenant-3')),
           firsts AS (SELECT user_id, min(day) AS first_day FROM active GROUP BY user_id),
           calendar AS (SELECT day, count(*) AS users FROM active GROUP BY day),
           known AS (
             SELECT c.day, count(f.user_id) AS known_users
             FROM calendar c LEFT JOIN firsts f ON f.first_day < c.day GROUP BY c.day),
           returned AS (
             SELECT a.day, count(*) AS old_users FROM active a JOIN firsts f ON f.user_id = a.user_id
             WHERE f.first_day < a.day GROUP BY a.day)
           SELECT c.day, c.users, k.known_users, coalesce(r.old_users, 0) AS old_users,
             c.users - coalesce(r.old_users, 0) AS new_users,
             coalesce(r.old_users * 1.0 / nullif(k.known_users, 0), 0.0) AS return_rate
           FROM calendar c JOIN known k ON k.day = c.day LEFT JOIN returned r ON r.day = c.day
           ORDER BY c.day""",
    ),
    AskedOfCalendars(
        "what cohorts of paying users have spent up to each week",
        """WITH spend AS (
             SELECT tenant_id, user_id, {week} AS week, sum({tokens}) AS tokens FROM events
             WHERE {plan} <> 'free' GROUP BY 1, 2, 3),
           firsts AS (SELECT tenant_id, user_id, min(week) AS cohort FROM spend GROUP BY tenant_id, user_id),
           calendar AS (SELECT DISTINCT week FROM spend)
           SELECT f.cohort, c.week, count(DISTINCT s.user_id) AS users, sum(s.tokens) AS tokens_so_far,
             sum(s.tokens) / count(DISTINCT s.user_id) AS tokens_of_user,
             count(*) FILTER (WHERE s.week = c.week) AS users_of_week,
             sum(CASE WHEN s.week = c.week THEN s.tokens ELSE 0 END) AS tokens_of_week
           FROM firsts f JOIN spend s ON s.tenant_id = f.tenant_id AND s.user_id = f.user_id
             JOIN calendar c ON s.week <= c.week
           GROUP BY f.cohort, c.week ORDER BY f.cohort, c.week""",
    ),
    # Limits and tiers that are found in the data.
    AskedOfCalendars(
        "calls of each plan above the 95th percentiles of plans and models",
        """WITH limits AS (
             SELECT {plan} AS plan, {model} AS model, count(*) AS calls,
               percentile_cont(0.95) WITHIN GROUP (ORDER BY {latency_ms}) AS p95
             FROM events WHERE event_name = 'api_call' GROUP BY 1, 2)
           SELECT l.plan AS plan_of_limit, l.model AS model_of_limit, l.p95, e.{plan} AS plan_of_calls,
             count(*) AS calls_above, count(*) * 1.0 / l.calls AS to_calls_of_limit,
             count(DISTINCT e.tenant_id) AS tenants, max(e.{latency_ms}) AS slowest
           FROM limits l JOIN events e ON e.{latency_ms} > l.p95 + 0.000005
           WHERE e.event_name = 'api_call'
           GROUP BY l.plan, l.model, l.p95, l.calls, e.{plan} ORDER BY l.plan, l.model, plan_of_calls""",
    ),
    AskedOfCalendars(
        "failed calls of two weeks by how many endpoints have a 95th percentile below them",
        """SELECT e.timestamp, e.tenant_id, e.user_id, e.event_id, e.{endpoint} AS endpoint,
             e.{latency_ms} AS latency_ms, count(*) AS endpoints_passed, max(l.p95) AS highest_passed
           FROM events e JOIN (
             SELECT {endpoint} AS endpoint, percentile_cont(0.95) WITHIN GROUP (ORDER BY {latency_ms}) AS p95
             FROM events WHERE event_name = 'api_call' AND {status} = 'ok'
             GROUP BY {endpoint} HAVING count(*) >= 50) AS l ON l.p95 + 0.000005 < e.{latency_ms}
           WHERE e.event_name = 'api_call' AND e.{status} <> 'ok' AND e.timestamp >= {ago_14}
             AND e.timestamp < {ago_0}
           GROUP BY e.timestamp, e.tenant_id, e.user_id, e.event_id, e.{endpoint}, e.{latency_ms}
           ORDER BY endpoints_passed, e.timestamp DESC, e.event_id LIMIT 300""",
    ),
    AskedOfCalendars(
        "drift of latency of a week against fiftieths of the four weeks before",
        """WITH placed AS (
             SELECT {latency_ms} AS latency_ms, ntile(50) OVER (ORDER BY {latency_ms}) AS bucket FROM events
             WHERE event_name = 'api_call' AND timestamp >= {ago_35} AND timestamp < {ago_7}),
           buckets AS (
             SELECT bucket, CASE WHEN bucket = 1 THEN 0.0 ELSE min(latency_ms) END AS from_ms,
               coalesce(lead(min(latency_ms)) OVER (ORDER BY bucket), 1000000.0) AS to_ms,
               count(*) * 1.0 / sum(count(*)) OVER () AS expected
             FROM placed GROUP BY bucket),
           found AS (
             SELECT b.bucket, b.from_ms, b.to_ms, b.expected, count(*) AS calls,
               count(*) * 1.0 / sum(count(*)) OVER () AS observed
             FROM events e JOIN buckets b ON e.{latency_ms} >= b.from_ms AND e.{latency_ms} < b.to_ms
             WHERE e.event_name = 'api_call' AND e.timestamp >= {ago_7} AND e.timestamp < {ago_0}
             GROUP BY b.bucket, b.from_ms, b.to_ms, b.expected)
           SELECT bucket, from_ms, to_ms, calls, expected, observed,
             (observed - expected) * ln(observed / expected) AS drift,
             sum((observed - expected) * ln(observed / expected)) OVER (ORDER BY bucket ROWS UNBOUNDED PRECEDING)
               AS drift_so_far
           FROM found ORDER BY bucket""",
    ),
    AskedOfCalendars(
        "moves of tenants between twentieths of what they spent four weeks before",
        """WITH consumed AS (
             SELECT tenant_id, coalesce(sum({tokens}) FILTER (WHERE timestamp < {ago_28}), 0.0) AS tokens_before,
               coalesce(sum({tokens}) FILTER (WHERE timestamp >= {ago_28}), 0.0) AS tokens_now
             FROM events WHERE timestamp >= {ago_56} AND timestamp < {ago_0} GROUP BY tenant_id),
           tiers AS (
             SELECT tier, CASE WHEN tier = 1 THEN 0.0 ELSE min(tokens_before) END AS from_tokens,
               coalesce(lead(min(tokens_before)) OVER (ORDER BY tier), 1000000000000.0) AS to_tokens
             FROM (SELECT tokens_before, ntile(20) OVER (ORDER BY tokens_before, tenant_id) AS tier
                   FROM consumed) AS ranked
             GROUP BY tier),
           placed_before AS (
             SELECT u.tenant_id, u.tokens_before, u.tokens_now, t.tier
             FROM consumed u JOIN tiers t ON u.tokens_before >= t.from_tokens AND u.tokens_before < t.to_tokens),
           placed_now AS (
             SELECT u.tenant_id, t.tier
             FROM consumed u JOIN tiers t ON u.tokens_now >= t.from_tokens AND u.tokens_now < t.to_tokens)
           SELECT b.tier AS tier_before, n.tier AS tier_now, count(*) AS tenants,
             sum(b.tokens_now - b.tokens_before) AS more_tokens, max(b.tokens_now) AS most_tokens,
             CASE WHEN n.tier > b.tier THEN 'up' WHEN n.tier < b.tier THEN 'down' ELSE 'same' END AS direction
           FROM placed_before b JOIN placed_now n ON n.tenant_id = b.tenant_id
           GROUP BY b.tier, n.tier ORDER BY b.tier, n.tier""",
    ),
    # Sessions.
    AskedOfCalendars(
        "pairs of users whose sessions overlap by day",
        """WITH marked AS (
             SELECT user_id, timestamp, event_id,
               CASE WHEN timestamp <= lag(timestamp) OVER w + INTERVAL '1 hour' THEN 0 ELSE 1 END AS begins
             FROM events WHERE tenant_id = 'tenant-12' AND timestamp >= {ago_28} AND timestamp < {ago_0}
             WINDOW w AS (PARTITION BY user_id ORDER BY timestamp, event_id)),
           numbered AS (
             SELECT user_id, timestamp, sum(begins) OVER (PARTITION BY user_id ORDER BY timestamp, event_id
               ROWS UNBOUNDED PRECEDING) AS session_number
             FROM marked),
           sessions AS (
             SELECT user_id, session_number, min(timestamp) AS began, max(timestamp) AS ended, count(*) AS n
             FROM numbered GROUP BY user_id, session_number)
           SELECT date_trunc('day', greatest(a.began, b.began)) AS day, count(*) AS overlaps,
             count(DISTINCT concat(a.user_id, ' ', b.user_id)) AS pairs, max(a.n + b.n) AS most_events,
             sum(extract(epoch FROM least(a.ended, b.ended) - greatest(a.began, b.began))) / 60 AS minutes,
             max(extract(epoch FROM least(a.ended, b.ended) - greatest(a.began, b.began))) / 60 AS longest
           FROM sessions a JOIN sessions b ON a.began <= b.ended AND b.began <= a.ended AND a.user_id < b.user_id
           GROUP BY 1 ORDER BY 1""",
    ),
    AskedOfCalendars(
        "sessions under way in each hour of two weeks at three tenants",
        """WITH marked AS (
             SELECT tenant_id, user_id, timestamp, event_id,
               CASE WHEN timestamp <= lag(timestamp) OVER w + INTERVAL '30 minutes' THEN 0 ELSE 1 END AS begins
             FROM events
             WHERE tenant_id IN ('tenant-60', 'tenant-70', 'tenant-80') AND timestamp >= {ago_14}
               AND timestamp < {ago_0}
             WINDOW w AS (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id)),
           numbered AS (
             SELECT tenant_id, user_id, timestamp, sum(begins) OVER (PARTITION BY tenant_id, user_id
               ORDER BY timestamp, event_id ROWS UNBOUNDED PRECEDING) AS session_number
             FROM marked),
           sessions AS (
             SELECT tenant_id, user_id, session_number, min(timestamp) AS began, max(timestamp) AS ended,
               count(*) AS n
             FROM numbered GROUP BY tenant_id, user_id, session_number),
           hours AS (
             SELECT DISTINCT date_trunc('hour', timestamp) AS slot FROM events
             WHERE timestamp >= {ago_14} AND timestamp < {ago_0})
           SELECT h.slot, {hour_label} AS label, count(s.user_id) AS under_way,
             count(DISTINCT s.tenant_id) AS tenants, count(s.user_id) FILTER (WHERE s.began >= h.slot) AS begun,
             count(s.user_id) FILTER (WHERE s.ended >= h.slot + INTERVAL '1 hour') AS going_on,
             coalesce(max(s.n), 0) AS most_events,
             CASE WHEN count(s.user_id) = 0 THEN 'idle' ELSE 'in use' END AS state
           FROM hours h LEFT JOIN sessions s ON s.began < h.slot + INTERVAL '1 hour' AND s.ended >= h.slot
           GROUP BY h.slot ORDER BY h.slot""",
    ),
    # Groups that are compared with groups.
    AskedOfCalendars(
        "tenants outspent by tenants with fewer users",
        """WITH tenants AS (
             SELECT tenant_id, count(DISTINCT user_id) AS users, count(*) AS n, sum({tokens}) AS tokens FROM events
             WHERE timestamp >= {month} GROUP BY tenant_id)
           SELECT a.tenant_id, a.users, a.tokens, count(*) AS outspent_by, min(b.users) AS least_users,
             max(b.tokens) AS most_tokens, max(b.tokens / b.users) AS most_tokens_of_user,
             count(*) FILTER (WHERE b.n < a.n) AS with_fewer_events, sum(b.tokens - a.tokens) AS tokens_behind
           FROM tenants a JOIN tenants b ON b.users < a.users AND b.tokens > a.tokens
           GROUP BY a.tenant_id, a.users, a.tokens ORDER BY outspent_by DESC, a.tenant_id LIMIT 300""",
    ),
    AskedOfCalendars(
        "hours that are the busiest for two days or longer",
        """WITH hourly AS (
             SELECT date_trunc('hour', timestamp) AS slot, count(*) AS calls, count(DISTINCT tenant_id) AS tenants
             FROM events WHERE event_name = 'api_call' GROUP BY 1)
           SELECT h.slot, {hour_label} AS label, h.calls, h.tenants, count(p.slot) AS as_busy_in_four_weeks,
             coalesce(max(p.calls), 0) AS most_calls_before,
             coalesce(extract(epoch FROM h.slot - max(p.slot)) / 3600, 0.0) AS hours_since
           FROM hourly h LEFT JOIN hourly p ON p.slot < h.slot AND p.slot >= h.slot - INTERVAL '28 days'
             AND p.calls >= h.calls
           WHERE h.slot >= {ago_56} AND h.slot < {ago_0}
           GROUP BY h.slot, h.calls, h.tenants
           HAVING count(p.slot) = 0 OR max(p.slot) < h.slot - INTERVAL '2 days'
           ORDER BY h.slot""",
    ),
    # Incidents.
    AskedOfCalendars(
        "hours with many failures and the calls before and after them",
        """WITH usual AS (
             SELECT count(*) FILTER (WHERE {status} <> 'ok') * 1.0 / count(*) AS rate FROM events
             WHERE event_name = 'api_call'),
           incidents AS (
             SELECT date_trunc('hour', timestamp) AS slot, count(*) AS calls,
               count(*) FILTER (WHERE {status} <> 'ok') AS failed
             FROM events WHERE event_name = 'api_call' GROUP BY 1
             HAVING count(*) FILTER (WHERE {status} <> 'ok') > count(*) * (SELECT rate FROM usual)
               + 2 * sqrt(count(*) * (SELECT rate FROM usual)))
           SELECT i.slot, i.calls, i.failed, count(DISTINCT e.user_id) AS users,
             count(*) FILTER (WHERE e.timestamp < i.slot) AS calls_before,
             count(*) FILTER (WHERE e.timestamp < i.slot AND e.{status} <> 'ok') AS failed_before,
             count(*) FILTER (WHERE e.timestamp >= i.slot + INTERVAL '1 hour') AS calls_after,
             count(*) FILTER (WHERE e.timestamp >= i.slot + INTERVAL '1 hour' AND e.{status} <> 'ok') AS failed_after,
             coalesce(avg(e.{latency_ms}) FILTER (WHERE e.timestamp >= i.slot + INTERVAL '1 hour'), 0.0)
               AS latency_after
           FROM incidents i JOIN events e ON e.timestamp >= i.slot - INTERVAL '3 hours'
             AND e.timestamp < i.slot + INTERVAL '4 hours'
           WHERE e.event_name = 'api_call' GROUP BY i.slot, i.calls, i.failed ORDER BY i.slot""",
    ),
    AskedOfCalendars(
        "failing hours and slow hours of the largest tenant that lie near each other, or alone",
        """WITH failing AS (
             SELECT date_trunc('hour', timestamp) AS slot, count(*) AS calls,
               count(*) FILTER (WHERE {status} <> 'ok') AS failed
             FROM events WHERE tenant_id = {largest} AND event_name = 'api_call' GROUP BY 1
             HAVING count(*) >= 10
               AND count(*) FILTER (WHERE {status} <> 'ok') > count(*) * 0.0801 + 2 * sqrt(count(*) * 0.0801)),
           slow AS (
             SELECT date_trunc('hour', timestamp) AS slot, count(*) FILTER (WHERE {latency_ms} > 500) AS slow_calls,
               avg({latency_ms}) AS mean
             FROM events WHERE tenant_id = {largest} AND event_name = 'api_call' GROUP BY 1
             HAVING count(*) >= 10
               AND count(*) FILTER (WHERE {latency_ms} > 500) > count(*) * 0.0431 + 2 * sqrt(count(*) * 0.0431))
           SELECT coalesce(f.slot, s.slot) AS failing_or_slow, coalesce(s.slot, f.slot) AS slow_or_failing,
             CASE WHEN s.slot IS NULL THEN 'failures alone' WHEN f.slot IS NULL THEN 'slowness alone'
                  ELSE 'both' END AS kind,
             coalesce(f.calls, 0) AS calls, coalesce(f.failed, 0) AS failed,
             coalesce(s.slow_calls, 0) AS slow_calls, coalesce(s.mean, 0.0) AS mean_of_slow_hour
           FROM failing f FULL JOIN slow s
             ON s.slot BETWEEN f.slot - INTERVAL '3 hours' AND f.slot + INTERVAL '3 hours'
           ORDER BY failing_or_slow, slow_or_failing, kind""",
    ),
    # A calendar with gaps.
    AskedOfCalendars(
        "how long a tenant has been silent at each hour",
        """SELECT h.slot, count(e.event_id) AS events_so_far, count(DISTINCT e.user_id) AS users_so_far,
             count(e.event_id) FILTER (WHERE e.timestamp >= h.slot - INTERVAL '1 day') AS events_of_a_day,
             coalesce(extract(epoch FROM h.slot - max(e.timestamp)) / 3600, -1.0) AS silent_hours,
             CASE WHEN count(e.event_id) = 0 THEN 'not begun'
                  WHEN max(e.timestamp) < h.slot - INTERVAL '3 hours' THEN 'silent' ELSE 'in use' END AS state
           FROM (SELECT DISTINCT date_trunc('hour', timestamp) AS slot FROM events) AS h
             LEFT JOIN events e ON e.tenant_id = 'tenant-100' AND e.timestamp < h.slot
           GROUP BY h.slot ORDER BY h.slot""",
    ),
)
