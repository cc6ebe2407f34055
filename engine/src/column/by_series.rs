//! Where the rows of a series are among rows of many series.
//!
//! Rows in memory are in the order in which they came. A question is about one tenant, so without this it
//! would look at all rows of all tenants that wait for a flush.
//!
//! ```text
//! rows     0: a   1: b   2: a   3: c   4: a           (the code of a is 0, of b 1, of c 2)
//! starts   0 3 4 5
//! rows     0 2 4 | 1 | 3
//!
//! of_tenant(namespace, tenant of a) → 0      rows(0) → [0, 2, 4]
//! ```

use super::rows::{Rows, SeriesKey};
use crate::{base::hash::text_hash, event::Namespace};

/// The rows of each series of some rows.
#[derive(Debug, Default)]
pub struct BySeries {
    /// Hash of namespace and tenant, and the series' code, rising.
    owners: Vec<(u64, u32)>,
    /// Where the rows of each series begin, and where the last one's end.
    starts: Vec<u32>,
    /// The rows, series by series, rising.
    rows: Vec<u32>,
}

impl BySeries {
    /// Sorts the numbers of all rows by series, by counting: two passes over the codes.
    pub fn of(rows: &Rows) -> Self {
        let owner = |(code, key): (u32, &SeriesKey)| (owner_hash(key.namespace, &key.tenant), code);
        let mut owners: Vec<(u64, u32)> = (0..).zip(&rows.series).map(owner).collect();
        owners.sort_unstable();
        let mut starts = vec![0u32; rows.series.len() + 1];
        rows.series_codes.iter().for_each(|&code| starts[code as usize + 1] += 1);
        for code in 1..starts.len() {
            starts[code] += starts[code - 1];
        }
        let mut next = starts.clone();
        let mut places = vec![0u32; rows.len()];
        for (row, &code) in (0..).zip(&rows.series_codes) {
            let place = &mut next[code as usize];
            places[*place as usize] = row;
            *place += 1;
        }
        Self { owners, starts, rows: places }
    }

    /// Codes of the series of a tenant, and perhaps of one whose hash is the same: the caller compares the names.
    pub fn of_tenant(&self, namespace: Namespace, tenant: &str) -> impl Iterator<Item = u32> {
        let hash = owner_hash(namespace, tenant);
        let first = self.owners.partition_point(|(other, _)| *other < hash);
        let same = self.owners[first..].iter().take_while(move |(other, _)| *other == hash);
        same.map(|(_, code)| *code)
    }

    /// The rows of a series, rising: in the order in which they came, not in that of their times.
    pub fn rows(&self, code: u32) -> &[u32] {
        let (start, end) = (self.starts[code as usize], self.starts[code as usize + 1]);
        &self.rows[start as usize..end as usize]
    }
}

/// A hash of a tenant's name in its namespace: names of tenants begin alike and are slow to compare.
pub fn owner_hash(namespace: Namespace, tenant: &str) -> u64 {
    text_hash(tenant.as_bytes()) ^ u64::from(namespace.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{column::RowsBuilder, event::Event};

    #[test]
    fn each_row_stands_with_its_series() {
        let mut builder = RowsBuilder::new(1);
        for n in 0..100 {
            let (tenant, name) = (["a", "b", "c"][n % 3], ["x", "y"][n % 2]);
            let event =
                Event { tenant, name, timestamp_ms: n as i64, event_id: None, user_id: None };
            builder.push(Namespace(1 + n as u32 % 5), &event, &[], &[]);
        }
        let rows = builder.finish();
        let by_series = BySeries::of(&rows);
        let mut seen = Vec::new();
        for (code, key) in (0..).zip(&rows.series) {
            assert!(by_series.of_tenant(key.namespace, &key.tenant).any(|other| other == code));
            assert!(by_series.rows(code).is_sorted_by(|a, b| a < b));
            for &row in by_series.rows(code) {
                assert_eq!(rows.series_of(row as usize), key);
                seen.push(row);
            }
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..100));
        assert_eq!(by_series.of_tenant(Namespace(1), "d").count(), 0);
        assert_eq!(BySeries::of(&Rows::default()).of_tenant(Namespace(1), "a").count(), 0);
    }
}
