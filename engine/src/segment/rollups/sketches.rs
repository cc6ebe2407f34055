//! The sketches of one series or event: its users and the spread of its numbers, by hour and by value.
//!
//! Sketches are large beside counts, so they are kept only where they are small beside the rows that they
//! stand for; and where rows are few, a query reads them as quickly.
//!
//! ```text
//! rows on the day   users           users by model    digests of ms     digests of ms by model      (model has 4 codes)
//! 28                ≤ 14 bytes      -                 -                 -
//! 2,000             ≤ 1,000 bytes   ≤ 1,000 bytes     -                 -
//! 10,000            ≤ 5,000 bytes   ≤ 5,000 bytes     ≤ 5,000 bytes     ≤ 5,000 bytes
//! ```
//!
//! A dash is never computed: users by value need 256 rows for each code, digests 4,096 rows, digests by value 2,048 rows for
//! each code. A block that comes to more than a byte for two rows is left out.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

use super::layout::{
    DIGEST_NUMBERS_MAX, DIGEST_ROWS_A_VALUE, DIGEST_ROWS_MIN, HOURS, NOT_KEPT, ROWS_A_SKETCH_BYTE,
    SKETCH_ROWS_A_VALUE, SKETCH_VALUES_MAX, TOTALS,
};
use crate::{
    base::coding::Put,
    sketch::{digest::Digest, hll::Distinct},
};

/// Approximate states of the rows of a series and day, or of an event over all tenants.
pub struct Sketches {
    /// Users: an hour each.
    users: Vec<Distinct>,
    /// By dimension: a code each; none where there are too many.
    users_by: Vec<Vec<Distinct>>,
    /// By property: an hour each.
    digests: Vec<Vec<Digest>>,
    /// By property and dimension: a code each.
    digests_by: Vec<Vec<Vec<Digest>>>,
    has_hours: bool,
}

impl Sketches {
    /// Nothing yet of a series with so many rows. `sizes` are the codes of each dimension; without hours
    /// all rows are of one.
    pub fn new(
        rows: usize,
        sizes: &[usize],
        numbers: usize,
        hours: usize,
        has_hours: bool,
    ) -> Self {
        let numbers = if rows < DIGEST_ROWS_MIN { 0 } else { numbers.min(DIGEST_NUMBERS_MAX) };
        let kept = |codes: usize, rows_each: usize| match codes <= SKETCH_VALUES_MAX {
            true if rows >= codes * rows_each => codes,
            _ => 0,
        };
        let users = |&codes: &usize| vec![Distinct::default(); kept(codes, SKETCH_ROWS_A_VALUE)];
        let digests = |&codes: &usize| vec![Digest::default(); kept(codes, DIGEST_ROWS_A_VALUE)];
        Self {
            users: vec![Distinct::default(); hours],
            users_by: sizes.iter().map(users).collect(),
            digests: vec![vec![Digest::default(); hours]; numbers],
            digests_by: (0..numbers).map(|_| sizes.iter().map(digests).collect()).collect(),
            has_hours,
        }
    }

    /// Adds the user of a row, by hash; `codes` are those of the row in each dimension.
    pub fn add_user(&mut self, hour: usize, codes: impl Iterator<Item = i64>, user: u128) {
        if let Some(state) = self.users.get_mut(hour) {
            state.insert(user);
        }
        for (states, code) in self.users_by.iter_mut().zip(codes) {
            if let Some(state) = states.get_mut(code as usize) {
                state.insert(user);
            }
        }
    }

    /// Adds the value of numeric property `number` of a row; `codes` are those of the row in each dimension.
    pub fn add_number(
        &mut self,
        number: usize,
        hour: usize,
        codes: impl Iterator<Item = i64>,
        value: f64,
    ) {
        let Some(digests) = self.digests.get_mut(number) else { return };
        if let Some(state) = digests.get_mut(hour) {
            state.insert(value);
        }
        let by = self.digests_by.get_mut(number).into_iter().flatten();
        for (states, code) in by.zip(codes) {
            if let Some(state) = states.get_mut(code as usize) {
                state.insert(value);
            }
        }
    }

