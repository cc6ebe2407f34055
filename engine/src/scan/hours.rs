//! Aggregation states of a series by hour: counts, users, numbers.

use std::collections::BTreeMap;

use crate::{
    base::coding::Cursor,
    error::Result,
    sketch::{digest::Digest, hll::Distinct},
};

/// States by hour since 1970.
pub type HourStates = BTreeMap<i64, Hour>;

/// The states to compute besides the count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateSelection {
    /// Whether distinct users are estimated.
    pub users: bool,
    /// Numeric properties that get a digest.
    pub numbers: Vec<String>,
}

/// States of the rows of one hour.
#[derive(Debug, Clone, Default)]
pub struct Hour {
    /// Number of events.
    pub count: u64,
    /// Sketch of the users; `None` when not selected.
    pub(super) users: Option<Distinct>,
    /// Digest of each selected property, in the order of the selection.
    pub(super) numbers: Vec<Digest>,
}

impl Hour {
    /// The state of no events, with room for the selected states.
    pub fn empty(selection: &StateSelection) -> Self {
        Self {
            count: 0,
            users: selection.users.then(Distinct::default),
            numbers: selection.numbers.iter().map(|_| Digest::default()).collect(),
        }
    }

    pub(super) fn settle(&mut self) {
        self.numbers.iter_mut().for_each(Digest::settle);
    }

    /// Merges the states of other rows of the hour.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        if let (Some(mine), Some(theirs)) = (&mut self.users, &other.users) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.numbers.iter_mut().zip(&other.numbers) {
            mine.merge(theirs);
        }
        self.settle();
    }

    /// The sketch of users as bytes for [`UserState::add`]; `None` when users were not selected.
    pub fn users(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.users.as_ref()?.write(&mut out);
        Some(out)
    }

    /// The digest at an index of the selection, as bytes for [`NumberState::add`]; `None` without
    /// values.
    pub fn number(&self, at: usize) -> Option<Vec<u8>> {
        let digest = self.numbers.get(at).filter(|digest| !digest.is_empty())?;
        let mut out = Vec::new();
        digest.write(&mut out);
        Some(out)
    }
}

/// An estimate of distinct users that merges the estimates of parts.
#[derive(Debug, Clone, Default)]
pub struct UserState(Distinct);

impl UserState {
    /// Merges the users of a state in bytes.
    ///
    /// Errors: `Corrupt` when it is none.
    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let mut cursor = Cursor::new(bytes, "a state of users");
        self.0.merge(&Distinct::read(&mut cursor)?);
        cursor.finish()
    }

    /// The estimated number of distinct users.
    pub fn estimate(&self) -> u64 {
        self.0.estimate()
    }

    /// The state as bytes, which `add` reads.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.0.write(&mut out);
        out
    }

    /// Bytes in memory.
    pub fn bytes_used(&self) -> usize {
        self.0.bytes_used()
    }
}

/// An estimate of quantiles that merges the estimates of parts.
#[derive(Debug, Clone, Default)]
pub struct NumberState(Digest);

impl NumberState {
    /// Merges the numbers of a state in bytes.
    ///
    /// Errors: `Corrupt` when it is none.
    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let mut cursor = Cursor::new(bytes, "a state of numbers");
        self.0.merge(&Digest::read(&mut cursor)?);
        cursor.finish()
    }

    /// The number below which a share `part`, from 0 to 1, of all numbers lies; `None` without
    /// numbers.
    pub fn quantile(&mut self, part: f64) -> Option<f64> {
        self.0.settle();
        self.0.quantile(part)
    }

    /// The state as bytes, which `add` reads.
    pub fn write(&mut self) -> Vec<u8> {
        self.0.settle();
        let mut out = Vec::new();
        self.0.write(&mut out);
        out
    }

    /// Bytes in memory.
    pub fn bytes_used(&self) -> usize {
        self.0.bytes_used()
    }
}
