"""Random statements for `differential.py`, in the words of both sides, as trees that can be made smaller.

    >>> statement = Grammar(random.Random(1)).statement()
    >>> statement.text(OURS), statement.text(DUCK)

Expressions have a kind (`int`, `num`, `text`, `bool`, `time`), and stand for a value that one row, one group
or one window has: a *scope* says what an expression of a kind begins with. Every statement has one answer: an
order that is cut by LIMIT is one of all columns, what depends on the order of rows is ordered down to
`event_id`, and divisors are never zero. Where PostgreSQL and DuckDB spell the same thing differently, a part
has two templates.

Numbers of events are multiples of a quarter but for `cost`, so that their sums are exact in any order.
"""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

OURS, DUCK = "Inlay", "DuckDB"
STRINGS, NUMBERS = ("plan", "city", "code", "nowhere"), ("ms", "delta", "cost", "big")
TEXTS = {
    "text": [
        *(f"string_props['{name}']" for name in STRINGS),
        "tenant_id",
        "event_name",
        "user_id",
        "event_id",
    ],
    "num": [f"numeric_props['{name}']" for name in NUMBERS],
    "time": ["timestamp"],
}
LITERALS = {
    "int": ["0", "1", "2", "3", "7", "10", "-1", "-4", "100", "CAST(NULL AS bigint)"],
    "num": ["0.0", "0.5", "1.25", "2.5", "-0.75", "3.5", "100.0", "1000.25",
             "CAST(NULL AS double precision)"],
    "text": ["''", "'free'", "'pro'", "'Zürich'", "'O''Brien'", "'100%'", "'a_b'", "'u1'", "'login'", "'7'",
             "' padded '", "'東京'", "CAST(NULL AS varchar)"],
    "bool": ["TRUE", "FALSE", "CAST(NULL AS boolean)"],
    "time": ["TIMESTAMP '2026-01-01 00:00:00'", "TIMESTAMP '2026-03-29 01:00:00'",
             "TIMESTAMP '2025-12-31 23:59:59.999'",
             "TIMESTAMP '2024-02-29 12:00:00'", "TIMESTAMP '2026-10-25 00:30:00'", "CAST(NULL AS timestamp)"],
}  # fmt: skip
CASTS = {
    "int": "bigint",
    "num": "double precision",
    "text": "varchar",
    "bool": "boolean",
    "time": "timestamp",
}
PATTERNS = [
    "'%r%'",
    "'_r%'",
    "'%o'",
    "''",
    "'%'",
    "'Z_rich'",
    "'u_'",
    "'%!%' ESCAPE '!'",
    "'a!_b' ESCAPE '!'",
]
REGEXES = ["^u[0-9]$", "r", "^$", "[A-Z]", "ü|o", "(p|f)r", "^.{2}$", "\\d+", "^[a-z_]+$", "%"]
FIELDS = [
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "dow",
    "isodow",
    "doy",
    "week",
    "quarter",
    "isoyear",
]
UNITS = ["hour", "day", "week", "month", "quarter", "year", "minute"]
STEPS = ["1 day", "1 month", "36 hours", "90 minutes", "1 year", "7 days", "15 seconds", "3 months"]
LENGTHS = ["36 hours", "1 day", "0 seconds", "-90 minutes", "400 days"]
LOCAL = "{{}} AT TIME ZONE 'UTC' AT TIME ZONE '{}'"
ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC", "Australia/Lord_Howe"]
PLACED = (
    "string_agg({text}, ',' ORDER BY event_id)",
    "(array_agg({text} ORDER BY timestamp DESC, event_id))[1]",
    "first_value({text} ORDER BY timestamp DESC, event_id)",
)
# DuckDB has an empty text where nothing matches.
FIRST_MATCH = "CASE WHEN regexp_matches({0}, '([a-zü]+)r') THEN regexp_extract({0}, '([a-zü]+)r', 1) END"
# DuckDB compares rows as values, in which nulls have a place.
ROWS = {
    "=": "({0} = {2} AND {1} = {3})", "<>": "({0} <> {2} OR {1} <> {3})",
    "<": "({0} < {2} OR ({0} = {2} AND {1} < {3}))", ">=": "({0} > {2} OR ({0} = {2} AND {1} >= {3}))",
}  # fmt: skip
KINDS = ("int", "num", "text", "bool", "time")
# Columns of a subquery of groups.
GROUP_NAMES = {"text": ["tenant_id", "k"], "int": ["n"], "num": ["total"], "time": ["latest"]}
PROPERTY = re.compile(r"(?:string|numeric)_props\['(\w+)'\]")


