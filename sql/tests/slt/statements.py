"""The statements by file. A pair of texts and `None`: what we are asked, what DuckDB is asked. With rows: worked out by hand."""

M = "string_props['model']"
P = "string_props['plan']"
MS = "numeric_props['ms']"
COST = "numeric_props['cost']"

AGGREGATES = (
    "count(*)", f"count({MS})", f"count(DISTINCT user_id)", f"sum({MS})", f"avg({MS})", f"min({MS})", f"max({MS})", f"median({MS})", f"stddev({MS})", f"stddev_pop({MS})",
    "min(tenant_id)", "max(user_id)", "min(timestamp)", f"max({M})", f"bool_and({MS} > 10)", f"bool_or({MS} > 249)", f"count(*) FILTER (WHERE {MS} > 100)", f"sum({COST})", f"corr({MS}, {MS} * 2 + 1)", f"count(DISTINCT {P})",
)  # fmt: skip
GROUPS = ("tenant_id", "event_name", P, M, "date_trunc('day', timestamp)", "user_id IS NULL")
CONDITIONS = (
    "tenant_id = 't1'", "tenant_id <> 't1'", "tenant_id IN ('t1', 't2', 'none')", "tenant_id NOT IN ('t1', 't2')", "event_name = 'call' AND tenant_id = 't2'", "event_name = 'call' OR tenant_id = 't2'",
    "timestamp >= '2026-11-15'", "timestamp < TIMESTAMP '2026-11-15 12:34:56'", "timestamp BETWEEN '2026-11-14' AND '2026-11-16'", "timestamp = TIMESTAMP '2026-11-20 10:17:36.789'", "timestamp > TIMESTAMP '2026-11-20 10:17:36.788'", "timestamp >= '2026-11-15' AND timestamp < '2026-11-16' AND tenant_id = 't0'",
    "DATE '2026-11-15' < timestamp", "CAST(timestamp AS DATE) = DATE '2026-11-17'", f"{P} = 'pro'", f"{P} <> 'pro'", f"{P} IN ('pro', 'team')", f"{P} IN ('free', 'pro', 'team', 'none', 'x')", f"{P} = 'pro' OR {P} = 'team'", f"{P} IS NULL", f"{P} IS NOT NULL", f"{M} = ''", f"{M} = 'it''s'", f"{M} = 'Größe'", f"{M} LIKE 'a much%'", f"{M} LIKE '%e%'",
    f"{M} ILIKE 'LARGE'", f"{M} > 'l'", f"{MS} > 100", f"{MS} >= 100", f"{MS} < 3.25", f"{MS} <= 3.25", f"{MS} = 12.5", f"{MS} <> 12.5", f"{MS} BETWEEN 10 AND 20", f"{MS} IN (1, 2.5, 12.5)", f"{MS} = 0", f"{MS} > 0", f"{MS} IS NULL", f"{COST} < 0", f"{COST} <= -1.5 AND {MS} > 5", f"{MS} > 100 OR {COST} < -1", f"NOT ({MS} > 100)", f"{MS} > {COST}", f"{P} = {M}",
    "user_id IS NULL", "user_id = 'u5'", "user_id LIKE 'u1_'", "event_id IS NULL AND user_id IS NOT NULL", "event_id = 'e77'", "1 = 1", "1 = 0", "NULL", "tenant_id = event_name", "length(user_id) = 2", f"coalesce({P}, 'none') = 'none'", f"CASE WHEN {MS} > 50 THEN {P} = 'pro' ELSE {P} IS NULL END",
    "string_props['nobody'] IS NULL", "numeric_props['nobody'] > 1", "string_props['nobody'] = 'x'", f"({MS} > 5) IS NOT TRUE", f"{P} IS DISTINCT FROM 'pro'", f"{P} IS NOT DISTINCT FROM NULL",
)  # fmt: skip

