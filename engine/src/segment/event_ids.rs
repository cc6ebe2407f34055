//! Blocks of event ids: nothing, UUIDs as the bits in which they differ, other texts of one length as bits for each
//! character, or texts.
//!
//! Ids are hardly ever read and are the largest column of most segments. Bits that all UUIDs of a block have
//! in common are stored once: the six of a random one's version and variant, the high ones of times. UUIDs
//! that rise with time are also tried byte by byte (all first bytes, then all second ones): zstd then
//! removes what repeats and leaves the chance.
//!
//! ```text
//! 57 random UUIDs, 905 bytes (golden file 019a6356-6e00-7749-9e93-7a53386cf283)
//! offset  bytes
//!      0  01                                                    bits
//!      1  00 00 00 00 00 00 00 80 00 40 00 00 00 00 00 00       common: version 4 and variant
//!     17  ff ff ff ff ff ff ff 3f ff 0f ff ff ff ff ff ff       varying: the other 122 bits
//!     33  456 bytes: the lower 64 of these of each row          489  416 bytes: the upper 58
//!
//! order-1, none, order-3 …   02, then a text list
//! no id in any row           00
//! ```
//!
//! A merge that brings rows without an id beside UUIDs makes texts of all of them: a list has one form.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::ops::Range;

use crate::{
    base::coding::{Cursor, Put},
    encode::{
        bitpack::{pack, packed_len, unpack},
        characters::{self, Characters, PackedStrings},
        text::{self, TextList},
    },
    error::{IoContext, Result},
};

/// Level of zstd: the column is written once or twice and read by repairs.
const LEVEL: i32 = 1;
const UUID_LEN: usize = 16;

/// Tag of a block without ids; nothing follows.
const NONE: u8 = 0;
/// Tag of UUIDs as the bits in which they differ.
const UUIDS: u8 = 1;
/// Tag of a text list, empty strings for rows without an id.
const TEXTS: u8 = 2;
/// Tag of UUIDs turned into sixteen columns of bytes under zstd.
const PLANES: u8 = 3;
/// Tag of texts of one length as bits for each character.
const CHARACTERS: u8 = 4;

/// Event ids of consecutive rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventIds {
    /// So many rows without one.
    None(usize),
    /// UUIDs in canonical text, sixteen bytes each.
    Uuids(Vec<u8>),
    /// Texts, empty where there is none.
    Texts(TextList),
}

impl Default for EventIds {
    fn default() -> Self {
        Self::None(0)
    }
}

impl EventIds {
    /// What the encoding of a block with this first byte is called.
    pub fn encoding_name(tag: u8) -> &'static str {
        match tag {
            NONE => "none",
            UUIDS => "uuid",
            TEXTS => "front-coded zstd",
            PLANES => "uuid planes zstd",
            CHARACTERS => "characters",
            _ => "?",
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::None(rows) => *rows,
            Self::Uuids(bytes) => bytes.len() / UUID_LEN,
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Bytes of all ids.
    pub fn bytes_used(&self) -> usize {
        match self {
            Self::None(_) => 0,
            Self::Uuids(bytes) => bytes.len(),
            Self::Texts(texts) => texts.bytes_used() + texts.len() * 8,
        }
    }

    /// Appends an id, `None` or empty where the event has none. A list in which rows with and without an id meet, or UUIDs and other
    /// ids, becomes one of texts.
    pub fn push(&mut self, id: Option<&[u8]>) {
        let id = id.unwrap_or_default();
        let uuid = canonical_uuid(id);
        match (&mut *self, uuid) {
            (Self::None(rows), _) if id.is_empty() => *rows += 1,
            (Self::None(0), Some(uuid)) => *self = Self::Uuids(uuid.into_bytes().to_vec()),
            (Self::Uuids(bytes), Some(uuid)) => bytes.extend_from_slice(uuid.as_bytes()),
            _ => self.texts().push(id),
        }
    }

    /// Appends rows `range` of another list, without making texts where both are of one form.
    pub fn append(&mut self, other: &Self, range: Range<usize>) {
        match (&mut *self, other) {
            (Self::None(rows), Self::None(_)) => *rows += range.len(),
            (Self::None(0) | Self::Uuids(_), Self::Uuids(from)) => {
                let from = from.get(range.start * UUID_LEN..range.end * UUID_LEN);
                match self {
                    Self::Uuids(bytes) => bytes.extend_from_slice(from.unwrap_or_default()),
                    _ => *self = Self::Uuids(from.unwrap_or_default().to_vec()),
                }
            }
            _ => {
                let mut scratch = Vec::new();
                let texts = self.texts();
                for row in range {
                    texts.push(other.value(row, &mut scratch).unwrap_or_default());
                }
            }
        }
    }

    /// The id of a row as its sender wrote it, `None` for no id. `scratch` holds the text of a UUID.
    pub fn value<'a>(&'a self, row: usize, scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        match self {
            Self::None(_) => None,
            Self::Texts(texts) => Some(texts.at(row)).filter(|id| !id.is_empty()),
            Self::Uuids(bytes) => {
                let bytes = bytes.get(row * UUID_LEN..(row + 1) * UUID_LEN)?;
                let uuid = uuid::Uuid::from_slice(bytes).ok()?;
                scratch.resize(uuid::fmt::Hyphenated::LENGTH, 0);
                uuid.hyphenated().encode_lower(scratch);
                Some(scratch)
            }
        }
    }

