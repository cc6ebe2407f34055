//! Merging sorted dictionaries as streams: only the values that the output uses, one block an input.
//!
//! ```text
//! A   large rare small     used 1, 3     remap 0 1 0 3
//! B   medium small         used 1, 2     remap 0 2 3
//! output   large medium small
//! ```
//!
//! `rare` is of rows that are not in the output, so the output does not have it: nothing of a deleted row stays behind.

use super::cursors::BlockCache;
use crate::{encode::BLOCK_ROWS, encode::text::TextList, error::Result, segment::TextReader};

/// Which codes of an input occur in the output, a bit each. Code 0, "absent", may be marked and is not asked for.
pub struct UsedCodes(Vec<u64>);

impl UsedCodes {
    /// None of `count` codes.
    pub fn none(count: usize) -> Self {
        Self(vec![0; (count + 1).div_ceil(64)])
    }

    /// Marks a code. One beyond the dictionary is passed over.
    pub fn mark(&mut self, code: i64) {
        if let Some(word) = self.0.get_mut(code as usize / 64) {
            *word |= 1 << (code % 64);
        }
    }

    /// Whether no code but "absent" is marked.
    pub fn is_empty(&self) -> bool {
        let first = self.0.first().is_none_or(|word| word & !1 == 0);
        first && self.0.iter().skip(1).all(|&word| word == 0)
    }

    /// Whether a code is marked.
    pub fn contains(&self, code: usize) -> bool {
        self.0.get(code / 64).is_some_and(|word| word >> (code % 64) & 1 == 1)
    }
}

/// One input's dictionary, read value by value.
pub struct ValueStream<'a, 'c> {
    /// The column; `None` where the input lacks it.
    pub reader: &'c TextReader<'a>,
    /// Its decoded blocks.
    pub cache: &'c mut BlockCache<TextList>,
    /// The values that are wanted.
    pub used: &'c UsedCodes,
    /// Number of values.
    pub count: usize,
    /// For each code, the output's.
    pub remap: Vec<u32>,
    /// Code of the value at hand, 0 before the first one, past `count` at the end.
    code: usize,
    value: Vec<u8>,
}

impl<'a, 'c> ValueStream<'a, 'c> {
    /// A stream at its first value that the output uses. Errors: `Corrupt` when a block of the dictionary is damaged.
    pub fn start(
        reader: &'c TextReader<'a>,
        cache: &'c mut BlockCache<TextList>,
        used: &'c UsedCodes,
    ) -> Result<Self> {
        let count = reader.value_count()?;
        let remap = vec![0; count + 1];
        let mut stream = Self { reader, cache, used, count, remap, code: 0, value: Vec::new() };
        stream.advance()?;
        Ok(stream)
    }

    fn is_done(&self) -> bool {
        self.code > self.count
    }

    /// Goes to the next wanted value, opening its block if it is another one.
    fn advance(&mut self) -> Result<()> {
        self.code += 1;
        while self.code <= self.count && !self.used.contains(self.code) {
            self.code += 1;
        }
        if !self.is_done() {
            let at = self.code - 1;
            let reader = self.reader;
            let block = self.cache.block(
                at / BLOCK_ROWS,
                |index| reader.value_block(index),
                TextList::bytes_used,
            )?;
            self.value.clear();
            self.value.extend_from_slice(block.at(at % BLOCK_ROWS));
        }
        Ok(())
    }
}

/// Gives up to `wanted` more values of the merged dictionary, rising, each once. `given` counts them all: it is the code of the
/// value that was given last. Fewer than `wanted` end it.
pub fn next_values(
    streams: &mut [Option<ValueStream<'_, '_>>],
    wanted: usize,
    given: &mut u32,
    out: &mut TextList,
) -> Result<()> {
    for _ in 0..wanted {
        let live = streams.iter().flatten().filter(|stream| !stream.is_done());
        let Some(least) = live.map(|stream| &stream.value).min() else { return Ok(()) };
        out.push(least);
        *given += 1;
        // Every stream that stands at this value gets its code, and moves on.
        let least = out.at(out.len() - 1);
        for stream in streams.iter_mut().flatten() {
            if !stream.is_done() && stream.value == least {
                stream.remap[stream.code] = *given;
                stream.advance()?;
            }
        }
    }
    Ok(())
}
