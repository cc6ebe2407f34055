"""Numbers from `GET /v1/query`, as the comparison wants them."""

from common import Connection, Failed

EVENT = "rig"
# Groups of an answer, at most.
GROUPS_MAX = 1_000


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

    def batches(self, tenants, label):
        """(tenant, batch) to count and sum, of one round."""
        found = {}
        for tenant in tenants:
            counts = self.groups(tenant, "count", "batch", f_round=label)
            sums = self.groups(tenant, "sum", "batch", f_round=label)
            for name, count in counts.items():
                found[tenant, name] = (count, sums.get(name, 0))
        return found


def iso(instant):
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
