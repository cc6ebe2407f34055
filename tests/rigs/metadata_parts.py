"""What can be changed, part by part: which requests do it, what they promise, and how to look.

`new` is what a change brought about: `told` by its answer, or found by `happened` where the answer
was lost (`None` when the change did not happen).
"""

import contextlib
import copy
import http.cookies
import time
import typing

from common import Connection, Gone

LIVE_MAX = 30
# Things that are tried at each comparison: some of those that must work, drawn by lot, as a first use
# is written down; of those that must not the newest.
LIVE_TRIED, GONE_TRIED = 6, 60
# Of dashboards that viewers see there need not be many; sessions are for the first of them.
PUBLISHED_MAX, PINNED_MAX = 4, 2
# Each costs a password's hash when it is tried.
ORGS_MAX = 6
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


class Board(typing.NamedTuple):
    """What is known of a dashboard; widgets are (id, title) in their order."""

    name: str
    status: str = "draft"
    widgets: tuple = ()
    # Name and widgets as they were published.
    published: tuple | None = None
    # Sessions are for it: it stays as it was published.
    is_pinned: bool = False


class Dashboards(Part):
    """Id to board; `None` for one that was proposed when the server stopped, until somebody looks."""

    def boards(self):
        """Those that are known."""
        return {id: board for id, board in self.live.items() if board is not None}

    def kinds(self, parts):
        free = [board for board in self.boards().values() if not board.is_pinned]
        public = [board for board in self.boards().values() if board.status == "published"]
        drafts = any(board.status != "published" for board in free)
        kinds = ["create"] * 3
        if free:
            kinds += ["rename", "add", "add"] + ["delete"] * (8 if len(free) > LIVE_MAX else 1)
            kinds += ["publish"] * 2 * (drafts and len(public) < PUBLISHED_MAX)
        kinds += ["retitle", "remove"] * any(board.widgets for board in free)
        kinds += ["unpublish"] * any(board.status == "published" for board in free)
        kinds += ["restore"] * any(board.published for board in free)
        # It is made from the events that there are.
        return kinds + ["propose"] * (len(self.live) < LIVE_MAX and bool(parts["Tenants"].live))

    def choose(self, kind, lots, parts):
        if kind in ("create", "propose"):
            return None
        fits = {
            "retitle": lambda board: board.widgets,
            "remove": lambda board: board.widgets,
            "unpublish": lambda board: board.status == "published",
            "restore": lambda board: board.published,
            "publish": lambda board: board.status != "published",
        }.get(kind, lambda board: True)
        boards = self.boards().items()
        return lots.choice(sorted(id for id, board in boards if not board.is_pinned and fits(board)))

    def request(self, kind, target, name):
        path = f"/v1/dashboards/{target}"
        widget = {"kind": "number", "query": {"event_name": "call", "metric": "count"}, "viz": {}}
        widget |= {"id": name.replace(" ", "-"), "title": name}
        widget["layout"] = {"x": 0, "y": 0, "w": 3, "h": 2}
        oldest = self.live[target].widgets[0][0] if kind in ("retitle", "remove") else None
        return {
            "create": ("POST", "/v1/dashboards", {"name": name, "widgets": [widget]}),
            "propose": ("POST", "/v1/discover/auto-create", None),
            "rename": ("PATCH", path, {"name": name}),
            "delete": ("DELETE", path, None),
            "add": ("POST", f"{path}/widgets", widget),
            "retitle": ("PATCH", f"{path}/widgets/{oldest}", {"title": name}),
            "remove": ("DELETE", f"{path}/widgets/{oldest}", None),
            "publish": ("POST", f"{path}/publish", None),
            "unpublish": ("POST", f"{path}/unpublish", None),
            "restore": ("POST", f"{path}/restore-published", None),
        }[kind]

    def send(self, connection, kind, target, method, path, body):
        status, headers, answer = super().send(connection, kind, target, method, path, body)
        if kind == "propose" and status < 300:
            # What was proposed is read once; from then on it is known. The server may stop in between.
            answer = {"id": answer["dashboard_id"], "board": None}
            with contextlib.suppress(Gone):
                answer["board"] = self.look(connection).get(answer["id"], Board("lost"))
        return status, headers, answer

    def apply(self, kind, target, name, new):
        if kind == "create":
            self.live[new["id"]] = Board(name, widgets=((name.replace(" ", "-"), name),))
        elif kind == "propose":
            self.live[new["id"]] = new["board"]
        elif kind == "delete":
            del self.live[target]
        else:
            self.live[target] = self._changed(kind, self.live[target], name)

    def _changed(self, kind, board, name):
        first, rest = board.widgets[:1], board.widgets[1:]
        if kind == "rename":
            return board._replace(name=name)
        if kind == "add":
            return board._replace(widgets=(*board.widgets, (name.replace(" ", "-"), name)))
        if kind == "retitle":
            return board._replace(widgets=((first[0][0], name), *rest))
        if kind == "remove":
            return board._replace(widgets=rest)
        if kind == "unpublish":
            return board._replace(status="unpublished")
        if kind == "restore":
            return board._replace(name=board.published[0], widgets=board.published[1])
        pinned = sum(each.is_pinned for each in self.boards().values())
        published = board._replace(status="published", published=(board.name, board.widgets))
        return published._replace(is_pinned=pinned < PINNED_MAX)

    def look(self, connection):
        listed = connection.get("/v1/dashboards")["data"]
        return {
            each["id"]: Board(
                each["name"],
                each["status"],
                tuple((widget["id"], widget["title"]) for widget in each["widgets"]),
            )
            for each in listed
        }

    def happened(self, connection, kind, target, name, seen):
        if kind == "create":
            return next(({"id": id} for id, board in seen.items() if board.name == name), None)
        if kind == "propose":
            return next(
                ({"id": id, "board": board} for id, board in seen.items() if id not in self.live), None
            )
        if kind == "delete":
            return None if target in seen else {}
        before, after = self.live[target], self._changed(kind, self.live[target], name)
        # Where nothing that is shown would differ, it does not matter which it was.
        is_after = shown(after) != shown(before) and seen.get(target) == shown(after)
        return {} if is_after else None

    def differences(self, seen):
        for id in [id for id, board in self.live.items() if board is None]:
            self.live[id] = seen.get(id, Board("lost"))
        expected = {id: shown(board) for id, board in self.live.items()}
        return [difference("dashboards", expected, seen)] if seen != expected else []


