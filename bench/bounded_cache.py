#!/usr/bin/env python3
"""What a process costs whose disk has not room for all files of the store, beside one that has all of them.

    python3 bench/bounded_cache.py PATH/TO/inlay [--events 3000000] [--cache-mb 16] [--starts 8]

PostgreSQL and an S3 server (`moto`, which keeps objects in memory) run on the same cores. One process is filled with events of twenty
tenants over thirty days (those of `http_ingest.py`, each with an `event_id`), and has all files on its disk. Then a second one is started several times, each time on
an empty directory with a bound, and answers the queries of a dashboard of another tenant: how many calls of the bucket the start took, and how many each
query. At last both are asked again and again in turns, each time with another end.

The result is a Markdown table.
"""

import argparse
import contextlib
import pathlib
import statistics
import sys
import time

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "tests" / "rigs")]
from cluster import Place, Store, ingest, new_folder, question, questions  # noqa: E402
from common import Connection, Server  # noqa: E402
from http_ingest import EVENT, TENANTS, Workload, iso, name_of  # noqa: E402
from idle import until_idle  # noqa: E402

QUERIES = {
    "events by day": "metric=count&granularity=day",
    "users by day": "metric=count_unique&granularity=day",
    "p95 by day": "metric=p95&numeric_prop=latency_ms&granularity=day",
    "events by model": "metric=count&group_by=model",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--events", type=int, default=3_000_000)
    parser.add_argument("--cache-mb", type=int, default=16)
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--questions", type=int, default=1_000)
    arguments = parser.parse_args()
    workload = Workload(arguments.events)
    print("| | |\n|---|--:|")
    with contextlib.ExitStack() as stack:
        folder = new_folder(stack)
        store = Store(arguments.binary, Place(folder / "store", stack), 1, True)
        ingest(store, workload)
        until_idle(folder / "store")
        sizes = {kind: size(folder.glob(f"**/{kind}/**/*")) for kind in ("seg", "ids")}
        print(f"| segments, id runs | {sizes['seg'] / 2**20:.0f} MB, {sizes['ids'] / 2**20:.0f} MB |")
        starts, fetched, cold = [], [], {name: [] for name in QUERIES}
        for number in range(arguments.starts):
            with contextlib.ExitStack() as one:
                started = time.monotonic()
                bounded = start(arguments, store, folder / f"bounded {number}", one)
                at_start = reads(bounded)
                for name, query in QUERIES.items():
                    before, began = reads(bounded), time.perf_counter()
                    ask(bounded, store.key, workload, number % TENANTS, query)
                    if name == next(iter(QUERIES)):
                        starts.append(time.monotonic() - started)
                    took = (time.perf_counter() - began) * 1_000
                    cold[name].append((reads(bounded)[0] - before[0], took))
                fetched.append((at_start[0], reads(bounded)[1]))
        print(f"| empty directory until the first answer | {statistics.median(starts):.2f} s |")
        print(f"| calls of the bucket for segments at the start | {statistics.median(calls for calls, _ in fetched):.0f} |")
        of_all = statistics.median(of for _, of in fetched)
        print(f"| fetched of segments, with all four queries | {of_all / 2**20:.1f} MB |")
        for name, of in cold.items():
            calls, times = [one[0] for one in of], [one[1] for one in of]
            print(
                f"| cold, {name} | {statistics.median(calls):.0f} calls (at most {max(calls)}), "
                f"{statistics.median(times):.0f} ms |"
            )
        with contextlib.ExitStack() as one:
            bounded = start(arguments, store, folder / "bounded warm", one)
            # Its block is there from then on.
            Connection(bounded.host, store.key).get(question(workload, 0))
            asked = {"all files": (store.servers[0], store.key), "bounded": (bounded, store.key)}
            for name, (median, late) in questions(asked, workload, arguments.questions).items():
                print(f"| warm, {name} | median {median:.3f} ms, p95 {late:.3f} ms |")
            statement = "SELECT tenant_id, count(*), sum(numeric_props['latency_ms']) FROM events GROUP BY 1 ORDER BY 1"
            for name in ("cold", "again"):
                began = time.perf_counter()
                asked = Connection(bounded.host, store.key, timeout=60)
                status, _, answer = asked.call("POST", "/v1/query/adhoc", {"sql": statement})
                took = time.perf_counter() - began
                print(f"| SQL over everything, {name} | {status}, {took:.2f} s |")
            time.sleep(3)
            held = metric(bounded, "inlay_cluster_cache_bytes")
            print(f"| on its disk afterwards, of {arguments.cache_mb} MB | {held / 2**20:.0f} MB |")


def start(arguments, store, data, stack):
    settings = store.settings | {"INLAY_CACHE_MB": str(arguments.cache_mb)}
    server = Server(arguments.binary, data, environment=settings)
    stack.callback(server.end)
    return server


def ask(server, key, workload, tenant, query):
    path = f"/v1/query?tenant_id={name_of(tenant)}&event_name={EVENT}&{query}"
    Connection(server.host, key, timeout=60).get(f"{path}&from={iso(workload.since)}&to={iso(workload.until)}")


def metric(server, name):
    _, _, text = Connection(server.host).call("GET", "/metrics")
    lines = text.splitlines() if isinstance(text, str) else text.decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.split(" ")[0] == name)


def reads(server):
    """Calls of the bucket for parts of segments, and the bytes that came."""
    return metric(server, "inlay_cluster_cache_reads_total"), metric(server, "inlay_cluster_cache_read_bytes_total")


def size(paths):
    return sum(path.stat().st_size for path in paths if path.is_file())


if __name__ == "__main__":
    main()
