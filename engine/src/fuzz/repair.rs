//! Checksums put right: what a fuzzer changed gets past them and reaches the decoders behind.
//!
//! Follows `doc/format.md` and not the code, so that the two are compared as well. What does not look
//! like its kind of file is left as it is, and the decoder refuses it.
//!
//! ```text
//! input of the target "segment": a segment file in which the fuzzer has changed the length of a text list
//!
//! without repair   offset 576: checksum mismatch in section 7 model       the decoder of lists is never reached
//! with repair      crc of the block, crc of the footer over it, footer crc of the trailer, and that of the record
//!                  → a list is too large, or whatever the decoder says of it
//! ```
//!
//! Offsets are those of the tables in `doc/format.md`; a reader of this file has that page beside it.

use super::{DB, UUID};
use crate::{
    base::{coding::Cursor, hash::crc},
    error::Result,
};

/// First bytes of a frame of the log.
const FRAME_MARK: [u8; 4] = 0x4652_4d31_u32.to_le_bytes();
/// Bytes of an entry of the list: first hash, end and crc of a block.
const ID_LIST_ENTRY_BYTES: usize = 28;

/// Overwrites bytes, if they are there: in a file that is cut short there is nothing to put right.
fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    let end = at.checked_add(bytes.len());
    if let Some(place) = end.and_then(|end| file.get_mut(at..end)) {
        place.copy_from_slice(bytes);
    }
}

/// The number at an offset; `None` where the file ends before.
fn u32_at(file: &[u8], at: usize) -> Option<u32> {
    Cursor::new(file.get(at..)?, "").u32().ok()
}

/// The same of eight bytes.
fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    Cursor::new(file.get(at..)?, "").u64().ok()
}

/// A slot of the superblock: cut or filled up to 4,092 bytes, then their crc.
pub fn superblock(bytes: &[u8]) -> Vec<u8> {
    let mut slot = bytes.to_vec();
    slot.resize(4_092, 0);
    let sum = crc(&[&slot]);
    slot.extend(sum.to_le_bytes());
    slot
}

/// A log file that follows a frame with checksum `chain`. Gives the checksum of its last frame too, which the next file has to
/// continue.
///
/// Database and chain are put in, then the crc of the header; each frame gets the crc for its offset and salt. It ends where there
/// is no mark, or where a body would end behind the file.
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
        // The next frame begins at a multiple of eight.
        at = (at + 24 + len).next_multiple_of(8);
    }
    (file, last)
}

/// A checkpoint: its database, the crc of its header and that of each block. Gives its LSN too, under which it is read.
pub fn checkpoint(bytes: &[u8]) -> (Vec<u8>, u64) {
    let mut file = bytes.to_vec();
    put(&mut file, 12, &DB);
    let lsn = u64_at(&file, 28).unwrap_or_default();
    let sum = crc(&[file.get(..44).unwrap_or_default()]);
    put(&mut file, 44, &sum.to_le_bytes());
    // Behind the header: blocks of a length, a crc and so many bytes.
    let mut at = 48;
    while let Some(len) = u32_at(&file, at) {
        let Some(block) = file.get(at + 8..at + 8 + len as usize) else { break };
        let sum = crc(&[&lsn.to_le_bytes(), &(at as u64 + 4).to_le_bytes(), block]);
        put(&mut file, at + 4, &sum.to_le_bytes());
        at += 8 + len as usize;
    }
    (file, lsn)
}

/// A segment: its blocks, its footer, its trailer. Gives the footer's checksum too, which the record has to name.
///
/// From the inside to the outside: the footer holds the checksums of blocks, and the trailer that of the footer.
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

/// Puts the crc of each block of each section into the footer. Lengths and offsets stay as the fuzzer has them, so a block may lie
/// anywhere or nowhere.
fn blocks(file: &[u8], footer: &mut [u8]) -> Result<()> {
    let read = footer.to_vec();
    let mut cursor = Cursor::new(&read, "");
    cursor.take(4 + 8 + 8)?;
    for _ in 0..cursor.varint()? {
        let kind = cursor.take(2)?;
        let (name, _) = (cursor.bytes()?, cursor.bytes()?);
        for index in 0..cursor.varint()? {
            let (start, len) = (cursor.u64()? as usize, cursor.u32()? as usize);
            // Here stands the crc; it is put into the copy, while the cursor goes on over the original.
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

/// The facts in the record of an id run: the target makes the record from these, so that it always fits the run.
pub struct RunFacts {
    /// Number of hashes, as the trailer has it.
    pub count: u64,
    /// Checksum of the trailer.
    pub crc: u32,
}

/// An id run: its blocks, its filter, its list, its trailer. Gives the facts for its record.
///
/// A damaged filter is not refused but built again, so that both ways are tried: the first byte of the filter decides.
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

/// The list of a backup: its last line, `end ` and the crc of all lines before it, replaces whatever the last line is.
pub fn backup_list(bytes: &[u8]) -> Vec<u8> {
    let end = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let end = end.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let mut list = bytes[..end].to_vec();
    let sum = crc(&[&list]);
    list.extend(format!("end {sum:08x}\n").bytes());
    list
}
