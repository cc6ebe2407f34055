"""Thirty statements in shapes that `analysts.py`, `foreign.py`, `fresh.py`, `unseen.py`, `held_out.py`, `strangers.py`,
`outsiders.py` and `visitors.py` do not have, or hardly.

They were written from the documentation of the API alone, by somebody who had read neither the code behind it nor
its history. They are asked of our SQL and of DuckDB, there is no text for ClickHouse. Names of tenants, users and
values are those of `synthetic.py`, in which every event has every property. The first thirteen are about all tenants
with windows within a tenant, within a user of a tenant, or within a property of a tenant; the next nine about all
tenants otherwise, whole or for a time; the last eight about one tenant or a few.

Every row has its place in the order, no cell is NULL, and an answer has 5,000 rows at most, however many events
there are. No function is approximate. Where whole numbers are compared with a percentile, a small number is added,
so that the last digit of the percentile does not decide.
"""

from analysts import DUCK, OURS
from fresh import AskedAfresh

STORES = (OURS, DUCK)
# What differs, besides the words of `analysts.py`, `foreign.py` and `fresh.py`: times as texts.
NEWCOMERS_WORDS = {
    OURS: {"hour_label": "to_char(h.slot, '%a %H:00')", "due_label": "to_char(r.due, '%d.%m.')"},
    DUCK: {"hour_label": "strftime(h.slot, '%a %H:00')", "due_label": "strftime(r.due, '%d.%m.')"},
}


class AskedByNewcomers(AskedAfresh):
    """A statement for the stores of `STORES`, with the words of `NEWCOMERS_WORDS` and those of `fresh.py`."""

    own_words = NEWCOMERS_WORDS


