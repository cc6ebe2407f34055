//! Parts of answers that several resources share.
//!
//! ```text
//! Time            1795169856789                  "2026-11-20T10:17:36.789Z"
//! present         {"webhook_url": null}          Some(None): set it to nothing; {} is None: leave it
//! query           rows and how they were found   {"data":[…],"meta":{…}}
//! widget          the same, of a widget          … and "spark"; for viewers of embeds without the cost of the query
//! recipient_view  ops@acme.example               "o…@acme.example" for viewers and editors
//! ```
//!
//! `meta.plan` of `GET /v1/query?…&explain=true`, one step for each source:
//!
//! ```text
//! {"source":"01a21f84-d950-…","level":"merged","rows":0,"series":0,"rolled_up":0,"by_day":0,"by_hour":0,"skipped":"outside the window"}
//! {"source":"memtable","level":"memory","rows":32,"series":1,"rolled_up":0,"by_day":0,"by_hour":0,"rejected":"rows in memory have no rollups"}
//! ```

use std::{marker::PhantomData, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value as Json, json, value::RawValue};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        KnownFormat, RefOr, Schema, SchemaFormat,
        schema::{ObjectBuilder, SchemaType, Type},
    },
};

use super::rows::{self, Number};
use crate::{
    app::{Ask, QueryAnswer, QueryRow, WidgetAnswer, granularity_name, masked_email, masked_url},
    base::instant,
    engine::{ExplainStep, RollupGrain, Value},
    error::{ApiError, Result},
    http::respond::Written,
    store::RecipientStatus,
};

/// Bytes of `meta` and of a row with bucket and group, about.
const META_BYTES: usize = 512;
const ROW_BYTES: usize = 80;

/// Tells a null from an absent field, where a null ends something.
///
/// With `#[serde(default, deserialize_with = "present")]` an absent field is `None`, `null` is `Some(None)`, a value `Some(Some(value))`.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> std::result::Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// An instant, in milliseconds since 1970 inside and as text outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub i64);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&instant::format(self.0))
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let schema = ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339 in UTC with milliseconds."))
            .examples([json!("2026-11-20T10:17:36.789Z")]);
        Schema::from(schema).into()
    }
}

impl ToSchema for Time {}

/// The schema of a name that people give: 1 to 200 characters, one of which can be seen.
pub enum Name {}

impl PartialSchema for Name {
    fn schema() -> RefOr<Schema> {
        let controls = r"\u0000-\u001f\u007f-\u009f";
        let any = format!("[^{controls}]*");
        let schema = ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .min_length(Some(1))
            .max_length(Some(200))
            .pattern(Some(format!(r"^{any}[^\s{controls}]{any}$")))
            .description(Some("1 to 200 characters, without control characters."));
        Schema::from(schema).into()
    }
}

impl ToSchema for Name {}

/// A row of an answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says what `rows::write` writes")]
struct DataRow {
    /// Where the bucket begins; with `granularity` only.
    bucket: Option<Time>,
    /// The group, null for events that lack the property; with `group_by` only.
    #[schema(example = "gpt-large")]
    group: Option<String>,
    /// The value of the metric.
    value: Number,
    /// The value of the window before; with `compare` only.
    #[schema(value_type = Number, required = false)]
    previous: Option<Number>,
}

/// The answer to a metric query.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says what `written` writes")]
pub struct DataAnswer {
    data: Vec<DataRow>,
    meta: Meta<'static>,
    /// The same over time, for a number's small line.
    #[schema(value_type = Vec<DataRow>, required = false)]
    spark: Option<Vec<DataRow>>,
}

/// The answer to a table of several measures.
#[derive(Serialize)]
struct TableAnswer<'a> {
    data: Vec<TableRow>,
    meta: Meta<'a>,
}

/// A row of a table: one value a measure.
#[derive(Serialize)]
struct TableRow {
    group: Option<Arc<str>>,
    values: Vec<Number>,
}

