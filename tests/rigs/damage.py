"""What can happen to stored bytes, and what the log promises when it happens to the log.

A damage is a set of bytes that differ in one file, or in two: a flipped bit, a sector of zeros, two
sectors that changed places (a misdirected write), a sector that holds a copy of another one, or a
sector as an older file of the same kind had it (a write that never came). Where it happens is drawn
by lot, half of the time among all bytes and half of the time among those of one kind, each kind in
turn, so that small ones are met.

Damage to the log needs a promise of its own, because a server cannot tell a damaged last frame from
a write that was torn by a loss of power. `engine/doc/format.md`, "Where the log ends", says:

- damage to a frame that has a good frame or a log file behind it, and to the header of a file, must
  be refused at the start;
- damage that takes the last frame, or the last frames, is cut: the start must succeed, and show the
  state before the first of them;
- space behind the frames, the padding between them, and frames that the next file holds once more are
  never used.
"""

import collections
import itertools
import struct

SECTOR_BYTES = 512
KINDS = {
    "SUPER": "superblock",
    "wal/": "log",
    "ckpt/": "checkpoint",
    "seg/l0/": "fresh segment",
    "seg/": "merged segment",
    "ids/": "id run",
}
# One damage in so many is that of a sector; the others are flipped bits.
SECTOR_EVERY = 4
# Frames that are "the end of the log".
FRAMES_AT_THE_END = 3
MARK = 0x46524D31
LOG_HEADER_BYTES, FRAME_HEADER_BYTES, ALIGN = 64, 24, 8
SUPERBLOCK_GENERATION, SUPERBLOCK_CHECKPOINTS = 36, 45
# What the log promises, if it is not a number of frames that are left.
WHOLE, REFUSED = "whole", "refused"


def kind_of(path):
    """The kind of a file, `None` for those that hold nothing."""
    return next((kind for prefix, kind in KINDS.items() if path.startswith(prefix)), None)


