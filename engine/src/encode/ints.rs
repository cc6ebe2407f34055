//! Blocks of integers: the list of all encodings, and the choice among them.
//!
//! A block is a tag, then what its encoding writes. The writer computes the size of each encoding without writing it and takes
//! the smallest; a reader follows the tag. Sizes in bytes with the tag, `-` where an encoding does not apply:
//!
//! ```text
//! values                                        constant   packed    delta   sparse   chosen
//! 3,000 times 5                                        9       22       35       20   constant
//! n * n % 97, n < 5,000                                -    4,406   11,834        -   packed
//! n * 1,000,003, n < 5,000 (a rising time)             -   18,802   12,567        -   delta
//! 60,000 zeros, but for rows 0, 7, 1024, 59999         -      300      425       40   sparse
//! ```
//!
//! ```text
//! [100, 103, 101, 107]   offset  bytes
//! tag                         0  01                               (packed)
//! content                     1  64 00 00 00 00 00 00 00 00 03 …  (the 21 bytes of `packed`)
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::{Block, Listed, VECTOR_ROWS, constant, delta, packed, sparse};
use crate::{base::coding::Cursor, error::Result};

/// The encodings, by their stored tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// One value for all rows.
    Constant = 0,
    /// Distance to the vector's smallest value, bit-packed.
    Packed = 1,
    /// Difference to the row before, bit-packed.
    Delta = 2,
    /// One common value and the rows that differ.
    Sparse = 3,
}

impl Encoding {
    /// Name of the encoding with this tag, as `inlay-inspect segment --blocks` prints it; `?` for a tag that is not known.
    pub fn name_of(tag: u8) -> &'static str {
        ["constant", "packed", "delta", "sparse"].get(usize::from(tag)).copied().unwrap_or("?")
    }
}

/// The smallest encoding for `values`; equal sizes go to packed, then delta, then sparse. Where at most one row in 50 differs,
/// sparse may take half as much again, because a filter reads the list alone.
pub fn choose(values: &[i64]) -> Encoding {
    if constant::estimate(values).is_some() || values.is_empty() {
        return Encoding::Constant;
    }
    let packed = packed::estimate(values);
    let delta = delta::estimate(values);
    let mut best =
        if delta < packed { (delta, Encoding::Delta) } else { (packed, Encoding::Packed) };
    if let Some(sparse) = sparse::estimate(values, best.0) {
        best = (sparse, Encoding::Sparse);
    }
    best.1
}

/// Appends a block of at most `BLOCK_ROWS` values: its tag, then what the encoding writes.
pub fn write(values: &[i64], out: &mut Vec<u8>) {
    debug_assert!(values.len() <= super::BLOCK_ROWS);
    let encoding = choose(values);
    out.push(encoding as u8);
    match encoding {
        Encoding::Constant => constant::write(values, out),
        Encoding::Packed => packed::write(values, out),
        Encoding::Delta => delta::write(values, out),
        Encoding::Sparse => sparse::write(values, out),
    }
}

/// Appends a block of `rows` rows of which those in `listed`, rising, are not 0, without a look at the
/// others unless something smaller may come of it.
///
/// For a property of 40 of 65,536 rows, 40 values and 64 vectors are looked at. The bytes stand for the same rows as those of
/// [`write()`], but need not be equal: delta is not tried where sparse suits better than packed.
pub fn write_listed(rows: usize, listed: &[(u32, i64)], out: &mut Vec<u8>) {
    debug_assert!(listed.is_sorted_by_key(|&(row, _)| row));
    if listed.is_empty() {
        out.push(Encoding::Constant as u8);
        constant::write(&[], out);
    } else if sparse::estimate_listed(rows, listed).is_some() {
        out.push(Encoding::Sparse as u8);
        sparse::write_listed(0, listed, out);
    } else {
        let mut values = vec![0; rows];
        for &(row, value) in listed {
            if let Some(slot) = values.get_mut(row as usize) {
                *slot = value;
            }
        }
        write(&values, out);
    }
}

