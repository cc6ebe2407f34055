//! Differences between neighbours, as a frame of reference, restarting at each vector.
//!
//! Times inside a series rise slowly, so their differences need far fewer bits than themselves. Where
//! a series ends, the next one starts earlier: such a fall would widen its whole vector, so falls are
//! listed beside, and the values go on from there.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::{VECTOR_ROWS, packed, relative::Relative};
use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Bytes of the row of a listed fall, in front of the value there.
const ROW_LEN: usize = 2;

/// What is written of some values.
struct Parts {
    /// First value of each vector.
    firsts: Vec<i64>,
    /// Rows whose value is smaller than the one before, but for first ones, and their values.
    falls: Vec<(u16, i64)>,
    /// Difference to the row before, 0 for firsts and falls.
    differences: Vec<i64>,
}

impl Parts {
    /// How the values are stored from which others go on.
    fn places(&self) -> Relative {
        let falls = self.falls.iter().map(|&(_, value)| value);
        Relative::to(self.firsts.iter().copied().chain(falls))
    }
}

fn split(values: &[i64]) -> Parts {
    let mut parts = Parts {
        firsts: Vec::new(),
        falls: Vec::new(),
        differences: Vec::with_capacity(values.len()),
    };
    for (index, vector) in values.chunks(VECTOR_ROWS).enumerate() {
        let mut before = vector.first().copied().unwrap_or_default();
        parts.firsts.push(before);
        for (at, &value) in vector.iter().enumerate() {
            if value < before {
                parts.falls.push(((index * VECTOR_ROWS + at) as u16, value));
                parts.differences.push(0);
            } else {
                parts.differences.push(value.wrapping_sub(before));
            }
            before = value;
        }
    }
    parts
}

/// Size in bytes.
pub fn estimate(values: &[i64]) -> usize {
    let parts = split(values);
    let len = parts.places().len();
    let places = parts.firsts.len() * len + parts.falls.len() * (ROW_LEN + len);
    Relative::HEADER_LEN + 4 + places + packed::estimate(&parts.differences)
}

/// Appends the first value of each vector, the falls, then the packed differences.
pub fn write(values: &[i64], out: &mut Vec<u8>) {
    let parts = split(values);
    let places = parts.places();
    places.write_header(out);
    for first in parts.firsts {
        places.write(first, out);
    }
    out.put_u32(parts.falls.len() as u32);
    for (row, value) in parts.falls {
        out.put_u16(row);
        places.write(value, out);
    }
    packed::write(&parts.differences, out);
}

/// A readable delta block.
#[derive(Clone)]
pub struct Delta<'a> {
    places: Relative,
    firsts: &'a [u8],
    falls: Vec<(u16, i64)>,
    differences: packed::Packed<'a>,
    place: &'a str,
}

/// Opens a block of `rows` rows, which takes the rest of the cursor.
pub fn open<'a>(cursor: &mut Cursor<'a>, rows: usize, place: &'a str) -> Result<Delta<'a>> {
    let places = Relative::read_header(cursor)?;
    let firsts = cursor.take(rows.div_ceil(VECTOR_ROWS) * places.len())?;
    let count = cursor.u32()? as usize;
    let listed = count.checked_mul(ROW_LEN + places.len());
    let listed = listed.ok_or_else(|| cursor.error("has too many falls"))?;
    let mut listed = Cursor::new(cursor.take(listed)?, place);
    let fall = |_| Ok((listed.u16()?, places.read(&mut listed)?));
    let falls = { 0..count }.map(fall).collect::<Result<Vec<_>>>()?;
    if !falls.is_sorted_by(|a, b| a.0 < b.0) {
        return Err(cursor.error("falls are not sorted"));
    }
    Ok(Delta { places, firsts, falls, differences: packed::open(cursor, rows, place)?, place })
}

impl Delta<'_> {
    /// Reads the first rows of vector `index` into `out`.
    pub fn read(&self, index: usize, out: &mut [i64]) -> Result<()> {
        let mut firsts = Cursor::new(self.firsts, self.place);
        firsts.take(index * self.places.len())?;
        let mut value = self.places.read(&mut firsts)?;
        self.differences.read(index, 0, out)?;
        let start = index * VECTOR_ROWS;
        let first = self.falls.partition_point(|(row, _)| usize::from(*row) < start);
        let mut done = 0;
        for &(row, fallen) in self.falls.iter().skip(first) {
            let at = usize::from(row) - start;
            if at >= out.len() {
                break;
            }
            add_up(out.get_mut(done..at).unwrap_or_default(), &mut value);
            if let Some(slot) = out.get_mut(at) {
                *slot = fallen;
            }
            value = fallen;
            done = at + 1;
        }
        add_up(out.get_mut(done..).unwrap_or_default(), &mut value);
        Ok(())
    }
}

/// Turns differences into values, going on from `value`.
fn add_up(differences: &mut [i64], value: &mut i64) {
    for slot in differences {
        *value = value.wrapping_add(*slot);
        *slot = *value;
    }
}
