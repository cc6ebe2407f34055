"""Thirty statements in shapes that `analysts.py`, `foreign.py`, `fresh.py`, `unseen.py`, `held_out.py`, `strangers.py`
and `outsiders.py` do not have, or hardly.

They were written from the documentation of the API alone, by somebody who had read neither the code behind it nor
its history. They are asked of our SQL and of DuckDB, there is no text for ClickHouse. Names of tenants, users and
values are those of `synthetic.py`, in which every event has every property. The first eleven are about all tenants
and the whole history, the next ten about one tenant or a few, the last nine about a time. Two are written as tools
write them: charts of Superset over a "virtual table", and a pivot of Looker.

Every row has its place in the order, no cell is NULL, and an answer has 5,000 rows at most, however many events
there are. No function is approximate. The event id that is looked up is that of the row 123,456 of `synthetic.py`,
so it is in every file with as many rows.
"""

from analysts import DUCK, OURS
from fresh import AskedAfresh

STORES = (OURS, DUCK)
# What a clock in New York shows, in both alike.
NEW_YORK = "(timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York')"
# What differs, besides the words of `analysts.py`, `foreign.py` and `fresh.py`: a day as a text.
VISITORS_WORDS = {
    OURS: {"new_york": NEW_YORK, "short_day": "to_char(day, '%m-%d')"},
    DUCK: {"new_york": NEW_YORK, "short_day": "strftime(day, '%m-%d')"},
}


class AskedByVisitors(AskedAfresh):
    """A statement for the stores of `STORES`, with the words of `VISITORS_WORDS` and those of `fresh.py`."""

    own_words = VISITORS_WORDS


