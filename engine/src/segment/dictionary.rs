//! A dictionary of a segment in memory: sorted strings in as few bytes as a look-up by number needs.
//!
//! ```text
//! large, rare, small     value(1) = large   value(3) = small   value(0) = value(4) = None
//!                        code_of("rare") = 2   code_of("tiny") = None
//! ```

use crate::{
    encode::{BLOCK_ROWS, text::TextList},
    error::{Error, Result},
};

/// Sorted strings; code n stands for the n-th, from 1.
#[derive(Default)]
pub struct Dictionary {
    /// Of [`BLOCK_ROWS`] strings each, the last one of fewer.
    blocks: Vec<TextList>,
    len: usize,
}

impl Dictionary {
    /// The strings of `blocks`, all UTF-8. Errors name `place`.
    pub fn new(blocks: Vec<TextList>, place: &str) -> Result<Self> {
        let is_text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
        if !blocks.iter().all(|block| block.iter().all(is_text)) {
            return Err(Error::corrupt(place, "a dictionary is not UTF-8"));
        }
        let len = blocks.iter().map(TextList::len).sum();
        Ok(Self { blocks, len })
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The string of a code, `None` for code 0 and codes that it does not have.
    pub fn value(&self, code: usize) -> Option<&str> {
        let at = code.checked_sub(1).filter(|&at| at < self.len)?;
        let block = self.blocks.get(at / BLOCK_ROWS)?;
        std::str::from_utf8(block.at(at % BLOCK_ROWS)).ok()
    }

    /// The code of a string, if it has one: by halves among the blocks, then within one.
    pub fn code_of(&self, value: &str) -> Option<u32> {
        let value = value.as_bytes();
        let behind = self.blocks.partition_point(|block| block.at(0) <= value);
        let block = behind.checked_sub(1)?;
        let at = self.blocks.get(block)?.position(value)?;
        Some((block * BLOCK_ROWS + at) as u32 + 1)
    }

    /// Bytes in memory, for the account of the cache that holds it.
    pub fn bytes_used(&self) -> usize {
        self.blocks.iter().map(|block| block.bytes_used() + block.len() * size_of::<usize>()).sum()
    }
}
