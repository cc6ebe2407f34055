//! What a viewer may ask: his filters and periods held against the permissions of his session.
//!
//! A browser's requests can only narrow what the token allows. Every rule is enforced here, whatever
//! the page or the host sends; the page checks too, but only to answer sooner. Pure functions.
//!
//! ```text
//! permissions                                filters                                              outcome
//! {"locked_filters": {"status": "ok"}}       {}                                                   status in [ok]
//!                                            {"dimensions": {"status": "ok"}}                     the same
//!                                            {"dimensions": {"status": ["ok", "error"]}}          403 "status is locked in this session"
//! {"allowed_dimensions": ["plan"]}           {"dimensions": {"status": "ok"}}                     403 "this session does not allow filtering by status"
//!                                            {"numericRanges": {"ms": {"min": 0}}}                403, of numbers, too
//! {"allowed_periods": ["7d"]}                {"period": "30d"}                                    403 "this session does not allow the period 30d"
//!                                            {"dateRanges": {"timestamp": {"from": …, "to": …}}}  403 "this session allows its periods only"
//! {"max_date_range_days": 7}                 the same, over 19 days                               403 "this session allows at most 7 days"
//! {}                                         {"period": "5d"}                                     400, filters.period
//!                                            {"dateRanges": {"created": {…}}}                     400, filters.dateRanges.created
//! ```

use std::collections::{BTreeMap, BTreeSet};

use inlay_engine::{NumberFilter, TextFilter};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::{
        dashboards::widgets::ViewFilters,
        periods::{PERIODS, parse_period, period_ms},
    },
    base::instant,
    error::{ApiError, Code, Result},
    store::{OneOrMany, Permissions, Widget},
};

/// Periods that are offered when nothing restricts them.
const PERIODS_OFFERED: [&str; 4] = ["24h", "7d", "30d", "90d"];
const DAY_MS: i64 = 86_400_000;
/// Properties that are filtered by at once, at most: each is looked at in every row.
const FILTERS_MAX: usize = 50;
/// Values of one of them.
const VALUES_MAX: usize = 1_000;

/// Properties that a viewer is offered to filter by, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Offered {
    /// String properties that viewers may filter by.
    pub dimensions: Vec<String>,
    /// Numeric properties that viewers may filter by.
    pub numbers: Vec<String>,
}

/// The error of a rule that a request breaks: 403 `embed_permission`, with the rule as message.
pub fn broken(message: impl Into<String>) -> ApiError {
    ApiError::new(Code::EmbedPermission, message)
}

/// Filters that hold whatever the viewer chooses.
///
/// `{"country": ["DE", "FR"]}` is the filter `country in [DE, FR]`.
pub fn locks(permissions: &Permissions) -> Vec<TextFilter> {
    let lock = |(name, accepted): (&String, &OneOrMany)| TextFilter {
        name: name.clone(),
        any_of: accepted.values(),
    };
    permissions.locked_filters.iter().map(lock).collect()
}

/// Periods that the viewer may choose, shortest first: what his session names, else the usual ones
/// and the one that the dashboard starts with.
///
/// `["24h", "7d", "30d", "90d"]` without permissions; `["24h", "7d"]` with `max_date_range_days` 7.
pub fn offered_periods(permissions: &Permissions, default: &str) -> Vec<String> {
    let usual = PERIODS_OFFERED.iter().copied().chain([default]).map(str::to_owned).collect();
    let mut periods: Vec<String> = permissions.allowed_periods.clone().unwrap_or(usual);
    periods.retain(|period| check_period(permissions, period).is_ok());
    periods.sort_by_key(|period| period_ms(period));
    periods.dedup();
    periods
}

/// Every period that the session allows, shortest first.
///
/// It may have `1h`, which is not offered: a widget's own period may be that.
pub fn allowed_periods(permissions: &Permissions) -> Vec<String> {
    let all = PERIODS.iter().map(|(name, _)| (*name).to_owned());
    all.filter(|period| check_period(permissions, period).is_ok()).collect()
}

/// Errors: 403 for a period that the session does not list, or that is longer than its days.
pub fn check_period(permissions: &Permissions, period: &str) -> Result<()> {
    if permissions
        .allowed_periods
        .as_ref()
        .is_some_and(|allowed| !allowed.iter().any(|known| known == period))
    {
        return Err(broken(format!("this session does not allow the period {period}")));
    }
    check_length(permissions, period_ms(period).unwrap_or(i64::MAX))
}

/// Errors: 403 for a window of so many milliseconds that is longer than the session's days.
fn check_length(permissions: &Permissions, length_ms: i64) -> Result<()> {
    match permissions.max_date_range_days {
        Some(days) if length_ms > i64::from(days) * DAY_MS => {
            Err(broken(format!("this session allows at most {days} days")))
        }
        _ => Ok(()),
    }
}

/// Whether the viewer may choose dates instead of a period: a list of periods says what may be seen,
/// and any range beside it needs a bound of its own.
pub fn allows_dates(permissions: &Permissions) -> bool {
    permissions.allowed_periods.is_none() || permissions.max_date_range_days.is_some()
}