@dataclass(frozen=True)
class Node:
    """A part of a statement. Parts of the same kind may stand for each other."""

    kind: str
    ours: str
    theirs: str
    parts: tuple["Node", ...] = ()

    def text(self, side: str) -> str:
        """What one side is asked: for DuckDB, properties are columns."""
        template = self.ours if side == OURS else PROPERTY.sub(r"\1", self.theirs)
        return template.format(*(part.text(side) for part in self.parts)) if self.parts else template

    def smaller(self) -> Iterator["Node"]:
        """The same tree with one part less, or a simple one in the place of another."""
        for simple in dict.fromkeys([*self.below(), *SIMPLE.get(self.kind, ())]):
            if simple.kind == self.kind and simple != self:
                yield simple
        if self.kind == "list":
            for i in reversed(range(len(self.parts) if len(self.parts) > 1 else 0)):
                yield listed([*self.parts[:i], *self.parts[i + 1 :]])
        for i, part in enumerate(self.parts):
            for other in part.smaller():
                yield Node(self.kind, self.ours, self.theirs, (*self.parts[:i], other, *self.parts[i + 1 :]))

    def below(self) -> Iterator["Node"]:
        for part in self.parts:
            yield part
            yield from part.below()


def put(kind: str, ours: str, *parts: Node, theirs: str | None = None) -> Node:
    return Node(kind, ours, ours if theirs is None else theirs, parts)


def listed(parts: list[Node]) -> Node:
    template = ", ".join(["{}"] * len(parts))
    return Node("list", template, template, tuple(parts))


def literal(kind: str, text: str) -> Node:
    """A number with a point is a double of ours, and a decimal of theirs."""
    return Node(kind, text, text + "e0" if re.fullmatch(r"-?\d+\.\d+", text) else text)


NOTHING = put("clause", "")
SIMPLE = {
    **{kind: [literal(kind, text[1] if kind == "int" else text[0])] for kind, text in LITERALS.items()},
    "clause": [NOTHING],
}
Scope = Callable[[str], Node]


