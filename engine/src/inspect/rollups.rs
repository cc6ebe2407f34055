//! The rollups of a segment as rows: aggregates of each series by value, day and hour.
//!
//! ```text
//! day         hour              namespace  tenant  event  values       number  count  sums
//! 2025-11-02  -                 2          acme    call   model=large  -       21     -
//! 2025-11-02  -                 2          acme    call   model=small  -       7      -
//! 2025-11-02  2025-11-02 03:00  2          acme    call   model=large  -       21     -
//! 2025-11-02  -                 2          acme    call   -            ms      28     sum, smallest, largest
//! 2025-11-02  -                 2          (all)   call   model=large  -       26     -
//! ```

use std::collections::BTreeSet;

use super::Inspection;
use crate::{
    base::time::{DAY_MS, HOUR_MS, day_name},
    error::Result,
    segment::{Dictionary, RollupAt, RunDay, SectionKind, Segment, pair_name, parts_of_name},
    sketch::{digest::Digest, hll::Distinct, sums::Sums},
};

/// One row of a rollup.
#[derive(Debug, Clone, PartialEq)]
pub struct RollupRow {
    /// Number of the namespace whose events are aggregated.
    pub namespace: u32,
    /// Tenant; `None` for all of the namespace together.
    pub tenant: Option<String>,
    /// Name of the events.
    pub event: String,
    /// The dimensions, and the value of each; `None` is "absent". None at all for the whole series.
    pub values: Vec<(String, Option<String>)>,
    /// The day, as `2026-11-21`.
    pub day: String,
    /// The hour, `None` for all of the day.
    pub hour: Option<String>,
    /// The numeric property that is added up, `None` for a count of rows.
    pub number: Option<String>,
    /// Rows, or rows with a number; `None` for a sketch of users.
    pub count: Option<u64>,
    /// Sum, smallest and largest number.
    pub sums: Option<(f64, f64, f64)>,
    /// Distinct users, approximately.
    pub users: Option<u64>,
    /// The 50th, 95th and 99th percentile, approximately.
    pub percentiles: Option<[f64; 3]>,
}

impl Inspection {
    /// The rows of the rollups of a segment: series by series and day by day, first those of the whole day.
    ///
    /// Errors: `Corrupt` when a rollup, the run directory or a dictionary is damaged.
    pub fn rollups(&self, uuid: uuid::Uuid) -> Result<Vec<RollupRow>> {
        let segment = self.segment(uuid)?;
        let mut rows = Vec::new();
        for (index, &position) in segment.rolled_up().iter().enumerate() {
            let Some(run) = segment.runs().runs().get(position as usize) else { continue };
            let key = (run.key.namespace.0, Some(&*run.key.tenant), &*run.key.name);
            for day in run.by_day() {
                let at = RollupAt { index, day: day.ordinal };
                let (hours, name) = (hours_of(&day), day_name(day.day));
                Rows { segment: &segment, key, day: name, hours, at, out: &mut rows }.all()?;
            }
        }
        let events = segment.rolled_up_events();
        for (index, &position) in (segment.rolled_up().len()..).zip(events) {
            let Some(first) = segment.runs().runs().get(position as usize) else { continue };
            let key = (first.key.namespace.0, None, &*first.key.name);
            let runs = segment.runs().of(first.key.namespace, None).iter();
            let of_event = runs.filter(|run| run.key.name == first.key.name);
            let days: BTreeSet<i64> =
                of_event.flat_map(|run| run.by_day()).map(|day| day.day).collect();
            for (ordinal, day) in days.into_iter().enumerate() {
                let at = RollupAt { index, day: ordinal };
                let (hours, name) = (Vec::new(), day_name(day));
                Rows { segment: &segment, key, day: name, hours, at, out: &mut rows }.all()?;
            }
        }
        Ok(rows)
    }
}

/// Names of the hours of a day that have rows: `2025-11-02 03:00`.
fn hours_of(day: &RunDay<'_>) -> Vec<String> {
    let name = |hour: i64| {
        let day = day_name(hour.div_euclid(DAY_MS / HOUR_MS));
        format!("{day} {:02}:00", hour.rem_euclid(DAY_MS / HOUR_MS))
    };
    day.hours.iter().map(|&(hour, _)| name(hour)).collect()
}

