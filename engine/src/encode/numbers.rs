//! Blocks of 64-bit floats, absent where NaN.
//!
//! Most measures are short decimals: with one exponent for a whole column (so that integers of
//! different blocks compare) they become integers, and integers pack well. The few values that do
//! not survive the round trip bit for bit are kept beside as exceptions. Columns of other floats
//! are stored as they are, compressed.
//!
//! Presence is "all", "these rows" or "a bit a row", by the number of rows that have a value.
//!
//! ```text
//! [1.25, absent, 0.1 + 0.2, 3.5] in a column of exponent 2
//!                      offset  bytes
//! presence: marked          0  02
//! rows 0, 2, 3              1  0d
//! exceptions                2  01 00 00 00
//! position 2                6  02 00
//! 0.30000000000000004       8  34 33 33 33 33 33 d3 3f
//! integers: packed         16  01 7d 00 00 00 00 00 00 00 00 08 00 00 00     (125, 125, 125, 350)
//!                              00 00 00 e1 00 00 00 00
//! ```
//!
//! The absent row and the exception repeat 125, so they widen nothing. One value in 30 rows is listed:
//!
//! ```text
//! row 20 has 2.5, in a column of exponent 1
//! presence: listed          0  01
//! rows                      1  01 00 14 00
//! exceptions                5  00 00 00 00
//! integers: constant        9  00 19 00 00 00 00 00 00 00
//! ```
//!
//! Of 10,000 prices from 0.00 to 9.99 the exponent is 2, and a row takes ten bits. Of irrational numbers no exponent fits: the
//! column is raw (exponent 255).

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::{Block, Listed, VECTOR_ROWS, are_rows, ints};
use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Powers of ten that a double represents exactly and that keep quotients correctly rounded.
const POWERS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
/// Exponent of a column that is stored as raw floats: each block is a zstd frame of eight bytes a row.
pub const RAW: u8 = 255;
/// Integers below 2^53 are exact in a double; from here on two of them may share one.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// Values looked at when the exponent is chosen, spread evenly over the column.
const SAMPLE: usize = 4_096;
/// One value in this many may be an exception before raw floats are smaller.
const EXCEPTIONS_AT_MOST: usize = 20;
/// Fewer present rows than this in a full block are listed instead of marked.
const SPARSE_ROWS_MAX: usize = 5_120;
/// Present rows are listed where there are more than so many rows for each of them: two bytes for its position, against a bit for
/// each of these rows and a stored integer for each absent one.
pub const LISTED_FROM: usize = 12;

/// Presence: every row has a value, and none is NaN.
const ALL: u8 = 0;
/// Presence: the rows that have a value follow; only their values are stored.
const LISTED: u8 = 1;
/// Presence: a bit for each row follows; a value is stored for every row.
const MARKED: u8 = 2;

fn power(exponent: u8) -> f64 {
    POWERS.get(usize::from(exponent)).copied().unwrap_or(1.0)
}

/// The integer that stands for `value`, if it gives the same bits back: 125 for 1.25 with exponent 2; `None` for `-0.0`, for
/// 1.255 (of which 1.25 would be left) and for infinity.
fn scale(value: f64, exponent: u8) -> Option<i64> {
    let scaled = (value * power(exponent)).round();
    if scaled.abs() >= EXACT_MAX {
        return None;
    }
    let integer = scaled as i64;
    (unscale(integer, exponent).to_bits() == value.to_bits()).then_some(integer)
}

/// The value that an integer stands for: 1.25 for 125 with exponent 2. A division, because 10^-2 is not exact in a double.
fn unscale(integer: i64, exponent: u8) -> f64 {
    integer as f64 / power(exponent)
}

/// The decimal exponent for a column, or [`RAW`]: the smallest with which at most one sampled value in 20 is an exception.
///
/// `values` may hold NaN for absent rows. Without any value it is 0.
pub fn choose_exponent(values: &[f64]) -> u8 {
    let step = (values.len() / SAMPLE).max(1);
    let sample: Vec<f64> =
        values.iter().copied().filter(|value| !value.is_nan()).step_by(step).take(SAMPLE).collect();
    (0..POWERS.len() as u8)
        .find(|&exponent| {
            let misses = sample.iter().filter(|&&value| scale(value, exponent).is_none()).count();
            misses * EXCEPTIONS_AT_MOST <= sample.len()
        })
        .unwrap_or(RAW)
}

