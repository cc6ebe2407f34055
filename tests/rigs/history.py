"""A data directory that holds one of everything, made by a real server, for `flips.py` to damage.

Two organisations, one of which has a tenant of the same name as the other; four tenants' events of
six days with every kind of property; ten flushes, eight of which were merged and parted by units of days, so
that there are fresh and merged segments and id runs; dashboards, and keys of which one is revoked;
two checkpoints; and a log of two files above them, with the last writes of a server that was killed.

Texts that belong to a tenant begin with a name that only this tenant has, so that they are
recognised wherever they turn up.
"""

import random
import subprocess
import time
import uuid
from datetime import datetime, timedelta, timezone

import damage
from common import Connection, Failed, register_with_session
from questions import iso

# (organisation, tenant) to the name that only its texts have.
OWNERS = {
    ("mine", "acme"): "amber",
    ("mine", "borealis"): "birch",
    ("mine", "cumulus"): "cedar",
    ("theirs", "acme"): "dahlia",
}
EVENT_NAMES = ("view", "sale")
MODELS, PLANS = ("nova", "lyra", "orion"), ("free", "growth", "scale")
ENDPOINTS = tuple(f"/v{n % 3}/path/{n}" for n in range(20))
DAYS = 6
DAY_MS = 86_400_000
# Fresh segments that the server merges together; two more stay as they are.
FLUSHES_MERGED, FLUSHES_FRESH = 8, 2
BATCHES_OF_A_FLUSH, BATCH_EVENTS = 4, 250
# The last batches: more than a sector each, so that one sector takes two of them at most.
TAIL_BATCHES, TAIL_EVENTS = 6, 25
MERGED_WITHIN_SECONDS = 120
# Of the prepared space of a log file, so much is kept. All of it is zero; to look through it takes a
# start longer than all the rest.
SPACE_KEPT_BYTES = 4_096


class History:
    """Makes the directory in a folder, and knows what is in it.

    `data` is the directory as the killed server left it; `states` has copies of it from before each
    of the last batches, by the number of frames in the last log file; `past` are the bytes of files
    that it had earlier.
    """

    def __init__(self, rig, folder, seed):
        self.rig, self.folder, self.seed = rig, folder, seed
        self.lots = random.Random(f"{seed} history")
        self.data = folder / "history"
        self.now = datetime.now(timezone.utc)
        self.keys, self.sessions, self.revoked = {}, {}, None
        self.dashboards, self.copies, self.batches = [], [], 0
        self.states = {}
        self.server = self._start()
        for name in ("mine", "theirs"):
            self.keys[name], self.sessions[name] = register_with_session(self.server.host, name)
        self._make()

    def _make(self):
        self._change_metadata()
        for flush in range(FLUSHES_MERGED + FLUSHES_FRESH):
            if flush == FLUSHES_MERGED:
                self._wait_until_merged()
            self._fill(BATCHES_OF_A_FLUSH, BATCH_EVENTS)
            # An orderly end writes what is in memory to a segment, and takes a checkpoint.
            self._restart(self.server.stop)
            if flush == FLUSHES_MERGED:
                self.past = damage.read_files(self.data)
        self._change_metadata()
        self._fill(TAIL_BATCHES, TAIL_EVENTS)
        self._restart(self.server.kill)
        self._fill(TAIL_BATCHES - damage.FRAMES_AT_THE_END, TAIL_EVENTS)
        for _ in range(damage.FRAMES_AT_THE_END):
            self._keep_state()
            self._fill(1, TAIL_EVENTS)
        self.server.kill()
        for place in (self.data, *self.states.values()):
            cut_space(place)

    def _start(self):
        return self.rig.start(self.data, log=self.rig.folder / "history.log")

    def _restart(self, end):
        if end() not in (None, 0):
            raise Failed(f"the server did not end well:\n{self.server.log_end()}")
        self.server = self._start()

    def _wait_until_merged(self):
        limit = time.monotonic() + MERGED_WITHIN_SECONDS
        while list(self.data.glob("seg/l0/*.seg")):
            if time.monotonic() > limit:
                raise Failed(f"fresh segments are not merged:\n{self.server.log_end()}")
            time.sleep(0.1)

    def _keep_state(self):
        """The server is idle: nothing is being written."""
        place = self.folder / f"state-{len(self.states)}"
        subprocess.run(["cp", "-r", "--sparse=always", self.data, place], check=True)
        last = max(place.glob("wal/*.wal"))
        self.states[len(damage.frames(last.read_bytes()))] = place

    # ---- What is in it -----------------------------------------------------------------------

    def _change_metadata(self):
        connection = Connection(self.server.host, self.keys["mine"])
        for _ in range(3):
            name = f"board {len(self.dashboards)}"
            made = must(connection, "POST", "/v1/dashboards", {"name": name, "widgets": []})
            must(connection, "PATCH", f"/v1/dashboards/{made['id']}", {"name": name + "!"})
            self.dashboards.append(made["id"])
        body = {"label": "to be revoked", "scope": "ingest"}
        made = must(connection, "POST", "/v1/api-keys", body)
        must(connection, "DELETE", f"/v1/api-keys/{made['id']}")
        self.revoked = made["key"]

    def _fill(self, batches, events):
        for _ in range(batches):
            self.batches += 1
            for organisation in self.keys if events == BATCH_EVENTS else ["mine"]:
                body = {"events": [self._event(organisation) for _ in range(events)]}
                connection = Connection(self.server.host, self.keys[organisation])
                must(connection, "POST", "/v1/events", body)
                if organisation == "mine" and events == BATCH_EVENTS:
                    known = [event for event in body["events"] if "event_id" in event]
                    self.copies.append(known[:20])

    def _event(self, organisation):
        lots = self.lots
        tenant = lots.choice([tenant for owner, tenant in OWNERS if owner == organisation])
        own = OWNERS[organisation, tenant]
        n = lots.randrange(1_000)
        at = self.now - timedelta(milliseconds=lots.randrange(DAYS * DAY_MS))
        event = {
            "tenant_id": tenant,
            "event_name": lots.choice(EVENT_NAMES),
            "timestamp": iso(at),
            "user_id": f"{own}-{n % 97}",
            "string_props": {
                "model": lots.choice(MODELS),
                "endpoint": lots.choice(ENDPOINTS),
                "batch": f"{own} {self.batches}",
                "note": f"{own} ü {lots.randrange(3_000)}",
            },
            "numeric_props": {"n": n, "price": n / 100, "ratio": lots.random()},
        }
        if n % 3:
            event["string_props"]["plan"] = lots.choice(PLANS)
        if n % 50 == 0:
            event["numeric_props"]["rare"] = -n
        # Ids are UUIDs in some flushes, any text in others, and some events have none.
        if self.batches % 3 == 0:
            event["event_id"] = f"{own}-{self.batches}-{lots.random()}"
        elif self.batches % 3 == 1 or n % 2:
            event["event_id"] = str(uuid.UUID(int=lots.getrandbits(128), version=4))
        return event


def must(connection, method, path, body=None):
    status, _, answer = connection.call(method, path, body)
    if status >= 300:
        raise Failed(f"{method} {path}: {status} {answer}")
    return answer


def cut_space(place):
    for path in place.glob("wal/*.wal"):
        content = path.read_bytes()
        found = damage.frames(content)
        end = found[-1][1] if found else damage.LOG_HEADER_BYTES
        path.write_bytes(content[: end + SPACE_KEPT_BYTES])
