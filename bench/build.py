#!/usr/bin/env python3
"""What building costs: the README's two commands from cold, the loop of a change, size, first page.

    python3 bench/build.py cold                        both commands, one after the other, from nothing
    python3 bench/build.py loop                        a build and a test after one file has changed
    python3 bench/build.py page PATH/TO/inlay …        the demo's first page, of one binary or several
    python3 bench/build.py units PATH/TO/timings.html  what `cargo … --timings` wrote, slowest first

`cold` uses an empty target directory of its own (`--target DIR` names it, and keeps it). Crates are
downloaded before the clock starts: that is the network's time, and a few seconds. The first command is
measured until the demo's dashboard has answered, the second until its last test has ended. `loop`
expects the target directory of such a run, changes one comment of a file, and puts it back.

The result is Markdown. Compare figures of one machine on one day only.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Units of compilation that a table names: below it, none of them alone makes anybody wait.
UNIT_SECONDS_MIN = 10.0
# Pages of one binary, in turns with those of the others.
PAGES = 30
# A change, and the command that its author waits for.
LOOPS = (
    ("a handler of `server`", "server/src/http/v1/alerts.rs", "cargo test -p inlay-server --lib alerts"),
    ("a test of `tests/it`", "tests/it/alerts.rs", "cargo test -p inlay-tests --test it alerts"),
    ("a module of `engine`", "engine/src/wal/reader.rs", "cargo test -p inlay-engine --lib wal"),
    ("a module of `server/sql`", "server/sql/src/gate/joins.rs", "cargo test -p inlay-sql --lib gate"),
)


class Demo:
    """`inlay serve --demo` in a folder of its own, by whatever command starts it."""

    def __init__(self, command, folder, environment=None):
        settings = {
            "INLAY_DATA_DIR": f"{folder}/data",
            "INLAY_HTTP_ADDR": "127.0.0.1:0",
            "INLAY_GRPC_ADDR": "127.0.0.1:0",
            "INLAY_LOG": "warn",
        }
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {}), **settings},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.url = None
        for line in self.process.stdout:
            found = re.search(r"Demo dashboard: (\S+)", line)
            if found:
                self.url = found.group(1)
                break
        if self.url is None:
            sys.exit(f"{command} ended without an address")

    def page(self):
        """Seconds until the page and what it loads first have come."""
        started = time.monotonic()
        with urllib.request.urlopen(self.url) as answer:
            html = answer.read().decode()
        if "<html" not in html:
            sys.exit(f"{self.url} is no page")
        base = self.url.partition("/embed")[0]
        for path in sorted(set(re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css))"', html))):
            with urllib.request.urlopen(base + path) as answer:
                answer.read()
        return time.monotonic() - started

    def resident_mb(self):
        """Memory of the server and its child processes that nobody else has."""
        total, group = 0, os.getpgid(self.process.pid)
        for status in pathlib.Path("/proc").glob("[0-9]*/smaps_rollup"):
            with contextlib.suppress(OSError, ValueError):
                if os.getpgid(int(status.parent.name)) == group:
                    total += int(re.search(r"^Pss:\s+(\d+)", status.read_text(), re.M).group(1))
        return total / 1024

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(timeout=60)


def cold(arguments):
    target = pathlib.Path(arguments.target or tempfile.mkdtemp(prefix="inlay-cold-"))
    if target.exists() and any(target.iterdir()):
        sys.exit(f"{target} is not empty")
    subprocess.run(["cargo", "fetch", "--locked"], cwd=ROOT, check=True)
    environment = {"CARGO_TARGET_DIR": str(target)}
    print("| step | wall time | processor time |\n|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        watch = Stopwatch("first command until its page")
        demo = Demo(["cargo", "run", "--timings", "--", "serve", "--demo"], folder, environment)
        demo.page()
        watch.stop()
        demo.stop()
        watch.row()
    timings = target / "cargo-timings" / "cargo-timing.html"
    first = units(timings)
    watch = Stopwatch("second command, building")
    build = ["cargo", "test", "--workspace", "--no-run", "--timings"]
    subprocess.run(build, cwd=ROOT, env={**os.environ, **environment}, check=True)
    watch.row()
    second = units(timings)
    watch = Stopwatch("second command, tests")
    test = ["cargo", "test", "--workspace"]
    log = target / "tests.log"
    with open(log, "w") as out:
        done = subprocess.run(test, cwd=ROOT, env={**os.environ, **environment}, stdout=out, stderr=out)
    watch.row()
    results = re.findall(r"^test result: .*?(\d+) passed; (\d+) failed", log.read_text(), re.M)
    passed, failed = (sum(int(result[n]) for result in results) for n in (0, 1))
    ours = lambda name: name == "inlay" or name.startswith("inlay-")
    # What was taken as it was is listed, too, and took no time.
    built = lambda data: {(u["name"], u["version"]) for u in data if u["duration"] > 0}
    again = built(first) & built(second)
    again = {f"{name} {version}" for name, version in again if not ours(name)}
    print(f"\n{passed} tests passed, {failed} failed; `{log}`")
    print(f"Crates of others that the second command built anew: {', '.join(sorted(again)) or 'none'}.")
    print(f"\nUnits of at least {UNIT_SECONDS_MIN:.0f} s:\n")
    print_units(first, "first command")
    print_units(second, "second command")
    if not arguments.target:
        shutil.rmtree(target)
    sys.exit(done.returncode)


class Stopwatch:
    """Time on the wall until `stop`, and that of processors in child processes that have ended until `row`."""

    def __init__(self, name):
        self.name, self.wall = name, None
        self.started, self.before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)

    def stop(self):
        self.wall = time.monotonic() - self.started

    def row(self):
        if self.wall is None:
            self.stop()
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = now.ru_utime + now.ru_stime - self.before.ru_utime - self.before.ru_stime
        print(f"| {self.name} | {minutes(self.wall)} | {minutes(processor)} |", flush=True)


def minutes(seconds):
    return f"{int(seconds // 60)} min {seconds % 60:02.0f} s"


def units(path):
    """What cargo wrote of each unit: name, target, seconds."""
    text = pathlib.Path(path).read_text()
    data = re.search(r"const UNIT_DATA = (\[.*?\]);\n", text, re.S)
    return json.loads(data.group(1))


def print_units(data, name):
    slow = sorted(data, key=lambda unit: -unit["duration"])
    slow = [unit for unit in slow if unit["duration"] >= UNIT_SECONDS_MIN]
    total = sum(unit["duration"] for unit in data)
    shown = ", ".join(f"`{u['name']}`{u['target']} {u['duration']:.0f}" for u in slow)
    print(f"- {name}: {len(data)} units, {total:.0f} s in all: {shown or 'none'}\n")


def loop(arguments):
    environment = {**os.environ}
    if arguments.target:
        environment["CARGO_TARGET_DIR"] = arguments.target
    print("| changed | command | wall time of three |\n|---|---|---|")
    for name, file, command in LOOPS:
        path = ROOT / file
        text = path.read_text()

        def run():
            started = time.monotonic()
            subprocess.run(command.split(), cwd=ROOT, env=environment, check=True, capture_output=True)
            return time.monotonic() - started

        run()
        times = []
        try:
            for turn in range(3):
                # Code that is compiled, so that nothing can be taken from before.
                path.write_text(f"{text}\nconst _: u64 = {turn};\n")
                times.append(run())
        finally:
            path.write_text(text)
        shown = ", ".join(f"{seconds:.1f}" for seconds in times)
        print(f"| {name} | `{command}` | {shown} s |", flush=True)


def page(arguments):
    print("| binary | size | ready after | page, median | longest | idle memory |\n|---|---|---|---|---|---|")
    with contextlib.ExitStack() as stack:
        demos = []
        for binary in arguments.binaries:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            started = time.monotonic()
            demo = Demo([binary, "serve", "--demo"], folder)
            stack.callback(demo.stop)
            demos.append((binary, demo, time.monotonic() - started, []))
        for _ in range(PAGES):
            for _, demo, _, times in demos:
                times.append(demo.page())
        time.sleep(arguments.idle_seconds)
        for binary, demo, ready, times in demos:
            size = pathlib.Path(binary).stat().st_size / 1e6
            print(
                f"| `{binary}` | {size:.1f} MB | {ready:.1f} s | {statistics.median(times) * 1e3:.1f} ms"
                f" | {max(times) * 1e3:.1f} ms | {demo.resident_mb():.0f} MB |"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    commands = parser.add_subparsers(required=True)
    for name, run in (("cold", cold), ("loop", loop)):
        command = commands.add_parser(name)
        command.add_argument("--target", help="the target directory")
        command.set_defaults(run=run)
    command = commands.add_parser("page")
    command.add_argument("binaries", nargs="+")
    command.add_argument("--idle-seconds", type=float, default=20)
    command.set_defaults(run=page)
    command = commands.add_parser("units")
    command.add_argument("timings")
    command.set_defaults(run=lambda arguments: print_units(units(arguments.timings), arguments.timings))
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
