//! The one gate to data: every metric query, of any caller, becomes an engine query here.
//!
//! An [`Ask`] has the names of `GET /v1/query`. Dashboards, embeds and previews fill one in too, so
//! that all of them are answered alike.
//!
//! ```text
//! GET /v1/query?tenant_id=t&event_name=e&metric=count&period=7d                    at 2026-11-20T10:17:36.789Z
//! 200 {"data": [{"value": 5}],
//!      "meta": {"query_time_ms": 0, "rows_scanned": 5, "event_name": "e", "metric": "count", "period": "7d",
//!               "from": "2026-11-13T10:00:00.000Z", "to": "2026-11-20T10:17:36.789Z", "approximate": false}}
//!
//! …&group_by=model               [{"group": "a", "value": 3}, {"group": "b", "value": 1}, {"group": null, "value": 1}], total 5
//! …&group_by=model&limit=1       [{"group": "a", "value": 3}], groups_total 3, groups_returned 1
//! …&granularity=day              [{"bucket": "2026-11-13T00:00:00.000Z", "value": 0}, …], 8 rows
//! …&granularity=day&fill=none    2 rows: those of days with events
//! …&compare=previous             [{"value": 5, "previous": 1}]
//! …&f_model=a&f_model=b          events with either model; another `f_…` must hold as well
//!
//! …&metric=p95                   400 missing_field, numeric_prop: "numeric_prop is required for metric p95"
//! …&limit=1001                   400 out_of_range, limit: "limit must be a number from 1 to 1000"
//! …&frobnicate=1                 400 unknown_field, frobnicate: "frobnicate is not a parameter of a query"
//! a key without tenant_id        400 missing_field, tenant_id: "tenant_id is required"
//! ```

use std::{
    collections::{BTreeMap, HashMap},
    time::Instant,
};

use inlay_engine::{
    Answer, BUCKETS_MAX, ExplainStep, Granularity, Group, Metric, NumberFilter, Query, RollupGrain,
    TextFilter, Value,
};

use jiff::tz::TimeZone;

use crate::{
    app::{
        analytics::query_parameters::QueryParameters,
        counters::Counted,
        periods::{parse_period, period_ms},
        request::{callers::Caller, context::App},
    },
    base::{civil, instant},
    error::{ApiError, Code, Result},
    store::Environment,
};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Groups that an answer has when nothing else is asked for.
const GROUPS_DEFAULT: usize = 100;
/// Rows of an answer that is written down on the thread that reads a socket, at most: some hundred microseconds.
const ATTEMPT_ROWS: usize = 1_000;
/// Groups that an answer has at most.
pub const GROUPS_MAX: usize = 1_000;

// Names of metrics as requests and widgets have them; errors list them in this order.
const METRICS: [(&str, Metric); 13] = [
    ("count", Metric::Count),
    ("count_unique", Metric::Distinct),
    ("count_unique_approx", Metric::DistinctApprox),
    ("sum", Metric::Sum),
    ("avg", Metric::Avg),
    ("min", Metric::Min),
    ("max", Metric::Max),
    ("p50", Metric::Percentile(50)),
    ("p95", Metric::Percentile(95)),
    ("p99", Metric::Percentile(99)),
    ("p50_approx", Metric::PercentileApprox(50)),
    ("p95_approx", Metric::PercentileApprox(95)),
    ("p99_approx", Metric::PercentileApprox(99)),
];

const GRANULARITIES: [(&str, Granularity); 4] = [
    ("hour", Granularity::Hour),
    ("day", Granularity::Day),
    ("week", Granularity::Week),
    ("month", Granularity::Month),
];

/// Window that the values are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// The window of equal length just before.
    Previous,
}

