//! Accumulators: one state for each group and bucket, of the kind that the metric needs.

use std::sync::Arc;

use super::{
    budget::Charge,
    exact_percentile::ExactPercentile,
    groups::NO_GROUP,
    partial_states::{PartialStates, State},
    user_interner::UserSet,
};
use crate::{
    error::{Error, Limit, Result},
    query::{Metric, Value},
    sketch::{
        digest::{self, Digest},
        hll::{self, Distinct},
        sums::Sums,
    },
};

/// Bytes of a group besides its states: name, look-up, and its line in the answer.
const GROUP_BYTES: usize = 384;

/// The states that rows are added to, by index: `group * buckets + bucket`.
#[derive(Clone, Copy)]
pub enum Places<'a> {
    /// One state for all rows.
    One(usize),
    /// One state for each row, in the order of the rows.
    Each(&'a [usize]),
}

/// Rows that passed the filters, column by column.
pub struct Passed<'a> {
    /// Number of rows that passed.
    pub rows: usize,
    /// States that the rows are added to.
    pub places: Places<'a>,
    /// The metric's number of each row; empty for metrics without one, never NaN.
    pub numbers: &'a [f64],
    /// The user of each row; empty for metrics that do not count users.
    pub users: &'a PassedUsers,
}

/// Users of rows.
#[derive(Default)]
pub struct PassedUsers {
    /// Hash of each user, never 0; empty where users are counted by number.
    pub hashes: Vec<u128>,
    /// Number of each user; empty where users are counted by hash.
    pub numbers: Vec<u32>,
    /// Number of users in the list that gave the numbers; at least each number plus one.
    pub count: usize,
}

enum States {
    Counts(Vec<u64>),
    Users(Vec<UserSet>),
    Sketches(Vec<Distinct>),
    Numbers(Vec<Sums>),
    Lists(Vec<ExactPercentile>),
    Digests(Vec<Digest>),
}

/// All states of a query: `group * buckets + bucket`.
pub struct Accumulators {
    metric: Metric,
    buckets: usize,
    states: States,
    cells_max: usize,
    /// Upper bound of the rows of each bucket; empty when unknown.
    rows_max: Arc<[u64]>,
    charge: Charge,
}

impl Accumulators {
    /// States for `metric` over `buckets` buckets, charged for what they take.
    pub fn new(metric: Metric, buckets: usize, charge: Charge) -> Self {
        let states = match metric {
            Metric::Count => States::Counts(Vec::new()),
            Metric::Distinct => States::Users(Vec::new()),
            Metric::DistinctApprox => States::Sketches(Vec::new()),
            Metric::Sum | Metric::Avg | Metric::Min | Metric::Max => States::Numbers(Vec::new()),
            Metric::Percentile(_) => States::Lists(Vec::new()),
            Metric::PercentileApprox(_) => States::Digests(Vec::new()),
        };
        Self { metric, buckets, states, cells_max: usize::MAX, rows_max: Arc::default(), charge }
    }

    /// Expects at most so many rows in each bucket, before there are any states.
    pub fn expect_rows(&mut self, rows_max: Arc<[u64]>) {
        self.rows_max = rows_max;
    }

    /// Limits the number of states; `grow` fails beyond it.
    pub fn limit_cells(&mut self, cells_max: usize) {
        self.cells_max = cells_max;
    }

    /// Whether the states of buckets can be merged into a total without more memory.
    pub fn merges(metric: Metric) -> bool {
        !matches!(metric, Metric::Percentile(_) | Metric::PercentileApprox(_))
    }

    /// Makes states for the first `groups` groups.
    ///
    /// Errors: `Limit` when they need more memory than a query may have, or are more than were allowed.
    pub fn grow(&mut self, groups: usize) -> Result<()> {
        let len = groups * self.buckets;
        let (have, each) = match &self.states {
            States::Counts(states) => (states.len(), 8),
            States::Users(states) => (states.len(), UserSet::EMPTY_BYTES),
            States::Sketches(states) => (states.len(), hll::EMPTY_BYTES),
            States::Numbers(states) => (states.len(), 40),
            States::Lists(states) => (states.len(), size_of::<ExactPercentile>()),
            States::Digests(states) => (states.len(), digest::EMPTY_BYTES),
        };
        if len <= have {
            return Ok(());
        }
        if len > self.cells_max {
            return Err(Error::limit(
                Limit::QueryMemory,
                "the answer has too many groups and buckets",
            ));
        }
        let groups = (len - have).div_ceil(self.buckets.max(1));
        self.charge.add((len - have) * each + groups * GROUP_BYTES)?;
        match &mut self.states {
            States::Counts(states) => states.resize(len, 0),
            States::Users(states) => states.resize_with(len, UserSet::default),
            States::Sketches(states) => states.resize_with(len, Distinct::default),
            States::Numbers(states) => states.resize(len, Sums::default()),
            States::Lists(states) => {
                let fresh =
                    |cell: usize| match (self.metric, self.rows_max.get(cell % self.buckets)) {
                        (Metric::Percentile(percent), Some(&rows)) => {
                            ExactPercentile::new(percent, rows)
                        }
                        _ => ExactPercentile::default(),
                    };
                states.extend((have..len).map(fresh));
            }
            States::Digests(states) => states.resize_with(len, Digest::default),
        }
        Ok(())
    }

