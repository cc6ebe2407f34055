//! Partial results: the states that a query got from each segment, cached for the next query.
//!
//! Segments never change, so a partial result is right for as long as its segment lives. A
//! dashboard repeats the same queries; then only new segments are read. The results of a query
//! stand together in one table: a span of cells for each part (see [`super::query_cache::Part`]),
//! a cell for each group with rows in the part. A bucket that holds a whole part takes its cells;
//! other buckets read rows.

use std::{collections::HashMap, sync::Arc};

use super::{partial_states::PartialStates, scan_stats::ScanStats};
use crate::{
    base::{coding::Put, hash::MapHasher},
    query::{Group, Metric, Query},
};

/// Largest size of a table in bytes: partial results beyond it are not cached, even if the cache has room.
pub const TABLE_BYTES_MAX: usize = 4 << 20;
/// Cells that a part may have.
pub const PART_CELLS_MAX: usize = 8_192;
/// Percentile inputs of parts with so many rows or more are not cached: rereading costs the same.
pub const LISTED_ROWS: u64 = 1_024;
/// Bytes of a table besides its content.
const TABLE_BYTES: usize = 256;
/// Bytes of a group besides its name.
const GROUP_BYTES: usize = 96;

/// What is known of a part.
#[derive(Clone, Copy)]
pub enum Known {
    /// No result is cached.
    Nothing,
    /// Not cacheable: too many rows for a list, or too many cells or bytes.
    TooMuch,
    /// Span of the cells, and the statistics of the scan that made them.
    PartialStates(Span),
}

/// The cells of a part.
#[derive(Clone, Copy)]
pub struct Span {
    /// Index of the first cell in the table.
    pub start: u32,
    /// Index behind the last cell.
    pub end: u32,
    /// Statistics of the scan that made the cells.
    pub reads: ScanStats,
}

/// The key of a part: identity of its segment, index of its first run, and its day if it covers one day.
pub type PartId = (uuid::Uuid, u32, Option<i64>);

/// Index of each group among the names of a table.
pub type Positions = HashMap<Group, u32, MapHasher>;

/// The partial results of one question over a list of segments.
#[derive(Clone)]
pub struct Table {
    /// Id of the list of segments.
    segments: u64,
    /// Id of the interner of user numbers, where users are counted by number.
    users: Option<u64>,
    parts: Vec<(PartId, Known)>,
    names: Vec<Group>,
    /// Group of each cell, as an index into `names`.
    groups: Vec<u32>,
    cells: PartialStates,
    bytes: usize,
}

impl Table {
    /// A table without results. `users` is the id of the interner whose numbers the cells hold.
    pub fn new(
        cells: PartialStates,
        segments: u64,
        users: Option<u64>,
        parts: impl Iterator<Item = PartId>,
    ) -> Self {
        let parts = parts.map(|id| (id, Known::Nothing)).collect();
        let (names, groups) = (Vec::new(), Vec::new());
        let mut table = Self { segments, users, parts, names, groups, cells, bytes: 0 };
        table.bytes = table.weigh();
        table
    }

    /// Whether the table belongs to this list of segments and this interner of users.
    pub fn is_of(&self, segments: u64, users: Option<u64>) -> bool {
        self.segments == segments && self.users == users
    }

    /// Copies the cells of parts that another table has results for.
    pub fn take_over(&mut self, other: &Self) {
        if self.users != other.users {
            return;
        }
        let known: HashMap<PartId, Span> = { other.parts.iter() }
            .filter_map(|(id, known)| match known {
                Known::PartialStates(span) => Some((*id, *span)),
                // The limits may allow the part this time.
                Known::Nothing | Known::TooMuch => None,
            })
            .collect();
        // Names that only gone segments had are left behind.
        let mut positions = vec![u32::MAX; other.names.len()];
        for (id, slot) in &mut self.parts {
            let Some(&span) = known.get(id) else { continue };
            let start = self.groups.len() as u32;
            for &group in other.groups(span) {
                let position = &mut positions[group as usize];
                if *position == u32::MAX {
                    *position = self.names.len() as u32;
                    self.names.push(other.names[group as usize].clone());
                }
                self.groups.push(*position);
            }
            self.cells.extend(&other.cells, span.start as usize..span.end as usize);
            *slot = Known::PartialStates(Span { start, end: self.groups.len() as u32, ..span });
        }
        self.bytes = self.weigh();
    }

