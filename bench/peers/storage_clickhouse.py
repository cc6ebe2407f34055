"""Bytes an event of ClickHouse for the rows of the storage bench.

    cargo bench -p inlay-bench --bench storage -- 10000000 --export rows.tsv
    pip install chdb && python3 bench/peers/storage_clickhouse.py rows.tsv

The table is what its documentation recommends for such events: LowCardinality for what repeats, a
UUID as a UUID, sorted as we sort, default compression (LZ4); then the same with ZSTD. All parts are
merged before they are measured.
"""

import sys
import tempfile

from chdb import session

COLUMNS = """
    tenant LowCardinality(String) {codec}, name LowCardinality(String) {codec},
    at Int64 {codec}, event_id UUID {codec}, user String {codec},
    model LowCardinality(String) {codec}, endpoint LowCardinality(String) {codec},
    status LowCardinality(String) {codec}, plan LowCardinality(String) {codec},
    source LowCardinality(String) {codec}, country LowCardinality(String) {codec},
    latency_ms Float64 {codec}, tokens Float64 {codec}
"""


def measure(db, rows_file, title, codec):
    db.query("DROP TABLE IF EXISTS bench.events")
    db.query(
        f"CREATE TABLE bench.events ({COLUMNS.format(codec=codec)}) ENGINE = MergeTree "
        "PARTITION BY toDate(intDiv(at, 1000)) ORDER BY (tenant, name, at) SETTINGS min_bytes_for_wide_part = 0"
    )
    db.query(f"INSERT INTO bench.events SELECT * FROM file('{rows_file}', 'TSV', "
             "'tenant String, name String, at Int64, event_id UUID, user String, model String, endpoint String, "
             "status String, plan String, source String, country String, latency_ms Float64, tokens Float64')")
    db.query("OPTIMIZE TABLE bench.events FINAL")
    rows = int(str(db.query("SELECT count() FROM bench.events", "TSV")))
    text = str(db.query(
        "SELECT name, sum(data_compressed_bytes + marks_bytes) FROM system.columns WHERE database = 'bench' "
        "AND table = 'events' GROUP BY name ORDER BY 2 DESC", "TSV"))
    columns = [line.split("\t") for line in text.splitlines()]
    on_disk = int(str(db.query(
        "SELECT sum(bytes_on_disk) FROM system.parts WHERE database = 'bench' AND table = 'events' AND active",
        "TSV")))
    ids = next(int(size) for name, size in columns if name == "event_id")
    print(f"{title}: {on_disk / rows:.2f} bytes an event, {(on_disk - ids) / rows:.2f} without event ids")
    for name, size in columns:
        print(f"    {name:12} {int(size) / rows:7.3f}")


def main():
    rows_file = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        db = session.Session(directory)
        db.query("CREATE DATABASE bench ENGINE = Atomic")
        measure(db, rows_file, "ClickHouse, default", "")
        measure(db, rows_file, "ClickHouse, ZSTD(1)", "CODEC(ZSTD(1))")


main()
