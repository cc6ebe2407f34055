//! A row image: rows of one namespace as bytes that another process maps and reads in place.
//!
//! Every SQL statement needs the rows that wait for their flush, in a process of its own. As objects they would be copied
//! for each; an image is laid out once, in the order of segments (tenant, event name, time), and read where it is:
//!
//! ```text
//! length      of the directory, 8 bytes
//! directory   lengths, names, and series of a fixed width: acme login, 2 rows; beta call, 3 rows
//! times       8 bytes a row
//! event ids   where each ends, 4 bytes a row; their bytes
//! users       the same; a row without a user has an empty one
//! strings     of each property: where each value ends, 4 bytes; their bytes; the code of each row, 4 bytes, 0 for none
//! numbers     of each property: 8 bytes a row, NaN for none
//! ```
//!
//! A property that few rows have lists these rows, 4 bytes each, before their codes or numbers. Integers are little-endian.
//! An image never reaches a disk, and the same build writes and reads it, so it carries neither version nor checksum.
//!
//! ```text
//! acme login 1000 ms, user u, plan pro; acme login 2000 ms: 111 bytes
//! offset  bytes
//!      0  37 00 00 00 00 00 00 00                        the directory has 55 bytes
//!      8  02  01 04 61 63 6d 65  01 05 6c 6f 67 69 6e    two rows; one tenant, acme; one event name, login
//!     22  01  00 00 00 00  00 00 00 00  02 00 00 00      one series: tenant 0, name 0, two rows,
//!         e8 03 00 00 00 00 00 00  d0 07 00 00 00 00 00 00   from 1000 to 2000 ms
//!     51  00  01                                         bytes of event ids, and of users
//!     53  01  04 70 6c 61 6e  01 03 00                   plan: one value of 3 bytes, no rows listed
//!     62  00                                             no numeric property
//!     63  e8 03 00 00 00 00 00 00  d0 07 00 00 00 00 00 00   times
//!     79  00 00 00 00  00 00 00 00                       where event ids end
//!     87  01 00 00 00  01 00 00 00  75                   where users end; u
//!     96  03 00 00 00  70 72 6f                          where values of plan end; pro
//!    103  01 00 00 00  00 00 00 00                       codes: value 1, none
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use crate::{
    base::{coding::Cursor, texts::TextTable},
    error::{Error, Result},
    vfs::View,
};

/// Place that errors name.
const PLACE: &str = "an image of rows";
/// Bytes of the directory's length.
pub const LENGTH_BYTES: usize = 8;
/// Bytes of a series: tenant, event name and number of rows, 4 bytes each; first and last time, 8 bytes each.
const SERIES_BYTES: usize = 28;

/// Rows of one series of an image: they stand together and rise in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSeries {
    /// Index of the tenant.
    pub tenant: u32,
    /// Index of the event name.
    pub name: u32,
    /// Its rows, counted in the image.
    pub rows: Range<u32>,
    /// Earliest time, in milliseconds since 1970.
    pub first_ms: i64,
    /// Latest time, in milliseconds since 1970.
    pub last_ms: i64,
}

/// Rows of one namespace.
pub struct RowImage {
    view: View,
    /// Names of the tenants with rows, rising.
    pub tenants: TextTable,
    /// Event names, rising.
    pub names: Vec<Arc<str>>,
    /// Series by tenant and event name.
    pub series: Vec<ImageSeries>,
    times: usize,
    event_ids: Texts,
    users: Texts,
    strings: BTreeMap<String, Strings>,
    numbers: BTreeMap<String, ImageValues>,
}

/// Where texts are: their ends, and their bytes.
struct Texts {
    ends: usize,
    bytes: usize,
}

/// Where the values of a property are.
struct ImageValues {
    /// The rows that have one, where they are listed.
    rows: Option<usize>,
    /// How many values there are: as many as rows, unless rows are listed.
    count: usize,
    values: usize,
}

/// Where a string property is.
struct Strings {
    value_count: usize,
    dictionary: Texts,
    codes: ImageValues,
}

/// Hands out the data area, front to back, in the order of the directory.
struct ImageLayout {
    next: usize,
    len: usize,
}

impl ImageLayout {
    /// The start of `count` items of `width` bytes. Errors: `Corrupt` when they end beyond the image.
    fn take(&mut self, count: usize, width: usize) -> Result<usize> {
        let start = self.next;
        let end = count.checked_mul(width).and_then(|bytes| start.checked_add(bytes));
        let end = end.filter(|end| *end <= self.len);
        self.next = end.ok_or_else(|| Error::corrupt(PLACE, "ends too early"))?;
        Ok(start)
    }

