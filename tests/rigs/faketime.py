"""The server's wall clock, moved about while it runs, through libfaketime.

The library reads the offset from a file at every call, so the wall clock can jump at any moment,
while the monotonic clock goes on as it does on a real machine.
"""

import pathlib
from datetime import datetime, timedelta, timezone

from common import Skipped

DAY = 86_400
SHARED_MEMORY = pathlib.Path("/dev/shm")


def at(year, month, day, *time_of_day):
    """A jump to this instant."""
    return lambda now: datetime(year, month, day, *time_of_day, tzinfo=timezone.utc) - now


def by(seconds):
    """A jump from the true time."""
    return lambda now: timedelta(seconds=seconds)


def library():
    for folder in ("/usr/lib", "/usr/local/lib"):
        for pattern in ("faketime/libfaketimeMT.so*", "*/faketime/libfaketimeMT.so*"):
            for found in pathlib.Path(folder).glob(pattern):
                return found
    raise Skipped("needs libfaketime")


class Clock:
    """A clock for the servers of a rig. It begins with the true time."""

    def __init__(self, rig, folder=None):
        self.rig, self.folder = rig, folder or rig.folder
        self.path = self.folder / "clock"
        self.offset, self.frozen = timedelta(0), None
        self._write("+0")

    def start_server(self, data=None, stack=None, log=None, **settings):
        """A server with this clock, and with these settings."""
        environment = {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self.path),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # Times of files are not the server's clock.
            "NO_FAKE_STAT": "1",
            "TZ": "UTC",
        }
        data = data or self.folder / "data"
        server = self.rig.start(data, stack, environment=environment | settings, log=log)
        # A killed process leaves them.
        for name in ("faketime_shm", "sem.faketime_sem"):
            path = SHARED_MEMORY / f"{name}_{server.pid}"
            self.rig.stack.callback(path.unlink, missing_ok=True)
        return server

    def jump(self, rule):
        """`None` lets it stand still."""
        true = datetime.now(timezone.utc)
        if rule is None:
            self.frozen = (true + self.offset).replace(microsecond=0)
            self._write(self.frozen.strftime("%Y-%m-%d %H:%M:%S"))
            return
        self.frozen, self.offset = None, rule(true)
        self._write(f"{self.offset.total_seconds():+.3f}")

    def now(self):
        return self.frozen or datetime.now(timezone.utc) + self.offset

    def _write(self, text):
        # In place: the library may read at any moment.
        new = self.path.with_suffix(".new")
        new.write_text(text + "\n")
        new.replace(self.path)
