//! Partial groups as a table that the optimizer puts in the place of `events`: sources are read in parallel, where
//! directories say that there are much fewer groups than rows.
//!
//! ```text
//! SELECT tenant_id, count(*) FROM events GROUP BY 1      SELECT tenant_id, sum(rows) FROM (partial groups) GROUP BY 1
//! ```
//!
//! Each source returns its own partial groups, so the operator above merges those with equal keys.
//!
//! Whether it is worth it is decided by what could be, not by what is there:
//!
//! ```text
//! GROUP BY tenant_id, day        40 tenants × 90 days, 1,000,000 rows a segment      3,600 groups: yes
//! GROUP BY string_props['path']  300,000 values, 1,000,000 rows a segment            600,000 in two parts, more than half: no
//! GROUP BY string_props['path']  5,000 values, 5,000 rows in all                     yes: so few rows are read either way
//! ```

use std::{fmt, sync::Arc};

use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::TaskContext;
use inlay_engine::rows::{Morsel, Scan, Source};

use super::{
    aggregate_spec::AggregateSpec,
    partitioned_work::{Batches, GroupSource, LearnedFilter, PartitionedWork, Pieces},
    pre_aggregate::SourceAggregator,
};
use crate::tables::{Conditions, broken};

/// Parts of a source that are read beside each other where there are few sources.
const PARTS: usize = 2;
/// Rows that are few either way.
const FEW_ROWS: usize = 8_192;

/// Groups of events and what they come to.
#[derive(Clone)]
pub struct GroupsTable {
    /// Segments and rows in memory: the sources.
    scan: Arc<Scan>,
    /// Which rows count: of which tenants and events, of which times, and with which properties.
    conditions: Conditions,
    /// Keys and measures.
    spec: AggregateSpec,
}

impl GroupsTable {
    /// Of the rows that meet the conditions.
    pub fn new(scan: Arc<Scan>, spec: AggregateSpec, conditions: Conditions) -> Self {
        Self { scan, conditions, spec }
    }

    /// Whether there are much fewer groups than rows, in all and in no source nearly as many, as far as directories tell.
    ///
    /// Errors: damage of a segment.
    pub fn is_worth_it(&self) -> Result<bool> {
        let (mut groups, mut rows) = (0usize, 0usize);
        for source in self.scan.sources() {
            let here = rows_of(source);
            let Some(of_part) = self.spec.groups(source, here)? else { return Ok(false) };
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

/// Rows of a source, whatever the conditions.
fn rows_of(source: &Source) -> usize {
    source.series().iter().map(|series| series.rows.len()).sum()
}

impl fmt::Debug for GroupsTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupsTable").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// A source by its index in the scan, and which of its rows; all of them if none are named.
type Piece = (usize, Option<Vec<Morsel>>);

impl GroupsTable {
    /// The rows of a source that conditions on tenant, event and time leave.
    fn morsels(&self, source: &Source) -> Result<Vec<Morsel>> {
        self.conditions.morsels(source).map_err(broken)
    }
}

impl GroupSource for GroupsTable {
    type PartitionedWork = Self;

    fn schema(&self) -> &SchemaRef {
        &self.spec.schema
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
            let morsels = self.morsels(source)?;
            let rows = |morsels: &[Morsel]| morsels.iter().map(Morsel::rows).sum();
            for morsels in morsels.chunks(morsels.len().div_ceil(PARTS).max(1)) {
                pieces.push((rows(morsels), (at, Some(morsels.to_vec()))));
            }
        }
        Ok((self.clone(), pieces))
    }

    fn rows_of(&self, rows_read: usize) -> Result<usize> {
        let mut groups = 0usize;
        for source in self.scan.sources() {
            let here = rows_of(source);
            groups = groups.saturating_add(self.spec.groups(source, here)?.unwrap_or(here));
        }
        Ok(groups.min(rows_read))
    }
}

impl PartitionedWork for GroupsTable {
    type Piece = Piece;

    fn schema(&self) -> &SchemaRef {
        &self.spec.schema
    }

    /// What operators above learn does not come here: between them stands an aggregate whose groups have other names.
    fn batches(&self, (at, morsels): Piece, _: &LearnedFilter, _: &TaskContext) -> Result<Batches> {
        let none = || Box::new(std::iter::empty());
        let Some(source) = self.scan.sources().get(at) else { return Ok(none()) };
        let morsels = match morsels {
            Some(morsels) => morsels,
            None => self.morsels(source)?,
        };
        let mut groups = SourceAggregator::new(&self.spec, source)?;
        for morsel in morsels {
            let filter = &self.conditions.filter;
            if !filter.is_empty() && source.excludes(&morsel, filter).map_err(broken)? {
                continue;
            }
            groups.add(&morsel)?;
        }
        Ok(Box::new(groups.batches()?.into_iter().map(Ok)))
    }
}
