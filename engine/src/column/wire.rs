//! Rows as bytes: the payload of an events record in the log (`doc/format.md`, "Events").
//!
//! Dictionaries first, then codes in as few bytes as their count needs; a property that few rows
//! have lists those rows, and takes no byte for the others. User hashes are not
//! stored: they are computed again, so that a seed can never disagree with its hashes.
//!
//! ```text
//! acme login 1000 ms, user u, plan pro; acme login 2000 ms         (namespace 1)
//! offset  bytes
//!      0  02                                                  two rows
//!      1  01  01 00 00 00  04 61 63 6d 65  05 6c 6f 67 69 6e  one series: 1, acme, login
//!     17  00 00                                               series codes
//!     19  d0 0f  d0 0f                                        1000, and 1000 more (zigzag)
//!     23  00 00                                               event ids: none
//!     25  01 75  00                                           users: u, none
//!     28  01  04 70 6c 61 6e  01  03 70 72 6f                 one string property, plan, with one value, pro
//!     39  00  01 00                                           codes of all rows: value 0, absent
//!     42  00                                                  no numeric property
//!
//! a number that row 900 alone has:  01  84 07  00 00 00 00 00 00 f8 3f      one listed row, 900 rows before it, 1.5
//! ```
//!
//! Refused: `a code exceeds its dictionary`, `a listed row lies beyond the last`, a count that needs more bytes than there are.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::sync::Arc;

use super::{
    cells::{Cell, Cells},
    rows::{BytesColumn, Rows, SeriesKey, TextColumn},
};
use crate::{
    base::{
        coding::{Cursor, Put, unzigzag, zigzag},
        hash,
    },
    error::Result,
    event::Namespace,
};

impl Rows {
    /// Appends the rows as bytes. Properties come by name, so the same rows in the same order give the same bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.len() as u64);
        out.put_varint(self.series.len() as u64);
        for key in &self.series {
            out.put_u32(key.namespace.0);
            out.put_bytes(key.tenant.as_bytes());
            out.put_bytes(key.name.as_bytes());
        }
        for &code in &self.series_codes {
            out.put_varint(u64::from(code));
        }
        let mut before = 0i64;
        for &timestamp in &self.timestamps {
            out.put_varint(zigzag(timestamp.wrapping_sub(before)));
            before = timestamp;
        }
        for column in [&self.event_ids, &self.users] {
            for row in 0..self.len() {
                out.put_bytes(column.value(row).unwrap_or_default());
            }
        }
        out.put_varint(self.strings.len() as u64);
        for (name, column) in &self.strings {
            out.put_bytes(name.as_bytes());
            out.put_varint(column.values.len() as u64);
            for value in &column.values {
                out.put_bytes(value.as_bytes());
            }
            // A missing one becomes 0, codes follow from 1.
            put_cells(&column.codes, self.len(), out, |code, out| {
                out.put_varint(u64::from(code.wrapping_add(1)));
            });
        }
        out.put_varint(self.numbers.len() as u64);
        for (name, values) in &self.numbers {
            out.put_bytes(name.as_bytes());
            put_cells(values, self.len(), out, |number, out| out.put_u64(number.to_bits()));
        }
    }

    /// Reads rows back, with the hashes of their users under `seed`. Bytes behind them are left to the caller.
    ///
    /// Errors: `Corrupt` when the bytes are not what [`Rows::write`] makes.
    pub fn read(cursor: &mut Cursor<'_>, seed: u64) -> Result<Self> {
        let mut rows = Self::default();
        let len = cursor.count(4)?;
        for _ in 0..cursor.count(6)? {
            let namespace = Namespace(cursor.u32()?);
            let tenant = cursor.text()?.into();
            rows.series.push(SeriesKey { namespace, tenant, name: cursor.text()?.into() });
        }
        for _ in 0..len {
            rows.series_codes.push(read_code(cursor, rows.series.len())?);
        }
        let mut timestamp = 0i64;
        for _ in 0..len {
            timestamp = timestamp.wrapping_add(unzigzag(cursor.varint()?));
            rows.timestamps.push(timestamp);
        }
        rows.event_ids = read_bytes_column(cursor, len)?;
        rows.users = read_bytes_column(cursor, len)?;
        rows.user_hashes = (0..len)
            .map(|row| rows.users.value(row).map_or(0, |user| hash::user(seed, user)))
            .collect();
        for _ in 0..cursor.count(2)? {
            let name: Arc<str> = cursor.text()?.into();
            let mut column = TextColumn::default();
            for _ in 0..cursor.count(1)? {
                column.values.push(cursor.text()?.into());
            }
            let values = column.values.len();
            column.codes = read_cells(cursor, len, |cursor| read_optional_code(cursor, values))?;
            rows.strings.insert(name, column);
        }
        for _ in 0..cursor.count(2)? {
            let name: Arc<str> = cursor.text()?.into();
            let numbers = read_cells(cursor, len, |cursor| Ok(f64::from_bits(cursor.u64()?)))?;
            rows.numbers.insert(name, numbers);
        }
        Ok(rows)
    }
}