/// A block of integers that is opened: its tag is known and its directory or list is split off.
#[derive(Clone)]
pub struct IntBlock<'a> {
    rows: usize,
    body: IntsBody<'a>,
}

#[derive(Clone)]
enum IntsBody<'a> {
    Constant(i64),
    Packed(packed::Packed<'a>),
    Delta(delta::Delta<'a>),
    Sparse(sparse::Sparse<'a>),
}

impl<'a> IntBlock<'a> {
    /// A block of zeros: what a column that does not exist would hold.
    pub fn zeros(rows: usize) -> Self {
        Self { rows, body: IntsBody::Constant(0) }
    }

    /// Opens a block of `rows` rows. Errors name `place`.
    ///
    /// Errors: `Corrupt` when the tag is not known ("a block has an unknown encoding") or the content ends too early.
    pub fn open(bytes: &'a [u8], rows: usize, place: &'a str) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, place);
        let body = match cursor.u8()? {
            0 => IntsBody::Constant(constant::open(&mut cursor)?),
            1 => IntsBody::Packed(packed::open(&mut cursor, rows, place)?),
            2 => IntsBody::Delta(delta::open(&mut cursor, rows, place)?),
            3 => IntsBody::Sparse(sparse::open(&mut cursor, rows, place)?),
            _ => return Err(cursor.error("a block has an unknown encoding")),
        };
        Ok(Self { rows, body })
    }

    /// Reads vector `index` and returns its number of rows.
    pub fn read_vector(&self, index: usize, out: &mut [i64; VECTOR_ROWS]) -> Result<usize> {
        let len = self.rows.saturating_sub(index * VECTOR_ROWS).min(VECTOR_ROWS);
        let (out, _) = out.split_at_mut(len);
        self.read_rows(index * VECTOR_ROWS, out)?;
        Ok(len)
    }

    /// Reads rows of one vector into `out`, from the block's row `start` on: `start` 1,030 and ten rows are rows 6 to 15 of
    /// vector 1. The rows must not reach into the next vector.
    pub fn read_rows(&self, start: usize, out: &mut [i64]) -> Result<()> {
        let (index, first) = (start / VECTOR_ROWS, start % VECTOR_ROWS);
        match &self.body {
            IntsBody::Constant(value) => out.fill(*value),
            IntsBody::Packed(block) => block.read(index, first, out)?,
            IntsBody::Delta(block) => {
                // Differences add up from the vector's beginning.
                let mut vector = [0; VECTOR_ROWS];
                let end = (first + out.len()).min(VECTOR_ROWS);
                let (vector, _) = vector.split_at_mut(end);
                block.read(index, vector)?;
                out.iter_mut().zip(vector.iter().skip(first)).for_each(|(to, from)| *to = *from);
            }
            IntsBody::Sparse(block) => block.read(index, first, out)?,
        }
        Ok(())
    }

    /// Reads the whole block: the values of all rows, for a merge or a verification.
    pub fn read_all(&self) -> Result<Vec<i64>> {
        let mut all = Vec::with_capacity(self.rows);
        let mut vector = [0; VECTOR_ROWS];
        for index in 0..self.rows.div_ceil(VECTOR_ROWS) {
            let len = self.read_vector(index, &mut vector)?;
            all.extend(vector.iter().take(len));
        }
        Ok(all)
    }
}