    /// The blocks: users, users by each dimension, digests of each number, and of each by each dimension.
    pub fn blocks(mut self, rows: usize, dimensions: usize, numbers: usize) -> Vec<Vec<u8>> {
        let of_digests = |states: &mut Vec<Digest>| states.iter_mut().for_each(Digest::settle);
        self.digests.iter_mut().for_each(of_digests);
        self.digests_by.iter_mut().flatten().for_each(of_digests);
        let mut out = Vec::new();
        let has_hours = self.has_hours;
        out.push(by_hour(&self.users, rows, has_hours, merged_users, Distinct::write));
        out.extend(self.users_by.iter().map(|states| {
            by_code(states, rows, |state| *state != Distinct::default(), Distinct::write)
        }));
        let nothing = (Vec::new(), vec![Vec::new(); dimensions]);
        let of_number = |at: usize| (self.digests.get(at), self.digests_by.get(at));
        let numbers = 0..numbers.min(DIGEST_NUMBERS_MAX);
        for at in numbers.clone() {
            let states = of_number(at).0.unwrap_or(&nothing.0);
            out.push(by_hour(states, rows, has_hours, merged_digests, Digest::write));
        }
        for at in numbers {
            let by = of_number(at).1.unwrap_or(&nothing.1);
            out.extend(
                by.iter()
                    .map(|states| by_code(states, rows, |state| !state.is_empty(), Digest::write)),
            );
        }
        out
    }
}

/// The sketch of a day, from those of its hours.
fn merged_users(states: &[Distinct]) -> Distinct {
    let mut total = Distinct::default();
    for state in states {
        total.merge(state);
    }
    total
}

/// The digest of a day, from those of its hours, settled as stored ones are.
fn merged_digests(states: &[Digest]) -> Digest {
    let mut total = Digest::default();
    for state in states {
        total.merge(state);
    }
    total.settle();
    total
}

/// Whether a block of so many bytes is small beside so many rows: 5,000 bytes of 10,000 rows are, 5,001 are not.
fn is_worth_it(bytes: usize, rows: usize) -> bool {
    bytes.saturating_mul(ROWS_A_SKETCH_BYTE) <= rows
}

/// The total, then the hours: without the hours where both together are not worth it, `NOT_KEPT` where the total alone is not.
fn by_hour<T>(
    states: &[T],
    rows: usize,
    has_hours: bool,
    merged: fn(&[T]) -> T,
    write: fn(&T, &mut Vec<u8>),
) -> Vec<u8> {
    let mut out = vec![TOTALS];
    write(&merged(states), &mut out);
    if states.is_empty() || !is_worth_it(out.len(), rows) {
        return vec![NOT_KEPT];
    }
    let total = out.len();
    if has_hours {
        states.iter().for_each(|state| write(state, &mut out));
        match is_worth_it(out.len(), rows) {
            true => out[0] = HOURS,
            false => out.truncate(total),
        }
    }
    out
}

/// Each value that occurs, and its state.
fn by_code<T>(
    states: &[T],
    rows: usize,
    is_present: fn(&T) -> bool,
    write: fn(&T, &mut Vec<u8>),
) -> Vec<u8> {
    let present: Vec<(u64, &T)> =
        (0u64..).zip(states).filter(|(_, state)| is_present(state)).collect();
    let mut out = vec![TOTALS];
    out.put_varint(present.len() as u64);
    let mut next = 0;
    for (code, state) in present {
        out.put_varint(code - next);
        write(state, &mut out);
        next = code + 1;
    }
    if states.is_empty() || !is_worth_it(out.len(), rows) { vec![NOT_KEPT] } else { out }
}
