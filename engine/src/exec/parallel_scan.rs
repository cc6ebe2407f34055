//! Reads the parts of a query that the cache does not know, on as many cores as are free.
//!
//! The parts are a list, and each worker thread takes the next one: the thread of the caller, and
//! helpers when there is enough to read. Each thread has states of its own and a share of the
//! query's memory; at the end the states are merged. The number of helpers is bounded for all
//! queries together: a query that runs alone is fast, and many at once are not slower than without
//! helpers.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{
    partial_cache::{LISTED_ROWS, PART_CELLS_MAX, bytes_of},
    partial_reuse::NewPartials,
    plan::Plan,
    query_cache::Part,
    rollups::Shape,
    scan_stats::ScanStats,
    segments::OpenSegment,
    sink::Sink,
    window::Window,
};
use crate::{
    error::{Error, Limit, Result},
    query::Metric,
    store::Segments,
};

/// Rows for which one more thread is worth its start.
const ROWS_A_HELPER: u64 = 1 << 16;

/// A part to be read.
pub struct ScanTask {
    /// Index of the part among all parts of the query.
    pub part: usize,
    /// The bucket that holds all of it, if one does.
    pub bucket: Option<usize>,
    /// Whether the cells are to be cached; only set when `bucket` is.
    pub is_wanted: bool,
}

/// The parts to be read for one query.
pub struct ParallelScan<'a> {
    /// The query with its window and sources.
    pub plan: Plan<'a>,
    /// Segments that the parts index into.
    pub segments: &'a Segments,
    /// All parts of the query.
    pub parts: &'a [Part],
    /// The parts to be read.
    pub items: Vec<ScanTask>,
    /// Bytes of cells that may still be made for the cache.
    pub room: AtomicUsize,
    /// Whether the query must stop; may block.
    pub must_stop: &'a (dyn Fn() -> bool + Sync),
}

/// The segment that was read last, by its index: parts are listed segment by segment.
#[derive(Default)]
pub struct LastSegment<'a>(Option<(u32, OpenSegment<'a>)>);

impl<'a> LastSegment<'a> {
    /// The segment of a part; nothing of it was read unless it is the one that was opened last.
    ///
    /// Errors: `Corrupt` when the segment's rollups cannot be opened.
    pub fn open(
        &mut self,
        segments: &'a Segments,
        part: &Part,
        plan: Plan<'a>,
    ) -> Result<Option<&mut OpenSegment<'a>>> {
        if self.0.as_ref().is_none_or(|(at, _)| *at != part.segment) {
            let Some(segment) = segments.get(part.segment as usize) else { return Ok(None) };
            self.0 = Some((part.segment, OpenSegment::new(segment, plan)?));
        }
        Ok(self.0.as_mut().map(|(_, open)| open))
    }
}

/// The segments that a thread reads: one for the states of the query, one for those that are cached.
#[derive(Default)]
struct ThreadSegments<'a> {
    shared: LastSegment<'a>,
    cached: LastSegment<'a>,
}

/// Permits for helper threads, shared by all queries.
pub struct HelperPermits {
    free: AtomicUsize,
}

impl HelperPermits {
    /// Permits for `count` helper threads at a time.
    pub fn new(count: usize) -> Self {
        Self { free: AtomicUsize::new(count) }
    }

    /// Takes up to `count` permits. Dropping the result gives them back.
    fn take(&self, count: usize) -> HelperPermit<'_> {
        let less = |free: usize| Some(free - free.min(count));
        let before = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        HelperPermit { helpers: self, count: before.unwrap_or_default().min(count) }
    }
}

struct HelperPermit<'a> {
    helpers: &'a HelperPermits,
    count: usize,
}

impl Drop for HelperPermit<'_> {
    fn drop(&mut self) {
        self.helpers.free.fetch_add(self.count, Ordering::Relaxed);
    }
}

/// Result, states and statistics of one worker thread.
type HelperOutput = (Result<()>, Sink, ScanStats);

