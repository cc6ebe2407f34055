#!/usr/bin/env python3
"""Lets cargo build only what changed since the last run, though a fresh clone has new times on all files.

    python3 .ci/unchanged.py begin WORKSPACE TARGET RUN     before the first build
    python3 .ci/unchanged.py end WORKSPACE TARGET RUN       after the last one

Cargo compares the times of files with that of the last build. `begin` gives each file with the checksum of the last run
its time of that run, and the present time to every other. All files of a package in which one was added or removed get
the present time, too: a macro may embed whole folders, of which cargo knows only the files that were there.

`end` leaves a record in TARGET. It holds as long as nobody else builds there: what was built after it, or by two runs
at once, or by a run that was killed, may be of other files, and then everything is built anew.

    {"run": "4711", "files": {"engine/src/lib.rs": ["9f86d081…", 1795541559028948013], …}}
"""

import hashlib
import json
import os
import pathlib
import sys
import time

# Neither is in a clone, and no crate is built from them.
LEFT_OUT = {".git", "node_modules", "target", "__pycache__"}
OURS = "inlay"


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
    changed_packages = {package_of(path) for path in present.keys() ^ recorded.keys()}
    chosen = {}
    for path, checksum in present.items():
        before = recorded.get(path)
        is_same = before is not None and before[0] == checksum
        is_kept = is_same and package_of(path) not in changed_packages
        chosen[path] = before[1] if is_kept else now
    return chosen


def last_build(target):
    """When one of our crates was last built there, in nanoseconds."""
    built = target.glob(f"*/.fingerprint/{OURS}*/*")
    return max((path.stat().st_mtime_ns for path in built), default=0)


def take_record(record, target):
    """The files of the last run, none where others have built since. A run that is killed leaves no record."""
    if not record.exists():
        return {}
    is_last = last_build(target) <= record.stat().st_mtime_ns
    recorded = json.loads(record.read_text())["files"]
    record.unlink()
    return recorded if is_last else {}


def begin(root, target, run):
    target.mkdir(parents=True, exist_ok=True)
    record, running = target / "unchanged.json", target / "unchanged.running.json"
    is_alone = not running.exists()
    running.unlink(missing_ok=True)
    recorded = take_record(record, target) if is_alone else {}
    present = files(root)
    chosen = times(present, recorded, lambda path: package(root, path), time.time_ns())
    for path, at in chosen.items():
        os.utime(root / path, ns=(at, at))
    if is_alone:
        written = {path: [present[path], at] for path, at in chosen.items()}
        running.write_text(json.dumps({"run": run, "files": written}))
    same = sum(recorded.get(path, [None, None])[1] == at for path, at in chosen.items())
    print(f"== {same} of {len(chosen)} files are as they were at the last run")


def end(_root, target, run):
    running = target / "unchanged.running.json"
    if running.exists() and json.loads(running.read_text())["run"] == run:
        running.touch()
        running.rename(target / "unchanged.json")


def main():
    command, root, target, run = sys.argv[1:]
    {"begin": begin, "end": end}[command](pathlib.Path(root), pathlib.Path(target), run)


if __name__ == "__main__":
    main()
