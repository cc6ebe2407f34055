//! What a query would read, without reading it: the steps of its plan, counted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{
    plan::{Plan, StepSource},
    query_cache::Part,
    rollups,
    run::{Resources, exact_of},
    window::Window,
};
use crate::{
    column::{Rows, SeriesKey},
    error::Result,
    query::Query,
    segment::{RollupForm, Segment},
    store::Version,
};

/// One source of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainStep {
    /// `memtable`, or the name of a segment.
    pub source: String,
    /// `memory`, `fresh`, `merged` or `sealed`.
    pub level: &'static str,
    /// Rows of the asked series inside the window.
    pub rows: u64,
    /// Series that are read.
    pub series: u64,
    /// Series among them of which rollups answer at least a part.
    pub rolled_up: u64,
    /// Rows among them that rollups of whole days answer for.
    pub by_day: u64,
    /// Rows among them that rollups of hours answer for; the others are read.
    pub by_hour: u64,
    /// Why nothing of it is read, when nothing is.
    pub skipped: Option<&'static str>,
    /// Why rows are read and not rollups, when they are.
    pub rejected: Option<&'static str>,
}

/// A line: the source, and how its rows are answered.
impl fmt::Display for ExplainStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}: ", self.level, self.source)?;
        if let Some(why) = self.skipped {
            return write!(out, "{why}");
        }
        write!(out, "{} rows of {} series", self.rows, self.series)?;
        let read = self.rows - self.by_day - self.by_hour;
        let parts = [(self.by_day, "by day"), (self.by_hour, "by hour"), (read, "read")];
        for (rows, how) in parts.into_iter().filter(|(rows, _)| *rows > 0) {
            write!(out, ", {rows} {how}")?;
        }
        self.rejected.map_or(Ok(()), |why| write!(out, ": {why}"))
    }
}

/// The sources of an answer to `query`, and what each would give to read.
pub fn explain(
    version: &Version,
    query: &Query,
    horizon_ms: i64,
    resources: &Resources,
) -> Result<Vec<ExplainStep>> {
    query.validate()?;
    let exact = exact_of(version, resources, query);
    let query = &Query { metric: exact.unwrap_or(query.metric), ..query.clone() };
    let from_ms = query.from_ms.max(horizon_ms);
    let window =
        Window { from_ms, to_ms: query.to_ms, starts: query.buckets().unwrap_or_default() };
    let is_empty = window.starts.is_empty() || window.from_ms >= window.to_ms;
    let shape = rollups::shape(query);
    let plan = Plan {
        query,
        window: &window,
        shape: shape.as_ref().ok(),
        kept: &resources.kept,
        sole_days: &[],
        is_attempt: false,
    };
    let mut steps = Vec::new();
    for segment in &version.segments {
        let meta = segment.meta();
        let is_outside = is_empty || meta.ts_max < window.from_ms || meta.ts_min >= window.to_ms;
        let counts = match is_outside {
            true => StepCounts::default(),
            false => StepCounts::of(segment, &plan)?,
        };
        let skipped = match is_outside {
            true => Some("outside the window"),
            false => counts.series.is_empty().then_some("no such series"),
        };
        steps.push(ExplainStep {
            source: meta.uuid.to_string(),
            level: meta.level_name(),
            rows: counts.by_day + counts.by_hour + counts.read,
            series: counts.series.len() as u64,
            rolled_up: counts.series_with(|series| series.is_rolled_up),
            by_day: counts.by_day,
            by_hour: counts.by_hour,
            skipped,
            rejected: match &shape {
                _ if skipped.is_some() || counts.read == 0 => None,
                Err(why) => Some(why),
                Ok(_) if counts.series_with(|series| series.is_small) > 0 => {
                    Some("series have too few rows for it")
                }
                Ok(_) if counts.series_with(|series| series.lacks_rollups) > 0 => {
                    Some("it is not kept of all series")
                }
                Ok(_) => Some("parts of days or hours are read"),
            },
        });
    }
    let chunks = version.memtables().flat_map(|memtable| memtable.chunks());
    let (rows, series) = match is_empty {
        true => (0, BTreeSet::new()),
        false => rows_in_memory(chunks, query, &window),
    };
    steps.push(ExplainStep {
        source: "memtable".to_owned(),
        level: "memory",
        rows,
        series: series.len() as u64,
        rolled_up: 0,
        by_day: 0,
        by_hour: 0,
        rejected: (rows > 0).then_some("rows in memory have no rollups"),
        skipped: (rows == 0).then_some("no such rows"),
    });
    Ok(steps)
}