class Grammar:
    """Draws statements by lot."""

    def __init__(self, lot: random.Random):
        self.lot = lot

    def chance(self, share: float) -> bool:
        return self.lot.random() < share

    def one(self, *choices: str) -> str:
        return self.lot.choice(choices)

    def regex(self) -> str:
        return self.lot.choice(REGEXES).replace("{", "{{").replace("}", "}}")

    # ---- Scopes ---------------------------------------------------------------------------------

    def columns(self, prefix: str = "", names: dict[str, list[str]] = TEXTS) -> Scope:
        """Rows of a table: a column, or a literal now and then."""

        def leaf(kind: str) -> Node:
            if names.get(kind) and self.chance(0.8):
                return put(kind, prefix + self.lot.choice(names[kind]))
            return literal(kind, self.lot.choice(LITERALS[kind]))

        return leaf

    def aggregates(self, scope: Scope, placed: bool = True) -> Scope:
        """Groups of rows, which may have a place by `event_id`."""
        return lambda kind: self.aggregate(kind, scope, placed)

    def windows(self, scope: Scope) -> Scope:
        """Rows with what windows say of them."""
        return lambda kind: self.window(kind, scope) if kind != "bool" else scope(kind)

    # ---- Expressions ----------------------------------------------------------------------------

    def value(self, kind: str, depth: int, scope: Scope) -> Node:
        """An expression of a kind."""
        if depth <= 0 or (kind != "bool" and self.chance(0.25)):
            return scope(kind)

        def sub(of: str = kind) -> Node:
            return self.value(of, depth - self.lot.randint(1, 2), scope)

        general = (
            lambda: put(kind, "CASE WHEN {} THEN {} ELSE {} END", sub("bool"), sub(), sub()),
            lambda: put(kind, "CASE WHEN {} THEN {} END", sub("bool"), sub()),
            lambda: put(kind, "COALESCE({}, {})", sub(), sub()),
            lambda: put(kind, "NULLIF({}, {})", sub(), sub()),
        )
        if kind == "bool" or self.chance(0.75):
            return getattr(self, f"{kind}_value")(sub)
        if kind != "bool" and self.chance(0.2):
            return put(kind, self.one("GREATEST", "LEAST") + "({}, {})", sub(), sub())
        return self.lot.choice(general)()

    def int_value(self, sub) -> Node:
        field, zone = self.lot.choice(FIELDS), self.lot.choice(ZONES)
        whole = self.one("floor", "ceil", "round", "trunc")
        text, regex = sub("text"), self.regex()
        code = Node("guarded", text.ours, text.theirs, text.parts)
        return self.lot.choice((
            lambda: put("int", f"({{}} {self.one('+', '-', '*')} {{}})", sub(), sub()),
            lambda: put("int", "({} / NULLIF({}, 0))", sub(), sub(), theirs="({} // NULLIF({}, 0))"),
            lambda: put("int", "({} % NULLIF({}, 0))", sub(), sub()),
            lambda: put("int", self.one("-({})", "abs({})"), sub()),
            lambda: put("int", "length({})", sub("text")),
            lambda: put("int", "position({} IN {})", sub("text"), sub("text")),
            lambda: put("int", f"CAST(extract({field} FROM {{}}) AS bigint)", sub("time"),
                        theirs=f"CAST(floor(extract({field} FROM {{}})) AS bigint)"),
            lambda: put("int", f"CAST(date_part('hour', {LOCAL.format(zone)}) AS bigint)", sub("time")),
            lambda: put("int", f"CAST({whole}({{}}) AS bigint)", sub("num"),
                        theirs=f"CAST({whole}({{}}) AS bigint)".replace("round({}", "round_even({}, 0")),
            lambda: put("int", "CAST({} AS bigint)", sub("num")),
            lambda: put("int", "CAST({} AS int)", sub("bool")),
            lambda: put("int", "CASE WHEN {} ~ '^[0-9]+$' THEN CAST({} AS bigint) END", code, code,
                        theirs="CASE WHEN regexp_matches({}, '^[0-9]+$') THEN CAST({} AS bigint) END"),
            lambda: put("int", "CAST(extract(day FROM {} - {}) AS bigint)", sub("time"), sub("time")),
            lambda: put("int", "(CAST({} AS date) - CAST({} AS date))", sub("time"), sub("time")),
            lambda: put("int", f"regexp_count({{}}, '{regex}')", text,
                        theirs=f"len(regexp_extract_all({{}}, '{regex}'))"),
        ))()  # fmt: skip

    def num_value(self, sub) -> Node:
        return self.lot.choice((
            lambda: put("num", f"({{}} {self.one('+', '-', '*')} {{}})", sub(), sub()),
            lambda: put("num", f"({{}} {self.one('+', '-', '*')} {{}})", sub("int"), sub()),
            lambda: put("num", "({} / NULLIF({}, 0))", sub(), sub()),
            lambda: put("num", "CAST({} AS double precision)", sub("int")),
            lambda: put("num", self.one("-({})", "abs({})", "floor({})", "ceil({})"), sub()),
            lambda: put("num", self.one("sqrt(abs({}))", "sign({})"), sub()),
            lambda: put("num", "round({})", sub(), theirs="round({}, 0)"),
            lambda: put("num", self.one("trunc({})", "power({}, 2)", "ln(abs({}) + 1)", "cbrt({})"), sub()),
            lambda: put("num", "extract(epoch FROM {})", sub("time")),
            lambda: put("num", "extract(epoch FROM {} - {})", sub("time"), sub("time")),
        ))()  # fmt: skip

    def text_value(self, sub) -> Node:
        count, regex = self.lot.randint(1, 4), self.regex()
        pattern = self.one("%Y-%m", "%Y-%m-%d %H:%M", "%j")
        return self.lot.choice((
            lambda: put("text", "({} || {})", sub(), sub()),
            lambda: put("text", "concat({}, {})", sub(), sub()),
            lambda: put("text", "concat_ws('-', {}, {})", sub(), sub()),
            lambda: put("text", self.one("upper({})", "lower({})", "trim({})"), sub()),
            lambda: put("text", self.one("ltrim({})", "rtrim({})", "md5({})"), sub()),
            lambda: put("text", f"substr({{}}, {count})", sub()),
            lambda: put("text", f"substring({{}} FROM {count} FOR {self.lot.randint(0, 3)})", sub()),
            lambda: put("text", f"{self.one('left', 'right')}({{}}, {self.lot.randint(-2, 4)})", sub()),
            lambda: put("text", f"{self.one('lpad', 'rpad')}({{}}, {count + 2}, '*')", sub()),
            lambda: put("text", f"replace({{}}, '{self.one('r', 'ü', '%', 'zz')}', 'x')", sub()),
            lambda: put("text", "translate({}, 'aeüo%', 'AE')", sub()),
            lambda: put("text", "reverse({})", sub()),
            lambda: put("text", f"split_part({{}}, '{self.one('_', 'r', ' ')}', {self.one('1', '2', '-1')})",
                        sub()),
            lambda: put("text", f"regexp_replace({{}}, '{regex}', '<>'" + self.one(")", ", 'g')"), sub()),
            lambda: put("text", "(regexp_match({}, '([a-zü]+)r'))[1]", sub(), theirs=FIRST_MATCH),
            lambda: put("text", "CAST({} AS varchar)", sub(self.one("int", "bool"))),
            lambda: put("text", f"to_char({{}}, '{pattern}')", sub("time"),
                        theirs=f"strftime({{}}, '{pattern}')"),
        ))()  # fmt: skip

    def time_value(self, sub) -> Node:
        unit, step, zone = self.lot.choice(UNITS), self.lot.choice(STEPS), self.lot.choice(ZONES)
        back = f"AT TIME ZONE '{zone}' AT TIME ZONE 'UTC'"
        quarter = "INTERVAL '15 minutes', {}, TIMESTAMP '1970-01-01 00:00:00')"
        return self.lot.choice((
            lambda: put("time", f"date_trunc('{unit}', {{}})", sub()),
            lambda: put("time", f"({{}} {self.one('+', '-')} INTERVAL '{step}')", sub()),
            lambda: put("time", "CAST(CAST({} AS date) AS timestamp)", sub()),
            lambda: put("time", f"(CAST({{}} AS date) {self.one('+', '-')} INTERVAL '{step}')", sub()),
            lambda: put("time", f"({LOCAL.format(zone)})", sub()),
            lambda: put("time", f"({{}} {back})", sub()),
            lambda: put("time", f"(date_trunc('{unit}', {LOCAL.format(zone)}) {back})", sub()),
            lambda: put("time", f"date_bin({quarter}", sub(), theirs=f"time_bucket({quarter}"),
        ))()  # fmt: skip

    def bool_value(self, sub) -> Node:
        kind = self.one(*KINDS[:3], "time")
        not_, is_not, compared = self.one("", "", "NOT "), self.one("", "NOT "), self.one(*ROWS)
        sign, either, length = (
            self.one("=", "<>", "<", "<=", ">", ">="),
            self.one("AND", "OR"),
            self.lot.choice(LENGTHS),
        )
        like, truth = self.one("LIKE", "ILIKE"), self.one("TRUE", "FALSE", "UNKNOWN")
        regex = self.regex()
        items = [
            sub(kind) if self.chance(0.3) else literal(kind, self.lot.choice(LITERALS[kind]))
            for _ in range(3)
        ]
        return self.lot.choice((
            *[lambda: put("bool", f"({{}} {sign} {{}})", sub(kind), sub(kind))] * 3,
            lambda: put("bool", f"({{}} IS {is_not}NULL)", sub(kind)),
            lambda: put("bool", f"({{}} IS {is_not}DISTINCT FROM {{}})", sub(kind), sub(kind)),
            lambda: put("bool", f"({{}} {not_}BETWEEN {{}} AND {{}})", sub(kind), sub(kind), sub(kind)),
            *[lambda: put("bool", f"({{}} {not_}IN ({{}}))", sub(kind), listed(items))] * 2,
            lambda: put("bool", f"({{}} {not_}IN ({{}}, NULL))", sub(kind), listed(items[:2])),
            lambda: put("bool", f"({{}} {not_}{like} {self.lot.choice(PATTERNS)})", sub("text")),
            lambda: put("bool", f"({{}} ~ '{regex}')", sub("text"),
                        theirs=f"regexp_matches({{}}, '{regex}')"),
            lambda: put("bool", f"({{}} !~* '{regex}')", sub("text"),
                        theirs=f"(NOT regexp_matches({{}}, '{regex}', 'i'))"),
            lambda: put("bool", "({} SIMILAR TO '(u|Z)%')", sub("text"),
                        theirs="regexp_full_match({}, '(?s)(u|Z).*')"),
            lambda: put("bool", f"(({{}} - {{}}) {sign} INTERVAL '{length}')", sub("time"), sub("time")),
            lambda: put("bool", "starts_with({}, {})", sub("text"), sub("text")),
            *[lambda: put("bool", f"({{}} {either} {{}})", sub("bool"), sub("bool"))] * 3,
            lambda: put("bool", "(NOT {})", sub("bool")),
            lambda: put("bool", f"({{}} IS {is_not}{truth})", sub("bool")),
            lambda: put("bool", f"({{}} {self.one('=', '<>')} {{}})", sub("bool"), sub("bool")),
            lambda: put("bool", f"(({{}}, {{}}) {compared} ({{}}, {{}}))",
                        sub("text"), sub(kind), sub("text"), sub(kind), theirs=ROWS[compared]),
        ))()  # fmt: skip

    def aggregate(self, kind: str, scope: Scope, placed: bool) -> Node:
        """A value of a group, some with a FILTER."""
        depth = self.lot.choice((0, 0, 1, 2))

        def sub(of: str = kind) -> Node:
            return self.value(of, depth, scope)

        any_kind, share = self.lot.choice(KINDS), self.one("0.0", "0.1", "0.5", "0.95", "1.0")
        spread = self.one("stddev_samp({})", "stddev_pop({})", "var_samp({})", "var_pop({})", "stddev({})")
        pair = self.one("corr", "covar_samp", "covar_pop", "regr_slope", "regr_intercept", "regr_r2")
        makers = {
            "int": ("count(*)", "count({any})", "count(DISTINCT {any})", "sum({int})", "min({int})",
                    "max({int})",
                    "bit_or({int})", "bit_and({int})", "regr_count({num}, {num})", "sum(DISTINCT {int})"),
            "num": ("sum({num})", "avg({num})", "min({num})", "max({num})", "avg({int})",
                    spread.replace("{}", "{num}"),
                    f"percentile_cont({share}) WITHIN GROUP (ORDER BY {{num}})", f"{pair}({{num}}, {{num}})",
                    "sum(DISTINCT {num})", "avg(DISTINCT {num})", "median({num})"),
            "text": ("min({text})", "max({text})", *(PLACED if placed else ())),
            "bool": ("bool_and({bool})", "bool_or({bool})"),
            "time": ("min({time})", "max({time})"),
        }  # fmt: skip
        template = self.lot.choice(makers[kind])
        wanted = re.findall(r"\{(\w+)\}", template)
        parts = [sub(any_kind if of == "any" else of) for of in wanted]
        template = re.sub(r"\{\w+\}", "{}", template)
        if template.startswith("("):
            return put(kind, template, *parts)
        only = (
            put("clause", " FILTER (WHERE {})", self.value("bool", 1, scope))
            if self.chance(0.25)
            else NOTHING
        )
        # DuckDB has NaN where PostgreSQL has nothing to say.
        theirs = f"NULLIF({template}{{}}, CAST('nan' AS double))" if pair in template else None
        if template.startswith("first_value"):
            theirs = template.replace("first_value", "first") + "{}"
        return put(kind, template + "{}", *parts, only, theirs=theirs)

    def window(self, kind: str, scope: Scope) -> Node:
        """A value that other rows of a partition decide."""
        part = put(
            "clause", "PARTITION BY {} ", self.value(self.one("text", "int"), self.one(0, 0, 1), scope)
        )
        way = self.one("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
        total = f"ORDER BY {{}}{way}, event_id"
        rows = self.one(
            "", "", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN 1 PRECEDING AND 3 FOLLOWING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING",
            " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
        )  # fmt: skip
        key, x = self.value(self.one(*KINDS), self.one(0, 0, 1), scope), self.value(kind, 1, scope)
        nth = self.one("1", "2", "3")
        if kind == "int" and self.chance(0.5):
            ranked = self.one("rank()", "dense_rank()", f"ntile({nth})", "row_number()")
            by = f"ORDER BY {{}}{way}" if "rank" in ranked else total
            return put(kind, f"{ranked} OVER ({{}}{by})", part, key)
        if kind == "num" and self.chance(0.2):
            return put(
                kind, f"{self.one('percent_rank', 'cume_dist')}() OVER ({{}}ORDER BY {{}}{way})", part, key
            )
        if kind in ("int", "num") and self.chance(0.6):
            name = (
                self.one("sum", "count", "min", "max")
                if kind == "int"
                else self.one("sum", "avg", "min", "max")
            )
            if self.chance(0.3):
                step = self.lot.choice(STEPS)
                frame = f"ORDER BY timestamp RANGE BETWEEN INTERVAL '{step}' PRECEDING AND CURRENT ROW"
                return put(kind, f"{name}({{}}) OVER ({{}}{frame})", x, part)
            by = f"ORDER BY {{}}{way}" if "ROWS" not in rows and self.chance(0.5) else total
            return put(kind, f"{name}({{}}) OVER ({{}}{by}{rows})", x, part, key)
        if self.chance(0.5):
            ahead = self.one("lag", "lead") + self.one("({})", f"({{}}, {nth})", f"({{}}, {nth}, {{}})")
            extra = [self.lot.choice([literal(kind, LITERALS[kind][1])])] if ahead.count("{}") == 2 else []
            return put(kind, f"{ahead} OVER ({{}}{total})", x, *extra, part, key)
        named = self.one("first_value({})", "last_value({})", f"nth_value({{}}, {nth})")
        return put(kind, f"{named} OVER ({{}}{total}{rows})", x, part, key)

    # ---- Statements -----------------------------------------------------------------------------

    def statement(self) -> Node:
        """A statement of any shape; simple ones are more frequent."""
        shapes = (
            self.constants, self.rows, self.rows, self.groups, self.groups, self.groups, self.sets,
            self.windowed, self.windowed, self.ranked_groups, self.joined, self.joined, self.semi,
            self.scalar, self.combined, self.common, self.common, self.first_rows,
        )  # fmt: skip
        return self.lot.choice(shapes)()

    def kinds(self, least: int = 1, most: int = 3) -> list[str]:
        return [self.one(*KINDS) for _ in range(self.lot.randint(least, most))]

    def items(self, kinds: list[str], scope: Scope, depth: int = 2) -> list[Node]:
        return [self.value(kind, self.lot.randint(0, depth), scope) for kind in kinds]

    def where(self, scope: Scope, share: float = 0.6, word: str = "WHERE") -> Node:
        if not self.chance(share):
            return NOTHING
        return put("clause", f" {word} {{}}", self.value("bool", self.lot.randint(1, 3), scope))

    def tail(self, count: int) -> Node:
        """An order of all columns, and what it makes possible."""
        if self.chance(0.6):
            return NOTHING
        ways = ("", "", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST")
        order = ", ".join(f"{i + 1}{self.lot.choice(ways)}" for i in range(count))
        offset = put("clause", f" OFFSET {self.lot.randint(0, 20)}") if self.chance(0.4) else NOTHING
        limit = put("clause", f" LIMIT {self.lot.randint(0, 50)}") if self.chance(0.6) else NOTHING
        return put("clause", f" ORDER BY {order}{{}}{{}}", limit, offset)

    def select(
        self, items: list[Node], source: Node, where=NOTHING, group=NOTHING, tail=None, distinct=NOTHING
    ) -> Node:
        tail = self.tail(len(items)) if tail is None else tail
        return put("query", "SELECT {}{}{}{}{}{}", distinct, listed(items), source, where, group, tail)

    def distinct(self) -> Node:
        return put("clause", "DISTINCT ") if self.chance(0.2) else NOTHING

    def constants(self) -> Node:
        return self.select(self.items(self.kinds(), self.columns(names={}), 3), NOTHING, tail=NOTHING)

    def rows(self, kinds: list[str] | None = None, tail: Node | None = None) -> Node:
        scope = self.columns()
        items = self.items(kinds or self.kinds(), scope)
        return self.select(items, EVENTS, self.where(scope), tail=tail, distinct=self.distinct())

    def groups(self, kinds: list[str] | None = None, tail: Node | None = None) -> Node:
        scope = self.columns()
        kinds = kinds or self.kinds(1, 4)
        return self.grouped(kinds, self.lot.randint(0, min(2, len(kinds) - 1)), EVENTS, scope, tail)

    def grouped(
        self, kinds: list[str], keys: int, source: Node, scope: Scope, tail=None, placed=True
    ) -> Node:
        """Groups by the first columns."""
        groups = self.aggregates(scope, placed)
        items = self.items(kinds[:keys], scope, 1) + self.items(kinds[keys:], groups, 1)
        having = self.where(groups, 0.25, "HAVING")
        by = (
            put("clause", f" GROUP BY {', '.join(str(i + 1) for i in range(keys))}{{}}", having)
            if keys
            else having
        )
        return self.select(items, source, self.where(scope), by, tail)

    def sets(self) -> Node:
        """Several groupings at once."""
        scope = self.columns()
        keys = self.lot.sample([*TEXTS["text"][:6], "date_trunc('month', timestamp)", "length(user_id)"], 2)
        sets = self.one("ROLLUP ({0}, {1})", "CUBE ({0}, {1})", "GROUPING SETS (({0}, {1}), ({1}), ())",
                        "GROUPING SETS (({0}), ({1}))", "{0}, ROLLUP ({1})")  # fmt: skip
        items = [put("key", key) for key in keys] + [put("int", f"grouping({keys[1]})")]
        items += self.items(self.kinds(1, 2), self.aggregates(scope), 0)
        by = put(
            "clause",
            " GROUP BY " + sets.format(*keys) + "{}",
            self.where(self.aggregates(scope), 0.2, "HAVING"),
        )
        return self.select(items, EVENTS, self.where(scope), by)

    def windowed(self) -> Node:
        scope = self.columns()
        kinds = self.kinds()
        # Sums of doubles in another order may be distinct where they were not.
        distinct = NOTHING if "num" in kinds else self.distinct()
        return self.select(
            self.items(kinds, self.windows(scope), 1), EVENTS, self.where(scope), distinct=distinct
        )

    def ranked_groups(self) -> Node:
        scope = self.columns()
        groups = self.aggregates(scope)
        over = put(
            "int", f"{self.one('rank', 'dense_rank')}() OVER (ORDER BY {{}})", groups(self.one(*KINDS))
        )
        total = put("num", "sum({}) OVER ()", groups("num"))
        key = scope("text")
        return self.select([key, over, total], EVENTS, self.where(scope), put("clause", " GROUP BY 1"))

    def group_source(self, prefix: str) -> tuple[Node, Scope]:
        """A subquery of groups, and what it has."""
        key = self.one("user_id", "event_name", "string_props['plan']", "string_props['city']")
        measures = "count(*) AS n, sum(numeric_props['ms']) AS total, max(timestamp) AS latest"
        query = put(
            "table",
            f"(SELECT tenant_id, {key} AS k, {measures} FROM events{{}} GROUP BY 1, 2)",
            self.where(self.columns()),
        )
        return query, self.columns(prefix, GROUP_NAMES)

    def joined(self) -> Node:
        """Rows or groups beside groups, rows beside themselves, or rows beside a list."""
        join = self.one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        left, right = self.columns("a."), self.columns("b.")
        shape = self.lot.randrange(4)
        on = "a.event_id = b.event_id"
        tables = [put("table", "events"), put("table", "events")]
        if shape == 1:
            tables[1], right = self.group_source("b.")
            on = "a.tenant_id = b.tenant_id AND a.user_id = b.k"
        elif shape == 2:
            (tables[0], left), (tables[1], right) = self.group_source("a."), self.group_source("b.")
            on = "a.tenant_id = b.tenant_id AND a.k = b.k"
        elif shape == 3:
            tables[1] = put("table", "(VALUES ('acme', 1), ('100%', NULL), ('nobody', 3), (NULL, 4))")
            right, on = self.columns("b.", {"text": ["tenant_id"], "int": ["n"]}), "a.tenant_id = b.tenant_id"
        names = "b(tenant_id, n)" if shape == 3 else "b"
        scope = self.either(left, right)
        more = put("clause", " AND {}", self.value("bool", 1, scope)) if self.chance(0.4) else NOTHING
        source = put("source", f" FROM {{}} a {join} {{}} {names} ON {on}{{}}", *tables, more)
        if self.chance(0.5):
            return self.grouped(self.kinds(1, 3), 1, source, scope, placed=False)
        return self.select(self.items(self.kinds(), scope, 1), source, self.where(scope, 0.4))

    def either(self, left: Scope, right: Scope) -> Scope:
        return lambda kind: self.lot.choice((left, right))(kind)

    def semi(self) -> Node:
        """Rows for which others are there, or are not."""
        outer, inner = self.columns("e."), self.columns("i.")
        other, not_ = self.where(inner, 0.8, "AND"), self.one("", "NOT ")
        key = self.one("user_id", "string_props['plan']", "string_props['city']", "event_id")
        match = put("bool", self.lot.choice((
            f"{not_}EXISTS (SELECT 1 FROM events i WHERE i.{key} = e.{key}{{}})",
            f"{not_}EXISTS (SELECT 1 FROM events i WHERE i.event_id = e.event_id AND i.timestamp >= "
            "e.timestamp{})",
            f"(e.{key} {not_}IN (SELECT i.{key} FROM events i WHERE i.tenant_id <> 'acme'{{}}))",
            f"(e.{key} {not_}IN (SELECT i.{key} FROM events i WHERE i.event_id = e.event_id{{}}))",
        )), other)  # fmt: skip
        if self.chance(0.3):
            match = put("bool", f"({{}} {self.one('AND', 'OR')} {{}})", match, self.value("bool", 1, outer))
        source, where = put("source", " FROM events e"), put("clause", " WHERE {}", match)
        if self.chance(0.5):
            return self.select([put("int", "count(*)")], source, where, tail=NOTHING)
        return self.select(self.items(self.kinds(), outer, 1), source, where)

    def scalar(self) -> Node:
        """A value from a subquery in each row."""
        outer, inner = self.columns("e."), self.columns("i.")
        kind = self.one(*KINDS[:2], "time")
        aggregates = {
            "int": ("count(*)", "count({})"),
            "num": ("max({})", "sum({})"),
            "time": ("max({})", "min({})"),
        }
        aggregate = self.lot.choice(aggregates[kind])
        parts = [self.value(kind, 1, inner)] if "{}" in aggregate else []
        key = self.one("user_id", "tenant_id", "string_props['plan']", "event_id")
        match = self.one(f" WHERE i.{key} = e.{key}{{}}", " WHERE i.tenant_id = 'acme'{}")
        query = put(kind, f"(SELECT {aggregate} FROM events i{match})", *parts, self.where(inner, 0.5, "AND"))
        scope = (
            self.columns("e.")
            if self.chance(0.5)
            else self.either(outer, lambda of: query if of == kind else outer(of))
        )
        items = [query, *self.items(self.kinds(1, 2), scope, 1)]
        return self.select(items, put("source", " FROM events e"), self.where(scope))

    def combined(self) -> Node:
        """What is in one query, or in both, or in one alone."""
        word = self.one("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
        kinds = self.kinds(1, 3)
        queries = [self.lot.choice((self.rows, self.groups))(kinds, NOTHING) for _ in range(2)]
        return put("query", f"({{}}) {word} ({{}}){{}}", *queries, self.tail(len(kinds)))

    def common(self) -> Node:
        """A name for groups, used once or twice."""
        query, _ = self.group_source("")
        if self.chance(0.5):
            scope = self.columns(names=GROUP_NAMES)
            kinds = self.kinds(1, 3)
            if self.chance(0.5):
                body = self.select(
                    self.items(kinds, scope),
                    put("source", " FROM g"),
                    self.where(scope),
                    distinct=self.distinct(),
                )
            else:
                over = put(
                    "num",
                    "sum(total) OVER (PARTITION BY tenant_id ORDER BY {} DESC NULLS LAST, k)",
                    scope("int"),
                )
                body = self.select(
                    [over, *self.items(kinds, scope)], put("source", " FROM g"), self.where(scope)
                )
        else:
            scope = self.either(self.columns("a.", GROUP_NAMES), self.columns("b.", GROUP_NAMES))
            join = self.one("JOIN", "LEFT JOIN", "FULL JOIN")
            on = "a.k = b.k AND a.tenant_id = b.tenant_id"
            source = put("source", f" FROM g a {join} (SELECT * FROM g{{}}) b ON {on}",
                         self.where(self.columns(names=GROUP_NAMES)))  # fmt: skip
            body = self.select(self.items(self.kinds(), scope, 1), source, self.where(scope, 0.4))
        return put("query", "WITH g AS {} {}", query, body)

    def first_rows(self) -> Node:
        """The first row of each group."""
        scope = self.columns()
        key, way = put("key", self.lot.choice(TEXTS["text"])), self.one("", " DESC")
        items = [key, *self.items(self.kinds(1, 2), scope, 1)]
        distinct = put("clause", "DISTINCT ON ({}) ", key)
        order = put("order", f" ORDER BY {{}}, timestamp{way}, event_id", key)
        query = self.select(items, EVENTS, self.where(scope), tail=order, distinct=distinct)
        return put("query", "SELECT * FROM ({}) f", query)


EVENTS = put("source", " FROM events")
