#!/usr/bin/env python3
"""Cuts the power: what was not synced is gone, and nothing that was promised may be.

The data directory lies on an ext4 image on a RAM disk, mounted with `commit=600`, so that nothing
reaches the image in passing. A cut stops the server with SIGSTOP, waits until no thread of it runs
in the kernel, copies the image, takes the ledger of that moment, and lets the server go on. The
copy is a disk as a power cut would leave it: it is mounted, a second server starts on it and is
compared with the ledger. Every fifth cut is compound: the second server is itself cut while it
recovers, and a third one is compared.

With `--upkeep` the server's clock begins a day behind (libfaketime) and goes on by an hour before each
cut. Segments settle and days are quiet then, so that the cut comes while they are merged and sealed;
the second server, by the true time, does the same while it is cut.

The control runs the same with `fsync` and `fdatasync` made to do nothing. It must lose acknowledged
events, or else this rig would not notice a server that does not sync.

    python3 tests/rigs/power.py PATH/TO/inlay [--cuts 20] [--upkeep]

Needs root, loop devices, mkfs.ext4 and a C compiler.
"""

import contextlib
import pathlib
import random
import shutil
import signal
import subprocess
import time

from common import Failed, Gone, Skipped, main, register
from faketime import Clock, by
from ledger import Ledger
from load import Load
from machine import mount, need_root, need_tool
from metadata import Metadata

RAM_DISK = pathlib.Path("/dev/shm")
IMAGE_BYTES = 1 << 30
# The image grows with the data; a fresh one keeps the copies quick.
CUTS_OF_AN_IMAGE = 25
COMPOUND_EVERY = 5
LIFE_SECONDS = (0.02, 0.4)
# Recovery of a small directory takes a few to some hundred milliseconds.
RECOVERY_SECONDS = (0.002, 0.15)
CONTROL_CUTS = 3
# A little more than what segments wait for, and together less than embed sessions live.
HOURS_OF_A_CUT, CUTS_OF_A_DAY = 1.05, 20
# Dirty pages are written after 30 s even without a sync: a control must cut well before.
CONTROL_LIFE_SECONDS = 1

NO_SYNC = """
#define _GNU_SOURCE
#include <sys/types.h>
int fsync(int f) { return 0; }
int fdatasync(int f) { return 0; }
int syncfs(int f) { return 0; }
int sync_file_range(int f, off64_t o, off64_t n, unsigned int flags) { return 0; }
int msync(void *a, size_t n, int flags) { return 0; }
"""


def options(parser):
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--upkeep", action="store_true", help="while segments are merged and sealed")


def run(rig):
    need_root()
    for tool in ("mkfs.ext4", "losetup", "cc"):
        need_tool(tool)
    if not RAM_DISK.is_dir():
        raise Skipped("needs a RAM disk")
    lots = random.Random(rig.random_seed)
    wrong, summaries, cuts = [], [], 0
    sabotage = rig.arguments.sabotage
    longest_ms = 0
    while cuts < rig.arguments.cuts and not wrong:
        most = CUTS_OF_A_DAY if rig.arguments.upkeep else CUTS_OF_AN_IMAGE
        count = min(most, rig.arguments.cuts - cuts)
        clock = Clock(rig) if rig.arguments.upkeep else None
        series = Series(rig, lots, clock=clock, sabotage=sabotage)
        found, stops_ms = series.run(count, lambda: lots.uniform(*LIFE_SECONDS), COMPOUND_EVERY)
        wrong += found
        longest_ms = max(longest_ms, *stops_ms)
        cuts += count
        summaries.append(series)
    shim = compile_shim(rig.folder)
    control = Series(rig, lots, environment={"LD_PRELOAD": str(shim)})
    lost, _ = control.run(CONTROL_CUTS, lambda: CONTROL_LIFE_SECONDS, compound_every=0)
    if len(lost) < CONTROL_CUTS:
        wrong.append(f"the control without syncs lost something in {len(lost)} cuts only: {lost}")
    acknowledged = sum(series.ledger.seen["acknowledged"] for series in summaries)
    events = sum(series.ledger.seen["events"] for series in summaries)
    metadata = Metadata(rig.random_seed)
    for series in summaries:
        metadata.add(series.metadata)
    compound = sum(series.compound for series in summaries)
    working = sum(series.working for series in summaries)
    if rig.arguments.upkeep and working == 0:
        wrong.append("no cut came while segments were written")
    return wrong, (
        f"{cuts} cuts, {compound} of them compound, {working} while a segment was written, {acknowledged:,} batches with {events:,} "
        f"events acknowledged, {metadata.summary()}, longest stop {longest_ms:.0f} ms; control "
        f"without syncs: {len(lost)} of {CONTROL_CUTS} cuts lost acknowledged ones"
    )


def compile_shim(folder):
    source, shim = folder / "no_sync.c", folder / "no_sync.so"
    source.write_text(NO_SYNC)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", shim, source], check=True)
    return shim


