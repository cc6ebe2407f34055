"""Statements that want more than they may: to write, to read files, to see what is not theirs, to take all there is.

Each has a verdict: `no` must be refused as a statement, `some` may be answered or refused but must end in time, `yes`
must be answered. What many have in common is written once, with its variants.
"""

TABLES = ("events", "events_hourly", "events_daily")

WRITES = (
    "INSERT INTO {t} VALUES (1)", "INSERT INTO {t} SELECT * FROM {t}", "UPDATE {t} SET tenant_id = 'x'", "DELETE FROM {t}",
    "TRUNCATE {t}", "DROP TABLE {t}", "DROP VIEW {t}", "ALTER TABLE {t} ADD COLUMN x INT", "CREATE TABLE x AS SELECT * FROM {t}",
    "CREATE VIEW x AS SELECT * FROM {t}", "CREATE OR REPLACE VIEW {t} AS SELECT 1", "MERGE INTO {t} USING {t} s ON true WHEN MATCHED THEN DELETE",
    "WITH x AS (DELETE FROM {t} RETURNING *) SELECT * FROM x", "WITH x AS (INSERT INTO {t} VALUES (1) RETURNING *) SELECT * FROM x",
    "SELECT * INTO x FROM {t}", "SELECT 1; DROP TABLE {t}", "SELECT 1 /* x */; -- y\n DELETE FROM {t}", "COPY {t} TO '/tmp/out.csv'",
    "COPY {t} FROM '/etc/passwd'", "COPY (SELECT * FROM {t}) TO '/tmp/out.parquet' STORED AS PARQUET", "EXPLAIN ANALYZE DELETE FROM {t}",
    "EXPLAIN INSERT INTO {t} SELECT * FROM {t}", "LOCK TABLE {t}", "SELECT * FROM {t} FOR UPDATE", "SELECT * FROM {t} FOR SHARE",
)  # fmt: skip

STATEMENTS = (
    "SHOW TABLES", "SHOW ALL", "SHOW datafusion.execution.batch_size", "SHOW COLUMNS FROM events", "SHOW CREATE TABLE events", "SHOW FUNCTIONS",
    "SET datafusion.execution.batch_size = 1", "RESET datafusion.execution.batch_size", "SET TIME ZONE 'UTC'", "USE inlay", "DESCRIBE events",
    "EXPLAIN SELECT 1", "EXPLAIN VERBOSE SELECT * FROM events", "EXPLAIN ANALYZE SELECT 1", "PREPARE x AS SELECT 1", "EXECUTE x", "DEALLOCATE x",
    "BEGIN", "COMMIT", "ROLLBACK", "START TRANSACTION", "SAVEPOINT x", "CALL x()", "DO $$ BEGIN END $$", "GRANT SELECT ON events TO public",
    "REVOKE ALL ON events FROM public", "CREATE USER x", "CREATE ROLE x", "CREATE DATABASE x", "CREATE SCHEMA x", "CREATE FUNCTION x() RETURNS INT RETURN 1",
    "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'", "CREATE EXTERNAL TABLE x (a INT) STORED AS PARQUET LOCATION 's3://x/y'",
    "CREATE INDEX x ON events (tenant_id)", "ANALYZE events", "VACUUM events", "LISTEN x", "NOTIFY x", "ATTACH DATABASE 'x' AS y", "LOAD DATA INPATH '/x' INTO TABLE events",
    "INSTALL httpfs", "LOAD httpfs", "PRAGMA database_list", "KILL 1", "VALUES (1), (2)", "TABLE events", "FROM events", "FROM events SELECT 1", "",
    ";", ";;", "-- nothing", "/* nothing */", "SELECT", "SELECT 1 SELECT 2", "SELECTED 1", "SELECT 1; SELECT 2", "SELECT 1;;SELECT 2", "\ufeffDROP TABLE events",
    "DR/**/OP TABLE events", "dRoP tAbLe events", "ＳＥＬＥＣＴ 1", "WITH x AS (SELECT 1) DELETE FROM events", "WITH x AS (SELECT 1) INSERT INTO events SELECT * FROM x",
)  # fmt: skip

