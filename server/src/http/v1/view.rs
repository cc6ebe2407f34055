//! Parts of answers that several resources share.

use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Value as Json, json, value::RawValue};

use crate::{
    app::{Ask, QueryAnswer, QueryRow, WidgetAnswer, granularity_name},
    base::instant,
    engine::{ExplainStep, RollupGrain, Value},
    error::{ApiError, Result},
};

/// A list.
pub fn list(items: Vec<Json>) -> Json {
    json!({"data": items, "next": null})
}

/// An instant that may not have come.
pub fn instant_or_null(ms: Option<i64>) -> Json {
    ms.map_or(Json::Null, |ms| json!(instant::format(ms)))
}

/// A number of an answer: an integer for counts, null for nothing.
pub fn value(value: Value) -> Json {
    match value {
        Value::Integer(value) => json!(value),
        // A sum without a fraction is shown without one, as every JSON writer of a client does.
        Value::Number(value) if value.fract() == 0.0 && value.abs() < 9e15 => json!(value as i64),
        Value::Number(value) => json!(value),
        Value::Null => Json::Null,
    }
}

/// Rows of an answer, written as they are, without a tree in between: there may be many.
struct Rows<'a>(&'a [QueryRow]);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut last: Option<(i64, Arc<str>)> = None;
        let rows = self.0.iter().map(|row| {
            // Rows of one bucket stand side by side.
            if let Some(ms) = row.bucket
                && last.as_ref().is_none_or(|(other, _)| *other != ms)
            {
                last = Some((ms, instant::format(ms).into()));
            }
            let bucket = row.bucket.and(last.as_ref()).map(|(_, text)| Arc::clone(text));
            Row { bucket, row }
        });
        serializer.collect_seq(rows)
    }
}

struct Row<'a> {
    bucket: Option<Arc<str>>,
    row: &'a QueryRow,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(bucket) = &self.bucket {
            map.serialize_entry("bucket", &**bucket)?;
        }
        if let Some(group) = &self.row.group {
            map.serialize_entry("group", &group.as_deref())?;
        }
        map.serialize_entry("value", &value(self.row.value))?;
        if let Some(previous) = self.row.previous {
            map.serialize_entry("previous", &value(previous))?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Body<'a> {
    data: Rows<'a>,
    meta: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    spark: Option<Rows<'a>>,
}

/// The answer of a query as text. Long answers are written where their memory is accounted for, not
/// while the response is sent.
pub fn query(ask: &Ask, answer: &QueryAnswer) -> Result<Box<RawValue>> {
    raw(&Body { data: Rows(&answer.rows), meta: meta(ask, answer), spark: None })
}

fn raw(body: &impl Serialize) -> Result<Box<RawValue>> {
    serde_json::value::to_raw_value(body)
        .map_err(|error| ApiError::internal(format!("an answer cannot be written: {error}")))
}

/// What an answer tells about itself.
fn meta(ask: &Ask, answer: &QueryAnswer) -> Json {
    let mut meta = json!({
        "query_time_ms": answer.took_ms,
        "rows_scanned": answer.rows_scanned,
        "event_name": ask.event_name,
        "metric": ask.metric,
        "period": ask.period.as_ref().filter(|_| ask.range.is_none()),
        "from": instant::format(answer.from_ms),
        "to": instant::format(answer.to_ms),
        "approximate": answer.approximate,
    });
    if let Some(granularity) = ask.granularity {
        meta["granularity"] = json!(granularity_name(granularity));
    }
    if let Some(zone) = ask.timezone.as_ref().and_then(|zone| zone.iana_name()) {
        meta["timezone"] = json!(zone);
    }
    if let Some(group_by) = &ask.group_by {
        meta["group_by"] = json!(group_by);
        meta["groups_total"] = json!(answer.groups_total);
        meta["groups_returned"] = json!(answer.groups_returned);
    }
    if let Some(grain) = answer.rollup {
        let grain = match grain {
            RollupGrain::Day => ("events_daily", "day"),
            RollupGrain::Hour => ("events_hourly", "hour"),
        };
        meta["source_table"] = json!(grain.0);
        meta["planned_by"] = json!("rollup");
        meta["rollup_granularity"] = json!(grain.1);
    }
    if let Some(plan) = &answer.plan {
        meta["plan"] = plan.iter().map(step).collect();
    }
    if let Some(total) = answer.total {
        meta["total"] = value(total);
    }
    if let Some(number) = &ask.numeric_prop {
        meta["numeric_prop"] = json!(number);
    }
    meta
}

/// One source of an answer, and how it is read.
fn step(step: &ExplainStep) -> Json {
    let mut json = json!({
        "source": step.source, "level": step.level, "rows": step.rows, "series": step.series,
        "rolled_up": step.rolled_up, "by_day": step.by_day, "by_hour": step.by_hour,
    });
    for (name, why) in [("skipped", step.skipped), ("rejected", step.rejected)] {
        if let Some(why) = why {
            json[name] = json!(why);
        }
    }
    json
}

/// A widget's answer as text, without its id.
pub fn widget(answer: &WidgetAnswer) -> Result<Box<RawValue>> {
    match answer {
        WidgetAnswer::Nothing => raw(&json!({"data": [], "meta": {}})),
        WidgetAnswer::Rows { ask, answer, spark } => raw(&Body {
            data: Rows(&answer.rows),
            meta: meta(ask, answer),
            spark: spark.as_deref().map(Rows),
        }),
        WidgetAnswer::Table { ask, answer, measures, rows } => {
            let mut meta = meta(ask, answer);
            meta["measures"] = json!(measures);
            let row = |(group, values): &(Option<Arc<str>>, Vec<Value>)| {
                let values: Vec<Json> = values.iter().copied().map(value).collect();
                json!({"group": group.as_deref(), "values": values})
            };
            raw(&json!({"data": rows.iter().map(row).collect::<Json>(), "meta": meta}))
        }
    }
}
