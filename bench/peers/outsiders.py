"""Thirty statements in shapes that `analysts.py`, `foreign.py`, `fresh.py`, `unseen.py`, `held_out.py` and
`strangers.py` do not have.

They were written from the documentation of the API alone, by somebody who had read neither the code behind it nor
its history. They are asked of our SQL and of DuckDB, there is no text for ClickHouse. Names of tenants, users and
values are those of `synthetic.py`, in which every event has every property. The first eleven are about all tenants
and the whole history, the next ten about one tenant or a few, the last nine about a time. Those with quoted names
are written as tools write them that people click questions together in.

Every row has its place in the order, no cell is NULL, and an answer has 5,000 rows at most, however many events
there are. No function is approximate.
"""

from analysts import DUCK, OURS
from fresh import AskedAfresh

STORES = (OURS, DUCK)
# Days and hours of a place, in both alike. The documentation had said something else of ours, which was wrong there.
BERLIN = "timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'"
OUTSIDE_WORDS = {
    store: {
        "local_day": f"date_trunc('day', {BERLIN}) AT TIME ZONE 'Europe/Berlin' AT TIME ZONE 'UTC'",
        "local_hour": f"extract(hour FROM {BERLIN})",
    }
    for store in STORES
}


class AskedOutside(AskedAfresh):
    """A statement for the stores of `STORES`, with the words of `OUTSIDE_WORDS` and those of `fresh.py`."""

    own_words = OUTSIDE_WORDS


