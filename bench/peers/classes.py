"""The classes of questions: each a question of ours beside the best SQL for every other store.

Questions have the names of `GET /v1/query`. Windows are those of a dashboard: 90 or 30 days back from
the hour after the last event, so the first day is a part of one; a class that stored states could
answer, which exist by day, starts at a midnight.
"""

from dataclasses import dataclass

from clickhouse import CLICK
from duck import DUCK
from lite import LITE
from sql import Statement, literal, merged, raw, rolled
from workload import DAY_MS, Facts, iso

# As many groups as the API gives at most, so that none is left out.
GROUPS = "1000"
WITHOUT_NUMBER = ("count", "count_unique", "count_unique_approx")


@dataclass(frozen=True)
class Class:
    """One kind of question."""

    name: str
    # A rollup class is about rollups: no store reads rows for it.
    rollup: bool
    query: dict[str, str]
    # By store; a store that has none need not answer.
    statements: dict[str, list[Statement]]


def all_classes(facts: Facts) -> list[Class]:
    """The classes that these rows allow."""

    def ask(metric, since, to=facts.to, tenant=facts.largest, **more):
        query = {
            "event_name": facts.event,
            "tenant_id": tenant,
            "metric": metric,
            "from": iso(since),
            "to": iso(to),
        }
        number = {} if metric in WITHOUT_NUMBER else {"numeric_prop": facts.number}
        return query | number | more | ({"limit": GROUPS} if "group_by" in more else {})

    def rollup(name, query):
        """Counts, sums and means from rollups."""
        return Class(
            name, True, query, {store.name: rolled(store, query, facts) for store in (DUCK, CLICK, LITE)}
        )

    def rows(name, query, *stores):
        """From rows alone."""
        return Class(name, False, query, {store.name: raw(store, query, facts) for store in stores})

    def either(name, query):
        """From rows or states, whatever is faster."""
        both = {store.name: raw(store, query, facts) + merged(store, query, facts) for store in (DUCK, CLICK)}
        return Class(name, False, query, both)

    d90, d30 = facts.since(90), facts.since(30)
    m90, m30, m0 = facts.midnight(90), facts.midnight(30), facts.midnight(0)
    large = DUCK, CLICK
    small = DUCK, CLICK, LITE
    day = {"granularity": "day"}
    model = {"f_model": facts.model}
    free = some(facts, facts.largest)
    users = Statement(
        f"SELECT day, users AS result FROM total_daily WHERE tenant = {literal(facts.largest)} "
        f"AND name = {literal(facts.event)} AND day >= {m30 // DAY_MS} AND day < {m0 // DAY_MS}"
    )

    classes = [
        rollup("count, rollup, 90 days", ask("count", d90)),
        rollup("count, rollup, 90 days, one model", ask("count", d90, **model)),
        rollup("count, rollup, 90 days by day", ask("count", d90, **day)),
        rollup("count, rollup, 90 days by day, one model", ask("count", d90, **day, **model)),
        rollup("count, rollup, 30 days by day and model", ask("count", d30, **day, group_by="model")),
        rollup("count, rollup, 90 days by day and endpoint", ask("count", d90, **day, group_by="endpoint")),
        rows("count, rows, free filter, 90 days", ask("count", d90, **free), *large),
        rows(
            "count, rows, 90 days by day and free dimension",
            ask("count", d90, **day, group_by=facts.free),
            *large,
        ),
        Class(
            "distinct, stored, 30 days by day",
            True,
            ask("count_unique", m30, m0, **day),
            {store.name: [users] for store in small},
        ),
        either("distinct, 90 days", ask("count_unique", m90)),
        either("approximate distinct, 90 days", ask("count_unique_approx", m90)),
        either(
            "approximate distinct, 90 days by week and plan",
            ask("count_unique_approx", m90, granularity="week", group_by="plan"),
        ),
        rollup("sum, rollup, 30 days by day", ask("sum", d30, **day)),
        rollup("avg, rollup, 30 days by day", ask("avg", d30, **day)),
        rows("sum, rows, free filter, 90 days by day", ask("sum", d90, **day, **free), *large),
        rows("avg, rows, free filter, 90 days by day", ask("avg", d90, **day, **free), *large),
        rows("p95, rows, 30 days", ask("p95", d30), *large),
        rows("p95, rows, 30 days by day", ask("p95", d30, **day), *large),
        rows("p99, rows, 90 days by model", ask("p99", d90, group_by="model"), *large),
        either("approximate p95, 90 days", ask("p95_approx", m90)),
    ]
    for size, tenant in (("median", facts.median), ("tiny", facts.tiny)):
        one, free = {"tenant": tenant}, some(facts, tenant)
        classes += [
            rollup(f"{size} tenant: count, rollup, 90 days by day", ask("count", d90, **day, **one)),
            rows(f"{size} tenant: count, free filter, 90 days", ask("count", d90, **free, **one), *small),
            rows(f"{size} tenant: sum, free filter, 90 days", ask("sum", d90, **free, **one), *small),
            rows(f"{size} tenant: distinct, 90 days", ask("count_unique", d90, **one), *small),
            rows(f"{size} tenant: p95, 90 days", ask("p95", d90, **one), *small),
        ]
    # Without a free dimension there is nothing to ask about it.
    return [one for one in classes if facts.free or "free" not in one.name]


def some(facts: Facts, tenant: str) -> dict[str, str]:
    """A filter that no rollup has."""
    return {f"f_{facts.free}": facts.free_values[tenant]} if facts.free else {}