READS = (
    "SELECT * FROM '/etc/passwd'", "SELECT * FROM \"/etc/passwd\"", "SELECT * FROM '/etc/passwd.csv'", "SELECT * FROM 'file:///etc/passwd'",
    "SELECT * FROM 'http://127.0.0.1:1/x.csv'", "SELECT * FROM 's3://bucket/x.parquet'", "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_csv_auto('/etc/passwd')", "SELECT * FROM read_parquet('/x.parquet')", "SELECT * FROM read_json('/x.json')", "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM parquet_metadata('/x')", "SELECT * FROM metadata_cache()", "SELECT * FROM statistics_cache()", "SELECT * FROM list_files_cache()", "SELECT * FROM glob('/*')",
    "SELECT pg_read_file('/etc/passwd')", "SELECT pg_ls_dir('/')", "SELECT lo_import('/etc/passwd')", "SELECT load_file('/etc/passwd')", "SELECT getenv('HOME')",
    "SELECT current_setting('data_directory')", "SELECT set_config('a', 'b', false)", "SELECT version()", "SELECT current_user", "SELECT session_user", "SELECT current_database()",
    "SELECT current_schema()", "SELECT inet_server_addr()", "SELECT pg_sleep(100)", "SELECT sleep(100)", "SELECT random()", "SELECT uuid()", "SELECT gen_random_uuid()",
    "SELECT * FROM information_schema.tables", "SELECT * FROM information_schema.columns", "SELECT * FROM information_schema.df_settings", "SELECT * FROM information_schema.schemata",
    "SELECT * FROM information_schema.routines", "SELECT * FROM pg_catalog.pg_class", "SELECT * FROM pg_tables", "SELECT * FROM pg_settings", "SELECT * FROM sqlite_master",
    "SELECT * FROM system.tables", "SELECT * FROM duckdb_settings()", "SELECT * FROM datafusion.public.events", "SELECT * FROM other.events", "SELECT * FROM inlay.other.events",
    "SELECT * FROM a.b.c.events", "SELECT * FROM Evеnts", "SELECT * FROM \"EVENTS\"", "SELECT * FROM events_raw", "SELECT * FROM orgs", "SELECT * FROM users", "SELECT * FROM api_keys",
    "SELECT org_id FROM events", "SELECT namespace FROM events", "SELECT * FROM events WHERE org_id = 'y' OR true", "SELECT _rowid FROM events", "SELECT rowid FROM events",
    "SELECT \"string_props['marker']\" FROM events", "SELECT events.\"numeric_props['marker']\" FROM events", "SELECT U&\"\\0065vents\".* FROM U&\"\\0065vents\"",
    "SELECT * FROM unnest([1, 2])", "SELECT unnest([1, 2])", "SELECT * FROM generate_series(1, 10)", "SELECT * FROM range(10)", "SELECT * FROM events, LATERAL (SELECT 1) x",
    "SELECT * FROM events TABLESAMPLE BERNOULLI (1)", "SELECT * FROM events AS OF TIMESTAMP '2020-01-01'", "SELECT * FROM events PIVOT (count(*) FOR event_name IN ('a'))",
    "SELECT TRANSFORM(tenant_id) USING 'cat' FROM events", "SELECT arrow_cast('x', 'Utf8')", "SELECT * FROM events |> WHERE true", "SELECT list_transform([1], x -> x) FROM events",
    "SELECT array_transform([1], x -> x + 1)", "SELECT MAP {'a': 1}", "SELECT make_map('a', 1)",
)  # fmt: skip

BOMBS = (
    "SELECT repeat('x', 2000000000)", "SELECT repeat('x', 1000000) FROM events", "SELECT rpad('x', 2000000000, 'y')", "SELECT lpad(tenant_id, 100000000, 'y') FROM events",
    "SELECT array_repeat(1, 2000000000)", "SELECT array_resize([1], 2000000000, 0)", "SELECT range(0, 9876543210)", "SELECT generate_series(1, 1000000000)",
    "SELECT space(1000000000)", "SELECT encode(repeat('x', 1000000000), 'hex')", "SELECT sha512(repeat('x', 1000000000))",
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x) SELECT * FROM x", "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n FROM x, x y) SELECT count(*) FROM x",
    "SELECT count(*) FROM events a CROSS JOIN events b CROSS JOIN events c", "SELECT count(*) FROM events a, events b, events c", "SELECT count(*) FROM events a, events b WHERE a.tenant_id <> b.tenant_id",
    "SELECT count(*) FROM events a JOIN events b ON true", "SELECT count(*) FROM events a JOIN events b ON a.timestamp < b.timestamp", "SELECT count(*) FROM events a JOIN events b ON 1 = 1",
    "SELECT count(*) FROM events a LEFT JOIN events b ON a.user_id > b.user_id", "SELECT count(*) FROM events a FULL JOIN events b ON a.user_id LIKE b.user_id",
    "SELECT count(*) FROM events a JOIN events b ON a.user_id = b.user_id OR a.tenant_id <> b.tenant_id", "SELECT count(*) FROM events a JOIN events b ON NOT a.user_id = b.user_id",
    "SELECT tenant_id, count(*) FROM events GROUP BY CUBE (tenant_id, event_name, timestamp, event_id, user_id, string_props['a'], string_props['b'])",
    "SELECT 1 FROM events" + " NATURAL JOIN events" * 20, "SELECT * FROM " + "(" * 40 + "events" + ")" * 40,
)  # fmt: skip

