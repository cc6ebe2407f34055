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
use inlay_engine::rows::{Chosen, Grain, Scan, Source, Unit};

use super::{
    condition::Conditions,
    tally::{Groups, Key, PLACES_MAX, Wanted, bounds, broken, step},
};

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

    /// Whether there are much fewer groups than rows, as far as directories tell.
    ///
    /// Errors: damage of a segment.
    pub fn is_worth_it(&self) -> Result<bool> {
        let (mut groups, mut rows) = (0usize, 0usize);
        for source in self.scan.sources() {
            let here: usize = source.series().iter().map(|series| series.rows.len()).sum();
            let whole = self.outer_groups(source);
            let values = self.values(source)?;
            groups = groups.saturating_add(whole.saturating_mul(values).min(here));
            rows += here;
            if values > PLACES_MAX / 16 {
                return Ok(false);
            }
        }
        // A few rows are few either way.
        Ok(groups <= rows / 4 || rows < FEW_ROWS)
    }

    /// About how many groups the keys make that are those of whole strips.
    fn outer_groups(&self, source: &Source) -> usize {
        let has = |wanted: &Key| self.wanted.keys.iter().any(|(_, key)| key == wanted);
        let named = match (has(&Key::Tenant), has(&Key::Event)) {
            (true, true) => source.series().len(),
            (true, false) => source.tenants().len(),
            (false, true) => source.names().len(),
            (false, false) => 1,
        };
        named.saturating_mul(span_of(source, self.wanted.grain()))
    }

    fn values(&self, source: &Source) -> Result<usize> {
        let mut product = 1usize;
        for (_, key) in &self.wanted.keys {
            if let Key::Text(name) = key {
                let values = source.values(name).map_err(broken)?;
                product = product.saturating_mul(values.saturating_add(1));
            }
        }
        Ok(product)
    }
}

/// Hours or days from the first to the last row of a source.
fn span_of(source: &Source, grain: Option<Grain>) -> usize {
    let Some(grain) = grain else { return 1 };
    let (first, last) = bounds(source, grain);
    usize::try_from((last - first) / step(grain))
        .map_or(usize::MAX, |steps| steps.saturating_add(1))
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
type Work = (usize, Option<Unit>);

impl Totals {
    fn units(&self, source: &Source) -> Result<Vec<Unit>> {
        let Conditions { tenants, events, .. } = &self.conditions;
        let chosen = Chosen { tenants: tenants.as_deref(), names: events.as_deref() };
        source.units(chosen, &self.conditions.times()).map_err(broken)
    }

    /// Shares sources out, or their units where there are few.
    fn shares(&self, partitions: usize) -> Result<Vec<Vec<Work>>> {
        let mut work: Vec<(usize, Work)> = Vec::new();
        let sources = self.scan.sources();
        for (at, source) in sources.iter().enumerate() {
            if sources.len() >= partitions * 4 {
                let rows = source.series().iter().map(|series| series.rows.len()).sum();
                work.push((rows, (at, None)));
            } else {
                let units = self.units(source)?.into_iter();
                work.extend(units.map(|unit| (unit.rows(), (at, Some(unit)))));
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
            let (at, unit) = self.work.next()?;
            let source = self.totals.scan.sources().get(at)?;
            let mut made = Vec::new();
            if let Err(error) = self.totals.add_up(source, unit, &mut made) {
                return Some(Err(error));
            }
            made.reverse();
            self.made = made;
        }
    }
}

impl Totals {
    fn add_up(
        &self,
        source: &Source,
        unit: Option<Unit>,
        made: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let units = match unit {
            Some(unit) => vec![unit],
            None => self.units(source)?,
        };
        let mut groups = Groups::new(&self.wanted, source)?;
        for unit in units {
            let filter = &self.conditions.filter;
            if !filter.is_empty() && source.excludes(&unit, filter).map_err(broken)? {
                continue;
            }
            groups.add(&unit, made)?;
        }
        groups.hand_on(made)
    }
}