STATEMENTS = (
    # All tenants, windows within each of them.
    AskedByNewcomers(
        "event with which each tenant passes its first hundred thousand tokens",
        """SELECT tenant_id, timestamp, event_id, user_id, endpoint, place, so_far FROM (
             SELECT tenant_id, timestamp, event_id, user_id, {endpoint} AS endpoint, {tokens} AS tokens,
               row_number() OVER running AS place, sum({tokens}) OVER running AS so_far
             FROM events
             WINDOW running AS (PARTITION BY tenant_id ORDER BY timestamp, event_id ROWS UNBOUNDED PRECEDING)) AS totals
           WHERE so_far >= 100000 AND so_far - tokens < 100000
           ORDER BY timestamp, tenant_id LIMIT 2000""",
    ),
    AskedByNewcomers(
        "days on which the mean of a tenant's week crosses that of its month",
        """WITH daily AS (SELECT tenant_id, {day} AS day, count(*) AS n FROM events GROUP BY 1, 2),
           smoothed AS (
             SELECT tenant_id, day, n, row_number() OVER (PARTITION BY tenant_id ORDER BY day) AS place,
               avg(n) OVER (PARTITION BY tenant_id ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week_mean,
               avg(n) OVER (PARTITION BY tenant_id ORDER BY day ROWS BETWEEN 27 PRECEDING AND CURRENT ROW) AS month_mean
             FROM daily),
           compared AS (
             SELECT tenant_id, day, n, week_mean, month_mean,
               CASE WHEN week_mean > month_mean THEN 1 ELSE 0 END AS above
             FROM smoothed WHERE place >= 28),
           followed AS (
             SELECT tenant_id, day, n, week_mean, month_mean, above,
               lag(above) OVER (PARTITION BY tenant_id ORDER BY day) AS above_before
             FROM compared)
           SELECT day, tenant_id, CASE WHEN above = 1 THEN 'up' ELSE 'down' END AS direction, n, week_mean, month_mean
           FROM followed WHERE above <> above_before ORDER BY day DESC, tenant_id LIMIT 3000""",
    ),
    AskedByNewcomers(
        "longest growth of daily users without a break of each tenant",
        """WITH daily AS (
             SELECT tenant_id, {day} AS day, count(DISTINCT user_id) AS users, count(*) AS n FROM events GROUP BY 1, 2),
           marked AS (
             SELECT tenant_id, day, users, n,
               CASE WHEN users > lag(users) OVER (PARTITION BY tenant_id ORDER BY day) THEN 0 ELSE 1 END AS breaks
             FROM daily),
           numbered AS (
             SELECT tenant_id, day, users, n, sum(breaks) OVER (PARTITION BY tenant_id ORDER BY day
               ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS climb
             FROM marked),
           climbs AS (
             SELECT tenant_id, climb, count(*) AS days, min(day) AS from_day, max(day) AS to_day,
               min(users) AS users_at_first, max(users) AS users_at_last, sum(n) AS n
             FROM numbered GROUP BY tenant_id, climb)
           SELECT tenant_id, days, from_day, to_day, users_at_first, users_at_last, n FROM (
             SELECT *, row_number() OVER (PARTITION BY tenant_id ORDER BY days DESC, from_day) AS place
             FROM climbs) AS placed
           WHERE place = 1 ORDER BY days DESC, tenant_id LIMIT 1000""",
    ),
    AskedByNewcomers(
        "usual and longest pauses of each tenant by event",
        """WITH paced AS (
             SELECT tenant_id, event_name, extract(epoch FROM timestamp - lag(timestamp) OVER (
               PARTITION BY tenant_id, event_name ORDER BY timestamp, event_id)) AS pause
             FROM events)
           SELECT tenant_id, event_name, count(pause) AS pauses, median(pause) AS usual,
             percentile_cont(0.99) WITHIN GROUP (ORDER BY pause) AS long_pause, max(pause) AS longest,
             max(pause) / greatest(median(pause), 1.0) AS times_the_usual,
             rank() OVER (PARTITION BY tenant_id ORDER BY max(pause) DESC) AS place
           FROM paced GROUP BY tenant_id, event_name HAVING count(pause) >= 10
           ORDER BY longest DESC, tenant_id, event_name LIMIT 3000""",
    ),
    AskedByNewcomers(
        "sessions of each tenant, those of one event, and how long they last",
        """WITH marked AS (
             SELECT tenant_id, user_id, timestamp, event_id, event_name,
               CASE WHEN timestamp <= lag(timestamp) OVER w + INTERVAL '45 minutes' THEN 0 ELSE 1 END AS begins
             FROM events WINDOW w AS (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id)),
           numbered AS (
             SELECT tenant_id, user_id, timestamp, event_name, sum(begins) OVER (PARTITION BY tenant_id, user_id
               ORDER BY timestamp, event_id ROWS UNBOUNDED PRECEDING) AS session_number
             FROM marked),
           sessions AS (
             SELECT tenant_id, user_id, session_number, count(*) AS n,
               count(*) FILTER (WHERE event_name = 'export') AS exports,
               extract(epoch FROM max(timestamp) - min(timestamp)) / 60 AS minutes
             FROM numbered GROUP BY tenant_id, user_id, session_number)
           SELECT tenant_id, count(*) AS sessions, count(DISTINCT user_id) AS users,
             count(*) FILTER (WHERE n = 1) * 1.0 / count(*) AS of_one_event,
             count(*) FILTER (WHERE exports > 0) AS with_export, avg(n) AS mean_events, max(minutes) AS longest,
             percentile_cont(0.9) WITHIN GROUP (ORDER BY minutes) AS long_minutes
           FROM sessions GROUP BY tenant_id ORDER BY tenant_id LIMIT 2000""",
    ),
    AskedByNewcomers(
        "tenants by users whose last country is not their first",
        """WITH ends AS (
             SELECT tenant_id, user_id, first_value({country}) OVER oldest AS first_country,
               first_value({country}) OVER newest AS last_country, row_number() OVER oldest AS place,
               count(*) OVER everything AS n
             FROM events
             WINDOW oldest AS (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id),
               newest AS (PARTITION BY tenant_id, user_id ORDER BY timestamp DESC, event_id DESC),
               everything AS (PARTITION BY tenant_id, user_id))
           SELECT tenant_id, count(*) AS users, count(*) FILTER (WHERE first_country <> last_country) AS moved,
             count(*) FILTER (WHERE first_country <> last_country) * 1.0 / count(*) AS share,
             count(DISTINCT last_country) AS countries, sum(n) AS n, max(n) AS most
           FROM ends WHERE place = 1 GROUP BY tenant_id HAVING count(*) >= 5
           ORDER BY moved DESC, tenant_id LIMIT 1000""",
    ),
    AskedByNewcomers(
        "five leading endpoints of each tenant and where they stood four weeks before",
        """WITH ranked AS (
             SELECT tenant_id, {endpoint} AS endpoint, count(*) AS calls, count(DISTINCT user_id) AS users,
               row_number() OVER (PARTITION BY tenant_id ORDER BY count(*) DESC, {endpoint}) AS place
             FROM events WHERE event_name = 'api_call' AND timestamp >= {ago_28} AND timestamp < {ago_0}
             GROUP BY tenant_id, {endpoint}),
           ranked_before AS (
             SELECT tenant_id, {endpoint} AS endpoint, count(*) AS calls,
               row_number() OVER (PARTITION BY tenant_id ORDER BY count(*) DESC, {endpoint}) AS place
             FROM events WHERE event_name = 'api_call' AND timestamp >= {ago_56} AND timestamp < {ago_28}
             GROUP BY tenant_id, {endpoint})
           SELECT r.tenant_id, r.place, r.endpoint, r.calls, r.users, coalesce(b.place, 0) AS place_before,
             coalesce(b.calls, 0) AS calls_before,
             CASE WHEN b.place IS NULL THEN 'new' WHEN b.place > r.place THEN 'up' WHEN b.place < r.place THEN 'down'
                  ELSE 'same' END AS direction
           FROM ranked r LEFT JOIN ranked_before b ON b.tenant_id = r.tenant_id AND b.endpoint = r.endpoint
           WHERE r.place <= 5 ORDER BY r.tenant_id, r.place LIMIT 5000""",
    ),
    AskedByNewcomers(
        "how many endpoints carry four fifths of the calls of each tenant",
        """WITH placed AS (
             SELECT tenant_id, {endpoint} AS endpoint, count(*) AS calls,
               sum(count(*)) OVER (PARTITION BY tenant_id ORDER BY count(*) DESC, {endpoint} ROWS UNBOUNDED PRECEDING)
                 AS calls_so_far,
               sum(count(*)) OVER (PARTITION BY tenant_id) AS calls_of_tenant
             FROM events WHERE event_name = 'api_call' GROUP BY tenant_id, {endpoint})
           SELECT tenant_id, count(*) AS endpoints, max(calls_of_tenant) AS calls_of_all,
             count(*) FILTER (WHERE (calls_so_far - calls) * 2 < calls_of_tenant) AS for_half,
             count(*) FILTER (WHERE (calls_so_far - calls) * 5 < calls_of_tenant * 4) AS for_four_fifths,
             max(calls) * 1.0 / max(calls_of_tenant) AS largest_share
           FROM placed GROUP BY tenant_id ORDER BY for_four_fifths, tenant_id LIMIT 1000""",
    ),
    AskedByNewcomers(
        "failure rates of users by where they stand within their tenant",
        """WITH people AS (
             SELECT tenant_id, user_id, count(*) AS n, sum({tokens}) AS tokens,
               count(*) FILTER (WHERE {status} <> 'ok') AS failed
             FROM events GROUP BY tenant_id, user_id),
           standing AS (
             SELECT tenant_id, n, tokens, failed, count(*) OVER (PARTITION BY tenant_id) AS users_of_tenant,
               percent_rank() OVER (PARTITION BY tenant_id ORDER BY tokens) AS stands_at,
               cume_dist() OVER (PARTITION BY tenant_id ORDER BY n DESC) AS busy_part
             FROM people)
           SELECT least(floor(stands_at * 10), 9.0) AS tenth, count(*) AS users, count(DISTINCT tenant_id) AS tenants,
             sum(n) AS n, sum(failed) * 1.0 / sum(n) AS rate, sum(tokens) / sum(n) AS tokens_of_event,
             count(*) FILTER (WHERE busy_part <= 0.1) AS among_the_busiest
           FROM standing WHERE users_of_tenant >= 20 GROUP BY 1 ORDER BY 1""",
    ),
    AskedByNewcomers(
        "page views by week when a user and a page count once an hour",
        """WITH numbered AS (
             SELECT {week} AS week, {plan} AS plan, {tokens} AS tokens,
               row_number() OVER (PARTITION BY tenant_id, user_id, {endpoint}, date_trunc('hour', timestamp)
                 ORDER BY timestamp, event_id) AS repetition
             FROM events WHERE event_name = 'page_view')
           SELECT week, plan, count(*) AS views, count(*) FILTER (WHERE repetition = 1) AS counted,
             count(*) FILTER (WHERE repetition > 1) * 1.0 / count(*) AS repeated, max(repetition) AS most,
             sum(CASE WHEN repetition = 1 THEN tokens ELSE 0 END) AS tokens_counted
           FROM numbered GROUP BY week, plan ORDER BY week, plan""",
    ),
    AskedByNewcomers(
        "what follows a timeout in the next two calls of the user to that model",
        """WITH steps AS (
             SELECT {model} AS model, {status} AS status, timestamp, lead({status}) OVER w AS second_status,
               lead({status}, 2) OVER w AS third_status, lead(timestamp) OVER w AS second_at,
               lead(timestamp, 2) OVER w AS third_at, lead({endpoint}) OVER w = {endpoint} AS same_endpoint
             FROM events WHERE event_name = 'api_call'
             WINDOW w AS (PARTITION BY tenant_id, user_id, {model} ORDER BY timestamp, event_id))
           SELECT model, count(*) AS timeouts, count(second_at) AS went_on,
             count(*) FILTER (WHERE second_at <= timestamp + INTERVAL '1 day') AS within_a_day,
             count(*) FILTER (WHERE same_endpoint) AS same_endpoint_again,
             count(*) FILTER (WHERE second_status = 'ok') AS ok_at_once,
             count(*) FILTER (WHERE second_status <> 'ok' AND third_status = 'ok') AS ok_at_second_try,
             count(*) FILTER (WHERE second_status <> 'ok' AND third_status <> 'ok') AS three_failures,
             coalesce(median(extract(epoch FROM third_at - timestamp))
               FILTER (WHERE second_status <> 'ok' AND third_status = 'ok'), 0.0) / 3600 AS hours_to_second_try
           FROM steps WHERE status = 'timeout' GROUP BY model ORDER BY model""",
    ),
    AskedByNewcomers(
        "moves of users between the quartiles of their tenant in four weeks",
        """WITH spend AS (
             SELECT tenant_id, user_id, CASE WHEN timestamp >= {ago_28} THEN 'now' ELSE 'before' END AS period,
               sum({tokens}) AS tokens
             FROM events WHERE timestamp >= {ago_56} AND timestamp < {ago_0} GROUP BY 1, 2, 3),
           placed AS (
             SELECT tenant_id, user_id, period, tokens,
               ntile(4) OVER (PARTITION BY tenant_id, period ORDER BY tokens, user_id) AS quartile,
               count(*) OVER (PARTITION BY tenant_id, period) AS users
             FROM spend),
           users_now AS (
             SELECT tenant_id, user_id, tokens, quartile FROM placed WHERE period = 'now' AND users >= 8),
           users_before AS (
             SELECT tenant_id, user_id, tokens, quartile FROM placed WHERE period = 'before' AND users >= 8),
           moves AS (
             SELECT coalesce(b.quartile, 0) AS quartile_before, coalesce(n.quartile, 0) AS quartile_now,
               coalesce(n.tokens, 0.0) - coalesce(b.tokens, 0.0) AS more_tokens
             FROM users_now n FULL JOIN users_before b ON b.tenant_id = n.tenant_id AND b.user_id = n.user_id)
           SELECT quartile_before, quartile_now, count(*) AS users, sum(more_tokens) AS more_tokens,
             count(*) * 1.0 / sum(count(*)) OVER (PARTITION BY quartile_before) AS share
           FROM moves GROUP BY quartile_before, quartile_now ORDER BY quartile_before, quartile_now""",
    ),
    AskedByNewcomers(
        "return of users in brackets of days by the source and month they began with",
        """WITH dated AS (
             SELECT tenant_id, user_id, {day} AS day, first_value({source}) OVER w AS first_source,
               first_value({day}) OVER w AS first_day
             FROM events WINDOW w AS (PARTITION BY tenant_id, user_id ORDER BY timestamp, event_id)),
           people AS (
             SELECT tenant_id, user_id, first_source, first_day,
               max(CASE WHEN day = first_day + INTERVAL '1 day' THEN 1 ELSE 0 END) AS on_day_1,
               max(CASE WHEN day BETWEEN first_day + INTERVAL '2 days' AND first_day + INTERVAL '6 days' THEN 1
                        ELSE 0 END) AS on_days_2_to_6,
               max(CASE WHEN day BETWEEN first_day + INTERVAL '7 days' AND first_day + INTERVAL '13 days' THEN 1
                        ELSE 0 END) AS on_days_7_to_13,
               max(CASE WHEN day BETWEEN first_day + INTERVAL '14 days' AND first_day + INTERVAL '27 days' THEN 1
                        ELSE 0 END) AS on_days_14_to_27,
               max(CASE WHEN day >= first_day + INTERVAL '28 days' THEN 1 ELSE 0 END) AS later
             FROM dated GROUP BY tenant_id, user_id, first_source, first_day)
           SELECT first_source, date_trunc('month', first_day) AS cohort, count(*) AS users, sum(on_day_1) AS day_1,
             sum(on_days_2_to_6) AS days_2_to_6, sum(on_days_7_to_13) AS days_7_to_13,
             sum(on_days_14_to_27) AS days_14_to_27, sum(later) AS days_later, sum(later) * 1.0 / count(*) AS stayed
           FROM people GROUP BY first_source, date_trunc('month', first_day) ORDER BY first_source, cohort""",
    ),
    # All tenants otherwise.
    AskedByNewcomers(
        "newest three exports of each tenant above its 95th percentile",
        """WITH usual AS (
             SELECT tenant_id, percentile_cont(0.95) WITHIN GROUP (ORDER BY {tokens}) AS large FROM events
             WHERE event_name = 'export' GROUP BY tenant_id)
           SELECT tenant_id, place, timestamp, event_id, user_id, tokens, large, tokens / large AS times FROM (
             SELECT e.tenant_id, e.timestamp, e.event_id, e.user_id, e.{tokens} AS tokens, u.large,
               row_number() OVER (PARTITION BY e.tenant_id ORDER BY e.timestamp DESC, e.event_id) AS place
             FROM events e JOIN usual u ON u.tenant_id = e.tenant_id
             WHERE e.event_name = 'export' AND e.{tokens} > u.large + 0.001) AS found
           WHERE place <= 3 ORDER BY tenant_id, place LIMIT 3000""",
    ),
    AskedByNewcomers(
        "sets of sources that users come from",
        """SELECT listed, sources, count(*) AS users, count(DISTINCT tenant_id) AS tenants, sum(n) AS n,
             sum(count(*)) OVER (ORDER BY count(*) DESC, listed ROWS UNBOUNDED PRECEDING) * 1.0
               / sum(count(*)) OVER () AS share_so_far
           FROM (
             SELECT tenant_id, user_id, count(*) AS n, count(DISTINCT {source}) AS sources,
               string_agg(DISTINCT CAST({source} AS VARCHAR), '+' ORDER BY CAST({source} AS VARCHAR)) AS listed
             FROM events WHERE event_name <> 'export' GROUP BY tenant_id, user_id) AS people
           GROUP BY listed, sources ORDER BY users DESC, listed""",
    ),
    AskedByNewcomers(
        "tokens of countries with a column for each month",
        """WITH months AS (
             SELECT {country} AS country, sum({tokens}) AS spent,
               coalesce(sum({tokens}) FILTER (WHERE extract(month FROM timestamp) = 8), 0) AS august,
               coalesce(sum({tokens}) FILTER (WHERE extract(month FROM timestamp) = 9), 0) AS september,
               coalesce(sum({tokens}) FILTER (WHERE extract(month FROM timestamp) = 10), 0) AS october,
               coalesce(sum({tokens}) FILTER (WHERE extract(month FROM timestamp) = 11), 0) AS november,
               max({tokens}) FILTER (WHERE {status} = 'ok') AS most
             FROM events WHERE {plan} IN ('team', 'enterprise') AND event_name IN ('api_call', 'export')
             GROUP BY {country} HAVING count(*) >= 20)
           SELECT country, spent, august, september, october, november, most,
             coalesce(october / nullif(september, 0) - 1, 0) AS change, spent / sum(spent) OVER () AS share
           FROM months ORDER BY spent DESC, country""",
    ),
    AskedByNewcomers(
        "shapes of the ids of users by source",
        """SELECT translate(user_id, '0123456789', '##########') AS shape, rpad(upper({source}), 8, '.') AS origin,
             count(*) AS n, count(DISTINCT user_id) AS users, min(user_id) AS least_id,
             sum(length(user_id) - length(replace(user_id, '0', ''))) AS zeros,
             max(concat_ws(':', right({endpoint}, 2), substr({country}, 2))) AS greatest_code
           FROM events WHERE event_name IN ('page_view', 'export')
           GROUP BY 1, 2 ORDER BY n DESC, shape, origin""",
    ),
    AskedByNewcomers(
        "credits that tenants are owed for the availability of last month",
        """WITH daily AS (
             SELECT tenant_id, {day} AS day, count(*) AS calls,
               count(*) FILTER (WHERE {status} = 'timeout') AS timeouts
             FROM events
             WHERE event_name = 'api_call' AND timestamp >= date_trunc('month', {ago_0}) - INTERVAL '1 month'
               AND timestamp < date_trunc('month', {ago_0})
             GROUP BY 1, 2),
           months AS (
             SELECT tenant_id, sum(calls) AS calls, sum(timeouts) AS timeouts,
               count(*) FILTER (WHERE timeouts * 20 > calls) AS bad_days,
               1.0 - sum(timeouts) * 1.0 / sum(calls) AS availability
             FROM daily GROUP BY tenant_id HAVING sum(calls) >= 20)
           SELECT m.tenant_id, m.calls, m.timeouts, m.bad_days, m.availability, c.title,
             m.calls * c.credit / 100.0 AS calls_credited
           FROM months m JOIN (VALUES (0.0, 0.95, 'half', 50), (0.95, 0.97, 'a quarter', 25),
               (0.97, 0.98, 'a tenth', 10), (0.98, 0.985, 'a twentieth', 5)) AS c (from_share, to_share, title, credit)
             ON m.availability >= c.from_share AND m.availability < c.to_share
           ORDER BY calls_credited DESC, m.tenant_id LIMIT 500""",
    ),
    AskedByNewcomers(
        "users who came on five days in a row and stayed away on the sixth",
        """SELECT p.tenant_id, p.user_id, p.n, p.tokens, p.last_seen,
             CASE WHEN p.failed * 10 >= p.n THEN 'after failures' ELSE 'without a reason' END AS guess
           FROM (
             SELECT tenant_id, user_id, count(*) AS n, sum({tokens}) AS tokens, max(timestamp) AS last_seen,
               count(*) FILTER (WHERE {status} <> 'ok') AS failed
             FROM events WHERE timestamp >= {ago_6} AND timestamp < {ago_1}
             GROUP BY tenant_id, user_id HAVING count(DISTINCT {day}) = 5) AS p
           WHERE NOT EXISTS (
             SELECT 1 FROM events a WHERE a.tenant_id = p.tenant_id AND a.user_id = p.user_id
               AND a.timestamp >= {ago_1} AND a.timestamp < {ago_0})
           ORDER BY p.n DESC, p.tenant_id, p.user_id LIMIT 500""",
    ),
    AskedByNewcomers(
        "checks of the data of a week",
        """WITH week_events AS (
             SELECT event_id, tenant_id, user_id, event_name, timestamp, {country} AS country, {endpoint} AS endpoint,
               {latency_ms} AS latency_ms, {tokens} AS tokens
             FROM events WHERE timestamp >= {ago_7} AND timestamp < {ago_0}),
           checks AS (
             SELECT 1 AS place, 'no tokens' AS title, count(*) AS n, min(event_id) AS example
             FROM week_events WHERE tokens = 0
             UNION ALL
             SELECT 2, 'latency above two seconds', count(*), min(event_id) FROM week_events WHERE latency_ms > 2000
             UNION ALL
             SELECT 3, 'user of another tenant', count(*), min(event_id) FROM week_events
             WHERE split_part(user_id, '-', 2) <> split_part(tenant_id, '-', 2)
             UNION ALL
             SELECT 4, 'country that is no code', count(*), min(event_id) FROM week_events
             WHERE NOT (country ~ '^C[0-9][0-9]$')
             UNION ALL
             SELECT 5, 'endpoint of another version', count(*), min(event_id) FROM week_events
             WHERE endpoint NOT LIKE '/v1/%'
             UNION ALL
             SELECT 6, 'tokens that are no whole number', count(*), min(event_id) FROM week_events
             WHERE tokens <> floor(tokens)
             UNION ALL
             SELECT 7, 'id that is no UUID', count(*), min(event_id) FROM week_events
             WHERE length(event_id) <> 36 OR substr(event_id, 15, 1) <> '4'
             UNION ALL
             SELECT 8, 'two events of a user in a second', coalesce(sum(n), 0), min(example) FROM (
               SELECT count(*) AS n, min(event_id) AS example FROM week_events
               GROUP BY tenant_id, user_id, date_trunc('second', timestamp) HAVING count(*) > 1) AS doubled)
           SELECT place, title, n, coalesce(example, 'none') AS example,
             n * 1.0 / (SELECT count(*) FROM week_events) AS share,
             CASE WHEN n = 0 THEN 'passed' ELSE 'to look at' END AS verdict
           FROM checks ORDER BY place""",
    ),
    AskedByNewcomers(
        "use in the week before each monthly renewal",
        """WITH begun AS (
             SELECT tenant_id, date_trunc('day', min(timestamp)) AS since FROM events GROUP BY tenant_id),
           renewals AS (
             SELECT tenant_id, 1 AS term, since + INTERVAL '1 month' AS due FROM begun
             UNION ALL
             SELECT tenant_id, 2, since + INTERVAL '2 months' FROM begun)
           SELECT r.tenant_id, r.term, r.due, {due_label} AS label, extract(doy FROM r.due) AS day_of_year,
             date_trunc('week', r.due) + INTERVAL '4 days' AS friday, count(e.event_id) AS n,
             count(DISTINCT e.user_id) AS users, coalesce(sum(e.{tokens}), 0) AS tokens
           FROM renewals r LEFT JOIN events e ON e.tenant_id = r.tenant_id
             AND e.timestamp >= r.due - INTERVAL '7 days' AND e.timestamp < r.due
           GROUP BY r.tenant_id, r.term, r.due ORDER BY r.tenant_id, r.term LIMIT 2000""",
    ),
    AskedByNewcomers(
        "hours of the week outside of what is usual for that hour",
        """WITH hourly AS (
             SELECT date_trunc('hour', timestamp) AS slot, CAST(count(*) AS DOUBLE) AS n,
               count(DISTINCT tenant_id) AS tenants
             FROM events WHERE timestamp >= {ago_35} AND timestamp < {ago_0} GROUP BY 1),
           usual AS (
             SELECT extract(hour FROM slot) AS hour_of_day, median(n) AS middle,
               percentile_cont(0.1) WITHIN GROUP (ORDER BY n) AS low,
               percentile_cont(0.9) WITHIN GROUP (ORDER BY n) AS high
             FROM hourly WHERE slot < {ago_7} GROUP BY 1)
           SELECT h.slot, {hour_label} AS label, h.n, h.tenants, u.low, u.middle, u.high,
             CASE WHEN h.n < u.low THEN 'low' ELSE 'high' END AS judgement, h.n / u.middle - 1 AS away
           FROM hourly h JOIN usual u ON u.hour_of_day = extract(hour FROM h.slot)
           WHERE h.slot >= {ago_7} AND (h.n < u.low - 0.001 OR h.n > u.high + 0.001)
           ORDER BY h.slot""",
    ),
    # One tenant or a few.
    AskedByNewcomers(
        "users of a tenant who act right after each other",
        """WITH sequenced AS (
             SELECT user_id, timestamp, lag(user_id) OVER w AS user_before, lag(timestamp) OVER w AS seen_before
             FROM events WHERE tenant_id = 'tenant-150' WINDOW w AS (ORDER BY timestamp, event_id))
           SELECT user_before, user_id, count(*) AS times, max(timestamp) AS newest,
             min(extract(epoch FROM timestamp - seen_before)) AS soonest,
             count(*) * 1.0 / sum(count(*)) OVER (PARTITION BY user_before) AS share
           FROM sequenced WHERE user_id <> user_before AND timestamp - seen_before <= INTERVAL '2 hours'
           GROUP BY user_before, user_id ORDER BY times DESC, user_before, user_id LIMIT 200""",
    ),
    AskedByNewcomers(
        "users by the endpoint of their first call and what they do in a fortnight",
        """WITH firsts AS (
             SELECT DISTINCT ON (user_id) user_id, timestamp AS since, {endpoint} AS endpoint FROM events
             WHERE tenant_id = 'tenant-9' AND event_name = 'api_call' ORDER BY user_id, timestamp, event_id)
           SELECT f.endpoint, count(DISTINCT e.user_id) AS users, count(*) AS n,
             count(DISTINCT e.user_id) FILTER (WHERE e.event_name = 'export') AS exporters,
             count(DISTINCT e.{endpoint}) AS endpoints, sum(e.{tokens}) / count(DISTINCT e.user_id) AS tokens_of_user,
             max(extract(epoch FROM e.timestamp - f.since)) / 86400 AS last_day
           FROM firsts f JOIN events e ON e.user_id = f.user_id AND e.timestamp >= f.since
             AND e.timestamp < f.since + INTERVAL '14 days'
           WHERE e.tenant_id = 'tenant-9' AND f.since < {ago_14}
           GROUP BY f.endpoint HAVING count(DISTINCT e.user_id) >= 3 ORDER BY users DESC, f.endpoint""",
    ),
    AskedByNewcomers(
        "latency by part of the day on the clock of the caller",
        """WITH calls AS (
             SELECT tenant_id, {latency_ms} AS latency_ms, {tokens} AS tokens,
               CASE WHEN {country} < 'C20' THEN 'America' WHEN {country} < 'C50' THEN 'Europe'
                    ELSE 'Asia' END AS region,
               extract(hour FROM CASE
                 WHEN {country} < 'C20' THEN timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'America/Los_Angeles'
                 WHEN {country} < 'C50' THEN timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Warsaw'
                 ELSE timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Kolkata' END) AS local_hour
             FROM events WHERE tenant_id IN ('tenant-2', 'tenant-30', 'tenant-300') AND event_name = 'api_call')
           SELECT region, CASE WHEN local_hour < 6 THEN '1 night' WHEN local_hour < 12 THEN '2 morning'
               WHEN local_hour < 18 THEN '3 afternoon' ELSE '4 evening' END AS part_of_day,
             count(*) AS n, count(DISTINCT tenant_id) AS tenants, sum(tokens) AS tokens,
             percentile_cont(0.5) WITHIN GROUP (ORDER BY latency_ms) AS p50,
             percentile_cont(0.95) WITHIN GROUP (ORDER BY latency_ms) AS p95
           FROM calls GROUP BY 1, 2 ORDER BY 1, 2""",
    ),
    AskedByNewcomers(
        "newest failures of ten tenants at a list of endpoints",
        """SELECT timestamp, event_id, concat(tenant_id, '/', user_id) AS account, {endpoint} AS endpoint,
             {status} AS status, {source} AS source,
             CASE WHEN {latency_ms} > 1000 THEN 'very slow' WHEN {latency_ms} > 250 THEN 'slow'
                  ELSE 'quick' END AS pace,
             {latency_ms} AS latency_ms
           FROM events
           WHERE tenant_id LIKE 'tenant-9_' AND event_name = 'api_call' AND {status} IN ('error', 'timeout')
             AND {endpoint} IN ('/v1/resource/2', '/v1/resource/3', '/v1/resource/5', '/v1/resource/7',
               '/v1/resource/11', '/v1/resource/13', '/v1/resource/17', '/v1/resource/19', '/v1/resource/23',
               '/v1/resource/29', '/v1/resource/31', '/v1/resource/37')
             AND {country} NOT LIKE 'C_0' AND user_id NOT LIKE '%-0'
           ORDER BY timestamp DESC, event_id LIMIT 100""",
    ),
    AskedByNewcomers(
        "users who know three features, never timed out there, and export",
        """SELECT user_id, count(*) AS calls, max({plan}) AS plan, max(timestamp) AS last_call,
             count(*) FILTER (WHERE {endpoint} IN ('/v1/resource/0', '/v1/resource/1', '/v1/resource/2')) AS of_three,
             count(DISTINCT {endpoint}) AS endpoints
           FROM events WHERE tenant_id = 'tenant-2' AND event_name = 'api_call'
           GROUP BY user_id
           HAVING bool_or({endpoint} = '/v1/resource/0') AND bool_or({endpoint} = '/v1/resource/1')
             AND bool_or({endpoint} = '/v1/resource/2')
             AND NOT bool_or({status} = 'timeout'
               AND {endpoint} IN ('/v1/resource/0', '/v1/resource/1', '/v1/resource/2'))
             AND user_id IN (
               SELECT user_id FROM events
               WHERE tenant_id = 'tenant-2' AND event_name = 'export' AND timestamp >= {month})
           ORDER BY calls DESC, user_id LIMIT 200""",
    ),
    AskedByNewcomers(
        "users who met five failures within ten events",
        """SELECT tenant_id, user_id, max(failed_of_ten) AS most, count(*) AS occasions, min(timestamp) AS first_met,
             max(timestamp) AS last_met
           FROM (
             SELECT tenant_id, user_id, timestamp,
               count(*) FILTER (WHERE {status} <> 'ok') OVER (PARTITION BY tenant_id, user_id
                 ORDER BY timestamp, event_id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS failed_of_ten
             FROM events WHERE tenant_id IN ('tenant-1', 'tenant-2', 'tenant-4', 'tenant-8')) AS paced
           WHERE failed_of_ten >= 5
           GROUP BY tenant_id, user_id ORDER BY most DESC, occasions DESC, tenant_id, user_id LIMIT 300""",
    ),
    AskedByNewcomers(
        "largest exports of three tenants and the calls of the day before them",
        """WITH large AS (
             SELECT tenant_id, user_id, event_id, timestamp AS exported_at, {tokens} AS tokens FROM events
             WHERE tenant_id IN ('tenant-1', 'tenant-6', 'tenant-36') AND event_name = 'export' AND {status} = 'ok'
             ORDER BY {tokens} DESC, event_id LIMIT 25)
           SELECT l.event_id, l.tenant_id, l.user_id, l.exported_at, l.tokens, count(c.event_id) AS calls,
             coalesce(sum(c.{tokens}), 0) AS tokens_of_calls, coalesce(max(c.{latency_ms}), 0) AS slowest,
             coalesce(string_agg(split_part(c.{endpoint}, '/', 4), ' > ' ORDER BY c.timestamp, c.event_id), 'none')
               AS resources
           FROM large l LEFT JOIN events c ON c.tenant_id = l.tenant_id AND c.user_id = l.user_id
             AND c.event_name = 'api_call' AND c.timestamp < l.exported_at
             AND c.timestamp >= l.exported_at - INTERVAL '1 day'
           GROUP BY l.event_id, l.tenant_id, l.user_id, l.exported_at, l.tokens
           ORDER BY l.tokens DESC, l.event_id""",
    ),
    AskedByNewcomers(
        "people who have an account at each of two tenants",
        """WITH one AS (
             SELECT split_part(user_id, '-', 3) AS person, count(*) AS n, sum({tokens}) AS tokens,
               max(timestamp) AS last_seen
             FROM events WHERE tenant_id = 'tenant-10' GROUP BY 1),
           two AS (
             SELECT split_part(user_id, '-', 3) AS person, count(*) AS n, sum({tokens}) AS tokens,
               max(timestamp) AS last_seen
             FROM events WHERE tenant_id = 'tenant-11' GROUP BY 1)
           SELECT 'person ' || o.person AS who, o.n AS n_at_one, t.n AS n_at_two, o.n - t.n AS difference,
             o.tokens + t.tokens AS tokens, greatest(o.last_seen, t.last_seen) AS last_seen,
             abs(extract(epoch FROM o.last_seen - t.last_seen)) / 3600 AS hours_apart
           FROM one o JOIN two t ON t.person = o.person
           WHERE o.n >= 2 AND t.n >= 2 ORDER BY o.n + t.n DESC, who LIMIT 200""",
    ),
)
