//! The users of a tenant in a segment, by hash.
//!
//! ```text
//! users of the segment     anne bob carl | anne dora        tenant 0 has three, tenant 1 has two
//! hashes(_, 1, _)          [hash of anne, hash of dora]     code 1 of a row of tenant 1 is anne
//! ```

use super::{layout::USERS_A_BLOCK, reader::SegmentFile};
use crate::{encode::text::TextList, error::Result};

/// A segment's users, with the block that was read last: who goes through many tenants reads each once.
#[derive(Default)]
pub struct UserReader {
    block: Option<(usize, TextList)>,
}

impl UserReader {
    /// Hashes of the users of a tenant, the one with code 1 first. `account` gets the bytes before they are taken, and its error
    /// ends the call: that is how a query stays within its memory.
    pub fn hashes(
        &mut self,
        segment: &SegmentFile,
        tenant: usize,
        account: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Vec<u128>> {
        let users = segment.tenants().users(tenant);
        account(users.len() * size_of::<u128>())?;
        let mut hashes = Vec::with_capacity(users.len());
        for at in users {
            let index = at / USERS_A_BLOCK;
            let block = match &mut self.block {
                Some((open, block)) if *open == index => block,
                other => {
                    let block = segment.users(index)?;
                    account(block.bytes_used() + block.len() * size_of::<usize>())?;
                    &mut other.insert((index, block)).1
                }
            };
            hashes.push(segment.user_hash(block.at(at % USERS_A_BLOCK)));
        }
        Ok(hashes)
    }
}