class Series:
    """One image, one server on it under load, and cuts of it."""

    def __init__(self, rig, lots, environment=None, clock=None, sabotage=None):
        self.rig, self.lots = rig, lots
        self.environment, self.clock = environment, clock
        self.sabotage = sabotage
        # Cuts that were compound, and those that found a segment half written.
        self.compound = self.working = 0

    def run(self, cuts, life, compound_every):
        """One line for each cut after which something was wrong, and how long each stop took."""
        wrong, stops_ms = [], []
        with contextlib.ExitStack() as stack:
            disk = Disk(stack, self.rig.folder, IMAGE_BYTES)
            log = self.rig.folder / "first.log"
            data = disk.place / "data"
            if self.clock:
                self._go_on(-CUTS_OF_A_DAY)
                server = self.clock.start_server(data, stack, log)
            else:
                server = self.rig.start(data, stack, log=log, environment=self.environment)
            key = register(server.host)
            self.ledger = Ledger(self.rig.folder / "ledger.jsonl")
            self.metadata = Metadata(self.rig.random_seed)
            load = Load(server.host, key, self.ledger, self.rig.random_seed, sabotage=self.sabotage)
            self.metadata.start(server.host, key)
            for cut in range(cuts):
                if self.clock:
                    self._go_on(cut - CUTS_OF_A_DAY)
                time.sleep(life())
                is_compound = compound_every and cut % compound_every == compound_every - 1
                found = self._cut(disk, server, key, is_compound, stops_ms, load)
                wrong += [f"cut {cut + 1}: {line}" for line in found[:1]]
                self.ledger.close_round()
            server.expect_alive()
            load.stop()
            self.metadata.stop()
            wrong += self.ledger.wrong + self.metadata.wrong
        return wrong, stops_ms

    def _go_on(self, cuts):
        self.clock.jump(by(cuts * HOURS_OF_A_CUT * 3_600))

    def _cut(self, disk, server, key, is_compound, stops_ms, load):
        with contextlib.ExitStack() as stack:
            stopped = time.monotonic()
            stop_all_threads(server)
            try:
                copy = disk.copy(stack)
                self.working += any((disk.place / "data" / "tmp").glob("*.seg"))
                # Later answers are not in the copy; those of this moment are.
                ledger, metadata = self.ledger.copy(), self.metadata.copy()
            finally:
                server.process.send_signal(signal.SIGCONT)
            stops_ms.append((time.monotonic() - stopped) * 1_000)
            # The processors are for the comparison meanwhile.
            load.running.clear()
            self.metadata.running.clear()
            stack.callback(load.running.set)
            stack.callback(self.metadata.running.set)
            if is_compound:
                copy = self._cut_recovery(stack, copy)
            return self._compare(stack, copy, key, ledger, metadata)

    def _cut_recovery(self, stack, disk):
        """The disk as it is when the power goes again, during the start."""
        self.compound += 1
        place = disk.mount(stack)
        settings = {
            "INLAY_DATA_DIR": str(place / "data"),
            "INLAY_HTTP_ADDR": "127.0.0.1:0",
            "INLAY_GRPC_ADDR": "127.0.0.1:0",
        }
        with open(self.rig.folder / "second.log", "ab") as log:
            process = subprocess.Popen(
                [self.rig.arguments.binary, "serve"], env=settings, stdout=log, stderr=log
            )
        stack.callback(process.wait)
        stack.callback(process.kill)
        time.sleep(self.lots.uniform(*RECOVERY_SECONDS))
        process.send_signal(signal.SIGSTOP)
        wait_until_stopped(process.pid)
        return disk.copy(stack)

    def _compare(self, stack, disk, key, ledger, metadata):
        log = self.rig.folder / "second.log"
        try:
            place = disk.mount(stack)
            server = self.rig.start(place / "data", stack, log=log)
            ledger.compare(server.host, key)
            metadata.compare(server.host, key)
            self.metadata.add(metadata)
        except (Failed, Gone) as failure:
            return [str(failure)]
        return ledger.wrong + metadata.wrong


def stop_all_threads(server):
    server.expect_alive()
    server.process.send_signal(signal.SIGSTOP)
    wait_until_stopped(server.pid)


def wait_until_stopped(pid):
    """A thread inside a sync stops only after it: until then the disk still changes."""
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        states = []
        for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):
                states.append(stat.read_text().rpartition(")")[2].split()[0])
        if all(state in "TZX" for state in states):
            return
        time.sleep(0.001)
    raise Failed("the server does not stop")


class Disk:
    """An ext4 file system in a file on the RAM disk."""

    def __init__(self, stack, folder, image_bytes):
        self.folder = folder
        self.image = RAM_DISK / f"{folder.name}-0.img"
        stack.callback(self.image.unlink, missing_ok=True)
        with open(self.image, "wb") as file:
            file.truncate(image_bytes)
        quiet = {"check": True, "capture_output": True}
        # Tables that are written later would go to the image behind our back.
        options = "lazy_itable_init=0,lazy_journal_init=0"
        subprocess.run(["mkfs.ext4", "-q", "-E", options, self.image], **quiet)
        self.place = self.mount(stack)

    def mount(self, stack):
        place = self.image.with_suffix(".mounted")
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        mount(stack, self.image, place, "-o", "loop,commit=600")
        return place

    def copy(self, stack):
        """Another disk with the bytes of this moment."""
        twin = Disk.__new__(Disk)
        number = int(self.image.stem.rpartition("-")[2]) + 1
        twin.folder, twin.image = self.folder, RAM_DISK / f"{self.folder.name}-{number}.img"
        stack.callback(twin.image.unlink, missing_ok=True)
        subprocess.run(["cp", "--sparse=auto", self.image, twin.image], check=True)
        return twin


if __name__ == "__main__":
    main("power", __doc__, run, options)
