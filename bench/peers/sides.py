"""Those who are asked: the stores, each in a process of its own, and our engine in a program.

A process each keeps them apart: CPU time counts the threads of one store only, and no allocator or
garbage collector of one is in the way of another. Our program is spoken to in lines of JSON, as
`queries.py` describes; a store's process holds the same conversation over a pipe.

Every sample is taken warm: the same question was asked once just before.
"""

import gc
import json
import math
import multiprocessing
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from classes import Class
from clickhouse import CLICK, Click
from duck import DUCK, Duck
from lite import LITE, Lite
from workload import DAY_MS, Facts

PEERS = {DUCK.name: Duck, CLICK.name: Click, LITE.name: Lite}
# A sample takes at least so long: short questions are repeated.
SAMPLE_NS = 1_200_000
REPEATS_MAX = 2_000
# An answer, whatever its form: bucket in milliseconds and group, each where there is one, to value.
Answer = dict[tuple[int | None, str | None], float]


@dataclass
class Sample:
    """What one side took for one question in one round, in nanoseconds a question."""

    mean: float
    least: float
    cpu: float

    @classmethod
    def of(cls, wall_ns: list[int], cpu_ns: int) -> "Sample":
        return cls(sum(wall_ns) / len(wall_ns), min(wall_ns), cpu_ns / len(wall_ns))


def repeats(sample: Sample) -> int:
    """How often to ask for a sample that is long enough."""
    return min(REPEATS_MAX, max(1, math.ceil(SAMPLE_NS / sample.least)))


def say(text: str) -> None:
    """What is going on, beside the table."""
    print(text, file=sys.stderr, flush=True)


class Peer:
    """A store that is compared with ours."""

    def __init__(self, name: str, directory: Path, threads: int, store: type | None = None):
        self.name = name
        store = store or PEERS[name]
        self.forms = store.forms
        self.loaded = directory / f"{name}.loaded"
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        self.pipe = ours
        self.process = multiprocessing.get_context("spawn").Process(
            target=converse, args=(theirs, store, directory, threads), daemon=True
        )
        self.process.start()
        theirs.close()

    def call(self, method: str, *arguments):
        self.pipe.send((method, arguments))
        failed, result = self.pipe.recv()
        if failed:
            raise SystemExit(f"{self.name}: {method}{arguments}: {result}")
        return result

    def load(self, parquet: Path, facts: Facts) -> None:
        if not self.loaded.exists():
            start = time.monotonic()
            self.call("load", parquet, facts)
            self.loaded.touch()
            say(f"loaded {self.name} in {time.monotonic() - start:.0f} s")

    def answer(self, text: str) -> Answer:
        names, rows = self.call("answer", text)
        answer = {}
        for row in rows:
            cells = dict(zip(names, row, strict=True))
            day = cells.get("day", cells.get("week"))
            answer[None if day is None else day * DAY_MS, cells.get("grp")] = cells["result"]
        return filled(answer)

    def time(self, question: tuple[str, str], repeat: int) -> Sample:
        """A question is a statement and the form of the answer."""
        return Sample.of(*self.call("time", question, repeat))

    def close(self) -> None:
        self.pipe.send(None)
        self.process.join()


def converse(pipe, kind: type, directory: Path, threads: int) -> None:
    """The life of a store's process."""
    store = kind(directory, threads)
    gc.disable()
    while message := received(pipe):
        method, arguments = message
        try:
            result = timed(store, *arguments) if method == "time" else getattr(store, method)(*arguments)
            pipe.send((False, result))
        except Exception as error:  # noqa: BLE001 - whatever it was, the one who asked reports it.
            pipe.send((True, f"{type(error).__name__}: {error}"))


def received(pipe):
    """The next message; nothing when the one who asked is gone."""
    try:
        return pipe.recv()
    except EOFError:
        return None


def timed(store, question: tuple[str, str], repeat: int) -> tuple[list[int], int]:
    """Wall times and the CPU time of so many questions, in nanoseconds."""
    ask, clock = store.asker(*question), time.perf_counter_ns
    ask()
    samples = []
    cpu = time.process_time_ns()
    for _ in range(repeat):
        start = clock()
        ask()
        samples.append(clock() - start)
    return samples, time.process_time_ns() - cpu


class Ours:
    """Our engine, asked as if for the first time."""

    name = "Inlay"
    # Whether what was kept from the same question before may be used.
    again = False

    def __init__(self, program: Path, rows_file: Path, directory: Path):
        # A script is our stand-in, for trying the protocol.
        command = [sys.executable, str(program)] if program.suffix == ".py" else [str(program)]
        if not directory.exists():
            subprocess.run([*command, "load", str(rows_file), str(directory)], check=True)
        self.process = subprocess.Popen(
            [*command, "serve", str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def call(self, query: dict[str, str], repeat: int) -> dict:
        asked = {"query": query, "repeat": repeat, "again": self.again}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        reply = json.loads(line) if line else {"error": "no answer"}
        if "error" in reply:
            raise SystemExit(f"ours: {json.dumps(query)}: {reply['error']}")
        return reply

    def answer(self, one: Class) -> Answer:
        answer = {}
        for row in self.call(one.query, 1)["answer"]["rows"]:
            bucket = row.get("bucket")
            if isinstance(bucket, str):
                bucket = round(datetime.fromisoformat(bucket).timestamp() * 1_000)
            answer[bucket, row.get("group")] = row["value"]
        return filled(answer)

    def time(self, one: Class, repeat: int) -> Sample:
        self.call(one.query, 1)
        reply = self.call(one.query, repeat)
        return Sample.of(reply["wall_ns"], reply["cpu_ns"])

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class OursAgain(Ours):
    """The same engine, asked as a dashboard does that is refreshed: it kept what each segment gave."""

    name = "Inlay again"
    again = True

    def __init__(self, ours: Ours):
        self.process = ours.process


def filled(answer: Answer) -> Answer:
    """The answer without what is nothing: we write empty buckets out, others leave them out."""
    return {key: float(value) for key, value in answer.items() if value}
