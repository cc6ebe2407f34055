//! Periods by name, as queries, dashboards, embeds and usage take them: `24h`, `7d`, `30d`.
//!
//! ```text
//! GET /v1/query?…&period=7d     the 7 days that end now: 604,800,000 ms
//! GET /v1/query?…&period=2w     400 {"error": "period must be one of 1h, 24h, 7d, 30d, 90d, not \"2w\"", "code": "unknown_value",
//!                               "field": "period", …}
//! ```
//!
//! A period is a length and no calendar: `30d` is 30 times 24 hours, in every time zone.

use crate::error::{ApiError, Result};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Names of the periods with their lengths in milliseconds, shortest first; errors list the names in this order.
pub const PERIODS: [(&str, i64); 5] = [
    ("1h", HOUR_MS),
    ("24h", DAY_MS),
    ("7d", 7 * DAY_MS),
    ("30d", 30 * DAY_MS),
    ("90d", 90 * DAY_MS),
];

/// Length of the period with this name in milliseconds: 86,400,000 of `24h`. `None` for any other name.
pub fn period_ms(name: &str) -> Option<i64> {
    PERIODS.iter().find(|(known, _)| *known == name).map(|(_, ms)| *ms)
}

/// Checks the name of a period that a request has in `field`.
///
/// Errors: `unknown_value` of the field, with the names that are possible.
pub fn parse_period(field: &str, name: &str) -> Result<()> {
    if period_ms(name).is_some() {
        return Ok(());
    }
    Err(ApiError::unknown_value(field, name, PERIODS.map(|(name, _)| name)))
}
