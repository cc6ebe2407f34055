//! The columns themselves, and reading them by row.
//!
//! ```text
//! row 1 of two       series_of(1)               (1, acme, login)
//!                    users.value(1)             None: its bytes are empty
//!                    strings["plan"].code(1)    ABSENT
//!                    numbers["ms"].get(1)       Some(2.5)
//! ```

use std::{collections::BTreeMap, sync::Arc};

use super::cells::{ABSENT, Cells};
use crate::{base::hash::ValueHash, event::Namespace};

/// The identity of a series. Ordered as segments are: namespace, tenant, name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesKey {
    /// Namespace that the events belong to.
    pub namespace: Namespace,
    /// The customer's customer.
    pub tenant: Arc<str>,
    /// Name of the events.
    pub name: Arc<str>,
}

/// A string property: one code a row into a dictionary in order of first appearance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextColumn {
    /// Distinct values; the code of a value is its index.
    pub values: Vec<Arc<str>>,
    /// Code of each row that has the property.
    pub codes: Cells<u32>,
}

impl TextColumn {
    /// Code of a row, [`ABSENT`] where it lacks the property.
    pub fn code(&self, row: usize) -> u32 {
        self.codes.get(row).unwrap_or(ABSENT)
    }
}

/// Byte strings end to end; an empty one means "absent": `u`, none and `v` are the ends `[1, 1, 2]` and the bytes `uv`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BytesColumn {
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl BytesColumn {
    /// Appends a value, `None` as empty.
    pub fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.ends.push(u32::try_from(self.bytes.len()).expect("a batch is far below 4 GiB"));
    }

    /// Value of a row, `None` when absent.
    pub fn value(&self, row: usize) -> Option<&[u8]> {
        let end = *self.ends.get(row)? as usize;
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        if start == end { None } else { self.bytes.get(start..end) }
    }

    fn bytes_used(&self) -> usize {
        self.ends.len() * 4 + self.bytes.len()
    }
}

/// Rows of any number of series, in columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Distinct series, in the order in which their first rows were added; the code of a series is its index.
    pub series: Vec<SeriesKey>,
    /// Index of each row's series.
    pub series_codes: Vec<u32>,
    /// Milliseconds since 1970.
    pub timestamps: Vec<i64>,
    /// Event id of each row, the deduplication key; absent where the sender gave none.
    pub event_ids: BytesColumn,
    /// User id of each row; absent where the event has no user.
    pub users: BytesColumn,
    /// Hash of each row's user, 0 without one.
    pub user_hashes: Vec<u128>,
    /// String properties by name.
    pub strings: BTreeMap<Arc<str>, TextColumn>,
    /// Numeric properties by name; NaN is absent.
    pub numbers: BTreeMap<Arc<str>, Cells<f64>>,
}

impl Rows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// Number of properties, string and numeric; the bounds of columns in memory count these.
    pub fn column_count(&self) -> usize {
        self.strings.len() + self.numbers.len()
    }

    /// Series of a row.
    pub fn series_of(&self, row: usize) -> &SeriesKey {
        &self.series[self.series_codes[row] as usize]
    }

    /// A hash of everything in the columns: rows that wait in memory for their flush are compared
    /// with it, because nothing else would notice a bit that flips there.
    pub fn checksum(&self) -> u64 {
        let mut hash = ValueHash::default();
        self.timestamps.iter().for_each(|&time| hash.add(time as u64));
        self.series_codes.iter().for_each(|&code| hash.add(u64::from(code)));
        for &user in &self.user_hashes {
            hash.add(user as u64);
            hash.add((user >> 64) as u64);
        }
        for column in [&self.event_ids, &self.users] {
            column.ends.iter().for_each(|&end| hash.add(u64::from(end)));
            hash.text(&column.bytes);
        }
        for key in &self.series {
            hash.add(u64::from(key.namespace.0));
            hash.text(key.tenant.as_bytes());
            hash.text(key.name.as_bytes());
        }
        for (name, column) in &self.strings {
            hash.text(name.as_bytes());
            for (row, code) in column.codes.iter() {
                hash.add(u64::from(row) << 32 | u64::from(code));
            }
            column.values.iter().for_each(|value| hash.text(value.as_bytes()));
        }
        for (name, numbers) in &self.numbers {
            hash.text(name.as_bytes());
            for (row, number) in numbers.iter() {
                hash.add(u64::from(row));
                hash.add(number.to_bits());
            }
        }
        hash.value()
    }

    /// Bytes that the rows take in memory, roughly; the bounds of a memtable are compared with this number.
    pub fn bytes_used(&self) -> usize {
        const ARC_BYTES: usize = 40;
        // Name, look-up and the lists themselves.
        const COLUMN_BYTES: usize = 256;
        let text = |column: &TextColumn| {
            column.codes.bytes_used()
                + column.values.iter().map(|value| value.len() + ARC_BYTES).sum::<usize>()
        };
        self.len() * (4 + 8 + 16)
            + self.event_ids.bytes_used()
            + self.users.bytes_used()
            + self.strings.values().map(text).sum::<usize>()
            + self.numbers.values().map(Cells::bytes_used).sum::<usize>()
            // With what `BySeries` takes.
            + self.series.len() * (128 + 24)
            + self.len() * 4
            + self.column_count() * COLUMN_BYTES
    }
}
