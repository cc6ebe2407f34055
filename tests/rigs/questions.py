"""Numbers from `GET /v1/query`, as the comparison wants them."""

from common import Connection, Failed

EVENT = "rig"
# Groups of an answer, at most.
GROUPS_MAX = 1_000
# Rounds have half as many batches.
ROUNDS_MAX = 2


class Questions:
    """Numbers from `GET /v1/query`."""

    def __init__(self, host, key, window):
        self.connection = Connection(host, key)
        self.window = window

    def ask(self, tenant, metric, **more):
        asked = {"event_name": EVENT, "tenant_id": tenant, "metric": metric} | self.window | more
        if metric == "sum":
            asked["numeric_prop"] = "n"
        return self.connection.get("/v1/query", **asked)

    def rows(self, tenant, metric, **more):
        return [row["value"] for row in self.ask(tenant, metric, **more)["data"]]

    def value(self, tenant, metric, **more):
        [value] = self.rows(tenant, metric, **more)
        return value

    def groups(self, tenant, metric, by, **more):
        answer = self.ask(tenant, metric, group_by=by, limit=GROUPS_MAX, **more)
        if answer["meta"]["groups_total"] != len(answer["data"]):
            raise Failed(f"groups were cut: {answer['meta']}")
        return {row["group"]: row["value"] for row in answer["data"]}

    def batches(self, tenant, labels):
        """Batch to count and sum, of these rounds."""
        found, labels = {}, sorted(labels)
        for first in range(0, len(labels), ROUNDS_MAX):
            some = labels[first : first + ROUNDS_MAX]
            counts = self.groups(tenant, "count", "batch", f_round=some)
            sums = self.groups(tenant, "sum", "batch", f_round=some)
            found |= {name: (count, sums.get(name, 0)) for name, count in counts.items()}
        return found

    def totals(self, tenant):
        """The same numbers in several ways."""
        return {
            "count": self.value(tenant, "count"),
            "sum": self.value(tenant, "sum"),
            "days added up": sum(self.rows(tenant, "count", granularity="day")),
            "hours added up": sum(self.rows(tenant, "count", granularity="hour")),
            "models": self.groups(tenant, "count", "model"),
        }


def iso(instant):
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
