//! Writing an id run, block by block.
//!
//! The file is written front to back, read back whole, and only then gets its name:
//!
//! ```text
//! create tmp/019a….ids
//! write  block 0, block 1, … filter, list, trailer
//! sync
//! open and verify: trailer, list, every block, the order, the filter knows every hash
//! rename tmp/019a….ids → ids/02913/019a….ids
//! sync   ids/02913                              (by the caller, with what else it renames)
//! ```
//!
//! Where any step fails, the temporary file is removed and no run has come to be.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use xorf::{BinaryFuse8, DmaSerializable};

use super::{
    block,
    layout::{
        BLOCK_IDS, DESCRIPTOR_LEN, FILTER_INDEX, IdRunMeta, LIST_INDEX, MAGIC, TRAILER_LEN,
        VERSION, block_crc,
    },
    reader::IdRun,
};
use crate::{
    base::{coding::Put, hash::crc},
    error::{IoContext, Result},
    vfs::Vfs,
};

/// Identity of a new id run.
#[derive(Debug, Clone, Copy)]
pub struct NewRun {
    /// Name of the file; part of each block checksum.
    pub uuid: uuid::Uuid,
    /// Identity of the database, stored in the trailer.
    pub db: [u8; 16],
    /// Generation of the ids, a week since 1970: the run expires as a whole.
    pub generation: u32,
}

/// Writes a run under `tmp/`, verifies it and renames it into place. `next` gives the hashes, sorted
/// and distinct, so many at a time, and fewer at the end. The caller syncs the directory.
///
/// Shape: while the filter is built, some 35 bytes a hash are in memory. `next(4096, &mut hashes)` appends up to 4,096 hashes;
/// fewer end the run.
/// Errors: those of `next`, `Io` of the disk, `Corrupt` when what is read back is not what was written.
pub fn write(
    vfs: &dyn Vfs,
    new: NewRun,
    next: impl FnMut(usize, &mut Vec<u128>) -> Result<()>,
) -> Result<IdRunMeta> {
    let temporary = format!("tmp/{}.ids", new.uuid);
    let written = write_file(vfs, new, &temporary, next);
    if written.is_err() {
        let _ = vfs.remove(&temporary);
    }
    written
}

fn write_file(
    vfs: &dyn Vfs,
    new: NewRun,
    temporary: &str,
    mut next: impl FnMut(usize, &mut Vec<u128>) -> Result<()>,
) -> Result<IdRunMeta> {
    let NewRun { uuid, db, generation } = new;
    let file = vfs.create(temporary).at(temporary)?;
    let mut offset = 0u64;
    let mut put = |bytes: &[u8]| {
        let at = offset;
        offset += bytes.len() as u64;
        file.write_at(at, bytes).at(temporary).map(|()| at)
    };
    let (mut list, mut keys, mut count, mut last) = (Vec::new(), Vec::new(), 0u64, None);
    let (mut blocks, mut end) = (0u32, 0u64);
    let mut hashes: Vec<u128> = Vec::with_capacity(BLOCK_IDS);
    loop {
        hashes.clear();
        next(BLOCK_IDS, &mut hashes)?;
        if !hashes.is_empty() {
            assert!(hashes.is_sorted_by(|a, b| a < b) && last < hashes.first().copied());
            last = hashes.last().copied();
            keys.extend(hashes.iter().map(|&hash| hash as u64));
            count += hashes.len() as u64;
            let mut bytes = Vec::new();
            block::write(&hashes, &mut bytes);
            end += bytes.len() as u64;
            list.put_u128(hashes.first().copied().unwrap_or_default());
            list.put_u64(end);
            list.put_u32(block_crc(uuid, blocks, &bytes));
            blocks += 1;
            put(&bytes)?;
        }
        if hashes.len() < BLOCK_IDS {
            break;
        }
    }
    let filter = build_filter(keys);
    let filter_offset = put(&filter)?;
    let list_offset = put(&list)?;

    let mut trailer = Vec::with_capacity(TRAILER_LEN);
    trailer.put_u64(count);
    trailer.put_u64(filter_offset);
    trailer.put_u64(list_offset);
    trailer.put_u32(block_crc(uuid, FILTER_INDEX, &filter));
    trailer.put_u32(block_crc(uuid, LIST_INDEX, &list));
    trailer.put_u32(VERSION);
    trailer.extend_from_slice(&MAGIC);
    trailer.extend_from_slice(&db);
    let crc = crc(&[uuid.as_bytes(), &trailer]);
    trailer.put_u32(crc);
    put(&trailer)?;

    let meta = IdRunMeta { uuid, generation, count, len: offset, crc };
    file.sync().at(temporary)?;
    IdRun::open(vfs.map(temporary).at(temporary)?, meta.clone(), db)?.verify()?;
    let directory = meta.directory();
    vfs.create_dir(&directory).at(&directory)?;
    vfs.rename(temporary, &meta.path()).at(temporary)?;
    Ok(meta)
}

/// The filter as bytes; empty when none can be built, and then every probe looks the hash up.
fn build_filter(mut keys: Vec<u64>) -> Vec<u8> {
    // Distinct hashes may agree in their low 64 bits.
    keys.sort_unstable();
    keys.dedup();
    let Ok(filter) = BinaryFuse8::try_from(&keys) else { return Vec::new() };
    let mut descriptor = [0; DESCRIPTOR_LEN];
    filter.dma_copy_descriptor_to(&mut descriptor);
    [&descriptor[..], filter.dma_fingerprints()].concat()
}
