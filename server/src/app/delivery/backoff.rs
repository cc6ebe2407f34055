//! How long an attempt waits for the next one.
//!
//! What failed together must not be tried again together: to each wait up to a fifth is added by chance. A receiver that
//! says how long it wants to be left alone (`Retry-After`) is, up to an hour.
//!
//! ```text
//! third attempt, 120 s        120 to 144 s later
//! the same, Retry-After: 600  600 to 720 s later
//! ```

/// The longest `Retry-After` that is followed.
const RETRY_AFTER_MAX_S: u64 = 3_600;
/// The share of a wait that chance adds at most.
const JITTER: f64 = 0.2;

/// Milliseconds until the next attempt, whose usual wait is `wait_s`. `chance` is any number.
///
/// `wait_ms(30, None, u64::MAX / 2)` is 33,000: 30 seconds and half of the fifth. Chance never shortens a wait, not even the receiver's.
pub fn wait_ms(wait_s: u64, retry_after_s: Option<u64>, chance: u64) -> i64 {
    let wait_s = wait_s.max(retry_after_s.unwrap_or(0).min(RETRY_AFTER_MAX_S));
    let wait_ms = wait_s as f64 * 1_000.0;
    (wait_ms * (1.0 + JITTER * (chance as f64 / u64::MAX as f64))) as i64
}

/// The longest wait that [`wait_ms`] gives.
///
/// `longest_ms(30)` is 4,320,000: an hour that the receiver asks for, and a fifth. Anything due later was written by a clock that ran ahead.
pub fn longest_ms(wait_s: u64) -> i64 {
    wait_ms(wait_s, Some(RETRY_AFTER_MAX_S), u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_adds_up_to_a_fifth_and_receivers_choose_up_to_an_hour() {
        assert_eq!((wait_ms(0, None, u64::MAX), wait_ms(30, None, 0)), (0, 30_000));
        assert_eq!(
            (wait_ms(30, None, u64::MAX), wait_ms(30, None, u64::MAX / 2)),
            (36_000, 33_000)
        );
        assert_eq!((wait_ms(30, Some(5), 0), wait_ms(30, Some(600), 0)), (30_000, 600_000));
        assert_eq!(wait_ms(30, Some(u64::MAX), 0), 3_600_000);
        assert_eq!((longest_ms(30), longest_ms(7_200)), (4_320_000, 8_640_000));
    }
}
