//! Runs the plan of a metric query, once or twice, from the snapshot to the answer, and bounds its size.

use std::{
    cmp::Ordering,
    sync::{Arc, LazyLock, atomic::AtomicUsize},
};

use super::{
    accumulate::Accumulators,
    budget::Budget,
    exact_up_to::ExactUpTo,
    groups::Groups,
    memtable,
    parallel_scan::{HelperPermits, LastSegment, ParallelScan, ScanTask},
    partial_reuse::PartialReuse,
    partial_states::State,
    plan::Plan,
    query_cache::{Part, QueryCache},
    rollups::{self, Shape},
    scan_stats::{ScanStats, Served},
    sink::Sink,
    window::Window,
};
use crate::{
    base::{clock::Clock, time::Granularity},
    error::{Error, Limit, Result},
    query::{Answer, Group, Metric, Query, Value},
    store::Version,
};

/// Values of one answer, at most: a hundred groups over ninety days of hours, and some more.
const CELLS_MAX: usize = 300_000;
/// Largest number of states (bucket × group) of a query that is answered in one pass.
const ONE_PASS_CELLS: usize = 100_000;
/// The same where states are sketches or sets of users.
const ONE_PASS_SKETCHES: usize = 2_000;
/// Groups that are finished between two checks.
const GROUPS_PER_CHECK: usize = 64;
/// Parts that are added from their rollups between two checks: up to some hundred microseconds.
const DAYS_PER_CHECK: usize = 8;

/// Rows that an attempt reads, at most.
const ATTEMPT_ROWS: u64 = 16_384;

/// Bytes of a query's share for each row that an approximate metric may read to be answered exactly.
const EXACT_ROW_BYTES: usize = 32;

/// Resources that all queries of an engine share.
pub struct Resources {
    /// Memory bound of each query and of all queries together.
    pub budget: Arc<Budget>,
    /// The cache of dictionaries, users, series and partial results.
    pub kept: QueryCache,
    helpers: HelperPermits,
    exact: ExactUpTo,
}

impl Resources {
    /// Memory bounds: `queries_max` bytes for all queries together, `query_max` for one, and
    /// `kept_max` for the cache.
    pub fn new(queries_max: usize, query_max: usize, kept_max: usize, exact: ExactUpTo) -> Self {
        // One core is that of the thread that asks. To find out reads files: once is enough.
        static CORES: LazyLock<usize> =
            LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
        let cores = *CORES;
        Self {
            budget: Budget::new(queries_max, query_max),
            kept: QueryCache::new(kept_max),
            helpers: HelperPermits::new(cores - 1),
            exact,
        }
    }
}

/// Says when a query must stop; asked by all threads that work for it, at the borders of blocks.
pub trait Control: Sync {
    /// Whether the query ran too long, or nobody waits for it any more. It may block to let another query run
    /// first, so it must be called without holding a lock.
    fn must_stop(&self) -> bool;
}

impl<F: Fn() -> bool + Sync> Control for F {
    fn must_stop(&self) -> bool {
        self()
    }
}

/// How a query is run. An answer is the same with any options.
#[derive(Clone, Copy)]
pub struct ExecOptions<'a> {
    /// What may be read instead of rows.
    pub sources: AnswerSources,
    /// Before each pass, wait for a share of the memory; `None` fails at once without memory.
    pub wait: Option<MemoryWait<'a>>,
    /// Whether the query is given up as soon as it is known to take more than some hundred microseconds: it reads few
    /// rows, loads no large dictionary and starts no thread.
    pub is_attempt: bool,
}

/// What may be read instead of rows.
#[derive(Debug, Clone, Copy)]
pub struct AnswerSources {
    /// Whether rollups of segments may be read.
    pub rollups: bool,
    /// Whether cached partial results may be used, and new ones cached.
    pub partials: bool,
}

/// Bound of the wait for memory.
#[derive(Clone, Copy)]
pub struct MemoryWait<'a> {
    /// Clock whose `elapsed_us` measures the wait.
    pub clock: &'a dyn Clock,
    /// Longest wait in microseconds.
    pub limit_us: u64,
}

