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
use utoipa::IntoParams;

use super::view::{self, DataAnswer};
use crate::{
    app::{Ask, Caller},
    error::Result,
    http::{extract::RawParams, respond::Written, state::context::Http},
};

/// A question. Each property can be filtered by a parameter `f_<name>`; repeated, any of its values.
#[derive(IntoParams)]
#[expect(dead_code, reason = "documents what `Ask` parses, f_ parameters included")]
pub struct QueryParameters {
    /// Name of the event.
    #[param(example = "api_call", min_length = 1)]
    event_name: String,
    /// Required of API keys; a session may leave it out and sees all tenants.
    #[param(example = "acme")]
    tenant_id: Option<String>,
    /// `count`, `count_unique`, `count_unique_approx`, `sum`, `avg`, `min`, `max`, `p50`, `p95`, `p99`,
    /// `p50_approx`, `p95_approx`, `p99_approx`.
    #[param(example = "count")]
    metric: String,
    /// `1h`, `24h`, `7d`, `30d`, `90d`; required unless `from` and `to` are there.
    #[param(example = "7d", pattern = "^(1h|24h|7d|30d|90d)$")]
    period: Option<String>,
    /// `hour`, `day`, `week`, `month`; one row without it.
    #[param(example = "day", pattern = "^(hour|day|week|month)$")]
    granularity: Option<String>,
    /// Property to group by.
    #[param(example = "model")]
    group_by: Option<String>,
    /// Required for metrics over a number.
    #[param(example = "latency_ms")]
    numeric_prop: Option<String>,
    /// Groups, at most.
    #[param(minimum = 1, maximum = 1000, example = 20)]
    limit: Option<u32>,
    /// Where the window begins.
    #[param(example = "2026-11-13T00:00:00Z", min_length = 1)]
    from: Option<String>,
    /// Where the window ends.
    #[param(example = "2026-11-20T00:00:00Z", min_length = 1)]
    to: Option<String>,
    /// `none` leaves empty buckets out.
    #[param(example = "none")]
    fill: Option<String>,
    /// `previous` adds the value of the window before.
    #[param(example = "previous")]
    compare: Option<String>,
    /// Zone of days, weeks and months.
    #[param(example = "Europe/Berlin")]
    timezone: Option<String>,
    /// Whether `meta.plan` is wanted.
    explain: Option<bool>,
}

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