STATEMENTS = (
    # All tenants, the whole history.
    AskedOutside(
        "growth of users by week with what was lost",
        """WITH weekly AS (SELECT DISTINCT tenant_id, user_id, {week} AS week FROM events),
           traced AS (
             SELECT week, lag(week) OVER w AS week_before, lead(week) OVER w AS week_after
             FROM weekly WINDOW w AS (PARTITION BY tenant_id, user_id ORDER BY week)),
           moves AS (
             SELECT week,
               CASE WHEN week_before IS NULL THEN 'new'
                    WHEN week_before = week - INTERVAL '7 days' THEN 'retained' ELSE 'resurrected' END AS move,
               count(*) AS users
             FROM traced GROUP BY 1, 2
             UNION ALL
             SELECT week + INTERVAL '7 days', 'churned', count(*) FROM traced
             WHERE week_after IS NULL OR week_after > week + INTERVAL '7 days' GROUP BY 1)
           SELECT week, sum(CASE WHEN move = 'new' THEN users ELSE 0 END) AS new_users,
             sum(CASE WHEN move = 'retained' THEN users ELSE 0 END) AS retained,
             sum(CASE WHEN move = 'resurrected' THEN users ELSE 0 END) AS resurrected,
             -sum(CASE WHEN move = 'churned' THEN users ELSE 0 END) AS churned,
             coalesce(sum(CASE WHEN move IN ('new', 'resurrected') THEN users ELSE 0 END) * 1.0
               / nullif(sum(CASE WHEN move = 'churned' THEN users ELSE 0 END), 0), 0.0) AS quick_ratio
           FROM moves WHERE week <= (SELECT max(week) FROM weekly) GROUP BY week ORDER BY week""",
    ),
    AskedOutside(
        "tenants in bins of 250 events as a tool asks",
        """SELECT "source"."size" AS "size", COUNT(*) AS "count", AVG("source"."users") AS "avg",
             MAX("source"."sum") AS "max", SUM("source"."count") AS "sum"
           FROM (
             SELECT "source"."tenant_id" AS "tenant_id",
               (FLOOR((("source"."count" - 0.0) / 250.0)) * 250.0) + 0.0 AS "size",
               "source"."count" AS "count", "source"."users" AS "users", "source"."sum" AS "sum"
             FROM (
               SELECT "events"."tenant_id" AS "tenant_id", COUNT(*) AS "count",
                 COUNT(DISTINCT "events"."user_id") AS "users", SUM("events".{tokens}) AS "sum"
               FROM "events" WHERE "events"."event_name" <> 'export'
               GROUP BY "events"."tenant_id") AS "source"
             WHERE "source"."users" > 2) AS "source"
           GROUP BY "source"."size" ORDER BY "source"."size" ASC""",
    ),
    AskedOutside(
        "daily and monthly users of each day from arrivals and departures",
        """WITH active AS (SELECT DISTINCT tenant_id, user_id, {day} AS day FROM events),
           spans AS (
             SELECT day, lag(day) OVER w AS day_before, lead(day) OVER w AS day_after
             FROM active WINDOW w AS (PARTITION BY tenant_id, user_id ORDER BY day)),
           moves AS (
             SELECT day, 1 AS seen,
               CASE WHEN day_before IS NULL OR day_before < day - INTERVAL '27 days' THEN 1 ELSE 0 END AS change
             FROM spans
             UNION ALL
             SELECT day + INTERVAL '28 days', 0, -1 FROM spans
             WHERE day_after IS NULL OR day_after > day + INTERVAL '27 days'),
           daily AS (SELECT day, sum(seen) AS day_users, sum(change) AS change FROM moves GROUP BY day),
           running AS (
             SELECT day, day_users, sum(change) OVER (ORDER BY day ROWS UNBOUNDED PRECEDING) AS month_users FROM daily)
           SELECT day, day_users, month_users, day_users * 1.0 / month_users AS stickiness,
             avg(day_users * 1.0 / month_users) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS smooth
           FROM running WHERE day_users > 0 ORDER BY day""",
    ),
    AskedOutside(
        "sources that first exports are owed to by four rules",
        """WITH first_exports AS (
             SELECT tenant_id, user_id, min(timestamp) AS exported_at FROM events
             WHERE event_name = 'export' GROUP BY tenant_id, user_id),
           touches AS (
             SELECT e.{source} AS source, e.user_id,
               row_number() OVER (PARTITION BY e.tenant_id, e.user_id ORDER BY e.timestamp, e.event_id) AS place,
               count(*) OVER (PARTITION BY e.tenant_id, e.user_id) AS places
             FROM events e JOIN first_exports f ON f.tenant_id = e.tenant_id AND f.user_id = e.user_id
             WHERE e.event_name = 'page_view' AND e.timestamp < f.exported_at
               AND e.timestamp >= f.exported_at - INTERVAL '30 days')
           SELECT source, count(*) AS touches, count(DISTINCT user_id) AS users,
             sum(CASE WHEN place = 1 THEN 1 ELSE 0 END) AS by_first_touch,
             sum(CASE WHEN place = places THEN 1 ELSE 0 END) AS by_last_touch, sum(1.0 / places) AS by_equal_parts,
             sum(CASE WHEN places = 1 THEN 1.0 WHEN places = 2 THEN 0.5 WHEN place IN (1, places) THEN 0.4
                      ELSE 0.2 / (places - 2) END) AS by_position
           FROM touches GROUP BY source ORDER BY source""",
    ),
    AskedOutside(
        "ten busiest endpoints and all others as one",
        """WITH ranked AS (
             SELECT {endpoint} AS endpoint, row_number() OVER (ORDER BY count(*) DESC, {endpoint}) AS place
             FROM events WHERE event_name = 'api_call' GROUP BY {endpoint})
           SELECT CASE WHEN r.place <= 10 THEN CAST(r.endpoint AS VARCHAR) ELSE '(other)' END AS endpoint_group,
             min(r.place) AS place, count(*) AS calls, count(DISTINCT e.user_id) AS users,
             percentile_cont(0.5) WITHIN GROUP (ORDER BY e.{latency_ms}) AS median_latency,
             percentile_cont(0.99) WITHIN GROUP (ORDER BY e.{latency_ms}) AS worst_latency
           FROM events e JOIN ranked r ON r.endpoint = e.{endpoint}
           WHERE e.event_name = 'api_call' GROUP BY 1 ORDER BY 2""",
    ),
    AskedOutside(
        "how long users stay with one source",
        """WITH marked AS (
             SELECT tenant_id, user_id, timestamp, event_id, {source} AS source,
               CASE WHEN {source} IS DISTINCT FROM lag({source}) OVER w THEN 1 ELSE 0 END AS changed
             FROM events WINDOW w AS (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id)),
           numbered AS (
             SELECT tenant_id, user_id, timestamp, source, sum(changed) OVER (PARTITION BY tenant_id, user_id
               ORDER BY timestamp, event_id ROWS UNBOUNDED PRECEDING) AS run
             FROM marked),
           runs AS (
             SELECT tenant_id, user_id, source, run, count(*) AS n, min(timestamp) AS began, max(timestamp) AS ended
             FROM numbered GROUP BY tenant_id, user_id, source, run)
           SELECT source, least(n, 8) AS number_of_events, count(*) AS runs, count(DISTINCT user_id) AS users,
             avg(extract(epoch FROM ended) - extract(epoch FROM began)) / 3600 AS mean_hours,
             count(*) * 1.0 / sum(count(*)) OVER (PARTITION BY source) AS share
           FROM runs GROUP BY source, least(n, 8) ORDER BY source, number_of_events""",
    ),
    AskedOutside(
        "features that tenants never exported from",
        """WITH customers AS (
             SELECT tenant_id, count(*) AS exports, max(timestamp) AS newest FROM events
             WHERE event_name = 'export' GROUP BY tenant_id HAVING count(*) >= 40)
           SELECT c.tenant_id, c.exports, c.newest, count(*) AS never_used,
             string_agg(f.title, ', ' ORDER BY f.title) AS titles
           FROM customers c CROSS JOIN (VALUES ('/v1/resource/38', 'Anomalies'), ('/v1/resource/39', 'Audiences'),
               ('/v1/resource/40', 'Budgets'), ('/v1/resource/41', 'Cohorts'), ('/v1/resource/42', 'Forecasts'),
               ('/v1/resource/43', 'Goals'), ('/v1/resource/44', 'Notebooks'), ('/v1/resource/45', 'Surveys'))
             AS f (endpoint, title)
           WHERE NOT EXISTS (
             SELECT 1 FROM events e
             WHERE e.tenant_id = c.tenant_id AND e.{endpoint} = f.endpoint AND e.event_name = 'export')
           GROUP BY c.tenant_id, c.exports, c.newest
           ORDER BY never_used DESC, c.exports DESC, c.tenant_id LIMIT 500""",
    ),
    AskedOutside(
        "active users by day, week and month in one list",
        """SELECT CASE WHEN grouping(day) = 0 THEN 'day' WHEN grouping(week) = 0 THEN 'week' ELSE 'month' END AS grain,
             coalesce(day, week, month) AS period, count(*) AS n, count(DISTINCT user_id) AS users,
             count(DISTINCT user_id) FILTER (WHERE event_name = 'export') AS exporters, sum(tokens) AS tokens
           FROM (
             SELECT {day} AS day, {week} AS week, date_trunc('month', timestamp) AS month, user_id, event_name,
               {tokens} AS tokens
             FROM events) AS dated
           GROUP BY GROUPING SETS ((day), (week), (month)) ORDER BY grain, period""",
    ),
    AskedOutside(
        "busiest seven days of each tenant",
        """WITH daily AS (
             SELECT tenant_id, {day} AS day, count(*) AS n, sum({tokens}) AS tokens FROM events GROUP BY 1, 2),
           rolling AS (
             SELECT tenant_id, day, sum(n) OVER w AS n_of_week, sum(tokens) OVER w AS tokens_of_week,
               count(*) OVER w AS active_days
             FROM daily WINDOW w AS (PARTITION BY tenant_id ORDER BY day
               RANGE BETWEEN INTERVAL '6 days' PRECEDING AND CURRENT ROW)),
           placed AS (
             SELECT tenant_id, day, n_of_week, tokens_of_week, active_days,
               avg(n_of_week) OVER (PARTITION BY tenant_id) AS usual,
               row_number() OVER (PARTITION BY tenant_id ORDER BY n_of_week DESC, day) AS place
             FROM rolling)
           SELECT tenant_id, day - INTERVAL '6 days' AS from_day, day AS to_day, n_of_week, tokens_of_week, active_days,
             n_of_week / usual AS times_the_usual
           FROM placed WHERE place = 1 ORDER BY n_of_week DESC, tenant_id LIMIT 2000""",
    ),
    AskedOutside(
        "steps that users take within a week each and how fast",
        """WITH people AS (
             SELECT tenant_id, user_id, max({plan}) AS plan,
               min(timestamp) FILTER (WHERE event_name = 'page_view') AS viewed_at,
               min(timestamp) FILTER (WHERE event_name = 'api_call' AND {status} = 'ok') AS called_at,
               min(timestamp) FILTER (WHERE event_name = 'export') AS exported_at
             FROM events GROUP BY tenant_id, user_id)
           SELECT plan, date_trunc('month', viewed_at) AS cohort, count(*) AS viewed,
             count(*) FILTER (WHERE called_at BETWEEN viewed_at AND viewed_at + INTERVAL '7 days') AS called,
             count(*) FILTER (WHERE called_at BETWEEN viewed_at AND viewed_at + INTERVAL '7 days'
               AND exported_at BETWEEN called_at AND called_at + INTERVAL '7 days') AS exported,
             coalesce(percentile_cont(0.5) WITHIN GROUP (
               ORDER BY extract(epoch FROM called_at) - extract(epoch FROM viewed_at))
               FILTER (WHERE called_at >= viewed_at), 0.0) / 3600 AS hours_to_call,
             coalesce(percentile_cont(0.9) WITHIN GROUP (
               ORDER BY extract(epoch FROM exported_at) - extract(epoch FROM viewed_at))
               FILTER (WHERE exported_at >= viewed_at), 0.0) / 3600 AS hours_to_export
           FROM people WHERE viewed_at IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2""",
    ),
    AskedOutside(
        "users by the model they prefer",
        """SELECT plan, favourite, count(*) AS users, sum(n) AS calls_of_favourite, sum(calls) AS calls_of_users,
             avg(n * 1.0 / calls) AS mean_share, count(*) FILTER (WHERE n = calls) AS faithful
           FROM (
             SELECT tenant_id, user_id, {model} AS favourite, max({plan}) AS plan, count(*) AS n,
               sum(count(*)) OVER (PARTITION BY tenant_id, user_id) AS calls,
               row_number() OVER (PARTITION BY tenant_id, user_id
                 ORDER BY count(*) DESC, max(timestamp) DESC, {model}) AS place
             FROM events WHERE event_name = 'api_call' GROUP BY tenant_id, user_id, {model}) AS ranked
           WHERE place = 1 GROUP BY plan, favourite ORDER BY plan, favourite""",
    ),
    # One tenant or a few.
    AskedOutside(
        "failed calls that are tried again within three days",
        """SELECT endpoint, count(*) AS failures, count(*) FILTER (WHERE calls > 1) AS tried_again,
             count(*) FILTER (WHERE succeeded > 0) AS succeeded, avg(calls - 1) AS mean_tries,
             max(calls - 1) AS most_tries
           FROM (
             SELECT {endpoint} AS endpoint, {status} AS status, count(*) OVER w AS calls,
               sum(CASE WHEN {status} = 'ok' THEN 1 ELSE 0 END) OVER w AS succeeded
             FROM events WHERE tenant_id = {largest} AND event_name = 'api_call'
             WINDOW w AS (PARTITION BY user_id, {endpoint} ORDER BY timestamp
               RANGE BETWEEN CURRENT ROW AND INTERVAL '3 days' FOLLOWING)) AS followed
           WHERE status <> 'ok' GROUP BY endpoint ORDER BY failures DESC, endpoint""",
    ),
    AskedOutside(
        "days in Berlin and what falls into office hours there",
        """SELECT tenant_id, {local_day} AS began, count(*) AS n, count(DISTINCT user_id) AS users,
             sum(CASE WHEN {local_hour} BETWEEN 9 AND 16 THEN 1 ELSE 0 END) AS in_office_hours,
             min({local_hour}) AS first_hour, max({local_hour}) AS last_hour
           FROM events WHERE tenant_id IN ('tenant-4', 'tenant-18', 'tenant-72')
           GROUP BY 1, 2 ORDER BY tenant_id, began""",
    ),
    AskedOutside(
        "lengths of sessions in classes",
        """WITH begun AS (
             SELECT tenant_id, user_id, timestamp, event_id, {endpoint} AS endpoint,
               CASE WHEN lag(timestamp) OVER w IS NULL OR lag(timestamp) OVER w < timestamp - INTERVAL '1 hour'
                 THEN timestamp END AS begins
             FROM events WHERE tenant_id IN ({largest}, 'tenant-3', 'tenant-17')
             WINDOW w AS (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id)),
           carried AS (
             SELECT tenant_id, user_id, timestamp, endpoint, max(begins) OVER (PARTITION BY tenant_id, user_id
               ORDER BY timestamp, event_id ROWS UNBOUNDED PRECEDING) AS began
             FROM begun),
           sessions AS (
             SELECT tenant_id, user_id, began, count(*) AS n, count(DISTINCT endpoint) AS endpoints,
               extract(epoch FROM (max(timestamp) - began)) / 60 AS minutes
             FROM carried GROUP BY tenant_id, user_id, began)
           SELECT tenant_id,
             CASE WHEN minutes = 0 THEN '1 one event' WHEN minutes < 5 THEN '2 under five minutes'
                  WHEN minutes < 30 THEN '3 under half an hour' WHEN minutes < 120 THEN '4 under two hours'
                  ELSE '5 longer' END AS length_class,
             count(*) AS sessions, count(DISTINCT user_id) AS users, avg(n) AS mean_events,
             max(endpoints) AS most_endpoints, percentile_cont(0.5) WITHIN GROUP (ORDER BY minutes) AS median_minutes,
             count(*) * 100.0 / sum(count(*)) OVER (PARTITION BY tenant_id) AS percent
           FROM sessions GROUP BY 1, 2 ORDER BY 1, 2""",
    ),
    AskedOutside(
        "viewers of a tenant joined with their exports as a tool asks",
        """SELECT "source"."user_id" AS "user_id", "source"."count" AS "count", "source"."max" AS "max",
             COALESCE("Exports"."count", 0) AS "Exports__count", COALESCE("Exports"."sum", 0.0) AS "Exports__sum",
             CASE WHEN "Exports"."count" IS NULL THEN 'No' ELSE 'Yes' END AS "Is exporter"
           FROM (
             SELECT "events"."user_id" AS "user_id", COUNT(*) AS "count", MAX("events"."timestamp") AS "max"
             FROM "events"
             WHERE ("events"."tenant_id" = 'tenant-8') AND ("events"."event_name" = 'page_view')
             GROUP BY "events"."user_id") AS "source"
           LEFT JOIN (
             SELECT "events"."user_id" AS "user_id", COUNT(*) AS "count", SUM("events".{tokens}) AS "sum"
             FROM "events"
             WHERE ("events"."tenant_id" = 'tenant-8') AND ("events"."event_name" = 'export')
               AND (("events".{status} <> 'error') OR ("events".{status} IS NULL))
             GROUP BY "events"."user_id") AS "Exports" ON "source"."user_id" = "Exports"."user_id"
           WHERE "source"."count" > 2
           ORDER BY "Exports__sum" DESC, "source"."user_id" ASC LIMIT 2000""",
    ),
    AskedOutside(
        "users of an account and whether they are still there",
        """SELECT user_id, 'seat ' || lpad(split_part(user_id, '-', 3), 5, '0') AS seat, max({plan}) AS plan,
             count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS place, max(timestamp) AS last_seen,
             CASE WHEN max(timestamp) >= max(max(timestamp)) OVER () - INTERVAL '3 days' THEN 'active'
                  WHEN max(timestamp) >= max(max(timestamp)) OVER () - INTERVAL '14 days' THEN 'slipping'
                  ELSE 'gone' END AS state,
             count(*) FILTER (WHERE {status} <> 'ok') * 1.0 / count(*) AS failed
           FROM events WHERE tenant_id = 'tenant-12' GROUP BY user_id ORDER BY last_seen DESC, user_id LIMIT 1000""",
    ),
    AskedOutside(
        "calls of a tenant by the first rule of a price list that fits",
        """WITH fitting AS (
             SELECT e.timestamp, e.{tokens} AS tokens, r.title, r.price,
               row_number() OVER (PARTITION BY e.event_id ORDER BY r.priority) AS choice
             FROM events e JOIN (VALUES (1, 'premium', '/v1/resource/4_', 0.02),
                 (2, 'search', '/v1/resource/1%', 0.005), (3, 'reports', '/v1/resource/2_', 0.0075),
                 (4, 'basics', '/v1/resource/_', 0.001),
                 (9, 'the rest', '%', 0.002)) AS r (priority, title, pattern, price)
               ON e.{endpoint} LIKE r.pattern
             WHERE e.tenant_id = 'tenant-2' AND e.event_name = 'api_call' AND e.{status} = 'ok')
           SELECT date_trunc('month', timestamp) AS billed_month, title, count(*) AS calls, sum(tokens) AS tokens,
             sum(tokens * price) AS amount,
             sum(tokens * price) / sum(sum(tokens * price)) OVER (PARTITION BY date_trunc('month', timestamp)) AS share
           FROM fitting WHERE choice = 1 GROUP BY date_trunc('month', timestamp), title
           ORDER BY billed_month, title""",
    ),
    AskedOutside(
        "users who are still seen after so many days",
        """WITH lives AS (
             SELECT user_id, max({plan}) AS plan, extract(epoch FROM min(timestamp)) AS first_seen,
               extract(epoch FROM max(timestamp)) AS last_seen
             FROM events WHERE tenant_id IN ('tenant-1', 'tenant-7', 'tenant-28', 'tenant-112') GROUP BY user_id)
           SELECT l.plan, d.days, count(*) AS old_enough,
             count(*) FILTER (WHERE l.last_seen - l.first_seen >= d.days * 86400) AS still_seen,
             count(*) FILTER (WHERE l.last_seen - l.first_seen >= d.days * 86400) * 1.0 / count(*) AS survival
           FROM lives l CROSS JOIN (VALUES (1), (3), (7), (14), (21), (28), (42), (56), (77)) AS d (days)
           WHERE l.first_seen + d.days * 86400 <= extract(epoch FROM {ago_0})
           GROUP BY l.plan, d.days ORDER BY l.plan, d.days""",
    ),
    AskedOutside(
        "failures that others met at the same endpoint at that time",
        """SELECT date_trunc('day', f.timestamp) AS day, count(*) AS failures, count(DISTINCT f.user_id) AS users,
             count(DISTINCT f.{endpoint}) AS endpoints,
             count(*) FILTER (WHERE f.{status} = 'timeout') AS timeouts, max(f.{latency_ms}) AS slowest
           FROM events f
           WHERE f.tenant_id = {largest} AND f.event_name = 'api_call' AND f.{status} <> 'ok' AND EXISTS (
             SELECT 1 FROM events o
             WHERE o.tenant_id = f.tenant_id AND o.{endpoint} = f.{endpoint} AND o.event_name = 'api_call'
               AND o.{status} <> 'ok' AND o.user_id <> f.user_id
               AND o.timestamp BETWEEN f.timestamp - INTERVAL '15 minutes' AND f.timestamp + INTERVAL '15 minutes')
           GROUP BY 1 ORDER BY 1""",
    ),
    AskedOutside(
        "days against the four same weekdays before",
        """WITH daily AS (
             SELECT tenant_id, {day} AS day, {weekday} AS weekday, count(*) AS n, count(DISTINCT user_id) AS users
             FROM events WHERE tenant_id IN ('tenant-6', 'tenant-16', 'tenant-61') AND timestamp < {ago_0}
             GROUP BY 1, 2, 3),
           compared AS (
             SELECT tenant_id, day, weekday, n, users, avg(n) OVER w AS usual, count(*) OVER w AS days_before,
               first_value(day) OVER w AS since
             FROM daily WINDOW w AS (PARTITION BY tenant_id, weekday ORDER BY day
               ROWS BETWEEN 4 PRECEDING AND 1 PRECEDING))
           SELECT tenant_id, day, weekday, n, users, usual, since, n / usual - 1 AS change,
             CASE WHEN n < 0.7 * usual THEN 'low' WHEN n > 1.3 * usual THEN 'high' ELSE 'as usual' END AS judgement
           FROM compared WHERE days_before = 4 ORDER BY tenant_id, day""",
    ),
    AskedOutside(
        "which endpoints of the first week go with staying",
        """WITH born AS (
             SELECT user_id, min(timestamp) AS since, max(timestamp) AS last_seen FROM events
             WHERE tenant_id = {largest} GROUP BY user_id),
           judged AS (
             SELECT user_id, since, CASE WHEN last_seen >= since + INTERVAL '70 days' THEN 1 ELSE 0 END AS stayed
             FROM born WHERE since < {ago_70}),
           early AS (
             SELECT DISTINCT e.user_id, e.{endpoint} AS endpoint, j.stayed
             FROM events e JOIN judged j ON j.user_id = e.user_id
             WHERE e.tenant_id = {largest} AND e.timestamp < j.since + INTERVAL '7 days')
           SELECT endpoint, count(*) AS users, sum(stayed) AS stayed_users, sum(stayed) * 1.0 / count(*) AS share,
             sum(stayed) * 1.0 / count(*) / (SELECT avg(stayed) FROM judged) AS lift
           FROM early GROUP BY endpoint HAVING count(*) >= 20 ORDER BY endpoint""",
    ),
    # A time.
    AskedOutside(
        "calls that were probably sent twice",
        """SELECT a.timestamp AS sent_at, b.timestamp AS sent_again, a.tenant_id, a.user_id, a.{endpoint} AS endpoint,
             a.event_id AS event_id, b.event_id AS other_event_id, a.{status} AS status, b.{status} AS other_status
           FROM events a JOIN events b ON b.tenant_id = a.tenant_id AND b.user_id = a.user_id
             AND b.{endpoint} = a.{endpoint} AND b.event_id <> a.event_id
           WHERE a.event_name = 'api_call' AND b.event_name = 'api_call'
             AND a.timestamp >= {ago_7} AND a.timestamp < {ago_0} AND b.timestamp >= {ago_7} AND b.timestamp < {ago_0}
             AND b.timestamp >= a.timestamp AND b.timestamp - a.timestamp < INTERVAL '30 minutes'
           ORDER BY sent_at, a.event_id, b.event_id LIMIT 1000""",
    ),
    AskedOutside(
        "week to date against the same part of three weeks before",
        """SELECT {source} AS source, {plan} AS plan,
             sum(CASE WHEN {week} = date_trunc('week', {ago_0}) THEN 1 ELSE 0 END) AS this_week,
             sum(CASE WHEN {week} = date_trunc('week', {ago_0}) - INTERVAL '7 days' THEN 1 ELSE 0 END) AS one_before,
             sum(CASE WHEN {week} = date_trunc('week', {ago_0}) - INTERVAL '14 days' THEN 1 ELSE 0 END) AS two_before,
             sum(CASE WHEN {week} = date_trunc('week', {ago_0}) - INTERVAL '21 days' THEN 1 ELSE 0 END) AS three_before,
             count(DISTINCT CASE WHEN {week} = date_trunc('week', {ago_0}) THEN user_id END) AS users,
             round(100.0 * sum(CASE WHEN {week} = date_trunc('week', {ago_0}) THEN 1 ELSE 0 END)
               / greatest(sum(CASE WHEN {week} = date_trunc('week', {ago_0}) - INTERVAL '7 days' THEN 1 ELSE 0 END), 1)
               - 100.0, 1) AS change_percent
           FROM events
           WHERE timestamp >= date_trunc('week', {ago_0}) - INTERVAL '21 days' AND timestamp < {ago_0}
             AND extract(epoch FROM timestamp) - extract(epoch FROM {week})
               < extract(epoch FROM {ago_0}) - extract(epoch FROM date_trunc('week', {ago_0}))
           GROUP BY {source}, {plan} ORDER BY source, plan""",
    ),
    AskedOutside(
        "weekly users up to each of fourteen days",
        """SELECT d.day, count(*) AS n, count(DISTINCT e.user_id) AS users, count(DISTINCT e.tenant_id) AS tenants,
             count(DISTINCT CASE WHEN e.event_name = 'export' THEN e.user_id END) AS exporters
           FROM (VALUES ({ago_13}), ({ago_12}), ({ago_11}), ({ago_10}), ({ago_9}), ({ago_8}), ({ago_7}), ({ago_6}),
               ({ago_5}), ({ago_4}), ({ago_3}), ({ago_2}), ({ago_1}), ({ago_0})) AS d (day)
             JOIN events e ON e.timestamp >= d.day - INTERVAL '7 days' AND e.timestamp < d.day
           WHERE e.timestamp >= {ago_20} AND e.timestamp < {ago_0}
           GROUP BY d.day ORDER BY d.day""",
    ),
    AskedOutside(
        "minutes in which failures are many in two windows",
        """WITH minutes AS (
             SELECT date_trunc('minute', timestamp) AS slot, count(*) AS calls,
               sum(CASE WHEN {status} = 'ok' THEN 0 ELSE 1 END) AS failed
             FROM events WHERE event_name = 'api_call' AND timestamp >= {ago_2} AND timestamp < {ago_0} GROUP BY 1),
           rates AS (
             SELECT slot, calls, failed,
               sum(failed) OVER w10 * 1.0 / sum(calls) OVER w10 AS short_rate,
               sum(failed) OVER w60 * 1.0 / sum(calls) OVER w60 AS long_rate, sum(calls) OVER w60 AS calls_of_hour
             FROM minutes
             WINDOW w10 AS (ORDER BY slot RANGE BETWEEN INTERVAL '9 minutes' PRECEDING AND CURRENT ROW),
               w60 AS (ORDER BY slot RANGE BETWEEN INTERVAL '59 minutes' PRECEDING AND CURRENT ROW))
           SELECT slot, calls, failed, short_rate, long_rate, short_rate / 0.02 AS burn, calls_of_hour
           FROM rates WHERE short_rate > 0.1 AND long_rate > 0.083 ORDER BY slot""",
    ),
    AskedOutside(
        "events by day and source as a tool asks",
        """SELECT CAST(DATE_TRUNC('day', "events"."timestamp") AS DATE) AS "timestamp", "events".{source} AS "source",
             COUNT(*) AS "count", COUNT(DISTINCT "events"."user_id") AS "count_2", SUM("events".{tokens}) AS "sum",
             SUM(CASE WHEN "events".{status} = 'error' THEN 1 ELSE 0.0 END) / COUNT(*) AS "Error rate"
           FROM "events"
           WHERE ("events"."timestamp" >= {ago_14}) AND ("events"."timestamp" < {ago_0})
             AND (("events"."event_name" = 'api_call') OR ("events"."event_name" = 'export'))
             AND (NOT (LOWER("events".{country}) LIKE 'c0%') OR ("events".{country} IS NULL))
           GROUP BY CAST(DATE_TRUNC('day', "events"."timestamp") AS DATE), "events".{source}
           ORDER BY CAST(DATE_TRUNC('day', "events"."timestamp") AS DATE) ASC, "events".{source} ASC""",
    ),
    AskedOutside(
        "tenants whose users woke up after three silent weeks",
        """SELECT e.tenant_id, count(DISTINCT e.user_id) AS users, count(*) AS n, min(e.timestamp) AS earliest,
             count(DISTINCT e.user_id) FILTER (WHERE e.event_name = 'export') AS exporters
           FROM events e
           WHERE e.timestamp >= {ago_7} AND e.timestamp < {ago_0}
             AND NOT EXISTS (
               SELECT 1 FROM events s WHERE s.tenant_id = e.tenant_id AND s.user_id = e.user_id
                 AND s.timestamp >= {ago_28} AND s.timestamp < {ago_7})
             AND EXISTS (
               SELECT 1 FROM events p WHERE p.tenant_id = e.tenant_id AND p.user_id = e.user_id
                 AND p.timestamp < {ago_28})
           GROUP BY e.tenant_id ORDER BY users DESC, e.tenant_id LIMIT 500""",
    ),
    AskedOutside(
        "board of figures of this week and the one before",
        """WITH figures AS (
             SELECT CAST(count(*) FILTER (WHERE timestamp >= {ago_7}) AS DOUBLE) AS events_now,
               CAST(count(*) FILTER (WHERE timestamp < {ago_7}) AS DOUBLE) AS events_before,
               CAST(count(DISTINCT user_id) FILTER (WHERE timestamp >= {ago_7}) AS DOUBLE) AS users_now,
               CAST(count(DISTINCT user_id) FILTER (WHERE timestamp < {ago_7}) AS DOUBLE) AS users_before,
               CAST(count(DISTINCT tenant_id) FILTER (WHERE timestamp >= {ago_7}) AS DOUBLE) AS tenants_now,
               CAST(count(DISTINCT tenant_id) FILTER (WHERE timestamp < {ago_7}) AS DOUBLE) AS tenants_before,
               sum({tokens}) FILTER (WHERE timestamp >= {ago_7}) AS tokens_now,
               sum({tokens}) FILTER (WHERE timestamp < {ago_7}) AS tokens_before,
               percentile_cont(0.95) WITHIN GROUP (ORDER BY {latency_ms})
                 FILTER (WHERE timestamp >= {ago_7} AND event_name = 'api_call') AS slow_now,
               percentile_cont(0.95) WITHIN GROUP (ORDER BY {latency_ms})
                 FILTER (WHERE timestamp < {ago_7} AND event_name = 'api_call') AS slow_before
             FROM events WHERE timestamp >= {ago_14} AND timestamp < {ago_0}),
           board AS (
             SELECT m.place, m.figure,
               CASE m.place WHEN 1 THEN f.events_now WHEN 2 THEN f.users_now WHEN 3 THEN f.tenants_now
                 WHEN 4 THEN f.tokens_now ELSE f.slow_now END AS this_week,
               CASE m.place WHEN 1 THEN f.events_before WHEN 2 THEN f.users_before WHEN 3 THEN f.tenants_before
                 WHEN 4 THEN f.tokens_before ELSE f.slow_before END AS week_before
             FROM figures f CROSS JOIN (VALUES (1, 'Events'), (2, 'Users'), (3, 'Tenants'), (4, 'Tokens'),
               (5, 'Latency, 95 percent')) AS m (place, figure))
           SELECT place, figure, this_week, week_before, this_week - week_before AS difference,
             (this_week / week_before - 1) * 100 AS change_percent
           FROM board ORDER BY place""",
    ),
    AskedOutside(
        "health of tenants as points",
        """WITH figures AS (
             SELECT tenant_id, count(*) AS n,
               count(DISTINCT user_id) FILTER (WHERE timestamp >= {ago_14}) AS users_now,
               count(DISTINCT user_id) FILTER (WHERE timestamp < {ago_14}) AS users_before,
               count(DISTINCT {endpoint}) AS endpoints, max(timestamp) AS last_seen,
               count(*) FILTER (WHERE event_name = 'export') AS exports,
               count(*) FILTER (WHERE {status} <> 'ok') * 1.0 / count(*) AS failed
             FROM events WHERE timestamp >= {ago_28} AND timestamp < {ago_0} GROUP BY tenant_id),
           scored AS (
             SELECT f.*, CASE WHEN users_now >= users_before THEN 30 WHEN users_now * 10 >= users_before * 8 THEN 15
                 ELSE 0 END
               + CASE WHEN endpoints >= 30 THEN 20 WHEN endpoints >= 15 THEN 10 ELSE 0 END
               + CASE WHEN last_seen >= {ago_1} THEN 20 WHEN last_seen >= {ago_3} THEN 10 ELSE 0 END
               + CASE WHEN exports * 5 >= n THEN 15 ELSE 0 END
               + CASE WHEN failed < 0.075 THEN 15 WHEN failed < 0.1 THEN 5 ELSE 0 END AS points
             FROM figures f)
           SELECT tenant_id, points,
             CASE WHEN points >= 85 THEN 'green' WHEN points >= 60 THEN 'yellow' ELSE 'red' END AS light,
             n, users_now, users_before, endpoints, last_seen, exports, failed,
             count(*) OVER (PARTITION BY points) AS tenants_alike
           FROM scored ORDER BY points, n DESC, tenant_id LIMIT 1000""",
    ),
    AskedOutside(
        "endpoints and models that are slower this week than in the four before",
        """SELECT {endpoint} AS endpoint, {model} AS model, count(*) FILTER (WHERE timestamp >= {ago_7}) AS calls,
             count(*) FILTER (WHERE timestamp < {ago_7}) AS calls_before,
             percentile_cont(0.9) WITHIN GROUP (ORDER BY {latency_ms}) FILTER (WHERE timestamp >= {ago_7}) AS p90,
             percentile_cont(0.9) WITHIN GROUP (ORDER BY {latency_ms}) FILTER (WHERE timestamp < {ago_7}) AS p90_before
           FROM events
           WHERE event_name = 'api_call' AND {status} <> 'timeout' AND timestamp >= {ago_35} AND timestamp < {ago_0}
           GROUP BY {endpoint}, {model}
           HAVING count(*) FILTER (WHERE timestamp >= {ago_7}) >= 50
             AND percentile_cont(0.9) WITHIN GROUP (ORDER BY {latency_ms}) FILTER (WHERE timestamp >= {ago_7})
               > percentile_cont(0.9) WITHIN GROUP (ORDER BY {latency_ms}) FILTER (WHERE timestamp < {ago_7})
           ORDER BY endpoint, model""",
    ),
)
