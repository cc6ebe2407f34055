//! Merging id runs into one, without the ids of deleted events.
//!
//! ```text
//! run A      2  5  9          without   5
//! run B      3  5  7
//! merged     2  3  7  9
//! ```
//!
//! Runs of one generation may share an id where one of them was written anew from the segments: it is written once.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::sync::Arc;

use super::{
    layout::IdRunMeta,
    reader::IdRun,
    writer::{NewRun, write},
};
use crate::{base::hash::HashSet128, error::Result, vfs::Vfs};

/// One input, a block at a time.
struct Stream<'a> {
    run: &'a IdRun,
    block: usize,
    hashes: std::vec::IntoIter<u128>,
    head: Option<u128>,
}

impl Stream<'_> {
    /// Moves to the next hash, opening the next block where this one is used up. `head` is `None` at the end.
    fn advance(&mut self) -> Result<()> {
        self.head = self.hashes.next();
        while self.head.is_none() && self.block < self.run.block_count() {
            self.hashes = self.run.block(self.block)?.into_iter();
            self.block += 1;
            self.head = self.hashes.next();
        }
        Ok(())
    }
}

/// Writes the ids of `inputs` that are not in `without` as one run. `breathe` is called for each
/// block: it waits while queries run, and its error ends the merge.
///
/// Shape: in memory are one block of each input, and the filter's keys.
/// Errors: `Corrupt` when a block of an input is damaged, `Io` when the disk refuses; nothing stays behind.
pub fn merge(
    vfs: &dyn Vfs,
    new: NewRun,
    inputs: &[Arc<IdRun>],
    without: &HashSet128,
    breathe: &dyn Fn() -> Result<()>,
) -> Result<IdRunMeta> {
    let mut streams = Vec::with_capacity(inputs.len());
    for run in inputs {
        let mut stream = Stream { run, block: 0, hashes: Vec::new().into_iter(), head: None };
        stream.advance()?;
        streams.push(stream);
    }
    write(vfs, new, |wanted, out| {
        breathe()?;
        while out.len() < wanted {
            let Some(least) = streams.iter().filter_map(|stream| stream.head).min() else { break };
            for stream in &mut streams {
                if stream.head == Some(least) {
                    stream.advance()?;
                }
            }
            if !without.contains(&least) {
                out.push(least);
            }
        }
        Ok(())
    })
}
