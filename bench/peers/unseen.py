"""Thirty statements in shapes that `analysts.py`, `foreign.py` and `fresh.py` do not have.

They were written from the documentation of the API alone, by somebody who had read neither the code behind it nor
its history. They are asked of our SQL and of DuckDB, there is no text for ClickHouse. Names of tenants, users and
values are those of `synthetic.py`, in which every event has every property; where a statement is about missing values
it reads properties that no event has.

Every row has its place in the order, no cell is NULL, and an answer has 5,000 rows at most, however many events
there are. No function is approximate. Event
ids that are looked up are those of one file of rows; in another file they are reported as missing.
"""

from analysts import DUCK, OURS
from fresh import AskedAfresh

STORES = (OURS, DUCK)
# What differs, besides the words of `analysts.py`, `foreign.py` and `fresh.py`: properties that no event has.
UNSEEN_WORDS = {
    OURS: {"region": "string_props['region']", "cost_usd": "numeric_props['cost_usd']"},
    DUCK: {"region": "CAST(NULL AS VARCHAR)", "cost_usd": "CAST(NULL AS DOUBLE)"},
}


class AskedUnseen(AskedAfresh):
    """A statement for the stores of `STORES`, with the words of `UNSEEN_WORDS` and those of `fresh.py`."""

    own_words = UNSEEN_WORDS