def shown(board):
    """A board as it is listed."""
    return Board(board.name, board.status, board.widgets)


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
        is_public = any(board.is_pinned for board in parts["Dashboards"].boards().values())
        return ["admit"] * is_public + self.ends("expel")

    def choose(self, kind, lots, parts):
        if kind == "expel":
            return super().choose(kind, lots, parts)
        boards = parts["Dashboards"].boards().items()
        return lots.choice(sorted(id for id, board in boards if board.is_pinned))

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
        return on_its_own(connection, target, method, path, body)

    def told(self, kind, headers, answer):
        return {"cookie": cookie_of(headers)}

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
        return ["fill"] + ["forget"] * bool(self._whole()) + self.ends("erase")

    def choose(self, kind, lots, parts):
        if kind == "forget":
            return lots.choice(self._whole())
        return None if kind == "fill" else super().choose(kind, lots, parts)

    def _whole(self):
        """Of whom no user was forgotten: from an earlier job nobody could tell whether a later one was asked for."""
        return sorted(name for name, count in self.live.items() if count == sum(self.USERS.values()))

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
                return [f"{tenant} has {count} events instead of {expected}; {self._jobs(connection, tenant)}"]
            time.sleep(0.02)
        return []

    def _jobs(self, connection, tenant):
        """Its erasures, and how many others there are that are not done, in words."""
        jobs = connection.get("/v1/erasures", limit=100)["data"]
        own = [job for job in jobs if job["tenant_id"] == tenant]
        pending = sum(job["status"] != "done" for job in jobs)
        return f"erasures of it: {own}; {pending} of {len(jobs)} are not done"

    def _count(self, connection, tenant):
        window = {"from": "1970-01-02T00:00:00Z", "to": "2100-01-01T00:00:00Z"}
        asked = {"event_name": self.EVENT, "tenant_id": tenant, "metric": "count"} | window
        rows = connection.get("/v1/query", **asked)["data"]
        return sum(row["value"] or 0 for row in rows)


class Orgs(Part):
    """E-mail addresses of further organisations to whether they are there; a login tells."""

    PASSWORD = "another rig on the loopback"

    def kinds(self, parts):
        return ["found"] * (len(self.live) < ORGS_MAX) + self.ends("dissolve") * (len(self.live) > 1)

    def choose(self, kind, lots, parts):
        return None if kind == "found" else super().choose(kind, lots, parts)

    def request(self, kind, target, name):
        if kind == "found":
            account = {"email": self._email(name), "password": self.PASSWORD}
            return "POST", "/v1/auth/register", account | {"name": name, "org_name": name}
        return "DELETE", "/v1/settings/org", None

    def send(self, connection, kind, target, method, path, body):
        session = None
        if kind == "dissolve":
            status, headers, answer = self._login(connection, target)
            if status != 200:
                return status, headers, answer
            session = cookie_of(headers)
        return on_its_own(connection, session, method, path, body)

    def apply(self, kind, target, name, new):
        if kind == "found":
            self.live[self._email(name)] = True
        else:
            del self.live[target]
            self.gone.append(target)

    def happened(self, connection, kind, target, name, seen):
        is_there = self._login(connection, target or self._email(name))[0] == 200
        return {} if is_there == (kind == "found") else None

    def try_live(self, connection, name, known):
        return self._try(connection, name, 200)

    def try_gone(self, connection, gone):
        return self._try(connection, gone, 401)

    def _try(self, connection, email, expected):
        status = self._login(connection, email)[0]
        return [] if status == expected else [f"{email} logs in with {status} instead of {expected}"]

    def _login(self, connection, email):
        account = {"email": email, "password": self.PASSWORD}
        return on_its_own(connection, None, "POST", "/v1/auth/login", account)

    def _email(self, name):
        return f"{name.replace(' ', '-')}@example.com"


