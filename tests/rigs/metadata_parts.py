"""What can be changed, part by part: which requests do it, what they promise, and how to look.

`new` is what a change brought about: `told` by its answer, or found by `happened` where the answer
was lost (`None` when the change did not happen).
"""

import copy
import http.cookies
import time

from common import Connection

LIVE_MAX = 30
# Things that are tried at each comparison: some of those that must work, drawn by lot, as a first use
# is written down; of those that must not the newest.
LIVE_TRIED, GONE_TRIED = 6, 60
# Of a dashboard that viewers see there need not be many.
PUBLISHED_MAX = 3
# An erasure that was promised is carried out by the background, also after a start.
ERASED_WITHIN_SECONDS = 30
# The name that `common.register` gives its first organisation.
ACCOUNT = {"email": "rig@example.com", "password": "a rig on the loopback"}


class Part:
    """Names to what is known of them."""

    def __init__(self):
        self.live, self.gone = {}, []

    def copy(self):
        twin = copy.copy(self)
        twin.live, twin.gone = self.live.copy(), self.gone.copy()
        return twin

    def kinds(self, parts):
        """The kinds of changes that are possible, often ones several times."""
        raise NotImplementedError

    def choose(self, kind, lots, parts):
        """What is changed, `None` where something is made."""
        return lots.choice(sorted(self.live))

    def send(self, connection, kind, target, method, path, body):
        return connection.call(method, path, body)

    def told(self, kind, headers, answer):
        return answer or {}

    def look(self, connection):
        """What the server lists."""
        return None

    def differences(self, seen):
        return []

    def tried(self, connection, lots):
        """What does not work as it must."""
        for name in lots.sample(sorted(self.live), min(LIVE_TRIED, len(self.live))):
            yield from self.try_live(connection, name, self.live[name])
        for gone in self.gone[-GONE_TRIED:]:
            yield from self.try_gone(connection, gone)

    def try_live(self, connection, name, known):
        return []

    def try_gone(self, connection, gone):
        return []

    def ends(self, kind):
        """A list with the kind that ends something, more often when there is much."""
        return [kind] * ((8 if len(self.live) > LIVE_MAX else 1) if self.live else 0)


class Dashboards(Part):
    """Id to name and whether it is published. Published ones stay: sessions are for them."""

    def kinds(self, parts):
        drafts = [id for id, (_, is_public) in self.live.items() if not is_public]
        few = len(self.live) - len(drafts) < PUBLISHED_MAX
        more = ["rename"] * 3 + ["delete"] * (8 if len(drafts) > LIVE_MAX else 1)
        return ["create"] * 3 + (more + ["publish"] * few if drafts else [])

    def choose(self, kind, lots, parts):
        if kind == "create":
            return None
        return lots.choice(sorted(id for id, (_, public) in self.live.items() if not public))

    def request(self, kind, target, name):
        return {
            "create": ("POST", "/v1/dashboards", {"name": name, "widgets": []}),
            "rename": ("PATCH", f"/v1/dashboards/{target}", {"name": name}),
            "delete": ("DELETE", f"/v1/dashboards/{target}", None),
            "publish": ("POST", f"/v1/dashboards/{target}/publish", None),
        }[kind]

    def apply(self, kind, target, name, new):
        if kind == "create":
            self.live[new["id"]] = (name, False)
        elif kind == "rename":
            self.live[target] = (name, self.live[target][1])
        elif kind == "publish":
            self.live[target] = (self.live[target][0], True)
        else:
            del self.live[target]

    def look(self, connection):
        listed = connection.get("/v1/dashboards")["data"]
        return {each["id"]: (each["name"], each["status"] == "published") for each in listed}

    def happened(self, connection, kind, target, name, seen):
        of_name = [{"id": id} for id, (its, _) in seen.items() if its == name]
        if kind in ("delete", "publish"):
            return {} if seen.get(target, (None, kind == "delete"))[1] else None
        return of_name[0] if of_name else None

    def differences(self, seen):
        return [difference("dashboards", self.live, seen)] if seen != self.live else []


