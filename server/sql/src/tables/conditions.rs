//! Conditions that the engine evaluates exactly, so that DataFusion need not evaluate them again.
//!
//! ```text
//! tenant_id = 'acme' AND timestamp >= '2026-11-01' AND numeric_props['ms'] > 100      pushed down
//! length(user_id) > 9                                                                 stays with DataFusion
//! ```
//!
//! What becomes of each, in the form of the engine:
//!
//! ```text
//! tenant_id = 'acme' OR tenant_id = 'beta'       tenants ["acme", "beta"]
//! event_name NOT IN ('login')                    event names for which a function says yes, called once for each name of a segment
//! timestamp >= '2026-11-01'                      from_ms 1793491200000
//! timestamp <= TIMESTAMP '1970-01-01 00:00:00.0005'   to_ms 1: of whole milliseconds the one before it
//! hour > TIMESTAMP '2026-11-01 00:30:00'         from_ms that of 01:00, the next hour of events_hourly
//! numeric_props['ms'] > 100                      ms from 100.00000000000001, the next double, to infinity
//! string_props['plan'] IN ('pro', 'team')        plan is one of the two
//! string_props['plan'] LIKE 'p%'                 plan, as event names above
//! string_props['plan'] <> 'pro' OR string_props['plan'] IS NULL                       the same, and rows without a plan
//! numeric_props['ms'] IS NOT NULL                ms from minus infinity to infinity
//! ```
//!
//! And what stays with DataFusion: `OR` between two columns, `IS NULL` of other columns, comparisons of two columns, functions, `LIKE` with a pattern that is computed or
//! has no wildcard. Nothing that is pushed down is checked again, so it has to be exact.

use std::{borrow::Cow, cmp::Ordering, collections::HashSet, ops::Range};

use arrow::{
    array::StringArray,
    compute::{ilike, like as arrow_like},
};
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::{BinaryExpr, Expr, Like, Operator, expr::InList};
use inlay_engine::{
    NumberFilter, TextFilter,
    rows::{Filter, Morsel, SeriesFilter, Source, TextMatch, TextTable},
};

use super::{
    arrays::strings,
    instants::kept_cast,
    schema::{Kind, NUMBERS, STRINGS, property_of_column},
};

/// Conditions on rows in the form of the engine. A row must meet all of them.
/// The default has none, and takes every row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions {
    /// Tenants, where they are limited.
    /// An empty list takes none: `tenant_id = 'a' AND tenant_id = 'b'`.
    pub tenants: Option<Vec<String>>,
    /// Event names, where they are limited.
    pub events: Option<Vec<String>>,
    /// Patterns that tenants must match besides.
    tenants_alike: Vec<TextMatch>,
    /// Patterns that event names must match besides.
    events_alike: Vec<TextMatch>,
    /// First millisecond of the interval, since 1970; `None` is unbounded.
    pub from_ms: Option<i64>,
    /// First millisecond after the interval, since 1970; `None` is unbounded.
    pub to_ms: Option<i64>,
    /// Conditions on string and numeric properties.
    /// A row without the property meets those alone that say so: `plan IS NULL`.
    pub filter: Filter,
}

/// One condition on one column.
/// `AND` makes several of them, which are added one by one.
#[derive(Debug, Clone, PartialEq)]
enum Condition {
    /// `tenant_id` is one of these.
    Tenants(Vec<String>),
    /// `event_name` is one of these.
    Events(Vec<String>),
    /// From a millisecond on, and to before another one.
    Times(Option<i64>, Option<i64>),
    /// A string property, and the values of which it has one.
    Text(String, Vec<String>),
    /// A numeric property, and the least and the largest value, both included.
    Number(String, f64, f64),
    /// A string property whose value a function accepts, or that is absent, if that is accepted.
    Alike(TextMatch),
    /// `tenant_id`, accepted by a function.
    TenantsAlike(TextMatch),
    /// `event_name`, accepted by a function.
    EventsAlike(TextMatch),
}