/// A metric query, parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// One tenant; `None` for all of the environment.
    pub tenant: Option<String>,
    /// Exact name of the event.
    /// `api_call`; a name that no event has is answered with 0 or null, since it may come tomorrow.
    pub event_name: String,
    /// Name of the metric.
    pub metric: String,
    /// Numeric property that the metric is computed over; counts need none.
    pub numeric_prop: Option<String>,
    /// Name of the period, such as `7d`; `None` is only valid with `range`.
    pub period: Option<String>,
    /// Explicit window in milliseconds since 1970, the end excluded; replaces the period.
    pub range: Option<(i64, i64)>,
    /// Width of the buckets; `None` for one value over the window.
    pub granularity: Option<Granularity>,
    /// Property to group by.
    pub group_by: Option<String>,
    /// Filters by string property; all hold.
    /// `[model in [a, b], plan in [free]]`.
    pub texts: Vec<TextFilter>,
    /// Filters by numeric property; all hold.
    /// Bounds that a viewer of an embed sets; `GET /v1/query` has no parameter for them.
    pub numbers: Vec<NumberFilter>,
    /// Groups of the answer, at most; 1 to 1,000.
    pub limit: usize,
    /// Whether the answer has rows for buckets without events.
    pub fill: bool,
    /// Window whose values are added to the rows; `None` for no comparison.
    pub compare: Option<Compare>,
    /// Whether the answer has the plan of the query.
    pub explain: bool,
    /// Time zone of days, weeks and months; `None` is UTC.
    pub timezone: Option<TimeZone>,
}

/// One row of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryRow {
    /// Start of the bucket in milliseconds since 1970; `None` without a granularity.
    pub bucket: Option<i64>,
    /// Value of the grouped property; the inner `None` for events without it, the outer without
    /// grouping.
    /// `Some(Some("nova-large"))`, or `Some(None)` for events without the property.
    pub group: Option<Group>,
    /// Value of the metric: an integer for counts, null where there is none.
    pub value: Value,
    /// Value in the window before; `None` without a comparison.
    pub previous: Option<Value>,
}

/// An answer with the facts of its `meta`.
#[derive(Debug, Clone)]
pub struct QueryAnswer {
    /// Rows by bucket, then falling value, then group.
    pub rows: Vec<QueryRow>,
    /// Start of the window in milliseconds since 1970, included.
    pub from_ms: i64,
    /// End of the window in milliseconds since 1970: excluded for `range`; for a period the current
    /// time, included.
    pub to_ms: i64,
    /// Duration of the query in milliseconds.
    pub took_ms: u64,
    /// Rows that the engine read, over all passes.
    pub rows_scanned: u64,
    /// Groups that matched.
    pub groups_total: usize,
    /// Groups that were answered.
    pub groups_returned: usize,
    /// Whether the metric is an estimate.
    pub approximate: bool,
    /// The metric over all groups together, for grouped counts and sums.
    /// For shares of a donut: groups beyond the limit are in it.
    pub total: Option<Value>,
    /// The finest rollup that gave a part of it.
    pub rollup: Option<RollupGrain>,
    /// Plan of the query; `None` unless `explain` is set.
    pub plan: Option<Vec<ExplainStep>>,
}

/// The metric with this name.
pub fn metric(name: &str) -> Option<Metric> {
    METRICS.iter().find(|(known, _)| *known == name).map(|(_, metric)| *metric)
}

/// The granularity with this name.
pub fn granularity(name: &str) -> Option<Granularity> {
    GRANULARITIES.iter().find(|(known, _)| *known == name).map(|(_, granularity)| *granularity)
}

/// The name of a granularity.
pub fn granularity_name(granularity: Granularity) -> &'static str {
    GRANULARITIES.iter().find(|(_, known)| *known == granularity).map_or("", |(name, _)| name)
}

/// Reads a metric with the number that it needs.
///
/// `field` is where the name stands, `metric` or `widget.query.measures[0].metric`; the number's field is beside it.
///
/// Errors: `unknown_value` with all names; `missing_field` of `numeric_prop` for a metric over a number.
pub fn parse_metric(field: &str, name: &str, numeric_prop: Option<&str>) -> Result<Metric> {
    let found = metric(name)
        .ok_or_else(|| ApiError::unknown_value(field, name, METRICS.map(|(name, _)| name)))?;
    if found.needs_number() && numeric_prop.is_none_or(str::is_empty) {
        let prefix = field.strip_suffix("metric").unwrap_or_default();
        let message = format!("numeric_prop is required for metric {name}");
        return Err(ApiError::field(Code::MissingField, format!("{prefix}numeric_prop"), message));
    }
    Ok(found)
}

/// Reads a granularity name.
pub fn parse_granularity(field: &str, name: &str) -> Result<Granularity> {
    granularity(name)
        .ok_or_else(|| ApiError::unknown_value(field, name, GRANULARITIES.map(|(name, _)| name)))
}

/// Filters by property name: values of one property are alternatives, properties all hold.
pub fn parse_filters(filters: &BTreeMap<String, Vec<String>>) -> Vec<TextFilter> {
    let filter = |(name, any_of): (&String, &Vec<String>)| TextFilter {
        name: name.clone(),
        any_of: any_of.clone(),
    };
    filters.iter().map(filter).collect()
}