/// The rows of one series, or of an event with all tenants.
struct Rows<'a> {
    segment: &'a Segment,
    /// Namespace, tenant, event.
    key: (u32, Option<&'a str>, &'a str),
    /// Names of the hours of the day; empty for an event over all tenants.
    hours: Vec<String>,
    /// The day, as `2026-11-21`.
    day: String,
    at: RollupAt,
    out: &'a mut Vec<RollupRow>,
}

impl Rows<'_> {
    /// Appends the rows of one day: counts, pairs, numbers, then the sketches.
    fn all(&mut self) -> Result<()> {
        let segment = self.segment;
        for dimension in segment.names(SectionKind::RollupCounts) {
            self.counts(dimension)?;
        }
        for name in segment.names(SectionKind::RollupPairs) {
            self.pairs(parts_of_name(name))?;
        }
        for number in segment.names(SectionKind::RollupNumbers) {
            self.numbers(number)?;
        }
        for name in segment.names(SectionKind::RollupNumbersBy) {
            self.numbers_by(parts_of_name(name))?;
        }
        self.users()?;
        for dimension in segment.names(SectionKind::RollupUsersBy) {
            self.users_by(dimension)?;
        }
        for number in segment.names(SectionKind::RollupDigests) {
            self.digests(number)?;
        }
        for name in segment.names(SectionKind::RollupDigestsBy) {
            self.digests_by(parts_of_name(name))?;
        }
        Ok(())
    }

    /// A row with a count and nothing else; the others are made of it.
    fn row(&self, count: u64) -> RollupRow {
        let (namespace, tenant, event) = self.key;
        RollupRow {
            namespace,
            tenant: tenant.map(str::to_owned),
            event: event.to_owned(),
            values: Vec::new(),
            day: self.day.clone(),
            hour: None,
            number: None,
            count: Some(count),
            sums: None,
            users: None,
            percentiles: None,
        }
    }

    /// A row with the estimated number of users.
    fn users_row(&self, sketch: &Distinct) -> RollupRow {
        RollupRow { count: None, users: Some(sketch.estimate()), ..self.row(0) }
    }

    /// A row with the three percentiles of a number; a digest of nothing has none.
    fn digest_row(&self, number: &str, digest: &mut Digest) -> RollupRow {
        let percentiles = [0.5, 0.95, 0.99].map(|q| digest.quantile(q).unwrap_or(f64::NAN));
        let count = digest.count();
        let percentiles = (count > 0).then_some(percentiles);
        RollupRow { number: Some(number.to_owned()), percentiles, ..self.row(count) }
    }

    /// A row with the sum and the extremes of a number.
    fn sums_row(&self, number: &str, sums: &Sums) -> RollupRow {
        let extremes = sums.min().zip(sums.max());
        RollupRow {
            number: Some(number.to_owned()),
            sums: extremes.map(|(min, max)| (sums.sum(), min, max)),
            ..self.row(sums.count())
        }
    }

    /// The dictionary of a dimension; an empty one where no row of the segment has it.
    fn dictionary(&self, dimension: &str) -> Result<Dictionary> {
        let reader = self.segment.text(dimension)?;
        reader.map_or_else(|| Ok(Dictionary::default()), |reader| reader.dictionary())
    }

    /// Counts of the values of a dimension: the day first, then each hour in which the value occurs.
    fn counts(&mut self, dimension: &str) -> Result<()> {
        let hours = self.hours.clone();
        let counts = self
            .segment
            .rollups(SectionKind::RollupCounts, dimension)
            .counts(self.at, hours.len())?;
        let Some(counts) = counts else { return Ok(()) };
        let dictionary = self.dictionary(dimension)?;
        let value_of = |code: u32| vec![(dimension.to_owned(), value_of(&dictionary, code))];
        for &(code, count) in &counts.totals {
            self.out.push(RollupRow { values: value_of(code), ..self.row(count) });
        }
        let by_hour = counts.hours.iter().flat_map(|counts| counts.chunks(hours.len().max(1)));
        for (&(code, _), counts) in counts.totals.iter().zip(by_hour) {
            for (hour, &count) in hours.iter().zip(counts).filter(|(_, count)| **count > 0) {
                let hour = Some(hour.clone());
                self.out.push(RollupRow { values: value_of(code), hour, ..self.row(count) });
            }
        }
        Ok(())
    }

    /// Counts of the pairs of values of two dimensions, which are kept by day only.
    fn pairs(&mut self, (first, second): (&str, &str)) -> Result<()> {
        let dictionaries = (self.dictionary(first)?, self.dictionary(second)?);
        let name = pair_name(first, second);
        self.segment.rollups(SectionKind::RollupPairs, &name).each_pair(
            self.at,
            |[a, b], count| {
                let values = vec![
                    (first.to_owned(), value_of(&dictionaries.0, a)),
                    (second.to_owned(), value_of(&dictionaries.1, b)),
                ];
                self.out.push(RollupRow { values, ..self.row(count) });
                Ok(())
            },
        )?;
        Ok(())
    }

    fn numbers(&mut self, number: &str) -> Result<()> {
        let hours = self.hours.clone();
        let numbers = self.segment.rollups(SectionKind::RollupNumbers, number).by_hour(
            self.at,
            hours.len(),
            Sums::read,
        )?;
        let Some((total, by_hour)) = numbers else { return Ok(()) };
        self.out.push(self.sums_row(number, &total));
        for (hour, sums) in hours.into_iter().zip(by_hour.iter().flatten()) {
            if sums.count() > 0 {
                self.out.push(RollupRow { hour: Some(hour), ..self.sums_row(number, sums) });
            }
        }
        Ok(())
    }

    fn numbers_by(&mut self, (dimension, number): (&str, &str)) -> Result<()> {
        let dictionary = self.dictionary(dimension)?;
        let name = pair_name(dimension, number);
        self.segment.rollups(SectionKind::RollupNumbersBy, &name).each_state(
            self.at,
            Sums::read,
            |code, sums| {
                let values = vec![(dimension.to_owned(), value_of(&dictionary, code))];
                self.out.push(RollupRow { values, ..self.sums_row(number, sums) });
                Ok(())
            },
        )?;
        Ok(())
    }
}

