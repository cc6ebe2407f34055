//! Bytes compressed by zstd, behind the length that they have without it.
//!
//! Run directories and text lists are stored like this. The length comes first so that memory is reserved once, and
//! refused where it is absurd: sixty bytes of zstd can stand for gigabytes.
//!
//! ```text
//! the 19 bytes of a text list    offset  bytes
//! length before compression           0  13 00 00 00
//! zstd frame                          4  28 b5 2f fd 20 13 99 00 00 …   (too short to shrink: stored as it is)
//! ```
//!
//! Refused input: a length of 4,000,000,000 in front of twenty bytes is
//! `a compressed block claims an impossible size`; a frame that zstd rejects is `a block does not decompress: …`.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::cell::RefCell;

use zstd::bulk::Decompressor;

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Bytes decompress to at most so many times as many. A claim above that is refused before anything is decompressed; `doc/format.md`
/// promises the same factor.
const UNFOLDED_AT_MOST: usize = 64 << 10;

/// Appends the length of `plain` and a zstd frame of it. `level` is 1 where speed counts (users, event ids) and 3 where a block is
/// written once and read often (dictionaries, run directories).
///
/// Errors: `plain` has 4 GiB or more, or zstd fails.
pub fn write(plain: &[u8], level: i32, out: &mut Vec<u8>) -> std::io::Result<()> {
    let len = u32::try_from(plain.len())
        .map_err(|_| std::io::Error::other("a compressed block exceeds 4 GiB"))?;
    out.put_u32(len);
    out.extend_from_slice(&zstd::bulk::compress(plain, level)?);
    Ok(())
}

thread_local! {
    /// The decompression context of this thread. Making one for each block takes longer than decompressing a small block.
    static UNFOLDING: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The bytes of a zstd frame, at most `len_max`: so many are reserved before decompression starts.
///
/// Errors: what zstd says of a damaged frame.
pub fn unfold(frame: &[u8], len_max: usize) -> std::io::Result<Vec<u8>> {
    UNFOLDING.with_borrow_mut(|kept| {
        let context = match kept {
            Some(context) => context,
            none => none.insert(Decompressor::new()?),
        };
        context.decompress(frame, len_max)
    })
}

/// Reads at most `len_max` bytes back from all that is left of `cursor`.
///
/// Errors: `Corrupt` when more are claimed, or more than a frame of this size can hold.
pub fn read(mut cursor: Cursor<'_>, len_max: usize) -> Result<Vec<u8>> {
    let len = cursor.u32()? as usize;
    let fits = len / 1_024 <= cursor.remaining().saturating_mul(UNFOLDED_AT_MOST / 1_024);
    if len > len_max || !fits {
        return Err(cursor.error("a compressed block claims an impossible size"));
    }
    let frame = cursor.take(cursor.remaining())?;
    unfold(frame, len)
        .map_err(|error| cursor.error(&format!("a block does not decompress: {error}")))
}
