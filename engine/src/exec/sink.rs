//! Where the rows that passed the filters go: a piece at a time into the states of their groups.

use super::{
    accumulate::{Accumulators, Assigned, Passed, Piece},
    budget::Charge,
    groups::{Groups, NO_GROUP},
};
use crate::{encode::VECTOR_ROWS, error::Result, query::Metric, sketch::sums::Sums};

/// Groups, their states, and the piece that is being filled.
pub struct Sink {
    /// The groups that were met so far.
    pub groups: Groups,
    /// The rows that were not added yet.
    pub piece: Piece,
    /// Room for the values of a vector.
    pub scratch: Box<Scratch>,
    accumulators: Accumulators,
}

/// Values of the rows of a vector, kept from one to the next to spare their allocation.
pub struct Scratch {
    /// Rows that passed so far, rising.
    pub kept: [u16; VECTOR_ROWS],
    /// Codes of a string property.
    pub codes: [i64; VECTOR_ROWS],
    /// A number.
    pub numbers: [f64; VECTOR_ROWS],
    /// Codes of users.
    pub users: [i64; VECTOR_ROWS],
    /// Groups of the rows that passed.
    pub groups: Vec<u32>,
    /// Hashes of their users.
    pub hashes: Vec<u128>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            kept: [0; VECTOR_ROWS],
            codes: [0; VECTOR_ROWS],
            numbers: [0.0; VECTOR_ROWS],
            users: [0; VECTOR_ROWS],
            groups: Vec::new(),
            hashes: Vec::new(),
        }
    }
}

impl Sink {
    /// Makes at most so many states.
    pub fn limit_cells(&mut self, cells_max: usize) {
        self.accumulators.limit_cells(cells_max);
    }

    /// Nothing yet of `metric` over `buckets` buckets.
    pub fn new(groups: Groups, metric: Metric, buckets: usize, charge: Charge) -> Self {
        let accumulators = Accumulators::new(metric, buckets, charge);
        Self { groups, piece: Piece::default(), scratch: Box::default(), accumulators }
    }

    /// Adds the rows of the piece to the states, and empties it.
    pub fn add_piece(&mut self) -> Result<()> {
        self.accumulators.grow(self.groups.names().len())?;
        self.accumulators.add(&self.piece)?;
        self.piece.clear();
        Ok(())
    }

    /// Adds the first `rows` rows that the scratch room keeps, of one bucket. Their numbers and hashes
    /// stand there side by side; `groups` is `None` when each has its own there.
    pub fn add_kept(&mut self, bucket: usize, rows: usize, group: Option<u32>) -> Result<()> {
        self.accumulators.grow(self.groups.names().len())?;
        let scratch = &*self.scratch;
        let groups = group.map_or(Assigned::Each(&scratch.groups), Assigned::One);
        let numbers = scratch.numbers.get(..rows).unwrap_or_default();
        self.accumulators
            .add_passed(bucket, &Passed { rows, groups, numbers, users: &scratch.hashes })
    }

    /// Adds `count` rows of a group to a count.
    pub fn add_count(&mut self, group: u32, bucket: usize, count: u64) -> Result<()> {
        if group != NO_GROUP {
            self.accumulators.grow(self.groups.names().len())?;
            self.accumulators.add_count(group, bucket, count);
        }
        Ok(())
    }

    /// Adds numbers of a group that were added up already.
    pub fn add_sums(&mut self, group: u32, bucket: usize, sums: &Sums) -> Result<()> {
        if group != NO_GROUP {
            self.accumulators.grow(self.groups.names().len())?;
            self.accumulators.add_sums(group, bucket, sums);
        }
        Ok(())
    }

    /// The account of the query.
    pub fn charge(&mut self) -> &mut Charge {
        self.accumulators.charge()
    }

    /// The groups, and their states with one for every group.
    pub fn finish(mut self) -> Result<(Groups, Accumulators)> {
        self.accumulators.grow(self.groups.names().len())?;
        Ok((self.groups, self.accumulators))
    }
}
