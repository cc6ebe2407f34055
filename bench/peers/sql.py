"""How a question becomes SQL, in the words of each store.

Every store holds the same tables, so most statements differ in a few words only:

    events                            the rows, sorted by tenant, name, time_ms; `day` counts days
                                      since 1970, `user_code` counts the users of a tenant
    total_hourly, total_daily         n and for each number x: x_sum, x_min, x_max;
                                      total_daily also has users, the distinct users of the day
    model_hourly, model_daily, …      the same for each value of a dimension
    total_sketches, plan_sketches     daily states of distinct users and percentiles, where the store
                                      has such states

`raw` asks the rows, `rolled` the rollups, `merged` the states. They give several statements where it is
not plain which one is fastest; what is timed is the one that was.

Users are counted by their ids or by their codes, which the application would keep in a table of its own:
that spares the other stores the hashing of texts.

An answer has the columns day or week (counted in days, a week by its Monday), grp and result, each
where the question has it. Nothing is sorted: that is left out in favour of the other stores.
"""

from dataclasses import dataclass

from workload import DAY_MS, HOUR_MS, Facts, milliseconds

# Digits that two ways of adding up doubles may differ in.
EXACT = 1e-9
# What an approximate metric may be off.
APPROXIMATE = 0.03


@dataclass(frozen=True)
class Statement:
    """SQL with the error that its answer may have."""

    text: str
    tolerance: float = EXACT


@dataclass(frozen=True)
class Dialect:
    """The words of one store."""

    name: str
    # Expressions of a metric over rows with the error of each, by name of the metric; {x} is the
    # number, {codes} a bound of the codes of users.
    metrics: dict[str, tuple[tuple[str, float], ...]]
    # The same over stored states, by name of the metric.
    states: dict[str, tuple[tuple[str, float], ...]]
    # Whole division.
    divide: str
    # Whether rows of rollups may wait to be merged, so that a cautious question adds them up.
    merges_later: bool = False
    # Whether a group is cheaper to find value by value than by reading every hour of every value.
    seeks: bool = False
    week: str = "day - (day - 4) % 7"


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def who(query: dict[str, str]) -> str:
    return f"tenant = {literal(query['tenant_id'])} AND name = {literal(query['event_name'])}"


def filters(query: dict[str, str]) -> dict[str, str]:
    return {name[2:]: value for name, value in query.items() if name.startswith("f_")}


def raw(dialect: Dialect, query: dict[str, str], facts: Facts) -> list[Statement]:
    """The question asked of the rows."""
    start, end = milliseconds(query["from"]), milliseconds(query["to"])
    where = f"{who(query)} AND time_ms >= {start} AND time_ms < {end}"
    for name, value in filters(query).items():
        where += f" AND {name} = {literal(value)}"
    return shaped(dialect.metrics[query["metric"]], dialect, query, facts, f"FROM events WHERE {where}")


def merged(dialect: Dialect, query: dict[str, str], facts: Facts) -> list[Statement]:
    """The question asked of states, which exist by day, and by plan where it is about plans."""
    start = milliseconds(query["from"])
    assert start % DAY_MS == 0 and milliseconds(query["to"]) == facts.to
    group = query.get("group_by")
    source = f"FROM {group or 'total'}_sketches WHERE {who(query)} AND day >= {start // DAY_MS}"
    columns = query | ({"group_by": "value"} if group else {})
    return shaped(dialect.states.get(query["metric"], ()), dialect, columns, facts, source)


def shaped(metrics, dialect: Dialect, query: dict[str, str], facts: Facts, source: str) -> list[Statement]:
    """A statement for each expression, by the bucket and the group of the question."""
    keys = []
    if granularity := query.get("granularity"):
        keys.append({"day": "day", "week": f"{dialect.week} AS week"}[granularity])
    if group := query.get("group_by"):
        keys.append(f"{group} AS grp")
    by = " GROUP BY " + ", ".join(str(n + 1) for n in range(len(keys))) if keys else ""
    words = {"x": query.get("numeric_prop"), "codes": facts.user_codes}
    return [
        Statement(f"SELECT {', '.join([*keys, metric.format(**words)])} AS result {source}{by}", tolerance)
        for metric, tolerance in metrics
    ]


def rolled(dialect: Dialect, query: dict[str, str], facts: Facts) -> list[Statement]:
    """The question asked of the rollups: whole days from the daily ones, the hours before the first
    midnight from the hourly ones; and, where a store may like that better, hours alone.

    It covers counts, sums and means with one filter or group at most. The window ends at a midnight
    or after the last event.
    """
    start, end = milliseconds(query["from"]), milliseconds(query["to"])
    assert start % HOUR_MS == 0 and (end % DAY_MS == 0 or end == facts.to)
    midnight = -(-start // DAY_MS)
    group, chosen = query.get("group_by"), filters(query)
    dimension = group or next(iter(chosen), "total")
    mine = who(query) + "".join(f" AND value = {literal(value)}" for value in chosen.values())
    days = f"day >= {midnight}" + ("" if end == facts.to else f" AND day < {end // DAY_MS}")
    hours = f"hour >= {start // HOUR_MS} AND hour < "
    number = query.get("numeric_prop")
    value, added = {
        "count": ("n", "sum(n)"),
        "sum": (f"{number}_sum", f"sum({number}_sum)"),
        "avg": (f"{number}_sum / n", f"sum({number}_sum) / sum(n)"),
    }[query["metric"]]
    daily = f"FROM {dimension}_daily WHERE {mine} AND {days}"
    hourly = f"FROM {dimension}_hourly WHERE {mine} AND {hours}"
    head = f"{hourly}{midnight * 24}"
    if not query.get("granularity"):
        assert not group and query["metric"] != "avg"
        if start % DAY_MS == 0:
            return [Statement(f"SELECT {added} AS result {daily}")]
        return [
            Statement(
                f"SELECT sum(v) AS result FROM (SELECT {value} AS v {daily} UNION ALL SELECT {value} {head})"
            ),
            Statement(f"SELECT (SELECT {added} {daily}) + coalesce((SELECT {added} {head}), 0) AS result"),
            Statement(f"SELECT {added} AS result {hourly}{end // HOUR_MS}"),
        ]
    name, by = ("value AS grp, ", " GROUP BY value") if group else ("", "")
    whole = f"SELECT day, {name}{value} AS result {daily}"
    careful = f"SELECT day, {name}{added} AS result {daily} GROUP BY day{', value' if group else ''}"
    if start % DAY_MS == 0:
        return [Statement(whole), *([Statement(careful)] if dialect.merges_later else [])]
    first = f"SELECT {midnight - 1} AS day, {name}{added} AS result {head}{by}"
    if group and dialect.seeks:
        # The values of the first day stand in its daily rows.
        first = (
            f"SELECT {midnight - 1}, d.value, (SELECT {added} {head} AND value = d.value) "
            f"FROM {dimension}_daily d WHERE {mine} AND day = {midnight - 1}"
        )
    statements = [Statement(f"{whole} UNION ALL {first}")]
    if dialect.merges_later:
        statements.append(Statement(f"{careful} UNION ALL {first}"))
    keys = f"{dialect.divide.format(a='hour', b=24)} AS day{', value AS grp' if group else ''}"
    statements.append(
        Statement(
            f"SELECT {keys}, {added} AS result {hourly}{end // HOUR_MS} GROUP BY 1{', 2' if group else ''}"
        )
    )
    return statements
