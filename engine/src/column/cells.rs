//! One property of many rows, of which perhaps only a few have it.
//!
//! Most properties are in nearly every row: their values lie side by side, with a mark where one is
//! missing. A property that few rows have lists those rows instead, so that a batch in which one
//! event has two thousand properties costs what those values cost, not a thousand rows of each.
//!
//! ```text
//! push(900, 1.5)                     listed: rows [900], values [1.5]                      12 bytes
//! push(901, 0.5) … push(1_999, 0.5)  side by side: 900 times NaN, 1.5, 0.5, 0.5, …         8 bytes a row
//! ```
//!
//! The form is decided anew with each value and never shows: `get`, `iter` and `chosen` answer alike.

/// The code of a row that lacks the property.
pub const ABSENT: u32 = u32::MAX;

/// A value that a row may lack.
pub trait Cell: Copy {
    /// What stands for "the row lacks it".
    const ABSENT: Self;
    /// Whether it stands for that.
    fn is_absent(self) -> bool;
}

impl Cell for u32 {
    const ABSENT: Self = ABSENT;

    fn is_absent(self) -> bool {
        self == ABSENT
    }
}

impl Cell for f64 {
    const ABSENT: Self = Self::NAN;

    fn is_absent(self) -> bool {
        self.is_nan()
    }
}

/// Rows for each value from which on they are listed, and below which they lie side by side again.
/// The distance between the two keeps a column from changing its form often.
const LISTED_FROM: usize = 8;
const DENSE_BELOW: usize = 4;

/// The values of a column by rising row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cells<T> {
    /// The row of each value; `None` when value `i` is that of row `i`.
    rows: Option<Vec<u32>>,
    /// Rows beyond the last value lack it.
    values: Vec<T>,
    present: usize,
}

impl<T: Cell> Cells<T> {
    /// The value of a row; `None` where the row lacks it or lies behind the last value.
    pub fn get(&self, row: usize) -> Option<T> {
        let at = match &self.rows {
            None => row,
            Some(rows) => rows.binary_search(&(row as u32)).ok()?,
        };
        self.values.get(at).copied().filter(|value| !value.is_absent())
    }

    /// Number of rows that have a value.
    pub fn present(&self) -> usize {
        self.present
    }

    /// Whether the rows are listed.
    pub fn is_listed(&self) -> bool {
        self.rows.is_some()
    }

    /// Rows that have a value, with it, rising: `[(900, 1.5), (901, 0.5), …]`.
    pub fn iter(&self) -> impl Iterator<Item = (u32, T)> + '_ {
        let rows = self.rows.as_deref();
        let row_of = move |at: usize| rows.map_or(at as u32, |rows| rows[at]);
        let all = self.values.iter().enumerate().map(move |(at, &value)| (row_of(at), value));
        all.filter(|(_, value)| !value.is_absent())
    }

    /// Positions in `chosen`, rising rows, of those that have a value, with it: for `[899, 900, 901]` above `[(1, 1.5), (2, 0.5)]`.
    pub fn chosen(&self, chosen: &[u32]) -> Vec<(usize, T)> {
        if self.is_listed() {
            // Few values: each is looked for among the chosen rows.
            let found = |(row, value)| Some((chosen.binary_search(&row).ok()?, value));
            return self.iter().filter_map(found).collect();
        }
        let chosen = chosen.iter().enumerate();
        chosen.filter_map(|(at, &row)| Some((at, self.get(row as usize)?))).collect()
    }

    /// Adds the value of a row behind all others. Rows between lack one; a value that stands for "absent" is not added.
    pub fn push(&mut self, row: usize, value: T) {
        if value.is_absent() {
            return;
        }
        self.present += 1;
        let len = row + 1;
        match &mut self.rows {
            None if len > LISTED_FROM * (self.present + 1) => self.list(),
            Some(_) if len <= DENSE_BELOW * self.present => self.spread(),
            _ => (),
        }
        match &mut self.rows {
            None => self.values.resize(row, T::ABSENT),
            Some(rows) => rows.push(row as u32),
        }
        self.values.push(value);
    }

    /// Bytes in memory.
    pub fn bytes_used(&self) -> usize {
        self.values.len() * size_of::<T>() + self.rows.as_ref().map_or(0, |rows| rows.len() * 4)
    }

    /// Lists the rows that have a value.
    fn list(&mut self) {
        let (rows, values) = self.iter().unzip();
        (self.rows, self.values) = (Some(rows), values);
    }

    /// Puts the values side by side, with a mark for each row that lacks one.
    fn spread(&mut self) {
        let mut values = Vec::new();
        for (row, value) in self.iter() {
            values.resize(row as usize, T::ABSENT);
            values.push(value);
        }
        (self.rows, self.values) = (None, values);
    }

    /// The values themselves, to damage them in tests.
    #[cfg(test)]
    pub fn values_mut(&mut self) -> &mut Vec<T> {
        &mut self.values
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever form the column takes, it answers as a plain list of options does.
        #[test]
        fn cells_equal_a_plain_list(gaps in prop::collection::vec(0usize..60, 0..60), dense in 0usize..40) {
            let mut plain: Vec<Option<u32>> = Vec::new();
            let mut cells = Cells::default();
            for gap in gaps.iter().copied().chain(std::iter::repeat_n(0, dense * 20)) {
                plain.resize(plain.len() + gap, None);
                cells.push(plain.len(), plain.len() as u32);
                plain.push(Some(plain.len() as u32));
            }
            for (row, value) in plain.iter().enumerate() {
                prop_assert_eq!(cells.get(row), *value);
            }
            prop_assert_eq!(cells.get(plain.len()), None);
            let all: Vec<u32> = plain.iter().copied().flatten().collect();
            prop_assert_eq!(cells.iter().map(|(_, value)| value).collect::<Vec<_>>(), all.clone());
            prop_assert_eq!(cells.present(), all.len());
            let chosen: Vec<u32> = (0..plain.len() as u32).step_by(3).collect();
            let found = cells.chosen(&chosen);
            let expected = chosen.iter().enumerate();
            let expected: Vec<_> =
                expected.filter_map(|(at, &row)| Some((at, plain[row as usize]?))).collect();
            prop_assert_eq!(found, expected);
            // A value never costs more than the rows that it lets stand side by side.
            prop_assert!(cells.bytes_used() <= (all.len() + 1) * LISTED_FROM * 4);
        }
    }

    #[test]
    fn a_rare_property_lists_its_rows_and_a_common_one_does_not() {
        let mut rare = Cells::default();
        rare.push(900, 1.5);
        assert!(rare.is_listed());
        assert_eq!((rare.get(900), rare.get(899), rare.bytes_used()), (Some(1.5), None, 12));
        (901..2_000).for_each(|row| rare.push(row, 0.5));
        assert!(!rare.is_listed(), "it has become common");
        assert_eq!((rare.get(900), rare.get(1_999), rare.get(5)), (Some(1.5), Some(0.5), None));
    }
}
