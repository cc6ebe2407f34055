//! From rows to what a chart draws: buckets and series, or ranked groups.
//!
//! The same rules as in `web/charts/series.js`, held together by the cases in `web/test/golden.json`.
//! Groups beyond the limit become "Other" only where values add up.
//!
//! ```text
//! rows by day and group, count, limit 2            series
//! 2026-11-10  a 1   b 2   (none) 3                 (none)   3  6    total 9    colour 1
//! 2026-11-11  a 4   b 5   (none) 6                 b        2  5    total 7    colour 2
//!                                                  Other    1  4    total 5    grey
//!
//! stack                                            (none)   0–3    0–6
//!                                                  b        3–5    6–11
//!                                                  Other    5–6    11–15
//!
//! rows by group, count, limit 2                    ranked
//! b 2   a 6   (none) 1   "" 1                      a 6 (60%)   b 2 (20%)   Other 2 (20%)   total 10
//! ```
//!
//! With `p95` instead of `count` there is no `Other` and no total: quantiles of groups do not add up.

use std::collections::{BTreeSet, HashMap};

use super::{
    dates::{Grain, bucket_end},
    model::{Answer, Row},
    theme::{Ink, SERIES_MAX},
    words::words,
};
use crate::base::locale::Locale;

/// Groups that are shown when the query sets no limit.
const GROUPS_DEFAULT: usize = 5;

/// Whether values of a metric may be summed over groups and time.
/// `count` and `sum`. A user may be in two groups, so `count_unique` is not.
pub fn is_additive(metric: Option<&str>) -> bool {
    matches!(metric, Some("count" | "sum"))
}

/// Whether values of a metric are whole numbers.
/// `count`, `count_unique`, and queries without a metric; not `sum`, `avg` or `p95`.
pub fn is_whole(metric: Option<&str>) -> bool {
    metric.is_none_or(|metric| metric.starts_with("count"))
}

/// Label of a group.
/// `None` is `(none)`: events without the property. An empty text is `“”`, so that it can be seen.
pub fn group_label(group: Option<&str>, locale: Locale) -> String {
    match group {
        None => words(locale).none.to_owned(),
        Some("") => "“”".to_owned(),
        Some(group) => group.to_owned(),
    }
}

/// Whether the data has nothing to draw: no values, or only zeros of a count or a sum.
/// An average of 0 is a value and is drawn.
pub fn is_empty(answer: &Answer, metric: Option<&str>) -> bool {
    let counts = is_additive(metric) || is_whole(metric);
    let says = |value: &Option<f64>| value.is_some_and(|value| !counts || value != 0.0);
    !answer.rows.iter().any(|row| match row.values.as_slice() {
        [] => says(&row.value),
        values => values.iter().any(says),
    })
}

/// One line, or one layer of a stack.
/// `Series { label: "b", color: Ink::Series(1), values: [Some(2.0), Some(5.0)], total: 7.0 }`.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Group that the series shows, or the title of the widget; `Other` for the remaining groups.
    pub label: String,
    /// Ink of the line or layer.
    pub color: Ink,
    /// Value of each bucket; absent where there is none.
    /// As long as the buckets. Of counts and sums, a bucket without a row is 0.
    pub values: Vec<Option<f64>>,
    /// Sum of the values over all buckets.
    /// The order of the series; of averages it has no other meaning.
    pub total: f64,
}

/// Rows with buckets as parallel series.
/// Of values 5, none and 7 with 3, 4 and none before, in a window that ends at 10:00 of the last day: one series with
/// the title of the widget, `previous: Some([Some(3.0), Some(4.0), None])`, and `partial_last: true`.
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
    /// False for a single bucket, which is only ever marked at its end.
    pub partial_first: bool,
    /// Whether the last bucket ends after the window.
    /// At 10:00, the bucket of today has ten of its 24 hours: its value is lower than it will be.
    pub partial_last: bool,
    /// Language of the labels.
    pub locale: Locale,
}

/// Missing values count as nothing.
fn sum(values: &[Option<f64>]) -> f64 {
    values.iter().flatten().sum()
}

/// Turns rows with buckets into parallel series.
/// `limit` is the number of series besides `Other`: 5 without one, and 8 at most, as there are eight colours.
pub fn timed(
    answer: &Answer,
    title: &str,
    limit: Option<usize>,
    metric: Option<&str>,
    locale: Locale,
) -> Timed {
    let mut buckets: Vec<i64> = Vec::new();
    let mut known = BTreeSet::new();
    for row in &answer.rows {
        let bucket = row.bucket.unwrap_or_default();
        if known.insert(bucket) {
            buckets.push(bucket);
        }
    }
    // Rows of a group may come in any order and lack buckets.
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
    // With groups, rows are not one for each bucket, as the values of the window before are read below.
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
            label: group
                .map_or_else(|| title.to_owned(), |group| group_label(group.as_deref(), locale)),
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
        let label = words(locale).other.to_owned();
        series.push(Series { label, color: Ink::Other, values, total });
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
        locale,
        buckets,
        series,
    }
}

