//! Ids that rise: UUIDv7, in the order in which they were made also within a millisecond.
//!
//! Lists are in the order of their ids, and what happened later must not stand before what happened
//! earlier. So the twelve bits behind the time count within it (RFC 9562, section 6.2, method 1); the rest
//! is random. Of one millisecond, 2026-11-28T00:18:56.302Z:
//!
//! ```text
//! 01a21f84-f2ae-7000-9bf5-386bc39bd55e
//! │             ││   └ 2 bits of the variant, 62 random bits
//! │             │└ count within the millisecond: 000, 001, … fff
//! │             └ version 7
//! └ 48 bits: milliseconds since 1970
//!
//! clock   id of
//! 302 ms  302 ms, count 000
//! 302 ms  302 ms, count 001
//! 301 ms  302 ms, count 002     a clock that is set back a little is not followed
//! 303 ms  303 ms, count 000
//! ```

use std::sync::{Mutex, PoisonError};

/// Ids of one millisecond, at most; the next ones borrow the millisecond after it, until the clock has caught up.
const COUNTS: u16 = 1 << 12;
/// A clock that falls back by more than this was set, and ids follow it.
const BACK_MS_MAX: u64 = 10_000;

/// Time and count of the last id. One value for the whole server: two of them would not rise together.
#[derive(Default)]
pub struct Ids(Mutex<(u64, u16)>);

impl Ids {
    /// The next id, as text of 36 characters. `now_ms` is the clock, in milliseconds since 1970; of `random` the upper two bits are not used.
    pub fn next(&self, now_ms: u64, random: [u8; 8]) -> String {
        let (ms, count) = {
            let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *last = after(*last, now_ms);
            *last
        };
        let mut bytes = [0; 10];
        bytes[..2].copy_from_slice(&count.to_be_bytes());
        bytes[2..].copy_from_slice(&random);
        uuid::Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid().to_string()
    }
}

/// Time and count of the id after one with `(ms, count)`.
fn after((ms, count): (u64, u16), now_ms: u64) -> (u64, u16) {
    if now_ms > ms || ms - now_ms > BACK_MS_MAX {
        (now_ms, 0)
    } else if count + 1 < COUNTS {
        (ms, count + 1)
    } else {
        (ms + 1, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_within_a_millisecond_and_across_small_steps_back() {
        let ids = Ids::default();
        let mut made = Vec::new();
        for now in [1_000, 1_000, 999, 1_001, 1_001] {
            made.extend((0..5_000).map(|at: u64| ids.next(now, (!at).to_le_bytes())));
        }
        assert!(made.is_sorted() && made.windows(2).all(|two| two[0] != two[1]));
        let id = uuid::Uuid::parse_str(&made[0]).unwrap();
        assert_eq!((id.get_version_num(), id.get_timestamp().unwrap().to_unix()), (7, (1, 0)));
    }

    #[test]
    fn a_clock_that_was_set_is_followed() {
        assert_eq!(after((90_000, 7), 1_000), (1_000, 0));
        assert_eq!(after((90_000, 7), 85_000), (90_000, 8));
    }
}
