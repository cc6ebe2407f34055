//! Aggregation states of rows: one state, and a list of states for the cache.

use std::{ops::Range, sync::Arc};

use super::user_interner::UserSet;
use crate::{
    query::Metric,
    sketch::{digest::Digest, hll::Distinct, sums::Sums},
};

/// The aggregation state of some rows.
#[derive(Clone, Copy)]
pub enum State<'a> {
    /// Number of rows.
    Count(u64),
    /// Count, sum and extremes of the numbers.
    Numbers(&'a Sums),
    /// Set of users by number.
    Users(&'a UserSet),
    /// Number of users who are in no other state of the same group and bucket.
    OtherUsers(u64),
    /// HyperLogLog sketch of the users.
    Sketch(&'a Distinct),
    /// The number of each row, in any order.
    List(&'a [f64]),
    /// t-digest of the numbers.
    Digest(&'a Digest),
}

impl State<'_> {
    /// Whether there were no rows.
    pub fn is_nothing(self) -> bool {
        matches!(self, Self::Count(0) | Self::OtherUsers(0))
    }
}

impl From<&u64> for State<'_> {
    fn from(count: &u64) -> Self {
        Self::Count(*count)
    }
}

impl<'a> From<&'a Sums> for State<'a> {
    fn from(sums: &'a Sums) -> Self {
        Self::Numbers(sums)
    }
}

impl<'a> From<&'a Distinct> for State<'a> {
    fn from(sketch: &'a Distinct) -> Self {
        Self::Sketch(sketch)
    }
}

impl<'a> From<&'a Digest> for State<'a> {
    fn from(digest: &'a Digest) -> Self {
        Self::Digest(digest)
    }
}

/// States of a metric, one for each group of each part.
#[derive(Clone)]
pub enum PartialStates {
    /// Counts of rows.
    Counts(Vec<u64>),
    /// Counts, sums and extremes of numbers.
    Numbers(Vec<Sums>),
    /// Sets of users by number.
    Users(Vec<Arc<UserSet>>),
    /// HyperLogLog sketches of users.
    Sketches(Vec<Arc<Distinct>>),
    /// The number of each row, in any order.
    Lists(Vec<Arc<[f64]>>),
    /// Digests of numbers.
    Digests(Vec<Arc<Digest>>),
}

impl PartialStates {
    /// An empty list of the kind that a metric needs.
    pub fn of(metric: Metric) -> Self {
        match metric {
            Metric::Count => Self::Counts(Vec::new()),
            Metric::Sum | Metric::Avg | Metric::Min | Metric::Max => Self::Numbers(Vec::new()),
            Metric::Distinct => Self::Users(Vec::new()),
            Metric::DistinctApprox => Self::Sketches(Vec::new()),
            Metric::Percentile(_) => Self::Lists(Vec::new()),
            Metric::PercentileApprox(_) => Self::Digests(Vec::new()),
        }
    }

    /// The state at an index.
    pub fn state(&self, at: usize) -> State<'_> {
        match self {
            Self::Counts(cells) => State::Count(cells[at]),
            Self::Numbers(cells) => State::Numbers(&cells[at]),
            Self::Users(cells) => State::Users(&cells[at]),
            Self::Sketches(cells) => State::Sketch(&cells[at]),
            Self::Lists(cells) => State::List(&cells[at]),
            Self::Digests(cells) => State::Digest(&cells[at]),
        }
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        match self {
            Self::Counts(cells) => cells.len(),
            Self::Numbers(cells) => cells.len(),
            Self::Users(cells) => cells.len(),
            Self::Sketches(cells) => cells.len(),
            Self::Lists(cells) => cells.len(),
            Self::Digests(cells) => cells.len(),
        }
    }

    /// Appends a range of other cells, which are of the same kind.
    pub fn extend(&mut self, other: &Self, range: Range<usize>) {
        match (self, other) {
            (Self::Counts(to), Self::Counts(from)) => to.extend_from_slice(&from[range]),
            (Self::Numbers(to), Self::Numbers(from)) => to.extend_from_slice(&from[range]),
            (Self::Users(to), Self::Users(from)) => to.extend_from_slice(&from[range]),
            (Self::Sketches(to), Self::Sketches(from)) => to.extend_from_slice(&from[range]),
            (Self::Lists(to), Self::Lists(from)) => to.extend_from_slice(&from[range]),
            (Self::Digests(to), Self::Digests(from)) => to.extend_from_slice(&from[range]),
            _ => unreachable!("cells of one query are of one kind"),
        }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Counts(cells) => size_of_val(&**cells),
            Self::Numbers(cells) => size_of_val(&**cells),
            Self::Users(cells) => cells.iter().map(|set| set.bytes() + 32).sum(),
            Self::Sketches(cells) => cells.iter().map(|sketch| sketch.bytes_used() + 64).sum(),
            Self::Lists(cells) => cells.iter().map(|list| size_of_val(&**list) + 32).sum(),
            Self::Digests(cells) => cells.iter().map(|digest| digest.bytes_used() + 96).sum(),
        }
    }
}