/// Rows of a segment inside the window, by source.
#[derive(Default)]
struct StepCounts {
    by_day: u64,
    by_hour: u64,
    read: u64,
    /// By position of the run.
    series: BTreeMap<usize, SeriesFacts>,
}

/// What is true of a series on any of its days.
#[derive(Default)]
struct SeriesFacts {
    /// It has too few rows for any rollup.
    is_small: bool,
    /// A day has no rollup of the kind.
    lacks_rollups: bool,
    /// A rollup answers for some of its rows.
    is_rolled_up: bool,
}

impl StepCounts {
    fn of(segment: &Segment, plan: &Plan<'_>) -> Result<Self> {
        let Plan { query, window, .. } = plan;
        let mut rollups = plan.rollups(segment)?;
        let mut counts = Self::default();
        let tenant = query.tenant.as_deref();
        for part in Part::list(segment, 0, query.namespace, tenant, &query.event) {
            let bucket = window.bucket_of_all(part.bounds.0, part.bounds.1, 0);
            let is_event_rolled_up = match &mut rollups {
                Some(rollups) if query.tenant.is_none() && bucket.is_some() => {
                    match plan.day_rollup(rollups, &part) {
                        Some(at) => rollups.form(at)? != RollupForm::Nothing,
                        None => false,
                    }
                }
                _ => false,
            };
            for position in part.runs.0 as usize..part.runs.1 as usize {
                // The rollups of its series are not read where that of the event answers.
                let rollups = rollups.as_mut().filter(|_| !is_event_rolled_up);
                let day = plan.of_day(segment, rollups, (&part, bucket), position)?;
                let Some(day) = day else { continue };
                if day.steps.is_empty() {
                    continue;
                }
                let mut is_read = false;
                let series = counts.series.entry(position).or_default();
                for step in &day.steps {
                    let rows = step.rows.len() as u64;
                    let (count, is_rolled_up) = match step.source {
                        _ if is_event_rolled_up => (&mut counts.by_day, true),
                        StepSource::Day => (&mut counts.by_day, true),
                        StepSource::Directory | StepSource::Hours(_) => (&mut counts.by_hour, true),
                        StepSource::Rows => (&mut counts.read, false),
                    };
                    *count += rows;
                    series.is_rolled_up |= is_rolled_up;
                    is_read |= !is_rolled_up;
                }
                series.is_small |= is_read && segment.rollup_of(position).is_none();
                series.lacks_rollups |= is_read && day.rollup.is_none();
            }
        }
        Ok(counts)
    }

    fn series_with(&self, fact: impl Fn(&SeriesFacts) -> bool) -> u64 {
        self.series.values().filter(|series| fact(series)).count() as u64
    }
}

fn rows_in_memory<'a>(
    chunks: impl Iterator<Item = &'a Arc<Rows>>,
    query: &Query,
    window: &Window,
) -> (u64, BTreeSet<SeriesKey>) {
    let (mut count, mut found) = (0, BTreeSet::new());
    for rows in chunks {
        for row in (0..rows.len()).filter(|&row| window.contains(rows.timestamps[row])) {
            let key = rows.series_of(row);
            let is_asked = key.namespace == query.namespace
                && *key.name == *query.event
                && query.tenant.as_deref().is_none_or(|tenant| *key.tenant == *tenant);
            if is_asked {
                count += 1;
                if !found.contains(key) {
                    found.insert(key.clone());
                }
            }
        }
    }
    (count, found)
}
