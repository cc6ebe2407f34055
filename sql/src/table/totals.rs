//! Groups of rows as a table that the optimizer puts in the place of `events`: shared out among partitions, and worth it
//! where directories tell that there are much fewer groups than rows.
//!
//! A group may come once from each source, and again: whoever reads this adds up what is alike.

use std::{fmt, sync::Arc};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    common::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::{Expr, TableType},
    physical_plan::{
        ExecutionPlan,
        stream::RecordBatchStreamAdapter,
        streaming::{PartitionStream, StreamingTableExec},
    },
};
use inlay_engine::rows::{Chosen, Scan, Source, Unit};

use super::{
    condition::Conditions,
    tally::{Groups, Key, Wanted, broken},
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
    /// Of the rows that meet the conditions. A key's column is called as it is in `events`.
    pub fn new(
        scan: Arc<Scan>,
        keys: Vec<(String, Key)>,
        numbers: Vec<String>,
        conditions: Conditions,
    ) -> Self {
        let wanted = Wanted::new(keys, numbers, conditions.filter.clone());
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

#[async_trait]
impl TableProvider for Totals {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.wanted.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions = state.config().target_partitions().max(1);
        let totals = Arc::new(self.clone());
        let shares = self.shares(partitions)?.into_iter().map(|work| {
            let share = Share { totals: Arc::clone(&totals), work };
            Arc::new(share) as Arc<dyn PartitionStream>
        });
        let schema = Arc::clone(&self.wanted.schema);
        let plan =
            StreamingTableExec::try_new(schema, shares.collect(), projection, [], false, limit)?;
        Ok(Arc::new(plan))
    }
}

/// A source by its place in the scan, and which of its rows; all of them if none are named.
type Work = (usize, Option<Vec<Unit>>);

impl Totals {
    fn units(&self, source: &Source) -> Result<Vec<Unit>> {
        let Conditions { tenants, events, .. } = &self.conditions;
        let chosen = Chosen { tenants: tenants.as_deref(), names: events.as_deref() };
        source.units(chosen, &self.conditions.times()).map_err(broken)
    }

    /// Shares sources out, or parts of them where there are few.
    fn shares(&self, partitions: usize) -> Result<Vec<Vec<Work>>> {
        let mut work: Vec<(usize, Work)> = Vec::new();
        let sources = self.scan.sources();
        for (at, source) in sources.iter().enumerate() {
            if sources.len() >= partitions * 4 {
                work.push((rows_of(source), (at, None)));
                continue;
            }
            let units = self.units(source)?;
            let rows = |units: &[Unit]| units.iter().map(Unit::rows).sum();
            for units in units.chunks(units.len().div_ceil(PARTS).max(1)) {
                work.push((rows(units), (at, Some(units.to_vec()))));
            }
        }
        // The largest first, each to who has the least.
        work.sort_by_key(|(rows, _)| std::cmp::Reverse(*rows));
        let mut shares: Vec<(usize, Vec<Work>)> = vec![(0, Vec::new()); partitions];
        for (rows, work) in work {
            if let Some(share) = shares.iter_mut().min_by_key(|(rows, _)| *rows) {
                share.0 += rows;
                share.1.push(work);
            }
        }
        Ok(shares.into_iter().map(|(_, work)| work).collect())
    }
}

/// What a partition reads.
struct Share {
    totals: Arc<Totals>,
    work: Vec<Work>,
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").field("work", &self.work.len()).finish_non_exhaustive()
    }
}

impl PartitionStream for Share {
    fn schema(&self) -> &SchemaRef {
        &self.totals.wanted.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let totals = Arc::clone(&self.totals);
        let schema = Arc::clone(&totals.wanted.schema);
        let batches = Batches { totals, work: self.work.clone().into_iter(), made: Vec::new() };
        Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches)))
    }
}

/// Batches of a partition, source by source.
struct Batches {
    totals: Arc<Totals>,
    work: std::vec::IntoIter<Work>,
    /// What was made and is not handed on, the first at the end.
    made: Vec<RecordBatch>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.made.pop() {
                return Some(Ok(batch));
            }
            let (at, units) = self.work.next()?;
            let source = self.totals.scan.sources().get(at)?;
            let mut made = match self.totals.add_up(source, units) {
                Ok(made) => made,
                Err(error) => return Some(Err(error)),
            };
            made.reverse();
            self.made = made;
        }
    }
}

impl Totals {
    fn add_up(&self, source: &Source, units: Option<Vec<Unit>>) -> Result<Vec<RecordBatch>> {
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
        groups.batches()
    }
}