    /// Adds rows; states for their groups exist.
    pub fn add(&mut self, passed: &Passed<'_>) -> Result<()> {
        let Passed { rows, places, numbers, users } = *passed;
        let mut bytes = 0;
        match (&mut self.states, places) {
            (States::Counts(states), Places::One(cell)) => states[cell] += rows as u64,
            (States::Counts(states), Places::Each(cells)) => {
                cells.iter().for_each(|&cell| states[cell] += 1);
            }
            (States::Users(states), Places::One(cell)) => {
                bytes = states[cell].add(&users.numbers, users.count);
            }
            (States::Users(states), Places::Each(cells)) => {
                for (&cell, user) in cells.iter().zip(users.numbers.chunks(1)) {
                    bytes += states[cell].add(user, users.count);
                }
            }
            (States::Sketches(states), Places::One(cell)) => {
                let state = &mut states[cell];
                bytes = users.hashes.iter().map(|&user| state.insert(user)).sum();
            }
            (States::Sketches(states), Places::Each(cells)) => {
                for (&cell, &user) in cells.iter().zip(&users.hashes) {
                    bytes += states[cell].insert(user);
                }
            }
            (States::Numbers(states), Places::One(cell)) => {
                let mut sums = states[cell];
                numbers.iter().for_each(|&number| sums.add(number));
                states[cell] = sums;
            }
            (States::Numbers(states), Places::Each(cells)) => {
                cells.iter().zip(numbers).for_each(|(&cell, &number)| states[cell].add(number));
            }
            (States::Lists(states), Places::One(cell)) => {
                bytes = states[cell].extend(numbers);
            }
            (States::Lists(states), Places::Each(cells)) => {
                for (&cell, &number) in cells.iter().zip(numbers) {
                    bytes += states[cell].push(number);
                }
            }
            (States::Digests(states), Places::One(cell)) => {
                bytes = states[cell].extend(numbers);
            }
            (States::Digests(states), Places::Each(cells)) => {
                for (&cell, &number) in cells.iter().zip(numbers) {
                    bytes += states[cell].insert(number);
                }
            }
        }
        self.charge.add(bytes)
    }

    /// Merges a state of other rows. `users` is the number of users that have numbers.
    pub fn add_state(
        &mut self,
        group: u32,
        bucket: usize,
        state: State<'_>,
        users: usize,
    ) -> Result<()> {
        let cell = group as usize * self.buckets + bucket;
        let bytes = self.merge(cell, state, users);
        self.charge.add(bytes)
    }

    /// Returns how many bytes the state has grown.
    fn merge(&mut self, cell: usize, state: State<'_>, users: usize) -> usize {
        match (&mut self.states, state) {
            (States::Counts(states), State::Count(count)) => states[cell] += count,
            (States::Numbers(states), State::Numbers(sums)) => states[cell].merge(sums),
            (States::Users(states), State::Users(set)) => return states[cell].merge(set, users),
            (States::Users(states), State::OtherUsers(count)) => states[cell].add_others(count),
            (States::Sketches(states), State::Sketch(sketch)) => return states[cell].merge(sketch),
            (States::Digests(states), State::Digest(digest)) => return states[cell].merge(digest),
            (States::Lists(states), State::List(list)) => {
                return states[cell].extend(list);
            }
            _ => unreachable!("a state is of the metric that asked for it"),
        }
        0
    }

    /// Empty accumulators for a helper thread of the same query.
    pub fn fresh(&self, charge: Charge) -> Self {
        let rows_max = Arc::clone(&self.rows_max);
        Self { cells_max: self.cells_max, rows_max, ..Self::new(self.metric, self.buckets, charge) }
    }

