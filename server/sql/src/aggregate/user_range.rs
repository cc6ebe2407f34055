//! A part of a tenant's users: a tenant with most of the rows is divided by users, so that all threads have some.
//!
//! ```text
//! 1,300,000 rows of acme, users ada … zoe     ada … kim by one thread, leo … zoe by another
//! ```
//!
//! Each thread reads the users of all rows, but has groups of its own users alone: these are complete, and fit into its caches. Threads that
//! share the rows instead have groups to add up at the end, which took as long as was gained.
//!
//! Three ranges of twelve users, which have the indexes 40 to 51 in the largest source:
//!
//! ```text
//! from        until        indexes in that source  indexes in another source with the users ada, leo, zoe at 7, 8, 9
//! -           eve          40..44                  7..8
//! eve         leo          44..48                  8..8
//! leo         -            48..52                  8..10
//! ```

use std::ops::Range;

use datafusion_common::Result;
use inlay_engine::rows::{Morsel, Source};

use crate::tables::broken;

/// Users whose texts are in a range. Rows without a user have the empty text, which is the first.
#[derive(Clone, Debug)]
pub struct UserRange {
    /// The first text, included; nothing where the range begins with the empty one.
    from: Option<Box<[u8]>>,
    /// The text behind the last; nothing where there is none.
    until: Option<Box<[u8]>>,
}

impl UserRange {
    /// The range that has every user.
    pub const ALL: Self = Self { from: None, until: None };

    /// So many ranges of a tenant's users, with as many users each in the source of this morsel of the tenant. One range where the source
    /// has no indexes of users, fewer ranges than asked for where it has few users.
    ///
    /// Errors: damage of a segment.
    pub fn ranges(source: &Source, morsel: &Morsel, count: usize) -> Result<Vec<Self>> {
        let row = morsel.row_ranges.first().map_or(0, |row_range| row_range.rows.start);
        let users = source.users_of_row(row).unwrap_or_default();
        let Some((mut texts, _)) = source.user_texts().map_err(broken)? else {
            return Ok(vec![Self::ALL]);
        };
        let mut ranges = Vec::new();
        let mut from = None;
        for number in 1..count.min(users.len()) {
            let boundary = texts.at(users.start + users.len() * number / count).map_err(broken)?;
            ranges.push(Self { from, until: Some(boundary.into()) });
            from = Some(boundary.into());
        }
        ranges.push(Self { from, until: None });
        Ok(ranges)
    }

    /// Whether it has every user.
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.until.is_none()
    }

    /// Whether it has a user.
    pub fn contains(&self, user: &[u8]) -> bool {
        self.from.as_deref().is_none_or(|from| user >= from) && !self.ends_before(user)
    }

    /// Whether all its users have smaller texts than this one.
    fn ends_before(&self, user: &[u8]) -> bool {
        self.until.as_deref().is_some_and(|until| user >= until)
    }

    /// The indexes of its users in a source, among those of the tenant that a row belongs to; nothing where the source has no indexes.
    ///
    /// Errors: damage of a segment.
    pub fn indexes(&self, source: &Source, row: u32) -> Result<Option<Range<u32>>> {
        let Some((mut texts, _)) = source.user_texts().map_err(broken)? else { return Ok(None) };
        let Some(users) = source.users_of_row(row) else { return Ok(None) };
        // Texts rise with their indexes: the first one from which on something is true is found by binary search.
        let mut first = |is_reached: &dyn Fn(&[u8]) -> bool| -> Result<u32> {
            let mut indexes = users.clone();
            while !indexes.is_empty() {
                let middle = indexes.start + indexes.len() / 2;
                match is_reached(texts.at(middle).map_err(broken)?) {
                    true => indexes.end = middle,
                    false => indexes.start = middle + 1,
                }
            }
            Ok(indexes.start as u32)
        };
        let start = first(&|user| self.contains(user) || self.ends_before(user))?;
        Ok(Some(start..first(&|user| self.ends_before(user))?))
    }
}
