"""Thirty statements in shapes that `analysts.py`, `foreign.py`, `fresh.py` and `unseen.py` do not have.

They were written from the documentation of the API alone, by somebody who had read neither the code behind it nor
its history. They are asked of our SQL and of DuckDB, there is no text for ClickHouse. Names of tenants, users and
values are those of `synthetic.py`, in which every event has every property. The first ten are about all tenants and
the whole history, the next eleven about one tenant or a few, the last nine about a time.

Every row has its place in the order, no cell is NULL, and an answer has 5,000 rows at most, however many events
there are. No function is approximate.
"""

from analysts import DUCK, OURS
from fresh import AskedAfresh

STORES = (OURS, DUCK)
# What differs, besides the words of `analysts.py`, `foreign.py` and `fresh.py`: the last value by time as an
# aggregate, and five minutes.
HELD_OUT_WORDS = {
    OURS: {
        "last_user": "last_value(user_id ORDER BY timestamp, event_id)",
        "last_endpoint": "last_value({endpoint} ORDER BY timestamp, event_id)",
        "last_status": "last_value({status} ORDER BY timestamp, event_id)",
        "five_minutes": "date_bin(INTERVAL '5 minutes', timestamp, TIMESTAMP '1970-01-01 00:00:00')",
    },
    DUCK: {
        "last_user": "last(user_id ORDER BY timestamp, event_id)",
        "last_endpoint": "last({endpoint} ORDER BY timestamp, event_id)",
        "last_status": "last({status} ORDER BY timestamp, event_id)",
        "five_minutes": "time_bucket(INTERVAL '5 minutes', timestamp)",
    },
}


class AskedHeldOut(AskedAfresh):
    """A statement for the stores of `STORES`, with the words of `HELD_OUT_WORDS` and those of `fresh.py`."""

    own_words = HELD_OUT_WORDS


