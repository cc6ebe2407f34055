"""What the machine has: leave, tools, mounts.

A rig that lacks something is skipped, with the reason.
"""

import os
import shutil
import subprocess

from common import Skipped


def need_root():
    if os.geteuid() != 0:
        raise Skipped("needs root")


def need_tool(name):
    if shutil.which(name) is None:
        raise Skipped(f"needs {name}")


def mount(stack, source, place, *options):
    """Mounts, and unmounts at the end. Skips where mounting is not allowed."""
    place.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, str(source), str(place)], capture_output=True)
    if done.returncode != 0:
        raise Skipped(f"cannot mount: {done.stderr.decode(errors='replace').strip()}")
    stack.callback(unmount, place)


def unmount(place):
    """Lazily if it must be: a busy mount must not outlive the rig."""
    for options in ([], ["-l"]):
        done = subprocess.run(["umount", *options, str(place)], capture_output=True)
        if done.returncode == 0:
            return