def read_files(folder):
    """Relative path to content, of all files that can be damaged."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    return {path: content for path, content in files.items() if kind_of(path)}


def frames(content, following=1 << 64):
    """Where each frame of an undamaged log file begins, and where its body ends. The file ends where
    the record `following` begins, the first one of the next file."""
    found, offset = [], LOG_HEADER_BYTES
    while offset + FRAME_HEADER_BYTES <= len(content):
        mark, length, _, _, first = struct.unpack_from("<IIIIQ", content, offset)
        if mark != MARK or first >= following:
            break
        end = offset + FRAME_HEADER_BYTES + length
        found.append((offset, end))
        offset = -(-end // ALIGN) * ALIGN
    return found


class Log:
    """The frames of the files that a start reads."""

    def __init__(self, files):
        newest = max(
            (files[name] for name in ("SUPER.a", "SUPER.b")),
            key=lambda slot: struct.unpack_from("<Q", slot, SUPERBLOCK_GENERATION),
        )
        _, replay_after = struct.unpack_from("<QQ", newest, SUPERBLOCK_CHECKPOINTS)
        logs = sorted(path for path in files if kind_of(path) == "log")
        firsts = [int(path[-24:-4]) for path in logs]
        # A file that ends before the first record that is needed is not read.
        following = [*firsts[1:], 1 << 64]
        read = [(p, first) for p, first in zip(logs, following) if first - 1 > replay_after]
        self.read = [path for path, _ in read]
        self.frames = [frames(files[path], first) for path, first in read]

    def promise(self, changed):
        """What must become of it when these bytes (path to offsets) are others."""
        everywhere, damaged = [], []
        for number, path in enumerate(self.read):
            offsets = changed.get(path, ())
            if any(offset < LOG_HEADER_BYTES for offset in offsets):
                return REFUSED
            for position, (start, end) in enumerate(self.frames[number]):
                everywhere.append((number, position))
                if any(start <= offset < end for offset in offsets):
                    damaged.append((number, position))
        if not damaged:
            return WHOLE
        number, position = damaged[0]
        is_tail = damaged == everywhere[-len(damaged) :]
        return position if is_tail and number == len(self.read) - 1 else REFUSED

    def ranges(self):
        """Kind to ranges of bytes: frames that a start reads, the last of them, and headers."""
        last = len(self.read) - 1
        for number, path in enumerate(self.read):
            yield "log header", (path, 0, LOG_HEADER_BYTES)
            for start, end in self.frames[number]:
                yield "log in use", (path, start, end)
        for start, end in self.frames[last][-FRAMES_AT_THE_END:]:
            yield "end of the log", (self.read[last], start, end)


class Damage:
    """Files that changed, and how."""

    def __init__(self, text, kind, is_sector, files, contents):
        self.text, self.kind, self.is_sector = text, kind, is_sector
        self.contents = contents
        self.changed = {
            path: [at for at, pair in enumerate(zip(files[path], new)) if pair[0] != pair[1]]
            for path, new in contents.items()
        }

    def do(self, folder):
        for path, content in self.contents.items():
            (folder / path).write_bytes(content)


class Dice:
    """Draws damages of the files of a data directory. `past` are files that it had earlier."""

    def __init__(self, lots, files, log, past):
        self.lots, self.files, self.past = lots, files, past
        self.ranges = collections.defaultdict(list)
        for path, content in files.items():
            self.ranges[kind_of(path)].append((path, 0, len(content)))
        self.all = [each for some in self.ranges.values() for each in some]
        for kind, place in log.ranges():
            self.ranges[kind].append(place)
        self.kinds = itertools.cycle(sorted(self.ranges))
        self.spoils = itertools.cycle((self._zero, self._swap, self._double, self._stale))

    def draw(self):
        is_sector = self.lots.random() < 1 / SECTOR_EVERY
        spoil = next(self.spoils) if is_sector else self._flip
        kind = next(self.kinds) if self.lots.random() < 0.5 else None
        while True:
            path, at = self._byte(self.ranges[kind] if kind else self.all)
            at -= at % SECTOR_BYTES if is_sector else 0
            what, contents = spoil(path, at)
            text = f"{path}: {what}"
            damage = Damage(text, kind or kind_of(path), is_sector, self.files, contents)
            if any(damage.changed.values()):
                return damage

    def _byte(self, ranges):
        weights = [stop - start for _, start, stop in ranges]
        path, start, stop = self.lots.choices(ranges, weights)[0]
        return path, self.lots.randrange(start, stop)

    def _flip(self, path, at):
        content, bit = bytearray(self.files[path]), self.lots.randrange(8)
        content[at] ^= 1 << bit
        return f"bit {bit} of byte {at} flipped", {path: content}

    def _zero(self, path, at):
        return f"sector at {at} zeroed", {path: self._with(path, at, bytes(SECTOR_BYTES))}

    def _swap(self, path, at):
        other, there = self._other(path)
        new = {path: self._with(path, at, sector(self.files[other], there))}
        new[other] = self._with(other, there, sector(self.files[path], at), new.get(other))
        return f"sector at {at} swapped with that at {there} of {other}", new

    def _double(self, path, at):
        other, there = self._other(path)
        new = self._with(path, at, sector(self.files[other], there))
        return f"sector at {at} holds that at {there} of {other}", {path: new}

    def _stale(self, path, at):
        # The superblock is the one file that is written over; of others there were earlier ones.
        older = [other for other in self.past if kind_of(other) == kind_of(path)]
        other = path if kind_of(path) == "superblock" else self.lots.choice(older)
        new = self._with(path, at, sector(self.past[other], at))
        return f"sector at {at} as {other} had it", {path: new}

    def _other(self, path):
        """Another sector: of the same file, or of any. Those of logs stay among logs."""
        is_log = kind_of(path) == "log"
        far = [place for place in self.all if (kind_of(place[0]) == "log") == is_log]
        near = [place for place in self.all if place[0] == path]
        other, there = self._byte(self.lots.choice((near, far)))
        return other, there - there % SECTOR_BYTES

    def _with(self, path, at, new, content=None):
        """The file with another sector. Its length stays: what is missing keeps its bytes."""
        content = bytearray(content or self.files[path])
        new = new[: len(content) - at]
        content[at : at + len(new)] = new
        return content


def sector(content, at):
    return content[at : at + SECTOR_BYTES]