/// The column or property that a condition compares.
enum Subject {
    /// `tenant_id`.
    Tenant,
    /// `event_name`.
    Event,
    /// `timestamp`, `hour` or `day`, also cast to a finer unit or named as an instant in UTC.
    Time,
    /// The key of a string property: `plan` of `string_props['plan']`.
    Text(String),
    /// The key of a numeric property: `ms` of `numeric_props['ms']`.
    Number(String),
}

impl Conditions {
    /// Of expressions that all hold.
    ///
    /// Errors: when an expression cannot be pushed down. `pushdown` accepted it, but DataFusion may
    /// have rewritten it since.
    pub fn of<'a>(kind: Kind, exprs: impl IntoIterator<Item = &'a Expr>) -> Result<Self> {
        let mut all = Self::default();
        for expr in exprs {
            let Some(conditions) = understood(kind, expr) else {
                return plan_err!("this condition has to be written in another way: {expr}");
            };
            conditions.into_iter().for_each(|condition| all.add(condition));
        }
        Ok(all)
    }

    /// Whether an expression is understood, and so needs no other check.
    pub fn takes(kind: Kind, expr: &Expr) -> bool {
        understood(kind, expr).is_some()
    }

    /// Leaves out times at which a condition that is checked elsewhere is not true.
    ///
    /// Of `timestamp >= x AND length(user_id) > 9` only rows from `x` on are read, and of these the condition is checked as a whole.
    pub fn narrow(&mut self, kind: Kind, expr: &Expr) {
        let times = implied_times(kind, expr);
        let from = Some(times.start).filter(|start| *start > i64::MIN);
        self.add(Condition::Times(from, Some(times.end).filter(|end| *end < i64::MAX)));
    }

    /// The milliseconds that are asked for.
    /// The start is included, the end is not; `i64::MIN..i64::MAX` without a condition.
    pub fn times(&self) -> Range<i64> {
        self.from_ms.unwrap_or(i64::MIN)..self.to_ms.unwrap_or(i64::MAX)
    }

    /// The rows of a source that are of these tenants, events and times.
    ///
    /// Of `tenants` and patterns those are taken that hold for both: `tenant_id IN ('acme', 'beta') AND tenant_id LIKE 'a%'` is `acme`. Properties are not
    /// looked at here: the filter is for the reader of the morsels.
    ///
    /// Errors: damage of a segment.
    pub fn morsels(&self, source: &Source) -> inlay_engine::Result<Vec<Morsel>> {
        let tenants = alike_ones(self.tenants.as_deref(), &self.tenants_alike, || {
            Cow::Borrowed(source.tenants())
        })?;
        let events = alike_ones(self.events.as_deref(), &self.events_alike, || {
            let mut names = TextTable::default();
            source.names().iter().for_each(|name| names.push(name.as_bytes()));
            Cow::Owned(names)
        })?;
        let series_filter = SeriesFilter { tenants: tenants.as_deref(), names: events.as_deref() };
        source.morsels(series_filter, &self.times())
    }

    /// Adds a condition: lists are intersected, intervals of times too, and conditions on properties are appended.
    fn add(&mut self, condition: Condition) {
        let both = |mine: &mut Option<Vec<String>>, theirs: Vec<String>| match mine {
            None => *mine = Some(theirs),
            Some(mine) => mine.retain(|one| theirs.contains(one)),
        };
        match condition {
            Condition::Tenants(list) => both(&mut self.tenants, list),
            Condition::Events(list) => both(&mut self.events, list),
            Condition::Times(from, to) => {
                self.from_ms = self.from_ms.max(from);
                self.to_ms = match (self.to_ms, to) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
            Condition::Text(name, any_of) => self.filter.texts.push(TextFilter { name, any_of }),
            Condition::Number(name, min, max) => {
                self.filter.numbers.push(NumberFilter { name, min, max });
            }
            Condition::Alike(alike) => self.filter.alike.push(alike),
            Condition::TenantsAlike(alike) => self.tenants_alike.push(alike),
            Condition::EventsAlike(alike) => self.events_alike.push(alike),
        }
    }
}