class Keys(Part):
    """Id to secret, `None` when the answer was lost."""

    def kinds(self, parts):
        return ["mint"] * 2 + self.ends("revoke")

    def choose(self, kind, lots, parts):
        return None if kind == "mint" else super().choose(kind, lots, parts)

    def request(self, kind, target, name):
        if kind == "mint":
            return "POST", "/v1/api-keys", {"label": name, "scope": "ingest"}
        return "DELETE", f"/v1/api-keys/{target}", None

    def apply(self, kind, target, name, new):
        if kind == "mint":
            self.live[new["id"]] = new.get("key")
        else:
            self.gone.append(self.live.pop(target))

    def look(self, connection):
        # The first key came with the organisation.
        return {key["id"]: key["label"] for key in connection.get("/v1/api-keys")["data"][:-1]}

    def happened(self, connection, kind, target, name, seen):
        if kind == "revoke":
            return None if target in seen else {}
        return next(({"id": id} for id, label in seen.items() if label == name), None)

    def differences(self, seen):
        expected, found = dict.fromkeys(self.live, ""), dict.fromkeys(seen, "")
        return [difference("keys", expected, found)] if expected != found else []

    def try_live(self, connection, name, known):
        return self._try(connection, known, 200)

    def try_gone(self, connection, gone):
        return self._try(connection, gone, 401)

    def _try(self, connection, secret, expected):
        if secret is None:
            return []
        return answers(connection, secret, "/v1/auth/me", expected, "a key")


class Sessions(Part):
    """Id of an embed session to its token, `None` when the answer was lost."""

    def kinds(self, parts):
        is_public = any(public for _, public in parts["Dashboards"].live.values())
        return ["admit"] * is_public + self.ends("expel")

    def choose(self, kind, lots, parts):
        if kind == "expel":
            return super().choose(kind, lots, parts)
        boards = parts["Dashboards"].live.items()
        return lots.choice(sorted(id for id, (_, is_public) in boards if is_public))

    def request(self, kind, target, name):
        if kind == "expel":
            return "DELETE", f"/v1/embed-sessions/{target}", None
        body = {"dashboard_id": target, "tenant_id": name, "expires_in": 86_400}
        return "POST", "/v1/embed-sessions", body

    def apply(self, kind, target, name, new):
        if kind == "admit":
            # The answer has no id: the list gives it at the next look.
            self.live[name] = new.get("token")
        else:
            self.gone.append(self.live.pop(target))

    def look(self, connection):
        listed = connection.get("/v1/embed-sessions", limit=100)["data"]
        return {each["tenant_id"]: each["id"] for each in listed}

    def send(self, connection, kind, target, method, path, body):
        if kind == "expel":
            path = f"/v1/embed-sessions/{self.look(connection)[target]}"
        return super().send(connection, kind, target, method, path, body)

    def happened(self, connection, kind, target, name, seen):
        if kind == "expel":
            return None if target in seen else {}
        return {} if name in seen else None

    def differences(self, seen):
        expected, found = dict.fromkeys(self.live, ""), dict.fromkeys(seen, "")
        return [difference("embed sessions", expected, found)] if expected != found else []

    def try_live(self, connection, name, known):
        return answers(connection, known, "/v1/embed/dashboard", 200, "a session") if known else []

    def try_gone(self, connection, gone):
        return answers(connection, gone, "/v1/embed/dashboard", 401, "a session") if gone else []


