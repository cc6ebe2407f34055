//! `/v1/discover`: events of the last thirty days, and a dashboard made from them.
//!
//! ```text
//! GET /v1/discover
//! 200 {"events":[
//!   {"event_name":"api_call","count":42,"tenants":2,"first_seen":"2026-11-21T00:00:00.000Z","last_seen":"2026-11-27T12:00:00.000Z",
//!    "string_props":[{"name":"model","distinct_approx":2,"coverage":0.976,"samples":["gpt-large","gpt-small"],"rollup":true},…],
//!    "numeric_props":[{"name":"latency_ms","min":10.0,"max":107.5,"avg":57.6,"coverage":0.976}]},…],
//!  "meta":{"from":"2026-10-29T00:20:12.177Z","to":"2026-11-28T00:20:12.177Z","took_ms":0,"rows_scanned":43,"sampled":false}}
//!
//! POST /v1/discover/auto-create
//! 201 {"dashboard_id":"01a21f86-1b12-…","name":"Overview","widgets":7,"events_found":2}
//! ```
//!
//! `coverage` is the share of the rows read that have the property: 41 of 42 here, since one event has none.

use axum::extract::State;
use inlay_engine::{EventFacts, NumberFacts, TextFacts};
use serde::Serialize;
use utoipa::ToSchema;

use super::view::Time;
use crate::{
    app::{Caller, is_rollup_dimension},
    error::Result,
    http::{
        respond::{Answer, Created},
        state::context::Http,
    },
};

/// The events of the last thirty days.
#[derive(Serialize, ToSchema)]
pub struct Discovered {
    events: Vec<DiscoveredEvent>,
    meta: DiscoverMeta,
}

/// How they were found.
#[derive(Serialize, ToSchema)]
struct DiscoverMeta {
    from: Time,
    to: Time,
    took_ms: u64,
    rows_scanned: u64,
    /// Whether properties are known from a part of the rows.
    sampled: bool,
}

/// A kind of event.
#[derive(Serialize, ToSchema)]
struct DiscoveredEvent {
    #[schema(example = "api_call")]
    event_name: String,
    count: u64,
    /// Tenants that sent it.
    tenants: u64,
    first_seen: Time,
    last_seen: Time,
    string_props: Vec<DiscoveredText>,
    numeric_props: Vec<DiscoveredNumber>,
}

/// A string dimension.
#[derive(Serialize, ToSchema)]
struct DiscoveredText {
    #[schema(example = "model")]
    name: String,
    distinct_approx: u64,
    /// Share of the events that have it.
    #[schema(minimum = 0, maximum = 1)]
    coverage: f64,
    /// The most frequent values.
    samples: Vec<String>,
    /// Whether rollups are kept for it.
    rollup: bool,
}

/// A numeric measure.
#[derive(Serialize, ToSchema)]
struct DiscoveredNumber {
    #[schema(example = "latency_ms")]
    name: String,
    min: f64,
    max: f64,
    avg: f64,
    /// Share of the events that have it.
    #[schema(minimum = 0, maximum = 1)]
    coverage: f64,
}

/// A dashboard that was made from discovered events.
#[derive(Serialize, ToSchema)]
pub struct AutoCreated {
    #[schema(format = Uuid)]
    dashboard_id: String,
    name: String,
    /// How many it has.
    widgets: usize,
    events_found: usize,
}

/// The events of the last thirty days, with their properties. An environment without events has an empty list.
pub async fn get(State(http): State<Http>, caller: Caller) -> Result<Answer<Discovered>> {
    let found = http.run_query(&caller.org.clone(), move |app| app.discover(&caller)).await?;
    let rows_scanned: u64 = found.events.iter().map(|event| event.rows_read).sum();
    let rows: u64 = found.events.iter().map(|event| event.count).sum();
    Ok(Answer(Discovered {
        events: found.events.into_iter().map(view).collect(),
        meta: DiscoverMeta {
            from: Time(found.from_ms),
            to: Time(found.to_ms),
            took_ms: found.took_ms,
            rows_scanned,
            sampled: rows_scanned < rows,
        },
    }))
}

/// Makes a dashboard from them, as a draft. 201 with its id and name; 404 without events.
pub async fn auto_create(State(http): State<Http>, caller: Caller) -> Result<Created<AutoCreated>> {
    let (dashboard, events_found) =
        http.run_query(&caller.org.clone(), move |app| app.auto_create_dashboard(&caller)).await?;
    Ok(Created(AutoCreated {
        dashboard_id: dashboard.id,
        name: dashboard.draft.name,
        widgets: dashboard.draft.widgets.len(),
        events_found,
    }))
}

fn view(event: EventFacts) -> DiscoveredEvent {
    // Shares are of the rows that were read, which may be fewer than there are.
    let rows = event.rows_read.max(1) as f64;
    let text = |text: TextFacts| DiscoveredText {
        rollup: is_rollup_dimension(&text.name),
        name: text.name,
        distinct_approx: text.distinct_approx,
        coverage: text.present as f64 / rows,
        samples: text.samples,
    };
    let number = |number: NumberFacts| DiscoveredNumber {
        name: number.name,
        min: number.min,
        max: number.max,
        avg: number.avg,
        coverage: number.present as f64 / rows,
    };
    DiscoveredEvent {
        event_name: event.name,
        count: event.count,
        tenants: event.tenants,
        first_seen: Time(event.first_ms),
        last_seen: Time(event.last_ms),
        string_props: event.texts.into_iter().map(text).collect(),
        numeric_props: event.numbers.into_iter().map(number).collect(),
    }
}
