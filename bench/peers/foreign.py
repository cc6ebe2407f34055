"""Thirty more statements, written from the API's documentation by somebody who had not read the code behind it.

A statement that is measured while the code is improved tells how well that statement does. These are for the
others: what analysts of a software company ask, in as many shapes as we could think of. They are asked of our SQL
and of DuckDB, there is no text for ClickHouse. Names of tenants, events and values are those of `synthetic.py`.

Every row has its place in the order, no cell is NULL, and an answer has 5,000 rows at most, however many events
there are.
"""

import re
from dataclasses import dataclass

from analysts import DUCK, OURS, Asked, instant
from sql import literal
from workload import Facts

STORES = (OURS, DUCK)
# What differs, besides the words of `analysts.py`. Percentiles are of latencies.
MORE_WORDS = {
    OURS: {
        "p50": "approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY {latency_ms})",
        "p75": "approx_percentile_cont(0.75) WITHIN GROUP (ORDER BY {latency_ms})",
        "p90": "approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY {latency_ms})",
        "quarter_hour": "date_bin(INTERVAL '15 minutes', timestamp, TIMESTAMP '1970-01-01 00:00:00')",
    },
    DUCK: {
        "p50": "approx_quantile({latency_ms}, 0.5)",
        "p75": "approx_quantile({latency_ms}, 0.75)",
        "p90": "approx_quantile({latency_ms}, 0.9)",
        "quarter_hour": "time_bucket(INTERVAL '15 minutes', timestamp)",
    },
}


@dataclass(frozen=True)
class AskedOfTwo(Asked):
    """A statement for the stores of `STORES`. `{ago_7}` is the midnight seven days before the last one, and
    `{largest}` the largest tenant; `{tenant}` is the median one, as in `analysts.py`."""

    def of(self, store: str, facts: Facts) -> str:
        words = MORE_WORDS[store]

        def said(match: re.Match) -> str:
            word = match[1]
            if word == "largest":
                return literal(facts.largest).replace("{", "{{").replace("}", "}}")
            if word.startswith("ago_"):
                return instant(store, facts.midnight(int(word.removeprefix("ago_"))))
            return words.get(word, match[0])

        text = re.sub(r"\{(\w+)\}", said, self.text)
        return Asked(self.name, text).of(store, facts)