class Logins(Part):
    """Cookies of people who are logged in. One that was lost with its answer cannot be looked for."""

    def kinds(self, parts):
        return ["enter"] * (len(self.live) < 4) + self.ends("leave")

    def choose(self, kind, lots, parts):
        return None if kind == "enter" else super().choose(kind, lots, parts)

    def request(self, kind, target, name):
        if kind == "enter":
            return "POST", "/v1/auth/login", ACCOUNT
        return "POST", "/v1/auth/logout", None

    def send(self, connection, kind, target, method, path, body):
        with_cookie = Connection(address(connection), session=target)
        try:
            return with_cookie.call(method, path, body)
        finally:
            with_cookie.close()

    def told(self, kind, headers, answer):
        cookie = http.cookies.SimpleCookie(headers.get("Set-Cookie", "")).get("service_session")
        return {"cookie": cookie.value if cookie else None}

    def apply(self, kind, target, name, new):
        if kind == "enter":
            self.live[new["cookie"]] = True
        else:
            del self.live[target]
            self.gone.append(target)

    def happened(self, connection, kind, target, name, seen):
        if kind == "enter":
            return None
        return {} if self._status(connection, target) == 401 else None

    def try_live(self, connection, name, known):
        return self._try(connection, name, 200)

    def try_gone(self, connection, gone):
        return self._try(connection, gone, 401)

    def _try(self, connection, cookie, expected):
        status = self._status(connection, cookie)
        return [] if status == expected else [f"a login answers {status} instead of {expected}"]

    def _status(self, connection, cookie):
        return self.send(connection, None, cookie, "GET", "/v1/auth/me", None)[0]


class Tenants(Part):
    """Tenants with a few events of two users to the events they have left."""

    EVENT, USERS = "farewell", {"ann": 12, "bob": 8}

    def kinds(self, parts):
        return ["fill"] + self.ends("forget") + self.ends("erase")

    def choose(self, kind, lots, parts):
        return None if kind == "fill" else super().choose(kind, lots, parts)

    def request(self, kind, target, name):
        if kind == "fill":
            events = [
                {"tenant_id": name, "event_name": self.EVENT, "user_id": user, "event_id": f"{user}{n}"}
                for user, count in self.USERS.items()
                for n in range(count)
            ]
            return "POST", "/v1/events", {"events": events}
        user = "/users/ann" if kind == "forget" else ""
        return "DELETE", f"/v1/tenants/{target.replace(' ', '%20')}{user}/events", None

    def apply(self, kind, target, name, new):
        if kind == "fill":
            self.live[name] = sum(self.USERS.values())
        elif kind == "forget":
            self.live[target] = self.USERS["bob"]
        else:
            del self.live[target]
            self.gone.append(target)

    def happened(self, connection, kind, target, name, seen):
        if kind == "fill":
            # Whether it is there in part is seen when it is tried.
            return {} if self._count(connection, name) else None
        scope = "user" if kind == "forget" else "tenant"
        jobs = connection.get("/v1/erasures", limit=100)["data"]
        asked = any(job["tenant_id"] == target and job["scope"] == scope for job in jobs)
        return {} if asked else None

    def try_live(self, connection, name, known):
        return self._try(connection, name, known)

    def try_gone(self, connection, gone):
        return self._try(connection, gone, 0)

    def _try(self, connection, tenant, expected):
        limit = time.monotonic() + ERASED_WITHIN_SECONDS
        while (count := self._count(connection, tenant)) != expected:
            # Only an erasure that goes on may show more.
            if count < expected or time.monotonic() > limit:
                return [f"{tenant} has {count} events instead of {expected}"]
            time.sleep(0.02)
        return []

    def _count(self, connection, tenant):
        window = {"from": "1970-01-02T00:00:00Z", "to": "2100-01-01T00:00:00Z"}
        asked = {"event_name": self.EVENT, "tenant_id": tenant, "metric": "count"} | window
        rows = connection.get("/v1/query", **asked)["data"]
        return sum(row["value"] or 0 for row in rows)


PARTS = (Dashboards, Keys, Sessions, Logins, Tenants)


def address(connection):
    return f"{connection.connection.host}:{connection.connection.port}"


def answers(connection, secret, path, expected, what):
    """Whether something works, or does not, as it must."""
    own, connection.key = connection.key, secret
    status, _, _ = connection.call("GET", path)
    connection.key = own
    return [] if status == expected else [f"{what} answers {status} instead of {expected}"]


def difference(what, expected, found):
    lost = sorted(expected.items() - found.items())[:3]
    extra = sorted(found.items() - expected.items())[:3]
    return f"{what} differ: expected {lost}, found {extra}"
