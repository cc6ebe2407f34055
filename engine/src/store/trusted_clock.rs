//! A time that the clock has shown long enough to be believed.
//!
//! Expired days are hidden by the wall clock, which can be wrong: a clock that shows the year 2106 for
//! a minute hides everything for a minute. Their files go by this time instead, so that nothing is
//! lost before the clock has stood by what it says for a whole window of real time.

use crate::base::time::HOUR_MS;

/// The earliest time that the clock showed in the last whole window, and since.
#[derive(Debug, Default)]
pub struct TrustedClock {
    window: Option<Window>,
    before_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began_us: u64,
    least_ms: i64,
}

impl TrustedClock {
    /// Notes what the clock shows, at an instant of a clock that nobody sets. Returns the time that
    /// can be believed: not before a whole window of `wait_ms` was seen.
    pub fn observe(&mut self, now_ms: i64, elapsed_us: u64, wait_ms: i64) -> Option<i64> {
        if wait_ms == 0 {
            return Some(now_ms);
        }
        let new = Window { began_us: elapsed_us, least_ms: now_ms };
        let window = self.window.get_or_insert(new);
        window.least_ms = window.least_ms.min(now_ms);
        let least_ms = window.least_ms;
        if elapsed_us.saturating_sub(window.began_us) >= wait_ms.unsigned_abs() * 1_000 {
            self.before_ms = Some(least_ms);
            self.window = Some(new);
        }
        Some(self.before_ms?.min(least_ms))
    }
}

/// How long the clock must stand by what it says.
pub const EXPIRY_WAIT_MS: i64 = HOUR_MS;

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows times, one a minute, and returns what was believed at the end.
    fn shown(times: impl IntoIterator<Item = i64>) -> Option<i64> {
        let mut settled = TrustedClock::default();
        let minutes = times.into_iter().zip(0u64..);
        minutes
            .map(|(ms, at)| settled.observe(ms, at * 60_000_000, EXPIRY_WAIT_MS))
            .last()
            .flatten()
    }

    const YEAR: i64 = 365 * 24 * HOUR_MS;

    #[test]
    fn a_jump_is_believed_when_it_lasts_and_not_before() {
        let right = |minute: i64| minute * 60_000;
        assert_eq!(shown((0..60).map(right)), None, "the first hour");
        assert_eq!(shown((0..61).map(right)), Some(0));
        let jumping = |from: i64, to: i64, last: i64| {
            let jumped =
                move |minute| right(minute) + if (from..to).contains(&minute) { YEAR } else { 0 };
            shown((0..last).map(jumped)).unwrap()
        };
        for (from, to) in [(70, 125), (100, 119), (59, 61), (0, 59)] {
            for last in to..to + 200 {
                assert!(jumping(from, to, last.max(61)) < YEAR, "{from} to {to} at {last}");
            }
        }
        assert!(jumping(70, 1_000, 200) >= YEAR, "two hours of it are believed");
        assert!(jumping(70, 200, 201) < YEAR, "until the clock is set back");
    }

    #[test]
    fn without_a_wait_every_time_is_believed_at_once() {
        let mut settled = TrustedClock::default();
        assert_eq!(settled.observe(5, 0, 0), Some(5));
        assert_eq!(settled.observe(9, 0, 0), Some(9));
        assert_eq!(settled.observe(7, 0, 0), Some(7));
    }
}