impl Ask {
    /// Reads the parameters of `GET /v1/query`.
    ///
    /// Pairs are in the order of the URL and decoded. `f_model=a` twice are two values of one property; any other parameter comes once.
    ///
    /// Errors: the first parameter that is wrong, by its name.
    pub fn parse(parameters: &[(String, String)]) -> Result<Self> {
        let mut fields: HashMap<&str, &str> = HashMap::new();
        let mut filters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in parameters {
            if let Some(dimension) =
                name.strip_prefix("f_").filter(|dimension| !dimension.is_empty())
            {
                filters.entry(dimension.to_owned()).or_default().push(value.clone());
            } else if !QueryParameters::has(name) {
                return Err(ApiError::field(
                    Code::UnknownField,
                    name.clone(),
                    format!("{name} is not a parameter of a query"),
                ));
            } else if fields.insert(name, value).is_some() {
                return Err(ApiError::field(
                    Code::InvalidField,
                    name.clone(),
                    format!("{name} comes twice"),
                ));
            }
        }
        let field = |name: &str| fields.get(name).copied().filter(|value| !value.is_empty());
        let required = |name: &str| {
            field(name).ok_or_else(|| {
                ApiError::field(Code::MissingField, name, format!("{name} is required"))
            })
        };
        if fields.get("tenant_id") == Some(&"") {
            // An empty variable of a client must not widen the question to all tenants.
            return Err(ApiError::field(
                Code::InvalidField,
                "tenant_id",
                "tenant_id must not be empty",
            ));
        }
        let event_name = required("event_name")?.to_owned();
        let metric = required("metric")?.to_owned();
        parse_metric("metric", &metric, field("numeric_prop"))?;
        let range = parse_range(field("from"), field("to"))?;
        let period = if range.is_some() { field("period") } else { Some(required("period")?) };
        if let Some(period) = period {
            parse_period("period", period)?;
        }
        let granularity =
            field("granularity").map(|name| parse_granularity("granularity", name)).transpose()?;
        let limit = match field("limit") {
            None => GROUPS_DEFAULT,
            Some(text) => {
                text.parse().ok().filter(|limit| (1..=GROUPS_MAX).contains(limit)).ok_or_else(
                    || {
                        ApiError::field(
                            Code::OutOfRange,
                            "limit",
                            format!("limit must be a number from 1 to {GROUPS_MAX}"),
                        )
                    },
                )?
            }
        };
        let fill = match field("fill") {
            None => true,
            Some("none") => false,
            Some(other) => return Err(ApiError::unknown_value("fill", other, ["none"])),
        };
        let explain = match field("explain") {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => {
                return Err(ApiError::unknown_value("explain", other, ["true", "false"]));
            }
        };
        let compare = match field("compare") {
            None => None,
            Some("previous") => Some(Compare::Previous),
            Some(other) => return Err(ApiError::unknown_value("compare", other, ["previous"])),
        };
        let timezone =
            field("timezone").map(|name| parse_timezone("timezone", name)).transpose()?;
        Ok(Self {
            tenant: field("tenant_id").map(str::to_owned),
            event_name,
            metric,
            numeric_prop: field("numeric_prop").map(str::to_owned),
            period: period.map(str::to_owned),
            range,
            granularity,
            group_by: field("group_by").map(str::to_owned),
            texts: parse_filters(&filters),
            numbers: Vec::new(),
            limit,
            fill,
            compare,
            explain,
            timezone,
        })
    }

    /// The window at `now`: the explicit one, or the period back from now, rounded down to the hour,
    /// to the minute for the shortest.
    ///
    /// At 10:17:36.789 `24h` begins at 10:00 the day before, so that hours are whole, and `1h` at 09:17. The end is `now` itself.
    pub fn window(&self, now: i64) -> (i64, i64) {
        if let Some(range) = self.range {
            return range;
        }
        let length = self.period.as_deref().and_then(period_ms).unwrap_or(DAY_MS);
        let unit = if length <= HOUR_MS { MINUTE_MS } else { HOUR_MS };
        let from = now - length;
        (from - from.rem_euclid(unit), now)
    }
}

