//! The sink of a scan: adds rows that passed the filters to the states of their groups.

use std::{cell::Cell, sync::Arc};

use super::{
    accumulate::{Accumulators, Passed, PassedUsers, Places},
    budget::Charge,
    groups::{Groups, NO_GROUP},
    partial_states::{PartialStates, State},
    query_cache::{AskedUsers, QueryCache},
};
use crate::{
    encode::VECTOR_ROWS,
    error::Result,
    query::Metric,
    segment::{Segment, UserReader},
};

/// Groups and their states, with buffers for rows that are about to be added.
pub struct Sink {
    /// The groups that were met so far.
    pub groups: Groups,
    /// Room for the values of a vector, once it is needed.
    pub scratch: LazyScratch,
    /// The users that are counted by number.
    asked_users: Option<AskedUsers>,
    accumulators: Accumulators,
    buckets: usize,
    cells: Vec<usize>,
}

/// Buffers for the rows of a vector, reused to spare allocations.
pub struct Scratch {
    /// Rows that passed so far, rising.
    pub kept: [u16; VECTOR_ROWS],
    /// Codes of a string property.
    pub codes: [i64; VECTOR_ROWS],
    /// Values of one numeric property: a filter's, then the metric's.
    pub numbers: [f64; VECTOR_ROWS],
    /// Codes of users.
    pub users: [i64; VECTOR_ROWS],
    /// Groups of the rows that passed.
    pub groups: Vec<u32>,
    /// Users of the rows that passed.
    pub passed_users: PassedUsers,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            kept: [0; VECTOR_ROWS],
            codes: [0; VECTOR_ROWS],
            numbers: [0.0; VECTOR_ROWS],
            users: [0; VECTOR_ROWS],
            groups: Vec::new(),
            passed_users: PassedUsers::default(),
        }
    }
}

/// Buffers for a vector of rows from the first use on. A thread's next query uses them again: to make room for them takes
/// as long as to read some hundred rows.
#[derive(Default)]
pub struct LazyScratch(Option<Box<Scratch>>);

