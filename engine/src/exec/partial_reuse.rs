//! Uses cached partial results in a query, and adds new ones to the cache.

use std::sync::Arc;

use super::{
    groups::{Groups, NO_GROUP},
    partial_cache::{Known, Positions, Table, cache_key},
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
    cache_key: Arc<[u8]>,
    table: Arc<Table>,
    has_changed: bool,
    is_first: bool,
    /// Number of each group of the table in this query.
    numbers: Vec<u32>,
    positions: Positions,
}

/// New results of a part: groups with a cell each, and statistics of the scan.
pub struct NewPartials {
    /// Index of the part among all parts of the query.
    pub part: usize,
    /// Index of the bucket that holds the whole part.
    pub bucket: usize,
    /// Groups with their cells; `None` when the part is not cacheable.
    pub cells: Option<(Groups, PartialStates)>,
    /// Statistics of the scan.
    pub reads: ScanStats,
}

impl<'a> PartialReuse<'a> {
    /// The cached results of a query over `parts` of `segments`. `users` is the id of the interner
    /// if the query counts users by number and other queries share it. `None` when results of such
    /// a query are not cached.
    pub fn open(
        kept: &'a QueryCache,
        (query, is_attempt): (&Query, bool),
        segments: &Segments,
        parts: &[Part],
        users: Option<u64>,
    ) -> Option<Self> {
        if query.metric == Metric::Distinct && users.is_none() {
            return None;
        }
        let cells = PartialStates::of(query.metric);
        let cache_key = cache_key(query);
        let before = kept.partials(&cache_key);
        let is_first = before.is_none();
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
        // A table without results says that the question was asked, and not only tried.
        let has_changed = is_first && !is_attempt;
        Some(Self { kept, cache_key, table, has_changed, is_first, numbers, positions })
    }

    /// Whether a part has no cached result and may get one.
    pub fn wants(&self, part: usize) -> bool {
        matches!(self.table.known(part), Known::Nothing)
    }

    /// Whether the question is asked for the first time: what is read as quickly as it is cached is not cached yet.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// Bytes that may be added to the table.
    pub fn room(&self) -> usize {
        self.kept.table_bytes_max().saturating_sub(self.table.bytes())
    }

    /// Adds the cached cells of a part to a bucket. Returns whether there are any.
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

    /// Adds new results to the table and to the query.
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

/// New results are cached also when the query fails in the end.
impl Drop for PartialReuse<'_> {
    fn drop(&mut self) {
        let is_mark = self.table.names().is_empty();
        if self.has_changed && !(is_mark && self.kept.partials(&self.cache_key).is_some()) {
            self.kept.keep_partials(Arc::clone(&self.cache_key), Arc::clone(&self.table));
        }
    }
}
