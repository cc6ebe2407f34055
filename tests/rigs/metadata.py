"""Dashboards and API keys as they must be: what a 2xx to a change promises.

One client makes one change after another. What was acknowledged must be there after any crash. The
one change that got no answer may have happened or not; the first look decides, and from then on it
must stay so. Above all: a key that was revoked never works again.
"""

import copy
import random
import threading

from common import Connection, Gone

LIVE_MAX = 30
# Keys that are tried at each comparison: of those that must work some drawn by lot, as a first use is
# written down; of the revoked ones the newest.
LIVE_TRIED, REVOKED_TRIED = 6, 60
PAUSE_SECONDS = 0.005


class Metadata:
    """The expected dashboards and keys, and the change that is under way."""

    def __init__(self, seed):
        self.lots = random.Random(f"{seed} metadata")
        # Dashboard to name; key to secret, `None` when its answer was lost; secrets that are dead.
        self.dashboards, self.keys, self.revoked = {}, {}, []
        self.under_way = None
        self.names = self.changes = 0
        # Changes that were cut off, and those of them that had happened although nobody was told.
        self.cut = self.untold = 0
        self.wrong = []
        self.stopping, self.running = threading.Event(), threading.Event()
        self.running.set()
        self.thread = None
        self.failure = None

    def start(self, host, key):
        self.stopping.clear()
        self.thread = threading.Thread(target=self._change_all, args=(Connection(host, key),))
        self.thread.start()

    def stop(self):
        self.stopping.set()
        self.running.set()
        self.join()

    def join(self):
        self.thread.join()
        if self.failure is not None:
            raise self.failure

    def _change_all(self, connection):
        try:
            while not self.stopping.wait(PAUSE_SECONDS):
                self.running.wait()
                self._change(connection)
        except Gone:
            # What was under way stays so until somebody looks.
            pass
        except Exception as failure:  # told by the thread that joins
            self.failure = failure

    def _change(self, connection):
        kind, target = self._choose()
        self.names += 1
        name = f"{kind} {self.names}"
        self.under_way = (kind, target, name)
        method, path, body = {
            "create": ("POST", "/v1/dashboards", {"name": name, "widgets": []}),
            "rename": ("PATCH", f"/v1/dashboards/{target}", {"name": name}),
            "delete": ("DELETE", f"/v1/dashboards/{target}", None),
            "mint": ("POST", "/v1/api-keys", {"label": name, "scope": "ingest"}),
            "revoke": ("DELETE", f"/v1/api-keys/{target}", None),
        }[kind]
        status, headers, answer = connection.call(method, path, body)
        if status >= 300:
            # The store refuses changes for the same reasons as events, and in the same way.
            if status != 503 or "Retry-After" not in headers:
                self.wrong.append(f"{method} {path}: {status} {answer}")
            # Whether it happened is known at the next start; one change in doubt is enough.
            self.stopping.set()
            return
        self._apply(answer and answer["id"], answer and answer.get("key"))
        self.changes += 1

    def _choose(self):
        kinds = ["create"] * 3 + ["mint"] * 2
        if self.dashboards:
            kinds += ["rename"] * 3 + ["delete"] * (8 if len(self.dashboards) > LIVE_MAX else 1)
        if self.keys:
            kinds += ["revoke"] * (8 if len(self.keys) > LIVE_MAX else 1)
        kind = self.lots.choice(kinds)
        targets = {"rename": self.dashboards, "delete": self.dashboards, "revoke": self.keys}
        return kind, self.lots.choice(sorted(targets[kind])) if kind in targets else None

    def _apply(self, new_id=None, secret=None):
        """The change under way has happened."""
        (kind, target, name), self.under_way = self.under_way, None
        if kind == "create":
            self.dashboards[new_id] = name
        elif kind == "rename":
            self.dashboards[target] = name
        elif kind == "delete":
            del self.dashboards[target]
        elif kind == "mint":
            self.keys[new_id] = secret
        elif kind == "revoke":
            self.revoked.append(self.keys.pop(target))

    # ---- Comparing ---------------------------------------------------------------------------

    def copy(self):
        """The state of this moment."""
        twin = copy.copy(self)
        twin.dashboards, twin.keys = self.dashboards.copy(), self.keys.copy()
        twin.revoked, twin.wrong = self.revoked.copy(), []
        twin.changes = twin.cut = twin.untold = 0
        return twin

    def add(self, other):
        """What was seen elsewhere."""
        self.changes += other.changes
        self.cut += other.cut
        self.untold += other.untold

    def compare(self, host, key):
        connection = Connection(host, key)
        dashboards = {d["id"]: d["name"] for d in connection.get("/v1/dashboards")["data"]}
        # The first key came with the organisation.
        keys = {k["id"]: k["label"] for k in connection.get("/v1/api-keys")["data"][:-1]}
        self._settle(dashboards, keys)
        if dashboards != self.dashboards:
            self.wrong.append(f"dashboards differ: {differences(self.dashboards, dashboards)}")
        if keys.keys() != self.keys.keys():
            expected = dict.fromkeys(self.keys, "")
            found = dict.fromkeys(keys, "")
            self.wrong.append(f"keys differ: {differences(expected, found)}")
        live = [secret for secret in self.keys.values() if secret]
        for secret in self.lots.sample(live, min(LIVE_TRIED, len(live))):
            self._try(connection, secret, 200)
        for secret in filter(None, self.revoked[-REVOKED_TRIED:]):
            self._try(connection, secret, 401)
        connection.close()

    def _settle(self, dashboards, keys):
        """Whether the change under way happened: only the server knows."""
        if self.under_way is None:
            return
        self.cut += 1
        kind, target, name = self.under_way
        of_name = [i for i, n in [*dashboards.items(), *keys.items()] if n == name]
        happened = {
            "delete": target not in dashboards,
            "revoke": target not in keys,
        }.get(kind, bool(of_name))
        if happened:
            self.untold += 1
            self._apply(of_name[0] if of_name else None)
        self.under_way = None

    def _try(self, connection, secret, expected):
        connection.key = secret
        status, _, _ = connection.call("GET", "/v1/auth/me")
        if status != expected:
            self.wrong.append(f"a key answers {status} instead of {expected}")

    def summary(self):
        return (
            f"{self.changes:,} changes of dashboards and keys, {self.cut:,} more cut off "
            f"({self.untold:,} had happened)"
        )


def differences(expected, found):
    lost = sorted(expected.items() - found.items())[:3]
    extra = sorted(found.items() - expected.items())[:3]
    return f"expected {lost}, found {extra}"
