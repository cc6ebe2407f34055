//! What the rows of a series add up to, hour by hour: counts, users, numbers.

use std::collections::BTreeMap;

use crate::{
    base::coding::Cursor,
    error::Result,
    sketch::{digest::Digest, hll::Distinct},
};

/// By hour since 1970.
pub type HourStates = BTreeMap<i64, Hour>;

/// Which states are asked for besides the count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateSelection {
    /// Distinct users.
    pub users: bool,
    /// The spread of these numeric properties.
    pub numbers: Vec<String>,
}

/// What the rows of an hour add up to.
#[derive(Debug, Clone, Default)]
pub struct Hour {
    /// Number of events.
    pub count: u64,
    /// Its users, where they were asked for.
    pub(super) users: Option<Distinct>,
    /// The spread of each number that was asked for.
    pub(super) numbers: Vec<Digest>,
}

impl Hour {
    /// Nothing yet.
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

    /// Adds what other rows of the hour add up to.
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

    /// The users as bytes that [`UserState`] reads.
    pub fn users(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.users.as_ref()?.write(&mut out);
        Some(out)
    }

    /// The spread of a number as bytes that [`NumberState`] reads; nothing for no number.
    pub fn number(&self, at: usize) -> Option<Vec<u8>> {
        let digest = self.numbers.get(at).filter(|digest| !digest.is_empty())?;
        let mut out = Vec::new();
        digest.write(&mut out);
        Some(out)
    }
}

/// Distinct users, approximately: states of parts add up to that of the whole.
#[derive(Debug, Clone, Default)]
pub struct UserState(Distinct);

impl UserState {
    /// Adds everybody of a state in bytes.
    ///
    /// Errors: `Corrupt` when it is none.
    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let mut cursor = Cursor::new(bytes, "a state of users");
        self.0.merge(&Distinct::read(&mut cursor)?);
        cursor.finish()
    }

    /// How many there are, about.
    pub fn estimate(&self) -> u64 {
        self.0.estimate()
    }

    /// As bytes.
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

/// The spread of numbers, approximately: states of parts add up to that of the whole.
#[derive(Debug, Clone, Default)]
pub struct NumberState(Digest);

impl NumberState {
    /// Adds the numbers of a state in bytes.
    ///
    /// Errors: `Corrupt` when it is none.
    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let mut cursor = Cursor::new(bytes, "a state of numbers");
        self.0.merge(&Digest::read(&mut cursor)?);
        cursor.finish()
    }

    /// The number below which a part of all lies, from 0 to 1; nothing of nothing.
    pub fn quantile(&mut self, part: f64) -> Option<f64> {
        self.0.settle();
        self.0.quantile(part)
    }

    /// As bytes.
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