/// The number of listed rows and each with its value, or 0 and the value of every row.
fn put_cells<T: Cell>(
    cells: &Cells<T>,
    len: usize,
    out: &mut Vec<u8>,
    put: impl Fn(T, &mut Vec<u8>),
) {
    if !cells.is_listed() {
        out.put_varint(0);
        (0..len).for_each(|row| put(cells.get(row).unwrap_or(T::ABSENT), out));
        return;
    }
    out.put_varint(cells.present() as u64);
    let mut next = 0;
    for (row, value) in cells.iter() {
        out.put_varint(u64::from(row - next));
        put(value, out);
        next = row + 1;
    }
}

/// Reads what [`put_cells`] wrote: values pass through `push`, which chooses the form again.
fn read_cells<T: Cell + Default>(
    cursor: &mut Cursor<'_>,
    len: usize,
    mut read: impl FnMut(&mut Cursor<'_>) -> Result<T>,
) -> Result<Cells<T>> {
    let mut cells = Cells::default();
    let listed = cursor.count(2)?;
    if listed == 0 {
        for row in 0..len {
            cells.push(row, read(cursor)?);
        }
    }
    let mut next = 0u64;
    for _ in 0..listed {
        let row = cursor.varint()?.saturating_add(next);
        if row >= len as u64 {
            return Err(cursor.error("a listed row lies beyond the last"));
        }
        cells.push(row as usize, read(cursor)?);
        next = row + 1;
    }
    Ok(cells)
}

fn read_code(cursor: &mut Cursor<'_>, count: usize) -> Result<u32> {
    let code = cursor.varint()?;
    if code >= count as u64 {
        return Err(cursor.error("a code exceeds its dictionary"));
    }
    Ok(code as u32)
}

/// A code that may be absent: 0 for that, n for value n - 1.
fn read_optional_code(cursor: &mut Cursor<'_>, count: usize) -> Result<u32> {
    let code = cursor.varint()?;
    match code.checked_sub(1) {
        None => Ok(u32::ABSENT),
        Some(code) if code < count as u64 => Ok(code as u32),
        Some(_) => Err(cursor.error("a code exceeds its dictionary")),
    }
}

fn read_bytes_column(cursor: &mut Cursor<'_>, len: usize) -> Result<BytesColumn> {
    let mut column = BytesColumn::default();
    for _ in 0..len {
        column.push(Some(cursor.bytes()?));
    }
    Ok(column)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::RowsBuilder;
    use super::*;
    use crate::event::Event;

    fn sample(count: usize) -> Rows {
        let mut builder = RowsBuilder::new(7);
        for row in 0..count {
            let id = format!("e{row}");
            let event = Event {
                tenant: ["a", "b"][row % 2],
                name: "call",
                timestamp_ms: 1_000 - row as i64 * 37,
                event_id: (row % 3 > 0).then_some(&id),
                user_id: (row % 5 > 0).then_some("u"),
            };
            let strings: &[(&str, &str)] =
                if row > 2 { &[("model", "x"), ("late", "")] } else { &[] };
            builder.push(Namespace(1), &event, strings, &[("ms", row as f64 / 8.0)][..row % 2]);
        }
        builder.finish()
    }

    #[test]
    fn rows_survive_the_log() {
        let rows = sample(20);
        let mut bytes = Vec::new();
        rows.write(&mut bytes);
        let mut cursor = Cursor::new(&bytes, "test");
        let read = Rows::read(&mut cursor, 7).unwrap();
        cursor.finish().unwrap();
        let mut again = Vec::new();
        read.write(&mut again);
        assert_eq!(bytes, again);
        let late = &read.strings["late"];
        assert_eq!((&*late.values[late.code(3) as usize], late.code(1)), ("", u32::ABSENT));
        assert_eq!(read.user_hashes, rows.user_hashes);
    }

    #[test]
    fn appending_chosen_rows_equals_pushing_them() {
        let rows = sample(20);
        let mut builder = RowsBuilder::new(7);
        builder.append(&rows, &[0, 1, 2]);
        builder.append(&rows, &(3..20).collect::<Vec<_>>());
        let (mut one, mut other) = (Vec::new(), Vec::new());
        rows.write(&mut one);
        builder.finish().write(&mut other);
        assert_eq!(one, other);
    }

    proptest! {
        #[test]
        fn damaged_rows_never_panic(at in 0usize..400, bit in 0u8..8) {
            let mut bytes = Vec::new();
            sample(20).write(&mut bytes);
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let _ = Rows::read(&mut Cursor::new(&bytes, "test"), 7);
            let _ = Rows::read(&mut Cursor::new(&bytes[..at], "test"), 7);
        }
    }
}
