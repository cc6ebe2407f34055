//! Searching blocks of event ids for a prefix, without making the ids of all rows.
//!
//! The hex digits of a prefix are the high bits of a UUID. Of bit-packed UUIDs a block has the bits in which they differ:
//!
//! ```text
//! event_id LIKE '0a7f-%'   no UUID has a hyphen there
//! event_id LIKE '0a7f%'    mask ffff0000-0000-…, value 0a7f0000-0000-…; of a block of random UUIDs both lie in the higher
//!                          58 of 122 bits, so the lower 64 of no row are unpacked
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::ops::Range;

use super::{
    event_id_search::EventIdSet,
    event_ids::{EventIds, PackedUuids, packed_strings},
};
use crate::{encode::VECTOR_ROWS, error::Result};

/// Digits and hyphens of a UUID, and where its hyphens are.
const UUID_TEXT_LEN: usize = 36;
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// A condition on event ids that a statement has, such as `event_id = 'a'` or `event_id LIKE '0a7f%'`.
#[expect(clippy::large_enum_variant, reason = "a scan has one")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventIdCondition {
    /// One of a few ids.
    AnyOf(EventIdSet),
    /// Ids with a prefix.
    StartsWith(EventIdPrefix),
}

impl EventIdCondition {
    /// Whether an id as its sender wrote it, empty where there is none, meets the condition.
    pub fn is_met(&self, id: &[u8]) -> bool {
        match self {
            Self::AnyOf(ids) => ids.contains(id),
            Self::StartsWith(prefix) => prefix.is_of(id),
        }
    }

    /// Which rows of a block of `rows` rows meet the condition: those in the ranges, one range after the other.
    ///
    /// Errors: `Corrupt`, also for a range that ends behind the last row.
    pub fn rows_in(
        &self,
        block: &[u8],
        rows: usize,
        ranges: &[Range<usize>],
        place: &str,
    ) -> Result<Vec<bool>> {
        match self {
            Self::AnyOf(ids) => ids.rows_in(block, rows, ranges, place),
            Self::StartsWith(prefix) => prefix.rows_in(block, rows, ranges, place),
        }
    }
}

/// The first characters of an event id. Rows without an id have none, not even an empty prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventIdPrefix {
    text: Vec<u8>,
    /// The high bits of UUIDs that are printed with this prefix; nothing where none is.
    uuid: Option<MaskedBits>,
}

/// Bits that are looked at, and what they have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MaskedBits {
    mask: u128,
    value: u128,
}

impl MaskedBits {
    fn are_in(self, bits: u128) -> bool {
        bits & self.mask == self.value
    }
}

impl EventIdPrefix {
    /// A prefix of ids as their senders wrote them; an empty one is that of every id.
    pub fn new(text: &[u8]) -> Self {
        Self { text: text.to_vec(), uuid: uuid_bits(text) }
    }

    /// Whether an id has this prefix. A row without an id has none, whatever the prefix.
    pub fn is_of(&self, id: &[u8]) -> bool {
        !id.is_empty() && id.starts_with(&self.text)
    }

    fn rows_in(
        &self,
        block: &[u8],
        rows: usize,
        ranges: &[Range<usize>],
        place: &str,
    ) -> Result<Vec<bool>> {
        let is_within = ranges.iter().all(|range| range.start <= range.end && range.end <= rows);
        if is_within && let Some(packed) = PackedUuids::of(block, rows, place)? {
            return Ok(self.rows_in_uuids(&packed, ranges));
        }
        if is_within && let Some(packed) = packed_strings(block, rows, place)? {
            let rows = ranges.iter().cloned().flatten();
            return Ok(match packed.first_bits_of_prefix(&self.text) {
                None => rows.map(|_| false).collect(),
                Some((value, mask)) => rows
                    .map(|row| {
                        packed.first_bits(row) & mask == value
                            && packed.starts_with(row, &self.text)
                    })
                    .collect(),
            });
        }
        Ok(match EventIds::read_some(block, rows, ranges, place)? {
            EventIds::None(rows) => vec![false; rows],
            EventIds::Uuids(bytes) => {
                let uuids = bytes.as_chunks().0.iter().map(|bytes| u128::from_be_bytes(*bytes));
                uuids.map(|uuid| self.uuid.is_some_and(|bits| bits.are_in(uuid))).collect()
            }
            EventIds::Texts(texts) => texts.iter().map(|id| self.is_of(id)).collect(),
        })
    }

