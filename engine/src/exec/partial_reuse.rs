//! Using partial results in a query, and taking in those that it had to make.

use std::sync::Arc;

use super::{
    groups::{Groups, NO_GROUP},
    partial_cache::{Known, Positions, Table, question},
    partial_states::PartialStates,
    query_cache::{Part, QueryCache},
    scan_stats::ScanStats,
    sink::Sink,
};
use crate::{
    error::Result,
    query::{Metric, Query},
    store::Segments,
};

/// The number of a group that was not looked up yet.
const UNKNOWN: u32 = NO_GROUP - 1;

/// The partial results of a question, as one query uses them.
pub struct PartialReuse<'a> {
    kept: &'a QueryCache,
    question: Arc<[u8]>,
    table: Arc<Table>,
    has_changed: bool,
    /// By position among the names of the table: the number of the group in this query.
    numbers: Vec<u32>,
    positions: Positions,
}

/// What a part gave: its groups, a cell for each, and what was looked at for them.
pub struct NewPartials {
    /// Which part.
    pub part: usize,
    /// The bucket that holds it.
    pub bucket: usize,
    /// Its groups with their cells; `None` when they are too much to be kept.
    pub cells: Option<(Groups, PartialStates)>,
    /// What was looked at.
    pub reads: ScanStats,
}

impl<'a> PartialReuse<'a> {
    /// What is known about a query over `parts` of `segments`. `users` is the list of users' numbers if
    /// the query counts users by number and others know that list. `None` when nothing is kept of such
    /// a question.
    pub fn open(
        kept: &'a QueryCache,
        query: &Query,
        segments: &Segments,
        parts: &[Part],
        users: Option<u64>,
    ) -> Option<Self> {
        if query.metric == Metric::Distinct && users.is_none() {
            return None;
        }
        let cells = PartialStates::of(query.metric);
        let question = question(query);
        let before = kept.partials(&question);
        let table = match before {
            Some(table) if table.is_of(segments.id(), users) => table,
            before => {
                let id = |part: &Part| {
                    let segment = segments.get(part.segment as usize)?;
                    Some((segment.meta().uuid, part.runs.0, part.day.map(|day| day.day)))
                };
                let ids = parts.iter().filter_map(id);
                let mut table = Table::new(cells, segments.id(), users, ids);
                if let Some(before) = before {
                    table.take_over(&before);
                }
                Arc::new(table)
            }
        };
        let numbers = vec![UNKNOWN; table.names().len()];
        let positions = Positions::default();
        Some(Self { kept, question, table, has_changed: false, numbers, positions })
    }

    /// Whether nothing is known of a part yet.
    pub fn wants(&self, part: usize) -> bool {
        matches!(self.table.known(part), Known::Nothing)
    }

    /// Bytes that may be added.
    pub fn room(&self) -> usize {
        self.kept.table_bytes_max().saturating_sub(self.table.bytes())
    }

    /// Adds all of a part to a bucket, if what it gives is known. Returns whether it is.
    pub fn add(
        &mut self,
        part: usize,
        bucket: usize,
        sink: &mut Sink,
        reads: &mut ScanStats,
    ) -> Result<bool> {
        let Known::PartialStates(span) = self.table.known(part) else { return Ok(false) };
        reads.add(&span.reads);
        for (cell, &name) in (span.start as usize..).zip(self.table.groups(span)) {
            let Some(number) = self.numbers.get_mut(name as usize) else { continue };
            if *number == UNKNOWN {
                let name = self.table.names().get(name as usize).and_then(|name| name.as_deref());
                *number = sink.groups.number(name);
            }
            sink.add_state(*number, bucket, self.table.cells().state(cell))?;
        }
        Ok(true)
    }

    /// Takes in what was made, and adds it to the query.
    pub fn learn(
        &mut self,
        made: NewPartials,
        sink: &mut Sink,
        reads: &mut ScanStats,
    ) -> Result<()> {
        self.has_changed = true;
        let table = Arc::make_mut(&mut self.table);
        let Some((groups, cells)) = made.cells else {
            table.refuse(made.part);
            return Ok(());
        };
        table.learn(made.part, groups.names(), &cells, made.reads, &mut self.positions);
        self.numbers.resize(table.names().len(), UNKNOWN);
        self.add(made.part, made.bucket, sink, reads)?;
        Ok(())
    }
}

/// What was learnt is kept, also by a query that is refused in the end.
impl Drop for PartialReuse<'_> {
    fn drop(&mut self) {
        if self.has_changed {
            self.kept.keep_partials(Arc::clone(&self.question), Arc::clone(&self.table));
        }
    }
}
