//! The rows of a segment's rollups: what each series adds up to, by value and hour.

use super::Inspection;
use crate::{
    base::time::{DAY_MS, HOUR_MS, day_name},
    error::Result,
    segment::{Dictionary, Run, SectionKind, Segment, parts_of_name},
    sketch::sums::Sums,
};

/// One row of a rollup.
#[derive(Debug, Clone, PartialEq)]
pub struct RollupRow {
    /// Whose events.
    pub namespace: u32,
    /// Tenant.
    pub tenant: String,
    /// Event name.
    pub event: String,
    /// The dimensions, and the value of each; `None` is "absent". None at all for the whole series.
    pub values: Vec<(String, Option<String>)>,
    /// The hour, `None` for all of the day.
    pub hour: Option<String>,
    /// The numeric property that is added up, `None` for a count of rows.
    pub number: Option<String>,
    /// Rows, or rows with a number.
    pub count: u64,
    /// Sum, smallest and largest number.
    pub sums: Option<(f64, f64, f64)>,
}

impl Inspection {
    /// The rows of the rollups of a segment: series by series, first those of the whole day.
    ///
    /// Errors: `Corrupt` when a rollup, the run directory or a dictionary is damaged.
    pub fn rollups(&self, uuid: uuid::Uuid) -> Result<Vec<RollupRow>> {
        let segment = self.segment(uuid)?;
        let mut rows = Vec::new();
        for (index, &position) in segment.rolled_up().iter().enumerate() {
            let Some(run) = segment.runs().runs().get(position as usize) else { continue };
            Rows { segment: &segment, run, index, out: &mut rows }.all()?;
        }
        Ok(rows)
    }
}

/// The rows of one series.
struct Rows<'a> {
    segment: &'a Segment,
    run: &'a Run,
    index: usize,
    out: &'a mut Vec<RollupRow>,
}

impl Rows<'_> {
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
        Ok(())
    }

    fn row(&self, count: u64) -> RollupRow {
        RollupRow {
            namespace: self.run.key.namespace.0,
            tenant: self.run.key.tenant.to_string(),
            event: self.run.key.name.to_string(),
            values: Vec::new(),
            hour: None,
            number: None,
            count,
            sums: None,
        }
    }

    fn sums_row(&self, number: &str, sums: &Sums) -> RollupRow {
        let extremes = sums.min().zip(sums.max());
        RollupRow {
            number: Some(number.to_owned()),
            sums: extremes.map(|(min, max)| (sums.sum(), min, max)),
            ..self.row(sums.count())
        }
    }

    fn hours(&self) -> Vec<String> {
        let name = |hour: i64| {
            let day = day_name(hour.div_euclid(DAY_MS / HOUR_MS));
            format!("{day} {:02}:00", hour.rem_euclid(DAY_MS / HOUR_MS))
        };
        self.run.hours.iter().map(|&(hour, _)| name(hour)).collect()
    }

    fn dictionary(&self, dimension: &str) -> Result<Dictionary> {
        let reader = self.segment.text(dimension)?;
        reader.map_or_else(|| Ok(Dictionary::default()), |reader| reader.dictionary())
    }

    fn counts(&mut self, dimension: &str) -> Result<()> {
        let hours = self.hours();
        let counts = self.segment.rollup_counts(self.index, dimension, hours.len(), true)?;
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

    fn pairs(&mut self, (first, second): (&str, &str)) -> Result<()> {
        let pairs = self.segment.rollup_pairs(self.index, (first, second))?;
        let Some(pairs) = pairs else { return Ok(()) };
        let dictionaries = (self.dictionary(first)?, self.dictionary(second)?);
        for (a, b, count) in pairs {
            let values = vec![
                (first.to_owned(), value_of(&dictionaries.0, a)),
                (second.to_owned(), value_of(&dictionaries.1, b)),
            ];
            self.out.push(RollupRow { values, ..self.row(count) });
        }
        Ok(())
    }

    fn numbers(&mut self, number: &str) -> Result<()> {
        let hours = self.hours();
        let numbers = self.segment.rollup_numbers(self.index, number, hours.len(), true)?;
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
        let states = self.segment.rollup_numbers_by(self.index, dimension, number)?;
        let Some(states) = states else { return Ok(()) };
        let dictionary = self.dictionary(dimension)?;
        for (code, sums) in states {
            let values = vec![(dimension.to_owned(), value_of(&dictionary, code))];
            self.out.push(RollupRow { values, ..self.sums_row(number, &sums) });
        }
        Ok(())
    }
}

fn value_of(dictionary: &Dictionary, code: u32) -> Option<String> {
    dictionary.value(code as usize).map(str::to_owned)
}