/// The decimal exponent for a column of which few rows have a value: one under which they can be listed, so never [`RAW`],
/// whose blocks have eight bytes for every row before they are compressed.
pub fn choose_exponent_listed(values: &[f64]) -> u8 {
    // What a raw column would hold are exceptions here, which take ten bytes instead of eight a row.
    match choose_exponent(values) {
        RAW => 0,
        exponent => exponent,
    }
}

/// Appends a block of `rows` rows of which those in `listed`, rising, have a value. The bytes are those of [`write()`] for the
/// same rows.
///
/// Errors: zstd fails on a raw block.
pub fn write_listed(
    rows: usize,
    listed: &[(u32, f64)],
    exponent: u8,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    if exponent == RAW || !is_listed(listed.len(), rows) {
        let mut values = vec![f64::NAN; rows];
        for &(row, value) in listed {
            if let Some(slot) = values.get_mut(row as usize) {
                *slot = value;
            }
        }
        return write(&values, exponent, out);
    }
    out.push(LISTED);
    out.put_u16(listed.len() as u16);
    listed.iter().for_each(|&(row, _)| out.put_u16(row as u16));
    write_scaled(listed.iter().map(|&(_, value)| value), exponent, out);
    Ok(())
}

/// Whether the rows of a block that have a value are listed instead of marked: 5,119 of 65,536, but not 2 of 24.
fn is_listed(present: usize, rows: usize) -> bool {
    present < SPARSE_ROWS_MAX && present * LISTED_FROM < rows
}

/// Appends a block of at most `BLOCK_ROWS` values with the column's exponent; NaN is absent, whichever of its bits are set.
///
/// Errors: zstd fails on a raw block.
pub fn write(values: &[f64], exponent: u8, out: &mut Vec<u8>) -> std::io::Result<()> {
    if exponent == RAW {
        let bytes: Vec<u8> =
            values.iter().flat_map(|value| value.to_bits().to_le_bytes()).collect();
        out.extend_from_slice(&zstd::bulk::compress(&bytes, 1)?);
        return Ok(());
    }
    let present = values.iter().filter(|value| !value.is_nan()).count();
    let listed = is_listed(present, values.len());
    let presence = match (present == values.len(), listed) {
        (true, _) => ALL,
        (false, true) => LISTED,
        (false, false) => MARKED,
    };
    out.push(presence);
    match presence {
        LISTED => {
            out.put_u16(present as u16);
            for (row, _) in values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
                out.put_u16(row as u16);
            }
        }
        MARKED => {
            for chunk in values.chunks(8) {
                let bits = chunk.iter().enumerate();
                out.push(
                    bits.fold(0, |byte, (bit, value)| byte | (u8::from(!value.is_nan()) << bit)),
                );
            }
        }
        _ => {}
    }
    let stored = values.iter().copied().filter(|value| !listed || !value.is_nan());
    write_scaled(stored, exponent, out);
    Ok(())
}

/// Appends exceptions and integers. Positions of exceptions count the stored values, which are fewer than rows where these are
/// listed.
fn write_scaled(stored: impl Iterator<Item = f64>, exponent: u8, out: &mut Vec<u8>) {
    let mut integers = Vec::with_capacity(stored.size_hint().0);
    let mut exceptions = Vec::new();
    let mut filler = 0;
    for value in stored {
        if !value.is_nan() {
            match scale(value, exponent) {
                Some(integer) => filler = integer,
                None => exceptions.push((integers.len() as u16, value)),
            }
        }
        // A missing value repeats its neighbour: it costs no extra bits.
        integers.push(filler);
    }
    out.put_u32(exceptions.len() as u32);
    for (at, value) in &exceptions {
        out.put_u16(*at);
        out.put_u64(value.to_bits());
    }
    ints::write(&integers, out);
}

/// Name of the encoding of a block, as `inlay-inspect` prints it: `decimal 3, all`, `decimal 0, listed`, `raw zstd`.
pub fn describe(bytes: &[u8], exponent: u8) -> String {
    if exponent == RAW {
        return "raw zstd".to_owned();
    }
    let presence = match bytes.first() {
        Some(&ALL) => "all",
        Some(&LISTED) => "listed",
        Some(&MARKED) => "marked",
        _ => "?",
    };
    format!("decimal {exponent}, {presence}")
}

