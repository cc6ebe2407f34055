//! Parts of answers that several resources share.

use serde_json::{Value as Json, json};

use crate::{
    app::{Ask, QueryAnswer, QueryRow, WidgetAnswer, granularity_name},
    base::instant,
    engine::Value,
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

/// Rows of an answer.
pub fn rows(rows: &[QueryRow]) -> Json {
    let row = |row: &QueryRow| {
        let mut out = serde_json::Map::new();
        if let Some(bucket) = row.bucket {
            out.insert("bucket".to_owned(), json!(instant::format(bucket)));
        }
        if let Some(group) = &row.group {
            out.insert(
                "group".to_owned(),
                group.as_deref().map_or(Json::Null, |group| json!(group)),
            );
        }
        out.insert("value".to_owned(), value(row.value));
        if let Some(previous) = row.previous {
            out.insert("previous".to_owned(), value(previous));
        }
        Json::Object(out)
    };
    rows.iter().map(row).collect()
}

/// What an answer tells about itself.
pub fn meta(ask: &Ask, answer: &QueryAnswer) -> Json {
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
    if let Some(group_by) = &ask.group_by {
        meta["group_by"] = json!(group_by);
        meta["groups_total"] = json!(answer.groups_total);
        meta["groups_returned"] = json!(answer.groups_returned);
    }
    if let Some(total) = answer.total {
        meta["total"] = value(total);
    }
    if let Some(number) = &ask.numeric_prop {
        meta["numeric_prop"] = json!(number);
    }
    meta
}

/// A widget's answer, without its id.
pub fn widget(answer: &WidgetAnswer) -> Json {
    match answer {
        WidgetAnswer::Nothing => json!({"data": [], "meta": {}}),
        WidgetAnswer::Rows { ask, answer, spark } => {
            let mut out = json!({"data": rows(&answer.rows), "meta": meta(ask, answer)});
            if let Some(spark) = spark {
                out["spark"] = rows(spark);
            }
            out
        }
        WidgetAnswer::Table { ask, answer, measures, rows } => {
            let mut meta = meta(ask, answer);
            meta["measures"] = json!(measures);
            let row = |(group, values): &(Option<std::sync::Arc<str>>, Vec<Value>)| {
                let values: Vec<Json> = values.iter().copied().map(value).collect();
                json!({"group": group.as_deref(), "values": values})
            };
            json!({"data": rows.iter().map(row).collect::<Json>(), "meta": meta})
        }
    }
}