    /// What is known of a part.
    pub fn known(&self, part: usize) -> Known {
        self.parts.get(part).map_or(Known::TooMuch, |(_, known)| *known)
    }

    /// Names of the groups that have cells.
    pub fn names(&self) -> &[Group] {
        &self.names
    }

    /// Group of each cell of a span, as an index into `names`.
    pub fn groups(&self, span: Span) -> &[u32] {
        &self.groups[span.start as usize..span.end as usize]
    }

    /// The cells of all parts; spans index into them.
    pub fn cells(&self) -> &PartialStates {
        &self.cells
    }

    /// Adds the cells of a part: the first is of the first of `groups`, and so on. `positions` is empty at
    /// first.
    pub fn learn(
        &mut self,
        part: usize,
        groups: &[Group],
        cells: &PartialStates,
        reads: ScanStats,
        positions: &mut Positions,
    ) {
        let start = self.groups.len() as u32;
        if positions.is_empty() {
            positions.extend(self.names.iter().cloned().zip(0..));
        }
        for group in groups {
            let next = self.names.len() as u32;
            let position = *positions.entry(group.clone()).or_insert(next);
            if position == next {
                self.names.push(group.clone());
            }
            self.groups.push(position);
        }
        self.cells.extend(cells, 0..cells.len());
        self.bytes += bytes_of(groups, cells);
        if let Some((_, known)) = self.parts.get_mut(part) {
            *known = Known::PartialStates(Span { start, end: self.groups.len() as u32, reads });
        }
    }

    /// Marks a part as not cacheable.
    pub fn refuse(&mut self, part: usize) {
        if let Some((_, slot)) = self.parts.get_mut(part) {
            *slot = Known::TooMuch;
        }
    }

    /// Bytes in memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn weigh(&self) -> usize {
        TABLE_BYTES
            + size_of_val(&*self.parts)
            + size_of_val(&*self.groups)
            + bytes_of(&self.names, &self.cells)
    }
}

/// Bytes of cells and their groups.
pub fn bytes_of(groups: &[Group], cells: &PartialStates) -> usize {
    let name = |group: &Group| GROUP_BYTES + group.as_ref().map_or(0, |name| name.len());
    groups.iter().map(name).sum::<usize>() + cells.bytes()
}

/// The cache key of a query: queries with the same key have the same cells. The window, the buckets
/// and the choice of groups are left out, since cells hold whole parts and all groups.
pub fn cache_key(query: &Query) -> Arc<[u8]> {
    let mut out = Vec::with_capacity(128);
    out.put_u32(query.namespace.0);
    let put_optional = |out: &mut Vec<u8>, text: Option<&str>| {
        out.push(u8::from(text.is_some()));
        put_text(out, text.unwrap_or_default());
    };
    put_optional(&mut out, query.tenant.as_deref());
    put_text(&mut out, &query.event);
    out.push(match query.metric {
        Metric::Count => 0,
        Metric::Sum | Metric::Avg | Metric::Min | Metric::Max => 1,
        Metric::Distinct => 2,
        Metric::DistinctApprox => 3,
        Metric::Percentile(_) => 4,
        Metric::PercentileApprox(_) => 5,
    });
    put_optional(&mut out, query.number.as_deref().filter(|_| query.metric.needs_number()));
    put_optional(&mut out, query.group_by.as_deref());
    out.put_varint(query.texts.len() as u64);
    for filter in &query.texts {
        put_text(&mut out, &filter.name);
        out.put_varint(filter.any_of.len() as u64);
        filter.any_of.iter().for_each(|value| put_text(&mut out, value));
    }
    for filter in &query.numbers {
        put_text(&mut out, &filter.name);
        out.put_u64(filter.min.to_bits());
        out.put_u64(filter.max.to_bits());
    }
    out.into()
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.put_varint(text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}
