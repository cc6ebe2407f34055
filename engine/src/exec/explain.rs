//! What a question would read, without reading it.

use super::{segments::rows_in_window, window::Window};
use crate::{error::Result, query::Query, store::Version};

/// One source of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainStep {
    /// `memtable`, or the name of a segment.
    pub source: String,
    /// `memory`, `fresh`, `merged` or `sealed`.
    pub level: &'static str,
    /// Rows of the asked series inside the window. In memory: rows of the chunk's namespaces, which
    /// are all looked at.
    pub rows: u64,
    /// Series that are read.
    pub series: u64,
    /// Why nothing of it is read, when nothing is.
    pub skipped: Option<&'static str>,
}

/// The sources of an answer to `query`, and what each would give to read.
pub fn explain(version: &Version, query: &Query, horizon_ms: i64) -> Result<Vec<ExplainStep>> {
    query.validate()?;
    let from_ms = query.from_ms.max(horizon_ms);
    let window = Window { from_ms, to_ms: query.to_ms, starts: vec![from_ms] };
    let is_empty = window.from_ms >= window.to_ms;
    let mut steps = Vec::new();
    for segment in &version.segments {
        let meta = segment.meta();
        let mut step = ExplainStep {
            source: meta.uuid.to_string(),
            level: meta.level_name(),
            rows: 0,
            series: 0,
            skipped: None,
        };
        if is_empty || meta.ts_max < window.from_ms || meta.ts_min >= window.to_ms {
            step.skipped = Some("outside the window");
        } else {
            for rows in rows_in_window(segment, query, &window)? {
                step.rows += rows;
                step.series += 1;
            }
            step.skipped = (step.series == 0).then_some("no such series");
        }
        steps.push(step);
    }
    let rows = version.memtables().map(|memtable| memtable.rows() as u64).sum();
    let skipped = (rows == 0).then_some("empty");
    let source = "memtable".to_owned();
    steps.push(ExplainStep { source, level: "memory", rows, series: 0, skipped });
    Ok(steps)
}