/// Those of a list, or of all texts of a source, that are like all of something; nothing where every text is.
fn alike_ones<'a>(
    list: Option<&'a [String]>,
    alike: &[TextMatch],
    all: impl FnOnce() -> Cow<'a, TextTable>,
) -> inlay_engine::Result<Option<Cow<'a, [String]>>> {
    if alike.is_empty() {
        return Ok(list.map(Cow::Borrowed));
    }
    let table = match list {
        Some(list) => {
            let mut table = TextTable::default();
            list.iter().for_each(|text| table.push(text.as_bytes()));
            Cow::Owned(table)
        }
        None => all(),
    };
    let mut marks = vec![true; table.len()];
    for alike in alike {
        let accepted = alike.accepted(&table)?;
        marks.iter_mut().zip(accepted).for_each(|(mark, accepted)| *mark &= accepted);
    }
    let passing = (0..table.len()).filter(|at| marks[*at]);
    Ok(Some(Cow::Owned(passing.map(|at| table.text(at).to_owned()).collect())))
}

/// The times from which on a comparison of an event's time has another answer, if it is such a one.
///
/// Of `timestamp >= '2026-11-01'` that is 1793491200000: before, the answer is false for all rows, and true from then on. `None` where anything else is
/// compared.
pub fn time_boundaries(expr: &Expr) -> Option<Vec<i64>> {
    let mut boundaries = Vec::new();
    for condition in understood(Kind::Events, expr)? {
        let Condition::Times(from, to) = condition else { return None };
        boundaries.extend(from.into_iter().chain(to));
    }
    Some(boundaries)
}

/// Times outside of which a condition is not true, as far as that is known.
/// All times for a condition that is not understood; `OR` has both, with what lies between them.
fn implied_times(kind: Kind, expr: &Expr) -> Range<i64> {
    let all = i64::MIN..i64::MAX;
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let (one, other) = (implied_times(kind, left), implied_times(kind, right));
            one.start.max(other.start)..one.end.min(other.end)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (one, other) = (implied_times(kind, left), implied_times(kind, right));
            one.start.min(other.start)..one.end.max(other.end)
        }
        _ => match understood(kind, expr).as_deref() {
            Some([Condition::Times(from, to)]) => from.unwrap_or(all.start)..to.unwrap_or(all.end),
            _ => all,
        },
    }
}

/// The conditions of the engine that are together the same as an expression, or `None`.
///
/// Constants may stand on either side. Types fit: the library has cast the literal to the type of the column before.
fn understood(kind: Kind, expr: &Expr) -> Option<Vec<Condition>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let mut both = understood(kind, left)?;
            both.extend(understood(kind, right)?);
            Some(both)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            either(understood(kind, left)?, understood(kind, right)?).map(|one| vec![one])
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if let (Some(subject), Some(value)) = (subject(kind, left), literal(right)) {
                return compared(kind, subject, *op, value).map(|one| vec![one]);
            }
            let (subject, value) = (subject(kind, right)?, literal(left)?);
            compared(kind, subject, op.swap()?, value).map(|one| vec![one])
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let texts: Vec<String> =
                list.iter().map(|item| text(literal(item)?)).collect::<Option<_>>()?;
            among(subject(kind, expr)?, texts).map(|one| vec![one])
        }
        // A null in the list is no literal here: `NOT IN` with one is never true, which the library knows.
        Expr::InList(InList { expr, list, negated: true }) => {
            let subject = subject(kind, expr)?;
            let others: Vec<String> =
                list.iter().map(|item| text(literal(item)?)).collect::<Option<_>>()?;
            let others: HashSet<Vec<u8>> = others.into_iter().map(String::into_bytes).collect();
            Some(vec![matching(kind, subject, move |text| !others.contains(text))?])
        }
        Expr::Like(like) => alike(kind, like).map(|one| vec![one]),
        Expr::IsNull(expr) => match subject(kind, expr)? {
            Subject::Text(name) => {
                Some(vec![Condition::Alike(TextMatch::of_all(name, false).or_absent())])
            }
            _ => None,
        },
        Expr::IsNotNull(expr) => match subject(kind, expr)? {
            Subject::Text(name) => Some(vec![Condition::Alike(TextMatch::of_all(name, true))]),
            Subject::Number(name) => {
                Some(vec![Condition::Number(name, f64::NEG_INFINITY, f64::INFINITY)])
            }
            _ => None,
        },
        Expr::Between(between) if !between.negated => {
            let (low, high) = (literal(&between.low)?, literal(&between.high)?);
            let of = |op, value| compared(kind, subject(kind, &between.expr)?, op, value);
            Some(vec![of(Operator::GtEq, low)?, of(Operator::LtEq, high)?])
        }
        _ => None,
    }
}