/// Answers `query` over the rows that `version` shows, as far as they are not older than
/// `horizon_ms`: expired rows are gone for every reader at the same instant, however long their
/// segments stay.
///
/// Errors: `Invalid` for an impossible question, `Limit` when it takes too much memory or time,
/// `Corrupt` when a block that it needs is damaged.
pub fn execute(
    version: &Version,
    query: &Query,
    horizon_ms: i64,
    resources: &Resources,
    how: ExecOptions<'_>,
    control: &dyn Control,
) -> Result<Answer> {
    query.validate()?;
    let snapshot = &QueryContext { version, horizon_ms, resources, how, is_approximate: false };
    if let Some(exact) = exact_of(version, resources, query) {
        // An exact answer is also a valid approximate one, and is faster while memory suffices.
        let snapshot = &QueryContext { is_approximate: true, ..*snapshot };
        match answer(snapshot, &Query { metric: exact, ..query.clone() }, control) {
            Err(Error::Limit { limit: Limit::QueryMemory | Limit::QueriesMemory, .. }) => {}
            answer => return answer,
        }
    }
    answer(snapshot, query, control)
}

/// The exact metric that is tried instead of an approximate one: where one tenant is asked about, whose
/// rows in segments are not so many that it would take too long, or not fit in the end.
pub fn exact_of(version: &Version, resources: &Resources, query: &Query) -> Option<Metric> {
    let exact = match query.metric {
        Metric::DistinctApprox => Metric::Distinct,
        Metric::PercentileApprox(percent) => Metric::Percentile(percent),
        _ => return None,
    };
    query.tenant.as_ref()?;
    let parts = resources.kept.series(&version.segments, query);
    let is_asked = |part: &&Part| part.bounds.1 >= query.from_ms && part.bounds.0 < query.to_ms;
    let rows = resources.exact.rows_of(
        exact,
        query.granularity.is_some(),
        parts.iter().filter(is_asked),
    )?;
    let bytes = usize::try_from(rows).unwrap_or(usize::MAX).saturating_mul(EXACT_ROW_BYTES);
    (bytes <= resources.budget.query_max()).then_some(exact)
}

fn answer(version: &QueryContext<'_>, query: &Query, control: &dyn Control) -> Result<Answer> {
    let starts = query.buckets().unwrap_or_default();
    if let Some(groups) = query.groups.clone().filter(|_| query.group_by.is_some()) {
        check_cells(groups.len(), starts.len())?;
        return pass(version, query, starts, Groups::fixed(groups), control);
    }
    if query.group_by.is_none() || starts.len() == 1 && query.granularity.is_none() {
        let groups =
            if query.group_by.is_some() { Groups::open() } else { Groups::fixed(vec![None]) };
        return pass(version, query, starts, groups, control)
            .map(|answer| answer.largest(query.groups_max));
    }
    if Accumulators::merges(query.metric)
        && let Some(answer) = one_pass(version, query, &starts, control)?
    {
        return Ok(answer);
    }
    // First the totals, which say which groups are answered; then only those, by bucket.
    let totals = Query { granularity: None, starts: None, ..query.clone() };
    let totals = pass(version, &totals, vec![query.from_ms], Groups::open(), control)?;
    let groups_total = totals.groups_total;
    let chosen = totals.largest(query.groups_max).groups;
    check_cells(chosen.len(), starts.len())?;
    let answer = pass(version, query, starts, Groups::fixed(chosen), control)?;
    Ok(Answer { groups_total, ..answer })
}

/// Answers by bucket and group in one pass with states for all groups, which add up to the totals that say
/// which groups are answered. `None` when those would be too many.
fn one_pass(
    version: &QueryContext<'_>,
    query: &Query,
    starts: &[i64],
    control: &dyn Control,
) -> Result<Option<Answer>> {
    // A sketch takes up to as much as two thousand counts.
    let cells_max = match query.metric {
        Metric::Distinct | Metric::DistinctApprox => ONE_PASS_SKETCHES,
        _ => ONE_PASS_CELLS,
    };
    let passed = pass_states(version, query, starts.to_vec(), Groups::open(), cells_max, control);
    let (groups, mut states, reads) = match passed {
        Err(Error::Limit { limit: Limit::QueryMemory, .. }) => return Ok(None),
        passed => passed?,
    };
    let mut ranked = Vec::with_capacity(groups.names().len());
    for group in 0..groups.names().len() {
        check_every(group, control)?;
        ranked.push((states.total(group).as_f64(), group));
    }
    ranked.sort_by(|(a, a_group), (b, b_group)| {
        let name = |group: usize| &groups.names()[group];
        compare_falling(*a, *b).then_with(|| compare_groups(name(*a_group), name(*b_group)))
    });
    ranked.truncate(query.groups_max);
    check_cells(ranked.len(), starts.len())?;
    let ranked: Vec<usize> = ranked.into_iter().map(|(_, group)| group).collect();
    answer_of(starts.to_vec(), &groups, &ranked, &mut states, &reads, control).map(Some)
}