impl Ask {
    /// How far back the window before lies: a period, so that the same hours and the same unfinished
    /// bucket are compared; for an explicit window its own length.
    ///
    /// Of `7d` at 10:17 both ends of the window lie 7 days earlier: it ends at 10:17, too, and begins at the full hour.
    fn step_back(&self, from_ms: i64, to_ms: i64) -> i64 {
        let period = self.period.as_deref().filter(|_| self.range.is_none()).and_then(period_ms);
        period.unwrap_or(to_ms - from_ms)
    }
}

impl Ask {
    /// Starts of the buckets where they are not those of UTC.
    ///
    /// In Berlin the days around 2026-10-25 begin at 22:00 and then at 23:00 UTC.
    ///
    /// Errors: `out_of_range` of `granularity`.
    fn bucket_starts(&self, from_ms: i64, end_ms: i64) -> Result<Option<Vec<i64>>> {
        let (Some(zone), Some(granularity)) = (&self.timezone, self.granularity) else {
            return Ok(None);
        };
        let starts = civil::starts(zone, granularity, from_ms, end_ms, BUCKETS_MAX);
        starts.map(Some).ok_or_else(|| {
            let message = format!(
                "granularity gives more than {BUCKETS_MAX} buckets, or from and to are not in the calendar"
            );
            ApiError::field(Code::OutOfRange, "granularity", message)
        })
    }
}

/// Reads the name of a time zone.
pub fn parse_timezone(field: &str, name: &str) -> Result<TimeZone> {
    civil::zone(name).ok_or_else(|| {
        let message = format!("{field} must be an IANA name such as Europe/Berlin, not {name:?}");
        ApiError::field(Code::UnknownValue, field, message)
    })
}

/// The window of `from` and `to`, the end excluded. `None` without either.
///
/// Errors: one without the other, text that is no instant, `from must lie before to`.
fn parse_range(from: Option<&str>, to: Option<&str>) -> Result<Option<(i64, i64)>> {
    let instant = |name: &str, text: &str| {
        instant::parse(text).ok_or_else(|| {
            ApiError::field(
                Code::InvalidField,
                name,
                format!("{name} is not an ISO 8601 date-time or date"),
            )
        })
    };
    let missing = |name: &str, other: &str| {
        ApiError::field(
            Code::MissingField,
            name,
            format!("{name} is required when {other} is given"),
        )
    };
    match (from, to) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(missing("to", "from")),
        (None, Some(_)) => Err(missing("from", "to")),
        (Some(from), Some(to)) => {
            let (from, to) = (instant("from", from)?, instant("to", to)?);
            if from >= to {
                return Err(ApiError::field(Code::OutOfRange, "from", "from must lie before to"));
            }
            Ok(Some((from, to)))
        }
    }
}

impl App {
    /// Counts a statement of SQL among the queries of the caller.
    ///
    /// A statement counts when it begins, whether or not it is answered.
    pub fn count_statement(&self, caller: &Caller) {
        self.count_query(&caller.org, &caller.environment);
    }

    /// Counts a query, once when the work of its request is begun again.
    pub fn count_query(&self, org: &str, environment: &Environment) {
        if !self.is_counted {
            self.counters.add(org, environment, Counted::Query);
        }
    }

    /// Answers a query of `GET /v1/query`. API keys must name a tenant.
    ///
    /// Errors: 400 for a key that names no tenant; those of [`App::answer`].
    pub fn query(&self, caller: &Caller, ask: &Ask) -> Result<QueryAnswer> {
        if ask.tenant.is_none() && caller.is_key() {
            return Err(ApiError::field(Code::MissingField, "tenant_id", "tenant_id is required"));
        }
        self.count_query(&caller.org, &caller.environment);
        self.answer(caller.environment.namespace(), ask)
    }