/// Codes, of which 0 is "absent".
impl Block for IntBlock<'_> {
    type Value = i64;

    fn is_absent(value: i64) -> bool {
        value == 0
    }

    fn read_vector(&self, index: usize, out: &mut [i64; VECTOR_ROWS]) -> Result<usize> {
        self.read_vector(index, out)
    }

    fn listed(&self) -> Result<Option<Listed<i64>>> {
        Ok(match &self.body {
            IntsBody::Constant(0) => Some(Vec::new()),
            IntsBody::Sparse(block) => {
                let (common, listed) = block.listed()?;
                (common == 0).then_some(listed)
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(values: &[i64]) -> Encoding {
        let mut bytes = Vec::new();
        write(values, &mut bytes);
        let block = IntBlock::open(&bytes, values.len(), "test").unwrap();
        assert_eq!(block.read_all().unwrap(), values);
        // Parts of vectors read the same.
        for (index, vector) in values.chunks(VECTOR_ROWS).enumerate() {
            let (first, end) = (vector.len() / 3, vector.len() - vector.len() / 4);
            let mut part = vec![0; end - first];
            block.read_rows(index * VECTOR_ROWS + first, &mut part).unwrap();
            assert_eq!(part, vector[first..end]);
        }
        choose(values)
    }

    #[test]
    fn each_encoding_is_chosen_where_it_is_smallest() {
        assert_eq!(round_trip(&[]), Encoding::Constant);
        assert_eq!(round_trip(&[5; 3000]), Encoding::Constant);
        assert_eq!(
            round_trip(&(0..5000).map(|n| n * n % 97).collect::<Vec<_>>()),
            Encoding::Packed
        );
        assert_eq!(
            round_trip(&(0..5000).map(|n| n * 1_000_003).collect::<Vec<_>>()),
            Encoding::Delta
        );
        let mut rare = vec![0; 60_000];
        for at in [0, 7, 1_024, 59_999] {
            rare[at] = at as i64 + 1;
        }
        assert_eq!(round_trip(&rare), Encoding::Sparse);
        assert_eq!(round_trip(&[i64::MIN, i64::MAX, 0, -1, 1]), Encoding::Packed);
    }

    /// Times of several series, one behind the other: each fall would widen a whole vector.
    #[test]
    fn falls_between_series_cost_little() {
        let values: Vec<i64> =
            (0..60_000).map(|n| 1_700_000_000_000 + n % 700 * 1_234 + n % 3).collect();
        assert_eq!(round_trip(&values), Encoding::Delta);
        let mut bytes = Vec::new();
        write(&values, &mut bytes);
        assert!(bytes.len() < 60_000 * 12 / 8, "{} bytes", bytes.len());
        // A fall at the first and at the last row of a vector.
        for at in [1_023, 1_024, 1_025, 2_047, 2_999] {
            let mut values: Vec<i64> = (0..3_000).map(|n| n * 1_000_003).collect();
            values[at..].iter_mut().for_each(|value| *value -= 1 << 40);
            assert_eq!(round_trip(&values), Encoding::Delta);
        }
    }

    proptest! {
        /// Writing a list is writing the rows that it stands for.
        #[test]
        fn listed_rows_are_written_as_all_rows(gaps in prop::collection::vec((1u32..150, -5i64..900), 0..400), few in any::<bool>()) {
            let mut row = 0;
            let mut listed = Vec::new();
            for (gap, value) in gaps {
                row += if few { gap } else { 1 + gap / 100 };
                listed.push((row, if value == 0 { 1 } else { value }));
            }
            let mut values = vec![0; row as usize + 50];
            listed.iter().for_each(|&(row, value)| values[row as usize] = value);
            let (mut all, mut few) = (Vec::new(), Vec::new());
            write(&values, &mut all);
            write_listed(values.len(), &listed, &mut few);
            prop_assert!(few.len() <= all.len() + 16, "{} and {}", few.len(), all.len());
            let block = IntBlock::open(&few, values.len(), "test").unwrap();
            prop_assert_eq!(block.read_all().unwrap(), values);
            if let Some(found) = block.listed().unwrap() {
                prop_assert_eq!(found, listed);
            }
        }

        #[test]
        fn any_values_round_trip(values in prop::collection::vec(any::<i64>(), 0..3000)) {
            round_trip(&values);
        }

        #[test]
        fn narrow_values_round_trip(values in prop::collection::vec(-3i64..300, 0..3000)) {
            round_trip(&values);
        }

        #[test]
        fn damaged_blocks_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), rows in 0usize..3000) {
            if let Ok(block) = IntBlock::open(&bytes, rows, "test") {
                let _ = block.read_all();
            }
        }
    }
}