/// The answer of some of the groups, in their order.
fn answer_of(
    buckets: Vec<i64>,
    groups: &Groups,
    chosen: &[usize],
    states: &mut Accumulators,
    reads: &ScanStats,
    control: &dyn Control,
) -> Result<Answer> {
    let mut values = Vec::with_capacity(chosen.len());
    for (at, &group) in chosen.iter().enumerate() {
        check_every(at, control)?;
        values.push(states.finish(group));
    }
    Ok(Answer {
        buckets,
        groups: chosen.iter().map(|&group| groups.names()[group].clone()).collect(),
        values,
        groups_total: groups.names().len(),
        rows_scanned: reads.rows,
        rollup: reads.rollup(),
    })
}

/// Errors: `Limit` when an answer of so many groups and buckets is too large to be written down.
fn check_cells(groups: usize, buckets: usize) -> Result<()> {
    if groups.saturating_mul(buckets) <= CELLS_MAX {
        return Ok(());
    }
    let detail = format!(
        "{groups} groups in {buckets} buckets are more than {CELLS_MAX} values; ask for fewer"
    );
    Err(Error::limit(Limit::QueryMemory, detail))
}

/// A version as one query sees it.
struct QueryContext<'a> {
    version: &'a Version,
    horizon_ms: i64,
    resources: &'a Resources,
    how: ExecOptions<'a>,
    /// Whether an approximate answer was asked for, though the query is about an exact one.
    is_approximate: bool,
}

impl QueryContext<'_> {
    /// Whether an answer says that rollups served it. Sets of users add up to exact counts of any buckets, but of
    /// exact counts only those of days have rollups of their own buckets.
    fn names_rollups(&self, query: &Query) -> bool {
        let is_by_day = query.granularity == Some(Granularity::Day) && query.starts.is_none();
        query.metric != Metric::Distinct || self.is_approximate || is_by_day
    }
}

fn pass(
    snapshot: &QueryContext<'_>,
    query: &Query,
    starts: Vec<i64>,
    groups: Groups,
    control: &dyn Control,
) -> Result<Answer> {
    let buckets = starts.clone();
    let (groups, mut states, reads) =
        pass_states(snapshot, query, starts, groups, usize::MAX, control)?;
    let all: Vec<usize> = (0..groups.names().len()).collect();
    answer_of(buckets, &groups, &all, &mut states, &reads, control)
}

/// Reads what the query asks for, into at most `cells_max` states.
fn pass_states(
    snapshot: &QueryContext<'_>,
    query: &Query,
    starts: Vec<i64>,
    groups: Groups,
    cells_max: usize,
    control: &dyn Control,
) -> Result<(Groups, Accumulators, ScanStats)> {
    let from_ms = query.from_ms.max(snapshot.horizon_ms);
    let window = Window { from_ms, to_ms: query.to_ms, starts };
    let pass = ScanPass { snapshot, query, window: &window, cells_max, control };
    // No helpers for a query that had to wait for memory, nor for an attempt, nor for t-digests:
    // their result depends on which rows come together, and with threads that would be chance.
    let is_alone = snapshot.how.wait.is_some()
        || snapshot.how.is_attempt
        || matches!(query.metric, Metric::PercentileApprox(_));
    let helpers = (!is_alone).then_some(&snapshot.resources.helpers);
    let mut had_help = false;
    let result = match pass.run(groups.clone(), helpers, &mut had_help) {
        // A helper's share of the memory may be too small where the whole is enough.
        Err(Error::Limit { limit: Limit::QueryMemory, .. })
            if had_help && cells_max == usize::MAX =>
        {
            pass.run(groups, None, &mut had_help)
        }
        result => result,
    };
    result.map(|(groups, states, mut reads)| {
        if !snapshot.names_rollups(query) {
            reads.served = Served::default();
        }
        (groups, states, reads)
    })
}

/// The inputs of one pass over a version.
struct ScanPass<'a> {
    snapshot: &'a QueryContext<'a>,
    query: &'a Query,
    window: &'a Window,
    cells_max: usize,
    control: &'a dyn Control,
}

