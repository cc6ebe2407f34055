//! Id runs: immutable sorted files of the 128-bit hashes of event ids.
//!
//! Each flush leaves one run beside its segment. A probe asks the run's filter first (one byte an
//! id, wrong for 0.4 % of unknown ids), then looks the hash up in the sorted list, which decides.
//! The filter is never the truth.
//!
//! Layout: `doc/format.md`, "Id runs".

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::sync::atomic::{AtomicBool, Ordering};

use xorf::{BinaryFuse8, BinaryFuse8Ref, DmaSerializable, Filter, FilterRef};

use crate::{
    base::{
        coding::{Cursor, Put},
        hash::crc,
    },
    error::{Error, IoContext, Result},
    vfs::{Vfs, View},
};

/// Directory of the runs.
pub const DIRECTORY: &str = "ids";
const MAGIC: [u8; 8] = *b"INLAYIDS";
const VERSION: u32 = 1;
/// Hashes of a block: 64 KiB, the unit of checking.
const BLOCK_IDS: usize = 4_096;
const TRAILER_LEN: usize = 64;
/// Length of xorf's filter description.
const DESCRIPTOR_LEN: usize = <BinaryFuse8 as DmaSerializable>::DESCRIPTOR_LEN;

/// What the keyspace knows of a run; a file that differs is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdRunMeta {
    /// Name and identity.
    pub uuid: uuid::Uuid,
    /// Number of hashes.
    pub count: u64,
    /// Length of the file.
    pub len: u64,
    /// Checksum of the trailer.
    pub crc: u32,
}

impl IdRunMeta {
    /// Path of the file.
    pub fn path(&self) -> String {
        format!("{DIRECTORY}/{}.ids", self.uuid)
    }

    /// Appends the record.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.uuid.as_bytes());
        out.put_u64(self.count);
        out.put_u64(self.len);
        out.put_u32(self.crc);
    }

    /// Reads the record back.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, "id run record");
        let uuid = cursor.uuid()?;
        let meta = Self { uuid, count: cursor.u64()?, len: cursor.u64()?, crc: cursor.u32()? };
        cursor.finish()?;
        Ok(meta)
    }
}

/// Writes a run of sorted, distinct hashes under `tmp/` and renames it into place. The caller syncs
/// the directory.
pub fn write(vfs: &dyn Vfs, uuid: uuid::Uuid, db: [u8; 16], hashes: &[u128]) -> Result<IdRunMeta> {
    debug_assert!(hashes.is_sorted_by(|a, b| a < b));
    let mut out: Vec<u8> = Vec::with_capacity(hashes.len() * 18);
    let mut crcs = Vec::new();
    for (index, block) in hashes.chunks(BLOCK_IDS).enumerate() {
        let start = out.len();
        for hash in block {
            out.put_u128(*hash);
        }
        crcs.push(block_crc(uuid, index as u32, out.get(start..).unwrap_or_default()));
    }
    let filter_offset = out.len();
    // Distinct 128-bit hashes may agree in their low halves once in a very long time.
    let mut keys: Vec<u64> = hashes.iter().map(|&hash| hash as u64).collect();
    keys.sort_unstable();
    keys.dedup();
    // Without a filter every probe looks the hash up: slower, not wrong.
    if let Ok(filter) = BinaryFuse8::try_from(&keys) {
        let mut descriptor = [0; DESCRIPTOR_LEN];
        filter.dma_copy_descriptor_to(&mut descriptor);
        out.extend_from_slice(&descriptor);
        out.extend_from_slice(filter.dma_fingerprints());
    }
    let crcs_offset = out.len();
    let filter_crc = block_crc(uuid, u32::MAX, out.get(filter_offset..).unwrap_or_default());
    for crc in crcs {
        out.put_u32(crc);
    }
    let crcs_crc = block_crc(uuid, u32::MAX - 1, out.get(crcs_offset..).unwrap_or_default());
    let mut trailer = Vec::with_capacity(TRAILER_LEN);
    trailer.put_u64(hashes.len() as u64);
    trailer.put_u64(filter_offset as u64);
    trailer.put_u64(crcs_offset as u64);
    trailer.put_u32(filter_crc);
    trailer.put_u32(crcs_crc);
    trailer.put_u32(VERSION);
    trailer.extend_from_slice(&MAGIC);
    trailer.extend_from_slice(&db);
    let crc = crc(&[uuid.as_bytes(), &trailer]);
    trailer.put_u32(crc);
    out.extend_from_slice(&trailer);

    let meta = IdRunMeta { uuid, count: hashes.len() as u64, len: out.len() as u64, crc };
    let temporary = format!("tmp/{uuid}.ids");
    let file = vfs.create(&temporary).at(&temporary)?;
    file.write_at(0, &out).at(&temporary)?;
    file.sync().at(&temporary)?;
    IdRun::open(vfs.map(&temporary).at(&temporary)?, meta.clone(), db)?.verify()?;
    vfs.rename(&temporary, &meta.path()).at(&temporary)?;
    Ok(meta)
}

fn block_crc(uuid: uuid::Uuid, index: u32, bytes: &[u8]) -> u32 {
    crc(&[uuid.as_bytes(), &index.to_le_bytes(), bytes])
}

/// An open run.
pub struct IdRun {
    meta: IdRunMeta,
    view: View,
    filter: std::ops::Range<usize>,
    crcs: Vec<u32>,
    checked: Vec<AtomicBool>,
}

