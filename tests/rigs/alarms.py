"""An alert rule of which each notification has to arrive, whatever happens to the processes that evaluate it.

    alarms = Alarms(rig, "127.0.0.1")       a receiver of webhooks
    alarms.begin(host, key)                 a rule for each tenant of an event that nobody has sent yet
    alarms.body(tenant)                     the event by which it fires for the tenant; sent until it is acknowledged
    alarms.raised(tenant)                   it was
    alarms.judge(connection, found)         waits for all of them: each fired once, and arrived
"""

import collections
import http.server
import json
import threading
import time

from common import Connection
from history import must

# Rules are looked at once a second, and an attempt that a process had under way is made again by the next one.
ARRIVED_SECONDS = 40
SETTINGS = {
    "INLAY_WEBHOOK_ALLOW": "127.0.0.0/8,10.0.0.0/8",
    "INLAY_ALERT_INTERVAL_SECONDS": "1",
    "INLAY_WEBHOOK_BACKOFF_SECONDS": "0,1,1,1,1,1,1,1,1,1",
}


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.received[self.path, body.get("tenant_id"), body["state"]] += 1
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Alarms:
    """Rules, one at a time, and what has arrived of them."""

    def __init__(self, rig, address):
        self.server = http.server.ThreadingHTTPServer((address, 0), Receiver)
        self.server.received = collections.Counter()
        self.url = f"http://{address}:{self.server.server_port}/"
        self.number = self.fired = self.doubled = 0
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        rig.stack.callback(self.server.server_close)
        rig.stack.callback(self.server.shutdown)

    def begin(self, host, key):
        connection = Connection(host, key)
        self.number += 1
        self.tenants, self.lock = [], threading.Lock()
        self.event = f"alarm {self.number}"
        query = {"event_name": self.event, "metric": "count", "period": "24h"}
        layout = {"x": 0, "y": 0, "w": 3, "h": 3}
        widget = {"id": "alarms", "kind": "number", "title": "Alarms", "query": query, "viz": {}, "layout": layout}
        board = must(connection, "POST", "/v1/dashboards", {"name": self.event, "widgets": [widget]})
        rule = {
            "dashboard_id": board["id"], "widget_id": "alarms", "name": self.event, "condition_type": "threshold",
            "operator": "gt", "threshold_value": 0, "lookback_minutes": 1_440, "per_tenant": True,
            "webhook_url": f"{self.url}{self.number}",
        }  # fmt: skip
        self.rule = must(connection, "POST", "/v1/alerts", rule)["id"]

    def body(self, tenant):
        return f'{{"events":[{{"tenant_id":"{tenant}","event_name":"{self.event}","event_id":"1"}}]}}'

    def raised(self, tenant):
        with self.lock:
            self.tenants.append(tenant)

    def judge(self, connection, found):
        def missing():
            arrived = {tenant for path, tenant, state in list(self.server.received) if path == f"/{self.number}"}
            return [tenant for tenant in self.tenants if tenant not in arrived]

        limit = time.monotonic() + ARRIVED_SECONDS
        while missing() and time.monotonic() < limit:
            time.sleep(0.2)
        for tenant in missing():
            found.append(f"no notification of {self.event} for {tenant} has arrived")
        events = connection.get(f"/v1/alerts/{self.rule}/events")["data"]
        fired = collections.Counter(one["tenant_id"] for one in events if one["state"] == "firing")
        for tenant in self.tenants:
            if fired[tenant] != 1:
                found.append(f"{self.event} fired {fired[tenant]} times for {tenant}: {events[:3]}")
        self.fired += len(self.tenants)
        own = [count for (path, _, _), count in self.server.received.items() if path == f"/{self.number}"]
        self.doubled += sum(own) - len(own)
