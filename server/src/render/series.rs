//! From rows to what a chart draws: buckets and series, or ranked groups.
//!
//! The same rules as in `web/charts/series.js`, held together by the cases in `web/test/golden.json`.
//! Groups beyond the limit become "Other" only where values add up.

use std::collections::{BTreeSet, HashMap};

use super::{
    format::{Grain, bucket_end},
    model::{Answer, Row},
    theme::{Ink, SERIES_MAX},
};

/// Groups that are shown when the query sets no limit.
const GROUPS_DEFAULT: usize = 5;

/// Whether values of a metric may be summed over groups and time.
pub fn is_additive(metric: Option<&str>) -> bool {
    matches!(metric, Some("count" | "sum"))
}

/// Whether values of a metric are whole numbers.
pub fn is_whole(metric: Option<&str>) -> bool {
    metric.is_none_or(|metric| metric.starts_with("count"))
}

/// Label of a group.
pub fn group_label(group: Option<&str>) -> String {
    match group {
        None => "(none)".to_owned(),
        Some("") => "“”".to_owned(),
        Some(group) => group.to_owned(),
    }
}

/// Whether the data has nothing to draw: no values, or only zeros of a count or a sum.
pub fn is_empty(answer: &Answer, metric: Option<&str>) -> bool {
    let counts = is_additive(metric) || is_whole(metric);
    let says = |value: &Option<f64>| value.is_some_and(|value| !counts || value != 0.0);
    !answer.rows.iter().any(|row| match row.values.as_slice() {
        [] => says(&row.value),
        values => values.iter().any(says),
    })
}

/// One line, or one layer of a stack.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Group that the series shows, or the title of the widget; `Other` for the remaining groups.
    pub label: String,
    /// Ink of the line or layer.
    pub color: Ink,
    /// Value of each bucket; absent where there is none.
    pub values: Vec<Option<f64>>,
    /// Sum of the values over all buckets.
    pub total: f64,
}

/// Rows with buckets as parallel series.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// Starts of the buckets in milliseconds since 1970, in the order of the rows.
    pub buckets: Vec<i64>,
    /// Series with the largest total first; `Other` last.
    pub series: Vec<Series>,
    /// Values of the window before, by bucket; only for a single series.
    pub previous: Option<Vec<Option<f64>>>,
    /// Length of a bucket.
    pub grain: Grain,
    /// Whether the window begins inside the first bucket.
    pub partial_first: bool,
    /// Whether the last bucket ends after the window.
    pub partial_last: bool,
}

fn sum(values: &[Option<f64>]) -> f64 {
    values.iter().flatten().sum()
}

/// Turns rows with buckets into parallel series.
pub fn timed(answer: &Answer, title: &str, limit: Option<usize>, metric: Option<&str>) -> Timed {
    let mut buckets: Vec<i64> = Vec::new();
    let mut known = BTreeSet::new();
    for row in &answer.rows {
        let bucket = row.bucket.unwrap_or_default();
        if known.insert(bucket) {
            buckets.push(bucket);
        }
    }
    let position: HashMap<i64, usize> = buckets.iter().copied().zip(0..).collect();
    let additive = is_additive(metric);
    type Group = Option<Option<String>>;
    let mut groups: Vec<(Group, Vec<Option<f64>>)> = Vec::new();
    let mut places: HashMap<Group, usize> = HashMap::new();
    for row in &answer.rows {
        let at = *places.entry(row.group.clone()).or_insert_with(|| {
            groups.push((row.group.clone(), vec![additive.then_some(0.0); buckets.len()]));
            groups.len() - 1
        });
        if let Some(&bucket) = position.get(&row.bucket.unwrap_or_default()) {
            groups[at].1[bucket] = row.value;
        }
    }
    let ungrouped = matches!(groups.as_slice(), [(None, _)]);
    let mut ranked: Vec<(Group, Vec<Option<f64>>, f64)> = groups
        .into_iter()
        .map(|(group, values)| {
            let total = sum(&values);
            (group, values, total)
        })
        .collect();
    ranked.sort_by(|a, b| b.2.total_cmp(&a.2));
    let shown = limit.filter(|limit| *limit > 0).unwrap_or(GROUPS_DEFAULT).min(SERIES_MAX);
    let rest = ranked.split_off(shown.min(ranked.len()));
    let mut series: Vec<Series> = ranked
        .into_iter()
        .enumerate()
        .map(|(at, (group, values, total))| Series {
            label: group.map_or_else(|| title.to_owned(), |group| group_label(group.as_deref())),
            color: Ink::Series(at),
            values,
            total,
        })
        .collect();
    if !rest.is_empty() && additive {
        let of_bucket =
            |at: usize| rest.iter().filter_map(|(_, values, _)| values[at]).sum::<f64>();
        let values: Vec<Option<f64>> = (0..buckets.len()).map(|at| Some(of_bucket(at))).collect();
        let total = sum(&values);
        series.push(Series { label: "Other".to_owned(), color: Ink::Other, values, total });
    }
    let has_previous = answer.rows.iter().any(|row| row.previous.flatten().is_some());
    let previous = answer.rows.iter().map(|row| row.previous.flatten()).collect();
    let ends_late = |&last: &i64| bucket_end(last, answer.grain) > answer.to;
    Timed {
        previous: (ungrouped && has_previous).then_some(previous),
        grain: answer.grain,
        partial_first: buckets.len() > 1
            && buckets.first().is_some_and(|&first| answer.from > first),
        partial_last: buckets.last().is_some_and(ends_late),
        buckets,
        series,
    }
}

