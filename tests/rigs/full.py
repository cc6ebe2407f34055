#!/usr/bin/env python3
"""Fills the disk, and frees it again.

The data directory lies on a small tmpfs, most of which is taken by a ballast file. Clients post
batches until writes are refused. A refusal must be 503 with `Retry-After`; reads must go on, with
the right numbers; nothing may end. Then the ballast goes, and without a restart writes must be
taken again. Every second cycle takes the inodes instead of the bytes. After each cycle all numbers
are compared, and at the end once more after a kill and a restart.

    python3 tests/rigs/full.py PATH/TO/inlay [--cycles 2]

Needs root, for the tmpfs.
"""

import contextlib
import os
import time

from common import Failed, main, register
from ledger import Ledger
from load import Load, load_for
from machine import mount, need_root

DISK_MIB = 300
INODES = 400
# Room for the first log file, which is 64 MiB at once, and a little more.
FIRST_LOG_BYTES = 72 << 20
LEFT_BYTES = 256 << 10
# What is freed at the least: the server must be able to start a log file, or nothing heals.
FREED_BYTES_MIN = 80 << 20
# Data of earlier cycles stays; a fresh disk before it fills everything by itself.
CYCLES_OF_A_DISK = 2
REFUSED_WITHIN_SECONDS = 60
# Without a single acknowledgement.
REFUSED_SECONDS = 1.5
HEALED_WITHIN_SECONDS = 20
# A flush that failed is tried again after 5 s.
FLUSHED_WITHIN_SECONDS = 6.5
CLIENTS = 4
# Hexadecimal digits that no compression makes smaller than half: without them it takes a million events
# to fill a log file.
FILLING_DIGITS = 200


def options(parser):
    parser.add_argument("--cycles", type=int, default=2)


def run(rig):
    need_root()
    healed, refused, events, wrong = [], 0, 0, []
    for first in range(0, rig.arguments.cycles, CYCLES_OF_A_DISK):
        count = min(CYCLES_OF_A_DISK, rig.arguments.cycles - first)
        with contextlib.ExitStack() as stack:
            disk = Disk(stack, rig.folder / f"disk-{first}")
            ledger = Ledger(rig.folder / f"ledger-{first}.jsonl")
            log = rig.folder / "server.log"
            server = rig.start(disk.place / "data", stack, log=log)
            key = register(server.host)
            for cycle in range(first, first + count):
                if not disk.has_room():
                    break
                what = "inodes" if cycle % 2 else "bytes"
                found = one_cycle(rig, disk, server, key, ledger, cycle, what)
                healed.append(found)
                if ledger.wrong:
                    ledger.wrong.append(f"in cycle {cycle + 1}, which took all {what}")
                    break
            server.kill()
            server = rig.start(disk.place / "data", stack, log=log)
            ledger.compare(server.host, key)
            refused += ledger.seen["refused"]
            events += ledger.seen["events"]
            wrong += ledger.wrong
        if wrong:
            break
    return wrong, (
        f"{len(healed)} cycles, {events:,} events acknowledged, {refused:,} requests refused, "
        f"writes again {max(healed):.1f} s after the space was freed"
    )


def one_cycle(rig, disk, server, key, ledger, cycle, what):
    """Fill, look, free, look. The seconds until writes were taken again."""
    seed = f"{rig.random_seed} {cycle}"
    sabotage = rig.arguments.sabotage if cycle == 0 else None
    load = Load(
        server.host, key, ledger, seed, clients=CLIENTS, sabotage=sabotage, extra=filling
    )  # fmt: skip
    try:
        until_refused(server, load, lambda: disk.take(what))
    finally:
        load.stop()
    if set(load.statuses) - {200, 503} or load.gone:
        ledger.wrong.append(f"answers {load.statuses}, {load.gone} cut off")
    # Reads go on, and show nothing but what was acknowledged, or a batch in doubt as a whole.
    ledger.compare(server.host, key, settle=False)

    disk.release()
    freed = time.monotonic()
    load = Load(server.host, key, ledger, seed + " healing", clients=1)
    try:
        until_taken(server, load)
    finally:
        load.stop()
    seconds = time.monotonic() - freed
    # What could not be written to a segment is written now, and the log shrinks.
    time.sleep(FLUSHED_WITHIN_SECONDS)
    load = load_for(0.5, server.host, key, ledger, seed + " after", clients=2)
    if set(load.statuses) != {200} or load.gone:
        ledger.wrong.append(f"after the space was freed: {load.statuses}, {load.gone} cut off")
    ledger.compare(server.host, key, settle=False)
    server.expect_alive()
    return seconds


def filling(lots):
    return f',"filling":"{lots.getrandbits(4 * FILLING_DIGITS):x}"'


def until_refused(server, load, take):
    """Until nothing was taken for a while: a log that a flush made room for is a short relief."""
    limit = time.monotonic() + REFUSED_WITHIN_SECONDS
    accepted, since = 0, time.monotonic()
    while time.monotonic() - since < REFUSED_SECONDS or not load.statuses.get(503):
        server.expect_alive()
        if time.monotonic() > limit:
            raise Failed(f"the disk is full, and these were the answers: {load.statuses}")
        take()
        if load.statuses.get(200, 0) != accepted:
            accepted, since = load.statuses[200], time.monotonic()
        time.sleep(0.05)


def until_taken(server, load):
    limit = time.monotonic() + HEALED_WITHIN_SECONDS
    while load.statuses.get(200, 0) < 3:
        server.expect_alive()
        if time.monotonic() > limit:
            raise Failed(f"space was freed, and these were the answers: {load.statuses}")
        time.sleep(0.02)


class Disk:
    """A small tmpfs, and what takes its room."""

    def __init__(self, stack, place):
        self.place = place
        mount(stack, "tmpfs", place, "-t", "tmpfs", "-o", f"size={DISK_MIB}m,nr_inodes={INODES}")
        self.reserve = place / "reserve"
        self.reserve.mkdir()
        self.taken = 0

    def has_room(self):
        """Whether what can be freed is enough for a log file, beside what the server has taken."""
        return self._free() > FREED_BYTES_MIN

    def take(self, what):
        """Leaves next to nothing, now; asked again, it takes what was given back meanwhile."""
        if not self.taken:
            self._fill(FREED_BYTES_MIN)
        if what == "inodes":
            # The server may be quicker with the last of them.
            with contextlib.suppress(OSError):
                for _ in range(os.statvfs(self.place).f_favail):
                    self._path().touch()
            return
        # The first log file is not there yet.
        has_log = any(self.place.glob("data/wal/*.wal"))
        self._fill(self._free() - (LEFT_BYTES if has_log else FIRST_LOG_BYTES))

    def _free(self):
        state = os.statvfs(self.place)
        return state.f_bavail * state.f_frsize

    def _fill(self, count):
        if count > 0:
            with open(self._path(), "wb") as file, contextlib.suppress(OSError):
                os.posix_fallocate(file.fileno(), 0, count)

    def _path(self):
        self.taken += 1
        return self.reserve / str(self.taken)

    def release(self):
        self.taken = 0
        for path in self.reserve.iterdir():
            path.unlink()


if __name__ == "__main__":
    main("full", __doc__, run, options)
