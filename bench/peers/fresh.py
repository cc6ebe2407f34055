"""Thirty statements more, in shapes that neither `analysts.py` nor `foreign.py` has.

They too were written by somebody who had not read the code behind the API, and for the same reason: a statement that
is measured while the code is improved tells how well that statement does. They are asked of our SQL and of DuckDB,
there is no text for ClickHouse. Names of tenants, events and values are those of `synthetic.py`, in which every event
has every property; where a statement is about missing values it makes them with `nullif`.

Every row has its place in the order, no cell is NULL, and an answer has 5,000 rows at most, however many events
there are.
"""

import re
from dataclasses import dataclass
from typing import ClassVar

from analysts import DUCK, OURS
from foreign import AskedOfTwo
from workload import Facts

STORES = (OURS, DUCK)
# What differs, besides the words of `analysts.py` and `foreign.py`.
FRESH_WORDS = {
    OURS: {"ends_in_five": "regexp_like(user_id, '^user-[0-9]+-[0-9]?[05]$')"},
    DUCK: {"ends_in_five": "regexp_matches(user_id, '^user-[0-9]+-[0-9]?[05]$')"},
}


@dataclass(frozen=True)
class AskedAfresh(AskedOfTwo):
    """A statement for the stores of `STORES`, with the words of its class, of those that this one comes from, and of
    `foreign.py`."""

    own_words: ClassVar = FRESH_WORDS

    def of(self, store: str, facts: Facts) -> str:
        text = self.text
        for kind in type(self).__mro__:
            words = vars(kind).get("own_words", {}).get(store, {})
            text = re.sub(r"\{(\w+)\}", lambda match: words.get(match[1], match[0]), text)
        return AskedOfTwo(self.name, text).of(store, facts)