impl Rows<'_> {
    fn users(&mut self) -> Result<()> {
        let users = self.segment.rollups(SectionKind::RollupUsers, "").by_hour(
            self.at,
            self.hours.len(),
            Distinct::read,
        )?;
        let Some((total, by_hour)) = users else { return Ok(()) };
        self.out.push(self.users_row(&total));
        for (hour, sketch) in self.hours.iter().zip(by_hour.iter().flatten()) {
            self.out.push(RollupRow { hour: Some(hour.clone()), ..self.users_row(sketch) });
        }
        Ok(())
    }

    fn users_by(&mut self, dimension: &str) -> Result<()> {
        let dictionary = self.dictionary(dimension)?;
        self.segment.rollups(SectionKind::RollupUsersBy, dimension).each_state(
            self.at,
            Distinct::read,
            |code, sketch| {
                let values = vec![(dimension.to_owned(), value_of(&dictionary, code))];
                self.out.push(RollupRow { values, ..self.users_row(sketch) });
                Ok(())
            },
        )?;
        Ok(())
    }

    fn digests(&mut self, number: &str) -> Result<()> {
        let digests = self.segment.rollups(SectionKind::RollupDigests, number).by_hour(
            self.at,
            self.hours.len(),
            Digest::read,
        )?;
        let Some((mut total, by_hour)) = digests else { return Ok(()) };
        self.out.push(self.digest_row(number, &mut total));
        for (hour, mut digest) in self.hours.iter().zip(by_hour.into_iter().flatten()) {
            let row = self.digest_row(number, &mut digest);
            self.out.push(RollupRow { hour: Some(hour.clone()), ..row });
        }
        Ok(())
    }

    fn digests_by(&mut self, (dimension, number): (&str, &str)) -> Result<()> {
        let dictionary = self.dictionary(dimension)?;
        let name = pair_name(dimension, number);
        self.segment.rollups(SectionKind::RollupDigestsBy, &name).each_state(
            self.at,
            Digest::read,
            |code, digest| {
                let values = vec![(dimension.to_owned(), value_of(&dictionary, code))];
                self.out.push(RollupRow { values, ..self.digest_row(number, &mut digest.clone()) });
                Ok(())
            },
        )?;
        Ok(())
    }
}

/// The string of a code, `None` for "absent".
fn value_of(dictionary: &Dictionary, code: u32) -> Option<String> {
    dictionary.value(code as usize).map(str::to_owned)
}
