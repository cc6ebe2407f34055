//! Numbers in the place of texts that tell partitions apart.
//!
//! `row_number() OVER (PARTITION BY event_id ORDER BY priority)` needs rows of an event beside each other, and events in any order: each text
//! gets the number of the first row that has it, and numbers are sorted by their digits where texts would be compared.
//!
//! ```text
//! event_id     e7   NULL   e3   e7   NULL
//! number       0    NULL   2    0    NULL
//! ```
//!
//! Columns of a statement's dictionary have numbers already (`rules/dictionary_partitions.rs`); these are for ids of events and for texts that
//! are computed, as `lower(user_id)`. Numbers mean nothing beyond one partition of one window.

use std::{hash::BuildHasher as _, sync::Arc};

use arrow::{
    array::{Array as _, ArrayRef, AsArray as _, StringViewArray, UInt32Array},
    datatypes::DataType,
};
use datafusion_common::hash_utils::RandomState;
use hashbrown::HashTable;

use crate::tables::spread;

/// Whether texts are numbered: whether a column is one of texts.
pub fn is_numbered(kind: &DataType) -> bool {
    *kind == DataType::Utf8View
}

/// A number for each text of a column, the same for the same texts, nulls as they are; the column itself where it is none of texts.
/// There are fewer than 2³² rows.
pub fn numbered(column: ArrayRef) -> ArrayRef {
    match column.as_string_view_opt() {
        Some(texts) => Arc::new(UInt32Array::new(numbers(texts).into(), texts.nulls().cloned())),
        None => column,
    }
}

/// For each row the first row with the same text; some number for a null.
fn numbers(texts: &StringViewArray) -> Vec<u32> {
    let hasher = RandomState::default();
    // Half of a hash tells nearly all texts apart.
    let mut known: HashTable<(u32, u32)> = HashTable::new();
    let hash_of = |(hash, _): &(u32, u32)| spread(*hash);
    let mut numbers = Vec::with_capacity(texts.len());
    for row in 0..texts.len() {
        let text = texts.value(row);
        let hash = hasher.hash_one(text) as u32;
        let is_it = |(of, first): &(u32, u32)| *of == hash && texts.value(*first as usize) == text;
        let entry = known.entry(spread(hash), is_it, hash_of).or_insert((hash, row as u32));
        numbers.push(entry.get().1);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_texts_have_the_same_numbers_and_nulls_stay() {
        let texts = [Some("a"), None, Some("a text that is longer than a view"), Some("a"), None];
        let texts: StringViewArray =
            texts.into_iter().chain([Some("a text that is longer than a view")]).collect();
        let numbers = numbered(Arc::new(texts));
        let expected: UInt32Array =
            [Some(0), None, Some(2), Some(0), None, Some(2)].into_iter().collect();
        assert_eq!(*numbers, expected as UInt32Array);
        let times: ArrayRef = Arc::new(UInt32Array::from(vec![7, 8]));
        assert!(Arc::ptr_eq(&numbered(Arc::clone(&times)), &times));
    }
}