    /// Takes in the states of another for the same query. `numbers` has the group here of each of its
    /// groups; `users` have numbers.
    pub fn join(&mut self, mut other: Self, numbers: &[u32], users: usize) -> Result<()> {
        let buckets = self.buckets;
        let place = |at: usize| match numbers.get(at / buckets.max(1)) {
            None | Some(&NO_GROUP) => None,
            Some(&group) => Some(group as usize * buckets + at % buckets),
        };
        let mut bytes = 0;
        if let (States::Lists(to), States::Lists(from)) = (&mut self.states, &mut other.states) {
            for (at, ranks) in from.drain(..).enumerate() {
                if let Some(at) = place(at) {
                    bytes += to[at].merge(ranks);
                }
            }
        }
        let cells = other.into_cells();
        for at in 0..cells.len() {
            if let Some(cell) = place(at) {
                bytes += self.merge(cell, cells.state(at), users);
            }
        }
        self.charge.add(bytes)
    }

    /// All states as cells, which can be added to others.
    pub fn into_cells(self) -> PartialStates {
        match self.states {
            States::Counts(states) => PartialStates::Counts(states),
            States::Numbers(states) => PartialStates::Numbers(states),
            States::Users(states) => PartialStates::Users(
                states.into_iter().map(|set| Arc::new(set.settled())).collect(),
            ),
            States::Sketches(states) => {
                PartialStates::Sketches(states.into_iter().map(Arc::new).collect())
            }
            States::Lists(states) => PartialStates::Lists(
                states.into_iter().map(|ranks| ranks.into_list().into()).collect(),
            ),
            States::Digests(states) => {
                let settled = |digest: Digest| Arc::new(digest.settled());
                PartialStates::Digests(states.into_iter().map(settled).collect())
            }
        }
    }

    /// The account of the query.
    pub fn charge(&mut self) -> &mut Charge {
        &mut self.charge
    }

    /// The answer of each bucket of a group.
    pub fn finish(&mut self, group: usize) -> Vec<Value> {
        (group * self.buckets..(group + 1) * self.buckets).map(|cell| self.value(cell)).collect()
    }

    /// The answer of a group over all buckets, for metrics whose states merge.
    pub fn total(&self, group: usize) -> Value {
        let cells = group * self.buckets..(group + 1) * self.buckets;
        match &self.states {
            States::Counts(states) => Value::Integer(states[cells].iter().sum()),
            States::Sketches(states) => {
                let mut whole = Distinct::default();
                for part in &states[cells] {
                    whole.merge(part);
                }
                Value::Integer(whole.estimate())
            }
            States::Numbers(states) => {
                let mut whole = Sums::default();
                states[cells].iter().for_each(|part| whole.merge(part));
                self.value_of(&whole)
            }
            States::Users(states) => Value::Integer(UserSet::len_of_all(&states[cells]) as u64),
            States::Lists(_) | States::Digests(_) => Value::Null,
        }
    }

    /// The value of the metric for sums of numbers.
    fn value_of(&self, sums: &Sums) -> Value {
        let number = |value: Option<f64>| value.map_or(Value::Null, Value::Number);
        let mean = || sums.sum() / sums.count() as f64;
        match self.metric {
            Metric::Sum => Value::Number(sums.sum()),
            Metric::Avg => number((sums.count() > 0).then(mean)),
            Metric::Min => number(sums.min()),
            _ => number(sums.max()),
        }
    }

    fn value(&mut self, cell: usize) -> Value {
        if let States::Numbers(states) = &self.states {
            return self.value_of(&states[cell]);
        }
        let number = |value: Option<f64>| value.map_or(Value::Null, Value::Number);
        match (&mut self.states, self.metric) {
            (States::Counts(states), _) => Value::Integer(states[cell]),
            (States::Users(states), _) => Value::Integer(states[cell].len() as u64),
            (States::Sketches(states), _) => Value::Integer(states[cell].estimate()),
            (States::Lists(states), Metric::Percentile(percent)) => {
                number(states[cell].percentile(f64::from(percent) / 100.0))
            }
            (States::Digests(states), Metric::PercentileApprox(percent)) => {
                number(states[cell].quantile(f64::from(percent) / 100.0))
            }
            (States::Numbers(_) | States::Lists(_) | States::Digests(_), _) => Value::Null,
        }
    }
}