ROW = "tenant_id, event_name, timestamp, user_id"
TIMES = ("minute", "hour", "day", "week", "month", "quarter", "year")
FIELDS = ("year", "month", "day", "hour", "minute", "doy", "dow", "week", "quarter")

STATEMENTS = {
    "aggregates": [f"SELECT {a} FROM events" for a in AGGREGATES]
    + [f"SELECT {g}, {a} FROM events GROUP BY {g}" for g in GROUPS for a in AGGREGATES[: 12 if g != M else 6]]
    + [
        f"SELECT {P}, {M}, count(*), sum({MS}) FROM events GROUP BY 1, 2",
        f"SELECT tenant_id, {P}, avg({MS}) AS a FROM events GROUP BY 1, 2 ORDER BY 3 DESC NULLS LAST, 1, 2 LIMIT 5",
        "SELECT count(*) FROM events WHERE 1 = 0", f"SELECT sum({MS}) FROM events WHERE 1 = 0", "SELECT tenant_id, count(*) FROM events WHERE 1 = 0 GROUP BY 1", "SELECT tenant_id FROM events GROUP BY 1 HAVING count(*) > 300",
        "SELECT DISTINCT tenant_id FROM events", f"SELECT DISTINCT {P} FROM events", f"SELECT DISTINCT tenant_id, {P} FROM events WHERE event_name = 'call'", "SELECT count(DISTINCT tenant_id || event_name) FROM events",
        "SELECT tenant_id, count(DISTINCT user_id), count(DISTINCT event_id), count(*) FROM events GROUP BY 1", f"SELECT round(avg({MS}), 2), round(sum({COST})) FROM events", f"SELECT sum({MS}) / count({MS}), avg({MS}) FROM events",
    ],
    "conditions": [f"SELECT count(*), min(user_id), sum({MS}) FROM events WHERE {c}" for c in CONDITIONS]
    + [f"SELECT {ROW} FROM events WHERE {c} ORDER BY timestamp DESC, event_id NULLS LAST, user_id NULLS LAST LIMIT 3" for c in CONDITIONS[::4]],
    "times": [f"SELECT date_trunc('{t}', timestamp) AS t, count(*) FROM events GROUP BY 1 ORDER BY 1 DESC LIMIT 12" for t in TIMES]
    + [f"SELECT date_part('{f}', timestamp), count(*) FROM events GROUP BY 1" for f in FIELDS]
    + [f"SELECT EXTRACT({f} FROM timestamp), max({MS}) FROM events GROUP BY 1 ORDER BY 1 LIMIT 10" for f in FIELDS[:5]]
    + [
        "SELECT timestamp + INTERVAL '1 day' FROM events ORDER BY timestamp LIMIT 1", "SELECT timestamp - INTERVAL '90 minutes' FROM events ORDER BY timestamp DESC LIMIT 1", "SELECT max(timestamp) - INTERVAL '1 month' FROM events", "SELECT CAST(timestamp AS DATE), count(*) FROM events GROUP BY 1",
        "SELECT count(*) FROM events WHERE timestamp > (SELECT max(timestamp) FROM events) - INTERVAL '2 days'", "SELECT count(*) FROM events WHERE date_trunc('day', timestamp) = '2026-11-18'", "SELECT TIMESTAMP '2024-02-29 00:00:00' + INTERVAL '1 year'", "SELECT TIMESTAMP '2026-03-29 01:30:00' + INTERVAL '1 hour'", "SELECT DATE '2026-11-20' - DATE '2026-11-01'",
        ("SELECT date_bin(INTERVAL '6 hours', timestamp) AS t, count(*) FROM events GROUP BY 1 ORDER BY 1 DESC LIMIT 5", "SELECT time_bucket(INTERVAL '6 hours', timestamp, TIMESTAMP '1970-01-01') AS t, count(*) FROM events GROUP BY 1 ORDER BY 1 DESC LIMIT 5", None),
        ("SELECT to_char(timestamp, '%Y/%m') AS t, count(*) FROM events GROUP BY 1", "SELECT strftime(timestamp, '%Y/%m') AS t, count(*) FROM events GROUP BY 1", None),
    ],
    "joins": [
        "SELECT a.tenant_id, a.n, b.m FROM (SELECT tenant_id, count(*) AS n FROM events GROUP BY 1) a JOIN (SELECT tenant_id, count(*) AS m FROM events WHERE event_name = 'call' GROUP BY 1) b ON a.tenant_id = b.tenant_id",
        "SELECT a.tenant_id, b.m FROM (SELECT DISTINCT tenant_id FROM events) a LEFT JOIN (SELECT tenant_id, count(*) AS m FROM events WHERE user_id = 'u5' GROUP BY 1) b ON a.tenant_id = b.tenant_id",
        "SELECT a.tenant_id, b.m FROM (SELECT tenant_id, count(*) AS m FROM events WHERE user_id = 'u5' GROUP BY 1) b RIGHT JOIN (SELECT DISTINCT tenant_id FROM events) a ON a.tenant_id = b.tenant_id",
        f"SELECT a.u, b.u FROM (SELECT DISTINCT user_id AS u FROM events WHERE tenant_id = 't0') a FULL JOIN (SELECT DISTINCT user_id AS u FROM events WHERE tenant_id = 't1' AND {MS} > 240) b ON a.u = b.u",
        "SELECT count(*) FROM events a JOIN events b ON a.event_id = b.event_id", "SELECT count(*) FROM events a JOIN events b ON a.event_id = b.event_id AND a.timestamp = b.timestamp", "SELECT count(*) FROM events a JOIN events b USING (event_id) WHERE a.user_id = 'u5'", "SELECT count(*) FROM events a, events b WHERE a.event_id = b.event_id AND a.tenant_id = 't1'",
        "SELECT count(*) FROM events a JOIN events b ON a.user_id = b.user_id AND a.timestamp < b.timestamp WHERE a.tenant_id = 't1' AND b.tenant_id = 't2'",
        f"SELECT a.{P}, count(*) FROM events a JOIN events b ON a.event_id = b.event_id AND a.{P} = b.{P} GROUP BY 1", f"SELECT count(*) FROM events a JOIN events b ON a.{M} = b.{M} AND a.event_id = b.event_id",
        "SELECT count(*) FROM events WHERE user_id IN (SELECT user_id FROM events WHERE tenant_id = 't1')", "SELECT count(*) FROM events WHERE user_id NOT IN (SELECT user_id FROM events WHERE tenant_id = 't1' AND user_id IS NOT NULL)", "SELECT count(*) FROM events a WHERE EXISTS (SELECT 1 FROM events b WHERE b.user_id = a.user_id AND b.event_name = 'export')", "SELECT count(*) FROM events a WHERE NOT EXISTS (SELECT 1 FROM events b WHERE b.user_id = a.user_id AND b.event_name = 'export')",
        "SELECT tenant_id, (SELECT max(timestamp) FROM events b WHERE b.tenant_id = a.tenant_id) FROM (SELECT DISTINCT tenant_id FROM events) a", "SELECT count(*) * 1.0 / max(t.n) FROM events CROSS JOIN (SELECT count(*) AS n FROM events) t WHERE event_name = 'login'", "SELECT tenant_id, count(*) * 100.0 / (SELECT count(*) FROM events) FROM events GROUP BY 1",
        "SELECT d.tenant_id, sum(d.count), max(e.n) FROM events_daily d JOIN (SELECT tenant_id, count(*) AS n FROM events GROUP BY 1) e ON d.tenant_id = e.tenant_id GROUP BY 1", "SELECT h.hour, h.count FROM events_hourly h JOIN events_daily d ON h.tenant_id = d.tenant_id AND h.event_name = d.event_name AND date_trunc('day', h.hour) = d.day WHERE h.tenant_id = 't4' AND d.day = '2026-11-19' AND h.event_name = 'call'",
        "SELECT * FROM (VALUES ('t1', 1), ('t2', 2)) v(t, n) JOIN (SELECT tenant_id, count(*) AS c FROM events GROUP BY 1) e ON v.t = e.tenant_id", "SELECT count(*) FROM events a LEFT JOIN (SELECT DISTINCT user_id AS u FROM events WHERE tenant_id = 't1') b ON a.user_id = b.u WHERE b.u IS NULL",
    ],
    "early": [
        f"SELECT {P}, sum(CASE WHEN event_name = 'call' THEN 1 ELSE 0 END), sum(CASE WHEN {M} = 'small' THEN 1 END) FROM events GROUP BY 1",
        f"SELECT date_trunc('day', timestamp) AS d, event_name, avg({MS}), min({COST}), max({COST}), count({COST}), sum({COST}), count(*) FROM events GROUP BY 1, 2",
        f"SELECT date_part('hour', timestamp) AS h, count(*) FILTER (WHERE {P} = 'pro'), count({P}), min({P}), max(tenant_id) FROM events GROUP BY 1",
        f"SELECT CASE WHEN {M} IS NULL THEN 'none' WHEN {M} = '' THEN 'empty' ELSE {M} END AS m, sum({MS}) FROM events WHERE {MS} > 10 AND tenant_id <> 't1' GROUP BY 1",
        f"SELECT date_part('dow', timestamp), date_part('hour', timestamp), count(*), sum(CASE WHEN {P} = 'free' THEN 1 ELSE 0 END) * 1.0 / count(*) FROM events GROUP BY 1, 2",
        f"SELECT tenant_id || '/' || event_name AS s, length({M}) AS l, count(*) FROM events WHERE timestamp >= '2026-11-17 05:06:07' AND timestamp < '2026-11-19 13:30:00' GROUP BY 1, 2",
        f"SELECT date_trunc('month', timestamp), upper({P}), max({MS}) - min({MS}) FROM events WHERE {M} LIKE '%l%' GROUP BY 1, 2", f"SELECT count(*), sum({MS}) FROM events WHERE {M} NOT LIKE 'l%'", f"SELECT count(*) FROM events WHERE {M} ILIKE 'GRÖ%' OR {P} = 'pro'", f"SELECT count(*), count({M}) FROM events WHERE {M} LIKE ''", f"SELECT {P}, count(*) FROM events WHERE {M} LIKE '_t''s' GROUP BY 1", f"SELECT count(*) FROM events WHERE {M} LIKE '日%' AND event_name = 'call'", f"SELECT user_id, count(*) FROM events WHERE {M} NOT ILIKE '%A%' AND tenant_id = 't2' GROUP BY 1 ORDER BY 2 DESC, 1 NULLS LAST LIMIT 3",
        f"SELECT sum({MS}), sum({MS}) * 2, count(*) FROM events WHERE tenant_id = 'nobody'", f"SELECT avg({MS}), min(tenant_id), count(*) FILTER (WHERE event_name = 'call') FROM events WHERE 1 = 0", f"SELECT avg({COST}) FROM events WHERE {COST} IS NULL", "SELECT sum(7), sum(0.5), sum(NULL::BIGINT), count(NULL), count(1), min(3) FROM events", f"SELECT sum(length({P})), sum(length({P}) * 2), avg(length({P})) FROM events",
        f"SELECT d, sum(n), max(n) FROM (SELECT date_trunc('day', timestamp) AS d, {P} AS p, count(*) AS n FROM events GROUP BY 1, 2) x GROUP BY 1", f"SELECT p, p AS again, count(*) FROM (SELECT {P} AS p FROM events) x GROUP BY 1, 2", f"SELECT e.{P}, max(e.{MS}), count(*) FROM events e GROUP BY e.{P} HAVING count(*) > 100", "SELECT CAST(timestamp AS DATE) AS d, date_trunc('hour', timestamp) AS h, count(*) FROM events GROUP BY 1, 2 ORDER BY 2 DESC LIMIT 7",
        "SELECT date_trunc('minute', timestamp) AS m, count(*) FROM events GROUP BY 1 ORDER BY 1 DESC LIMIT 3", "SELECT event_name, max(timestamp), min(timestamp), count(*) FROM events GROUP BY 1", "SELECT event_name, count(*) FROM events WHERE timestamp = (SELECT max(timestamp) FROM events) GROUP BY 1", f"WITH a AS (SELECT {P} AS p, {MS} AS v, tenant_id AS t FROM events) SELECT t, p, avg(v), count(v) FROM a WHERE t IN ('t1', 't2') GROUP BY 1, 2", f"SELECT DISTINCT date_trunc('day', timestamp), {P} FROM events", f"SELECT count(DISTINCT {P}), count(DISTINCT date_trunc('day', timestamp)) FROM events", f"SELECT tenant_id, count(DISTINCT {P}) FROM events GROUP BY 1", f"SELECT {P} IS NULL, {M} = 'large', count(*) FROM events GROUP BY 1, 2",
    ],
    "rollups": [
        "SELECT sum(count) FROM events_hourly", "SELECT count(*) FROM events_hourly", "SELECT count(*), sum(count) FROM events_daily", "SELECT tenant_id, sum(count) FROM events_daily GROUP BY 1", "SELECT event_name, sum(count) FROM events_hourly GROUP BY 1", "SELECT day, sum(count) FROM events_daily GROUP BY 1 ORDER BY 1 DESC LIMIT 4",
        "SELECT hour, sum(count) FROM events_hourly WHERE hour >= '2026-11-19' GROUP BY 1 ORDER BY 1 LIMIT 5", "SELECT sum(count) FROM events_hourly WHERE hour > '2026-11-19 03:30:00'", "SELECT sum(count) FROM events_daily WHERE day = '2026-11-18'", "SELECT sum(count) FROM events_daily WHERE day > '2026-11-17 12:00:00'", "SELECT sum(count) FROM events_daily WHERE day < '2026-11-17 12:00:00' AND tenant_id = 't1'",
        "SELECT sum(count) FROM events_daily WHERE day BETWEEN '2026-11-15' AND '2026-11-16'", "SELECT tenant_id, event_name, day, count FROM events_daily WHERE tenant_id = 't2' AND day >= '2026-11-18'", "SELECT date_trunc('week', day) AS w, sum(count) FROM events_daily GROUP BY 1", "SELECT sum(count) FROM events_daily WHERE tenant_id IN ('t0', 't4') AND event_name = 'call'", "SELECT max(count), min(count) FROM events_hourly",
        "SELECT day, sum(count), lag(sum(count)) OVER (ORDER BY day) FROM events_daily WHERE tenant_id = 't1' GROUP BY day", "SELECT (SELECT sum(count) FROM events_hourly) - (SELECT count(*) FROM events)", "SELECT tenant_id, max(hour) FROM events_hourly GROUP BY 1",
        ("SELECT tenant_id, approx_distinct_merge(users_state) FROM events_daily GROUP BY 1", "SELECT tenant_id, count(DISTINCT user_id) FROM events GROUP BY 1", None), ("SELECT approx_distinct_merge(users_state) FROM events_hourly", "SELECT count(DISTINCT user_id) FROM events", None), ("SELECT day, sum(users) FROM events_daily WHERE event_name = 'call' AND tenant_id = 't1' GROUP BY 1", "SELECT date_trunc('day', timestamp)::TIMESTAMP, count(DISTINCT user_id) FROM events WHERE event_name = 'call' AND tenant_id = 't1' GROUP BY 1", None),
        (f"SELECT round(approx_percentile_merge(numeric_states['ms'], 0)), round(approx_percentile_merge(numeric_states['ms'], 1)) FROM events_hourly", f"SELECT round(min({MS})), round(max({MS})) FROM events", None), ("SELECT approx_percentile_merge(numeric_states['nobody'], 0.5) FROM events_daily", "SELECT NULL", None), ("SELECT count(*) FROM events_daily WHERE numeric_states['cost'] IS NOT NULL", f"SELECT count(*) FROM (SELECT 1 FROM events WHERE {COST} IS NOT NULL GROUP BY tenant_id, event_name, date_trunc('day', timestamp))", None),
    ],
    "windows": [
        f"SELECT user_id, timestamp, {w} FROM events WHERE tenant_id = 't1' AND user_id IS NOT NULL AND {MS} IS NOT NULL ORDER BY timestamp DESC, user_id LIMIT 8"
        for w in (
            "row_number() OVER (ORDER BY timestamp, user_id)", "rank() OVER (ORDER BY event_name)", "dense_rank() OVER (ORDER BY event_name)", "lag(user_id) OVER (ORDER BY timestamp, user_id)", "lead(user_id, 2) OVER (ORDER BY timestamp, user_id)", "lead(user_id, 2, 'none') OVER (ORDER BY timestamp, user_id)", f"sum({MS}) OVER (ORDER BY timestamp, user_id)", f"sum({MS}) OVER (PARTITION BY event_name ORDER BY timestamp, user_id)", f"avg({MS}) OVER (ORDER BY timestamp, user_id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)",
            f"max({MS}) OVER (ORDER BY timestamp, user_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)", "count(*) OVER ()", "count(*) OVER (PARTITION BY event_name)", "ntile(4) OVER (ORDER BY timestamp, user_id)", "first_value(user_id) OVER (PARTITION BY event_name ORDER BY timestamp, user_id)", "last_value(user_id) OVER (PARTITION BY event_name ORDER BY timestamp, user_id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)", "nth_value(user_id, 2) OVER (ORDER BY timestamp, user_id)", "percent_rank() OVER (ORDER BY event_name)", "cume_dist() OVER (ORDER BY event_name)", f"min({M}) OVER (PARTITION BY {P})",
        )
    ]
    + [
        "SELECT tenant_id, n FROM (SELECT tenant_id, event_name, count(*) AS n, row_number() OVER (PARTITION BY tenant_id ORDER BY count(*) DESC, event_name) AS r FROM events GROUP BY 1, 2) WHERE r = 1", "SELECT day, n, sum(n) OVER (ORDER BY day) FROM (SELECT date_trunc('day', timestamp) AS day, count(*) AS n FROM events GROUP BY 1) d", "SELECT tenant_id, count(*), rank() OVER (ORDER BY count(*) DESC) FROM events GROUP BY 1",
    ],
    "shapes": [
        "WITH a AS (SELECT tenant_id, count(*) AS n FROM events GROUP BY 1) SELECT max(n) FROM a", "WITH a AS (SELECT * FROM events WHERE tenant_id = 't1'), b AS (SELECT * FROM a WHERE event_name = 'call') SELECT count(*) FROM b", f"WITH a AS (SELECT string_props AS s, numeric_props AS n FROM events) SELECT s['plan'], sum(n['ms']) FROM a GROUP BY 1", f"SELECT p, count(*) FROM (SELECT {P} AS p FROM events) x GROUP BY p",
        "SELECT count(*) FROM (SELECT timestamp FROM events ORDER BY timestamp LIMIT 100) x", "SELECT tenant_id, event_name, count(*) FROM events GROUP BY GROUPING SETS ((tenant_id), (event_name), ())", "SELECT tenant_id, event_name, count(*) FROM events GROUP BY ROLLUP (tenant_id, event_name)", f"SELECT tenant_id, {P}, count(*) FROM events GROUP BY CUBE (tenant_id, {P})", "SELECT event_name, grouping(event_name), count(*) FROM events GROUP BY ROLLUP (event_name)",
        "SELECT tenant_id FROM events WHERE user_id = 'u5' UNION SELECT event_name FROM events", "SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 2", "SELECT tenant_id FROM events INTERSECT SELECT tenant_id FROM events WHERE user_id = 'u5'", "SELECT user_id FROM events EXCEPT SELECT user_id FROM events WHERE tenant_id = 't1'", "SELECT tenant_id, count(*) AS n FROM events GROUP BY 1 ORDER BY n DESC, tenant_id LIMIT 2 OFFSET 1", f"SELECT user_id, {MS} FROM events ORDER BY {MS} DESC NULLS LAST, user_id NULLS LAST, timestamp LIMIT 5", f"SELECT user_id, {P} FROM events ORDER BY {P} NULLS FIRST, user_id NULLS FIRST LIMIT 3",
        "SELECT count(*) FROM (SELECT * FROM events) x", "SELECT x.tenant_id FROM (SELECT DISTINCT tenant_id FROM events) AS x", "SELECT CASE event_name WHEN 'call' THEN 1 WHEN 'login' THEN 2 ELSE 3 END AS c, count(*) FROM events GROUP BY 1", "SELECT 1 WHERE 1 = 0", "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(n, t)", "SELECT count(*) AS \"Number of events\" FROM events", f"SELECT e.{P}, count(*) FROM events AS e WHERE e.tenant_id = 't2' GROUP BY 1", "SELECT EVENT_NAME, COUNT(*) FROM Events GROUP BY Event_Name",
    ],
    "values": [
        f"SELECT {e}"
        for e in (
            "1", "1.5", "-0.25", "'text'", "''", "NULL", "true", "false", "1 + 2 * 3", "7 % 3", "-7 % 3", "2 * 1.5", "10 - 4 - 3", "1 < 2", "1 = NULL", "NULL IS NULL", "NOT true", "true AND NULL", "false AND NULL", "true OR NULL", "1 IN (1, 2)", "3 NOT IN (1, 2)", "3 IN (1, NULL)", "5 BETWEEN 1 AND 10", "'a' || 'b'", "'a' || NULL", "coalesce(NULL, NULL, 3)", "nullif(1, 1)", "nullif(1, 2)", "greatest(1, 3, 2)", "least(1, 3, 2)",
            "abs(-3)", "ceil(1.2)", "floor(-1.2)", "round(2.5)", "round(1.2345, 2)", "sqrt(16)", "power(2, 10)", "exp(0)", "ln(1)", "log10(1000)", "log2(8)", "abs(2)", "pi()", "sin(0)", "degrees(pi())", "upper('grün')", "lower('ABC')", "length('日本')", "substr('hello', 2, 3)", "left('hello', 2)", "right('hello', 2)", "trim('  x ')", "ltrim('  x')", "replace('banana', 'an', 'x')", "reverse('abc')", "strpos('hello', 'll')", "split_part('a,b,c', ',', 2)", "starts_with('hello', 'he')", "concat('a', 1, NULL, 'b')", "concat_ws('-', 'a', NULL, 'b')", "ascii('a')", "chr(65)", "upper('x')", "translate('abc', 'ab', 'xy')", "levenshtein('kitten', 'sitting')", "'abc' LIKE 'a%'", "'abc' LIKE '_b_'", "'abc' ILIKE 'A%'", "'abc' NOT LIKE 'x%'", "CAST('12' AS BIGINT)", "CAST(2.0 AS BIGINT)", "CAST(12 AS VARCHAR)", "CAST('1.5' AS DOUBLE)", "CAST('2026-11-20' AS DATE)", "CAST(true AS VARCHAR)", "'2026-11-20'::DATE", "TIMESTAMP '2026-11-20 10:00:00'", "TIMESTAMP '2026-02-28 00:00:00' + INTERVAL '1 day'", "date_trunc('month', TIMESTAMP '2026-11-20 10:00:00')", "date_part('year', DATE '2026-11-20')", "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END", "regexp_replace('abc123', '[0-9]+', 'x')", "9007199254740992 - 1", "0.1 + 0.2 < 0.4", "1e3", "CAST(NULL AS BIGINT)", "'it''s'", "'日本' || 'x'", "bit_length('abc')", "gcd(12, 18)", "factorial(5)", "cos(0)",
        )
    ],
}
