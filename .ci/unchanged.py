#!/usr/bin/env python3
"""Lets cargo build only what changed since the last run, though a fresh clone has new times on all files.

    python3 .ci/unchanged.py begin WORKSPACE TARGET     before the first build
    python3 .ci/unchanged.py end WORKSPACE TARGET       after the last one

Cargo compares the times of files with that of the last build. `begin` gives each file with the checksum of the last run
its time of that run, and the present time to every other. All files of a package in which one was added or removed get
the present time, too: a macro may embed whole folders, of which cargo knows only the files that were there. So do all
files of the workspace when its manifest or the settings of a checker changed.

`end` leaves a record in TARGET, which `begin` takes away: a run that is killed leaves none. The record counts as long as
nothing else was built there since, of other files perhaps. The caller holds a lock on TARGET from `begin` to `end`.

    {"last_build": 1795541559028948013, "files": {"engine/src/lib.rs": ["9f86d081…", 1795541512345678901], …}}
"""

import hashlib
import json
import os
import pathlib
import sys
import time

# No crate is built from these.
LEFT_OUT = {".git", "node_modules", "target", "__pycache__"}
PACKAGE_PREFIX = "inlay"
RECORD = "unchanged.json"
BEGUN = "unchanged.begun.json"
# Of these, cargo knows the absolute paths only, in the clone of the last run.
OF_ALL = {"Cargo.toml", ".clippy.toml", "rust-toolchain.toml"}


def files(root):
    """The checksum of every file below the workspace, by its path."""
    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        for name in names:
            path = pathlib.Path(folder, name)
            if path.is_file() and not path.is_symlink():
                checksum = hashlib.sha256(path.read_bytes()).hexdigest()
                found[path.relative_to(root).as_posix()] = checksum
    return found


def package(root, path):
    """The nearest folder above a file that has a manifest."""
    parents = pathlib.PurePosixPath(path).parents
    return next((str(folder) for folder in parents if (root / folder / "Cargo.toml").exists()), ".")


def times(present, recorded, package_of, now):
    """The time of every file in nanoseconds: that of the record, where nothing says that it must be built anew."""
    if any(present.get(path) != recorded.get(path, [None])[0] for path in OF_ALL):
        return dict.fromkeys(present, now)
    changed_packages = {package_of(path) for path in present.keys() ^ recorded.keys()}
    chosen = {}
    for path, checksum in present.items():
        before = recorded.get(path)
        is_same = before is not None and before[0] == checksum
        chosen[path] = before[1] if is_same and package_of(path) not in changed_packages else now
    return chosen


def last_build(target):
    """When one of our crates was last built there, in nanoseconds."""
    built = target.glob(f"*/.fingerprint/{PACKAGE_PREFIX}*/*")
    return max((path.stat().st_mtime_ns for path in built), default=0)


def write(path, content):
    """In one step: half of it, after a run that was killed, would be read by the next one."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(content))
    new.replace(path)


def take_record(target, built):
    """The files of the last run; none where others have built since."""
    record = target / RECORD
    if not record.exists():
        return {}
    content = json.loads(record.read_text())
    record.unlink()
    return content["files"] if content.get("last_build") == built > 0 else {}


def begin(root, target):
    target.mkdir(parents=True, exist_ok=True)
    built = last_build(target)
    recorded = take_record(target, built)
    # What was built in the workspace itself compares the same times.
    recorded = {} if (root / "target").exists() else recorded
    present = files(root)
    # After all that was built, also when the clock was put back.
    now = max([time.time_ns(), built + 1, *(at + 1 for _, at in recorded.values())])
    chosen = times(present, recorded, lambda path: package(root, path), now)
    for path, at in chosen.items():
        os.utime(root / path, ns=(at, at))
    same = sum(at != now for at in chosen.values())
    write(target / BEGUN, {path: [present[path], at] for path, at in chosen.items()})
    print(f"== {same} of {len(chosen)} files are as they were at the last run", flush=True)


def end(root, target):
    begun = target / BEGUN
    recorded, present = json.loads(begun.read_text()), files(root)
    begun.unlink()
    # A file that was changed meanwhile may have been built in between.
    same = {path: entry for path, entry in recorded.items() if present.get(path) == entry[0]}
    write(target / RECORD, {"last_build": last_build(target), "files": same})


def main():
    command, root, target = sys.argv[1:]
    {"begin": begin, "end": end}[command](pathlib.Path(root), pathlib.Path(target))


if __name__ == "__main__":
    main()