/// Properties that the viewer is offered to filter by: what his session names, else what the widgets
/// that he sees are about. What is locked is not offered.
///
/// With `allowed_dimensions` `[plan, ms]` and a widget over the number `ms`: dimensions `[plan]`, numbers `[ms]`. A property that no widget
/// is about is taken for a dimension.
pub fn offered_properties(permissions: &Permissions, widgets: &[Widget]) -> Offered {
    let asked = |field: &str| {
        let own = widgets.iter().filter_map(|widget| widget.query.get(field)?.as_str());
        own.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let mut numbers = asked("numeric_prop");
    for measure in
        widgets.iter().filter_map(|widget| widget.query.get("measures")?.as_array()).flatten()
    {
        numbers.extend(measure["numeric_prop"].as_str().map(str::to_owned));
    }
    let texts = match &permissions.allowed_dimensions {
        Some(allowed) => {
            let allowed: BTreeSet<String> = allowed.iter().cloned().collect();
            numbers.retain(|name| allowed.contains(name));
            allowed.difference(&numbers).cloned().collect()
        }
        None => asked("group_by"),
    };
    let is_free = |name: &String| !permissions.locked_filters.contains_key(name);
    Offered {
        dimensions: texts.into_iter().filter(is_free).collect(),
        numbers: numbers.into_iter().filter(is_free).collect(),
    }
}

/// Filters as messages and data requests carry them.
///
/// `{"period": "7d", "dimensions": {"plan": ["pro", "free"]}, "numericRanges": {"ms": {"min": 1, "max": 2}}, "dateRanges": {}}`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct WireFilters {
    period: Option<String>,
    dimensions: BTreeMap<String, OneOrMany>,
    numeric_ranges: BTreeMap<String, WireRange>,
    date_ranges: BTreeMap<String, WireDates>,
}

/// Bounds of a number, both included; either may be absent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireRange {
    min: Option<f64>,
    max: Option<f64>,
}

/// Bounds of a window, the end excluded: `{"from": "2026-11-14", "to": "2026-11-21"}` are seven days.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireDates {
    from: String,
    to: String,
}

/// Checks a viewer's filters against his permissions. 400 when they mean nothing, 403 when they
/// reach beyond.
///
/// The result has the viewer's choices alone; the locks are added by `Viewer::filters_for`.
pub fn check(permissions: &Permissions, wire: &WireFilters) -> Result<ViewFilters> {
    let too_many = |field: &str, what: &str| {
        ApiError::field(Code::OutOfRange, format!("filters.{field}"), format!("at most {what}"))
    };
    if wire.dimensions.len() > FILTERS_MAX {
        return Err(too_many("dimensions", &format!("{FILTERS_MAX} dimensions are filtered by")));
    }
    if wire.numeric_ranges.len() > FILTERS_MAX {
        return Err(too_many("numericRanges", &format!("{FILTERS_MAX} numbers are filtered by")));
    }
    let mut filters = ViewFilters::default();
    if let Some(period) = &wire.period {
        parse_period("filters.period", period)?;
        // Dates replace the period, so that a page may send the one that was chosen before beside them.
        if wire.date_ranges.is_empty() {
            check_period(permissions, period)?;
        }
        filters.period = Some(period.clone());
    }
    for (name, accepted) in &wire.dimensions {
        check_dimension(permissions, name)?;
        let any_of = accepted.values();
        if any_of.len() > VALUES_MAX {
            let field = format!("dimensions.{name}");
            return Err(too_many(&field, &format!("{VALUES_MAX} values are filtered by")));
        }
        if let Some(locked) = permissions.locked_filters.get(name) {
            let locked = locked.values();
            if any_of.iter().any(|value| !locked.contains(value)) {
                return Err(broken(format!("{name} is locked in this session")));
            }
        }
        filters.texts.push(TextFilter { name: name.clone(), any_of });
    }
    for (name, range) in &wire.numeric_ranges {
        check_dimension(permissions, name)?;
        let (min, max) =
            (range.min.unwrap_or(f64::NEG_INFINITY), range.max.unwrap_or(f64::INFINITY));
        filters.numbers.push(NumberFilter { name: name.clone(), min, max });
    }
    for (name, dates) in &wire.date_ranges {
        filters.range = Some(check_dates(permissions, name, dates)?);
    }
    Ok(filters)
}

/// The window of dates. Errors: 400 for another name than `timestamp`, text that is no instant, an empty window; 403.
fn check_dates(permissions: &Permissions, name: &str, dates: &WireDates) -> Result<(i64, i64)> {
    let field = format!("filters.dateRanges.{name}");
    if name != "timestamp" {
        return Err(ApiError::field(
            Code::UnknownField,
            field,
            "dates are filtered by timestamp only",
        ));
    }
    let read = |part: &str, text: &str| {
        instant::parse(text).ok_or_else(|| {
            let message = format!("{part} is not an ISO 8601 date-time or date");
            ApiError::field(Code::InvalidField, format!("{field}.{part}"), message)
        })
    };
    let (from, to) = (read("from", &dates.from)?, read("to", &dates.to)?);
    if from >= to {
        return Err(ApiError::field(Code::OutOfRange, field, "from must lie before to"));
    }
    if !allows_dates(permissions) {
        return Err(broken("this session allows its periods only"));
    }
    check_length(permissions, to - from)?;
    Ok((from, to))
}

/// Whether the viewer may filter by a property, see its values, and break down by it.
///
/// Errors: 403. A locked property may be named: [`check`] sees that the choice lies within the lock.
pub fn check_dimension(permissions: &Permissions, name: &str) -> Result<()> {
    let allowed = permissions.allowed_dimensions.as_ref();
    if allowed.is_some_and(|allowed| !allowed.iter().any(|known| known == name)) {
        return Err(broken(format!("this session does not allow filtering by {name}")));
    }
    Ok(())
}
