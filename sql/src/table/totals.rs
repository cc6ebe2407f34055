//! Groups of rows as a table that the optimizer puts in the place of `events`: shared out among partitions, and worth it
//! where directories tell that there are much fewer groups than rows.
//!
//! A group may come once from each source, and again: whoever reads this adds up what is alike.

use std::{fmt, sync::Arc};

use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::TaskContext;
use inlay_engine::rows::{Scan, Source, Unit};

use super::{
    condition::Conditions,
    errors::broken,
    shares::{Batches, Pieces, Readable, Work},
    tally::Groups,
    wanted::Wanted,
};

/// Parts of a source that are read beside each other where there are few sources.
const PARTS: usize = 2;
/// Rows that are few either way.
const FEW_ROWS: usize = 8_192;

/// Groups of events and what they come to.
#[derive(Clone)]
pub struct Totals {
    scan: Arc<Scan>,
    conditions: Conditions,
    wanted: Wanted,
}

impl Totals {
    /// Of the rows that meet the conditions.
    pub fn new(scan: Arc<Scan>, wanted: Wanted, conditions: Conditions) -> Self {
        Self { scan, conditions, wanted }
    }

    /// Whether there are much fewer groups than rows, in all and in no source nearly as many, as far as directories tell.
    ///
    /// Errors: damage of a segment.
    pub fn is_worth_it(&self) -> Result<bool> {
        let (mut groups, mut rows) = (0usize, 0usize);
        for source in self.scan.sources() {
            let here = rows_of(source);
            let Some(of_part) = self.wanted.groups(source, here)? else { return Ok(false) };
            let of_source = of_part.saturating_mul(PARTS).min(here);
            if of_source > here / 2 && here > FEW_ROWS {
                return Ok(false);
            }
            groups += of_source;
            rows += here;
        }
        Ok(groups <= rows / 4 || rows <= FEW_ROWS)
    }
}

fn rows_of(source: &Source) -> usize {
    source.series().iter().map(|series| series.rows.len()).sum()
}

impl fmt::Debug for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Totals").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

/// A source by its place in the scan, and which of its rows; all of them if none are named.
type Piece = (usize, Option<Vec<Unit>>);

impl Totals {
    fn units(&self, source: &Source) -> Result<Vec<Unit>> {
        self.conditions.units(source).map_err(broken)
    }
}

impl Readable for Totals {
    type Work = Self;

    fn schema(&self) -> &SchemaRef {
        &self.wanted.schema
    }

    /// The sources, or parts of them where there are few.
    fn pieces(&self, partitions: usize) -> Result<(Self, Pieces<Self>)> {
        let mut pieces = Vec::new();
        let sources = self.scan.sources();
        for (at, source) in sources.iter().enumerate() {
            if sources.len() >= partitions * 4 {
                pieces.push((rows_of(source), (at, None)));
                continue;
            }
            let units = self.units(source)?;
            let rows = |units: &[Unit]| units.iter().map(Unit::rows).sum();
            for units in units.chunks(units.len().div_ceil(PARTS).max(1)) {
                pieces.push((rows(units), (at, Some(units.to_vec()))));
            }
        }
        Ok((self.clone(), pieces))
    }

    fn rows_of(&self, rows_read: usize) -> Result<usize> {
        let mut groups = 0usize;
        for source in self.scan.sources() {
            let here = rows_of(source);
            groups = groups.saturating_add(self.wanted.groups(source, here)?.unwrap_or(here));
        }
        Ok(groups.min(rows_read))
    }
}

impl Work for Totals {
    type Piece = Piece;

    fn schema(&self) -> &SchemaRef {
        &self.wanted.schema
    }

    fn batches(&self, (at, units): Piece, _: &TaskContext) -> Result<Batches> {
        let none = || Box::new(std::iter::empty());
        let Some(source) = self.scan.sources().get(at) else { return Ok(none()) };
        let units = match units {
            Some(units) => units,
            None => self.units(source)?,
        };
        let mut groups = Groups::new(&self.wanted, source)?;
        for unit in units {
            let filter = &self.conditions.filter;
            if !filter.is_empty() && source.excludes(&unit, filter).map_err(broken)? {
                continue;
            }
            groups.add(&unit)?;
        }
        Ok(Box::new(groups.batches()?.into_iter().map(Ok)))
    }
}