/// One group with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Label of the group; `Other` for the remaining groups.
    pub label: String,
    /// Ink of the bar or the part.
    pub color: Ink,
    /// Value of the metric in the group; 0 where there is none.
    pub value: f64,
    /// Value as a fraction of the total; absent when the total is zero or not known.
    pub share: Option<f64>,
    /// Whether the item combines the remaining groups.
    pub is_other: bool,
}

/// Rows without buckets as ranked groups, and the total where it is known. The largest comes first,
/// unless `keeps_order`; groups beyond `limit` become `Other` where values add up.
pub fn ranked(
    answer: &Answer,
    limit: usize,
    metric: Option<&str>,
    keeps_order: bool,
) -> (Vec<Ranked>, Option<f64>) {
    let mut rows: Vec<(&Row, f64)> =
        answer.rows.iter().map(|row| (row, row.value.unwrap_or(0.0))).collect();
    if !keeps_order {
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    }
    let additive = is_additive(metric);
    let total = if additive { total_of(answer) } else { None };
    let share = |value: f64| total.filter(|total| *total != 0.0).map(|total| value / total);
    let left = rows.split_off(limit.min(rows.len()));
    let mut items: Vec<Ranked> = rows
        .iter()
        .enumerate()
        .map(|(at, (row, value))| Ranked {
            label: group_label(row.group.as_ref().and_then(Option::as_deref)),
            color: Ink::Series(at),
            value: *value,
            share: share(*value),
            is_other: false,
        })
        .collect();
    if !left.is_empty() && additive {
        let shown: f64 = items.iter().map(|item| item.value).sum();
        let value = match total {
            Some(total) if is_cut(answer) => total - shown,
            _ => left.iter().map(|(_, value)| value).sum(),
        };
        let label = "Other".to_owned();
        items.push(Ranked { label, color: Ink::Other, value, share: share(value), is_other: true });
    }
    (items, total)
}

/// Shifts the colours of series by `first` places in the palette.
pub fn paint<'a>(colors: impl Iterator<Item = &'a mut Ink>, first: usize) {
    for color in colors {
        if let Ink::Series(at) = color {
            *at += first;
        }
    }
}

/// Whether the server left out groups.
fn is_cut(answer: &Answer) -> bool {
    answer.groups_total > answer.groups_returned
}

/// The sum over all groups; `None` when the rows lack groups and the server gave no total.
pub fn total_of(answer: &Answer) -> Option<f64> {
    let known = || answer.rows.iter().filter_map(|row| row.value).sum();
    answer.total.or_else(|| (!is_cut(answer)).then(known))
}

/// Stacks series: for each series and bucket, the lower and the upper end of its part. Positive
/// values go up from zero, negative ones down. With `percent`, the sizes of a bucket add up to one.
pub fn stack(series: &[Series], count: usize, percent: bool) -> Vec<Vec<(f64, f64)>> {
    let whole: Vec<f64> = (0..count)
        .map(|at| {
            let of_bucket = series.iter().filter_map(|one| one.values[at]);
            let size: f64 = of_bucket.map(f64::abs).sum();
            if size == 0.0 { 1.0 } else { size }
        })
        .collect();
    let (mut up, mut down) = (vec![0.0; count], vec![0.0; count]);
    let layer = |one: &Series| {
        let part = |(at, raw): (usize, &Option<f64>)| {
            let raw = raw.unwrap_or(0.0);
            let value = if percent { raw / whole[at] } else { raw };
            let side = if value < 0.0 { &mut down } else { &mut up };
            let from = side[at];
            side[at] += value;
            (from, side[at])
        };
        one.values.iter().enumerate().map(part).collect()
    };
    series.iter().map(layer).collect()
}

/// Runs of consecutive indexes with a value: a line is broken where a value is missing.
pub fn runs(values: &[Option<f64>]) -> Vec<Vec<usize>> {
    let mut out: Vec<Vec<usize>> = Vec::new();
    for (at, _) in values.iter().enumerate().filter(|(_, value)| value.is_some()) {
        match out.last_mut() {
            Some(open) if open.last() == Some(&at.wrapping_sub(1)) => open.push(at),
            _ => out.push(vec![at]),
        }
    }
    out
}
