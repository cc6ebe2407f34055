//! Units of time: the stretches of days whose rows share segments.
//!
//! A day that is not over is a unit of its own, since its rows are merged again and again. Days that are over belong
//! to their week once all of it is over, and to a long unit of two, four or eight weeks once all of those are: so that
//! years of history are a few large segments, and each row is rewritten twice more at most. How long a long unit is
//! follows from how many rows fit a segment (`store::policy`).
//!
//! ```text
//! days over before Friday     56 days | week week | Mon Tue Wed Thu | Fri
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

/// Lengths of units in days, the longest first.
pub const UNIT_DAYS: [i64; 5] = [56, 28, 14, 7, 1];
/// Days of a week, of which longer units are made.
pub const WEEK: i64 = 7;
/// A Monday since 1970, at which units begin: day 4 is 1970-01-05.
const MONDAY: i64 = 4;

/// A stretch of days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    /// The first day since 1970.
    pub first: i64,
    /// How many days.
    pub days: i64,
}

impl Unit {
    /// The unit of so many days that has a day.
    fn around(day: i64, days: i64) -> Self {
        let since = day.saturating_sub(MONDAY);
        Self { first: day.saturating_sub(since.rem_euclid(days)), days }
    }

    /// The first day behind it: 19,996 for the 56 days from 19,940 on.
    pub fn end(&self) -> i64 {
        self.first.saturating_add(self.days)
    }
}

/// Which units there are at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Units {
    /// The first day that is not over.
    pub over_before: i64,
    /// Days of a unit, at most: 1 keeps all days apart.
    pub days_max: i64,
}

impl Units {
    /// The unit of a day: the long one around it, if it is over, else its week, if that is, else the day alone.
    ///
    /// With `over_before` 20,000 (a Friday) and 56 days at most, day 19,995 is in the unit of 56 days from 19,940 on, and days
    /// 19,996 and 20,001, of a week that is not over, are units of their own.
    pub fn of(&self, day: i64) -> Unit {
        let long = UNIT_DAYS.into_iter().find(|&days| days <= self.days_max);
        let lengths =
            [long, Some(WEEK)].into_iter().flatten().filter(|&days| days <= self.days_max);
        let mut units = lengths.map(|days| Unit::around(day, days));
        let over = units.find(|unit| unit.end() <= self.over_before);
        over.unwrap_or(Unit { first: day, days: 1 })
    }

    /// The same with units that are shorter than `days`, where there are any.
    pub fn shorter_than(&self, days: i64) -> Self {
        let shorter = UNIT_DAYS.into_iter().find(|&length| length < days);
        Self { days_max: self.days_max.min(shorter.unwrap_or(1)), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unit_that_is_over_counts() {
        // Day 20,000 is a Friday; both its week and its eight weeks begin on day 19,996.
        let units = Units { over_before: 20_000, days_max: 56 };
        assert_eq!(units.of(20_001), Unit { first: 20_001, days: 1 });
        assert_eq!(units.of(19_996), Unit { first: 19_996, days: 1 });
        assert_eq!(units.of(19_995), Unit { first: 19_940, days: 56 });
        let before = Units { over_before: 19_990, ..units };
        assert_eq!(before.of(19_982), Unit { first: 19_982, days: 7 }, "not two weeks or four");
        let later = Units { over_before: 20_003, ..units };
        assert_eq!(later.of(19_996), Unit { first: 19_996, days: 7 });
        assert_eq!(later.of(20_003), Unit { first: 20_003, days: 1 });
        let four = units.shorter_than(56);
        assert_eq!(four.of(19_995), Unit { first: 19_968, days: 28 });
        let weeks = four.shorter_than(28).shorter_than(14);
        assert_eq!(weeks.of(19_995), Unit { first: 19_989, days: 7 });
        assert_eq!(weeks.shorter_than(7).of(19_995), Unit { first: 19_995, days: 1 });
        assert_eq!(weeks.shorter_than(1).of(19_995), Unit { first: 19_995, days: 1 });
    }

    /// Each day has one unit, and its days have the same.
    #[test]
    fn units_part_the_days() {
        for days_max in [1, 7, 14, 30, 56] {
            let units = Units { over_before: -20, days_max };
            for day in -200..100 {
                let unit = units.of(day);
                assert!((unit.first..unit.end()).contains(&day) && unit.days <= days_max);
                assert!((unit.first..unit.end()).all(|other| units.of(other) == unit));
            }
        }
        assert_eq!(Units { over_before: 0, days_max: 56 }.of(i64::MIN).days, 56);
    }
}
