//! Checksums put right: what a fuzzer changed gets past them and reaches the decoders behind.
//!
//! Follows `doc/format.md` and not the code, so that the two are compared as well. What does not look
//! like its kind of file is left as it is, and the decoder refuses it.

use super::{DB, UUID};
use crate::{
    base::{coding::Cursor, hash::crc},
    error::Result,
};

const FRAME_MARK: [u8; 4] = 0x4652_4d31_u32.to_le_bytes();
/// Bytes of an entry of the list: first hash, end and crc of a block.
const ID_LIST_ENTRY_BYTES: usize = 28;

/// Overwrites bytes, if they are there.
fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    let end = at.checked_add(bytes.len());
    if let Some(place) = end.and_then(|end| file.get_mut(at..end)) {
        place.copy_from_slice(bytes);
    }
}

fn u32_at(file: &[u8], at: usize) -> Option<u32> {
    Cursor::new(file.get(at..)?, "").u32().ok()
}

fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    Cursor::new(file.get(at..)?, "").u64().ok()
}

/// A slot of the superblock.
pub fn superblock(bytes: &[u8]) -> Vec<u8> {
    let mut slot = bytes.to_vec();
    slot.resize(4_092, 0);
    let sum = crc(&[&slot]);
    slot.extend(sum.to_le_bytes());
    slot
}

/// A log file that follows a frame with checksum `chain`. Gives the checksum of its last frame too.
pub fn log_file(bytes: &[u8], chain: u32) -> (Vec<u8>, u32) {
    let mut file = bytes.to_vec();
    put(&mut file, 12, &DB);
    put(&mut file, 44, &chain.to_le_bytes());
    let sum = crc(&[file.get(..60).unwrap_or_default()]);
    put(&mut file, 60, &sum.to_le_bytes());
    let salt = u64_at(&file, 28).unwrap_or_default();
    let (mut at, mut last) = (64, chain);
    while file.get(at..at + 4) == Some(&FRAME_MARK) {
        let len = u32_at(&file, at + 4).unwrap_or_default() as usize;
        let Some(body) = file.get(at + 24..at + 24 + len) else { break };
        let (count, lsn) = (&file[at + 12..at + 16], &file[at + 16..at + 24]);
        let place = (at as u64).to_le_bytes();
        last = crc(&[&DB, &salt.to_le_bytes(), &place, lsn, count, body]);
        put(&mut file, at + 8, &last.to_le_bytes());
        at = (at + 24 + len).next_multiple_of(8);
    }
    (file, last)
}

/// A checkpoint. Gives its LSN too.
pub fn checkpoint(bytes: &[u8]) -> (Vec<u8>, u64) {
    let mut file = bytes.to_vec();
    put(&mut file, 12, &DB);
    let lsn = u64_at(&file, 28).unwrap_or_default();
    let sum = crc(&[file.get(..44).unwrap_or_default()]);
    put(&mut file, 44, &sum.to_le_bytes());
    let mut at = 48;
    while let Some(len) = u32_at(&file, at) {
        let Some(block) = file.get(at + 8..at + 8 + len as usize) else { break };
        let sum = crc(&[&lsn.to_le_bytes(), &(at as u64 + 4).to_le_bytes(), block]);
        put(&mut file, at + 4, &sum.to_le_bytes());
        at += 8 + len as usize;
    }
    (file, lsn)
}

/// A segment: its blocks, its footer, its trailer. Gives the footer's checksum too.
pub fn segment(bytes: &[u8]) -> (Vec<u8>, u32) {
    let mut file = bytes.to_vec();
    let trailer = file.len().saturating_sub(32);
    let offset = u64_at(&file, trailer).unwrap_or_default() as usize;
    let len = u32_at(&file, trailer + 8).unwrap_or_default() as usize;
    let Some(footer) = file.get(offset..offset.saturating_add(len)) else { return (file, 0) };
    let mut footer = footer.to_vec();
    // A footer that ends too early keeps the checksums that were put right before its end.
    let _ = blocks(&file, &mut footer);
    put(&mut file, offset, &footer);
    let version = file.get(trailer + 16..trailer + 20).unwrap_or_default();
    let sum = crc(&[UUID.as_bytes(), &DB, version, &footer]);
    put(&mut file, trailer + 12, &sum.to_le_bytes());
    (file, sum)
}

fn blocks(file: &[u8], footer: &mut [u8]) -> Result<()> {
    let read = footer.to_vec();
    let mut cursor = Cursor::new(&read, "");
    cursor.take(4 + 8 + 8)?;
    for _ in 0..cursor.varint()? {
        let kind = cursor.take(2)?;
        let (name, _) = (cursor.bytes()?, cursor.bytes()?);
        for index in 0..cursor.varint()? {
            let (start, len) = (cursor.u64()? as usize, cursor.u32()? as usize);
            let at = read.len() - cursor.remaining();
            cursor.take(4)?;
            if let Some(block) = file.get(start..start.saturating_add(len)) {
                let index = (index as u32).to_le_bytes();
                let sum = crc(&[UUID.as_bytes(), kind, name, &index, block]);
                put(footer, at, &sum.to_le_bytes());
            }
        }
    }
    Ok(())
}

/// What an id run's record says of it.
pub struct RunFacts {
    /// Number of hashes.
    pub count: u64,
    /// Checksum of the trailer.
    pub crc: u32,
}

/// An id run: its blocks, its filter, its list, its trailer.
pub fn id_run(bytes: &[u8]) -> (Vec<u8>, RunFacts) {
    let mut file = bytes.to_vec();
    let trailer = file.len().saturating_sub(64);
    let count = u64_at(&file, trailer).unwrap_or_default();
    let [filter, list] = [8, 16].map(|at| u64_at(&file, trailer + at).unwrap_or_default() as usize);
    let part = |file: &[u8], index: u32, from: usize, to: usize| {
        let bytes = file.get(from..to).unwrap_or_default();
        crc(&[UUID.as_bytes(), &index.to_le_bytes(), bytes]).to_le_bytes()
    };
    let mut from = 0;
    for (index, entry) in (list..trailer).step_by(ID_LIST_ENTRY_BYTES).enumerate() {
        let to = u64_at(&file, entry + 16).unwrap_or_default() as usize;
        let sum = part(&file, index as u32, from, to);
        put(&mut file, entry + 24, &sum);
        from = to;
    }
    // An even seed stands for a filter whose checksum is wrong, which is built again.
    let is_whole = file.get(filter).is_none_or(|byte| byte % 2 == 1);
    if is_whole {
        let sum = part(&file, u32::MAX, filter, list);
        put(&mut file, trailer + 24, &sum);
    }
    let sum = part(&file, u32::MAX - 1, list, trailer);
    put(&mut file, trailer + 28, &sum);
    put(&mut file, trailer + 44, &DB);
    let sum = crc(&[UUID.as_bytes(), file.get(trailer..trailer + 60).unwrap_or_default()]);
    put(&mut file, trailer + 60, &sum.to_le_bytes());
    (file, RunFacts { count, crc: sum })
}

/// The list of a backup: its last line.
pub fn backup_list(bytes: &[u8]) -> Vec<u8> {
    let end = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let end = end.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let mut list = bytes[..end].to_vec();
    let sum = crc(&[&list]);
    list.extend(format!("end {sum:08x}\n").bytes());
    list
}
