//! Periods by name, as queries, dashboards, embeds and usage take them: `24h`, `7d`, `30d`.

use crate::error::{ApiError, Result};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Names and lengths of the periods.
pub const PERIODS: [(&str, i64); 5] = [
    ("1h", HOUR_MS),
    ("24h", DAY_MS),
    ("7d", 7 * DAY_MS),
    ("30d", 30 * DAY_MS),
    ("90d", 90 * DAY_MS),
];

/// Length of the period with this name.
pub fn period_ms(name: &str) -> Option<i64> {
    PERIODS.iter().find(|(known, _)| *known == name).map(|(_, ms)| *ms)
}

/// Reads a period name.
pub fn parse_period(field: &str, name: &str) -> Result<()> {
    if period_ms(name).is_some() {
        return Ok(());
    }
    Err(ApiError::unknown_value(field, name, PERIODS.map(|(name, _)| name)))
}