# May be answered, or refused in any of the three ways; must end in time.
HEAVY = (
    "SELECT 0x" + "f" * 5_000, "SELECT " + "9" * 10_000, "SELECT 1e" + "9" * 1_000,
    "SELECT count(*) FROM events a JOIN events b ON a.tenant_id = b.tenant_id", "SELECT sum(a.numeric_props['ms'] * b.numeric_props['ms']) FROM events a JOIN events b USING (event_name)",
    "SELECT count(*) FROM events a JOIN events b USING (event_name) JOIN events c USING (event_name)", "SELECT count(*) FROM events a JOIN events b USING (event_name) JOIN events c USING (event_name) JOIN events d USING (event_name)",
    "SELECT * FROM events a JOIN events b USING (event_name) ORDER BY a.timestamp, b.timestamp", "SELECT DISTINCT a.user_id, b.user_id, a.timestamp FROM events a JOIN events b USING (event_name)",
    "SELECT a.timestamp, count(DISTINCT b.timestamp) FROM events a JOIN events b USING (event_name) GROUP BY 1", "SELECT array_agg(a.user_id || b.user_id) FROM events a JOIN events b USING (event_name)",
    "SELECT string_agg(a.user_id || b.user_id, ',') FROM events a JOIN events b USING (event_name)", "SELECT max(levenshtein(a.user_id || a.timestamp, b.user_id || b.timestamp)) FROM events a JOIN events b USING (event_name)",
    "SELECT count(regexp_replace(a.user_id || b.user_id, '(.*)*x', '', 'g')) FROM events a JOIN events b USING (event_name)", "SELECT count(*) FROM events WHERE user_id ~ '(a+)+$'", "SELECT count(*) FROM events WHERE regexp_like(user_id, '((((((a{1,100}){1,100}){1,100}){1,100})))')",
    "SELECT regexp_replace(user_id, '.', '" + "y" * 10_000 + "', 'g') FROM events", "SELECT replace(user_id, 'u', '" + "z" * 20_000 + "') FROM events", "SELECT translate(user_id, 'u', 'v') FROM events",
    "SELECT sum(count(*)) OVER (ORDER BY timestamp ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM events GROUP BY timestamp", "SELECT median(numeric_props['ms']) OVER (ORDER BY timestamp) FROM events",
    "SELECT array_agg(timestamp) OVER (ORDER BY timestamp) FROM events", "SELECT string_agg(user_id, '') OVER (ORDER BY timestamp) FROM events", "SELECT count(DISTINCT user_id) OVER (ORDER BY timestamp ROWS BETWEEN 5000 PRECEDING AND CURRENT ROW) FROM events",
    "SELECT (SELECT count(*) FROM events b WHERE b.user_id = a.user_id) FROM events a", "SELECT * FROM events a WHERE EXISTS (SELECT 1 FROM events b WHERE b.event_name = a.event_name AND b.timestamp > a.timestamp)",
    "SELECT * FROM events WHERE timestamp IN (SELECT timestamp FROM events)", "SELECT factorial(1000000)", "SELECT power(1e308, 1e308)", "SELECT 1 / 0", "SELECT 9223372036854775807 + 1", "SELECT -9223372036854775808 / -1",
    "SELECT CAST('x' AS BIGINT)", "SELECT CAST(user_id AS BIGINT) FROM events", "SELECT CAST('99999-01-01' AS DATE)", "SELECT date_trunc('century', TIMESTAMP '0001-01-01')", "SELECT date_bin(INTERVAL '1 nanosecond', timestamp) FROM events",
    "SELECT date_bin(INTERVAL '0 second', timestamp) FROM events", "SELECT to_char(timestamp, '" + "%Y" * 5_000 + "') FROM events", "SELECT make_date(2147483647, 12, 31)", "SELECT to_timestamp(9223372036854775807)", "SELECT chr(2147483647)", "SELECT chr(0)",
    "SELECT substr(user_id, -9223372036854775808) FROM events", "SELECT substr(user_id, 1, 9223372036854775807) FROM events", "SELECT left(user_id, -2147483648) FROM events", "SELECT split_part(user_id, '', -9223372036854775808) FROM events", "SELECT overlay(user_id PLACING 'x' FROM 2147483647) FROM events",
    "SELECT approx_percentile_cont(numeric_props['ms'], 5) FROM events", "SELECT approx_percentile_merge(users_state, 0.5) FROM events_hourly", "SELECT approx_distinct_merge(numeric_states['ms']) FROM events_hourly", "SELECT approx_distinct_merge(CAST('x' AS BYTEA))",
    "SELECT approx_percentile_merge(CAST('" + "\\\\xff" * 50 + "' AS BYTEA), 0.5)", "SELECT * FROM events ORDER BY string_props, numeric_props", "SELECT string_props, count(*) FROM events GROUP BY 1", "SELECT DISTINCT numeric_props FROM events", "SELECT string_props[NULL] FROM events", "SELECT string_props[1] FROM events",
    "SELECT string_props['a']['b'] FROM events", "SELECT string_props FROM events UNION SELECT string_props FROM events", "SELECT * FROM events LIMIT 9223372036854775807 OFFSET 9223372036854775807", "SELECT * FROM events LIMIT -1", "SELECT * FROM events LIMIT (SELECT count(*) FROM events)",
    "SELECT ntile(9223372036854775807) OVER (ORDER BY timestamp) FROM events", "SELECT ntile(0) OVER (ORDER BY timestamp) FROM events", "SELECT lag(user_id, 9223372036854775807) OVER (ORDER BY timestamp) FROM events", "SELECT nth_value(user_id, -9223372036854775808) OVER (ORDER BY timestamp) FROM events",
    "SELECT first_value(user_id) OVER (ORDER BY timestamp RANGE BETWEEN INTERVAL '9999999 years' PRECEDING AND CURRENT ROW) FROM events", "SELECT timestamp + INTERVAL '9999999 years' FROM events", "SELECT timestamp AT TIME ZONE 'Mars/Olympus' FROM events", "SELECT timestamp AT TIME ZONE '../../etc/passwd' FROM events",
    "SELECT EXTRACT(epoch FROM timestamp) FROM events", "SELECT avg(DISTINCT numeric_props['ms']), sum(DISTINCT numeric_props['ms']) FROM events GROUP BY user_id", "SELECT corr(numeric_props['ms'], numeric_props['ms']) FROM events", "SELECT * FROM events_hourly a JOIN events_hourly b USING (event_name)",
    "SELECT numeric_states FROM events_hourly", "SELECT user_id SIMILAR TO '%(b|d)%' FROM events", "SELECT user_id LIKE '" + "%_" * 3_000 + "' FROM events", "SELECT user_id ILIKE '%\\' FROM events", "SELECT '" + "x" * 60_000 + "'", "SELECT " + ", ".join(f"'{'x' * 300}' AS c{n}" for n in range(199)) + " FROM events",
    "SELECT concat(" + ", ".join(["user_id"] * 190) + ") FROM events", "SELECT " + " || ".join(["user_id"] * 190) + " FROM events", "SELECT " + " + ".join(["1"] * 190), "SELECT * FROM events WHERE " + " OR ".join(f"user_id = 'u{n}'" for n in range(190)), "SELECT * FROM events WHERE user_id IN (" + ", ".join(f"'u{n}'" for n in range(990)) + ")",
    " UNION ALL ".join(["SELECT * FROM events"] * 60), "SELECT CASE " + " ".join(f"WHEN user_id = 'u{n}' THEN {n}" for n in range(180)) + " END FROM events", "SELECT " + "(" * 25 + "1" + ")" * 25, "SELECT " + "abs(" * 25 + "1" + ")" * 25, "SELECT " + "NOT " * 20 + "true", "SELECT " + "- " * 20 + "1",
    "SELECT * FROM " + "(SELECT * FROM " * 12 + "events" + ") x" * 12, "SELECT a || a FROM (SELECT a || a AS a FROM (SELECT a || a AS a FROM (SELECT a || a AS a FROM (SELECT a || a AS a FROM (SELECT a || a AS a FROM (SELECT user_id AS a FROM events) x) x) x) x) x) x",
    "WITH a AS (SELECT user_id || user_id AS x FROM events), b AS (SELECT x || x || x || x AS x FROM a), c AS (SELECT x || x || x || x AS x FROM b), d AS (SELECT x || x || x || x AS x FROM c), e AS (SELECT x || x || x || x AS x FROM d), f AS (SELECT x || x || x || x AS x FROM e), g AS (SELECT x || x || x || x AS x FROM f) SELECT max(x || x || x || x) FROM g",
    "SELECT tenant_id, event_name, count(*) FROM events GROUP BY GROUPING SETS (" + ", ".join(["(tenant_id, event_name)"] * 60) + ")", "SELECT count(*) FROM events GROUP BY CUBE (tenant_id, event_name, timestamp, event_id, user_id, string_props['a'])",
)  # fmt: skip

