//! Where the rows that passed the filters go: a piece at a time into the states of their groups.

use super::{
    accumulate::{Accumulators, Piece},
    budget::Charge,
    groups::{Groups, NO_GROUP},
};
use crate::{error::Result, query::Metric, sketch::sums::Sums};

/// Groups, their states, and the piece that is being filled.
pub struct Sink {
    /// The groups that were met so far.
    pub groups: Groups,
    /// The rows that were not added yet.
    pub piece: Piece,
    accumulators: Accumulators,
}

impl Sink {
    /// Nothing yet of `metric` over `buckets` buckets.
    pub fn new(groups: Groups, metric: Metric, buckets: usize, charge: Charge) -> Self {
        let accumulators = Accumulators::new(metric, buckets, charge);
        Self { groups, piece: Piece::default(), accumulators }
    }

    /// Adds the rows of the piece to the states, and empties it.
    pub fn add_piece(&mut self) -> Result<()> {
        self.accumulators.grow(self.groups.names().len())?;
        self.accumulators.add(&self.piece)?;
        self.piece.clear();
        Ok(())
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
