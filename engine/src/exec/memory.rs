//! Reading memtable chunks.

use super::{
    accumulate::Piece,
    groups::{CodeGroups, Groups, NO_GROUP},
    sink::Sink,
    window::Window,
};
use crate::{
    column::{ABSENT, Rows, TextColumn},
    error::Result,
    query::{Metric, Query},
};

/// Adds the matching rows of a chunk; returns how many rows of the window were looked at.
pub fn scan(rows: &Rows, query: &Query, window: &Window, sink: &mut Sink) -> Result<u64> {
    let wanted: Vec<bool> = rows
        .series
        .iter()
        .map(|key| {
            key.namespace == query.namespace
                && *key.name == *query.event
                && query.tenant.as_deref().is_none_or(|tenant| &*key.tenant == tenant)
        })
        .collect();
    if !wanted.contains(&true) {
        return Ok(0);
    }
    let in_window = |row: &usize| {
        wanted[rows.series_codes[*row] as usize] && window.contains(rows.timestamps[*row])
    };
    let mut kept: Vec<usize> = (0..rows.len()).filter(in_window).collect();
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
    if let Some(name) = query.number.as_deref().filter(|_| query.metric.needs_number()) {
        kept.retain(|&row| !number_at(name, row).is_nan());
        sink.piece.numbers.extend(kept.iter().map(|&row| number_at(name, row)));
    }
    if matches!(query.metric, Metric::Distinct | Metric::DistinctApprox) {
        kept.retain(|&row| rows.user_hashes[row] != 0);
    }
    gather(rows, &kept, query, window, &mut sink.groups, &mut sink.piece);
    sink.add_piece()?;
    Ok(scanned)
}

/// Fills the piece with group, bucket, number and user of the kept rows whose group counts.
fn gather(
    rows: &Rows,
    kept: &[usize],
    query: &Query,
    window: &Window,
    groups: &mut Groups,
    piece: &mut Piece,
) {
    let nothing = TextColumn::default();
    let column = query.group_by.as_ref().map(|name| rows.strings.get(&**name).unwrap_or(&nothing));
    let mut translate = CodeGroups::new(column.map_or(0, |column| column.values.len()));
    let counts_users = matches!(query.metric, Metric::Distinct | Metric::DistinctApprox);
    let numbers = std::mem::take(&mut piece.numbers);
    let mut bucket = 0;
    for (at, &row) in kept.iter().enumerate() {
        let group = match column {
            None => groups.number(None),
            Some(column) => match column.code(row) {
                ABSENT => groups.number(None),
                code => {
                    let name = || column.values.get(code as usize).map(|name| &**name);
                    translate.number(code as usize, groups, name)
                }
            },
        };
        if group == NO_GROUP {
            continue;
        }
        bucket = window.bucket_of(rows.timestamps[row], bucket);
        piece.groups.push(group);
        piece.buckets.push(bucket as u32);
        if let Some(&number) = numbers.get(at) {
            piece.numbers.push(number);
        }
        if counts_users {
            piece.users.push(rows.user_hashes[row]);
        }
    }
}