TOO_LARGE = (
    "SELECT " + " + ".join(["1"] * 5_000), "SELECT " + " OR ".join(["true"] * 15_000), "SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "SELECT " + "(" * 31_000, "SELECT " + "abs(" * 3_000 + "1" + ")" * 3_000, "SELECT " + "NOT " * 10_000 + "true", "SELECT " + "- " * 30_000 + "1", "SELECT " + "CASE WHEN true THEN " * 1_000 + "1" + " END" * 1_000,
    " UNION ALL ".join(["SELECT 1"] * 4_000), "SELECT * FROM " + "(SELECT * FROM " * 2_000 + "events" + ") x" * 2_000, "SELECT 1 WHERE 1 IN (" + ", ".join(["1"] * 20_000) + ")", "SELECT " + ", ".join(["1"] * 20_000), "SELECT '" + "x" * 70_000 + "'", "SELECT 1 -- " + "x" * 70_000, "SELECT '\0'", "SELECT 'x", "SELECT /* x", "SELECT \"x",
    "SELECT $$x", "SELECT E'\\x", "WITH " + ", ".join(f"a{n} AS (SELECT 1)" for n in range(50)) + " SELECT 1", "WITH a0 AS (SELECT 1 AS x)" + "".join(f", a{n} AS (SELECT * FROM a{n - 1} UNION ALL SELECT * FROM a{n - 1})" for n in range(1, 19)) + " SELECT count(*) FROM a18",
    "SELECT " + "a[" * 5_000, "SELECT a" + "[1]" * 5_000 + " FROM events", "SELECT a" + ".b" * 5_000 + " FROM events", "SELECT a" + "::int" * 5_000 + " FROM events", "SELECT CAST(" * 2_000 + "1" + " AS INT)" * 2_000, "SELECT 1 FROM events WHERE " + " AND ".join(["EXISTS (SELECT 1 FROM events)"] * 400), "SELECT [" * 5_000, "SELECT {" * 5_000,
)  # fmt: skip

# What honest people ask.
HONEST = (
    "SELECT 1", "SELECT count(*) FROM events", "SELECT tenant_id, count(*) FROM events GROUP BY 1 ORDER BY 2 DESC", "WITH x AS (SELECT * FROM events) SELECT count(*) FROM x", "SELECT * FROM \"events\" LIMIT 1", "SELECT * FROM public.events LIMIT 1", "SELECT * FROM inlay.public.events LIMIT 1",
    "WITH events AS (SELECT 1 AS a) SELECT a FROM events", "SELECT 'DROP TABLE events; --' AS a", "SELECT /* ; DELETE */ 1 -- ; DROP", "SELECT count(*) FROM events WHERE string_props['x; DROP'] IS NULL", "(SELECT 1) UNION (SELECT 2)", "SELECT * FROM (VALUES (1)) v(a)", "SELECT 1 FROM events WHERE 1 = 0",
)  # fmt: skip


def corpus():
    """Every statement with its verdict."""
    for write in WRITES:
        yield from (("no", write.format(t=table)) for table in TABLES)
    for kind in (STATEMENTS, READS, BOMBS, TOO_LARGE):
        yield from (("no", statement) for statement in kind)
    yield from (("some", statement) for statement in HEAVY)
    yield from (("yes", statement) for statement in HONEST)
