//! Reading an id run: the filter first, then the sorted list, which decides.
//!
//! ```text
//! contains(hash)   filter says no              → false, without a block being touched (99.6 % of unknown ids)
//!                  filter says maybe           → the last block whose first hash is not above it
//!                  block not looked at before  → its checksum; a mismatch is Corrupt: "offset 0: checksum mismatch"
//!                  Elias-Fano look-up          → true or false
//! ```
//!
//! A damaged filter costs nothing but time: it is built again from the hashes when the run is opened, and
//! [`IdRun::check_filter`] tells a verification. Everything else that is damaged is refused by name:
//!
//! ```text
//! ids/02913/019a….ids: has another length than recorded
//! ids/02913/019a….ids: the trailer's checksum does not match
//! ids/02913/019a….ids: the checksum of the block list does not match
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
};

use xorf::{BinaryFuse8, BinaryFuse8Ref, Filter, FilterRef};

use super::{
    block::Block,
    layout::{
        BLOCK_IDS, DESCRIPTOR_LEN, FILTER_INDEX, IdRunMeta, LIST_INDEX, MAGIC, TRAILER_LEN,
        VERSION, block_crc,
    },
};
use crate::{
    base::{coding::Cursor, hash::crc},
    error::{Error, Result},
    vfs::View,
};

/// An open run.
pub struct IdRun {
    meta: IdRunMeta,
    view: View,
    filter: RunFilter,
    filter_is_good: bool,
    blocks: Vec<BlockInfo>,
}

/// What the list says of a block.
struct BlockInfo {
    /// Its least hash.
    first: u128,
    bytes: Range<usize>,
    crc: u32,
    /// Whether its checksum was found to match.
    is_checked: AtomicBool,
}

enum RunFilter {
    /// As it lies in the file.
    Stored(Range<usize>),
    /// Built again, because the stored one is damaged. The list is the truth.
    Rebuilt(BinaryFuse8),
    /// There is none: every probe looks the hash up.
    None,
}

impl IdRun {
    /// Opens a run and checks everything but its blocks, which are checked on first use. A damaged
    /// filter is built again.
    ///
    /// Errors: `Corrupt` when the file is another one or its frame is damaged, `Invalid` when another version of the layout
    /// wrote it.
    pub fn open(view: View, meta: IdRunMeta, db: [u8; 16]) -> Result<Self> {
        let place = meta.path();
        let damaged = |detail: &str| Error::corrupt(&place, detail);
        if view.len() as u64 != meta.len {
            return Err(damaged("has another length than recorded"));
        }
        let trailer_offset =
            view.len().checked_sub(TRAILER_LEN).ok_or_else(|| damaged("is too short"))?;
        let mut cursor = Cursor::new(view.get(trailer_offset..).unwrap_or_default(), &place);
        let body = cursor.clone().take(TRAILER_LEN - 4)?;
        let count = cursor.u64()?;
        let filter_offset = cursor.u64()? as usize;
        let list_offset = cursor.u64()? as usize;
        let (filter_crc, list_crc, version) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let magic = cursor.take(8)?;
        let owner = cursor.take(16)?;
        let stored_crc = cursor.u32()?;
        if stored_crc != meta.crc || crc(&[meta.uuid.as_bytes(), body]) != stored_crc {
            return Err(damaged("the trailer's checksum does not match"));
        }
        if magic == MAGIC && version != VERSION {
            return Err(Error::invalid(
                "data directory",
                format!("{place} has id run version {version}; this build reads {VERSION}"),
            ));
        }
        if magic != MAGIC || owner != db || count != meta.count {
            return Err(damaged("is not the recorded run"));
        }
        let part =
            |range: Range<usize>| view.get(range).ok_or_else(|| damaged("has impossible offsets"));
        let filter = part(filter_offset..list_offset)?;
        let list = part(list_offset..trailer_offset)?;
        if block_crc(meta.uuid, LIST_INDEX, list) != list_crc {
            return Err(damaged("the checksum of the block list does not match"));
        }
        let mut cursor = Cursor::new(list, &place);
        let (mut blocks, mut start) = (Vec::<BlockInfo>::new(), 0usize);
        while cursor.remaining() > 0 {
            let (first, end, crc) = (cursor.u128()?, cursor.u64()? as usize, cursor.u32()?);
            let rises = blocks.last().is_none_or(|before| before.first < first);
            // Of each hash at least a bit, behind the byte that says how many low bits it has.
            let hashes = (count as usize).saturating_sub(blocks.len() * BLOCK_IDS).min(BLOCK_IDS);
            let least = start.saturating_add(1 + hashes.div_ceil(8));
            if !rises || end < least || end > filter_offset {
                return Err(damaged("has an impossible block list"));
            }
            let is_checked = AtomicBool::new(false);
            blocks.push(BlockInfo { first, bytes: start..end, crc, is_checked });
            start = end;
        }
        if start != filter_offset || blocks.len() != (count as usize).div_ceil(BLOCK_IDS) {
            return Err(damaged("has another number of ids than recorded"));
        }
        // A filter with a right checksum may still describe slots that it has not: xorf looks without asking.
        let is_good = block_crc(meta.uuid, FILTER_INDEX, filter) == filter_crc
            && (filter.is_empty() || describes_itself(filter));
        let has_filter = !filter.is_empty();
        let filter = if has_filter {
            RunFilter::Stored(filter_offset..list_offset)
        } else {
            RunFilter::None
        };
        let mut run = Self { meta, view, filter, filter_is_good: is_good, blocks };
        if !is_good {
            run.filter = run.rebuild_filter()?;
        }
        Ok(run)
    }

