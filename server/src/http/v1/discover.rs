//! `/v1/discover`.

use axum::{Json, extract::State, http::StatusCode};
use inlay_engine::{EventFacts, NumberFacts, TextFacts};
use serde_json::{Value, json};

use crate::{
    app::{Caller, is_rollup_dimension},
    base::instant,
    error::Result,
    http::context::Http,
};

/// The events of the last thirty days, with their properties.
pub async fn get(State(http): State<Http>, caller: Caller) -> Result<Json<Value>> {
    let found = http.run_query(move |app| app.discover(&caller)).await?;
    let rows_read: u64 = found.events.iter().map(|event| event.rows_read).sum();
    let rows: u64 = found.events.iter().map(|event| event.count).sum();
    Ok(Json(json!({
        "events": found.events.iter().map(view).collect::<Vec<_>>(),
        "meta": {
            "from": instant::format(found.from_ms), "to": instant::format(found.to_ms),
            "took_ms": found.took_ms, "rows_scanned": rows_read, "sampled": rows_read < rows,
        },
    })))
}

/// Makes a dashboard from them. 201 with what it is.
pub async fn auto_create(
    State(http): State<Http>,
    caller: Caller,
) -> Result<(StatusCode, Json<Value>)> {
    let (dashboard, events) = http.run_query(move |app| app.auto_create_dashboard(&caller)).await?;
    let body = json!({
        "dashboard_id": dashboard.id, "name": dashboard.draft.name,
        "widgets": dashboard.draft.widgets.len(), "events_found": events,
    });
    Ok((StatusCode::CREATED, Json(body)))
}

fn view(event: &EventFacts) -> Value {
    let coverage = |present: u64| present as f64 / event.rows_read.max(1) as f64;
    let text = |text: &TextFacts| {
        json!({
            "name": text.name, "distinct_approx": text.distinct_approx,
            "coverage": coverage(text.present), "samples": text.samples,
            "rollup": is_rollup_dimension(&text.name),
        })
    };
    let number = |number: &NumberFacts| {
        json!({
            "name": number.name, "min": number.min, "max": number.max, "avg": number.avg,
            "coverage": coverage(number.present),
        })
    };
    json!({
        "event_name": event.name, "count": event.count, "tenants": event.tenants,
        "first_seen": instant::format(event.first_ms), "last_seen": instant::format(event.last_ms),
        "string_props": event.texts.iter().map(text).collect::<Vec<_>>(),
        "numeric_props": event.numbers.iter().map(number).collect::<Vec<_>>(),
    })
}