impl ScanPass<'_> {
    fn run(
        &self,
        groups: Groups,
        helpers: Option<&HelperPermits>,
        had_help: &mut bool,
    ) -> Result<(Groups, Accumulators, ScanStats)> {
        let Self { snapshot, query, window, control, .. } = *self;
        check(control)?;
        let resources = snapshot.resources;
        let mut sink = self.sink(groups)?;
        let mut reads = ScanStats::default();
        let shape = snapshot.how.sources.rollups.then(|| rollups::shape(query).ok()).flatten();
        let is_attempt = snapshot.how.is_attempt;
        // Without a bucket no row can belong to the answer.
        let is_empty = window.starts.is_empty() || window.from_ms >= window.to_ms;
        let sources = if is_empty { &Version::default() } else { snapshot.version };
        let segments = &sources.segments;
        let parts = resources.kept.series(segments, query);
        let (shape, kept) = (shape.as_ref(), &resources.kept);
        let sole_days = match shape {
            // Totals over buckets add up sets of users.
            Some(Shape::UserSets | Shape::UserSetsBy(_))
                if self.cells_max == usize::MAX && parts.iter().any(|part| part.day.is_some()) =>
            {
                self.sole_days(sources, &parts)?
            }
            _ => Vec::new(),
        };
        let plan = Plan { query, window, shape, kept, sole_days: &sole_days, is_attempt };
        let counts_rows = shape == Some(&Shape::Rows);
        let mut partials = match snapshot.how.sources.partials && !counts_rows {
            true => {
                let (asked, users) = ((query, is_attempt), sink.shared_users());
                PartialReuse::open(&resources.kept, asked, segments, &parts, users)
            }
            false => None,
        };
        if matches!(query.metric, Metric::Percentile(_)) {
            sink.expect_rows(self.rows_max(sources, &parts));
        }
        let (mut near, mut items) = (0, Vec::new());
        let is_quick = shape.is_some_and(Shape::is_quick);
        let is_first = partials.as_ref().is_none_or(PartialReuse::is_first);
        let mut last = LastSegment::default();
        for (at, part) in parts.iter().enumerate() {
            let (ts_min, ts_max) = part.bounds;
            if ts_max < window.from_ms || ts_min >= window.to_ms {
                continue;
            }
            if at.is_multiple_of(DAYS_PER_CHECK) {
                check(control)?;
            }
            let bucket = window.bucket_of_all(ts_min, ts_max, near);
            let mut is_wanted = false;
            if let Some(bucket) = bucket {
                near = bucket;
                if counts_rows {
                    let group = sink.groups.number(None);
                    reads.add(&ScanStats::COUNTED);
                    sink.add_state(group, bucket, State::Count(part.rows))?;
                    continue;
                }
                // Its number of users is read sooner than a cached set.
                let is_sole = plan.is_sole_day(bucket);
                let mut add_day = |sink: &mut Sink, reads: &mut ScanStats| match last
                    .open(segments, part, plan)?
                {
                    Some(open) => open.add_day((part, bucket), &plan, sink, reads),
                    None => Ok(false),
                };
                if is_sole && add_day(&mut sink, &mut reads)? {
                    continue;
                }
                if let Some(partials) = &mut partials {
                    if partials.add(at, bucket, &mut sink, &mut reads)? {
                        continue;
                    }
                    is_wanted = partials.wants(at);
                }
                let is_direct = is_quick && !is_sole && (is_first || !is_wanted);
                if is_direct && add_day(&mut sink, &mut reads)? {
                    continue;
                }
            }
            items.push(ScanTask { part: at, bucket, is_wanted });
        }
        if !items.is_empty() {
            let room = partials.as_ref().map_or(0, |partials| partials.room());
            let room = AtomicUsize::new(room.min(resources.budget.query_max() / 4));
            let must_stop = &|| control.must_stop();
            let work = ParallelScan { plan, segments, parts: &parts, items, room, must_stop };
            if is_attempt && work.rows() > ATTEMPT_ROWS {
                return Err(Error::limit(Limit::QueryTime, "the query is no short one"));
            }
            let (made, result) = work.read(&mut sink, &mut reads, helpers, had_help);
            for made in made {
                if let Some(partials) = &mut partials {
                    partials.learn(made, &mut sink, &mut reads)?;
                }
            }
            result?;
        }
        for (chunk, places) in sources.memtables().flat_map(|memtable| memtable.chunks_by_series())
        {
            check(control)?;
            reads.rows += memtable::scan(chunk, places, query, window, &mut sink)?;
        }
        let (groups, states) = sink.finish()?;
        Ok((groups, states, reads))
    }

    /// By bucket whether all of its rows are those of one day of one run. Empty where none is such a bucket.
    fn sole_days(&self, sources: &Version, parts: &[Part]) -> Result<Vec<bool>> {
        let Self { query, window, control, .. } = *self;
        let mut days = vec![0u32; window.starts.len()];
        let mut near = 0;
        for part in parts {
            let (first, last) =
                (part.bounds.0.max(window.from_ms), part.bounds.1.min(window.to_ms - 1));
            if first > last {
                continue;
            }
            check_every(near, control)?;
            near = window.bucket_of(first, near);
            let end = window.bucket_of(last, near);
            let is_one = part.day.is_some() && part.runs.0 + 1 == part.runs.1;
            for count in days.get_mut(near..=end).unwrap_or_default() {
                *count = count.saturating_add(if is_one { 1 } else { 2 });
            }
        }
        if !days.contains(&1) {
            return Ok(Vec::new());
        }
        for (chunk, places) in sources.memtables().flat_map(|memtable| memtable.chunks_by_series())
        {
            check(control)?;
            for row in memtable::asked_rows(chunk, places, query, window) {
                near = window.bucket_of(chunk.timestamps[row], near);
                days[near] = 2;
            }
        }
        Ok(days.into_iter().map(|count| count == 1).collect())
    }

    /// Upper bound of the rows in each bucket.
    fn rows_max(&self, sources: &Version, parts: &[Part]) -> Arc<[u64]> {
        let window = self.window;
        let in_memory: usize = sources.memtables().map(|memtable| memtable.rows()).sum();
        let (mut anywhere, mut near) = (in_memory as u64, 0);
        let mut within = vec![0; window.starts.len()];
        for part in parts {
            let (ts_min, ts_max) = part.bounds;
            if ts_max < window.from_ms || ts_min >= window.to_ms {
                continue;
            }
            match window.bucket_of_all(ts_min, ts_max, near) {
                Some(bucket) => {
                    near = bucket;
                    within[bucket] += part.rows;
                }
                None => anywhere += part.rows,
            }
        }
        within.iter().map(|rows| rows + anywhere).collect()
    }

    /// An empty sink with an account of memory.
    fn sink(&self, groups: Groups) -> Result<Sink> {
        let Self { snapshot, query, window, control, .. } = *self;
        let resources = snapshot.resources;
        let charge = match snapshot.how.wait {
            Some(MemoryWait { clock, limit_us }) => {
                let since_us = clock.elapsed_us();
                let is_over = || clock.elapsed_us().saturating_sub(since_us) > limit_us;
                resources.budget.reserve(&|| control.must_stop() || is_over())?
            }
            None => resources.budget.charge(),
        };
        let asked_users = (query.metric == Metric::Distinct)
            .then(|| resources.kept.asked_users(query.namespace, query.tenant.as_deref()));
        let mut sink = Sink::new(groups, query.metric, window.starts.len(), asked_users, charge);
        sink.limit_cells(self.cells_max);
        Ok(sink)
    }
}