    /// Answers a query over one namespace; the calling code has checked the permission.
    ///
    /// Up to four queries of the engine: the one that is asked; the window before, for `compare`; the number of events in each bucket, for
    /// `fill=none`; the value over all groups, for grouped counts and sums.
    ///
    /// Errors: those of the engine, such as `query_timeout` and `query_too_large`; `out_of_range` where a sum leaves the range of a float.
    pub fn answer(&self, namespace: inlay_engine::Namespace, ask: &Ask) -> Result<QueryAnswer> {
        let started = Instant::now();
        let metric = parse_metric("metric", &ask.metric, ask.numeric_prop.as_deref())?;
        let (from_ms, to_ms) = ask.window(self.now_ms());
        // A period includes this very millisecond: what was just acknowledged is seen.
        let end_ms = if ask.range.is_some() { to_ms } else { to_ms + 1 };
        let query = Query {
            namespace,
            tenant: ask.tenant.clone(),
            event: ask.event_name.clone(),
            metric,
            number: ask.numeric_prop.clone(),
            from_ms,
            to_ms: end_ms,
            granularity: ask.granularity,
            group_by: ask.group_by.clone(),
            texts: ask.texts.clone(),
            numbers: ask.numbers.clone(),
            groups_max: ask.limit,
            groups: None,
            starts: ask.bucket_starts(from_ms, end_ms)?,
        };
        let control = self.query_control();
        // To find the series of all tenants takes long the first time; the list of a tenant's users may be locked while
        // another query numbers them; a plan looks at all rows in memory.
        let counts_users = matches!(metric, Metric::Distinct | Metric::DistinctApprox);
        let may_be_short = query.tenant.is_some() && !counts_users && !ask.explain;
        let run = |query: &Query| match &self.attempt {
            None => self.engine.query(query, &control).map_err(ApiError::from),
            Some(attempt) if !may_be_short => Err(attempt.give_up()),
            Some(attempt) => {
                let answer = self.engine.try_query(query, ATTEMPT_ROWS, &control)?;
                answer.ok_or_else(|| attempt.give_up())
            }
        };
        let plain = query.clone();
        let answer = run(&query)?;
        let mut rows_scanned = answer.rows_scanned;
        let mut rows = to_rows(&answer, ask);
        // Further passes are about the groups of the answer, whichever they are.
        let same = Query { groups: Some(answer.groups.clone()), ..query.clone() };
        if ask.compare.is_some() {
            let back = ask.step_back(from_ms, to_ms);
            let before = run(&Query {
                from_ms: from_ms - back,
                to_ms: end_ms - back,
                // The buckets of the answer, each moved back: the seventh day stands beside the seventh, whatever the calendar says.
                starts: Some(answer.buckets.iter().map(|start| start - back).collect()),
                ..same.clone()
            })?;
            rows_scanned += before.rows_scanned;
            add_previous(&mut rows, &answer, &before);
        }
        if !ask.fill && ask.granularity.is_some() {
            let counted = run(&count_of_input(same))?;
            retain_with_input(&mut rows, &counted);
        }
        if rows.iter().any(|row| matches!(row.value, Value::Number(number) if !number.is_finite()))
        {
            let message = "the result is larger than a 64-bit float can hold";
            return Err(ApiError::new(Code::OutOfRange, message));
        }
        let additive = matches!(metric, Metric::Count | Metric::Sum) && ask.group_by.is_some();
        let total = if additive {
            let whole = run(&Query { group_by: None, granularity: None, starts: None, ..query })?;
            whole.values.first().and_then(|values| values.first()).copied()
        } else {
            None
        };
        let plan = ask.explain.then(|| self.engine.explain(&plain)).transpose()?;
        Ok(QueryAnswer {
            rows,
            from_ms,
            to_ms,
            took_ms: started.elapsed().as_millis() as u64,
            rows_scanned,
            groups_total: answer.groups_total,
            groups_returned: answer.groups.len(),
            approximate: metric.is_approximate(),
            total,
            rollup: answer.rollup,
            plan,
        })
    }
}

/// The matrix of an answer as rows: by bucket, then falling value, then group.
fn to_rows(answer: &Answer, ask: &Ask) -> Vec<QueryRow> {
    let mut rows = Vec::with_capacity(answer.buckets.len() * answer.groups.len());
    for (at, &start) in answer.buckets.iter().enumerate() {
        let first = rows.len();
        for (group, values) in answer.groups.iter().zip(&answer.values) {
            rows.push(QueryRow {
                bucket: ask.granularity.map(|_| start),
                group: ask.group_by.as_ref().map(|_| group.clone()),
                value: values.get(at).copied().unwrap_or(Value::Null),
                previous: None,
            });
        }
        if let Some(same_bucket) = rows.get_mut(first..) {
            same_bucket.sort_by(|a, b| {
                let number = |row: &QueryRow| row.value.as_f64().unwrap_or(f64::NEG_INFINITY);
                let missing = |row: &QueryRow| matches!(row.group, Some(None));
                number(b)
                    .total_cmp(&number(a))
                    .then_with(|| missing(a).cmp(&missing(b)))
                    .then_with(|| a.group.cmp(&b.group))
            });
        }
    }
    rows
}