class Things(Part):
    """Id to name of what is made, renamed and deleted, and does nothing else."""

    path = name_field = None

    def kinds(self, parts):
        rename = ["rename"] * (bool(self.live) and self.name_field in ("name", "title"))
        return ["make"] * self.may_make(parts) + rename + self.ends("drop")

    def may_make(self, parts):
        return True

    def choose(self, kind, lots, parts):
        return None if kind == "make" else super().choose(kind, lots, parts)

    def request(self, kind, target, name):
        if kind == "make":
            return "POST", self.path, self.body(target, name)
        path = f"{self.path}/{target}"
        return ("PATCH", path, {self.name_field: name}) if kind == "rename" else ("DELETE", path, None)

    def apply(self, kind, target, name, new):
        if kind == "drop":
            self.gone.append(self.live.pop(target))
        else:
            self.live[str(new["id"]) if kind == "make" else target] = self.named(name)

    def named(self, name):
        """The name as the server shows it."""
        return name

    def look(self, connection):
        listed = connection.get(self.list_path())["data"]
        return {str(each["id"]): each[self.name_field] for each in listed}

    def list_path(self):
        return self.path

    def happened(self, connection, kind, target, name, seen):
        if kind == "make":
            named = self.named(name)
            return next(({"id": id} for id, shown in seen.items() if shown == named), None)
        if kind == "drop":
            return None if target in seen else {}
        return {} if seen.get(target) == self.named(name) else None

    def differences(self, seen):
        kind = type(self).__name__
        return [difference(kind, self.live, seen)] if seen != self.live else []


class SavedQueries(Things):
    path, name_field = "/v1/saved-queries", "name"

    def body(self, target, name):
        return {"name": name, "sql": f"SELECT '{name}'"}


class StandaloneWidgets(Things):
    path, name_field = "/v1/widgets", "title"

    def body(self, target, name):
        query = {"event_name": "call", "metric": "count"}
        return {"kind": "number", "title": name, "query": query}


class Invites(Things):
    path, name_field = "/v1/members/invites", "email"

    def request(self, kind, target, name):
        if kind == "make":
            body = {"email": self.named(name), "role": "viewer"}
            return "POST", "/v1/members/invite", body
        return super().request(kind, target, name)

    def named(self, name):
        return f"{name.replace(' ', '-')}@invited.example"


class Rules(Things):
    """Rules are about a dashboard that stays."""

    name_field = "name"

    def may_make(self, parts):
        return any(board.is_pinned for board in parts["Dashboards"].boards().values())

    def choose(self, kind, lots, parts):
        if kind != "make":
            return super().choose(kind, lots, parts)
        boards = parts["Dashboards"].boards().items()
        return lots.choice(sorted(id for id, board in boards if board.is_pinned))


class Reports(Rules):
    path = "/v1/reports"

    def body(self, target, name):
        mail = {"recipients": ["rig@example.com"], "format": "csv", "schedule": "daily"}
        return {"dashboard_id": target, "name": name} | mail


class Alerts(Rules):
    path = "/v1/alerts"

    def may_make(self, parts):
        boards = parts["Dashboards"].boards().values()
        return any(board.is_pinned and board.widgets for board in boards)

    def choose(self, kind, lots, parts):
        if kind != "make":
            return Part.choose(self, kind, lots, parts)
        boards = parts["Dashboards"].boards().items()
        fits = sorted(id for id, board in boards if board.is_pinned and board.widgets)
        self.widgets = {id: parts["Dashboards"].live[id].widgets[0][0] for id in fits}
        return lots.choice(fits)

    def body(self, target, name):
        condition = {"widget_id": self.widgets[target], "condition_type": "no_data"}
        return {"dashboard_id": target, "name": name} | condition


PARTS = (
    Dashboards, Keys, Sessions, Logins, Tenants, Orgs,
    SavedQueries, StandaloneWidgets, Invites, Reports, Alerts,
)  # fmt: skip


def on_its_own(connection, session, method, path, body):
    """A request over a connection of its own, with a cookie or none."""
    fresh = Connection(address(connection), session=session)
    try:
        return fresh.call(method, path, body)
    finally:
        fresh.close()


def cookie_of(headers):
    cookie = http.cookies.SimpleCookie(headers.get("Set-Cookie", "")).get("service_session")
    return cookie.value if cookie else None


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