    /// The same rows as texts.
    fn texts(&mut self) -> &mut TextList {
        if !matches!(self, Self::Texts(_)) {
            let mut texts = TextList::default();
            let mut scratch = Vec::new();
            for row in 0..self.len() {
                texts.push(self.value(row, &mut scratch).unwrap_or_default());
            }
            *self = Self::Texts(texts);
        }
        match self {
            Self::Texts(texts) => texts,
            _ => unreachable!("made above"),
        }
    }

    /// Appends the block as bytes, in the smallest form that suits it.
    ///
    /// Errors: `Io` when zstd fails or texts exceed 256 MiB.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::None(_) => out.push(NONE),
            Self::Texts(texts) => {
                let mut folded = Vec::new();
                text::write(texts.iter(), LEVEL, &mut folded).at("event ids")?;
                // Ids that rise with time share beginnings; of random ones zstd takes more than their chance.
                let characters = Characters::of(texts.iter())
                    .filter(|characters| characters.bytes(texts.len()) <= folded.len());
                if let Some(characters) = characters {
                    out.push(CHARACTERS);
                    characters.write(texts.iter(), out);
                } else {
                    out.push(TEXTS);
                    out.extend_from_slice(&folded);
                }
            }
            Self::Uuids(bytes) => {
                let planes = zstd::bulk::compress(&transpose(bytes, UUID_LEN), LEVEL);
                let planes = planes.at("event ids")?;
                let mut bits = Vec::with_capacity(bytes.len());
                write_bits(bytes, &mut bits);
                // Chance does not compress: then bits are read faster.
                if planes.len() + bytes.len() / 20 < bits.len() {
                    out.push(PLANES);
                    out.extend_from_slice(&planes);
                } else {
                    out.push(UUIDS);
                    out.extend_from_slice(&bits);
                }
            }
        }
        Ok(())
    }

    /// Reads a block of `rows` rows back.
    ///
    /// Errors: `Corrupt`.
    pub fn read(bytes: &[u8], rows: usize, place: &str) -> Result<Self> {
        Self::read_some(bytes, rows, std::slice::from_ref(&(0..rows)), place)
    }

    /// Reads some rows of a block of `rows` rows: those in the ranges, one range after the other. Of bit-packed
    /// encodings the other rows are not decoded.
    ///
    /// Errors: `Corrupt`, also for a range that ends behind the last row.
    pub fn read_some(
        bytes: &[u8],
        rows: usize,
        ranges: &[Range<usize>],
        place: &str,
    ) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, place);
        if ranges.iter().any(|range| range.start > range.end || range.end > rows) {
            return Err(cursor.error("a block of event ids has fewer rows"));
        }
        let tag = cursor.u8()?;
        let rest = cursor.take(cursor.remaining())?;
        let picked = |all: Self| {
            if let [range] = ranges
                && *range == (0..rows)
            {
                return all;
            }
            let mut some = Self::default();
            ranges.iter().for_each(|range| some.append(&all, range.clone()));
            some
        };
        match tag {
            NONE => Ok(Self::None(ranges.iter().map(Range::len).sum())),
            TEXTS => Ok(picked(Self::Texts(text::read(rest, rows, place)?))),
            CHARACTERS => {
                Ok(Self::Texts(characters::read(Cursor::new(rest, place), rows, ranges)?))
            }
            UUIDS => {
                let packed = PackedUuids::read(Cursor::new(rest, place), rows)?;
                Ok(Self::Uuids(packed.uuids(ranges)))
            }
            PLANES => {
                let planes =
                    crate::encode::compressed::unfold(rest, rows * UUID_LEN).map_err(|error| {
                        cursor.error(&format!("event ids do not decompress: {error}"))
                    })?;
                if planes.len() != rows * UUID_LEN {
                    return Err(cursor.error("event ids have another number than rows"));
                }
                Ok(picked(Self::Uuids(transpose(&planes, rows))))
            }
            _ => Err(cursor.error("event ids have an unknown encoding")),
        }
    }
}