/// What an answer tells about itself.
#[derive(Default, Serialize, ToSchema)]
struct Meta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64, required = true, example = 3)]
    query_time_ms: Option<u64>,
    /// Rows that were read: none where rollups gave the whole answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64, required = true, example = 168)]
    rows_scanned: Option<u64>,
    #[schema(example = "api_call")]
    event_name: &'a str,
    #[schema(example = "count")]
    metric: &'a str,
    /// Null when the window was given as `from` and `to`.
    #[schema(example = "7d")]
    period: Option<&'a str>,
    #[schema(value_type = Time)]
    from: String,
    #[schema(value_type = Time)]
    to: String,
    /// Whether the values are estimates.
    approximate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    granularity: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_by: Option<&'a str>,
    /// Groups that there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups_total: Option<usize>,
    /// Groups that were answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups_returned: Option<usize>,
    /// Present when a rollup served the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "events_hourly")]
    source_table: Option<&'static str>,
    /// Present when a rollup planned the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "rollup")]
    planned_by: Option<&'static str>,
    /// Present with rollups.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "hour")]
    rollup_granularity: Option<&'static str>,
    /// The steps, with `explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Vec<Step<'a>>>,
    /// The value over all groups, for shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Number, required = false)]
    total: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numeric_prop: Option<&'a str>,
    /// Label, metric, number and format of each measure of a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    measures: Option<&'a [Json]>,
}

/// One source of an answer, and how it is read.
#[derive(Serialize, ToSchema)]
struct Step<'a> {
    /// `memtable`, or the name of a segment.
    source: &'a str,
    /// `memory`, `fresh`, `merged` or `sealed`.
    level: &'static str,
    /// Rows of the asked series inside the window.
    rows: u64,
    /// Series that are read.
    series: u64,
    /// Series of which rollups answer at least a part.
    rolled_up: u64,
    /// Rows that rollups of whole days answer for.
    by_day: u64,
    /// Rows that rollups of hours answer for; the others are read.
    by_hour: u64,
    /// Why nothing of it is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<&'static str>,
    /// Why rows are read and not rollups.
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<&'static str>,
}

impl<'a> Step<'a> {
    fn of(step: &'a ExplainStep) -> Self {
        let ExplainStep { source, level, rows, series, .. } = step;
        Self {
            source,
            level,
            rows: *rows,
            series: *series,
            rolled_up: step.rolled_up,
            by_day: step.by_day,
            by_hour: step.by_hour,
            skipped: step.skipped,
            rejected: step.rejected,
        }
    }
}

impl<'a> Meta<'a> {
    /// Without numbers of rows, times and sources: they would tell a viewer of rows that the locks of a session hide.
    fn without_cost(self) -> Self {
        Self {
            query_time_ms: None,
            rows_scanned: None,
            source_table: None,
            planned_by: None,
            rollup_granularity: None,
            plan: None,
            ..self
        }
    }

    fn of(ask: &'a Ask, answer: &'a QueryAnswer) -> Self {
        let rollup = answer.rollup.map(|grain| match grain {
            RollupGrain::Day => ("events_daily", "day"),
            RollupGrain::Hour => ("events_hourly", "hour"),
        });
        let group_by = ask.group_by.as_deref();
        Self {
            query_time_ms: Some(answer.took_ms),
            rows_scanned: Some(answer.rows_scanned),
            event_name: &ask.event_name,
            metric: &ask.metric,
            period: ask.period.as_deref().filter(|_| ask.range.is_none()),
            from: instant::format(answer.from_ms),
            to: instant::format(answer.to_ms),
            approximate: answer.approximate,
            granularity: ask.granularity.map(granularity_name),
            timezone: ask.timezone.as_ref().and_then(|zone| zone.iana_name()),
            group_by,
            groups_total: group_by.map(|_| answer.groups_total),
            groups_returned: group_by.map(|_| answer.groups_returned),
            source_table: rollup.map(|(table, _)| table),
            planned_by: rollup.map(|_| "rollup"),
            rollup_granularity: rollup.map(|(_, grain)| grain),
            plan: answer.plan.as_ref().map(|plan| plan.iter().map(Step::of).collect()),
            total: answer.total.map(Number),
            numeric_prop: ask.numeric_prop.as_deref(),
            measures: None,
        }
    }
}

