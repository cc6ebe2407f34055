"""Waiting until stores flush and merge nothing any more: then their files stay as they are.

    until_idle(rig.folder)      looks at the segments of all data directories in the folder
"""

import time

from common import Failed

IDLE_SECONDS, SETTLED_SECONDS = 6, 120


def until_idle(folder):
    limit, last, since = time.monotonic() + SETTLED_SECONDS, None, time.monotonic()
    while time.monotonic() < since + IDLE_SECONDS:
        seen = sorted(str(path) for path in folder.glob("*/seg/**/*.seg"))
        if seen != last:
            last, since = seen, time.monotonic()
        if time.monotonic() > limit:
            raise Failed("the store goes on merging")
        time.sleep(0.2)