STATEMENTS = (
    # All tenants, the whole history.
    AskedByVisitors(
        "endpoints with a column for each hour of the day",
        """SELECT {endpoint} AS endpoint, count(*) AS n,
             count(*) FILTER (WHERE {hour} = 0) AS h00, count(*) FILTER (WHERE {hour} = 1) AS h01,
             count(*) FILTER (WHERE {hour} = 2) AS h02, count(*) FILTER (WHERE {hour} = 3) AS h03,
             count(*) FILTER (WHERE {hour} = 4) AS h04, count(*) FILTER (WHERE {hour} = 5) AS h05,
             count(*) FILTER (WHERE {hour} = 6) AS h06, count(*) FILTER (WHERE {hour} = 7) AS h07,
             count(*) FILTER (WHERE {hour} = 8) AS h08, count(*) FILTER (WHERE {hour} = 9) AS h09,
             count(*) FILTER (WHERE {hour} = 10) AS h10, count(*) FILTER (WHERE {hour} = 11) AS h11,
             count(*) FILTER (WHERE {hour} = 12) AS h12, count(*) FILTER (WHERE {hour} = 13) AS h13,
             count(*) FILTER (WHERE {hour} = 14) AS h14, count(*) FILTER (WHERE {hour} = 15) AS h15,
             count(*) FILTER (WHERE {hour} = 16) AS h16, count(*) FILTER (WHERE {hour} = 17) AS h17,
             count(*) FILTER (WHERE {hour} = 18) AS h18, count(*) FILTER (WHERE {hour} = 19) AS h19,
             count(*) FILTER (WHERE {hour} = 20) AS h20, count(*) FILTER (WHERE {hour} = 21) AS h21,
             count(*) FILTER (WHERE {hour} = 22) AS h22, count(*) FILTER (WHERE {hour} = 23) AS h23
           FROM events GROUP BY 1 ORDER BY n DESC, endpoint""",
    ),
    AskedByVisitors(
        "percentiles of latency and of tokens by source and model",
        """SELECT {source} AS source, {model} AS model, count(*) AS n,
             percentile_cont(0.5) WITHIN GROUP (ORDER BY {latency_ms}) AS latency_p50,
             percentile_cont(0.9) WITHIN GROUP (ORDER BY {latency_ms}) AS latency_p90,
             percentile_cont(0.99) WITHIN GROUP (ORDER BY {latency_ms}) AS latency_p99,
             percentile_cont(0.25) WITHIN GROUP (ORDER BY {tokens}) AS tokens_p25,
             percentile_cont(0.5) WITHIN GROUP (ORDER BY {tokens}) AS tokens_p50,
             percentile_cont(0.75) WITHIN GROUP (ORDER BY {tokens}) AS tokens_p75,
             percentile_cont(0.95) WITHIN GROUP (ORDER BY {tokens}) AS tokens_p95
           FROM events GROUP BY {source}, {model} ORDER BY source, model""",
    ),
    AskedByVisitors(
        "whether larger calls take longer by endpoint and plan",
        """SELECT {endpoint} AS endpoint, {plan} AS plan, regr_count({latency_ms}, {tokens}) AS n,
             regr_slope({latency_ms}, {tokens}) * 1000 AS ms_for_a_thousand_tokens,
             regr_intercept({latency_ms}, {tokens}) AS ms_at_zero, regr_r2({latency_ms}, {tokens}) AS explained,
             covar_samp({latency_ms}, {tokens}) AS covariance, var_pop({latency_ms}) AS variance
           FROM events WHERE event_name = 'api_call' AND {status} = 'ok'
           GROUP BY {endpoint}, {plan} HAVING count(*) >= 30 ORDER BY endpoint, plan""",
    ),
    AskedByVisitors(
        "time to the second, fifth and twentieth event by month of the first",
        """WITH numbered AS (
             SELECT timestamp,
               row_number() OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id) AS place,
               min(timestamp) OVER (PARTITION BY tenant_id, user_id) AS since
             FROM events),
           reached AS (
             SELECT date_trunc('month', since) AS cohort, place,
               (extract(epoch FROM timestamp) - extract(epoch FROM since)) / 3600 AS hours
             FROM numbered WHERE place IN (1, 2, 5, 20))
           SELECT cohort, count(*) FILTER (WHERE place = 1) AS users, count(*) FILTER (WHERE place = 2) AS reached_2,
             count(*) FILTER (WHERE place = 5) AS reached_5, count(*) FILTER (WHERE place = 20) AS reached_20,
             coalesce(median(hours) FILTER (WHERE place = 2), 0) AS usual_hours_to_2,
             coalesce(median(hours) FILTER (WHERE place = 5), 0) AS usual_hours_to_5,
             coalesce(median(hours) FILTER (WHERE place = 20), 0) AS usual_hours_to_20
           FROM reached GROUP BY cohort ORDER BY cohort""",
    ),
    AskedByVisitors(
        "longest run of successes of each tenant",
        """WITH counted AS (
             SELECT tenant_id, timestamp, {status} AS status,
               sum(CASE WHEN {status} = 'ok' THEN 0 ELSE 1 END) OVER (PARTITION BY tenant_id
                 ORDER BY timestamp, event_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS failures_before
             FROM events),
           runs AS (
             SELECT tenant_id, failures_before, count(*) AS successes, min(timestamp) AS began, max(timestamp) AS ended
             FROM counted WHERE status = 'ok' GROUP BY tenant_id, failures_before),
           placed AS (
             SELECT tenant_id, successes, began, ended, avg(successes) OVER (PARTITION BY tenant_id) AS usual,
               row_number() OVER (PARTITION BY tenant_id ORDER BY successes DESC, began) AS place
             FROM runs)
           SELECT tenant_id, successes, began, ended, usual,
             extract(epoch FROM ended - began) / 3600 AS hours
           FROM placed WHERE place = 1 ORDER BY successes DESC, tenant_id LIMIT 1000""",
    ),
    AskedByVisitors(
        "lorenz curve of what users spend by plan",
        """WITH spend AS (
             SELECT tenant_id, user_id, max({plan}) AS plan, sum({tokens}) AS tokens FROM events
             GROUP BY tenant_id, user_id),
           placed AS (
             SELECT plan, tokens, ntile(20) OVER (PARTITION BY plan ORDER BY tokens, tenant_id, user_id) AS twentieth
             FROM spend)
           SELECT plan, twentieth, count(*) AS users, sum(tokens) AS tokens, max(tokens) AS up_to,
             sum(count(*)) OVER (PARTITION BY plan ORDER BY twentieth) * 1.0
               / sum(count(*)) OVER (PARTITION BY plan) AS share_of_users,
             sum(sum(tokens)) OVER (PARTITION BY plan ORDER BY twentieth)
               / sum(sum(tokens)) OVER (PARTITION BY plan) AS share_of_tokens
           FROM placed GROUP BY plan, twentieth ORDER BY plan, twentieth""",
    ),
    AskedByVisitors(
        "masked endpoints by client and by how long the account number is",
        """SELECT regexp_replace({endpoint}, '[0-9]$', 'x') AS masked,
             upper(substr({source}, 1, 3)) || '/' || split_part({model}, '-', 2) AS client,
             strpos(substr(user_id, 6), '-') - 1 AS digits_of_account, count(*) AS n,
             count(DISTINCT tenant_id) AS tenants, max(length(user_id)) AS longest_user_id, sum({tokens}) AS tokens
           FROM events WHERE event_name <> 'export'
           GROUP BY 1, 2, 3 ORDER BY n DESC, masked, client, digits_of_account LIMIT 2000""",
    ),
    AskedByVisitors(
        "spend that is new, expanded, contracted and lost from month to month",
        """WITH monthly AS (
             SELECT tenant_id, user_id, date_trunc('month', timestamp) AS spent_in, sum({tokens}) AS tokens FROM events
             WHERE {status} = 'ok' GROUP BY 1, 2, 3),
           moves AS (
             SELECT coalesce(n.spent_in, b.spent_in + INTERVAL '1 month') AS spent_in,
               coalesce(b.tokens, 0) AS tokens_before, coalesce(n.tokens, 0) AS tokens_now
             FROM monthly n FULL JOIN monthly b
               ON b.tenant_id = n.tenant_id AND b.user_id = n.user_id AND b.spent_in + INTERVAL '1 month' = n.spent_in)
           SELECT spent_in, sum(tokens_before) AS at_first,
             sum(CASE WHEN tokens_before = 0 THEN tokens_now ELSE 0 END) AS new_tokens,
             sum(CASE WHEN tokens_before > 0 AND tokens_now > tokens_before THEN tokens_now - tokens_before
                      ELSE 0 END) AS expanded,
             sum(CASE WHEN tokens_now > 0 AND tokens_now < tokens_before THEN tokens_now - tokens_before
                      ELSE 0 END) AS contracted,
             sum(CASE WHEN tokens_now = 0 THEN -tokens_before ELSE 0 END) AS lost, sum(tokens_now) AS at_last,
             coalesce(sum(CASE WHEN tokens_before > 0 THEN tokens_now ELSE 0 END) * 1.0
               / nullif(sum(tokens_before), 0), 0) AS net_retention
           FROM moves WHERE spent_in <= date_trunc('month', {ago_0}) GROUP BY spent_in ORDER BY spent_in""",
    ),
    AskedByVisitors(
        "calls outside of the fences of their endpoint",
        """WITH quartiles AS (
             SELECT {endpoint} AS endpoint, percentile_cont(0.25) WITHIN GROUP (ORDER BY {latency_ms}) AS q1,
               percentile_cont(0.75) WITHIN GROUP (ORDER BY {latency_ms}) AS q3
             FROM events WHERE event_name = 'api_call' GROUP BY {endpoint})
           SELECT q.endpoint, q.q1, q.q3, count(*) AS calls,
             count(*) FILTER (WHERE e.{latency_ms} > q.q3 + 1.5 * (q.q3 - q.q1)) AS outside,
             count(*) FILTER (WHERE e.{latency_ms} > q.q3 + 3 * (q.q3 - q.q1)) AS far_outside,
             count(*) FILTER (WHERE e.{latency_ms} > q.q3 + 1.5 * (q.q3 - q.q1)) * 1.0 / count(*) AS share,
             avg(CASE WHEN e.{latency_ms} <= q.q3 + 1.5 * (q.q3 - q.q1) THEN e.{latency_ms} END) AS mean_inside
           FROM events e JOIN quartiles q ON q.endpoint = e.{endpoint}
           WHERE e.event_name = 'api_call' GROUP BY q.endpoint, q.q1, q.q3 ORDER BY q.endpoint""",
    ),
    AskedByVisitors(
        "first and last source of users and how they stand now",
        """WITH people AS (
             SELECT tenant_id, user_id, (array_agg({source} ORDER BY timestamp, event_id))[1] AS first_source,
               (array_agg({source} ORDER BY timestamp DESC, event_id DESC))[1] AS last_source,
               (array_agg({status} ORDER BY timestamp DESC, event_id DESC))[1] AS last_status, count(*) AS n
             FROM events GROUP BY tenant_id, user_id)
           SELECT first_source, last_source, count(*) AS users, sum(n) AS n,
             count(*) FILTER (WHERE last_status <> 'ok') AS ended_in_failure,
             count(*) * 1.0 / sum(count(*)) OVER (PARTITION BY first_source) AS share
           FROM people GROUP BY first_source, last_source ORDER BY first_source, last_source""",
    ),
    AskedByVisitors(
        "cells of a cube that fail more than usual",
        """SELECT coalesce(plan, '*') AS of_plan, coalesce(source, '*') AS of_source, coalesce(model, '*') AS of_model,
             grouping(plan) + grouping(source) + grouping(model) AS summed_over, count(*) AS n,
             sum(failed) AS failed, sum(failed) * 1.0 / count(*) AS rate, max(latency) AS slowest
           FROM (
             SELECT CAST({plan} AS VARCHAR) AS plan, CAST({source} AS VARCHAR) AS source,
               CAST({model} AS VARCHAR) AS model, CASE WHEN {status} = 'ok' THEN 0 ELSE 1 END AS failed,
               {latency_ms} AS latency
             FROM events WHERE event_name = 'api_call') AS calls
           GROUP BY CUBE (plan, source, model) HAVING count(*) >= 500 AND sum(failed) * 1.0 / count(*) > 0.081
           ORDER BY summed_over DESC, of_plan, of_source, of_model""",
    ),
    # One tenant or a few.
    AskedByVisitors(
        "heat map of a small tenant in New York with the empty hours",
        """WITH cells AS (
             SELECT extract(dow FROM {new_york}) AS weekday, extract(hour FROM {new_york}) AS hour, count(*) AS n,
               count(DISTINCT user_id) AS users
             FROM events WHERE tenant_id = 'tenant-600' GROUP BY 1, 2)
           SELECT d.title, h.hour, coalesce(c.n, 0) AS n, coalesce(c.users, 0) AS users,
             coalesce(c.n, 0) * 1.0 / max(c.n) OVER () AS heat
           FROM (VALUES (1, 'Monday'), (2, 'Tuesday'), (3, 'Wednesday'), (4, 'Thursday'), (5, 'Friday'),
               (6, 'Saturday'), (0, 'Sunday')) AS d (weekday, title)
             CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15),
               (16), (17), (18), (19), (20), (21), (22), (23)) AS h (hour)
             LEFT JOIN cells c ON c.weekday = d.weekday AND c.hour = h.hour
           ORDER BY d.weekday, h.hour""",
    ),
    AskedByVisitors(
        "most frequent paths of visits",
        """WITH marked AS (
             SELECT tenant_id, user_id, timestamp, event_id,
               CASE WHEN {status} = 'ok' THEN CAST(event_name AS VARCHAR) ELSE concat(event_name, '!') END AS step,
               CASE WHEN timestamp < lag(timestamp) OVER w + INTERVAL '30 minutes' THEN 0 ELSE 1 END AS begins
             FROM events WHERE tenant_id IN ('tenant-1', 'tenant-2')
             WINDOW w AS (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id)),
           numbered AS (
             SELECT tenant_id, user_id, timestamp, event_id, step, sum(begins) OVER (PARTITION BY tenant_id, user_id
               ORDER BY timestamp, event_id ROWS UNBOUNDED PRECEDING) AS visit
             FROM marked),
           visits AS (
             SELECT tenant_id, user_id, visit, count(*) AS steps,
               string_agg(step, ' > ' ORDER BY timestamp, event_id) AS path
             FROM numbered GROUP BY tenant_id, user_id, visit)
           SELECT path, steps, count(*) AS visits, count(DISTINCT user_id) AS users,
             row_number() OVER (PARTITION BY steps ORDER BY count(*) DESC, path) AS place
           FROM visits WHERE steps BETWEEN 2 AND 4 GROUP BY path, steps ORDER BY visits DESC, path LIMIT 100""",
    ),
    AskedByVisitors(
        "daily users of a tenant and their median of seven days",
        """WITH daily AS (
             SELECT event_name, {day} AS day, count(*) AS n, count(DISTINCT user_id) AS users,
               percentile_cont(0.5) WITHIN GROUP (ORDER BY {latency_ms}) AS latency
             FROM events WHERE tenant_id = 'tenant-4' GROUP BY 1, 2)
           SELECT event_name, day, n, users, latency,
             median(CAST(users AS DOUBLE)) OVER w AS usual_users, median(latency) OVER w AS usual_latency
           FROM daily
           WINDOW w AS (PARTITION BY event_name ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)
           ORDER BY event_name, day""",
    ),
    AskedByVisitors(
        "hundred users of a campaign before and after it",
        """SELECT user_id, count(*) FILTER (WHERE timestamp < {ago_14}) AS n_before,
             count(*) FILTER (WHERE timestamp >= {ago_14}) AS n_after,
             coalesce(sum({tokens}) FILTER (WHERE timestamp >= {ago_14}), 0) AS tokens_after,
             CASE WHEN count(*) FILTER (WHERE timestamp >= {ago_14} AND event_name = 'export') > 0 THEN 'exported'
                  WHEN count(*) FILTER (WHERE timestamp >= {ago_14}) > 0 THEN 'came' ELSE 'stayed away' END AS response
           FROM events
           WHERE tenant_id = 'tenant-2' AND timestamp >= {ago_42} AND timestamp < {ago_0} AND user_id IN (
             'user-2-4', 'user-2-14', 'user-2-20', 'user-2-30', 'user-2-34', 'user-2-60', 'user-2-74', 'user-2-80',
             'user-2-84', 'user-2-90', 'user-2-92', 'user-2-130', 'user-2-164', 'user-2-174', 'user-2-180',
             'user-2-190', 'user-2-192', 'user-2-200', 'user-2-214', 'user-2-220', 'user-2-224', 'user-2-240',
             'user-2-242', 'user-2-260', 'user-2-280', 'user-2-284', 'user-2-292', 'user-2-304', 'user-2-310',
             'user-2-334', 'user-2-342', 'user-2-354', 'user-2-392', 'user-2-410', 'user-2-424', 'user-2-440',
             'user-2-442', 'user-2-460', 'user-2-484', 'user-2-492', 'user-2-494', 'user-2-514', 'user-2-520',
             'user-2-542', 'user-2-560', 'user-2-564', 'user-2-570', 'user-2-594', 'user-2-600', 'user-2-610',
             'user-2-630', 'user-2-634', 'user-2-640', 'user-2-642', 'user-2-644', 'user-2-650', 'user-2-660',
             'user-2-674', 'user-2-684', 'user-2-694', 'user-2-724', 'user-2-742', 'user-2-744', 'user-2-774',
             'user-2-792', 'user-2-824', 'user-2-840', 'user-2-842', 'user-2-850', 'user-2-854', 'user-2-864',
             'user-2-880', 'user-2-900', 'user-2-914', 'user-2-942', 'user-2-944', 'user-2-950', 'user-2-954',
             'user-2-992', 'user-2-1004', 'user-2-1010', 'user-2-1024', 'user-2-1034', 'user-2-1054', 'user-2-1070',
             'user-2-1090', 'user-2-1100', 'user-2-1104', 'user-2-1110', 'user-2-1114', 'user-2-1130', 'user-2-1134',
             'user-2-1142', 'user-2-1144', 'user-2-1150', 'user-2-1164', 'user-2-1170', 'user-2-1180', 'user-2-1190',
             'user-2-1192')
           GROUP BY user_id ORDER BY n_after DESC, user_id""",
    ),
    AskedByVisitors(
        "suggestions for what somebody types",
        """SELECT kind, suggestion, n, last_seen FROM (
             (SELECT 'user' AS kind, user_id AS suggestion, count(*) AS n, max(timestamp) AS last_seen FROM events
              WHERE tenant_id = {largest} AND user_id ILIKE '%-13%' GROUP BY user_id
              ORDER BY count(*) DESC, user_id LIMIT 8)
             UNION ALL
             (SELECT 'endpoint', CAST({endpoint} AS VARCHAR), count(*), max(timestamp) FROM events
              WHERE tenant_id = {largest} AND {endpoint} ILIKE '%13%' GROUP BY {endpoint}
              ORDER BY count(*) DESC, {endpoint} LIMIT 8)
             UNION ALL
             (SELECT 'country', CAST({country} AS VARCHAR), count(*), max(timestamp) FROM events
              WHERE tenant_id = {largest} AND {country} ILIKE '%13%' GROUP BY {country}
              ORDER BY count(*) DESC, {country} LIMIT 8)
             UNION ALL
             (SELECT 'event', event_id, count(*), max(timestamp) FROM events
              WHERE tenant_id = {largest} AND event_id ILIKE '13%13' GROUP BY event_id
              ORDER BY max(timestamp) DESC, event_id LIMIT 8)) AS found
           ORDER BY kind DESC, n DESC, suggestion""",
    ),
    AskedByVisitors(
        "an event by its id with what its user did before and after",
        """WITH asked AS (
             SELECT tenant_id, user_id, timestamp, event_id FROM events
             WHERE event_id = '81d45721-268c-4276-8406-b25ae8e0d5eb')
           SELECT relation, timestamp, event_id, event_name, user_id, endpoint, status, latency_ms FROM (
             (SELECT 'before' AS relation, e.timestamp, e.event_id, e.event_name, e.user_id, e.{endpoint} AS endpoint,
                e.{status} AS status, e.{latency_ms} AS latency_ms
              FROM events e JOIN asked a ON a.tenant_id = e.tenant_id AND a.user_id = e.user_id
              WHERE (e.timestamp, e.event_id) < (a.timestamp, a.event_id)
              ORDER BY e.timestamp DESC, e.event_id DESC LIMIT 10)
             UNION ALL
             (SELECT 'the event', e.timestamp, e.event_id, e.event_name, e.user_id, e.{endpoint}, e.{status},
                e.{latency_ms}
              FROM events e JOIN asked a ON a.tenant_id = e.tenant_id AND a.event_id = e.event_id)
             UNION ALL
             (SELECT 'after', e.timestamp, e.event_id, e.event_name, e.user_id, e.{endpoint}, e.{status},
                e.{latency_ms}
              FROM events e JOIN asked a ON a.tenant_id = e.tenant_id AND a.user_id = e.user_id
              WHERE (e.timestamp, e.event_id) > (a.timestamp, a.event_id)
              ORDER BY e.timestamp, e.event_id LIMIT 10)) AS around
           ORDER BY timestamp, event_id""",
    ),
    AskedByVisitors(
        "leading endpoints of a tenant by four measures side by side",
        """WITH figures AS (
             SELECT {endpoint} AS endpoint, count(*) AS calls, sum({tokens}) AS tokens,
               count(DISTINCT user_id) AS users, count(*) FILTER (WHERE {status} <> 'ok') AS failed
             FROM events WHERE tenant_id = 'tenant-3' AND event_name = 'api_call' GROUP BY {endpoint}),
           ranked AS (
             SELECT endpoint, calls, tokens, users, failed,
               row_number() OVER (ORDER BY calls DESC, endpoint) AS by_calls,
               row_number() OVER (ORDER BY tokens DESC, endpoint) AS by_tokens,
               row_number() OVER (ORDER BY users DESC, endpoint) AS by_users,
               row_number() OVER (ORDER BY failed DESC, endpoint) AS by_failed
             FROM figures)
           SELECT p.place, max(CASE WHEN r.by_calls = p.place THEN r.endpoint END) AS most_called,
             max(CASE WHEN r.by_calls = p.place THEN r.calls END) AS calls,
             max(CASE WHEN r.by_tokens = p.place THEN r.endpoint END) AS most_spent_on,
             max(CASE WHEN r.by_tokens = p.place THEN r.tokens END) AS tokens,
             max(CASE WHEN r.by_users = p.place THEN r.endpoint END) AS most_used,
             max(CASE WHEN r.by_users = p.place THEN r.users END) AS users,
             max(CASE WHEN r.by_failed = p.place THEN r.endpoint END) AS most_failed,
             max(CASE WHEN r.by_failed = p.place THEN r.failed END) AS failed
           FROM ranked r CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) AS p (place)
           GROUP BY p.place ORDER BY p.place""",
    ),
    AskedByVisitors(
        "views that a call follows within the hour and an export within the day",
        """WITH traced AS (
             SELECT tenant_id, user_id, event_name, timestamp, {source} AS source,
               min(CASE WHEN event_name = 'api_call' THEN timestamp END) OVER later AS next_call,
               min(CASE WHEN event_name = 'export' THEN timestamp END) OVER later AS next_export
             FROM events WHERE tenant_id IN ('tenant-1', 'tenant-5', 'tenant-13')
             WINDOW later AS (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id
               ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING))
           SELECT tenant_id, source, count(*) AS views, count(DISTINCT user_id) AS viewers,
             count(*) FILTER (WHERE next_call <= timestamp + INTERVAL '1 hour') AS called,
             count(*) FILTER (WHERE next_call <= timestamp + INTERVAL '1 hour' AND next_export > next_call
               AND next_export <= next_call + INTERVAL '1 day') AS exported,
             count(DISTINCT user_id) FILTER (WHERE next_call <= timestamp + INTERVAL '1 hour'
               AND next_export > next_call AND next_export <= next_call + INTERVAL '1 day') AS exporters,
             count(*) FILTER (WHERE next_call IS NULL AND next_export IS NULL) AS ended_there
           FROM traced WHERE event_name = 'page_view' GROUP BY tenant_id, source ORDER BY tenant_id, source""",
    ),
    AskedByVisitors(
        "what three tenants export in common and what each does alone",
        """WITH used AS (
             SELECT DISTINCT tenant_id, {country} AS country, {endpoint} AS endpoint FROM events
             WHERE tenant_id IN ('tenant-40', 'tenant-41', 'tenant-42') AND event_name = 'export'),
           first_one AS (SELECT country, endpoint FROM used WHERE tenant_id = 'tenant-40'),
           second_one AS (SELECT country, endpoint FROM used WHERE tenant_id = 'tenant-41'),
           third_one AS (SELECT country, endpoint FROM used WHERE tenant_id = 'tenant-42')
           SELECT belongs_to, country, endpoint FROM (
             SELECT 'all' AS belongs_to, country, endpoint FROM (
               SELECT * FROM first_one INTERSECT SELECT * FROM second_one INTERSECT SELECT * FROM third_one) AS common
             UNION ALL
             SELECT 'only 40', country, endpoint FROM (
               SELECT * FROM first_one EXCEPT (SELECT * FROM second_one UNION SELECT * FROM third_one)) AS alone
             UNION ALL
             SELECT 'only 41', country, endpoint FROM (
               SELECT * FROM second_one EXCEPT (SELECT * FROM first_one UNION SELECT * FROM third_one)) AS alone
             UNION ALL
             SELECT 'only 42', country, endpoint FROM (
               SELECT * FROM third_one EXCEPT (SELECT * FROM first_one UNION SELECT * FROM second_one)) AS alone
           ) AS compared ORDER BY belongs_to, country, endpoint LIMIT 4000""",
    ),
    AskedByVisitors(
        "next page of users by what they spent",
        """SELECT user_id, tokens, n, active_days, last_seen FROM (
             SELECT user_id, sum({tokens}) AS tokens, count(*) AS n, count(DISTINCT timestamp::date) AS active_days,
               max(timestamp) AS last_seen
             FROM events WHERE tenant_id = 'tenant-2' AND event_name <> 'page_view' GROUP BY user_id) AS people
           WHERE (tokens, user_id) < (40000, 'user-2-500')
           ORDER BY tokens DESC, user_id DESC LIMIT 50""",
    ),
    # A time.
    AskedByVisitors(
        "calls by day of the ten busiest endpoints as a chart asks",
        """SELECT DATE_TRUNC('day', "timestamp") AS "__timestamp", {endpoint} AS "endpoint", COUNT(*) AS "COUNT(*)",
             SUM({tokens}) AS "SUM(tokens)", COUNT(DISTINCT "user_id") AS "COUNT_DISTINCT(user_id)"
           FROM (SELECT * FROM "events" WHERE "event_name" = 'api_call' AND {status} <> 'timeout') AS "virtual_table"
           JOIN (
             SELECT {endpoint} AS "endpoint__", COUNT(*) AS "mme_inner__"
             FROM (SELECT * FROM "events" WHERE "event_name" = 'api_call' AND {status} <> 'timeout') AS "virtual_table"
             WHERE "timestamp" >= {month} AND "timestamp" < {ago_0}
             GROUP BY {endpoint} ORDER BY "mme_inner__" DESC, "endpoint__" LIMIT 10) AS "series_limit"
             ON {endpoint} = "endpoint__"
           WHERE "timestamp" >= {month} AND "timestamp" < {ago_0} AND {source} NOT IN ('cron')
           GROUP BY DATE_TRUNC('day', "timestamp"), {endpoint}
           ORDER BY "COUNT(*)" DESC, "__timestamp", "endpoint" LIMIT 5000""",
    ),
    AskedByVisitors(
        "days by plan as a tool pivots them",
        """SELECT * FROM (
             SELECT *, DENSE_RANK() OVER (ORDER BY z___min_rank) AS z___pivot_row_rank,
               RANK() OVER (PARTITION BY z__pivot_col_rank ORDER BY z___min_rank) AS z__pivot_col_ordering
             FROM (
               SELECT *, MIN(z___rank) OVER (PARTITION BY "events.created_date") AS z___min_rank FROM (
                 SELECT *, RANK() OVER (ORDER BY "events.created_date" DESC, z__pivot_col_rank) AS z___rank FROM (
                   SELECT *, DENSE_RANK() OVER (ORDER BY CASE WHEN "events.plan" IS NULL THEN 1 ELSE 0 END,
                     "events.plan") AS z__pivot_col_rank
                   FROM (
                     SELECT CAST(events.{plan} AS VARCHAR) AS "events.plan",
                       CAST(events.timestamp AS DATE) AS "events.created_date", COUNT(*) AS "events.count",
                       COUNT(DISTINCT CASE WHEN (events.event_name = 'export') THEN events.user_id ELSE NULL END)
                         AS "events.exporters",
                       COALESCE(SUM(CASE WHEN (events.{status} = 'ok') THEN events.{tokens} ELSE NULL END), 0)
                         AS "events.total_tokens",
                       1.0 * COUNT(CASE WHEN NOT COALESCE(events.{status} = 'ok', FALSE) THEN 1 ELSE NULL END)
                         / NULLIF(COUNT(*), 0) AS "events.failure_rate"
                     FROM events
                     WHERE ((( events.timestamp ) >= ({ago_28}) AND ( events.timestamp ) < ({ago_0})))
                       AND (events.{source} IN ('web', 'mobile', 'sdk'))
                     GROUP BY 1, 2) ww
                 ) bb WHERE z__pivot_col_rank <= 16384
               ) aa
             ) xx
           ) zz
           WHERE (z__pivot_col_rank <= 50 OR z__pivot_col_ordering = 1) AND z___pivot_row_rank <= 500
           ORDER BY z___pivot_row_rank, z__pivot_col_rank""",
    ),
    AskedByVisitors(
        "tenants that made the change of the week",
        """WITH this_week AS (
             SELECT tenant_id, sum({tokens}) AS tokens, count(DISTINCT user_id) AS users FROM events
             WHERE timestamp >= {ago_7} AND timestamp < {ago_0} AND event_name IN ('api_call', 'export')
             GROUP BY tenant_id),
           week_before AS (
             SELECT tenant_id, sum({tokens}) AS tokens, count(DISTINCT user_id) AS users FROM events
             WHERE timestamp >= {ago_14} AND timestamp < {ago_7} AND event_name IN ('api_call', 'export')
             GROUP BY tenant_id),
           changes AS (
             SELECT coalesce(t.tenant_id, b.tenant_id) AS tenant, coalesce(t.tokens, 0.0) AS tokens,
               coalesce(b.tokens, 0.0) AS tokens_before, coalesce(t.tokens, 0.0) - coalesce(b.tokens, 0.0) AS change,
               coalesce(t.users, 0) - coalesce(b.users, 0) AS more_users
             FROM this_week t FULL OUTER JOIN week_before b ON b.tenant_id = t.tenant_id)
           SELECT row_number() OVER (ORDER BY abs(change) DESC, tenant) AS place, tenant, tokens, tokens_before, change,
             more_users, change / sum(change) OVER () AS share_of_change,
             change / sum(tokens_before) OVER () * 100 AS points_of_growth,
             CASE WHEN tokens_before = 0 THEN 'new' WHEN tokens = 0 THEN 'gone' WHEN change > 0 THEN 'up'
                  WHEN change < 0 THEN 'down' ELSE 'same' END AS direction
           FROM changes ORDER BY place LIMIT 200""",
    ),
    AskedByVisitors(
        "five busiest quarter hours of each day",
        """SELECT day, place, slot, n, users, failed, n * 1.0 / of_day AS share FROM (
             SELECT date_trunc('day', slot) AS day, slot, n, users, failed,
               sum(n) OVER (PARTITION BY date_trunc('day', slot)) AS of_day,
               row_number() OVER (PARTITION BY date_trunc('day', slot) ORDER BY n DESC, slot) AS place
             FROM (
               SELECT {quarter_hour} AS slot, count(*) AS n, count(DISTINCT user_id) AS users,
                 count(*) FILTER (WHERE {status} IN ('error', 'timeout')) AS failed
               FROM events WHERE timestamp >= {ago_21} AND timestamp < {ago_0} GROUP BY 1) AS slots) AS placed
           WHERE place <= 5 ORDER BY day, place""",
    ),
    AskedByVisitors(
        "tenants that were slow on several days of four weeks",
        """WITH daily AS (
             SELECT tenant_id, {day} AS day, count(*) AS calls, count(DISTINCT user_id) AS users,
               percentile_cont(0.95) WITHIN GROUP (ORDER BY {latency_ms}) AS p95
             FROM events
             WHERE event_name = 'api_call' AND {status} <> 'timeout' AND timestamp >= {ago_28} AND timestamp < {ago_0}
             GROUP BY tenant_id, {day} HAVING count(*) >= 10)
           SELECT tenant_id, count(*) AS days, count(*) FILTER (WHERE p95 > 500) AS slow_days, max(p95) AS worst,
             min(day) FILTER (WHERE p95 > 500) AS first_slow_day,
             string_agg({short_day}, ' ' ORDER BY day) FILTER (WHERE p95 > 500) AS listed,
             percentile_cont(0.5) WITHIN GROUP (ORDER BY users) AS usual_users
           FROM daily GROUP BY tenant_id HAVING count(*) FILTER (WHERE p95 > 500) >= 3
           ORDER BY slow_days DESC, tenant_id LIMIT 300""",
    ),
    AskedByVisitors(
        "events by day with exponential weights",
        """WITH daily AS (
             SELECT {source} AS source, {day} AS day, count(*) AS n, count(DISTINCT user_id) AS users FROM events
             WHERE timestamp >= {ago_60} AND timestamp < {ago_0} GROUP BY 1, 2)
           SELECT d.source, d.day, d.n, d.users, count(*) AS days,
             sum(p.n * power(0.8, (extract(epoch FROM d.day) - extract(epoch FROM p.day)) / 86400))
               / sum(power(0.8, (extract(epoch FROM d.day) - extract(epoch FROM p.day)) / 86400)) AS smooth,
             max(p.n) AS peak, min(p.users) AS fewest_users
           FROM daily d JOIN daily p
             ON p.source = d.source AND p.day <= d.day AND p.day > d.day - INTERVAL '14 days'
           GROUP BY d.source, d.day, d.n, d.users ORDER BY d.source, d.day""",
    ),
    AskedByVisitors(
        "means of latency without the fastest and slowest twentieth",
        """SELECT endpoint, source, count(*) AS n, avg(latency_ms) AS mean,
             avg(latency_ms) FILTER (WHERE standing BETWEEN 0.05 AND 0.95) AS trimmed,
             min(latency_ms) FILTER (WHERE standing >= 0.05) AS trimmed_from,
             max(latency_ms) FILTER (WHERE standing <= 0.95) AS trimmed_to
           FROM (
             SELECT {endpoint} AS endpoint, {source} AS source, {latency_ms} AS latency_ms,
               percent_rank() OVER (PARTITION BY {endpoint}, {source} ORDER BY {latency_ms}) AS standing
             FROM events WHERE event_name = 'api_call' AND timestamp >= {ago_14} AND timestamp < {ago_0}) AS ranked
           GROUP BY endpoint, source HAVING count(*) >= 20 ORDER BY endpoint, source""",
    ),
    AskedByVisitors(
        "digest of the week in one table",
        """WITH week_events AS (
             SELECT tenant_id, user_id, {endpoint} AS endpoint, {country} AS country, {status} AS status,
               {latency_ms} AS latency_ms, {tokens} AS tokens
             FROM events WHERE timestamp >= {ago_7} AND timestamp < {ago_0}),
           of_tenants AS (
             SELECT CAST(tenant_id AS VARCHAR) AS title, CAST(count(*) AS DOUBLE) AS figure,
               row_number() OVER (ORDER BY count(*) DESC, tenant_id) AS place FROM week_events GROUP BY tenant_id),
           of_users AS (
             SELECT user_id AS title, sum(tokens) AS figure,
               row_number() OVER (ORDER BY sum(tokens) DESC, user_id) AS place FROM week_events GROUP BY user_id),
           of_endpoints AS (
             SELECT CAST(endpoint AS VARCHAR) AS title, max(latency_ms) AS figure,
               row_number() OVER (ORDER BY max(latency_ms) DESC, endpoint) AS place FROM week_events
             GROUP BY endpoint),
           of_countries AS (
             SELECT CAST(country AS VARCHAR) AS title, CAST(count(*) AS DOUBLE) AS figure,
               row_number() OVER (ORDER BY count(*) DESC, country) AS place FROM week_events
             WHERE status <> 'ok' GROUP BY country)
           SELECT section, place, title, figure, figure / whole AS share FROM (
             SELECT '1 busiest tenants' AS section, place, title, figure,
               (SELECT CAST(count(*) AS DOUBLE) FROM week_events) AS whole FROM of_tenants WHERE place <= 10
             UNION ALL
             SELECT '2 users who spend most', place, title, figure, (SELECT sum(tokens) FROM week_events)
             FROM of_users WHERE place <= 10
             UNION ALL
             SELECT '3 slowest endpoints', place, title, figure, (SELECT max(latency_ms) FROM week_events)
             FROM of_endpoints WHERE place <= 5
             UNION ALL
             SELECT '4 countries with failures', place, title, figure,
               (SELECT CAST(count(*) AS DOUBLE) FROM week_events WHERE status <> 'ok')
             FROM of_countries WHERE place <= 10) AS digest
           ORDER BY section, place""",
    ),
    AskedByVisitors(
        "free users whom sales should call",
        """SELECT p.tenant_id, p.user_id, p.n, p.tokens, p.last_seen,
             (SELECT count(*) FROM events h WHERE h.tenant_id = p.tenant_id AND h.user_id = p.user_id) AS n_ever,
             (SELECT min(h.timestamp) FROM events h WHERE h.tenant_id = p.tenant_id AND h.user_id = p.user_id)
               AS first_seen
           FROM (
             SELECT tenant_id, user_id, count(*) AS n, sum({tokens}) AS tokens, max(timestamp) AS last_seen
             FROM events WHERE {plan} = 'free' AND timestamp >= {ago_14} AND timestamp < {ago_0}
             GROUP BY tenant_id, user_id HAVING count(*) >= 4) AS p
           WHERE EXISTS (
               SELECT 1 FROM events x WHERE x.tenant_id = p.tenant_id AND x.user_id = p.user_id
                 AND x.event_name = 'export' AND x.{status} = 'ok' AND x.{tokens} >= 2000
                 AND x.timestamp >= {month} AND x.timestamp <= p.last_seen)
             AND NOT EXISTS (
               SELECT 1 FROM events f WHERE f.tenant_id = p.tenant_id AND f.user_id = p.user_id
                 AND (f.{status} = 'timeout' OR f.{latency_ms} > 1500) AND f.timestamp >= {ago_7})
             AND (p.tokens > 10000 OR EXISTS (
               SELECT 1 FROM events t WHERE t.tenant_id = p.tenant_id AND t.{plan} = 'team'
                 AND t.{source} = 'sdk' AND t.timestamp >= {ago_3}))
           ORDER BY p.tokens DESC, p.tenant_id, p.user_id LIMIT 300""",
    ),
)