    fn texts(&mut self, count: usize, bytes: usize) -> Result<Texts> {
        Ok(Texts { ends: self.take(count, 4)?, bytes: self.take(bytes, 1)? })
    }

    fn values(&mut self, listed: usize, rows: usize, width: usize) -> Result<ImageValues> {
        let places = if listed > 0 { Some(self.take(listed, 4)?) } else { None };
        let count = if listed > 0 { listed } else { rows };
        Ok(ImageValues { rows: places, count, values: self.take(count, width)? })
    }
}

impl RowImage {
    /// Reads the directory of an image; times, texts and values stay where they are until they are asked for.
    ///
    /// Errors: `Corrupt` when the bytes are none: a length ends beyond them, a series has no name or ends beyond the last row.
    pub fn open(view: View) -> Result<Self> {
        let mut cursor = Cursor::new(&view, PLACE);
        let directory_len = usize::try_from(cursor.u64()?).unwrap_or(usize::MAX);
        let mut directory = Cursor::new(cursor.take(directory_len)?, PLACE);
        let mut layout = ImageLayout { next: LENGTH_BYTES + directory_len, len: view.len() };
        let number = |cursor: &mut Cursor<'_>| -> Result<usize> {
            usize::try_from(cursor.varint()?).map_err(|_| cursor.error("a length is too large"))
        };
        let rows = u32::try_from(directory.varint()?);
        let rows = rows.map_err(|_| directory.error("has too many rows"))?;
        let (mut tenants, mut names, mut series) = (TextTable::default(), Vec::new(), Vec::new());
        for _ in 0..directory.count(1)? {
            tenants.push(directory.bytes()?);
        }
        for _ in 0..directory.count(1)? {
            names.push(Arc::from(directory.text()?));
        }
        let series_count = directory.count(SERIES_BYTES)?;
        let list = directory.take(series_count * SERIES_BYTES)?;
        series.reserve_exact(series_count);
        let mut start = 0u32;
        for bytes in list.chunks_exact(SERIES_BYTES) {
            let mut fields = Cursor::new(bytes, PLACE);
            let (tenant, name, len) = (fields.u32()?, fields.u32()?, fields.u32()?);
            let (first_ms, last_ms) = (fields.i64()?, fields.i64()?);
            let end = start.checked_add(len).filter(|end| *end <= rows);
            let end = end.ok_or_else(|| directory.error("a series ends beyond the last row"))?;
            if tenant as usize >= tenants.len() || name as usize >= names.len() {
                return Err(directory.error("a series has no name"));
            }
            series.push(ImageSeries { tenant, name, rows: start..end, first_ms, last_ms });
            start = end;
        }
        let rows = rows as usize;
        let times = layout.take(rows, 8)?;
        let event_ids = layout.texts(rows, number(&mut directory)?)?;
        let users = layout.texts(rows, number(&mut directory)?)?;
        let (mut strings, mut numbers) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..directory.count(4)? {
            let name = directory.text()?.to_owned();
            let (value_count, bytes) = (number(&mut directory)?, number(&mut directory)?);
            let dictionary = layout.texts(value_count, bytes)?;
            let codes = layout.values(number(&mut directory)?, rows, 4)?;
            strings.insert(name, Strings { value_count, dictionary, codes });
        }
        for _ in 0..directory.count(2)? {
            let name = directory.text()?.to_owned();
            numbers.insert(name, layout.values(number(&mut directory)?, rows, 8)?);
        }
        directory.finish()?;
        Ok(Self { tenants, names, series, times, event_ids, users, strings, numbers, view })
    }

    /// Names of string properties that a row has.
    pub fn strings(&self) -> impl Iterator<Item = &str> {
        self.strings.keys().map(String::as_str)
    }

    /// Names of numeric properties that a row has.
    pub fn numbers(&self) -> impl Iterator<Item = &str> {
        self.numbers.keys().map(String::as_str)
    }

    /// Times of rows, in milliseconds since 1970.
    pub fn times(&self, rows: &Range<u32>) -> impl Iterator<Item = i64> {
        let rows = rows.start as usize..rows.end as usize;
        self.array(self.times, rows).iter().map(|bytes| i64::from_le_bytes(*bytes))
    }

    /// The first of these rows, whose times rise, that is not before `ms`; their end where none is. By halves: a window of time in
    /// a series is two calls.
    pub fn first_row_at(&self, rows: &Range<u32>, ms: i64) -> u32 {
        let times: &[[u8; 8]] = self.array(self.times, rows.start as usize..rows.end as usize);
        let before = times.partition_point(|bytes| i64::from_le_bytes(*bytes) < ms);
        rows.start.saturating_add(before as u32)
    }

    /// Appends the event ids of rows; an empty one where a row has none.
    pub fn read_event_ids(&self, rows: &Range<u32>, out: &mut TextTable) {
        self.read_texts(&self.event_ids, rows.start as usize..rows.end as usize, out);
    }

    /// Appends the users of rows; an empty one where a row has none.
    pub fn read_users(&self, rows: &Range<u32>, out: &mut TextTable) {
        self.read_texts(&self.users, rows.start as usize..rows.end as usize, out);
    }

    /// How many values a string property has.
    pub fn value_count(&self, name: &str) -> usize {
        self.strings.get(name).map_or(0, |column| column.value_count)
    }

    /// The values of a string property; none where no row has it.
    pub fn dictionary(&self, name: &str) -> TextTable {
        let mut table = TextTable::default();
        if let Some(column) = self.strings.get(name) {
            self.read_texts(&column.dictionary, 0..column.value_count, &mut table);
        }
        table
    }

    /// Appends a code for each row: n stands for value n - 1 of the dictionary, 0 for none.
    ///
    /// Errors: `Corrupt` when a code exceeds the dictionary.
    pub fn read_codes(&self, name: &str, rows: &Range<u32>, out: &mut Vec<u32>) -> Result<()> {
        let start = out.len();
        let Some(column) = self.strings.get(name) else {
            out.resize(start + rows.len(), 0);
            return Ok(());
        };
        self.read_values(&column.codes, rows, 0, u32::from_le_bytes, out);
        let is_beyond = |code: &u32| *code as usize > column.value_count;
        if out.iter().skip(start).any(is_beyond) {
            return Err(Error::corrupt(PLACE, "a code exceeds its dictionary"));
        }
        Ok(())
    }

    /// Appends a number for each row, NaN where it has none.
    pub fn read_numbers(&self, name: &str, rows: &Range<u32>, out: &mut Vec<f64>) {
        match self.numbers.get(name) {
            Some(column) => self.read_values(column, rows, f64::NAN, f64::from_le_bytes, out),
            None => out.resize(out.len() + rows.len(), f64::NAN),
        }
    }

    /// Appends a value for each row: a copy where all have one, else `absent` with the listed ones put in.
    fn read_values<T: Copy, const N: usize>(
        &self,
        column: &ImageValues,
        rows: &Range<u32>,
        absent: T,
        value: impl Fn([u8; N]) -> T,
        out: &mut Vec<T>,
    ) {
        let Some(listed) = column.rows else {
            let all = self.array(column.values, rows.start as usize..rows.end as usize);
            out.extend(all.iter().map(|bytes| value(*bytes)));
            return;
        };
        let places: &[[u8; 4]] = self.array(listed, 0..column.count);
        let row_of = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
        let first = places.partition_point(|bytes| row_of(bytes) < rows.start);
        let end = places.partition_point(|bytes| row_of(bytes) < rows.end);
        let start = out.len();
        out.resize(start + rows.len(), absent);
        let values = self.array(column.values, first..end).iter().map(|bytes| value(*bytes));
        for (place, value) in places.get(first..end).unwrap_or_default().iter().zip(values) {
            let at = row_of(place).wrapping_sub(rows.start) as usize;
            if let Some(slot) = out.get_mut(start + at) {
                *slot = value;
            }
        }
    }

    /// Appends some texts: one copy of their bytes, and their ends moved to where they come to lie.
    fn read_texts(&self, texts: &Texts, items: Range<usize>, out: &mut TextTable) {
        let before = items.start.checked_sub(1).map(|before| before..items.start);
        let before = before.and_then(|item| self.array(texts.ends, item).first().copied());
        let first = before.map_or(0, u32::from_le_bytes) as usize;
        let ends: &[[u8; 4]] = self.array(texts.ends, items);
        let end_of = |bytes: &[u8; 4]| (u32::from_le_bytes(*bytes) as usize).saturating_sub(first);
        let len = ends.last().map_or(0, end_of);
        let start = texts.bytes + first;
        let bytes = self.view.get(start..start + len).unwrap_or_default();
        out.extend(bytes, ends.iter().map(end_of));
    }

    /// Values of a fixed width; none where they end beyond the image.
    fn array<const N: usize>(&self, start: usize, items: Range<usize>) -> &[[u8; N]] {
        let bytes = start + items.start * N..start + items.end * N;
        self.view.get(bytes).unwrap_or_default().as_chunks().0
    }
}