/// Appends the bits that all UUIDs have in common, which bits they are not, and these of each UUID.
fn write_bits(bytes: &[u8], out: &mut Vec<u8>) {
    let uuids = || bytes.as_chunks::<UUID_LEN>().0.iter().map(|uuid| u128::from_be_bytes(*uuid));
    let (ones, zeros) =
        uuids().fold((u128::MAX, u128::MAX), |(ones, zeros), uuid| (ones & uuid, zeros & !uuid));
    let varying = !(ones | zeros);
    out.put_u128(ones & !varying);
    out.put_u128(varying);
    let fields = fields(varying);
    let squeeze = |uuid: u128| squeeze(uuid, &fields);
    let width = varying.count_ones();
    let (lows, highs): (Vec<u64>, Vec<u64>) =
        uuids().map(squeeze).map(|bits| (bits as u64, (bits >> 64) as u64)).unzip();
    pack(&lows, width.min(64), out);
    pack(&highs, width.saturating_sub(64), out);
}

/// The packed strings of a block of `rows` rows, where its encoding is that one.
///
/// Errors: `Corrupt`.
pub fn packed_strings<'a>(
    block: &'a [u8],
    rows: usize,
    place: &'a str,
) -> Result<Option<PackedStrings<'a>>> {
    let mut cursor = Cursor::new(block, place);
    match cursor.u8()? {
        CHARACTERS => PackedStrings::of(cursor, rows).map(Some),
        _ => Ok(None),
    }
}

/// A block of UUIDs as [`write_bits`] wrote them: of each the bits in which they differ, the lower 64 apart from the others.
pub struct PackedUuids<'a> {
    common: u128,
    varying: u128,
    fields: Vec<(u32, u32)>,
    lows: &'a [u8],
    highs: &'a [u8],
}

impl<'a> PackedUuids<'a> {
    /// Of a block of `rows` rows, where its encoding is this one.
    ///
    /// Errors: `Corrupt`.
    pub fn of(block: &'a [u8], rows: usize, place: &'a str) -> Result<Option<Self>> {
        let mut cursor = Cursor::new(block, place);
        match cursor.u8()? {
            UUIDS => Self::read(cursor, rows).map(Some),
            _ => Ok(None),
        }
    }

    fn read(mut cursor: Cursor<'a>, rows: usize) -> Result<Self> {
        let (common, varying) = (cursor.u128()?, cursor.u128()?);
        let (low, high) = Self::widths(varying);
        let lows = cursor.take(packed_len(rows, low))?;
        let highs = cursor.take(packed_len(rows, high))?;
        if common & varying != 0 || cursor.remaining() > 0 {
            return Err(cursor.error("event ids have another number than rows"));
        }
        Ok(Self { common, varying, fields: fields(varying), lows, highs })
    }

    fn widths(varying: u128) -> (u32, u32) {
        let width = varying.count_ones();
        (width.min(64), width.saturating_sub(64))
    }

    /// The lower varying bits of rows from `first` on, as many as `out` has room for.
    pub fn lows(&self, first: usize, out: &mut [i64]) {
        unpack(self.lows, Self::widths(self.varying).0, first, 0, out);
    }

    /// The higher varying bits of rows from `first` on, those behind the lower 64.
    pub fn highs(&self, first: usize, out: &mut [i64]) {
        unpack(self.highs, Self::widths(self.varying).1, first, 0, out);
    }

    /// All varying bits of a row whose lower ones are known.
    pub fn bits(&self, row: usize, low: u64) -> u128 {
        let mut high = [0];
        self.highs(row, &mut high);
        joined(high[0] as u64, low)
    }

    /// The varying bits of a UUID, side by side; `None` where it differs from all of the block in another bit.
    pub fn squeeze(&self, uuid: u128) -> Option<u128> {
        (uuid & !self.varying == self.common).then(|| squeeze(uuid, &self.fields))
    }

