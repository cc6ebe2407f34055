//! `GET /v1/query`: parameters of a metric query, and its answer on the wire.
//!
//! ```text
//! GET /v1/query?event_name=api_call&metric=count&period=7d&tenant_id=acme&group_by=model&granularity=day&limit=1&fill=none
//! 200 {"data":[{"bucket":"2026-11-21T00:00:00.000Z","group":"gpt-large","value":4},
//!              {"bucket":"2026-11-22T00:00:00.000Z","group":"gpt-large","value":2},…],
//!      "meta":{"query_time_ms":0,"rows_scanned":32,"event_name":"api_call","metric":"count","period":"7d",
//!              "from":"2026-11-21T00:00:00.000Z","to":"2026-11-28T00:19:30.333Z","approximate":false,"granularity":"day",
//!              "group_by":"model","groups_total":3,"groups_returned":1,"total":32}}
//!
//! …&compare=previous               {"data":[{"value":32,"previous":1}],…}
//! …&f_model=gpt-large              {"data":[{"value":21}],…}      an unknown property has no events, and is no error
//! …&metric=p95                     400 numeric_prop is required for metric p95
//! …&metric=median                  400 metric must be one of count, count_unique, …, not "median"
//! no period, no from and to        400 period is required
//! no tenant_id, with a key         400 tenant_id is required
//! ```

use axum::extract::State;

use super::view::{self, DataAnswer};
use crate::{
    app::{Ask, Caller, QueryParameters},
    error::Result,
    http::{extract::RawParams, respond::Written, state::context::Http},
};

/// Answers a question. Short queries are computed on the thread that reads the socket, all others on a thread of their own with a permit.
///
/// Errors: 400 naming the parameter, `query_timeout`, `query_too_large`; 503 after 10 s without a permit.
pub async fn query(
    State(http): State<Http>,
    caller: Caller,
    parameters: RawParams<QueryParameters>,
) -> Result<Written<DataAnswer>> {
    // Boxed, since the futures of the request contain it.
    let ask = Box::new(Ask::parse(&parameters.0)?);
    http.try_query(&caller.org.clone(), move |app| view::query(&ask, &app.query(&caller, &ask)?))
        .await
}
