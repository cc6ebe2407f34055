//! Parameters of `GET /v1/query`: their names for the parser, their meanings for the document of the API.
//!
//! ```text
//! ?event_name=api_call&metric=count&period=7d        every name is a field below
//! ?f_model=gpt-large                                 a filter by a property; the prefix is the parser's
//! ?evnt_name=api_call                                400 evnt_name is not a parameter of a query
//! ```

use std::sync::LazyLock;

use utoipa::{IntoParams, openapi::path::ParameterIn};

/// A question. Each property can be filtered by a parameter `f_<name>`; repeated, any of its values.
#[derive(IntoParams)]
#[expect(dead_code, reason = "names and describes what `Ask::parse` reads from the query string")]
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

impl QueryParameters {
    /// Whether a parameter has this name: `metric` has, `f_model` and `metrics` have not.
    pub fn has(name: &str) -> bool {
        static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
            let parameters = QueryParameters::into_params(|| Some(ParameterIn::Query));
            parameters.into_iter().map(|parameter| parameter.name).collect()
        });
        NAMES.iter().any(|known| known == name)
    }
}
