#!/usr/bin/env python3
"""Runs every rig and prints one line for each: what it showed, in numbers.

    python3 tests/rigs/all.py PATH/TO/inlay                    within ten minutes on two cores
    python3 tests/rigs/all.py PATH/TO/inlay --long             the figures that we publish: a night
    python3 tests/rigs/all.py PATH/TO/inlay --only kill stop
    python3 tests/rigs/all.py PATH/TO/inlay --sabotage lose    every rig must fail

Two rigs run at once, each in a process of its own: most of them wait half of the time. The exit code
is 1 when any failed. With `--sabotage` a rig that does not fail is the failure: it would not notice that
fault in a server either.
"""

import argparse
import concurrent.futures
import pathlib
import signal
import subprocess
import sys
import time

# Name, short arguments, long arguments. The soak waits most of the time, and runs beside the others.
RIGS = (
    ("soak", "--minutes 10", "--minutes 360"),
    ("kill", "--kills 100", "--kills 2000"),
    ("mass", "--events 10000000 --kills 3 --limit-mb 512", "--events 100000000 --kills 20"),
    ("power", "--cuts 60", "--cuts 2500"),
    ("power", "--cuts 40 --upkeep", "--cuts 500 --upkeep"),
    ("flips", "--flips 300", "--flips 5000"),
    ("faults", "--runs 40", "--all"),
    ("faults", "--runs 10 --upkeep seal", "--runs 2000 --upkeep seal"),
    ("faults", "--runs 10 --upkeep merge", "--runs 2000 --upkeep merge"),
    ("full", "--cycles 2", "--cycles 50"),
    ("clock", "--jumps 9", "--jumps 1000"),
    ("retention", "--rounds 1", "--rounds 100"),
    ("stop", "--stops 20", "--stops 1000"),
    ("descriptors", "--cycles 2", "--cycles 100"),
    ("memory", "--events 300000", "--events 10000000"),
    ("diskless", "--kills 6", "--kills 200 --events 10000000 --answer-seconds 10"),
    ("nodes", "", "--kills 1000 --pauses 300 --cuts 100 --failovers 50 --pause-seconds 10"),
    ("equal", "--count 2000", "--count 100000"),
    ("equal", "--count 500 --cache-mb 1", "--count 20000 --cache-mb 1"),
    ("bounded", "--events 100000", "--events 3000000"),
    ("upgrade", "", "--rounds 10"),
    ("suite", "--tests accounts:: dashboards:: embed:: erasures:: events:: members:: usage:: --threads 3", ""),
    ("rules", "--rules 10000", "--rules 10000 --interval 30"),
    ("deliveries", "--kills 10", "--kills 200"),
    ("webhooks", "", ""),
    ("statements", "--slack-ms 200", "--limit-ms 10000"),
    ("neighbours", "--slack-ms 20", "--seconds 60"),
    ("workers", "", ""),
    ("contract", "--examples 10", "--examples 300"),
    ("billing", "--mutations 1000", "--mutations 100000"),
)
FOLDER = pathlib.Path(__file__).resolve().parent
# Nothing here takes so long, on a busy machine either, unless something hangs.
SHORT_SECONDS = 1_500
LONG_SECONDS = 24 * 3_600


class Runs:
    """Rigs as processes, which end with this one."""

    def __init__(self):
        self.processes = []

    def run(self, name, options, seconds):
        """The exit code and the output of one rig; it is given time to tidy up when it hangs."""
        command = [sys.executable, FOLDER / f"{name}.py", *options]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        self.processes.append(process)
        try:
            output, _ = process.communicate(timeout=seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            process.terminate()
            output, _ = process.communicate(timeout=60)
            return 1, f"{output}WRONG {name}: stopped after {seconds} s\n"

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()


def main():
    names = list(dict.fromkeys(name for name, _, _ in RIGS))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("binary", type=lambda text: str(pathlib.Path(text).resolve(strict=True)))
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--except", nargs="+", choices=names, default=[], dest="without")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--dir", help="where the folders of the runs are made")
    parser.add_argument("--at-once", type=int, default=2, help="rigs that run at the same time")
    parser.add_argument("--sabotage", choices=("lose", "double", "tear"))
    arguments = parser.parse_args()

    arguments.only = [name for name in arguments.only if name not in arguments.without]
    more = [arguments.binary, "--seed", arguments.seed]
    more += ["--dir", arguments.dir] if arguments.dir else []
    more += ["--sabotage", arguments.sabotage] if arguments.sabotage else []
    # Asked to end, the rigs that run are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started, bad, runs, futures = time.monotonic(), [], Runs(), {}
    beside = "soak" in arguments.only
    pool = concurrent.futures.ThreadPoolExecutor(arguments.at_once + beside)
    try:
        for name, short, long in RIGS:
            if name in arguments.only:
                options = (long if arguments.long else short).split() + more
                seconds = LONG_SECONDS if arguments.long else SHORT_SECONDS
                futures[pool.submit(runs.run, name, options, seconds)] = name
        for future in concurrent.futures.as_completed(futures):
            if not report(futures[future], *future.result(), arguments.sabotage):
                bad.append(futures[future])
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        runs.end()
    print(f"{len(futures)} rigs in {time.monotonic() - started:.0f} s", end="")
    verdict = "did not notice the sabotage" if arguments.sabotage else "failed"
    print(f"; {verdict}: {', '.join(bad)}" if bad else "")
    sys.exit(1 if bad else 0)


def report(name, code, output, sabotage):
    """Prints the result of a rig; whether it is as it should be."""
    lines = output.rstrip().splitlines() or [f"WRONG {name}: said nothing"]
    is_skipped = "skipped:" in lines[-1]
    print("\n".join(lines if code != 0 and not sabotage else lines[-1:]), flush=True)
    # What broke off has noticed nothing.
    is_noticed = code != 0 and " findings; " in lines[-1] and "did not finish" not in lines[-1]
    return is_noticed or is_skipped if sabotage else code == 0


if __name__ == "__main__":
    main()
