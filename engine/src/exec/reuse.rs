//! Using partial results in a query, and making those that are missing.

use std::sync::Arc;

use super::{
    groups::NO_GROUP,
    kept::{Kept, Part},
    partials::{Cells, Known, LISTED_ROWS, PART_CELLS_MAX, Positions, Span, Table, question},
    reads::Reads,
    segments::{self, Plan},
    sink::Sink,
    window::Window,
};
use crate::{
    error::{Error, Limit, Result},
    query::{Metric, Query},
    segment::Segment,
    store::Segments,
};

/// The number of a group that was not looked up yet.
const UNKNOWN: u32 = NO_GROUP - 1;

/// The partial results of a question, as one query uses them.
pub struct Partials<'a> {
    kept: &'a Kept,
    question: Box<[u8]>,
    table: Arc<Table>,
    has_changed: bool,
    /// By position among the names of the table: the number of the group in this query.
    numbers: Vec<u32>,
    positions: Positions,
}

impl<'a> Partials<'a> {
    /// What is known about a query over `parts` of `segments`. `users` is the list of users' numbers if
    /// the query counts users by number and others know that list. `None` when nothing is kept of such
    /// a question.
    pub fn open(
        kept: &'a Kept,
        query: &Query,
        segments: &Segments,
        parts: &[Part],
        users: Option<u64>,
    ) -> Option<Self> {
        if query.metric == Metric::Distinct && users.is_none() {
            return None;
        }
        let cells = Cells::of(query.metric)?;
        let question = question(query);
        let before = kept.partials(&question);
        let table = match before {
            Some(table) if table.is_of(segments.id(), users) => table,
            before => {
                let id = |part: &Part| {
                    let segment = segments.get(part.segment as usize)?;
                    Some((segment.meta().uuid, part.runs.0))
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

    /// Adds all of a part to a bucket, if what it gives is known or can be. Returns whether it did.
    pub fn add(
        &mut self,
        at: usize,
        part: &Part,
        bucket: usize,
        source: (&Segment, &Plan<'_>),
        (sink, reads): (&mut Sink, &mut Reads),
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<bool> {
        let span = match self.table.known(at) {
            Known::Cells(span) => span,
            Known::TooMuch => return Ok(false),
            Known::Nothing => match self.make(at, part, source, sink, check)? {
                Some(span) => span,
                None => return Ok(false),
            },
        };
        reads.add(&span.reads);
        for (cell, &name) in (span.start as usize..).zip(self.table.groups(span)) {
            let Some(number) = self.numbers.get_mut(name as usize) else { continue };
            if *number == UNKNOWN {
                let name = self.table.names().get(name as usize).and_then(|name| name.as_deref());
                *number = sink.groups.number(name);
            }
            sink.add_cell(*number, bucket, self.table.cells(), cell)?;
        }
        Ok(true)
    }

    /// Reads a part; `None` when it has too much to be kept.
    fn make(
        &mut self,
        at: usize,
        part: &Part,
        (segment, plan): (&Segment, &Plan<'_>),
        sink: &mut Sink,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<Span>> {
        self.has_changed = true;
        let table = Arc::make_mut(&mut self.table);
        if matches!(plan.query.metric, Metric::Percentile(_)) && part.rows >= LISTED_ROWS {
            table.refuse(at);
            return Ok(None);
        }
        let (first_ms, last_ms) = part.bounds;
        let window = Window { from_ms: first_ms, to_ms: last_ms + 1, starts: vec![first_ms] };
        let whole = Plan { window: &window, ..*plan };
        let runs = part.runs.0 as usize..part.runs.1 as usize;
        let charged = sink.charge().bytes();
        let mut of_part = sink.lend(plan.query.metric);
        of_part.limit_cells(PART_CELLS_MAX);
        let mut reads = Reads::default();
        let read = segments::scan(segment, runs, &whole, &mut of_part, &mut reads, check);
        let (groups, cells) = sink.take_back(of_part, charged);
        let known = match (read, &cells) {
            (Ok(()), Some(cells)) => {
                table.learn(at, groups.names(), cells, reads, &mut self.positions)
            }
            (Ok(()), None) => Known::TooMuch,
            // In the states of the query there may be room for all of it.
            (Err(Error::Limit { limit: Limit::QueryMemory, .. }), _) => Known::TooMuch,
            (Err(error), _) => return Err(error),
        };
        let Known::Cells(span) = known else {
            table.refuse(at);
            return Ok(None);
        };
        sink.charge().add(cells.map_or(0, |cells| cells.bytes()))?;
        self.numbers.resize(table.names().len(), UNKNOWN);
        Ok(Some(span))
    }
}

/// What was learnt is kept, also by a query that is refused in the end.
impl Drop for Partials<'_> {
    fn drop(&mut self) {
        if self.has_changed {
            let question = std::mem::take(&mut self.question);
            self.kept.keep_partials(question, Arc::clone(&self.table));
        }
    }
}