/// The values of a number's sparkline, of the starts of its buckets and their values. Those of sums begin behind a first bucket that the window, from `from` on,
/// cuts, as lines do: it would be drawn as a rise from nearly nothing.
pub fn course(
    buckets: &[(Option<i64>, Option<f64>)],
    from: i64,
    metric: Option<&str>,
) -> Vec<Option<f64>> {
    let is_sum = is_additive(metric) || is_whole(metric);
    let is_cut = matches!(buckets, [(Some(first), _), _, _, ..] if from > *first);
    buckets.iter().skip(usize::from(is_sum && is_cut)).map(|(_, value)| *value).collect()
}

/// One group with its value.
/// `Ranked { label: "a", color: Ink::Series(0), value: 6.0, share: Some(0.6), is_other: false }`.
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
///
/// ```text
/// a 6, b 2; 9 groups in all, total 20, limit 1, sum    a 6 (30%), Other 14 (70%)
/// a 6, b 2; 9 groups in all, no total, count           a 6, b 2, no shares
/// a 1, b 2.5, c none; limit 2, avg, in order           a 1, b 2.5
/// ```
pub fn ranked(
    answer: &Answer,
    limit: usize,
    metric: Option<&str>,
    keeps_order: bool,
    locale: Locale,
) -> (Vec<Ranked>, Option<f64>) {
    let mut rows: Vec<(&Row, f64)> =
        answer.rows.iter().map(|row| (row, row.value.unwrap_or(0.0))).collect();
    if !keeps_order {
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    }
    // Shares and the rest exist only where values of groups may be summed.
    let additive = is_additive(metric);
    let total = if additive { total_of(answer) } else { None };
    let share = |value: f64| total.filter(|total| *total != 0.0).map(|total| value / total);
    let left = rows.split_off(limit.min(rows.len()));
    let mut items: Vec<Ranked> = rows
        .iter()
        .enumerate()
        .map(|(at, (row, value))| Ranked {
            label: group_label(row.group.as_ref().and_then(Option::as_deref), locale),
            color: Ink::Series(at),
            value: *value,
            share: share(*value),
            is_other: false,
        })
        .collect();
    if !left.is_empty() && additive {
        let shown: f64 = items.iter().map(|item| item.value).sum();
        // Groups that the server left out belong to the rest as well: it is what the shown ones lack.
        let value = match total {
            Some(total) if is_cut(answer) => total - shown,
            _ => left.iter().map(|(_, value)| value).sum(),
        };
        let label = words(locale).other.to_owned();
        items.push(Ranked { label, color: Ink::Other, value, share: share(value), is_other: true });
    }
    (items, total)
}

/// Shifts the colours of series by `first` places in the palette.
/// A widget with `{"color": 3}` has its first series in the third colour, its second in the fourth. `Other` stays grey.
pub fn paint<'a>(colors: impl Iterator<Item = &'a mut Ink>, first: usize) {
    for color in colors {
        if let Ink::Series(at) = color {
            *at += first;
        }
    }
}

/// Whether the server left out groups.
/// True for 120 groups in the data of which 50 are among the rows.
fn is_cut(answer: &Answer) -> bool {
    answer.groups_total > answer.groups_returned
}

/// The sum over all groups; `None` when the rows lack groups and the server gave no total.
/// Of a 6 and b 2 with 9 groups in all, it is what the server sent, as 20, and never 8.
pub fn total_of(answer: &Answer) -> Option<f64> {
    let known = || answer.rows.iter().filter_map(|row| row.value).sum();
    answer.total.or_else(|| (!is_cut(answer)).then(known))
}

/// Stacks series: for each series and bucket, the lower and the upper end of its part. Positive
/// values go up from zero, negative ones down. With `percent`, the sizes of a bucket add up to one.
/// The first bucket of the example, in percent: 0–0.5, 0.5–0.833, 0.833–1. A bucket of zeros stays at 0.
pub fn stack(series: &[Series], count: usize, percent: bool) -> Vec<Vec<(f64, f64)>> {
    // By size: of 3 and −1, the parts are 0.75 up and 0.25 down.
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
/// `[1, 2, none, 3]` is `[[0, 1], [3]]`: a line, a gap, and a dot.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_of_sums_begins_behind_a_bucket_that_the_window_cuts() {
        let buckets = [(Some(0), Some(3.0)), (Some(10), Some(40.0)), (Some(20), None)];
        let all: Vec<_> = buckets.iter().map(|(_, value)| *value).collect();
        assert_eq!(course(&buckets, 5, Some("sum")), all[1..]);
        assert_eq!(course(&buckets, 0, Some("sum")), all);
        assert_eq!(course(&buckets, 5, Some("avg")), all);
        assert_eq!(
            course(&buckets[..2], 5, Some("count")),
            all[..2],
            "nothing would be left of two"
        );
    }
}