    fn rows_in_uuids(&self, packed: &PackedUuids<'_>, ranges: &[Range<usize>]) -> Vec<bool> {
        let rows = ranges.iter().map(Range::len).sum();
        let bits = self.uuid.and_then(|MaskedBits { mask, value }| {
            let (mask, value) = packed.squeeze_masked(mask, value)?;
            Some(MaskedBits { mask, value })
        });
        let Some(bits) = bits else { return vec![false; rows] };
        let halves = |bits: u128| (bits as u64, (bits >> 64) as u64);
        let ((low_mask, high_mask), (low, high)) = (halves(bits.mask), halves(bits.value));
        let mut marks = Vec::with_capacity(rows);
        let mut words = [0; VECTOR_ROWS];
        for range in ranges {
            for start in range.clone().step_by(VECTOR_ROWS) {
                let (words, _) = words.split_at_mut((range.end - start).min(VECTOR_ROWS));
                let first = marks.len();
                packed.highs(start, words);
                marks.extend(words.iter().map(|word| *word as u64 & high_mask == high));
                // Prefixes that are long, or blocks of UUIDs that have much in common.
                if low_mask != 0 {
                    packed.lows(start, words);
                    let marks = marks.iter_mut().skip(first).zip(words);
                    marks.for_each(|(mark, word)| *mark &= *word as u64 & low_mask == low);
                }
            }
        }
        marks
    }
}

/// The high bits of UUIDs whose text begins with a prefix; `None` where no UUID's does.
///
/// ```text
/// 0a7f         mask ffff0000…, value 0a7f0000…
/// 0A7F         None: UUIDs are printed in lower case
/// 0a7f1234-5   mask fffffffff000…, value 0a7f12345000…
/// 0a7f1234x    None: a hyphen stands there
/// ```
fn uuid_bits(prefix: &[u8]) -> Option<MaskedBits> {
    if prefix.len() > UUID_TEXT_LEN {
        return None;
    }
    let mut bits = MaskedBits { mask: 0, value: 0 };
    let mut shift = u128::BITS;
    for (at, &byte) in prefix.iter().enumerate() {
        if HYPHENS.contains(&at) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        // UUIDs are printed in lower case.
        let digit = char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_uppercase())?;
        shift -= 4;
        bits.mask |= 0xf << shift;
        bits.value |= u128::from(digit) << shift;
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn uuid() -> impl Strategy<Value = String> {
        any::<u128>().prop_map(|n| uuid::Uuid::from_u128(n).to_string())
    }

    fn ids() -> impl Strategy<Value = Vec<String>> {
        prop_oneof![
            prop::collection::vec(uuid(), 1..60),
            // UUIDs that have most bits in common, the lower or the higher ones.
            prop::collection::vec(
                (0..40u128).prop_map(|n| uuid::Uuid::from_u128(n << 61).to_string()),
                1..60
            ),
            prop::collection::vec(
                (0..5_000u128).prop_map(|n| uuid::Uuid::from_u128((7 << 90) + n).to_string()),
                1..60
            ),
            prop::collection::vec(any::<u128>().prop_map(|n| format!("evt_{n:032x}")), 1..60),
            prop::collection::vec((0..20u32).prop_map(|n| format!("event {n}")), 1..60),
            prop::collection::vec(
                prop_oneof![uuid(), Just(String::new()), Just("0a".to_owned())],
                1..60
            ),
            prop::collection::vec(Just(String::new()), 1..5),
        ]
    }

    proptest! {
        #[test]
        fn rows_are_those_whose_ids_begin_so(
            ids in ids(),
            at in any::<prop::sample::Index>(),
            len in 0usize..40,
            end in prop_oneof![4 => Just(""), 1 => Just("-"), 1 => Just("F"), 1 => Just("x")],
            cut in 0usize..60,
        ) {
            let mut list = EventIds::default();
            ids.iter().for_each(|id| list.push(Some(id.as_bytes())));
            let mut block = Vec::new();
            list.write(&mut block).unwrap();
            let id = at.get(&ids);
            let text = format!("{}{end}", &id[..len.min(id.len())]);
            let condition = EventIdCondition::StartsWith(EventIdPrefix::new(text.as_bytes()));
            let cut = cut.min(ids.len());
            let ranges = [cut..ids.len(), cut / 2..cut];
            let here = || ranges.iter().flat_map(|range| &ids[range.clone()]);
            let expected: Vec<bool> = here().map(|id| !id.is_empty() && id.starts_with(&text)).collect();
            let met: Vec<bool> = here().map(|id| condition.is_met(id.as_bytes())).collect();
            prop_assert_eq!(&met, &expected);
            prop_assert_eq!(condition.rows_in(&block, ids.len(), &ranges, "test").unwrap(), expected);
            let too_many = std::slice::from_ref(&(0..ids.len() + 1)).to_vec();
            prop_assert!(condition.rows_in(&block, ids.len(), &too_many, "test").is_err());
        }

        #[test]
        fn damaged_blocks_never_panic(bytes: Vec<u8>, rows in 0usize..1_000, text in "[0-9a-f-]{0,38}") {
            let condition = EventIdCondition::StartsWith(EventIdPrefix::new(text.as_bytes()));
            let _ = condition.rows_in(&bytes, rows, &[rows / 2..rows, 0..rows / 3], "test");
        }
    }
}
