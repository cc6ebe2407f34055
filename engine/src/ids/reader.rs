//! Reading an id run: the filter first, then the sorted list, which decides.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{
    cmp::Ordering,
    ops::Range,
    sync::atomic::{self, AtomicBool},
};

use xorf::{BinaryFuse8, BinaryFuse8Ref, Filter, FilterRef};

use super::layout::{
    BLOCK_IDS, DESCRIPTOR_LEN, FILTER_INDEX, ID_LEN, IdRunMeta, LIST_INDEX, MAGIC, TRAILER_LEN,
    VERSION, block_crc,
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
    crcs: Vec<u32>,
    checked: Vec<AtomicBool>,
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
    /// Errors: `Corrupt` when the file is another one or its frame is damaged.
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
        if (filter_offset as u64) != count.saturating_mul(ID_LEN as u64) {
            return Err(damaged("has another number of ids than recorded"));
        }
        let part =
            |range: Range<usize>| view.get(range).ok_or_else(|| damaged("has impossible offsets"));
        let filter = part(filter_offset..list_offset)?;
        let list = part(list_offset..trailer_offset)?;
        if block_crc(meta.uuid, LIST_INDEX, list) != list_crc {
            return Err(damaged("the checksum of the block list does not match"));
        }
        let blocks = (count as usize).div_ceil(BLOCK_IDS);
        let mut cursor = Cursor::new(list, &place);
        let crcs = (0..blocks).map(|_| cursor.u32()).collect::<Result<Vec<_>>>()?;
        cursor.finish()?;
        let is_good = block_crc(meta.uuid, FILTER_INDEX, filter) == filter_crc
            && (filter.is_empty() || describes_itself(filter));
        let has_filter = !filter.is_empty();
        let checked = (0..blocks).map(|_| AtomicBool::new(false)).collect();
        let filter = if has_filter {
            RunFilter::Stored(filter_offset..list_offset)
        } else {
            RunFilter::None
        };
        let mut run = Self { meta, view, filter, filter_is_good: is_good, crcs, checked };
        if !is_good {
            run.filter = run.rebuild_filter()?;
        }
        Ok(run)
    }

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

    /// Bytes of the filter, which every probe touches.
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
        let (mut low, mut high) = (0, self.meta.count as usize);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.hash_at(middle)?.cmp(&hash) {
                Ordering::Equal => return Ok(true),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Ok(false)
    }

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

    fn hash_at(&self, index: usize) -> Result<u128> {
        self.check_block(index / BLOCK_IDS)?;
        let bytes = self.view.get(index * ID_LEN..(index + 1) * ID_LEN);
        Cursor::new(bytes.unwrap_or_default(), "ids").u128()
    }

    /// Number of blocks.
    pub fn block_count(&self) -> usize {
        self.crcs.len()
    }

    /// The hashes of block `index`.
    pub fn block(&self, index: usize) -> Result<Vec<u128>> {
        self.check_block(index)?;
        let mut cursor = Cursor::new(self.block_bytes(index), "ids");
        let mut hashes = Vec::with_capacity(BLOCK_IDS);
        while cursor.remaining() > 0 {
            hashes.push(cursor.u128()?);
        }
        Ok(hashes)
    }

    fn block_bytes(&self, index: usize) -> &[u8] {
        let start = index * BLOCK_IDS * ID_LEN;
        let end = (start + BLOCK_IDS * ID_LEN).min(self.meta.count as usize * ID_LEN);
        self.view.get(start..end).unwrap_or_default()
    }

    fn check_block(&self, index: usize) -> Result<()> {
        let (Some(checked), Some(&crc)) = (self.checked.get(index), self.crcs.get(index)) else {
            return Err(Error::corrupt(self.meta.path(), "a block is out of range"));
        };
        if checked.load(atomic::Ordering::Relaxed) {
            return Ok(());
        }
        if block_crc(self.meta.uuid, index as u32, self.block_bytes(index)) != crc {
            let start = index * BLOCK_IDS * ID_LEN;
            return Err(Error::corrupt(
                self.meta.path(),
                format!("offset {start}: checksum mismatch"),
            ));
        }
        checked.store(true, atomic::Ordering::Relaxed);
        Ok(())
    }

    /// Checks every block, the order of the hashes, and that the filter knows all of them.
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