/// Values of a property that are like a pattern: each value of a segment is looked at once, not each row.
///
/// `pattern` is a literal without another escape than the backslash: `'p%'`.
fn alike(kind: Kind, like: &Like) -> Option<Condition> {
    let Like { negated, expr, pattern, escape_char, case_insensitive } = like;
    let subject = subject(kind, expr)?;
    let pattern = text(literal(pattern)?).filter(|_| escape_char.is_none())?;
    // What everything is like, and what only itself is like, is rewritten later and would not be understood any more.
    if pattern.chars().all(|char| char == '%') || !pattern.contains(['%', '_']) {
        return None;
    }
    let (negated, case_insensitive) = (*negated, *case_insensitive);
    let accepts = move |table: &TextTable| {
        let pattern = StringArray::new_scalar(pattern.clone());
        let found = strings(table).and_then(|texts| match case_insensitive {
            true => ilike(&texts, &pattern),
            false => arrow_like(&texts, &pattern),
        });
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.values().iter().map(|is_like| is_like != negated).collect())
    };
    accepted(kind, subject, accepts)
}

/// Texts that pass: each one of a segment is looked at once.
/// `passes` gets its bytes, which are compared as such: the order of strings is that of their bytes.
fn matching(
    kind: Kind,
    subject: Subject,
    passes: impl Fn(&[u8]) -> bool + Send + Sync + 'static,
) -> Option<Condition> {
    accepted(kind, subject, move |table| {
        Ok((0..table.len()).map(|at| passes(table.at(at))).collect())
    })
}

/// Texts that are accepted, where a column's texts are listed: tables of sums have lists of tenants and events alone.
fn accepted(
    kind: Kind,
    subject: Subject,
    accepts: impl Fn(&TextTable) -> std::result::Result<Vec<bool>, String> + Send + Sync + 'static,
) -> Option<Condition> {
    let of_name = |name: &str| TextMatch::new(name.to_owned(), accepts);
    match subject {
        Subject::Text(name) => Some(Condition::Alike(of_name(&name))),
        Subject::Tenant if kind == Kind::Events => Some(Condition::TenantsAlike(of_name(""))),
        Subject::Event if kind == Kind::Events => Some(Condition::EventsAlike(of_name(""))),
        _ => None,
    }
}

/// One of several values of a string property.
fn of_list(name: &str, any_of: &[String]) -> TextMatch {
    let any_of: HashSet<Vec<u8>> = any_of.iter().map(|one| one.as_bytes().to_vec()).collect();
    TextMatch::new(name.to_owned(), move |table| {
        Ok((0..table.len()).map(|at| any_of.contains(table.at(at))).collect())
    })
}

/// One of two conditions on the same column.
/// `plan = 'pro' OR plan IS NULL` is one condition; `plan = 'pro' OR ms > 3` is none that the engine has.
fn either(one: Vec<Condition>, other: Vec<Condition>) -> Option<Condition> {
    let all = |a: &[String], b: &[String]| a.iter().chain(b).cloned().collect();
    match (&*one, &*other) {
        ([Condition::Tenants(a)], [Condition::Tenants(b)]) => Some(Condition::Tenants(all(a, b))),
        ([Condition::Events(a)], [Condition::Events(b)]) => Some(Condition::Events(all(a, b))),
        ([Condition::Text(a, some)], [Condition::Text(b, others)]) if a == b => {
            Some(Condition::Text(a.clone(), all(some, others)))
        }
        _ => {
            let (one, other) = (of_one_property(&one)?, of_one_property(&other)?);
            (one.name == other.name).then(|| Condition::Alike(one.or(other)))
        }
    }
}