    /// A filter in memory from all hashes; none where none can be built, and then every probe looks the hash up.
    fn rebuild_filter(&self) -> Result<RunFilter> {
        let mut keys = Vec::with_capacity(self.meta.count as usize);
        for index in 0..self.block_count() {
            keys.extend(self.block(index)?.into_iter().map(|hash| hash as u64));
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(BinaryFuse8::try_from(&keys).map_or(RunFilter::None, RunFilter::Rebuilt))
    }

    /// The recorded facts.
    pub fn meta(&self) -> &IdRunMeta {
        &self.meta
    }

    /// Bytes of the filter, which every probe touches; 0 without one.
    pub fn filter_bytes(&self) -> usize {
        match &self.filter {
            RunFilter::Stored(range) => range.len(),
            RunFilter::Rebuilt(filter) => filter.fingerprints.len(),
            RunFilter::None => 0,
        }
    }

    /// Whether the stored filter is as it was written. A damaged one was replaced on opening, so that
    /// answers do not change; only who checks the file wants to know.
    ///
    /// Errors: `Corrupt` when it is damaged.
    pub fn check_filter(&self) -> Result<()> {
        match self.filter_is_good {
            true => Ok(()),
            false => Err(Error::corrupt(self.meta.path(), "the filter's checksum does not match")),
        }
    }

    /// Whether the run holds `hash`. Errors: `Corrupt` when the block that decides is damaged.
    pub fn contains(&self, hash: u128) -> Result<bool> {
        if !self.may_contain(hash) {
            return Ok(false);
        }
        let after = self.blocks.partition_point(|block| block.first <= hash);
        let Some(index) = after.checked_sub(1) else { return Ok(false) };
        Ok(self.open_block(index)?.contains(hash))
    }

    /// Whether the filter lets a hash through: always for one of the run, for 0.4 % of others.
    fn may_contain(&self, hash: u128) -> bool {
        match &self.filter {
            RunFilter::None => true,
            RunFilter::Rebuilt(filter) => filter.contains(&(hash as u64)),
            RunFilter::Stored(range) => {
                let filter = self.view.get(range.clone()).unwrap_or_default();
                filter.split_at_checked(DESCRIPTOR_LEN).is_none_or(|(descriptor, fingerprints)| {
                    BinaryFuse8Ref::from_dma(descriptor, fingerprints).contains(&(hash as u64))
                })
            }
        }
    }

    /// Number of blocks.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// The hashes of block `index`, up to 4,096. Errors: `Corrupt` when the block is damaged or there is none.
    pub fn block(&self, index: usize) -> Result<Vec<u128>> {
        let mut hashes = Vec::new();
        self.open_block(index)?.read(&self.meta.path(), &mut hashes)?;
        Ok(hashes)
    }

    /// A block whose checksum matches.
    fn open_block(&self, index: usize) -> Result<Block<'_>> {
        let place = || self.meta.path();
        let info = self.blocks.get(index);
        let info = info.ok_or_else(|| Error::corrupt(place(), "a block is out of range"))?;
        let bytes = self.view.get(info.bytes.clone()).unwrap_or_default();
        if !info.is_checked.load(Ordering::Relaxed) {
            if block_crc(self.meta.uuid, index as u32, bytes) != info.crc {
                let start = info.bytes.start;
                return Err(Error::corrupt(place(), format!("offset {start}: checksum mismatch")));
            }
            info.is_checked.store(true, Ordering::Relaxed);
        }
        let before = index.saturating_mul(BLOCK_IDS);
        let count = (self.meta.count as usize).saturating_sub(before).min(BLOCK_IDS);
        Block::open(bytes, info.first, count).map_err(|detail| Error::corrupt(place(), detail))
    }

    /// Checks every block, the order of the hashes, and that the filter knows all of them. Errors: `Corrupt` with what is wrong.
    pub fn verify(&self) -> Result<()> {
        let mut before = None;
        for index in 0..self.block_count() {
            for hash in self.block(index)? {
                if before.is_some_and(|before| before >= hash) {
                    return Err(Error::corrupt(self.meta.path(), "ids are not in order"));
                }
                if !self.may_contain(hash) {
                    return Err(Error::corrupt(self.meta.path(), "the filter lacks an id"));
                }
                before = Some(hash);
            }
        }
        Ok(())
    }
}

/// Whether the description of a filter fits its fingerprints. A probe looks at three of them, in
/// places that the description gives, without asking whether they are there.
fn describes_itself(filter: &[u8]) -> bool {
    let Some((descriptor, fingerprints)) = filter.split_at_checked(DESCRIPTOR_LEN) else {
        return false;
    };
    let mut cursor = Cursor::new(descriptor, "filter");
    let read = cursor.u64().and_then(|_| Ok([cursor.u32()?, cursor.u32()?, cursor.u32()?]));
    let Ok([segment, mask, segments]) = read else { return false };
    // The last of them lies in one of the two segments behind those that a hash can begin in.
    let slots = u64::from(segments) + 2 * u64::from(segment);
    segment.is_power_of_two()
        && mask == segment - 1
        && segments.is_multiple_of(segment)
        && slots == fingerprints.len() as u64
        && u32::try_from(slots).is_ok()
}
