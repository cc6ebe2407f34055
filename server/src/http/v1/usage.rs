//! `GET /v1/usage`: events, queries and embeds of a period, for the page of the console and for bills.
//!
//! ```text
//! GET /v1/usage?period=7d
//! 200 {"period":"7d","events":{"used":43,"limit":20000000},"queries":21,"embed_sessions":3,"embed_views":1,
//!      "by_day":[{"date":"2026-11-21","events":0},…,{"date":"2026-11-28","events":43}],
//!      "top_tenants":[{"tenant_id":"acme","events":33},{"tenant_id":"globex","events":10}]}
//! GET /v1/usage?period=2d
//! 400 period must be one of 1h, 24h, 7d, 30d, 90d, not "2d"
//! ```
//!
//! All 43 events arrived on the 28th, although nearly all of them happened in the days before: `by_day` counts arrivals.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    app::{Caller, Usage},
    error::Result,
    http::{extract::Params, respond::Answer, state::context::Http},
};

/// Of which time.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct UsageParameters {
    /// `1h`, `24h`, `7d`, `30d` (the default) or `90d`, in whole days.
    #[param(example = "30d", pattern = "^(1h|24h|7d|30d|90d)$")]
    period: Option<String>,
}

/// What was used, in the caller's environment.
#[derive(Serialize, ToSchema)]
#[schema(as = Usage)]
pub struct UsageView {
    #[schema(example = "30d")]
    period: String,
    events: UsedEvents,
    /// Metric queries and SQL statements, counted when they begin.
    queries: u64,
    /// Embed sessions that were minted.
    embed_sessions: u64,
    /// Embed pages that were shown.
    embed_views: u64,
    /// Days of the period, oldest first.
    by_day: Vec<DayEvents>,
    /// Customers with the most events, most first.
    top_tenants: Vec<TenantEvents>,
}

/// Events that were stored.
#[derive(Serialize, ToSchema)]
struct UsedEvents {
    used: u64,
    /// Events a month, over all environments; null is unlimited.
    limit: Option<u64>,
}

/// Events that were stored on a day.
#[derive(Serialize, ToSchema)]
struct DayEvents {
    #[schema(format = Date, example = "2026-11-20")]
    date: String,
    events: u64,
}

/// Events of a tenant by their own time, in whole hours.
#[derive(Serialize, ToSchema)]
struct TenantEvents {
    tenant_id: String,
    events: u64,
}

/// Usage of the caller's environment. It takes a permit of a query, by which `top_tenants` are counted.
pub async fn get(
    State(http): State<Http>,
    caller: Caller,
    Params(parameters): Params<UsageParameters>,
) -> Result<Answer<UsageView>> {
    let period = parameters.period.unwrap_or_else(|| "30d".to_owned());
    http.run_query(&caller.org.clone(), move |app| app.usage(&caller, &period))
        .await
        .map(view)
        .map(Answer)
}

fn view(usage: Usage) -> UsageView {
    let day = |(date, events)| DayEvents { date, events };
    let tenant = |(tenant_id, events)| TenantEvents { tenant_id, events };
    UsageView {
        period: usage.period,
        events: UsedEvents { used: usage.events, limit: usage.limit },
        queries: usage.queries,
        embed_sessions: usage.embed_sessions,
        embed_views: usage.embed_views,
        by_day: usage.by_day.into_iter().map(day).collect(),
        top_tenants: usage.top_tenants.into_iter().map(tenant).collect(),
    }
}
