"""Everything but events, as it must be: what a 2xx to a change promises.

One client makes one change after another, of everything in `metadata_parts.py`: dashboards, keys,
embed sessions, logins, tenants whose events are erased, widgets, rules, invites. What was acknowledged must be there after
any crash. The one change that got no answer may have happened or not; the first look decides, and
from then on it must stay so. Above all: what was revoked never works again, and what was erased
never comes back.
"""

import collections
import copy
import random
import threading

from common import Connection, Gone
from metadata_parts import PARTS

PAUSE_SECONDS = 0.005


class Metadata:
    """What must be there, part by part, and the change that is under way."""

    def __init__(self, seed):
        self.lots = random.Random(f"{seed} metadata")
        self.parts = {part.__name__: part() for part in PARTS}
        # (part, kind, target, name), while its answer is not known.
        self.under_way = None
        self.names = 0
        self.changes = collections.Counter()
        # Changes that were cut off, and those of them that had happened although nobody was told.
        self.cut = self.untold = 0
        # What ended the talk, and of a change that happened without an answer, which one it was.
        self.ended_by = self.last_untold = None
        self.wrong = []
        self.stopping, self.running = threading.Event(), threading.Event()
        self.running.set()
        self.thread = None
        self.failure = None

    def start(self, host, key, pause=PAUSE_SECONDS):
        self.stopping.clear()
        arguments = (Connection(host, key), pause)
        self.thread = threading.Thread(target=self._change_all, args=arguments)
        self.thread.start()

    def stop(self):
        self.stopping.set()
        self.running.set()
        self.join()

    def join(self):
        self.thread.join()
        if self.failure is not None:
            raise self.failure

    def _change_all(self, connection, pause):
        try:
            while not self.stopping.wait(pause):
                self.running.wait()
                self._change(connection)
        except Gone as gone:
            # What was under way stays so until somebody looks.
            self.ended_by = gone
        except Exception as failure:  # told by the thread that joins
            self.failure = failure

    def _change(self, connection):
        # How many entries each kind has is how often it is drawn.
        kinds = [(part, kind) for part in self.parts.values() for kind in part.kinds(self.parts)]
        part, kind = self.lots.choice(kinds)
        target = part.choose(kind, self.lots, self.parts)
        self.names += 1
        name = f"{kind} {self.names}"
        self.under_way = (part, kind, target, name)
        method, path, body = part.request(kind, target, name)
        status, headers, answer = part.send(connection, kind, target, method, path, body)
        if status >= 300:
            # The store refuses changes for the same reasons as events, and in the same way.
            if status != 503 or "Retry-After" not in headers:
                self.wrong.append(f"{method} {path}: {status} {answer}")
            # Whether it happened is known at the next start; one change in doubt is enough.
            self.ended_by = f"{method} {path}: {status} {answer}"
            self.stopping.set()
            return
        self._apply(part.told(kind, headers, answer))
        self.changes[kind] += 1

    def _apply(self, new):
        """The change under way has happened."""
        (part, kind, target, name), self.under_way = self.under_way, None
        part.apply(kind, target, name, new)

    # ---- Comparing ---------------------------------------------------------------------------

    def copy(self):
        """The state of this moment."""
        twin = copy.copy(self)
        twin.parts = {name: part.copy() for name, part in self.parts.items()}
        if self.under_way:
            part, *change = self.under_way
            twin.under_way = (twin.parts[type(part).__name__], *change)
        twin.wrong, twin.changes = [], collections.Counter()
        twin.cut = twin.untold = 0
        return twin

    def add(self, other):
        """What was seen elsewhere."""
        self.changes += other.changes
        self.cut += other.cut
        self.untold += other.untold

    def compare(self, host, key):
        connection = Connection(host, key)
        seen = {name: part.look(connection) for name, part in self.parts.items()}
        self._settle(connection, seen)
        for name, part in self.parts.items():
            self.wrong += part.differences(seen[name])
            self.wrong += part.tried(connection, self.lots)
        connection.close()

    def _settle(self, connection, seen):
        """Whether the change under way happened: only the server knows."""
        if self.under_way is None:
            return
        self.cut += 1
        part, kind, target, name = self.under_way
        new = part.happened(connection, kind, target, name, seen[type(part).__name__])
        if new is not None:
            self.untold += 1
            self.last_untold = f"{kind} {target} {name} ({self.ended_by})"
            self._apply(new)
        self.under_way = None

    def summary(self):
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(self.changes.items()))
        return (
            f"{self.changes.total():,} changes of metadata ({kinds}), {self.cut:,} more cut off "
            f"({self.untold:,} had happened)"
        )