/// The answer of a query as text. Long answers are written where their memory is accounted for, not
/// while the response is sent.
pub fn query(ask: &Ask, answer: &QueryAnswer) -> Result<Written<DataAnswer>> {
    Ok(Written(written(&answer.rows, &Meta::of(ask, answer), None)?, PhantomData))
}

/// A [`DataAnswer`] as text.
fn written(rows: &[QueryRow], meta: &Meta<'_>, spark: Option<&[QueryRow]>) -> Result<String> {
    // Not many answers are longer, and a text that grows is copied.
    let mut text = Vec::with_capacity(META_BYTES + rows.len() * ROW_BYTES);
    text.extend_from_slice(b"{\"data\":");
    rows::write(&mut text, rows).map_err(unwritable)?;
    text.extend_from_slice(b",\"meta\":");
    serde_json::to_writer(&mut text, meta).map_err(unwritable)?;
    if let Some(spark) = spark {
        text.extend_from_slice(b",\"spark\":");
        rows::write(&mut text, spark).map_err(unwritable)?;
    }
    text.push(b'}');
    String::from_utf8(text).map_err(unwritable)
}

fn unwritable(error: impl std::fmt::Display) -> ApiError {
    ApiError::internal(format!("an answer cannot be written: {error}"))
}

/// A value as JSON that is put into another answer as it is.
fn raw(body: &impl Serialize) -> Result<Box<RawValue>> {
    serde_json::value::to_raw_value(body).map_err(unwritable)
}

/// A widget's answer: rows as of a metric query, rows of a table, or nothing for a text.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says what the written text is; a text's meta is empty")]
pub struct WidgetData {
    data: Vec<serde_json::Map<String, Json>>,
    meta: serde_json::Map<String, Json>,
    /// The same over time, for a number's small line.
    spark: Option<Vec<serde_json::Map<String, Json>>>,
}

/// For whom a widget is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// Who builds dashboards: how an answer was found is told too.
    Builder,
    /// Who looks at an embed. What was scanned tells of rows that his locks keep from him.
    Viewer,
}

/// A widget's answer as text, without its id.
pub fn widget(answer: &WidgetAnswer, reader: For) -> Result<Box<RawValue>> {
    let meta_of = |ask, answer| {
        let meta = Meta::of(ask, answer);
        if reader == For::Builder { meta } else { meta.without_cost() }
    };
    match answer {
        WidgetAnswer::Nothing => raw(&json!({"data": [], "meta": {}})),
        WidgetAnswer::Rows { ask, answer, spark } => {
            let text = written(&answer.rows, &meta_of(ask, answer), spark.as_deref())?;
            RawValue::from_string(text).map_err(unwritable)
        }
        WidgetAnswer::Table { ask, answer, measures, rows } => {
            let row = |(group, values): &(Option<Arc<str>>, Vec<Value>)| TableRow {
                group: group.clone(),
                values: values.iter().copied().map(Number).collect(),
            };
            let data = rows.iter().map(row).collect();
            let meta = Meta { measures: Some(measures), ..meta_of(ask, answer) };
            raw(&TableAnswer { data, meta })
        }
    }
}

/// Delivery status of a recipient, for callers who may know receivers (`sees_all`) or may not: then address and error are masked.
pub fn recipient_view(recipient: RecipientStatus, sees_all: bool) -> RecipientStatus {
    let masked = |to: String| match recipient.kind.as_str() {
        "webhook" => masked_url(&to),
        _ => masked_email(&to),
    };
    let to = if sees_all { recipient.to } else { masked(recipient.to) };
    // A receiver's words may name it.
    let error = recipient.error.map(|error| if sees_all { error } else { "failed".to_owned() });
    RecipientStatus { to, error, ..recipient }
}