/// Conditions that are all on one string property, as one: `plan <> 'pro' AND plan <> 'free'`.
fn of_one_property(conditions: &[Condition]) -> Option<TextMatch> {
    let matches = conditions.iter().map(|condition| match condition {
        Condition::Alike(alike) => Some(alike.clone()),
        Condition::Text(name, list) => Some(of_list(name, list)),
        _ => None,
    });
    let mut matches = matches.collect::<Option<Vec<_>>>()?.into_iter();
    let first = matches.next()?;
    matches.try_fold(first, |all, one| (all.name == one.name).then(|| all.and(one)))
}

/// The map and the name of `map['name']`.
/// `("string_props", "plan")` for `get_field(string_props, 'plan')`, which the planner makes of it.
pub fn property(expr: &Expr) -> Option<(&str, &str)> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let [Expr::Column(column), Expr::Literal(name, _)] = &*call.args else { return None };
    let name = name.try_as_str().flatten()?;
    (call.func.name() == "get_field").then_some((&*column.name, name))
}

/// The same where the property has become a column of the table by a rule.
fn column_of_property(expr: &Expr) -> Option<(&str, &str)> {
    let Expr::Column(column) = expr else { return None };
    property_of_column(&column.name)
}

/// What a condition is about, or `None` for an expression that is no column of the engine.
fn subject(kind: Kind, expr: &Expr) -> Option<Subject> {
    match expr {
        Expr::Column(column) if column.name == "tenant_id" => Some(Subject::Tenant),
        Expr::Column(column) if column.name == "event_name" => Some(Subject::Event),
        Expr::Column(column) if column.name == kind.time_column() => Some(Subject::Time),
        // A time that is compared with one of another unit or with its zone, which is UTC.
        _ if let Some((inner, to)) = kept_cast(expr) => {
            let is_time = matches!(subject(kind, inner)?, Subject::Time);
            (is_time && literal_time_type(to)).then_some(Subject::Time)
        }
        _ if let Some(inner) = in_utc(expr) => {
            matches!(subject(kind, inner)?, Subject::Time).then_some(Subject::Time)
        }
        _ => match property(expr).or_else(|| column_of_property(expr))? {
            (STRINGS, name) => Some(Subject::Text(name.to_owned())),
            (NUMBERS, name) => Some(Subject::Number(name.to_owned())),
            _ => None,
        },
    }
}

/// The time that `time AT TIME ZONE 'UTC'` makes an instant of.
fn in_utc(expr: &Expr) -> Option<&Expr> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let [Expr::Literal(zone, _), inner] = &*call.args else { return None };
    let zone = zone.try_as_str().flatten().filter(|_| call.func.name() == "timezone")?;
    ["UTC", "+00:00", "Z"].iter().any(|utc| utc.eq_ignore_ascii_case(zone)).then_some(inner)
}

/// Whether a cast to this type only makes a time finer, or names its zone, which is UTC. A cast to seconds would cut it.
fn literal_time_type(kind: &arrow::datatypes::DataType) -> bool {
    use arrow::datatypes::{DataType, TimeUnit};
    match kind {
        DataType::Timestamp(TimeUnit::Second, _) => false,
        DataType::Timestamp(_, None) => true,
        DataType::Timestamp(_, Some(zone)) => ["UTC", "+00:00", "Z"].contains(&&**zone),
        _ => false,
    }
}

/// A constant that is not null: a comparison with null is true for no row, and the library makes `false` of it.
fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) if !value.is_null() => Some(value),
        _ => None,
    }
}

fn text(value: &ScalarValue) -> Option<String> {
    value.try_as_str().flatten().map(str::to_owned)
}