thread_local! {
    static UNUSED: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

impl LazyScratch {
    /// The buffers, with anything in them.
    pub fn buffers(&mut self) -> &mut Scratch {
        self.0.get_or_insert_with(|| UNUSED.take().unwrap_or_default())
    }
}

impl Drop for LazyScratch {
    fn drop(&mut self) {
        if let Some(scratch) = self.0.take() {
            // The thread may have ended.
            let _ = UNUSED.try_with(|unused| unused.set(Some(scratch)));
        }
    }
}

/// The users of a tenant in a segment, by their codes less one.
#[derive(Clone)]
pub enum Users {
    /// Hashes of the users, for sketches.
    Hashes(Arc<[u128]>),
    /// Numbers of the users, and the number of users that the interner knows.
    Numbers(Arc<[u32]>, usize),
}

impl Sink {
    /// Makes at most so many states.
    pub fn limit_cells(&mut self, cells_max: usize) {
        self.accumulators.limit_cells(cells_max);
    }

    /// Expects at most so many rows in each bucket.
    pub fn expect_rows(&mut self, rows_max: Arc<[u64]>) {
        self.accumulators.expect_rows(rows_max);
    }

    /// Nothing yet of `metric` over `buckets` buckets. `asked_users` are needed to count users exactly.
    pub fn new(
        groups: Groups,
        metric: Metric,
        buckets: usize,
        asked_users: Option<AskedUsers>,
        charge: Charge,
    ) -> Self {
        let accumulators = Accumulators::new(metric, buckets, charge);
        let (scratch, cells) = (LazyScratch::default(), Vec::new());
        Self { groups, scratch, asked_users, accumulators, buckets, cells }
    }

    /// The list of users' numbers, if others know it.
    pub fn shared_users(&self) -> Option<u64> {
        self.asked_users.as_ref().filter(|asked| asked.is_kept()).map(|asked| asked.numbers.id())
    }

    /// The users of a tenant in a segment, as they are counted.
    pub fn users(
        &mut self,
        kept: &QueryCache,
        segment: &Segment,
        tenant: usize,
        reader: &mut UserReader,
    ) -> Result<Users> {
        let charge = self.accumulators.charge();
        let Some(asked) = &self.asked_users else {
            return Ok(Users::Hashes(kept.users(segment, tenant, reader, charge)?));
        };
        let numbers = kept.user_numbers(segment, tenant, asked, reader, charge)?;
        Ok(Users::Numbers(numbers, asked.numbers.count()))
    }

    /// Users of rows in memory, as they are counted.
    pub fn users_of(&mut self, hashes: Vec<u128>) -> Result<PassedUsers> {
        let Some(asked) = &self.asked_users else {
            return Ok(PassedUsers { hashes, ..PassedUsers::default() });
        };
        let mut numbers = Vec::with_capacity(hashes.len());
        let grown = asked.numbers.number(hashes.into_iter(), &mut numbers);
        self.accumulators.charge().add(grown)?;
        Ok(PassedUsers { hashes: Vec::new(), numbers, count: asked.numbers.count() })
    }

    /// Adds rows, each of which has a group and a bucket, with their numbers and users where the metric
    /// is about these.
    pub fn add_rows(
        &mut self,
        groups_and_buckets: impl Iterator<Item = (u32, usize)>,
        numbers: &[f64],
        users: &PassedUsers,
    ) -> Result<()> {
        self.accumulators.grow(self.groups.names().len())?;
        let cell = |(group, bucket)| cell_of(group, bucket, self.buckets);
        self.cells.clear();
        self.cells.extend(groups_and_buckets.map(cell));
        let places = Places::Each(&self.cells);
        self.accumulators.add(&Passed { rows: self.cells.len(), places, numbers, users })
    }

    /// Adds the first `rows` rows that the scratch room keeps, of one bucket. Their numbers and hashes
    /// stand there side by side; `group` is `None` when each has its own there.
    pub fn add_kept(&mut self, bucket: usize, rows: usize, group: Option<u32>) -> Result<()> {
        self.accumulators.grow(self.groups.names().len())?;
        let scratch = &*self.scratch.buffers();
        let places = match group {
            Some(group) => Places::One(cell_of(group, bucket, self.buckets)),
            None => {
                let cell = |&group: &u32| cell_of(group, bucket, self.buckets);
                self.cells.clear();
                self.cells.extend(scratch.groups.iter().map(cell));
                Places::Each(&self.cells)
            }
        };
        let numbers = scratch.numbers.get(..rows).unwrap_or_default();
        self.accumulators.add(&Passed { rows, places, numbers, users: &scratch.passed_users })
    }

    /// Adds users to a group and bucket, by their codes in a segment. Returns whether every code is one of a user.
    ///
    /// Errors: `Limit` when there is no memory for them.
    pub fn add_users(
        &mut self,
        (group, bucket): (u32, usize),
        users: &Users,
        codes: &[u32],
    ) -> Result<bool> {
        let mut are_known = true;
        // As many at a time as a vector of rows has: the room for them is no part of the query's account.
        for some in codes.chunks(VECTOR_ROWS) {
            let passed = &mut self.scratch.buffers().passed_users;
            let rows = match users {
                Users::Hashes(known) => look_up(some, known, &mut passed.hashes),
                Users::Numbers(known, count) => {
                    passed.count = *count;
                    look_up(some, known, &mut passed.numbers)
                }
            };
            are_known &= rows == some.len();
            if rows > 0 && group != NO_GROUP {
                self.add_kept(bucket, rows, Some(group))?;
            }
        }
        Ok(are_known)
    }

    /// Adds the state of rows of a group to a bucket.
    pub fn add_state(&mut self, group: u32, bucket: usize, state: State<'_>) -> Result<()> {
        if group == NO_GROUP {
            return Ok(());
        }
        self.accumulators.grow(self.groups.names().len())?;
        let users = self.known_users();
        self.accumulators.add_state(group, bucket, state, users)
    }

    /// How many users have numbers.
    fn known_users(&self) -> usize {
        self.asked_users.as_ref().map_or(0, |asked| asked.numbers.count())
    }

    /// A sink of one bucket and any group, for a part of what is read: it has the room of this one and its
    /// account until it is taken back.
    pub fn lend(&mut self, metric: Metric) -> Self {
        let charge = self.accumulators.charge().take();
        let asked_users = self.asked_users.take();
        let mut lent = Self::new(Groups::open(), metric, 1, asked_users, charge);
        lent.scratch = std::mem::take(&mut self.scratch);
        lent
    }

    /// Takes back what was lent when `bytes` were charged; what was added since is not charged any more, but
    /// for users' numbers that nobody else keeps. Returns the groups that were met, and their cells.
    ///
    /// Errors: `Limit` when there is no memory for a state of each group.
    pub fn take_back(&mut self, mut lent: Self, bytes: usize) -> Result<(Groups, PartialStates)> {
        let grown = lent.accumulators.grow(lent.groups.names().len());
        self.scratch = std::mem::take(&mut lent.scratch);
        self.asked_users = lent.asked_users.take();
        let own_users = self.asked_users.as_ref().filter(|asked| !asked.is_kept());
        let users_bytes = own_users.map_or(0, |asked| asked.numbers.bytes());
        let charge = self.accumulators.charge();
        *charge = lent.accumulators.charge().take();
        charge.shrink_to(bytes.max(users_bytes));
        grown?;
        Ok((lent.groups, lent.accumulators.into_cells()))
    }

    /// Empty sinks for `count` helper threads of the same query.
    pub fn helpers(&mut self, count: usize) -> Vec<Self> {
        let accounts = self.accumulators.charge().part(count);
        let helper = |charge| Self {
            groups: self.groups.fresh(),
            scratch: LazyScratch::default(),
            asked_users: self.asked_users.clone(),
            accumulators: self.accumulators.fresh(charge),
            buckets: self.buckets,
            cells: Vec::new(),
        };
        accounts.into_iter().map(helper).collect()
    }

    /// Merges the states of helper threads.
    pub fn join(&mut self, mut helpers: Vec<Self>) -> Result<()> {
        let accounts = helpers.iter_mut().map(|helper| helper.accumulators.charge().take());
        let accounts = accounts.collect();
        self.accumulators.charge().join(accounts);
        for helper in helpers {
            let names = helper.groups.names();
            let numbers: Vec<u32> =
                names.iter().map(|name| self.groups.number(name.as_deref())).collect();
            self.accumulators.grow(self.groups.names().len())?;
            let users = self.known_users();
            self.accumulators.join(helper.accumulators, &numbers, users)?;
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

/// Replaces `out` by the known values of codes, which count from 1; returns the number of values.
fn look_up<T: Copy>(codes: &[u32], known: &[T], out: &mut Vec<T>) -> usize {
    out.clear();
    out.extend(
        codes.iter().filter_map(|&code| known.get((code as usize).wrapping_sub(1)).copied()),
    );
    out.len()
}

fn cell_of(group: u32, bucket: usize, buckets: usize) -> usize {
    group as usize * buckets + bucket
}
