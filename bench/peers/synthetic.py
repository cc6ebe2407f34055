"""Rows made up for the comparison, in the format of `workload.py`.

A thousand tenants by Zipf's law, 90 days with quiet nights and weekends, one event in a hundred up to
three days late, one line in two hundred a duplicate. There is one property without rollups, country.
Draws are hashes of the row's number, so the same number of rows gives the same file.
"""

from pathlib import Path

from workload import DAY_MS, HOUR_MS, connect

TENANTS = 1_000
DAYS = 90
# Lines over users of the largest tenant: 50,000 users at ten million lines.
EVENTS_A_USER = 200
# The last event lies in the middle of a day, as it does in life.
END_MS = 20_770 * DAY_MS + 14 * HOUR_MS
SEED = 4


def synthesize(rows_file: Path, rows: int, threads: int) -> None:
    """Writes a file of so many lines, the same one for the same number."""
    db = connect(":memory:", threads)
    db.execute(f"""
        CREATE MACRO draw(n, salt) AS (hash(n, salt, {SEED}) >> 11)::DOUBLE / 9007199254740992;
        CREATE MACRO pick(list, n, salt) AS list[1 + (draw(n, salt) * len(list))::INTEGER % len(list)];
        CREATE TABLE tenants AS
            SELECT i AS tenant, sum(1 / i) OVER (ORDER BY i) - 1 / i AS below, sum(1 / i) OVER () AS whole,
                   greatest(3, ({rows} / {EVENTS_A_USER} / i)::INTEGER) AS users
            FROM range(1, {TENANTS} + 1) r(i);
        CREATE TABLE hours AS
            SELECT *, sum(weight) OVER (ORDER BY hour) - weight AS below, sum(weight) OVER () AS whole
            FROM (SELECT {END_MS} - i * {HOUR_MS} AS hour,
                         (1.2 + sin(i * pi() / 12)) * (CASE WHEN i // 24 % 7 < 2 THEN 0.5 ELSE 1 END) AS weight
                  FROM range(1, {DAYS} * 24 + 1) r(i));
        CREATE TABLE draws AS
            SELECT n, draw(n, 1) * (SELECT max(whole) FROM tenants) AS x,
                   (n + 0.5) / {rows} * (SELECT max(whole) FROM hours) AS y
            FROM range({rows}) r(n);
        CREATE TABLE timed AS
            SELECT n, x, hour + floor((y - below) / weight * {HOUR_MS})::BIGINT AS time_ms
            FROM draws ASOF JOIN hours ON y >= below;
        CREATE TABLE plain AS
            SELECT n, tenant, time_ms, floor(power(draw(n, 2), 2) * users)::INTEGER AS user
            FROM timed ASOF JOIN tenants ON x >= below;
        CREATE TABLE arrivals AS
            SELECT *, time_ms + if(draw(n, 3) < 0.01, (draw(n, 4) * 3 * {DAY_MS})::BIGINT, 0) AS arrival
            FROM plain UNION ALL
            SELECT *, time_ms + (draw(n, 5) * {DAY_MS})::BIGINT FROM plain WHERE draw(n, 6) < 0.005;
    """)
    db.execute(f"""
        COPY (
            SELECT 'tenant-' || tenant AS tenant,
                   CASE WHEN draw(n, 7) < 0.45 THEN 'api_call'
                        WHEN draw(n, 7) < 0.8 THEN 'page_view' ELSE 'export' END AS name,
                   time_ms,
                   format('{{:08x}}-{{:04x}}-4{{:03x}}-8{{:03x}}-{{:012x}}', hash(n, 8) >> 32,
                          (hash(n, 8) >> 16) & 65535, hash(n, 8) & 4095, hash(n, 9) & 4095, hash(n, 9) >> 16)
                   AS event_id,
                   'user-' || tenant || '-' || user AS user_id,
                   'model-' || (draw(n, 10) * draw(n, 11) * 9)::INTEGER % 9 AS model,
                   '/v1/resource/' || (draw(n, 12) * draw(n, 13) * 46)::INTEGER % 46 AS endpoint,
                   CASE WHEN draw(n, 14) < 0.92 THEN 'ok'
                        WHEN draw(n, 14) < 0.98 THEN 'error' ELSE 'timeout' END AS status,
                   pick(['free', 'free', 'pro', 'team', 'enterprise'], user * 1000 + tenant, 15) AS plan,
                   pick(['web', 'web', 'sdk', 'sdk', 'sdk', 'cron', 'cli', 'mobile'], n, 16) AS source,
                   'C' || lpad(((draw(n, 17) * draw(n, 18) * 82)::INTEGER % 82)::VARCHAR, 2, '0') AS country,
                   round(exp(4.5 + sqrt(-2 * ln(1 - draw(n, 19))) * cos(2 * pi() * draw(n, 20))), 3) AS latency_ms,
                   floor(draw(n, 21) * draw(n, 22) * 8000)::INTEGER AS tokens
            FROM arrivals ORDER BY arrival, n
        ) TO '{rows_file}' (DELIMITER '\t', HEADER true, QUOTE '')
    """)
    db.close()