    /// The varying bits of a mask and of what UUIDs have under it; `None` where all of the block have something else.
    pub fn squeeze_masked(&self, mask: u128, value: u128) -> Option<(u128, u128)> {
        let is_common = (value ^ self.common) & mask & !self.varying == 0;
        is_common.then(|| (squeeze(mask, &self.fields), squeeze(value, &self.fields)))
    }

    /// The UUID with these varying bits.
    fn unsqueeze(&self, mut bits: u128) -> u128 {
        let mut uuid = self.common;
        for &(to, width) in &self.fields {
            uuid |= (bits & ones_of(width)) << to;
            bits = bits.checked_shr(width).unwrap_or(0);
        }
        uuid
    }

    /// UUIDs of rows in ranges, sixteen bytes each.
    fn uuids(&self, ranges: &[Range<usize>]) -> Vec<u8> {
        let count = ranges.iter().map(Range::len).sum();
        let (mut lows, mut highs) = (vec![0; count], vec![0; count]);
        let (mut low_rest, mut high_rest) = (&mut *lows, &mut *highs);
        for range in ranges {
            let (lows, highs);
            (lows, low_rest) = std::mem::take(&mut low_rest).split_at_mut(range.len());
            (highs, high_rest) = std::mem::take(&mut high_rest).split_at_mut(range.len());
            self.lows(range.start, lows);
            self.highs(range.start, highs);
        }
        let mut out = Vec::with_capacity(count * UUID_LEN);
        for (low, high) in lows.into_iter().zip(highs) {
            let uuid = self.unsqueeze(joined(high as u64, low as u64));
            out.extend_from_slice(&uuid.to_be_bytes());
        }
        out
    }
}

