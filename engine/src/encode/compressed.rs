//! Bytes compressed by zstd, behind their length before.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::cell::RefCell;

use zstd::bulk::Decompressor;

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Bytes are at most so many times as many as they are compressed: what claims more is not unfolded.
const UNFOLDED_AT_MOST: usize = 64 << 10;

/// Appends the length of `plain` and a zstd frame of it.
pub fn write(plain: &[u8], level: i32, out: &mut Vec<u8>) -> std::io::Result<()> {
    let len = u32::try_from(plain.len())
        .map_err(|_| std::io::Error::other("a compressed block exceeds 4 GiB"))?;
    out.put_u32(len);
    out.extend_from_slice(&zstd::bulk::compress(plain, level)?);
    Ok(())
}

thread_local! {
    /// What unfolding needs, kept: making it anew for each block takes longer than a small block.
    static UNFOLDING: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The bytes of a zstd frame, at most `len_max`.
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
