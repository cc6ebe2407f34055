//! What a question would read, without reading it.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    rollups,
    run::{Resources, exact_of},
    segments::rows_in_window,
    window::Window,
};
use crate::{
    column::{Rows, SeriesKey},
    error::Result,
    query::Query,
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
    /// Series among them with rollups of the kind that is asked for, as far as they are worth their bytes.
    pub rolled_up: u64,
    /// Why nothing of it is read, when nothing is.
    pub skipped: Option<&'static str>,
    /// Why rows are read and not rollups, when they are.
    pub rejected: Option<&'static str>,
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
    let window = Window { from_ms, to_ms: query.to_ms, starts: vec![from_ms] };
    let is_empty = window.from_ms >= window.to_ms;
    let shape = rollups::shape(query);
    let mut steps = Vec::new();
    for segment in &version.segments {
        let meta = segment.meta();
        let mut step = ExplainStep {
            source: meta.uuid.to_string(),
            level: meta.level_name(),
            rows: 0,
            series: 0,
            rolled_up: 0,
            skipped: None,
            rejected: None,
        };
        if is_empty || meta.ts_max < window.from_ms || meta.ts_min >= window.to_ms {
            step.skipped = Some("outside the window");
        } else {
            let asked = shape.as_ref().ok();
            for (rows, is_rolled_up) in rows_in_window(segment, query, &window, asked)? {
                step.rows += rows;
                step.series += 1;
                step.rolled_up += u64::from(is_rolled_up);
            }
            step.skipped = (step.series == 0).then_some("no such series");
            step.rejected = match &shape {
                _ if step.series == 0 => None,
                Err(why) => Some(why),
                Ok(_) => {
                    (step.rolled_up < step.series).then_some("series have too few rows for it")
                }
            };
        }
        steps.push(step);
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
        rejected: (rows > 0).then_some("rows in memory have no rollups"),
        skipped: (rows == 0).then_some("no such rows"),
    });
    Ok(steps)
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