fn joined(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// The bits of a number in these fields, side by side: of 0b1011_0110 in fields (1, 2) and (5, 3) it is 0b101_11.
fn squeeze(uuid: u128, fields: &[(u32, u32)]) -> u128 {
    let mut squeezed = (0u128, 0);
    for &(from, width) in fields {
        squeezed.0 |= (uuid >> from & ones_of(width)) << squeezed.1;
        squeezed.1 += width;
    }
    squeezed.0
}

/// Runs of ones, from the lowest bit on, each with its first bit and its length: (1, 2) and (5, 3) of 0b1110_0110.
fn fields(mut bits: u128) -> Vec<(u32, u32)> {
    let mut fields = Vec::new();
    while bits != 0 {
        let start = bits.trailing_zeros();
        let width = (bits >> start).trailing_ones();
        fields.push((start, width));
        bits &= !(ones_of(width) << start);
    }
    fields
}

/// So many ones.
fn ones_of(width: u32) -> u128 {
    u128::MAX.checked_shr(128 - width).unwrap_or(0)
}

/// Rows of `width` bytes become columns: byte c of row r moves to r of column c. Rows `ab`, `cd`, `ef` become `acebdf`.
fn transpose(bytes: &[u8], width: usize) -> Vec<u8> {
    if width == 0 {
        return Vec::new();
    }
    let mut out = Vec::with_capacity(bytes.len());
    for column in 0..width {
        out.extend(bytes.iter().skip(column).step_by(width));
    }
    out
}

/// The UUID, if the text is exactly what printing it gives.
pub fn canonical_uuid(text: &[u8]) -> Option<uuid::Uuid> {
    if text.len() != uuid::fmt::Hyphenated::LENGTH {
        return None;
    }
    let uuid = uuid::Uuid::try_parse_ascii(text).ok()?;
    (uuid.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()).as_bytes() == text)
        .then_some(uuid)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::single_range_in_vec_init, reason = "a list of one range of rows")]

    use proptest::prelude::*;

    use super::*;

    fn of(ids: &[Option<String>]) -> EventIds {
        let mut list = EventIds::default();
        for id in ids {
            list.push(id.as_deref().map(str::as_bytes));
        }
        list
    }

    fn texts(list: &EventIds) -> Vec<Option<String>> {
        let mut scratch = Vec::new();
        (0..list.len())
            .map(|row| {
                let id = list.value(row, &mut scratch)?;
                Some(String::from_utf8(id.to_vec()).unwrap())
            })
            .collect()
    }

    fn id() -> impl Strategy<Value = Option<String>> {
        prop_oneof![
            Just(None),
            "[a-z]{1,8}".prop_map(Some),
            any::<u128>().prop_map(|n| Some(uuid::Uuid::from_u128(n).to_string())),
            any::<[u8; 16]>().prop_map(|bytes| {
                Some(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string())
            }),
            any::<u128>().prop_map(|n| Some(uuid::Uuid::from_u128(n).to_string().to_uppercase())),
            any::<u128>().prop_map(|n| Some(format!("{n:032x}"))),
        ]
    }

    proptest! {
        #[test]
        fn ids_round_trip(ids in prop::collection::vec(id(), 0..40), cut in 0usize..40) {
            let list = of(&ids);
            prop_assert_eq!(&texts(&list), &ids);
            let mut bytes = Vec::new();
            list.write(&mut bytes).unwrap();
            let read = EventIds::read(&bytes, ids.len(), "test").unwrap();
            prop_assert_eq!(&texts(&read), &ids);
            let cut = cut.min(ids.len());
            let behind_first = cut / 2..cut;
            let ranges = [cut..ids.len(), behind_first.clone()];
            let some = EventIds::read_some(&bytes, ids.len(), &ranges, "test").unwrap();
            prop_assert_eq!(texts(&some), [&ids[cut..], &ids[behind_first]].concat());
            let beyond = EventIds::read_some(&bytes, ids.len(), &[0..ids.len() + 1], "test");
            prop_assert!(beyond.is_err());
            let mut joined = EventIds::default();
            joined.append(&read, 0..cut);
            joined.append(&of(&ids[cut..]), 0..ids.len() - cut);
            prop_assert_eq!(&texts(&joined), &ids);
        }

        #[test]
        fn damaged_ids_never_panic(bytes: Vec<u8>, rows in 0usize..1_000) {
            for ranges in [vec![0..rows], vec![rows / 2..rows, 0..rows / 3]] {
                if let Ok(list) = EventIds::read_some(&bytes, rows, &ranges, "test") {
                    texts_lossy(&list);
                }
            }
        }
    }

    fn texts_lossy(list: &EventIds) {
        let mut scratch = Vec::new();
        for row in 0..list.len() {
            let _ = list.value(row, &mut scratch);
        }
    }

    proptest! {
        #[test]
        fn bits_round_trip(uuids in prop::collection::vec(any::<u128>(), 0..300), same: u128, varying: u128) {
            let uuid = |bits: &u128| (same & !varying | bits & varying).to_be_bytes();
            let bytes: Vec<u8> = uuids.iter().flat_map(uuid).collect();
            let mut bits = Vec::new();
            write_bits(&bytes, &mut bits);
            let read = |ranges: &[Range<usize>]| PackedUuids::read(Cursor::new(&bits, "test"), uuids.len()).unwrap().uuids(ranges);
            prop_assert_eq!(&read(&[0..uuids.len()]), &bytes);
            let third = uuids.len() / 3;
            let some = [&bytes[third * UUID_LEN..], &bytes[..third * UUID_LEN]].concat();
            prop_assert_eq!(read(&[third..uuids.len(), 0..third]), some);
        }
    }

    #[test]
    fn random_uuids_take_what_is_random_in_them() {
        let mut list = EventIds::default();
        for n in 1..=10_000u128 {
            let random = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)).to_be_bytes();
            let uuid = uuid::Builder::from_random_bytes(random).into_uuid();
            list.push(Some(uuid.to_string().as_bytes()));
        }
        let mut bytes = Vec::new();
        list.write(&mut bytes).unwrap();
        assert!(bytes.len() < 10_000 * 122 / 8 + 64, "{} bytes", bytes.len());
        assert_eq!(EventIds::read(&bytes, 10_000, "test").unwrap(), list);
    }

    #[test]
    fn other_random_ids_take_what_is_random_in_them() {
        let mut list = EventIds::default();
        for n in 1..=10_000u128 {
            let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            list.push(Some(format!("{random:032x}").as_bytes()));
        }
        let mut bytes = Vec::new();
        list.write(&mut bytes).unwrap();
        assert!(bytes.len() < 10_000 * 16 + 64, "{} bytes", bytes.len());
        assert_eq!(EventIds::read(&bytes, 10_000, "test").unwrap(), list);
    }

    #[test]
    fn rising_uuids_take_less_than_their_bytes() {
        let mut list = EventIds::default();
        for n in 0..10_000u128 {
            let chance = n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) >> 54;
            let uuid = uuid::Uuid::from_u128((0x0193_0000_0000_7000 + (n << 4)) << 64 | chance);
            list.push(Some(uuid.to_string().as_bytes()));
        }
        let mut bytes = Vec::new();
        list.write(&mut bytes).unwrap();
        assert!(bytes.len() < 10_000 * 15, "{} bytes", bytes.len());
        assert_eq!(EventIds::read(&bytes, 10_000, "test").unwrap(), list);
    }
}