/// A condition that a column has one of some strings. Times and numbers have no lists.
fn among(subject: Subject, texts: Vec<String>) -> Option<Condition> {
    match subject {
        Subject::Tenant => Some(Condition::Tenants(texts)),
        Subject::Event => Some(Condition::Events(texts)),
        Subject::Text(name) => Some(Condition::Text(name, texts)),
        Subject::Time | Subject::Number(_) => None,
    }
}

/// A comparison of a column with a constant. For a number both ends are included, so `> 100` begins with the next double.
///
/// `None` for operators such as `~` and `IS DISTINCT FROM`, and for `<>` of times and numbers, which no single interval is.
fn compared(kind: Kind, subject: Subject, op: Operator, value: &ScalarValue) -> Option<Condition> {
    match (subject, op) {
        (Subject::Time, _) => times(kind, op, value),
        (Subject::Number(name), _) => {
            // Constants of other types have been cast to that of the column.
            let ScalarValue::Float64(Some(number)) = *value else { return None };
            // The order of SQL puts NaN last, and none is stored.
            if number.is_nan() {
                return None;
            }
            let (min, max) = match op {
                Operator::Eq => (number, number),
                Operator::Gt => (number.next_up(), f64::INFINITY),
                Operator::GtEq => (number, f64::INFINITY),
                Operator::Lt => (f64::NEG_INFINITY, number.next_down()),
                Operator::LtEq => (f64::NEG_INFINITY, number),
                _ => return None,
            };
            Some(Condition::Number(name, min, max))
        }
        (subject, Operator::Eq) => among(subject, vec![text(value)?]),
        (subject, _) => {
            let other = text(value)?;
            let is_asked: fn(Ordering) -> bool = match op {
                Operator::NotEq => Ordering::is_ne,
                Operator::Gt => Ordering::is_gt,
                Operator::GtEq => Ordering::is_ge,
                Operator::Lt => Ordering::is_lt,
                Operator::LtEq => Ordering::is_le,
                _ => return None,
            };
            matching(kind, subject, move |text| is_asked(text.cmp(other.as_bytes())))
        }
    }
}

/// The rows of a table whose time compares with an instant: in whole milliseconds, at steps of the table.
///
/// ```text
/// of events       timestamp < '… 10:00:00.0005'      to before 10:00:00.001
/// of events       timestamp = '… 10:00:00.0005'      None: no row has it, which the library finds by itself
/// of hours        hour >= '… 10:30:00'               from 11:00
/// of hours        hour <= '… 10:30:00'               to before 11:00
/// ```
fn times(kind: Kind, op: Operator, value: &ScalarValue) -> Option<Condition> {
    // The first millisecond that is not before the instant, and whether it is the instant.
    let (ms, is_whole) = match *value {
        ScalarValue::TimestampMillisecond(Some(ms), _) => (ms, true),
        ScalarValue::TimestampMicrosecond(Some(us), _) => ceil(us, 1_000),
        ScalarValue::TimestampNanosecond(Some(ns), _) => ceil(ns, 1_000_000),
        _ => return None,
    };
    let after = if is_whole { ms.checked_add(1)? } else { ms };
    let (from, to) = match op {
        Operator::Gt => (Some(after), None),
        Operator::GtEq => (Some(ms), None),
        Operator::Lt => (None, Some(ms)),
        Operator::LtEq => (None, Some(after)),
        Operator::Eq if is_whole => (Some(ms), Some(after)),
        _ => return None,
    };
    // What starts at or after an instant starts at or after the next step.
    let step = |ms: i64| ceil(ms, kind.step_ms()).0.checked_mul(kind.step_ms());
    let step = |ms: Option<i64>| ms.map_or(Some(None), |ms| step(ms).map(Some));
    Some(Condition::Times(step(from)?, step(to)?))
}

/// The least number of units that is not below a value, and whether it is exactly the value: `ceil(1500, 1000)` is `(2, false)`.
fn ceil(value: i64, unit: i64) -> (i64, bool) {
    let is_whole = value.rem_euclid(unit) == 0;
    (value.div_euclid(unit) + i64::from(!is_whole), is_whole)
}