impl IdRun {
    /// Opens a run and checks everything but its blocks, which are checked on first use.
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
        let crcs_offset = cursor.u64()? as usize;
        let (filter_crc, crcs_crc, version) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let magic = cursor.take(8)?;
        let owner = cursor.take(16)?;
        let stored_crc = cursor.u32()?;
        if stored_crc != meta.crc || crc(&[meta.uuid.as_bytes(), body]) != stored_crc {
            return Err(damaged("the trailer's checksum does not match"));
        }
        if magic != MAGIC || version != VERSION || owner != db || count != meta.count {
            return Err(damaged("is not the recorded run"));
        }
        let part = |range: std::ops::Range<usize>, index: u32, crc: u32| {
            let bytes = view.get(range).ok_or_else(|| damaged("has impossible offsets"))?;
            if block_crc(meta.uuid, index, bytes) != crc {
                return Err(damaged("a checksum of filter or block list does not match"));
            }
            Ok(bytes)
        };
        let filter = part(filter_offset..crcs_offset, u32::MAX, filter_crc)?;
        if !filter.is_empty() && filter.len() < DESCRIPTOR_LEN {
            return Err(damaged("the filter is too short"));
        }
        let list = part(crcs_offset..trailer_offset, u32::MAX - 1, crcs_crc)?;
        let blocks = (count as usize).div_ceil(BLOCK_IDS);
        let mut cursor = Cursor::new(list, &place);
        let crcs = (0..blocks).map(|_| cursor.u32()).collect::<Result<Vec<_>>>()?;
        cursor.finish()?;
        if filter_offset != count as usize * 16 {
            return Err(damaged("has another number of ids than recorded"));
        }
        let checked = (0..blocks).map(|_| AtomicBool::new(false)).collect();
        Ok(Self { meta, filter: filter_offset..crcs_offset, view, crcs, checked })
    }

    /// The recorded facts.
    pub fn meta(&self) -> &IdRunMeta {
        &self.meta
    }

    /// Whether the run holds `hash`. Errors: `Corrupt` when the block that decides is damaged.
    pub fn contains(&self, hash: u128) -> Result<bool> {
        let filter = self.view.get(self.filter.clone()).unwrap_or_default();
        if let Some((descriptor, fingerprints)) = filter.split_at_checked(DESCRIPTOR_LEN)
            && !BinaryFuse8Ref::from_dma(descriptor, fingerprints).contains(&(hash as u64))
        {
            return Ok(false);
        }
        let (mut low, mut high) = (0, self.meta.count as usize);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.hash_at(middle)?.cmp(&hash) {
                std::cmp::Ordering::Equal => return Ok(true),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(false)
    }

    fn hash_at(&self, index: usize) -> Result<u128> {
        self.check_block(index / BLOCK_IDS)?;
        let place = "ids";
        Cursor::new(self.view.get(index * 16..index * 16 + 16).unwrap_or_default(), place).u128()
    }

    fn check_block(&self, index: usize) -> Result<()> {
        let (Some(checked), Some(&crc)) = (self.checked.get(index), self.crcs.get(index)) else {
            return Err(Error::corrupt(self.meta.path(), "a block is out of range"));
        };
        if checked.load(Ordering::Relaxed) {
            return Ok(());
        }
        let start = index * BLOCK_IDS * 16;
        let end = (start + BLOCK_IDS * 16).min(self.filter.start);
        let bytes = self.view.get(start..end).unwrap_or_default();
        if block_crc(self.meta.uuid, index as u32, bytes) != crc {
            return Err(Error::corrupt(
                self.meta.path(),
                format!("offset {start}: checksum mismatch"),
            ));
        }
        checked.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Checks every block and the order of the hashes.
    pub fn verify(&self) -> Result<()> {
        let mut before = None;
        for index in 0..self.meta.count as usize {
            let hash = self.hash_at(index)?;
            if before.is_some_and(|before| before >= hash) {
                return Err(Error::corrupt(self.meta.path(), "ids are not in order"));
            }
            before = Some(hash);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        base::rng::{Rng, SeededRng},
        vfs::sim::SimVfs,
    };

    fn run_of(count: usize) -> (SimVfs, IdRunMeta, Vec<u128>) {
        let rng = SeededRng::new(3);
        let mut hashes: Vec<u128> = (0..count)
            .map(|_| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()))
            .collect();
        hashes.sort_unstable();
        let vfs = SimVfs::new();
        let meta = write(&vfs, uuid::Uuid::from_u128(5), [1; 16], &hashes).unwrap();
        (vfs, meta, hashes)
    }

    #[test]
    fn a_run_knows_its_ids_and_no_others() {
        for count in [0, 1, 2, 5_000] {
            let (vfs, meta, hashes) = run_of(count);
            assert_eq!(
                IdRunMeta::read(&{
                    let mut out = Vec::new();
                    meta.write(&mut out);
                    out
                })
                .unwrap(),
                meta
            );
            let run = IdRun::open(vfs.map(&meta.path()).unwrap(), meta, [1; 16]).unwrap();
            for &hash in &hashes {
                assert!(run.contains(hash).unwrap());
                assert!(!run.contains(hash ^ 1).unwrap());
                assert!(!run.contains(hash ^ (1 << 100)).unwrap());
            }
        }
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let (vfs, meta, hashes) = run_of(300);
        let bytes = vfs.files()[&meta.path()].clone();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            let run = IdRun::open(View::new(damaged), meta.clone(), [1; 16]);
            assert!(run.and_then(|run| run.contains(hashes[7])).is_err(), "byte {at}");
        }
    }
}
