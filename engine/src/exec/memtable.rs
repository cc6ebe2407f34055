//! Reading memtable chunks.

use super::{
    accumulate::PassedUsers,
    groups::{CodeGroups, Groups, NO_GROUP},
    sink::Sink,
    window::Window,
};
use crate::{
    column::{ABSENT, BySeries, Rows, TextColumn},
    error::Result,
    query::{Metric, Query},
};

/// Adds the matching rows of a chunk, whose series are at `places`; returns how many rows of the window
/// were looked at.
pub fn scan(
    rows: &Rows,
    places: &BySeries,
    query: &Query,
    window: &Window,
    sink: &mut Sink,
) -> Result<u64> {
    let mut kept = asked_rows(rows, places, query, window);
    if kept.is_empty() {
        return Ok(0);
    }
    let scanned = kept.len() as u64;
    for filter in &query.texts {
        let Some(column) = rows.strings.get(&*filter.name) else { return Ok(scanned) };
        let accepted: Vec<bool> = column
            .values
            .iter()
            .map(|value| filter.any_of.iter().any(|other| **value == *other))
            .collect();
        kept.retain(|&row| accepted.get(column.code(row) as usize) == Some(&true));
    }
    let number_at = |name: &str, row: usize| {
        rows.numbers.get(name).and_then(|values| values.get(row)).unwrap_or(f64::NAN)
    };
    for filter in &query.numbers {
        kept.retain(|&row| (filter.min..=filter.max).contains(&number_at(&filter.name, row)));
    }
    let number_of_metric = query.number.as_ref().filter(|_| query.metric.needs_number());
    if let Some(name) = number_of_metric {
        kept.retain(|&row| !number_at(name, row).is_nan());
    }
    let counts_users = matches!(query.metric, Metric::Distinct | Metric::DistinctApprox);
    if counts_users {
        kept.retain(|&row| rows.user_hashes[row] != 0);
    }
    let groups = assign(rows, &mut kept, query, &mut sink.groups);
    let number = |name: &String| kept.iter().map(|&row| number_at(name, row)).collect();
    let numbers: Vec<f64> = number_of_metric.map_or_else(Vec::new, number);
    let users = match counts_users {
        true => sink.users_of(kept.iter().map(|&row| rows.user_hashes[row]).collect())?,
        false => PassedUsers::default(),
    };
    let mut bucket = 0;
    let buckets = kept.iter().map(|&row| {
        bucket = window.bucket_of(rows.timestamps[row], bucket);
        bucket
    });
    sink.add_rows(groups.into_iter().zip(buckets), &numbers, &users)?;
    Ok(scanned)
}

/// The rows of the query's series inside its window, as they came.
pub fn asked_rows(rows: &Rows, places: &BySeries, query: &Query, window: &Window) -> Vec<usize> {
    let is_wanted = |code: &u32| {
        let key = &rows.series[*code as usize];
        key.namespace == query.namespace
            && *key.name == *query.event
            && query.tenant.as_deref().is_none_or(|tenant| &*key.tenant == tenant)
    };
    let series: Vec<u32> = match &query.tenant {
        Some(tenant) => places.of_tenant(query.namespace, tenant).filter(is_wanted).collect(),
        None => (0..rows.series.len() as u32).filter(is_wanted).collect(),
    };
    let of_series = series.iter().flat_map(|&code| places.rows(code)).map(|&row| row as usize);
    let mut kept: Vec<usize> =
        of_series.filter(|&row| window.contains(rows.timestamps[row])).collect();
    if series.len() > 1 {
        // As they came: sums depend on the order.
        kept.sort_unstable();
    }
    kept
}

/// The group of each kept row; rows whose group does not count are kept no longer.
fn assign(rows: &Rows, kept: &mut Vec<usize>, query: &Query, groups: &mut Groups) -> Vec<u32> {
    let nothing = TextColumn::default();
    let column = query.group_by.as_ref().map(|name| rows.strings.get(&**name).unwrap_or(&nothing));
    let mut translate = CodeGroups::new(column.map_or(0, |column| column.values.len()));
    let mut assigned = Vec::with_capacity(kept.len());
    kept.retain(|&row| {
        let group = match column.map(|column| (column, column.code(row))) {
            None | Some((_, ABSENT)) => groups.number(None),
            Some((column, code)) => {
                let name = || column.values.get(code as usize).map(|name| &**name);
                translate.number(code as usize, groups, name)
            }
        };
        if group != NO_GROUP {
            assigned.push(group);
        }
        group != NO_GROUP
    });
    assigned
}
