//! Dictionaries and users' hashes that queries have read, kept for the next ones within a bound.
//!
//! Segments never change, so nothing here is ever out of date; what belongs to a segment that is
//! gone is not asked for again and makes room for others.

use std::sync::Arc;

use quick_cache::{Weighter, sync::Cache};

use super::budget::Charge;
use crate::{
    error::Result,
    segment::{Dictionary, Segment, TextReader},
};

/// Bytes of an entry besides its content.
const ENTRY_BYTES: usize = 128;
/// Blocks of a dictionary up to which one look-up reads all of it.
const LOOKED_UP_BLOCKS: usize = 2;
/// What a typical entry takes, for the size of the look-up.
const TYPICAL_BYTES: usize = 4_096;

/// A segment and a section of it.
type Key = (uuid::Uuid, usize);

#[derive(Clone)]
enum Entry {
    Texts(Arc<Dictionary>),
    Users(Arc<[u128]>),
}

impl Entry {
    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Self::Texts(dictionary) => dictionary.bytes_used(),
                Self::Users(hashes) => size_of_val(&**hashes),
            }
    }
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Entry> for Bytes {
    fn weight(&self, _: &Key, entry: &Entry) -> u64 {
        entry.bytes() as u64
    }
}

/// What is kept.
pub struct Kept {
    entries: Cache<Key, Entry, Bytes>,
}

impl Kept {
    /// Keeps up to `bytes_max`.
    pub fn new(bytes_max: usize) -> Self {
        let entries = Cache::with_weighter(bytes_max / TYPICAL_BYTES, bytes_max as u64, Bytes);
        Self { entries }
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> u64 {
        self.entries.weight()
    }

    /// The dictionary of a string property. What has to be read is charged to the query: it may be
    /// too large to be kept.
    pub fn dictionary(
        &self,
        reader: &TextReader<'_>,
        charge: &mut Charge,
    ) -> Result<Arc<Dictionary>> {
        let key = reader.key();
        if let Some(Entry::Texts(dictionary)) = self.entries.get(&key) {
            return Ok(dictionary);
        }
        let dictionary = Arc::new(reader.dictionary()?);
        let entry = Entry::Texts(Arc::clone(&dictionary));
        charge.add(entry.bytes())?;
        self.entries.insert(key, entry);
        Ok(dictionary)
    }

    /// The code of a value. A large dictionary is not read as a whole for that.
    pub fn code_of(
        &self,
        reader: &TextReader<'_>,
        value: &str,
        charge: &mut Charge,
    ) -> Result<Option<u32>> {
        if reader.value_blocks()? > LOOKED_UP_BLOCKS && self.entries.peek(&reader.key()).is_none() {
            return reader.code_of(value);
        }
        Ok(self.dictionary(reader, charge)?.code_of(value))
    }

    /// The hashes of a segment's users.
    pub fn users(&self, segment: &Segment, charge: &mut Charge) -> Result<Arc<[u128]>> {
        let key = (segment.meta().uuid, usize::MAX);
        if let Some(Entry::Users(hashes)) = self.entries.get(&key) {
            return Ok(hashes);
        }
        charge.add(segment.user_count()? * size_of::<u128>() + ENTRY_BYTES)?;
        let hashes: Arc<[u128]> = segment.user_hashes()?.into();
        self.entries.insert(key, Entry::Users(Arc::clone(&hashes)));
        Ok(hashes)
    }
}