/// The same query for the number of events that each value is computed from.
///
/// A sum is computed from events that have the number, so that only these are counted.
fn count_of_input(mut query: Query) -> Query {
    if let Some(name) = query.number.clone().filter(|_| query.metric.needs_number()) {
        query.numbers.push(NumberFilter { name, min: f64::NEG_INFINITY, max: f64::INFINITY });
    }
    Query { metric: Metric::Count, ..query }
}

/// Drops the rows that were computed from no event.
///
/// The value alone does not tell: 5 and -5 add up to 0 as nothing does.
fn retain_with_input(rows: &mut Vec<QueryRow>, counted: &Answer) {
    let buckets: HashMap<i64, usize> = counted.buckets.iter().copied().zip(0..).collect();
    let groups: HashMap<&Group, usize> = counted.groups.iter().zip(0..).collect();
    rows.retain(|row| {
        let group = row.group.as_ref().map_or(Some(&0), |group| groups.get(group));
        let bucket = row.bucket.and_then(|bucket| buckets.get(&bucket));
        let (Some(&group), Some(&bucket)) = (group, bucket) else { return false };
        let value = counted.values.get(group).and_then(|values| values.get(bucket));
        value.is_some_and(|value| *value != Value::Integer(0))
    });
}

/// Puts beside each row the value of the same group in the same place of the window before. Groups
/// and buckets of both answers stand in the same order.
fn add_previous(rows: &mut [QueryRow], answer: &Answer, before: &Answer) {
    let buckets: HashMap<i64, usize> = answer.buckets.iter().copied().zip(0..).collect();
    let groups: HashMap<&Group, usize> = answer.groups.iter().zip(0..).collect();
    for row in rows {
        let group = row.group.as_ref().map_or(Some(&0), |group| groups.get(group));
        let bucket = row.bucket.map_or(Some(&0), |bucket| buckets.get(&bucket));
        let value =
            group.zip(bucket).and_then(|(&group, &bucket)| before.values.get(group)?.get(bucket));
        row.previous = value.copied();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Ask> {
        let pairs: Vec<(String, String)> = text
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Ask::parse(&pairs)
    }

    const BASE: &str = "event_name=e&tenant_id=t&metric=count&period=7d";

    #[test]
    fn each_mistake_names_its_parameter() {
        for (text, field) in [
            ("tenant_id=t&metric=count&period=7d", "event_name"),
            ("event_name=e&metric=count", "period"),
            ("event_name=e&metric=median&period=7d", "metric"),
            ("event_name=e&metric=p95&period=7d", "numeric_prop"),
            ("event_name=e&metric=count&period=5d", "period"),
            (&format!("{BASE}&granularity=minute"), "granularity"),
            (&format!("{BASE}&limit=0"), "limit"),
            (&format!("{BASE}&limit=1001"), "limit"),
            (&format!("{BASE}&fill=zero"), "fill"),
            (&format!("{BASE}&frobnicate=1"), "frobnicate"),
            (&format!("{BASE}&metric=count"), "metric"),
            (&format!("{BASE}&f_=x"), "f_"),
            (&format!("{BASE}&timezone=Mars/X"), "timezone"),
            (&format!("{BASE}&from=2026-01-01"), "to"),
            (&format!("{BASE}&from=2026-01-02&to=2026-01-01"), "from"),
            (&format!("{BASE}&from=x&to=2026-01-01"), "from"),
        ] {
            assert_eq!(parse(text).unwrap_err().field.as_deref(), Some(field), "{text}");
        }
    }

    #[test]
    fn windows_start_on_the_hour_or_minute() {
        let now = instant::parse("2026-11-20T10:17:36.789Z").unwrap();
        let window = |period: &str| {
            let (from, to) =
                parse(&format!("event_name=e&metric=count&period={period}")).unwrap().window(now);
            assert_eq!(to, now);
            instant::format(from)
        };
        assert_eq!(window("1h"), "2026-11-20T09:17:00.000Z");
        assert_eq!(window("24h"), "2026-11-19T10:00:00.000Z");
        assert_eq!(window("7d"), "2026-11-13T10:00:00.000Z");
    }

    #[test]
    fn repeated_filters_are_alternatives() {
        let ask = parse(&format!("{BASE}&f_model=a&f_model=b&f_plan=c")).unwrap();
        assert_eq!(ask.texts.len(), 2);
        assert_eq!(ask.texts[0].any_of, ["a", "b"]);
    }
}