STATEMENTS = (
    # All tenants, the whole history.
    AskedHeldOut(
        "monthly bills by tiers and seats",
        """WITH consumed AS (
             SELECT tenant_id, date_trunc('month', timestamp) AS billed_month, {plan} AS plan,
               sum({tokens}) AS tokens, count(DISTINCT user_id) AS seats
             FROM events WHERE {status} = 'ok' GROUP BY 1, 2, 3)
           SELECT c.tenant_id, c.billed_month, sum(c.tokens) AS tokens, sum(c.seats) AS seats,
             sum(c.seats * p.seat_price) AS seat_fee,
             sum(greatest(least(c.tokens, p.included * 10) - p.included, 0) * p.first_price) AS first_tier,
             sum(greatest(c.tokens - p.included * 10, 0) * p.further_price) AS further_tier
           FROM consumed c JOIN (VALUES ('free', 0.0, 20000, 0.004, 0.004), ('pro', 12.0, 100000, 0.003, 0.0025),
               ('team', 25.0, 250000, 0.0025, 0.002), ('enterprise', 60.0, 1000000, 0.002, 0.001))
             AS p (plan, seat_price, included, first_price, further_price) ON p.plan = c.plan
           GROUP BY c.tenant_id, c.billed_month ORDER BY c.tenant_id, c.billed_month LIMIT 5000""",
    ),
    AskedHeldOut(
        "users ever seen by day of the ten largest tenants",
        """WITH top_tenants AS (
             SELECT tenant_id FROM events GROUP BY tenant_id ORDER BY count(*) DESC, tenant_id LIMIT 10),
           firsts AS (
             SELECT tenant_id, user_id, min(timestamp)::date AS first_day FROM events
             WHERE tenant_id IN (SELECT tenant_id FROM top_tenants) GROUP BY tenant_id, user_id),
           daily AS (SELECT tenant_id, first_day, count(*) AS new_users FROM firsts GROUP BY tenant_id, first_day)
           SELECT tenant_id, first_day, new_users,
             sum(new_users) OVER (PARTITION BY tenant_id ORDER BY first_day) AS users_so_far,
             CAST(sum(new_users) OVER (PARTITION BY tenant_id ORDER BY first_day) AS DOUBLE)
               / sum(new_users) OVER (PARTITION BY tenant_id) AS share_so_far
           FROM daily ORDER BY tenant_id, first_day""",
    ),
    AskedHeldOut(
        "retention triangle with a column for each week",
        """WITH weekly AS (SELECT DISTINCT tenant_id, user_id, {week} AS week FROM events),
           firsts AS (SELECT tenant_id, user_id, min(week) AS cohort FROM weekly GROUP BY tenant_id, user_id)
           SELECT cohort, sum(CASE WHEN week = cohort THEN 1 ELSE 0 END) AS week_0,
             sum(CASE WHEN week = cohort + INTERVAL '7 days' THEN 1 ELSE 0 END) AS week_1,
             sum(CASE WHEN week = cohort + INTERVAL '14 days' THEN 1 ELSE 0 END) AS week_2,
             sum(CASE WHEN week = cohort + INTERVAL '21 days' THEN 1 ELSE 0 END) AS week_3,
             sum(CASE WHEN week = cohort + INTERVAL '28 days' THEN 1 ELSE 0 END) AS week_4,
             sum(CASE WHEN week BETWEEN cohort + INTERVAL '35 days' AND cohort + INTERVAL '56 days' THEN 1 ELSE 0 END)
               AS user_weeks_5_to_8
           FROM weekly JOIN firsts USING (tenant_id, user_id) GROUP BY cohort ORDER BY cohort""",
    ),
    AskedHeldOut(
        "how unequally users of a tenant spend",
        """WITH spend AS (SELECT tenant_id, user_id, sum({tokens}) AS tokens FROM events GROUP BY tenant_id, user_id),
           placed AS (
             SELECT tenant_id, tokens, row_number() OVER (PARTITION BY tenant_id ORDER BY tokens, user_id) AS place
             FROM spend)
           SELECT tenant_id, count(*) AS users, sum(tokens) AS tokens, max(tokens) / sum(tokens) AS heaviest_share,
             2.0 * sum(place * tokens) / (count(*) * sum(tokens)) - (count(*) + 1.0) / count(*) AS gini
           FROM placed GROUP BY tenant_id HAVING count(*) >= 20 AND sum(tokens) > 0 ORDER BY tenant_id""",
    ),
    AskedHeldOut(
        "models with the most timeouts of each tenant, ties shared",
        """SELECT tenant_id, place, model, timeouts, users FROM (
             SELECT tenant_id, {model} AS model, count(*) AS timeouts, count(DISTINCT user_id) AS users,
               rank() OVER (PARTITION BY tenant_id ORDER BY count(*) DESC) AS place
             FROM events WHERE {status} = 'timeout' GROUP BY tenant_id, {model}) AS ranked
           WHERE place <= 2 ORDER BY tenant_id, place, model LIMIT 4000""",
    ),
    AskedHeldOut(
        "busiest minute of each tenant",
        """SELECT DISTINCT ON (tenant_id) tenant_id, slot, n, tokens, slowest FROM (
             SELECT tenant_id, date_trunc('minute', timestamp) AS slot, count(*) AS n, sum({tokens}) AS tokens,
               max({latency_ms}) AS slowest
             FROM events GROUP BY tenant_id, date_trunc('minute', timestamp)) AS minutes
           ORDER BY tenant_id, n DESC, slot""",
    ),
    AskedHeldOut(
        "first three steps of users as paths",
        """WITH numbered AS (
             SELECT tenant_id, user_id, event_name,
               row_number() OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id) AS step
             FROM events),
           paths AS (
             SELECT tenant_id, user_id, string_agg(event_name, ' > ' ORDER BY step) AS path FROM numbered
             WHERE step <= 3 GROUP BY tenant_id, user_id)
           SELECT path, count(*) AS users, count(DISTINCT tenant_id) AS tenants,
             count(*) * 1.0 / sum(count(*)) OVER () AS share
           FROM paths GROUP BY path ORDER BY users DESC, path""",
    ),
    AskedHeldOut(
        "trend of daily events of each tenant",
        """WITH daily AS (
             SELECT tenant_id, floor(extract(epoch FROM timestamp) / 86400) - 20680 AS day_number,
               CAST(count(*) AS DOUBLE) AS n
             FROM events GROUP BY 1, 2)
           SELECT tenant_id, count(*) AS active_days, sum(n) AS n, regr_slope(n, day_number) AS more_each_day,
             regr_intercept(n, day_number) AS at_the_start
           FROM daily GROUP BY tenant_id HAVING count(*) >= 30 ORDER BY tenant_id LIMIT 2000""",
    ),
    AskedHeldOut(
        "tenants by users who have come from every source",
        """WITH complete AS (
             SELECT tenant_id, user_id FROM events GROUP BY tenant_id, user_id
             HAVING count(DISTINCT {source}) = (SELECT count(DISTINCT {source}) FROM events)),
           everybody AS (SELECT tenant_id, count(DISTINCT user_id) AS users FROM events GROUP BY tenant_id)
           SELECT a.tenant_id, a.users, count(c.user_id) AS complete_users,
             count(c.user_id) * 1.0 / a.users AS share
           FROM everybody a LEFT JOIN complete c ON c.tenant_id = a.tenant_id
           GROUP BY a.tenant_id, a.users ORDER BY complete_users DESC, a.tenant_id LIMIT 300""",
    ),
    AskedHeldOut(
        "last call of each tenant by aggregates",
        """SELECT tenant_id, max(timestamp) AS last_seen, {last_user} AS last_user, {last_endpoint} AS last_endpoint,
           {last_status} AS last_status, count(*) AS calls
           FROM events WHERE event_name = 'api_call' GROUP BY tenant_id
           ORDER BY last_seen DESC, tenant_id LIMIT 2000""",
    ),
    # One tenant or a few.
    AskedHeldOut(
        "page of events by key",
        """SELECT timestamp, event_id, event_name, user_id, {endpoint} AS endpoint, {status} AS status,
           {latency_ms} AS latency_ms, {tokens} AS tokens
           FROM events
           WHERE tenant_id = {largest} AND (timestamp, event_id) < ({ago_5}, '7a3c9e10-0000-4000-8000-000000000000')
           ORDER BY timestamp DESC, event_id DESC LIMIT 50""",
    ),
    AskedHeldOut(
        "fifth page of the users of a tenant with their number",
        """SELECT user_id, last_seen, n, tokens, count(*) OVER () AS all_users FROM (
             SELECT user_id, max(timestamp) AS last_seen, count(*) AS n, sum({tokens}) AS tokens FROM events
             WHERE tenant_id = 'tenant-3' GROUP BY user_id) AS people
           WHERE n >= 5 ORDER BY last_seen DESC, user_id LIMIT 50 OFFSET 200""",
    ),
    AskedHeldOut(
        "users of four support tickets",
        """SELECT tenant_id, user_id, event_name, count(*) AS n, min(timestamp) AS first_seen,
           max(timestamp) AS last_seen, count(CASE WHEN {status} <> 'ok' THEN event_id END) AS failed,
           max({latency_ms}) AS slowest
           FROM events
           WHERE (tenant_id, user_id) IN (('tenant-1', 'user-1-17'), ('tenant-2', 'user-2-4'),
             ('tenant-50', 'user-50-3'), ('tenant-400', 'user-400-1'))
           GROUP BY tenant_id, user_id, event_name ORDER BY tenant_id, user_id, event_name""",
    ),
    AskedHeldOut(
        "how users of a medium tenant began and where they are now",
        """SELECT user_id, (array_agg({endpoint} ORDER BY timestamp, event_id))[1] AS first_endpoint,
           (array_agg({source} ORDER BY timestamp DESC, event_id DESC))[1] AS newest_source,
           (array_agg({country} ORDER BY timestamp DESC, event_id DESC))[1] AS newest_country,
           count(*) AS n, bool_or({status} = 'timeout') AS met_timeouts, bool_and({latency_ms} < 1000) AS always_quick
           FROM events WHERE tenant_id = 'tenant-60' GROUP BY user_id ORDER BY user_id LIMIT 2000""",
    ),
    AskedHeldOut(
        "endpoints that are used together and their lift",
        """WITH used AS (
             SELECT DISTINCT user_id, {endpoint} AS endpoint FROM events
             WHERE tenant_id = {largest} AND event_name = 'api_call'),
           popular AS (SELECT endpoint, count(*) AS users FROM used GROUP BY endpoint),
           everybody AS (SELECT CAST(count(DISTINCT user_id) AS DOUBLE) AS users FROM used)
           SELECT a.endpoint, b.endpoint AS other_endpoint, count(*) AS users_of_both,
             count(*) * 1.0 / p.users AS confidence, count(*) * e.users / p.users / q.users AS lift
           FROM used a JOIN used b ON b.user_id = a.user_id AND b.endpoint > a.endpoint
             JOIN popular p ON p.endpoint = a.endpoint JOIN popular q ON q.endpoint = b.endpoint
             CROSS JOIN everybody e
           GROUP BY a.endpoint, b.endpoint, p.users, q.users, e.users
           HAVING count(*) >= 50 ORDER BY users_of_both DESC, a.endpoint, b.endpoint LIMIT 200""",
    ),
    AskedHeldOut(
        "most sessions at once by day",
        """WITH marked AS (
             SELECT user_id, timestamp, event_id,
               CASE WHEN lag(timestamp) OVER w IS NULL OR timestamp - lag(timestamp) OVER w > INTERVAL '4 hours'
                 THEN 1 ELSE 0 END AS begins
             FROM events WHERE tenant_id = 'tenant-2' WINDOW w AS (PARTITION BY user_id ORDER BY timestamp, event_id)),
           numbered AS (
             SELECT user_id, timestamp, sum(begins) OVER (PARTITION BY user_id ORDER BY timestamp, event_id
               ROWS UNBOUNDED PRECEDING) AS session_number
             FROM marked),
           sessions AS (
             SELECT min(timestamp) AS began, max(timestamp) + INTERVAL '5 minutes' AS ended FROM numbered
             GROUP BY user_id, session_number),
           edges AS (
             SELECT began AS moment, 1 AS change FROM sessions UNION ALL SELECT ended, -1 FROM sessions),
           running AS (
             SELECT moment, change, sum(change) OVER (ORDER BY moment, change DESC ROWS UNBOUNDED PRECEDING) AS open_now
             FROM edges)
           SELECT moment::date AS day, max(open_now) AS most_at_once, count(*) FILTER (WHERE change = 1) AS begun,
             count(*) FILTER (WHERE change = -1) AS ended
           FROM running GROUP BY 1 ORDER BY 1""",
    ),
    AskedHeldOut(
        "users who call in bursts",
        """WITH paced AS (
             SELECT tenant_id, user_id, count(*) OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp
               RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND CURRENT ROW) AS of_hour
             FROM events WHERE tenant_id IN ('tenant-4', 'tenant-15', 'tenant-45') AND event_name = 'api_call')
           SELECT tenant_id, user_id, max(of_hour) AS burst, count(*) FILTER (WHERE of_hour >= 3) AS over_three,
             count(*) AS calls
           FROM paced GROUP BY tenant_id, user_id HAVING max(of_hour) >= 2
           ORDER BY burst DESC, over_three DESC, tenant_id, user_id LIMIT 200""",
    ),
    AskedHeldOut(
        "days of three small tenants with the empty ones",
        """WITH days AS (
             SELECT DISTINCT {day} AS day, 1 AS k FROM events WHERE timestamp >= {month} AND timestamp < {ago_0}),
           chosen AS (
             SELECT tenant_id, title, 1 AS k
             FROM (VALUES ('tenant-700', 'Acme'), ('tenant-850', 'Globex'), ('tenant-999', 'Initech'))
               AS named (tenant_id, title)),
           counted AS (
             SELECT tenant_id, {day} AS day, count(*) AS n, sum({tokens}) AS tokens FROM events
             WHERE tenant_id IN ('tenant-700', 'tenant-850', 'tenant-999') AND timestamp >= {month} GROUP BY 1, 2)
           SELECT c.title, d.day, coalesce(x.n, 0) AS n, coalesce(x.tokens, 0) AS tokens,
             avg(coalesce(x.n, 0)) OVER (PARTITION BY c.title ORDER BY d.day
               ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS smooth
           FROM chosen c JOIN days d ON d.k = c.k LEFT JOIN counted x ON x.tenant_id = c.tenant_id AND x.day = d.day
           ORDER BY c.title, d.day""",
    ),
    AskedHeldOut(
        "conversion in an experiment by plan",
        """WITH people AS (
             SELECT user_id, max({plan}) AS plan,
               CASE WHEN CAST(split_part(user_id, '-', 3) AS BIGINT) % 2 = 0 THEN 'control' ELSE 'treated' END AS arm,
               max(CASE WHEN event_name = 'export' AND {status} = 'ok' THEN 1.0 ELSE 0.0 END) AS converted
             FROM events WHERE tenant_id = {largest} AND timestamp >= {ago_21} AND timestamp < {ago_7}
             GROUP BY user_id),
           arms AS (
             SELECT plan, arm, CAST(count(*) AS DOUBLE) AS users, CAST(sum(converted) AS DOUBLE) AS converted
             FROM people GROUP BY plan, arm)
           SELECT c.plan, c.users AS control_users, t.users AS treated_users, c.converted / c.users AS control_rate,
             t.converted / t.users AS treated_rate,
             (t.converted / t.users - c.converted / c.users)
               / sqrt((t.converted + c.converted) / (t.users + c.users)
                 * (1 - (t.converted + c.converted) / (t.users + c.users)) * (1 / t.users + 1 / c.users)) AS z
           FROM arms c JOIN arms t ON t.plan = c.plan
           WHERE c.arm = 'control' AND t.arm = 'treated'
           ORDER BY CASE c.plan WHEN 'free' THEN 1 WHEN 'pro' THEN 2 WHEN 'team' THEN 3 ELSE 4 END""",
    ),
    AskedHeldOut(
        "overview of a customer in one row",
        """SELECT (SELECT count(*) FROM events WHERE tenant_id = {tenant} AND timestamp >= {ago_7}) AS n_of_week,
           (SELECT count(*) FROM events
            WHERE tenant_id = {tenant} AND timestamp >= {ago_14} AND timestamp < {ago_7}) AS n_of_week_before,
           (SELECT count(DISTINCT user_id) FROM events WHERE tenant_id = {tenant} AND timestamp >= {month}) AS users,
           (SELECT {endpoint} FROM events WHERE tenant_id = {tenant}
            GROUP BY {endpoint} ORDER BY count(*) DESC, {endpoint} LIMIT 1) AS favourite,
           (SELECT user_id FROM events WHERE tenant_id = {tenant}
            GROUP BY user_id ORDER BY sum({tokens}) DESC, user_id LIMIT 1) AS heaviest_user,
           (SELECT count(*) + 1 FROM (SELECT tenant_id FROM events GROUP BY tenant_id
              HAVING count(*) > (SELECT count(*) FROM events WHERE tenant_id = {tenant})) AS larger) AS place,
           (SELECT max(timestamp) FROM events WHERE tenant_id = {tenant} AND {status} <> 'ok') AS newest_failure""",
    ),
    AskedHeldOut(
        "timeouts and what the user did in the day before",
        """SELECT e.timestamp, e.event_id, e.user_id, e.{endpoint} AS endpoint, e.{latency_ms} AS latency_ms,
           (SELECT count(*) FROM events p WHERE p.tenant_id = e.tenant_id AND p.user_id = e.user_id
              AND p.timestamp < e.timestamp AND p.timestamp >= e.timestamp - INTERVAL '1 day') AS events_before
           FROM events e
           WHERE e.tenant_id = {largest} AND e.{status} = 'timeout' AND e.timestamp >= {ago_3}
           ORDER BY e.{latency_ms} DESC, e.event_id LIMIT 100""",
    ),
    # A time.
    AskedHeldOut(
        "month to date against the same days of the month before",
        """SELECT {plan} AS plan, {source} AS source,
           count(*) FILTER (WHERE timestamp >= date_trunc('month', {ago_0})) AS n,
           count(*) FILTER (WHERE timestamp < date_trunc('month', {ago_0})) AS n_before,
           sum(CASE WHEN timestamp >= date_trunc('month', {ago_0}) THEN {tokens} ELSE -{tokens} END) AS more_tokens,
           count(*) FILTER (WHERE timestamp >= date_trunc('month', {ago_0})) * 1.0
             / greatest(count(*) FILTER (WHERE timestamp < date_trunc('month', {ago_0})), 1) AS ratio
           FROM events
           WHERE (timestamp >= date_trunc('month', {ago_0}) AND timestamp < {ago_0})
             OR (timestamp >= date_trunc('month', {ago_0}) - INTERVAL '1 month'
                 AND timestamp < {ago_0} - INTERVAL '1 month')
           GROUP BY {plan}, {source} ORDER BY plan, source""",
    ),
    AskedHeldOut(
        "tenants that climbed in a fortnight",
        """WITH periods AS (
             SELECT tenant_id, CASE WHEN timestamp >= {ago_14} THEN 'now' ELSE 'before' END AS period,
               sum({tokens}) AS tokens
             FROM events WHERE timestamp >= {ago_28} AND timestamp < {ago_0} GROUP BY 1, 2),
           ranked AS (
             SELECT tenant_id, period, tokens, dense_rank() OVER (PARTITION BY period ORDER BY tokens DESC) AS place
             FROM periods)
           SELECT n.tenant_id, n.place, b.place AS place_before, b.place - n.place AS climbed, n.tokens,
             b.tokens AS tokens_before
           FROM ranked n JOIN ranked b ON b.tenant_id = n.tenant_id
           WHERE n.period = 'now' AND b.period = 'before' AND (n.place <= 200 OR b.place <= 200)
           ORDER BY climbed DESC, n.place, n.tenant_id LIMIT 250""",
    ),
    AskedHeldOut(
        "day on which tenants reach their quota",
        """WITH quotas AS (
             SELECT tenant_id, quota FROM (VALUES ('tenant-1', 60000000), ('tenant-2', 45000000),
               ('tenant-5', 12000000), ('tenant-20', 4000000), ('tenant-100', 500000), ('tenant-500', 200000))
               AS agreed (tenant_id, quota)),
           daily AS (
             SELECT tenant_id, timestamp::date AS day, sum({tokens}) AS tokens FROM events
             WHERE timestamp >= date_trunc('month', {ago_0}) AND tenant_id IN (SELECT tenant_id FROM quotas)
             GROUP BY 1, 2),
           running AS (
             SELECT tenant_id, day, sum(tokens) OVER (PARTITION BY tenant_id ORDER BY day) AS so_far FROM daily)
           SELECT q.tenant_id, q.quota, max(r.so_far) AS used, max(r.so_far) / q.quota AS share,
             coalesce(CAST(min(CASE WHEN r.so_far >= 0.8 * q.quota THEN r.day END) AS VARCHAR), 'not yet') AS warned,
             coalesce(CAST(min(CASE WHEN r.so_far >= q.quota THEN r.day END) AS VARCHAR), 'not yet') AS reached
           FROM quotas q JOIN running r ON r.tenant_id = q.tenant_id
           GROUP BY q.tenant_id, q.quota ORDER BY q.tenant_id""",
    ),
    AskedHeldOut(
        "endpoints that tenants stopped calling this week",
        """SELECT tenant_id, count(*) AS endpoints, min(endpoint) AS least_endpoint, max(endpoint) AS greatest_endpoint
           FROM (
             SELECT tenant_id, {endpoint} AS endpoint FROM events
             WHERE event_name = 'api_call' AND timestamp >= {ago_28} AND timestamp < {ago_7}
             EXCEPT
             SELECT tenant_id, {endpoint} AS endpoint FROM events
             WHERE event_name = 'api_call' AND timestamp >= {ago_7}) AS stopped
           GROUP BY tenant_id ORDER BY endpoints DESC, tenant_id LIMIT 300""",
    ),
    AskedHeldOut(
        "users lost since the month before by plan and activity",
        """SELECT b.plan, least(b.n, 10) AS number_of_events, count(*) AS lost, sum(b.tokens) AS tokens,
           max(b.last_seen) AS newest
           FROM (
             SELECT tenant_id, user_id, max({plan}) AS plan, count(*) AS n, sum({tokens}) AS tokens,
               max(timestamp) AS last_seen
             FROM events WHERE timestamp >= {ago_60} AND timestamp < {month} GROUP BY tenant_id, user_id) AS b
           LEFT JOIN (
             SELECT DISTINCT tenant_id, user_id FROM events WHERE timestamp >= {month}) AS a
             ON a.tenant_id = b.tenant_id AND a.user_id = b.user_id
           WHERE a.user_id IS NULL GROUP BY 1, 2 ORDER BY 1, 2""",
    ),
    AskedHeldOut(
        "tenants flagged for any of three reasons",
        """WITH flagged AS (
             SELECT tenant_id FROM events WHERE timestamp >= {ago_7} GROUP BY tenant_id
             HAVING count(*) >= 20 AND count(*) FILTER (WHERE {status} = 'timeout') * 1.0 / count(*) > 0.04
             UNION
             SELECT tenant_id FROM events WHERE timestamp >= {ago_7} AND {latency_ms} > 3000
             UNION
             SELECT tenant_id FROM events WHERE timestamp >= {ago_7} AND event_name = 'export'
             GROUP BY tenant_id HAVING max({tokens}) > 7500)
           SELECT e.tenant_id, count(*) AS n, count(DISTINCT e.user_id) AS users, sum(e.{tokens}) AS tokens
           FROM events e JOIN flagged f ON f.tenant_id = e.tenant_id
           WHERE e.timestamp >= {ago_7} AND e.user_id NOT IN (
             SELECT user_id FROM events WHERE timestamp >= {ago_7} AND {source} = 'cron' AND {status} <> 'ok')
           GROUP BY e.tenant_id ORDER BY n DESC, e.tenant_id LIMIT 500""",
    ),
    AskedHeldOut(
        "availability by day from slots of five minutes",
        """WITH slots AS (
             SELECT {five_minutes} AS slot, count(*) AS n, count(*) FILTER (WHERE {status} <> 'ok') AS failed
             FROM events WHERE event_name = 'api_call' AND timestamp >= {ago_14} AND timestamp < {ago_0} GROUP BY 1)
           SELECT slot::date AS day, count(*) AS slots, count(*) FILTER (WHERE failed * 10 > n) AS bad_slots,
             1.0 - count(*) FILTER (WHERE failed * 10 > n) * 1.0 / count(*) AS availability,
             max(failed * 1.0 / n) AS worst, min(n) AS fewest_calls
           FROM slots GROUP BY slot::date ORDER BY day""",
    ),
    AskedHeldOut(
        "timeouts to escalate by day",
        """SELECT {day} AS day, count(*) AS timeouts, count(DISTINCT e.tenant_id) AS tenants,
           count(DISTINCT e.user_id) AS users
           FROM events e
           WHERE e.event_name = 'api_call' AND e.{status} = 'timeout' AND e.timestamp >= {ago_21}
             AND (e.{latency_ms} > 500 OR EXISTS (
               SELECT 1 FROM events x WHERE x.tenant_id = e.tenant_id AND x.user_id = e.user_id
                 AND x.event_name = 'export' AND x.{status} = 'error' AND x.timestamp >= {ago_21}))
           GROUP BY 1 ORDER BY 1""",
    ),
    AskedHeldOut(
        "resources and accounts under readable names",
        """SELECT 'resource ' || lpad(split_part({endpoint}, '/', 4), 3, '0') AS resource,
           regexp_replace(user_id, '^user-([0-9]+)-.*$', 'account \\1') AS account,
           CAST(ltrim({country}, 'C') AS BIGINT) % 4 AS zone, count(*) AS n,
           max(char_length(user_id) - position('-' IN user_id)) AS longest_rest,
           max(reverse(user_id)) AS greatest_reversed
           FROM events
           WHERE timestamp >= {ago_7} AND {endpoint} ~ '^/v1/resource/[1-3][0-9]$' AND starts_with(tenant_id, 'tenant-1')
           GROUP BY 1, 2, 3 HAVING count(*) >= 2 ORDER BY n DESC, resource, account, zone LIMIT 500""",
    ),
)