STATEMENTS = (
    AskedAfresh(
        "retention by weeks since the first visit",
        """WITH weekly AS (SELECT DISTINCT user_id, {week} AS week FROM events WHERE tenant_id = {largest}),
           dated AS (SELECT user_id, week, min(week) OVER (PARTITION BY user_id) AS first_week FROM weekly),
           curve AS (
             SELECT first_week,
               CAST(floor((extract(epoch FROM week) - extract(epoch FROM first_week)) / 604800) AS BIGINT) AS age,
               count(*) AS users
             FROM dated GROUP BY 1, 2)
           SELECT first_week, age, users,
             users * 1.0 / first_value(users) OVER (PARTITION BY first_week ORDER BY age) AS retained
           FROM curve ORDER BY first_week, age""",
    ),
    AskedAfresh(
        "events by week and their change",
        """WITH weekly AS (
             SELECT event_name, {week} AS week, count(*) AS n, count(DISTINCT user_id) AS users
             FROM events GROUP BY 1, 2)
           SELECT event_name, week, n, users, coalesce(n - lag(n) OVER w, 0) AS more_events,
             coalesce(n * 1.0 / lag(n) OVER w - 1.0, 0.0) AS change,
             coalesce(users * 1.0 / lag(users) OVER w - 1.0, 0.0) AS change_of_users
           FROM weekly WINDOW w AS (PARTITION BY event_name ORDER BY week)
           ORDER BY event_name, week""",
    ),
    AskedAfresh(
        "endpoints that fail most in each country",
        """SELECT country, place, endpoint, failed FROM (
             SELECT country, endpoint, failed,
               row_number() OVER (PARTITION BY country ORDER BY failed DESC, endpoint) AS place
             FROM (SELECT {country} AS country, {endpoint} AS endpoint, count(*) AS failed FROM events
                   WHERE event_name = 'api_call' AND {status} <> 'ok' GROUP BY 1, 2) AS counted) AS placed
           WHERE place <= 3 ORDER BY country, place""",
    ),
    AskedAfresh(
        "five busiest endpoints of each source without a window",
        """WITH counted AS (
             SELECT {source} AS source, {endpoint} AS endpoint, count(*) AS n FROM events
             WHERE event_name = 'api_call' GROUP BY 1, 2)
           SELECT a.source, count(*) AS place, a.endpoint, a.n
           FROM counted a JOIN counted b ON b.source = a.source
             AND (b.n > a.n OR (b.n = a.n AND b.endpoint <= a.endpoint))
           GROUP BY a.source, a.endpoint, a.n HAVING count(*) <= 5 ORDER BY a.source, place""",
    ),
    AskedAfresh(
        "tokens of the month to date by plan",
        """SELECT plan, day, tokens,
           sum(tokens) OVER (PARTITION BY plan, date_trunc('month', day) ORDER BY day
             ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS month_to_date,
           sum(n) OVER (PARTITION BY plan ORDER BY day
             ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS events_so_far
           FROM (SELECT {plan} AS plan, {day} AS day, sum({tokens}) AS tokens, count(*) AS n
                 FROM events WHERE tenant_id = {largest} GROUP BY 1, 2) AS daily
           ORDER BY plan, day""",
    ),
    AskedAfresh(
        "calls by hour with moving figures",
        """WITH hourly AS (
             SELECT date_trunc('hour', timestamp) AS slot, count(*) AS calls, sum({latency_ms}) AS waited
             FROM events WHERE event_name = 'api_call' AND timestamp >= {ago_14} GROUP BY 1)
           SELECT slot, calls,
             avg(calls) OVER (ORDER BY slot ROWS BETWEEN 23 PRECEDING AND CURRENT ROW) AS mean_of_day,
             sum(waited) OVER (ORDER BY slot ROWS BETWEEN 23 PRECEDING AND CURRENT ROW)
               / sum(calls) OVER (ORDER BY slot ROWS BETWEEN 23 PRECEDING AND CURRENT ROW) AS latency_of_day,
             max(calls) OVER (ORDER BY slot ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING) AS peak_nearby
           FROM hourly ORDER BY slot""",
    ),
    AskedAfresh(
        "how users begin and how they end",
        """WITH ends AS (
             SELECT DISTINCT tenant_id, user_id,
               first_value(event_name) OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id
                 ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS first_event,
               last_value({source}) OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id
                 ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last_source
             FROM events WHERE tenant_id IN ('tenant-2', 'tenant-5', 'tenant-12', 'tenant-30'))
           SELECT tenant_id, first_event, last_source, count(*) AS users FROM ends
           GROUP BY tenant_id, first_event, last_source ORDER BY tenant_id, users DESC, first_event, last_source""",
    ),
    AskedAfresh(
        "longest streaks of active days",
        """WITH active AS (
             SELECT DISTINCT user_id, CAST(floor(extract(epoch FROM timestamp) / 86400) AS BIGINT) AS day_number
             FROM events WHERE tenant_id = {largest}),
           islands AS (
             SELECT user_id, day_number,
               day_number - CAST(row_number() OVER (PARTITION BY user_id ORDER BY day_number) AS BIGINT) AS island
             FROM active),
           streaks AS (
             SELECT user_id, island, count(*) AS days_in_row FROM islands GROUP BY user_id, island)
           SELECT user_id, max(days_in_row) AS longest, count(*) AS streaks, sum(days_in_row) AS active_days,
             avg(days_in_row) AS mean_days
           FROM streaks GROUP BY user_id ORDER BY longest DESC, active_days DESC, user_id LIMIT 100""",
    ),
    AskedAfresh(
        "longest silences of five tenants",
        """SELECT tenant_id, silent_from, silent_until,
           floor(extract(epoch FROM silent_until)) - floor(extract(epoch FROM silent_from)) AS seconds
           FROM (SELECT tenant_id, timestamp AS silent_until,
                   lag(timestamp) OVER (PARTITION BY tenant_id ORDER BY timestamp, event_id) AS silent_from
                 FROM events
                 WHERE tenant_id IN ('tenant-100', 'tenant-200', 'tenant-400', 'tenant-800', {tenant})) AS paired
           WHERE silent_from IS NOT NULL ORDER BY seconds DESC, tenant_id, silent_until LIMIT 100""",
    ),
    AskedAfresh(
        "lifetimes of users by plan",
        """WITH lives AS (
             SELECT tenant_id, user_id, max({plan}) AS plan, min(timestamp) AS first_seen,
               max(timestamp) AS last_seen, count(*) AS n
             FROM events GROUP BY tenant_id, user_id)
           SELECT plan,
             CASE WHEN last_seen - first_seen < INTERVAL '1 hour' THEN '1 less than an hour'
                  WHEN last_seen - first_seen < INTERVAL '1 day' THEN '2 less than a day'
                  WHEN last_seen - first_seen < INTERVAL '7 days' THEN '3 less than a week'
                  WHEN last_seen - first_seen < INTERVAL '28 days' THEN '4 less than four weeks'
                  ELSE '5 longer' END AS lifetime,
             count(*) AS users, avg(n) AS mean_events, max(n) AS most_events, min(first_seen) AS oldest
           FROM lives GROUP BY 1, 2 ORDER BY 1, 2""",
    ),
    AskedAfresh(
        "latency percentiles by model and plan",
        """SELECT {model} AS model, {plan} AS plan, count(*) AS n, {p50} AS p50, {p90} AS p90, {p95} AS p95
           FROM events WHERE event_name = 'api_call'
           GROUP BY 1, 2 HAVING count(*) >= 1000 ORDER BY 1, 2""",
        approximate=True,
    ),
    AskedAfresh(
        "histogram of latency by status",
        """SELECT status, bucket, n, n * 1.0 / sum(n) OVER (PARTITION BY status) AS share
           FROM (SELECT {status} AS status, least(floor({latency_ms} / 25) * 25, 1000.0) AS bucket, count(*) AS n
                 FROM events WHERE event_name = 'api_call' GROUP BY 1, 2) AS histogram
           ORDER BY status, bucket""",
    ),
    AskedAfresh(
        "events of the month in four columns",
        """SELECT {plan} AS plan, {source} AS source,
           coalesce(nullif(CAST({status} AS VARCHAR), 'ok'), 'none') AS failure,
           CASE WHEN {tokens} < 100 THEN '1 tiny' WHEN {tokens} < 1000 THEN '2 small'
                WHEN {tokens} < 4000 THEN '3 medium' ELSE '4 large' END AS size_class,
           count(*) AS n, count(nullif({tokens}, 0)) AS spending, coalesce(avg(nullif({tokens}, 0)), 0) AS mean_tokens
           FROM events WHERE timestamp >= {month} GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4""",
    ),
    AskedAfresh(
        "heat map of the largest tenant",
        """SELECT weekday, hour, n, users, n * 1.0 / max(n) OVER () AS heat
           FROM (SELECT {weekday} AS weekday, {hour} AS hour, count(*) AS n, count(DISTINCT user_id) AS users
                 FROM events WHERE tenant_id = {largest} GROUP BY 1, 2) AS cells
           ORDER BY weekday, hour""",
    ),
    AskedAfresh(
        "countries by share of tokens",
        """SELECT {country} AS country, sum({tokens}) AS spent,
           sum({tokens}) / sum(sum({tokens})) OVER () AS share,
           sum(sum({tokens})) OVER (ORDER BY sum({tokens}) DESC, {country}
             ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) / sum(sum({tokens})) OVER () AS share_so_far,
           count(*) * 1.0 / sum(count(*)) OVER () AS share_of_events
           FROM events GROUP BY {country} ORDER BY spent DESC, country""",
    ),
    AskedAfresh(
        "tenants that are slow and fail",
        """SELECT tenant_id, count(*) AS n, count(DISTINCT user_id) AS users, avg({latency_ms}) AS mean,
           sum(CASE WHEN {status} = 'ok' THEN 0 ELSE 1 END) * 1.0 / count(*) AS failed
           FROM events WHERE event_name <> 'page_view' GROUP BY tenant_id
           HAVING count(*) >= 100 AND count(DISTINCT user_id) BETWEEN 3 AND 2000
             AND avg({latency_ms}) > 140 AND max({latency_ms}) > 1000
             AND sum(CASE WHEN {status} = 'ok' THEN 0 ELSE 1 END) * 1.0 / count(*) > 0.06
           ORDER BY failed DESC, tenant_id LIMIT 100""",
    ),
    AskedAfresh(
        "days of users who met an error of a rare model",
        """SELECT {day} AS day, count(*) AS n, count(DISTINCT user_id) AS users, sum({tokens}) AS spent,
           avg({latency_ms}) AS mean FROM events
           WHERE tenant_id = {largest} AND user_id IN (
             SELECT user_id FROM events WHERE tenant_id = {largest} AND {model} = 'model-8' AND {status} = 'error')
           GROUP BY 1 ORDER BY 1""",
    ),
    AskedAfresh(
        "calls soon after a page view",
        """SELECT c.{endpoint} AS endpoint, count(*) AS calls, avg(c.{latency_ms}) AS mean FROM events c
           WHERE c.tenant_id = {largest} AND c.event_name = 'api_call' AND EXISTS (
             SELECT 1 FROM events v WHERE v.tenant_id = c.tenant_id AND v.user_id = c.user_id
               AND v.event_name = 'page_view' AND v.timestamp < c.timestamp
               AND v.timestamp >= c.timestamp - INTERVAL '10 minutes')
           GROUP BY c.{endpoint} ORDER BY calls DESC, endpoint""",
    ),
    AskedAfresh(
        "users who view and never export",
        """SELECT v.tenant_id, count(DISTINCT v.user_id) AS users, count(*) AS views, max(v.timestamp) AS newest
           FROM events v WHERE v.event_name = 'page_view' AND NOT EXISTS (
             SELECT 1 FROM events x WHERE x.tenant_id = v.tenant_id AND x.user_id = v.user_id
               AND x.event_name = 'export')
           GROUP BY v.tenant_id ORDER BY users DESC, v.tenant_id LIMIT 50""",
    ),
    AskedAfresh(
        "successes soon after a failure of the same endpoint",
        """SELECT f.{endpoint} AS endpoint, count(*) AS pairs, count(DISTINCT f.event_id) AS failures,
           count(DISTINCT f.user_id) AS users,
           min(floor(extract(epoch FROM r.timestamp)) - floor(extract(epoch FROM f.timestamp))) AS soonest
           FROM events f JOIN events r ON r.tenant_id = f.tenant_id AND r.user_id = f.user_id
             AND r.{endpoint} = f.{endpoint} AND r.timestamp > f.timestamp
             AND r.timestamp <= f.timestamp + INTERVAL '6 hours'
           WHERE f.tenant_id = {largest} AND f.event_name = 'api_call' AND f.{status} <> 'ok'
             AND r.event_name = 'api_call' AND r.{status} = 'ok'
           GROUP BY f.{endpoint} ORDER BY pairs DESC, endpoint""",
    ),
    AskedAfresh(
        "weeks of one tenant by kind of event",
        """SELECT week, kind, n, users FROM (
             SELECT {week} AS week, 'views' AS kind, count(*) AS n, count(DISTINCT user_id) AS users
             FROM events WHERE tenant_id = {tenant} AND event_name = 'page_view' GROUP BY 1
             UNION ALL
             SELECT {week} AS week, 'failed calls' AS kind, count(*) AS n, count(DISTINCT user_id) AS users
             FROM events WHERE tenant_id = {tenant} AND event_name = 'api_call' AND {status} <> 'ok' GROUP BY 1
             UNION ALL
             SELECT {week} AS week, 'slow exports' AS kind, count(*) AS n, count(DISTINCT user_id) AS users
             FROM events WHERE tenant_id = {tenant} AND event_name = 'export' AND {latency_ms} > 200 GROUP BY 1
           ) AS kinds ORDER BY week, kind""",
    ),
    AskedAfresh(
        "users by recency, frequency and spend",
        """WITH per_user AS (
             SELECT tenant_id, user_id, max(timestamp) AS last_seen, count(*) AS n, sum({tokens}) AS spent
             FROM events GROUP BY tenant_id, user_id),
           scored AS (
             SELECT n, spent, ntile(4) OVER (ORDER BY last_seen, tenant_id, user_id) AS recency,
               ntile(4) OVER (ORDER BY n, tenant_id, user_id) AS frequency,
               ntile(4) OVER (ORDER BY spent, tenant_id, user_id) AS spend
             FROM per_user),
           segments AS (
             SELECT recency, frequency, spend, count(*) AS users, sum(n) AS n, sum(spent) AS spent
             FROM scored GROUP BY recency, frequency, spend)
           SELECT recency, frequency, spend, users, n, spent, spent / sum(spent) OVER () AS share
           FROM segments ORDER BY recency, frequency, spend""",
    ),
    AskedAfresh(
        "first export of each tenant",
        """SELECT tenant_id, timestamp, user_id, endpoint, source, tokens
           FROM (SELECT tenant_id, timestamp, user_id, {endpoint} AS endpoint, {source} AS source,
                   {tokens} AS tokens, row_number() OVER (PARTITION BY tenant_id ORDER BY timestamp, event_id) AS place
                 FROM events WHERE event_name = 'export') AS numbered
           WHERE place = 1 ORDER BY timestamp, tenant_id LIMIT 1000""",
    ),
    AskedAfresh(
        "new, kept and returning users by week",
        """WITH weekly AS (SELECT DISTINCT tenant_id, user_id, {week} AS week FROM events),
           placed AS (
             SELECT week, lag(week) OVER (PARTITION BY tenant_id, user_id ORDER BY week) AS week_before FROM weekly)
           SELECT week, count(*) AS users, count(*) FILTER (WHERE week_before IS NULL) AS new_users,
             count(*) FILTER (WHERE week_before = week - INTERVAL '7 days') AS kept,
             count(*) FILTER (WHERE week_before < week - INTERVAL '7 days') AS came_back
           FROM placed GROUP BY week ORDER BY week""",
    ),
    AskedAfresh(
        "codes made of names",
        """SELECT upper(substr({model}, 1, 1)) || substr({model}, 7) AS model_code, upper({source}) AS origin,
           length(split_part(user_id, '-', 3)) AS digits, count(*) AS n,
           min(replace({endpoint}, '/v1/resource/', 'r')) AS least_resource
           FROM events WHERE tenant_id IN ('tenant-7', 'tenant-11', 'tenant-13', 'tenant-40')
             AND {ends_in_five} AND {endpoint} NOT LIKE '%/1_'
           GROUP BY 1, 2, 3 ORDER BY n DESC, model_code, origin, digits""",
    ),
    AskedAfresh(
        "users, endpoints and their pairs by week",
        """SELECT {week} AS week, count(DISTINCT user_id) AS users, count(DISTINCT {endpoint}) AS endpoints,
           count(DISTINCT concat(user_id, ' ', {endpoint})) AS pairs
           FROM events WHERE tenant_id = {largest} AND event_name = 'api_call' GROUP BY 1 ORDER BY 1""",
    ),
    AskedAfresh(
        "first and last event of each tenant",
        """SELECT tenant_id, count(*) AS n, min(timestamp) AS first_event, max(timestamp) AS last_event,
           date_trunc('month', max(timestamp)) + INTERVAL '1 month' AS next_invoice,
           (extract(epoch FROM {ago_0}) - extract(epoch FROM date_trunc('day', max(timestamp)))) / 86400 AS quiet_days
           FROM events GROUP BY tenant_id ORDER BY tenant_id LIMIT 2000""",
    ),
    AskedAfresh(
        "rates of one tenant by day",
        """SELECT {day} AS day, count(*) AS n,
           count(*) FILTER (WHERE {status} = 'error') * 1.0 / count(*) AS error_rate,
           (count(*) FILTER (WHERE {latency_ms} <= 100)
             + 0.5 * count(*) FILTER (WHERE {latency_ms} > 100 AND {latency_ms} <= 400)) / count(*) AS apdex,
           coalesce(count(*) FILTER (WHERE {status} = 'error') * 1.0
             / nullif(count(*) FILTER (WHERE {status} = 'timeout'), 0), 0.0) AS errors_per_timeout,
           sum({tokens}) / count(DISTINCT user_id) AS tokens_per_user
           FROM events WHERE tenant_id = {tenant} GROUP BY 1 ORDER BY 1""",
    ),
    AskedAfresh(
        "spread and correlation of what users do",
        """WITH per_user AS (
             SELECT tenant_id, user_id, max({plan}) AS plan, CAST(count(*) AS DOUBLE) AS n,
               CAST(count(DISTINCT {day}) AS DOUBLE) AS active_days, avg({latency_ms}) AS latency,
               sum({tokens}) AS spent
             FROM events GROUP BY tenant_id, user_id)
           SELECT plan, count(*) AS users, stddev(n) AS spread_of_events, stddev_pop(active_days) AS spread_of_days,
             stddev(latency) AS spread_of_latency, corr(n, active_days) AS events_with_days,
             corr(spent, latency) AS spend_with_latency
           FROM per_user GROUP BY plan ORDER BY plan""",
    ),
    AskedAfresh(
        "a later page of rows by user id",
        """SELECT timestamp, event_name, user_id, event_id, {endpoint} AS endpoint, {status} AS status,
           {latency_ms} AS latency_ms FROM events
           WHERE tenant_id = {largest} AND user_id LIKE 'user-%7' AND {latency_ms} >= 20
           ORDER BY timestamp DESC, event_id LIMIT 100 OFFSET 500""",
    ),
)
