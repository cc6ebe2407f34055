//! Which properties rows of a segment have.

use std::sync::OnceLock;

use super::Sealed;
use crate::{
    error::Result,
    scan::{
        row_ranges::{Morsel, RowRange},
        vectors::{block_of, by_vector, read_ints},
    },
    segment::SectionKind,
};

impl Sealed {
    /// Names of string properties that rows of it have. The segment is others' too: theirs are not told, and not paid
    /// for again.
    ///
    /// Errors: `Corrupt`.
    pub fn texts(&self) -> Result<&[String]> {
        let has_any = |name: &str, morsel: &Morsel, block: usize| {
            let Some(reader) = self.file.text(name)? else { return Ok(false) };
            if reader.zone(block).is_some_and(|zone| zone.max == 0) {
                return Ok(false);
            }
            let mut has_any = false;
            read_ints(&reader.codes(block)?, morsel, |here| {
                has_any |= here.iter().any(|code| *code > 0);
            })?;
            Ok(has_any)
        };
        self.properties(&self.text_names, SectionKind::TextValues, &has_any)
    }

    /// Names of numeric properties that rows of it have.
    ///
    /// Errors: `Corrupt`.
    pub fn numbers(&self) -> Result<&[String]> {
        let has_any = |name: &str, morsel: &Morsel, block: usize| {
            let Some(reader) = self.file.numbers(name)? else { return Ok(false) };
            if reader.zone(block).is_some_and(|zone| zone.max < zone.min) {
                return Ok(false);
            }
            let (block, mut has_any) = (reader.block(block)?, false);
            let read = |at: usize, to: &mut [f64]| block.read_rows(at, to);
            by_vector(morsel, read, |here| has_any |= here.iter().any(|number| !number.is_nan()))?;
            Ok(has_any)
        };
        self.properties(&self.number_names, SectionKind::Numbers, &has_any)
    }

    /// Names of properties of which some row here has a value, found once.
    fn properties<'a>(
        &'a self,
        found: &'a OnceLock<Vec<String>>,
        kind: SectionKind,
        has_any: &dyn Fn(&str, &Morsel, usize) -> Result<bool>,
    ) -> Result<&'a [String]> {
        if let Some(names) = found.get() {
            return Ok(names);
        }
        // Alone in its segment it has what the segment has.
        let is_alone = self.file.namespaces().len() == 1;
        let mut names = Vec::new();
        for name in self.file.names(kind) {
            let mut is_there = is_alone;
            for morsel in self.all_units() {
                if is_there {
                    break;
                }
                is_there = has_any(name, &morsel, block_of(&morsel).unwrap_or_default())?;
            }
            if is_there {
                names.push(name.to_owned());
            }
        }
        Ok(found.get_or_init(|| names))
    }

    /// All rows, block by block. Series follow each other, and so do their rows.
    fn all_units(&self) -> impl Iterator<Item = Morsel> {
        let mut series = self.series().iter().enumerate();
        let mut rest: Option<RowRange> = None;
        std::iter::from_fn(move || {
            let mut row_ranges: Vec<RowRange> = Vec::new();
            loop {
                let next = rest.take().or_else(|| {
                    let (at, series) = series.next()?;
                    Some(RowRange { series: at, rows: series.rows.clone() })
                });
                let Some(row_range) = next else { break };
                let (start, end) = (row_range.rows.start, row_range.rows.end);
                let block = row_ranges.first().map_or(start, |first| first.rows.start);
                if Self::block_of(start) != Self::block_of(block) {
                    rest = Some(row_range);
                    break;
                }
                let cut = Self::block_end(start).min(end);
                row_ranges.push(RowRange { series: row_range.series, rows: start..cut });
                if cut < end {
                    rest = Some(RowRange { series: row_range.series, rows: cut..end });
                    break;
                }
            }
            (!row_ranges.is_empty()).then_some(Morsel { row_ranges })
        })
    }
}