impl ParallelScan<'_> {
    /// Reads all parts into `sink`, except those whose cells are to be cached. Their cells are
    /// returned in the order of the parts, also when the read fails. When `had_help` is set, a
    /// memory limit may be an effect of sharing: without helpers the memory may suffice.
    pub fn read(
        &self,
        sink: &mut Sink,
        reads: &mut ScanStats,
        helpers: Option<&HelperPermits>,
        had_help: &mut bool,
    ) -> (Vec<NewPartials>, Result<()>) {
        let made = Mutex::new(Vec::new());
        let result = self.share(&made, sink, reads, helpers, had_help);
        let mut made = made.into_inner();
        made.sort_unstable_by_key(|made| made.part);
        (made, result)
    }

    fn share(
        &self,
        made: &Mutex<Vec<NewPartials>>,
        sink: &mut Sink,
        reads: &mut ScanStats,
        helpers: Option<&HelperPermits>,
        had_help: &mut bool,
    ) -> Result<()> {
        let rows = self.rows();
        let others = self.items.len().saturating_sub(1);
        let useful =
            usize::try_from(rows / ROWS_A_HELPER).map_or(others, |useful| useful.min(others));
        let taken = helpers.filter(|_| useful > 0).map(|helpers| helpers.take(useful));
        let count = taken.as_ref().map_or(0, |taken| taken.count);
        *had_help = count > 0;
        let next = AtomicUsize::new(0);
        if count == 0 {
            return self.take_part(&next, made, sink, reads);
        }
        let sinks = sink.helpers(count);
        let (mine, theirs) = std::thread::scope(|scope| {
            let next = &next;
            let help = |mut sink: Sink| {
                let name = std::thread::Builder::new().name("query".to_owned());
                // Without a thread the work is done all the same.
                let help = move || -> HelperOutput {
                    let mut reads = ScanStats::default();
                    let result = self.take_part(next, made, &mut sink, &mut reads);
                    (result, sink, reads)
                };
                name.spawn_scoped(scope, help).ok()
            };
            let threads: Vec<_> = sinks.into_iter().filter_map(help).collect();
            let mine = self.take_part(next, made, sink, reads);
            let join = |thread: std::thread::ScopedJoinHandle<'_, HelperOutput>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            (mine, threads.into_iter().map(join).collect::<Vec<HelperOutput>>())
        });
        mine?;
        let mut sinks = Vec::new();
        for (result, helper, read) in theirs {
            result?;
            reads.add(&read);
            sinks.push(helper);
        }
        sink.join(sinks)
    }

    /// Rows that are to be read, about.
    pub fn rows(&self) -> u64 {
        self.items.iter().map(|item| self.rows_to_read(item)).sum()
    }

    /// Rows of an item that no rollup answers for, about: what rollups can answer is quicker than the start of a
    /// thread.
    fn rows_to_read(&self, item: &ScanTask) -> u64 {
        let Some(part) = self.parts.get(item.part) else { return 0 };
        let Some(shape) = self.plan.shape else { return part.rows };
        // Run directories count rows, also those of segments that are too fresh for rollups.
        if *shape == Shape::Rows {
            return 0;
        }
        let is_kept = item.bucket.is_some() || shape.may_have_hours();
        let segment = self.segments.get(part.segment as usize);
        match is_kept && segment.is_some_and(|segment| shape.is_kept_in(segment)) {
            true => part.rows_without_rollup,
            false => part.rows,
        }
    }

    /// Takes one item after the other, until there is none or one has failed.
    fn take_part(
        &self,
        next: &AtomicUsize,
        made: &Mutex<Vec<NewPartials>>,
        sink: &mut Sink,
        reads: &mut ScanStats,
    ) -> Result<()> {
        let mut open = ThreadSegments::default();
        while let Some(item) = self.items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = self.read_item(item, &mut open, made, sink, reads) {
                next.store(self.items.len(), Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    fn read_item<'s>(
        &'s self,
        item: &ScanTask,
        open: &mut ThreadSegments<'s>,
        made: &Mutex<Vec<NewPartials>>,
        sink: &mut Sink,
        reads: &mut ScanStats,
    ) -> Result<()> {
        let Some(part) = self.parts.get(item.part) else { return Ok(()) };
        self.check()?;
        if let Some(bucket) = item.bucket.filter(|_| item.is_wanted) {
            let one = self.make(&mut open.cached, part, (item.part, bucket), sink)?;
            let is_made = one.cells.is_some();
            made.lock().push(one);
            if is_made {
                return Ok(());
            }
        }
        match open.shared.open(self.segments, part, self.plan)? {
            None => Ok(()),
            Some(open) => {
                open.scan((part, item.bucket), &self.plan, sink, reads, &mut || self.check())
            }
        }
    }

    /// The cells of a part, unless they are too much.
    fn make<'s>(
        &'s self,
        last: &mut LastSegment<'s>,
        part: &Part,
        (at, bucket): (usize, usize),
        sink: &mut Sink,
    ) -> Result<NewPartials> {
        let mut made = NewPartials { part: at, bucket, cells: None, reads: ScanStats::default() };
        let metric = self.plan.query.metric;
        if matches!(metric, Metric::Percentile(_)) && part.rows >= LISTED_ROWS {
            return Ok(made);
        }
        let Some(open) = last.open(self.segments, part, self.plan)? else { return Ok(made) };
        let (first_ms, last_ms) = part.bounds;
        let window = Window { from_ms: first_ms, to_ms: last_ms + 1, starts: vec![first_ms] };
        let whole = Plan { window: &window, sole_days: &[], ..self.plan };
        let charged = sink.charge().bytes();
        let mut of_part = sink.lend(metric);
        of_part.limit_cells(PART_CELLS_MAX);
        let (reads, check) = (&mut made.reads, &mut || self.check());
        let read = open.scan((part, Some(0)), &whole, &mut of_part, reads, check);
        open.forget_sink();
        let taken_back = sink.take_back(of_part, charged);
        match read.and(taken_back) {
            Ok((groups, cells)) => {
                let bytes = bytes_of(groups.names(), &cells);
                if self.take_room(bytes) {
                    sink.charge().add(bytes)?;
                    made.cells = Some((groups, cells));
                }
            }
            // In the states of the query there may be room for all of it.
            Err(Error::Limit { limit: Limit::QueryMemory, .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(made)
    }

    fn take_room(&self, bytes: usize) -> bool {
        let less = |room: usize| room.checked_sub(bytes);
        self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn check(&self) -> Result<()> {
        if (self.must_stop)() {
            return Err(Error::limit(Limit::QueryTime, "the query took too long"));
        }
        Ok(())
    }
}