/// A block of numbers that is opened. A raw one is decompressed already; of others the lists of rows and exceptions are read.
pub struct NumberBlock<'a> {
    rows: usize,
    body: NumbersBody<'a>,
}

enum NumbersBody<'a> {
    Raw(Vec<u8>),
    Scaled {
        exponent: u8,
        presence: Presence<'a>,
        exceptions: Vec<(u16, f64)>,
        integers: ints::IntBlock<'a>,
    },
}

enum Presence<'a> {
    All,
    Listed(Vec<u16>),
    Marked(&'a [u8]),
}

impl<'a> NumberBlock<'a> {
    /// Opens a block of `rows` rows of a column with `exponent`, which the section keeps. Errors name `place`.
    ///
    /// Errors: `Corrupt` when exponent or presence are not known, listed rows do not rise or lie behind the block, raw numbers
    /// do not decompress or are fewer than rows, or the input ends too early.
    pub fn open(bytes: &'a [u8], rows: usize, exponent: u8, place: &'a str) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, place);
        if exponent == RAW {
            let raw = super::compressed::unfold(bytes, rows * 8)
                .map_err(|error| cursor.error(&format!("numbers do not decompress: {error}")))?;
            if raw.len() != rows * 8 {
                return Err(cursor.error("numbers are fewer than rows"));
            }
            return Ok(Self { rows, body: NumbersBody::Raw(raw) });
        }
        if usize::from(exponent) >= POWERS.len() {
            return Err(cursor.error("a number column has an unknown exponent"));
        }
        let presence = match cursor.u8()? {
            ALL => Presence::All,
            LISTED => {
                let count = usize::from(cursor.u16()?);
                let mut list = Cursor::new(cursor.take(count * 2)?, place);
                let listed = (0..count).map(|_| list.u16()).collect::<Result<Vec<_>>>()?;
                if !are_rows(&listed, rows) {
                    return Err(cursor.error("listed rows are not rising rows of the block"));
                }
                Presence::Listed(listed)
            }
            MARKED => Presence::Marked(cursor.take(rows.div_ceil(8))?),
            _ => return Err(cursor.error("a block has an unknown presence")),
        };
        let stored = if let Presence::Listed(list) = &presence { list.len() } else { rows };
        let count = cursor.u32()? as usize;
        let mut list = Cursor::new(cursor.take(count.saturating_mul(10))?, place);
        let exceptions = (0..count)
            .map(|_| Ok((list.u16()?, f64::from_bits(list.u64()?))))
            .collect::<Result<Vec<_>>>()?;
        let integers = ints::IntBlock::open(cursor.take(cursor.remaining())?, stored, place)?;
        Ok(Self { rows, body: NumbersBody::Scaled { exponent, presence, exceptions, integers } })
    }

    /// Reads vector `index` and returns its number of rows; absent rows are NaN.
    pub fn read_vector(&self, index: usize, out: &mut [f64; VECTOR_ROWS]) -> Result<usize> {
        let start = index * VECTOR_ROWS;
        let len = self.rows.saturating_sub(start).min(VECTOR_ROWS);
        let (out, _) = out.split_at_mut(len);
        self.read_rows(start, out)?;
        Ok(len)
    }

    /// Reads rows of one vector into `out`, from the block's row `start` on; absent rows are NaN. The rows must not reach into
    /// the next vector.
    pub fn read_rows(&self, start: usize, out: &mut [f64]) -> Result<()> {
        match &self.body {
            NumbersBody::Raw(raw) => {
                for (slot, bytes) in out.iter_mut().zip(raw.chunks_exact(8).skip(start)) {
                    *slot =
                        f64::from_bits(u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
                }
            }
            NumbersBody::Scaled {
                exponent,
                presence: Presence::Listed(rows),
                exceptions,
                integers,
            } => {
                out.fill(f64::NAN);
                let first = rows.partition_point(|&row| usize::from(row) < start);
                let last = rows.partition_point(|&row| usize::from(row) < start + out.len());
                if first < last {
                    let mut values = Vec::new();
                    read_range(integers, exceptions, *exponent, first..last, &mut values)?;
                    for (row, value) in rows.iter().take(last).skip(first).zip(values) {
                        if let Some(slot) = out.get_mut(usize::from(*row) - start) {
                            *slot = value;
                        }
                    }
                }
            }
            NumbersBody::Scaled { exponent, presence, exceptions, integers } => {
                let mut vector = [0; VECTOR_ROWS];
                let (vector, _) = vector.split_at_mut(out.len().min(VECTOR_ROWS));
                integers.read_rows(start, vector)?;
                // One loop without branches over the whole vector; exceptions and absent rows are put over it afterwards.
                let divisor = power(*exponent);
                for (slot, &integer) in out.iter_mut().zip(vector.iter()) {
                    *slot = integer as f64 / divisor;
                }
                patch(out, exceptions, start);
                if let Presence::Marked(bits) = presence {
                    for (at, slot) in out.iter_mut().enumerate() {
                        let row = start + at;
                        let byte = bits.get(row / 8).copied().unwrap_or(0);
                        if byte >> (row % 8) & 1 == 0 {
                            *slot = f64::NAN;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl Block for NumberBlock<'_> {
    type Value = f64;

    fn is_absent(value: f64) -> bool {
        value.is_nan()
    }

    fn read_vector(&self, index: usize, out: &mut [f64; VECTOR_ROWS]) -> Result<usize> {
        self.read_vector(index, out)
    }

    fn listed(&self) -> Result<Option<Listed<f64>>> {
        let NumbersBody::Scaled {
            exponent,
            presence: Presence::Listed(rows),
            exceptions,
            integers,
        } = &self.body
        else {
            return Ok(None);
        };
        let mut values = Vec::with_capacity(rows.len());
        read_range(integers, exceptions, *exponent, 0..rows.len(), &mut values)?;
        Ok(Some(rows.iter().map(|&row| u32::from(row)).zip(values).collect()))
    }
}

/// Puts the exceptions among `out`, whose first value has position `start`. Exceptions of other positions are passed over.
fn patch(out: &mut [f64], exceptions: &[(u16, f64)], start: usize) {
    let first = exceptions.partition_point(|(at, _)| usize::from(*at) < start);
    for (at, value) in exceptions.iter().skip(first) {
        match usize::from(*at).checked_sub(start).and_then(|at| out.get_mut(at)) {
            Some(slot) => *slot = *value,
            None => break,
        }
    }
}

/// Reads stored values `range` across vectors: positions in the list, not rows.
fn read_range(
    integers: &ints::IntBlock<'_>,
    exceptions: &[(u16, f64)],
    exponent: u8,
    range: std::ops::Range<usize>,
    out: &mut Vec<f64>,
) -> Result<()> {
    let mut vector = [0; VECTOR_ROWS];
    for index in range.start / VECTOR_ROWS..range.end.div_ceil(VECTOR_ROWS) {
        let len = integers.read_vector(index, &mut vector)?;
        let start = index * VECTOR_ROWS;
        let (skip, end) = (range.start.saturating_sub(start), (range.end - start).min(len));
        out.extend(vector.iter().take(end).skip(skip).map(|&integer| unscale(integer, exponent)));
    }
    patch(out, exceptions, range.start);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(values: &[f64]) -> (u8, usize) {
        let exponent = choose_exponent(values);
        let mut bytes = Vec::new();
        write(values, exponent, &mut bytes).unwrap();
        let block = NumberBlock::open(&bytes, values.len(), exponent, "test").unwrap();
        let mut vector = [0.0; VECTOR_ROWS];
        let mut read = Vec::new();
        for index in 0..values.len().div_ceil(VECTOR_ROWS) {
            let len = block.read_vector(index, &mut vector).unwrap();
            read.extend_from_slice(&vector[..len]);
        }
        let same = |a: &f64, b: &f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        for (index, vector) in values.chunks(VECTOR_ROWS).enumerate() {
            let (first, end) = (vector.len() / 3, vector.len() - vector.len() / 4);
            let mut part = vec![0.0; end - first];
            block.read_rows(index * VECTOR_ROWS + first, &mut part).unwrap();
            assert!(part.iter().zip(&vector[first..end]).all(|(a, b)| same(a, b)));
        }
        assert!(values.len() == read.len() && values.iter().zip(&read).all(|(a, b)| same(a, b)));
        (exponent, bytes.len())
    }

    #[test]
    fn decimals_become_small_integers() {
        let prices: Vec<f64> = (0..10_000).map(|n| f64::from(n % 1_000) / 100.0).collect();
        let (exponent, len) = round_trip(&prices);
        assert_eq!(exponent, 2);
        assert!(len < 10_000 * 11 / 8 + 1_000, "{len} bytes for 10 bits a row");
    }

    #[test]
    fn awkward_values_survive_bit_for_bit() {
        let mut values: Vec<f64> = (0..5_000).map(f64::from).collect();
        values[17] = -0.0;
        values[18] = f64::MIN_POSITIVE / 2.0;
        values[1_999] = f64::MAX;
        values[2_000] = 0.1 + 0.2;
        round_trip(&values);
        let absent = |keep: usize| -> Vec<f64> {
            values
                .iter()
                .enumerate()
                .map(|(row, &v)| if row % keep == 0 { v } else { f64::NAN })
                .collect()
        };
        round_trip(&absent(2));
        round_trip(&absent(97));
        round_trip(&vec![f64::NAN; 3_000]);
    }

    #[test]
    fn a_block_of_exceptions_only_is_read_back() {
        let values: Vec<f64> = (0..65_536).map(|n| f64::from(n).sqrt().sin()).collect();
        let mut bytes = Vec::new();
        write(&values, 0, &mut bytes).unwrap();
        let block = NumberBlock::open(&bytes, values.len(), 0, "test").unwrap();
        let mut vector = [0.0; VECTOR_ROWS];
        for (index, expected) in values.chunks(VECTOR_ROWS).enumerate() {
            block.read_vector(index, &mut vector).unwrap();
            assert_eq!(vector[..], *expected);
        }
    }

    #[test]
    fn irrational_values_stay_raw() {
        let values: Vec<f64> = (1..3_000).map(|n| f64::from(n).sqrt().sin()).collect();
        assert_eq!(round_trip(&values).0, RAW);
    }

    proptest! {
        /// Writing a list is writing the rows that it stands for, byte for byte.
        #[test]
        fn listed_rows_are_written_as_all_rows(gaps in prop::collection::vec((1u32..60, -50i32..50, any::<bool>()), 0..300), raw in any::<bool>()) {
            let mut listed = Vec::new();
            let mut row = 0;
            for (gap, cents, odd) in gaps {
                row += gap;
                listed.push((row, if odd { f64::from(cents).cbrt() } else { f64::from(cents) / 4.0 }));
            }
            let mut values = vec![f64::NAN; row as usize + 7];
            listed.iter().for_each(|&(row, value)| values[row as usize] = value);
            let present: Vec<f64> = listed.iter().map(|&(_, value)| value).collect();
            let exponent = if raw { RAW } else { choose_exponent_listed(&present) };
            let (mut all, mut few) = (Vec::new(), Vec::new());
            write(&values, exponent, &mut all).unwrap();
            write_listed(values.len(), &listed, exponent, &mut few).unwrap();
            prop_assert_eq!(&all, &few);
            let block = NumberBlock::open(&few, values.len(), exponent, "test").unwrap();
            if let Some(found) = block.listed().unwrap() {
                prop_assert_eq!(found, listed);
            }
        }

        #[test]
        fn any_bits_round_trip(bits in prop::collection::vec(any::<u64>(), 0..2500)) {
            let values: Vec<f64> = bits.iter().map(|&bits| f64::from_bits(bits)).collect();
            round_trip(&values);
        }

        #[test]
        fn mixed_decimals_round_trip(cents in prop::collection::vec((any::<i32>(), 0u8..5, any::<bool>()), 0..2500)) {
            let values: Vec<f64> = cents.iter()
                .map(|&(n, e, absent)| if absent { f64::NAN } else { f64::from(n) / power(e) })
                .collect();
            round_trip(&values);
        }

        #[test]
        fn damaged_blocks_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), rows in 0usize..3000, exponent in 0u8..20) {
            if let Ok(block) = NumberBlock::open(&bytes, rows, exponent, "test") {
                let mut vector = [0.0; VECTOR_ROWS];
                for index in 0..3 {
                    let _ = block.read_vector(index, &mut vector);
                }
            }
        }
    }
}