STATEMENTS = (
    AskedUnseen(
        "what a user did around the slowest call",
        """WITH slowest AS (
             SELECT tenant_id, user_id, event_id, timestamp AS called_at FROM events
             WHERE tenant_id = {largest} AND event_name = 'api_call'
             ORDER BY {latency_ms} DESC, event_id LIMIT 1)
           SELECT e.timestamp, e.event_id, e.event_name, e.{endpoint} AS endpoint, e.{status} AS status,
             e.{latency_ms} AS latency_ms,
             CASE WHEN e.event_id = s.event_id THEN 'the call' WHEN e.timestamp <= s.called_at THEN 'before'
                  ELSE 'after' END AS relation
           FROM events e JOIN slowest s ON s.tenant_id = e.tenant_id AND s.user_id = e.user_id
           WHERE e.timestamp BETWEEN s.called_at - INTERVAL '3 days' AND s.called_at + INTERVAL '3 days'
           ORDER BY e.timestamp, e.event_id LIMIT 1000""",
    ),
    AskedUnseen(
        "which of these events arrived",
        """SELECT asked.event_id, coalesce(e.tenant_id, 'missing') AS tenant, coalesce(e.event_name, '') AS name,
           coalesce(e.{status}, '') AS status, coalesce(e.{tokens}, -1) AS tokens
           FROM (VALUES ('00003520-83df-4388-85f8-338e8ae170b8'),
               ('0000956e-e679-4568-8318-338e2aaf151e'),
               ('0000cdea-df78-4641-8031-338e722b2c1f'),
               ('00032ef7-0400-42d6-84a6-338d9136f767'),
               ('0004334f-67af-492d-8f5d-338a8c8e94c8'),
               ('006f3edd-a217-44af-82df-33e1811c5170'),
               ('01d46215-63c1-41c4-87b4-325addd490a6'),
               ('00000000-0000-4000-8000-000000000001'),
               ('ffffffff-ffff-4fff-8fff-fffffffffff1')) AS asked (event_id)
             LEFT JOIN events e ON e.event_id = asked.event_id
           ORDER BY asked.event_id, tenant""",
    ),
    AskedUnseen(
        "timeline of one user",
        """SELECT row_number() OVER w AS step, timestamp, event_id, event_name, {endpoint} AS endpoint,
           {status} AS status,
           coalesce(floor(extract(epoch FROM timestamp)) - floor(extract(epoch FROM lag(timestamp) OVER w)), 0)
             AS seconds_since,
           sum({tokens}) OVER w AS tokens_so_far
           FROM events WHERE tenant_id = {largest} AND user_id = 'user-1-28'
           WINDOW w AS (ORDER BY timestamp, event_id) ORDER BY step LIMIT 1000""",
    ),
    AskedUnseen(
        "last failure of each endpoint",
        """SELECT DISTINCT ON ({endpoint}) {endpoint} AS endpoint, timestamp, tenant_id, user_id, event_id,
           {status} AS status, {latency_ms} AS latency_ms
           FROM events WHERE event_name = 'api_call' AND {status} <> 'ok' AND timestamp >= {month}
           ORDER BY {endpoint}, timestamp DESC, event_id, tenant_id""",
    ),
    AskedUnseen(
        "countries that share users",
        """WITH used AS (
             SELECT DISTINCT user_id, {country} AS country FROM events
             WHERE tenant_id = {largest} AND timestamp >= {month})
           SELECT a.country AS country, b.country AS other_country, count(*) AS users
           FROM used a JOIN used b ON b.user_id = a.user_id AND b.country > a.country
           GROUP BY a.country, b.country ORDER BY users DESC, a.country, b.country LIMIT 50""",
    ),
    AskedUnseen(
        "sessions by how they begin and how many events they have",
        """WITH gaps AS (
             SELECT user_id, event_id, timestamp, event_name, {source} AS source,
               lag(timestamp) OVER (PARTITION BY user_id ORDER BY timestamp, event_id) AS previous
             FROM events WHERE tenant_id = 'tenant-2'),
           numbered AS (
             SELECT user_id, event_id, timestamp, event_name, source,
               count(CASE WHEN previous IS NULL OR timestamp > previous + INTERVAL '2 hours' THEN 1 END)
                 OVER (PARTITION BY user_id ORDER BY timestamp, event_id) AS session_number
             FROM gaps),
           placed AS (
             SELECT user_id, event_name, source,
               row_number() OVER (PARTITION BY user_id, session_number ORDER BY timestamp, event_id) AS step,
               count(*) OVER (PARTITION BY user_id, session_number) AS steps
             FROM numbered)
           SELECT event_name AS begins_with, source, least(steps, 5) AS events, count(*) AS sessions,
             count(DISTINCT user_id) AS users
           FROM placed WHERE step = 1 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
    ),
    AskedUnseen(
        "spend of monthly cohorts by their age in months",
        """WITH monthly AS (
             SELECT tenant_id, user_id, date_trunc('month', timestamp) AS active_month, sum({tokens}) AS tokens,
               count(*) AS n
             FROM events GROUP BY 1, 2, 3),
           aged AS (
             SELECT active_month, tokens, n, min(active_month) OVER (PARTITION BY tenant_id, user_id) AS cohort
             FROM monthly)
           SELECT cohort,
             (extract(year FROM active_month) - extract(year FROM cohort)) * 12
               + extract(month FROM active_month) - extract(month FROM cohort) AS age,
             count(*) AS users, sum(n) AS n, sum(tokens) AS tokens, sum(tokens) / count(*) AS tokens_per_user
           FROM aged GROUP BY 1, 2 ORDER BY 1, 2""",
    ),
    AskedUnseen(
        "countries with the worst exact tail latencies of exports",
        """SELECT {country} AS country, count(*) AS n,
           round(percentile_cont(0.9) WITHIN GROUP (ORDER BY {latency_ms})) AS p90,
           round(percentile_cont(0.95) WITHIN GROUP (ORDER BY {latency_ms})) AS p95,
           round(percentile_cont(0.99) WITHIN GROUP (ORDER BY {latency_ms})) AS p99
           FROM events WHERE event_name = 'export' AND timestamp >= {month}
           GROUP BY 1 HAVING count(*) >= 200 ORDER BY p99 DESC, country""",
    ),
    AskedUnseen(
        "families of endpoints by region",
        """SELECT CASE WHEN {endpoint} LIKE '/v1/resource/_' THEN 'one digit'
                WHEN {endpoint} LIKE '%/1_' OR {endpoint} LIKE '%/2_' THEN 'ten to twenty-nine'
                ELSE 'the rest' END AS family,
           left({country}, 2) AS region, count(*) AS n, count(DISTINCT tenant_id) AS tenants,
           avg({latency_ms}) AS mean
           FROM events
           WHERE {source} NOT IN ('cron', 'cli') AND ({plan} ILIKE 'TEAM' OR {plan} ILIKE 'ent%')
             AND user_id NOT LIKE '%-1'
           GROUP BY 1, 2 ORDER BY family, region""",
    ),
    AskedUnseen(
        "trailing weeks of one tenant by date",
        """WITH daily AS (
             SELECT event_name, {day} AS day, count(*) AS n, max({latency_ms}) AS slowest
             FROM events WHERE tenant_id = {tenant} GROUP BY 1, 2)
           SELECT event_name, day, n,
             sum(n) OVER (PARTITION BY event_name ORDER BY day
               RANGE BETWEEN INTERVAL '6 days' PRECEDING AND CURRENT ROW) AS n_of_week,
             count(*) OVER (PARTITION BY event_name ORDER BY day
               RANGE BETWEEN INTERVAL '6 days' PRECEDING AND CURRENT ROW) AS active_days,
             coalesce(max(slowest) OVER (PARTITION BY event_name ORDER BY day
               RANGE BETWEEN INTERVAL '7 days' PRECEDING AND INTERVAL '1 day' PRECEDING), 0.0) AS slowest_before
           FROM daily ORDER BY event_name, day""",
    ),
    AskedUnseen(
        "days whose failure rate leaves the band of the fortnight before",
        """WITH daily AS (
             SELECT event_name, {day} AS day, count(*) AS n,
               count(*) FILTER (WHERE {status} <> 'ok') * 1.0 / count(*) AS rate
             FROM events GROUP BY 1, 2),
           measured AS (
             SELECT event_name, day, n, rate, avg(rate) OVER w AS mean, stddev(rate) OVER w AS deviation,
               count(*) OVER w AS days
             FROM daily
             WINDOW w AS (PARTITION BY event_name ORDER BY day ROWS BETWEEN 14 PRECEDING AND 1 PRECEDING))
           SELECT event_name, day, n, rate, mean, deviation, (rate - mean) / deviation AS score
           FROM measured WHERE days = 14 AND deviation > 0 AND abs(rate - mean) > 1.5 * deviation
           ORDER BY event_name, day""",
    ),
    AskedUnseen(
        "users who spend far more than others of their tenant",
        """WITH spend AS (
             SELECT tenant_id, user_id, sum({tokens}) AS tokens FROM events
             WHERE timestamp >= {ago_14} GROUP BY tenant_id, user_id),
           usual AS (
             SELECT tenant_id, avg(tokens) AS mean, stddev_samp(tokens) AS deviation FROM spend
             GROUP BY tenant_id HAVING count(*) >= 30)
           SELECT s.tenant_id, s.user_id, s.tokens, u.mean, (s.tokens - u.mean) / u.deviation AS score
           FROM spend s JOIN usual u ON u.tenant_id = s.tenant_id
           WHERE s.tokens > u.mean + 4 * u.deviation
           ORDER BY score DESC, s.tenant_id, s.user_id LIMIT 100""",
    ),
    AskedUnseen(
        "users to look at this week and why",
        """WITH per_user AS (
             SELECT user_id, count(*) AS n, sum({tokens}) AS tokens, avg({latency_ms}) AS latency,
               count(*) FILTER (WHERE {status} <> 'ok') AS failed
             FROM events WHERE tenant_id = {largest} AND timestamp >= {ago_7} GROUP BY user_id)
           SELECT reason, user_id, figure FROM (
             (SELECT 'spends most' AS reason, user_id, tokens AS figure FROM per_user
              ORDER BY tokens DESC, user_id LIMIT 25)
             UNION ALL
             (SELECT 'fails most' AS reason, user_id, CAST(failed AS DOUBLE) AS figure FROM per_user
              ORDER BY failed DESC, user_id LIMIT 25)
             UNION ALL
             (SELECT 'waits longest' AS reason, user_id, latency AS figure FROM per_user
              WHERE n >= 3 ORDER BY latency DESC, user_id LIMIT 25)
           ) AS flagged ORDER BY reason, figure DESC, user_id""",
    ),
    AskedUnseen(
        "failures in the first thirty days of users",
        """WITH begun AS (
             SELECT tenant_id, user_id, min(timestamp) AS since FROM events
             WHERE tenant_id IN ('tenant-3', 'tenant-6', 'tenant-14', 'tenant-90') GROUP BY tenant_id, user_id)
           SELECT CAST(floor((extract(epoch FROM e.timestamp) - extract(epoch FROM b.since)) / 86400) AS BIGINT)
               AS age,
             count(*) AS n, count(DISTINCT e.user_id) AS users,
             sum(CASE WHEN e.{status} <> 'ok' THEN 1 ELSE 0 END) * 1.0 / count(*) AS failed
           FROM events e JOIN begun b ON b.tenant_id = e.tenant_id AND b.user_id = e.user_id
           WHERE e.timestamp < b.since + INTERVAL '30 days'
           GROUP BY 1 ORDER BY 1""",
    ),
    AskedUnseen(
        "newest export and recent timeouts of the busiest tenants",
        """WITH busiest AS (
             SELECT tenant_id, count(*) AS n FROM events WHERE timestamp >= {month}
             GROUP BY tenant_id ORDER BY n DESC, tenant_id LIMIT 50)
           SELECT b.tenant_id, b.n,
             (SELECT max(x.timestamp) FROM events x
              WHERE x.tenant_id = b.tenant_id AND x.event_name = 'export') AS newest_export,
             (SELECT count(DISTINCT t.user_id) FROM events t
              WHERE t.tenant_id = b.tenant_id AND t.{status} = 'timeout'
                AND t.timestamp >= {ago_3}) AS users_with_timeouts
           FROM busiest b ORDER BY b.n DESC, b.tenant_id""",
    ),
    AskedUnseen(
        "newest page view of each user by a subquery",
        """SELECT e.user_id, e.timestamp, e.event_id, e.{endpoint} AS endpoint, e.{source} AS source
           FROM events e WHERE e.tenant_id = 'tenant-10' AND e.event_name = 'page_view' AND e.timestamp = (
             SELECT max(m.timestamp) FROM events m
             WHERE m.tenant_id = e.tenant_id AND m.user_id = e.user_id AND m.event_name = 'page_view')
           ORDER BY e.user_id, e.event_id LIMIT 2000""",
    ),
    AskedUnseen(
        "tenants with enterprise exports and no timeout this week",
        """SELECT t.tenant_id, count(*) AS n, count(DISTINCT t.user_id) AS users, max(t.{latency_ms}) AS slowest
           FROM events t WHERE t.timestamp >= {ago_7}
             AND EXISTS (SELECT 1 FROM events x WHERE x.tenant_id = t.tenant_id AND x.event_name = 'export'
               AND x.{plan} = 'enterprise' AND x.timestamp >= {ago_7})
             AND NOT EXISTS (SELECT 1 FROM events f WHERE f.tenant_id = t.tenant_id AND f.{status} = 'timeout'
               AND f.timestamp >= {ago_7})
           GROUP BY t.tenant_id ORDER BY n DESC, t.tenant_id LIMIT 200""",
    ),
    AskedUnseen(
        "tokens of the largest spenders by model in columns",
        """SELECT tenant_id, sum({tokens}) AS tokens,
           sum(CASE WHEN {model} = 'model-0' THEN {tokens} ELSE 0 END) AS model_0,
           sum(CASE WHEN {model} = 'model-1' THEN {tokens} ELSE 0 END) AS model_1,
           sum(CASE WHEN {model} = 'model-2' THEN {tokens} ELSE 0 END) AS model_2,
           sum(CASE WHEN {model} = 'model-3' THEN {tokens} ELSE 0 END) AS model_3,
           sum(CASE WHEN {model} IN ('model-4', 'model-5') THEN {tokens} ELSE 0 END) AS model_4_5,
           sum(CASE WHEN {model} > 'model-5' THEN {tokens} ELSE 0 END) AS others
           FROM events WHERE event_name IN ('api_call', 'export') AND timestamp >= {month}
           GROUP BY tenant_id ORDER BY tokens DESC, tenant_id LIMIT 40""",
    ),
    AskedUnseen(
        "lists of countries that users export from",
        """SELECT user_id, count(*) AS countries, string_agg(country, ', ' ORDER BY country) AS listed
           FROM (SELECT DISTINCT user_id, {country} AS country FROM events
                 WHERE tenant_id = {tenant} AND event_name = 'export') AS used
           GROUP BY user_id ORDER BY countries DESC, user_id LIMIT 500""",
    ),
    AskedUnseen(
        "daily users as a share of monthly users by tenant",
        """WITH monthly AS (
             SELECT tenant_id, count(DISTINCT user_id) AS month_users FROM events
             WHERE timestamp >= {month} AND timestamp < {ago_0} GROUP BY tenant_id),
           daily AS (
             SELECT tenant_id, {day} AS day, count(DISTINCT user_id) AS day_users FROM events
             WHERE timestamp >= {month} AND timestamp < {ago_0} GROUP BY 1, 2)
           SELECT m.tenant_id, m.month_users, max(d.day_users) AS most_in_a_day,
             sum(d.day_users) / 30.0 AS mean_day_users, sum(d.day_users) / 30.0 / m.month_users AS stickiness
           FROM monthly m JOIN daily d ON d.tenant_id = m.tenant_id
           GROUP BY m.tenant_id, m.month_users ORDER BY m.month_users DESC, m.tenant_id LIMIT 250""",
    ),
    AskedUnseen(
        "failure rates of sources and plans against the overall rate",
        """WITH overall AS (
             SELECT count(*) FILTER (WHERE {status} <> 'ok') * 1.0 / count(*) AS usual FROM events
             WHERE event_name = 'api_call' AND timestamp >= {month})
           SELECT e.{source} AS source, e.{plan} AS plan, count(*) AS n,
             count(*) FILTER (WHERE e.{status} <> 'ok') * 1.0 / count(*) AS rate,
             count(*) FILTER (WHERE e.{status} <> 'ok') * 1.0 / count(*) / o.usual AS lift
           FROM events e CROSS JOIN overall o
           WHERE e.event_name = 'api_call' AND e.timestamp >= {month}
           GROUP BY e.{source}, e.{plan}, o.usual ORDER BY 1, 2""",
    ),
    AskedUnseen(
        "longest runs of failed calls",
        """WITH calls AS (
             SELECT user_id, timestamp, {status} AS status,
               row_number() OVER (PARTITION BY user_id ORDER BY timestamp, event_id)
                 - row_number() OVER (PARTITION BY user_id, CASE WHEN {status} = 'ok' THEN 1 ELSE 0 END
                   ORDER BY timestamp, event_id) AS run
             FROM events WHERE tenant_id = {largest} AND event_name = 'api_call'),
           runs AS (
             SELECT user_id, run, count(*) AS failures, min(timestamp) AS began, max(timestamp) AS ended
             FROM calls WHERE status <> 'ok' GROUP BY user_id, run)
           SELECT user_id, failures, began, ended FROM runs WHERE failures >= 2
           ORDER BY failures DESC, began, user_id LIMIT 100""",
    ),
    AskedUnseen(
        "time between calls of a user by plan in columns",
        """WITH gaps AS (
             SELECT {plan} AS plan,
               timestamp - lag(timestamp) OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id) AS gap
             FROM events WHERE event_name = 'api_call' AND timestamp >= {ago_21})
           SELECT CASE WHEN gap < INTERVAL '1 minute' THEN '1 within a minute'
                       WHEN gap < INTERVAL '1 hour' THEN '2 within an hour'
                       WHEN gap < INTERVAL '1 day' THEN '3 within a day'
                       WHEN gap < INTERVAL '7 days' THEN '4 within a week'
                       ELSE '5 later' END AS returned,
             count(*) AS n, count(*) FILTER (WHERE plan = 'free') AS of_free,
             count(*) FILTER (WHERE plan = 'pro') AS of_pro, count(*) FILTER (WHERE plan = 'team') AS of_team,
             count(*) FILTER (WHERE plan = 'enterprise') AS of_enterprise
           FROM gaps WHERE gap IS NOT NULL GROUP BY 1 ORDER BY 1""",
    ),
    AskedUnseen(
        "tenants that lost a fifth of their calls in a week",
        """SELECT tenant_id, count(*) FILTER (WHERE timestamp >= {ago_7}) AS this_week,
           count(*) FILTER (WHERE timestamp < {ago_7}) AS last_week,
           count(*) FILTER (WHERE timestamp >= {ago_7}) - count(*) FILTER (WHERE timestamp < {ago_7}) AS change
           FROM events WHERE event_name = 'api_call' AND timestamp >= {ago_14} AND timestamp < {ago_0}
           GROUP BY tenant_id
           HAVING count(*) FILTER (WHERE timestamp < {ago_7}) >= 10
             AND count(*) FILTER (WHERE timestamp >= {ago_7}) * 10 < count(*) FILTER (WHERE timestamp < {ago_7}) * 8
           ORDER BY change, tenant_id LIMIT 50""",
    ),
    AskedUnseen(
        "users of two fortnights, new, kept and gone",
        """WITH recent AS (
             SELECT user_id, sum({tokens}) AS tokens FROM events
             WHERE tenant_id = 'tenant-20' AND timestamp >= {ago_14} AND timestamp < {ago_0} GROUP BY user_id),
           earlier AS (
             SELECT user_id, sum({tokens}) AS tokens FROM events
             WHERE tenant_id = 'tenant-20' AND timestamp >= {ago_28} AND timestamp < {ago_14} GROUP BY user_id)
           SELECT coalesce(r.user_id, e.user_id) AS who,
             CASE WHEN e.user_id IS NULL THEN 'new' WHEN r.user_id IS NULL THEN 'gone' ELSE 'kept' END AS state,
             coalesce(r.tokens, 0.0) AS tokens, coalesce(r.tokens, 0.0) - coalesce(e.tokens, 0.0) AS change
           FROM recent r FULL JOIN earlier e ON e.user_id = r.user_id
           ORDER BY who LIMIT 2000""",
    ),
    AskedUnseen(
        "how few tenants spend most of the tokens",
        """WITH spend AS (
             SELECT tenant_id, sum({tokens}) AS tokens FROM events WHERE timestamp >= {month} GROUP BY tenant_id),
           running AS (
             SELECT tokens, sum(tokens) OVER (ORDER BY tokens DESC, tenant_id) - tokens AS spent_before,
               sum(tokens) OVER () AS total
             FROM spend)
           SELECT count(*) AS tenants, count(*) FILTER (WHERE spent_before < 0.5 * total) AS for_half,
             count(*) FILTER (WHERE spent_before < 0.8 * total) AS for_four_fifths,
             count(*) FILTER (WHERE spent_before < 0.95 * total) AS for_nearly_all,
             max(tokens) / max(total) AS largest_share
           FROM running""",
    ),
    AskedUnseen(
        "views that lead to a call and then to an export",
        """WITH steps AS (
             SELECT event_name, timestamp, lead(event_name) OVER w AS second_step,
               lead(event_name, 2) OVER w AS third_step, lead(timestamp, 2) OVER w AS third_at
             FROM events WHERE tenant_id IN ('tenant-2', 'tenant-3', 'tenant-31')
             WINDOW w AS (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id))
           SELECT date_trunc('week', timestamp) AS week, count(*) AS views,
             count(*) FILTER (WHERE second_step = 'api_call') AS called,
             count(*) FILTER (WHERE second_step = 'api_call' AND third_step = 'export') AS exported,
             count(*) FILTER (WHERE second_step = 'api_call' AND third_step = 'export'
               AND third_at <= timestamp + INTERVAL '2 days') AS exported_soon,
             coalesce(count(*) FILTER (WHERE second_step = 'api_call' AND third_step = 'export') * 1.0
               / nullif(count(*) FILTER (WHERE second_step = 'api_call'), 0), 0.0) AS share
           FROM steps WHERE event_name = 'page_view' GROUP BY 1 ORDER BY 1""",
    ),
    AskedUnseen(
        "calls by size and speed",
        """SELECT floor({tokens} / 500) * 500 AS tokens_from, count(*) AS n,
           count(*) FILTER (WHERE {latency_ms} < 50) AS fast,
           count(*) FILTER (WHERE {latency_ms} >= 50 AND {latency_ms} < 250) AS usual,
           count(*) FILTER (WHERE {latency_ms} >= 250) AS slow, avg({latency_ms}) AS mean
           FROM events WHERE event_name = 'api_call' AND {tokens} > 0 AND {status} = 'ok'
           GROUP BY 1 ORDER BY 1""",
    ),
    AskedUnseen(
        "cost by region, or by country where there is none",
        """SELECT coalesce({region}, {country}, 'unknown') AS place, count(*) AS n, count({region}) AS with_region,
           sum(CASE WHEN {cost_usd} IS NULL THEN 1 ELSE 0 END) AS estimated,
           sum(coalesce({cost_usd}, {tokens} * 0.002)) AS cost
           FROM events WHERE event_name <> 'page_view' AND timestamp >= {month}
           GROUP BY 1 ORDER BY place""",
    ),
    AskedUnseen(
        "users of events and plans with totals of each",
        """SELECT coalesce(name, 'all events') AS of_event, coalesce(plan, 'all plans') AS of_plan,
           count(DISTINCT user_id) AS users, count(*) AS n, sum(tokens) AS tokens
           FROM (SELECT event_name AS name, {plan} AS plan, user_id, {tokens} AS tokens
                 FROM events WHERE tenant_id = {largest} AND timestamp >= {month}) AS used
           GROUP BY GROUPING SETS ((name, plan), (name), (plan)) ORDER BY of_event, of_plan""",
    ),
)