STATEMENTS = (
    AskedOfTwo(
        "newest events of all tenants",
        """SELECT timestamp, tenant_id, event_name, user_id, event_id, {model} AS model, {endpoint} AS endpoint,
           {status} AS status, {plan} AS plan, {source} AS source, {country} AS country,
           {latency_ms} AS latency_ms, {tokens} AS tokens
           FROM events ORDER BY timestamp DESC, event_id LIMIT 100""",
    ),
    AskedOfTwo(
        "newest failed calls of the largest tenant",
        """SELECT timestamp, user_id, event_id, {endpoint} AS endpoint, {model} AS model, {status} AS status,
           {source} AS source, {country} AS country, {latency_ms} AS latency_ms, {tokens} AS tokens
           FROM events WHERE tenant_id = {largest} AND event_name = 'api_call' AND {status} <> 'ok'
           ORDER BY timestamp DESC, event_id LIMIT 200""",
    ),
    AskedOfTwo(
        "newest exports from a few countries",
        """SELECT timestamp, tenant_id, user_id, event_id, {endpoint} AS endpoint, {country} AS country,
           {source} AS source, {latency_ms} AS latency_ms
           FROM events
           WHERE event_name = 'export' AND {country} IN ('C40', 'C41', 'C55') AND {plan} = 'enterprise'
             AND {source} NOT IN ('cron', 'cli') AND {latency_ms} BETWEEN 50 AND 500
           ORDER BY timestamp DESC, event_id LIMIT 50""",
    ),
    AskedOfTwo(
        "exports within an hour of a page view",
        """SELECT date_trunc('day', v.timestamp) AS day, count(*) AS pairs, count(DISTINCT v.user_id) AS users,
           count(DISTINCT x.event_id) AS exports
           FROM events v JOIN events x ON x.tenant_id = v.tenant_id AND x.user_id = v.user_id
             AND x.timestamp > v.timestamp AND x.timestamp <= v.timestamp + INTERVAL '1 hour'
           WHERE v.tenant_id = {largest} AND v.event_name = 'page_view' AND x.event_name = 'export'
           GROUP BY 1 ORDER BY 1""",
    ),
    AskedOfTwo(
        "users who export within a day of their first page view",
        """WITH signed_up AS (
             SELECT tenant_id, user_id, min(timestamp) AS first_view
             FROM events WHERE event_name = 'page_view' GROUP BY tenant_id, user_id),
           bought AS (
             SELECT s.tenant_id, s.user_id, min(e.timestamp) AS first_export
             FROM signed_up s JOIN events e ON e.tenant_id = s.tenant_id AND e.user_id = s.user_id
             WHERE e.event_name = 'export'
               AND e.timestamp BETWEEN s.first_view AND s.first_view + INTERVAL '24 hours'
             GROUP BY s.tenant_id, s.user_id)
           SELECT date_trunc('week', s.first_view) AS week, count(*) AS users, count(b.user_id) AS buyers,
             count(b.user_id) * 1.0 / count(*) AS share,
             coalesce(avg(extract(epoch FROM b.first_export) - extract(epoch FROM s.first_view)), 0) AS seconds
           FROM signed_up s LEFT JOIN bought b ON b.tenant_id = s.tenant_id AND b.user_id = s.user_id
           GROUP BY date_trunc('week', s.first_view) ORDER BY week""",
    ),
    AskedOfTwo(
        "failures of endpoints this week and last week",
        """WITH this_week AS (
             SELECT {endpoint} AS endpoint, count(*) AS calls,
               sum(CASE WHEN {status} = 'ok' THEN 0 ELSE 1 END) AS failed
             FROM events WHERE event_name = 'api_call' AND timestamp >= {ago_7} GROUP BY 1),
           last_week AS (
             SELECT {endpoint} AS endpoint, count(*) AS calls,
               sum(CASE WHEN {status} = 'ok' THEN 0 ELSE 1 END) AS failed
             FROM events WHERE event_name = 'api_call' AND timestamp >= {ago_14} AND timestamp < {ago_7} GROUP BY 1)
           SELECT t.endpoint, t.calls, t.failed, coalesce(l.calls, 0) AS calls_before,
             coalesce(l.failed, 0) AS failed_before,
             t.failed * 1.0 / t.calls - coalesce(l.failed * 1.0 / l.calls, 0.0) AS change
           FROM this_week t LEFT JOIN last_week l ON l.endpoint = t.endpoint
           ORDER BY t.failed DESC, t.endpoint""",
    ),
    AskedOfTwo(
        "visits of a few tenants by week",
        """WITH marked AS (
             SELECT tenant_id, user_id, event_id, timestamp,
               CASE WHEN timestamp - lag(timestamp) OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id)
                 <= INTERVAL '30 minutes' THEN 0 ELSE 1 END AS begins
             FROM events WHERE tenant_id IN ({largest}, 'tenant-2', 'tenant-10', {tenant})),
           numbered AS (
             SELECT tenant_id, user_id, timestamp, sum(begins) OVER (PARTITION BY tenant_id, user_id
               ORDER BY timestamp, event_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS visit
             FROM marked),
           visits AS (
             SELECT tenant_id, user_id, visit, min(timestamp) AS began, max(timestamp) AS ended, count(*) AS n
             FROM numbered GROUP BY tenant_id, user_id, visit)
           SELECT tenant_id, date_trunc('week', began) AS week, count(*) AS visits, avg(n) AS mean_events,
             max(n) AS most_events, sum(CASE WHEN n = 1 THEN 1 ELSE 0 END) AS single_events,
             avg(extract(epoch FROM ended) - extract(epoch FROM began)) AS mean_seconds
           FROM visits GROUP BY 1, 2 ORDER BY 1, 2""",
    ),
    AskedOfTwo(
        "new users who return after a day, a week and a month",
        """WITH active AS (
             SELECT DISTINCT user_id, date_trunc('day', timestamp) AS day FROM events WHERE tenant_id = {largest}),
           joined AS (SELECT user_id, min(day) AS first_day FROM active GROUP BY user_id)
           SELECT date_trunc('week', j.first_day) AS cohort, count(DISTINCT j.user_id) AS users,
             count(DISTINCT j.user_id) FILTER (WHERE a.day = j.first_day + INTERVAL '1 day') AS next_day,
             count(DISTINCT j.user_id) FILTER (
               WHERE a.day BETWEEN j.first_day + INTERVAL '7 days' AND j.first_day + INTERVAL '13 days') AS second_week,
             count(DISTINCT j.user_id) FILTER (WHERE a.day >= j.first_day + INTERVAL '28 days') AS later,
             max(extract(epoch FROM a.day) - extract(epoch FROM j.first_day)) / 86400 AS longest_days
           FROM joined j JOIN active a ON a.user_id = j.user_id
           GROUP BY 1 ORDER BY 1""",
    ),
    AskedOfTwo(
        "funnel from page view to call to export by plan",
        """WITH viewed AS (
             SELECT user_id, max({plan}) AS plan,
               min(CASE WHEN event_name = 'page_view' THEN timestamp END) AS viewed_at
             FROM events WHERE tenant_id = {largest} AND timestamp >= {month} GROUP BY user_id),
           called AS (
             SELECT v.user_id, v.plan, v.viewed_at, min(c.timestamp) AS called_at
             FROM viewed v LEFT JOIN events c ON c.user_id = v.user_id AND c.tenant_id = {largest}
               AND c.event_name = 'api_call' AND c.timestamp > v.viewed_at
               AND c.timestamp <= v.viewed_at + INTERVAL '1 day'
             GROUP BY v.user_id, v.plan, v.viewed_at),
           exported AS (
             SELECT c.user_id, c.plan, c.viewed_at, c.called_at, min(x.timestamp) AS exported_at
             FROM called c LEFT JOIN events x ON x.user_id = c.user_id AND x.tenant_id = {largest}
               AND x.event_name = 'export' AND x.timestamp > c.called_at
               AND x.timestamp <= c.called_at + INTERVAL '1 day'
             GROUP BY c.user_id, c.plan, c.viewed_at, c.called_at)
           SELECT plan, count(*) AS users, count(viewed_at) AS viewed, count(called_at) AS called,
             count(exported_at) AS exported,
             coalesce(count(exported_at) * 1.0 / nullif(count(viewed_at), 0), 0.0) AS share
           FROM exported GROUP BY plan ORDER BY plan""",
    ),
    AskedOfTwo(
        "latency percentiles by plan",
        """SELECT {plan} AS plan, {p50} AS p50, {p75} AS p75, {p90} AS p90 FROM events
           WHERE event_name = 'api_call' AND timestamp >= {ago_60} GROUP BY 1 ORDER BY 1""",
        approximate=True,
    ),
    AskedOfTwo(
        "exact quartiles of latency by endpoint",
        """SELECT {endpoint} AS endpoint, count(*) AS n,
           percentile_cont(0.25) WITHIN GROUP (ORDER BY {latency_ms}) AS lower_quartile,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY {latency_ms}) AS middle,
           percentile_cont(0.75) WITHIN GROUP (ORDER BY {latency_ms}) AS upper_quartile,
           median({tokens}) AS median_tokens
           FROM events WHERE tenant_id = {largest} AND event_name = 'api_call'
           GROUP BY {endpoint} ORDER BY endpoint""",
    ),
    AskedOfTwo(
        "heaviest users among those whose ids begin alike",
        """SELECT user_id, sum({tokens}) AS tokens, count(*) AS calls, max({latency_ms}) AS slowest FROM events
           WHERE tenant_id = {largest} AND event_name IN ('api_call', 'page_view') AND user_id LIKE 'user-1-1%'
             AND {endpoint} ILIKE '%RESOURCE/1_'
           GROUP BY user_id HAVING count(DISTINCT {model}) >= 2
           ORDER BY sum({tokens}) DESC, user_id LIMIT 100""",
    ),
    AskedOfTwo(
        "running total of tokens of five tenants",
        """SELECT tenant_id, day, tokens,
           sum(tokens) OVER (PARTITION BY tenant_id ORDER BY day) AS so_far,
           sum(tokens) OVER (PARTITION BY tenant_id ORDER BY day) / sum(tokens) OVER (PARTITION BY tenant_id) AS share
           FROM (SELECT tenant_id, {day} AS day, sum({tokens}) AS tokens FROM events
                 WHERE tenant_id IN ('tenant-3', 'tenant-8', 'tenant-21', 'tenant-144', {tenant})
                 GROUP BY 1, 2) AS daily
           ORDER BY tenant_id, day""",
    ),
    AskedOfTwo(
        "what users of one tenant do next",
        """WITH steps AS (
             SELECT event_name, lead(event_name) OVER w AS next_event,
               extract(epoch FROM lead(timestamp) OVER w) - extract(epoch FROM timestamp) AS seconds
             FROM events WHERE tenant_id = {tenant}
             WINDOW w AS (PARTITION BY user_id ORDER BY timestamp, event_id))
           SELECT event_name, next_event, count(*) AS n, min(seconds) AS soonest, median(seconds) AS usual
           FROM steps WHERE next_event IS NOT NULL
           GROUP BY event_name, next_event ORDER BY n DESC, event_name, next_event""",
    ),
    AskedOfTwo(
        "daily users with a moving average",
        """WITH daily AS (
             SELECT {day} AS day, count(DISTINCT user_id) AS users,
               count(DISTINCT user_id) FILTER (WHERE event_name = 'export') AS exporters
             FROM events GROUP BY 1)
           SELECT day, users, exporters, coalesce(users - lag(users, 7) OVER (ORDER BY day), 0) AS more_than_last_week,
             avg(users) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS smooth
           FROM daily ORDER BY day""",
    ),
    AskedOfTwo(
        "tenths of users by what they spend",
        """WITH spend AS (
             SELECT tenant_id, user_id, sum({tokens}) AS tokens FROM events
             WHERE timestamp >= {month} GROUP BY tenant_id, user_id),
           placed AS (SELECT tokens, ntile(10) OVER (ORDER BY tokens DESC, tenant_id, user_id) AS tenth FROM spend)
           SELECT tenth, count(*) AS users, min(tokens) AS least, max(tokens) AS most, sum(tokens) AS tokens,
             sum(tokens) / (SELECT sum(tokens) FROM spend) AS share
           FROM placed GROUP BY tenth ORDER BY tenth""",
    ),
    AskedOfTwo(
        "regular users who stayed away this week",
        """SELECT user_id FROM (
             (SELECT user_id FROM events WHERE tenant_id = {largest} AND timestamp >= {ago_21} AND timestamp < {ago_14}
              INTERSECT
              SELECT user_id FROM events WHERE tenant_id = {largest} AND timestamp >= {ago_14} AND timestamp < {ago_7})
             EXCEPT
             SELECT user_id FROM events WHERE tenant_id = {largest} AND timestamp >= {ago_7}
           ) AS away ORDER BY user_id LIMIT 500""",
    ),
    AskedOfTwo(
        "figures of one tenant",
        """SELECT 'events' AS figure, CAST(count(*) AS DOUBLE) AS value FROM events WHERE tenant_id = {tenant}
           UNION ALL SELECT 'users', CAST(count(DISTINCT user_id) AS DOUBLE) FROM events WHERE tenant_id = {tenant}
           UNION ALL SELECT 'tokens', sum({tokens}) FROM events WHERE tenant_id = {tenant}
           UNION ALL SELECT 'mean latency', avg({latency_ms}) FROM events WHERE tenant_id = {tenant}
           UNION ALL SELECT 'events of the month', CAST(count(*) AS DOUBLE) FROM events
             WHERE tenant_id = {tenant} AND timestamp >= {month}
           UNION ALL SELECT 'share of the web', avg(CASE WHEN {source} = 'web' THEN 1 ELSE 0 END) FROM events
             WHERE tenant_id = {tenant}
           ORDER BY figure""",
    ),
    AskedOfTwo(
        "timeouts that no export followed",
        """SELECT e.user_id, count(*) AS timeouts, max(e.timestamp) AS newest FROM events e
           WHERE e.tenant_id = {largest} AND e.{status} = 'timeout' AND NOT EXISTS (
             SELECT 1 FROM events x WHERE x.tenant_id = e.tenant_id AND x.user_id = e.user_id
               AND x.event_name = 'export' AND x.timestamp > e.timestamp
               AND x.timestamp <= e.timestamp + INTERVAL '1 day')
           GROUP BY e.user_id ORDER BY timeouts DESC, e.user_id LIMIT 100""",
    ),
    AskedOfTwo(
        "how much of the product the busiest tenants use",
        """WITH used AS (
             SELECT tenant_id, count(DISTINCT user_id) AS users, count(DISTINCT {model}) AS models,
               count(DISTINCT {endpoint}) AS endpoints, count(DISTINCT {country}) AS countries,
               count(DISTINCT user_id) FILTER (WHERE event_name = 'export') AS exporters
             FROM events
             WHERE tenant_id IN (SELECT tenant_id FROM events WHERE timestamp >= {month}
                                 GROUP BY tenant_id ORDER BY count(*) DESC, tenant_id LIMIT 20)
             GROUP BY tenant_id)
           SELECT rank() OVER (ORDER BY users DESC) AS place, tenant_id, users, models, endpoints, countries, exporters
           FROM used ORDER BY place, tenant_id""",
    ),
    AskedOfTwo(
        "tenants with the most calls far above their own mean",
        """SELECT e.tenant_id, count(*) AS slow_calls, max(e.{latency_ms}) AS slowest FROM events e
           WHERE e.event_name = 'api_call' AND e.{latency_ms} > 5 * (
             SELECT avg(a.{latency_ms}) FROM events a WHERE a.tenant_id = e.tenant_id AND a.event_name = 'api_call')
           GROUP BY e.tenant_id ORDER BY slow_calls DESC, e.tenant_id LIMIT 50""",
    ),
    AskedOfTwo(
        "quarter hours of the last day",
        """SELECT {quarter_hour} AS quarter, count(*) AS n, count(*) FILTER (WHERE {status} = 'timeout') AS timeouts,
           max({latency_ms}) AS slowest FROM events
           WHERE timestamp > (SELECT max(timestamp) FROM events) - INTERVAL '1 day'
           GROUP BY 1 ORDER BY quarter""",
    ),
    AskedOfTwo(
        "hours by days of the week",
        """SELECT extract(hour FROM timestamp) AS hour,
           sum(CASE WHEN extract(dow FROM timestamp) = 1 THEN 1 ELSE 0 END) AS monday,
           sum(CASE WHEN extract(dow FROM timestamp) = 2 THEN 1 ELSE 0 END) AS tuesday,
           sum(CASE WHEN extract(dow FROM timestamp) = 3 THEN 1 ELSE 0 END) AS wednesday,
           sum(CASE WHEN extract(dow FROM timestamp) = 4 THEN 1 ELSE 0 END) AS thursday,
           sum(CASE WHEN extract(dow FROM timestamp) = 5 THEN 1 ELSE 0 END) AS friday,
           sum(CASE WHEN extract(dow FROM timestamp) IN (0, 6) THEN 1 ELSE 0 END) AS weekend
           FROM events GROUP BY extract(hour FROM timestamp) ORDER BY hour""",
    ),
    AskedOfTwo(
        "tokens by plan and source with totals",
        """SELECT grouping(plan) + grouping(source) AS level, coalesce(plan, 'all plans') AS plan_name,
           coalesce(source, 'all sources') AS source_name, sum(tokens) AS tokens, count(*) AS n
           FROM (SELECT CAST({plan} AS VARCHAR) AS plan, CAST({source} AS VARCHAR) AS source, {tokens} AS tokens
                 FROM events WHERE timestamp >= {month}) AS spent
           GROUP BY ROLLUP (plan, source) ORDER BY level, plan_name, source_name""",
    ),
    AskedOfTwo(
        "slowest resources by their first digit and where calls come from",
        """SELECT substring(split_part({endpoint}, '/', 4) FROM 1 FOR 1) AS first_digit,
           concat(upper({source}), ':', lower({country})) AS origin, count(*) AS n,
           max(length({endpoint})) AS longest_name, max({latency_ms}) AS slowest
           FROM events
           WHERE tenant_id IN ('tenant-4', 'tenant-5', 'tenant-6') AND {country} NOT IN ('C00', 'C01')
             AND {source} NOT LIKE 'c%'
           GROUP BY 1, 2 ORDER BY slowest DESC, first_digit, origin LIMIT 200""",
    ),
    AskedOfTwo(
        "countries that spend most and how their latencies spread",
        """SELECT {country} AS country, sum({tokens}) AS tokens, avg({latency_ms}) AS mean,
           stddev({latency_ms}) AS deviation, var_samp({tokens}) AS variance,
           corr({latency_ms}, {tokens}) AS correlation
           FROM events GROUP BY {country} HAVING count(*) >= 100
           ORDER BY tokens DESC, country LIMIT 25""",
    ),
    AskedOfTwo(
        "first and last event of each user of one tenant",
        """SELECT user_id, min(timestamp) AS first_seen, max(timestamp) AS last_seen, count(*) AS n,
           count(DISTINCT date_trunc('day', timestamp)) AS active_days,
           (extract(epoch FROM max(timestamp)) - extract(epoch FROM min(timestamp))) / 86400 AS days_between
           FROM events WHERE tenant_id = {tenant} GROUP BY user_id ORDER BY user_id LIMIT 1000""",
    ),
    AskedOfTwo(
        "users by number of events",
        """SELECT least(n, 200) AS number_of_events, count(*) AS users,
           sum(count(*)) OVER (ORDER BY least(n, 200)) AS users_so_far
           FROM (SELECT tenant_id, user_id, count(*) AS n FROM events GROUP BY tenant_id, user_id) AS per_user
           GROUP BY least(n, 200) ORDER BY number_of_events""",
    ),
    AskedOfTwo(
        "three heaviest users of each tenant",
        """WITH spend AS (
             SELECT tenant_id, user_id, sum({tokens}) AS tokens, count(*) AS n FROM events GROUP BY tenant_id, user_id),
           placed AS (
             SELECT tenant_id, user_id, tokens, n, tokens / sum(tokens) OVER (PARTITION BY tenant_id) AS share,
               row_number() OVER (PARTITION BY tenant_id ORDER BY tokens DESC, user_id) AS place
             FROM spend)
           SELECT tenant_id, place, user_id, tokens, n, share FROM placed WHERE place <= 3 ORDER BY tenant_id, place""",
    ),
    AskedOfTwo(
        "newest event of each user of three tenants",
        """SELECT tenant_id, user_id, timestamp, event_name, plan, country, source, endpoint, latency_ms FROM (
             SELECT tenant_id, user_id, timestamp, event_name, {plan} AS plan, {country} AS country,
               {source} AS source, {endpoint} AS endpoint, {latency_ms} AS latency_ms,
               row_number() OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp DESC, event_id) AS place
             FROM events WHERE tenant_id IN ('tenant-20', 'tenant-50', {tenant})) AS numbered
           WHERE place = 1 ORDER BY tenant_id, user_id LIMIT 2000""",
    ),
)
