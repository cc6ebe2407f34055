//! The users of a day of one series, exactly: which they were, and which values of each dimension they had.
//!
//! Users are codes of their tenant's part of the segment, so a set of them takes half a byte a user, and a query adds
//! sets of days up by number. Of a dimension with few values each user has a bit for each: a set by value takes no
//! list of its own.
//!
//! ```text
//! users 1 to 6, each with rows of model large (1) and small (3); user 6 has one on plan trial (1)
//!
//! set           01  06 00 06 aa 0a      totals; six numbers, no low bits, high part of the last 6, six steps of one
//! by model      01  aa aa 2a            four bits a user: 1010 1010 …
//! by plan       01  55 0d               two bits a user: 01 01 01 01 01 11
//! ```
//!
//! "How many users had a row of small" counts bits 3; over several days, sets are united by code first.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::layout::{NOT_KEPT, TOTALS, USER_VALUES_MAX};
use crate::{
    encode::rising::{self, BitWriter},
    index::bitmaps::ROLLUP_DIMENSIONS,
};

/// A user's values of each dimension: a bit for each of the first eight codes. Dimensions with more are not stored by user.
type Masks = [u8; ROLLUP_DIMENSIONS.len()];

/// The users of the rows that were added, by code within their tenant.
#[derive(Default)]
pub struct UserSets {
    /// Up to `unique` each user once, rising.
    users: Vec<(u32, Masks)>,
    unique: usize,
}

impl UserSets {
    /// Adds the user of a row, by code, which is not 0, with the row's codes of the dimensions.
    pub fn add(&mut self, user: u32, codes: impl Iterator<Item = i64>) {
        let mut masks = Masks::default();
        for (mask, code) in masks.iter_mut().zip(codes) {
            *mask = u32::try_from(code).ok().and_then(|code| 1u8.checked_shl(code)).unwrap_or(0);
        }
        self.users.push((user, masks));
        // Memory follows the users and not the rows.
        if self.users.len() >= (2 * self.unique).max(1 << 12) {
            self.settle();
        }
    }

    /// Sorts, and joins the entries of each user: the values of all of its rows.
    fn settle(&mut self) {
        self.users.sort_unstable_by_key(|(user, _)| *user);
        self.users.dedup_by(|(user, masks), (kept, all)| {
            let is_same = user == kept;
            if is_same {
                all.iter_mut().zip(masks).for_each(|(all, mask)| *all |= *mask);
            }
            is_same
        });
        self.unique = self.users.len();
    }

    /// The blocks: the set, and its users' values of each dimension, of which these are the numbers of codes.
    pub fn blocks(mut self, sizes: &[usize]) -> Vec<Vec<u8>> {
        self.settle();
        let mut blocks = vec![vec![NOT_KEPT]; 1 + sizes.len()];
        let codes: Vec<u32> = self.users.iter().map(|(user, _)| *user).collect();
        let mut set = vec![TOTALS];
        rising::write(&codes, &mut set);
        let mut by = blocks.iter_mut();
        if let Some(block) = by.next() {
            *block = set;
        }
        for (block, (at, &codes)) in by.zip(sizes.iter().enumerate()) {
            if codes > USER_VALUES_MAX {
                continue;
            }
            let mut bits = BitWriter::default();
            for (_, masks) in &self.users {
                bits.put(masks.get(at).copied().unwrap_or_default().into(), codes as u32);
            }
            *block = vec![TOTALS];
            block.extend_from_slice(&bits.finish());
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_listed_once_with_all_their_values() {
        let mut sets = UserSets::default();
        for n in 0..10_000u32 {
            let user = 1 + n % 300;
            sets.add(user, [i64::from(n % 2), i64::from(user % 3), 9].into_iter());
        }
        let blocks = sets.blocks(&[2, 3, 40]);
        assert_eq!(blocks.len(), 4);
        assert_eq!(blocks[3], [NOT_KEPT]);
        assert_eq!(
            (blocks[1].len(), blocks[2].len()),
            (1 + 300 * 2 / 8, 1 + (300 * 3usize).div_ceil(8))
        );
        // 300 is even, so a user has rows with one parity only.
        assert_eq!(blocks[1][1] & 0b1111, 0b1001);
        // That nobody was there is known too.
        assert_eq!(UserSets::default().blocks(&[2]), [vec![TOTALS, 0], vec![TOTALS]]);
    }
}