fn check(control: &dyn Control) -> Result<()> {
    match control.must_stop() {
        true => Err(Error::limit(Limit::QueryTime, "the query took too long")),
        false => Ok(()),
    }
}

/// Checks before some of many groups, or parts whose results are cached.
fn check_every(at: usize, control: &dyn Control) -> Result<()> {
    match at.is_multiple_of(GROUPS_PER_CHECK) {
        true => check(control),
        false => Ok(()),
    }
}

impl Answer {
    /// Keeps the `count` groups with the largest value in the first bucket, largest first; equal
    /// ones by name, the missing property last.
    fn largest(mut self, count: usize) -> Self {
        let mut rows: Vec<(Group, Vec<Value>)> =
            self.groups.drain(..).zip(self.values.drain(..)).collect();
        rows.sort_by(|(a_name, a), (b_name, b)| {
            let number = |values: &[Value]| values.first().and_then(|value| value.as_f64());
            compare_falling(number(a), number(b)).then_with(|| compare_groups(a_name, b_name))
        });
        rows.truncate(count);
        (self.groups, self.values) = rows.into_iter().unzip();
        self
    }
}

/// Larger numbers first, nothing last.
fn compare_falling(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

/// By name, the missing property last.
fn compare_groups(a: &Group, b: &Group) -> Ordering {
    a.is_none().cmp(&b.is_none()).then_with(|| a.cmp(b))
}
