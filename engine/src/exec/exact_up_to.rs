//! Up to how many rows an approximate question about one tenant is answered exactly.
//!
//! Sketches save work where they were made before. `p95_approx` over ninety days of 1,700 rows finds no digest, since a
//! day of so few rows is not worth one: of 153,000 numbers the largest twentieth is found in less than a millisecond,
//! and a digest of them is made in seven. By day, made digests are cached, and merged in less time than numbers are read.

use super::query_cache::Part;
use crate::{query::Metric, segment::DIGEST_ROWS_MIN};

/// Up to how many rows of a tenant in segments approximate questions are answered exactly.
#[derive(Debug, Clone, Copy)]
pub struct ExactUpTo {
    /// Distinct users: sets of segments are kept, and each new row costs some nanoseconds.
    pub users_rows: u64,
    /// Percentiles, where most rows lie in days that may have digests: every number is looked at each time.
    pub numbers_rows: u64,
    /// Percentiles of the whole window, where most rows lie in days with too few for digests.
    pub digestless_numbers_rows: u64,
}

impl Default for ExactUpTo {
    fn default() -> Self {
        Self { users_rows: 1 << 20, numbers_rows: 1 << 16, digestless_numbers_rows: 1 << 18 }
    }
}

impl ExactUpTo {
    /// How many rows these parts have; `None` when they are too many for this exact metric. `by_bucket` says whether
    /// the query has a granularity.
    pub fn rows_of<'a>(
        &self,
        exact: Metric,
        by_bucket: bool,
        parts: impl Iterator<Item = &'a Part>,
    ) -> Option<u64> {
        let (mut rows, mut digest_rows) = (0u64, 0u64);
        for part in parts {
            rows += part.rows;
            if part.day.is_some() && part.rows >= DIGEST_ROWS_MIN as u64 {
                digest_rows += part.rows;
            }
        }
        let rows_max = match exact {
            Metric::Distinct => self.users_rows,
            _ if by_bucket || digest_rows > rows / 2 => self.numbers_rows,
            _ => self.digestless_numbers_rows,
        };
        (rows <= rows_max).then_some(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::query_cache::PartDay;

    /// So many parts with so many rows each, of days or of series without rollups.
    fn parts(count: usize, rows: u64, are_days: bool) -> Vec<Part> {
        let day = are_days.then_some(PartDay { day: 20_000, ordinal: 0 });
        let part =
            Part { segment: 0, runs: (0, 1), day, bounds: (0, 1), rows, rows_without_rollup: 0 };
        vec![part; count]
    }

    #[test]
    fn percentiles_are_exact_further_where_days_have_no_digests() {
        let limits = ExactUpTo::default();
        let exact = |metric, parts: &[Part]| limits.rows_of(metric, false, parts.iter());
        let by_day = |parts: &[Part]| limits.rows_of(Metric::Percentile(95), true, parts.iter());
        let p95 = Metric::Percentile(95);
        assert_eq!(exact(p95, &parts(90, 1_700, true)), Some(153_000));
        assert_eq!(by_day(&parts(90, 1_700, true)), None);
        assert_eq!(by_day(&parts(30, 1_700, true)), Some(51_000));
        assert_eq!(exact(p95, &parts(64, 4_095, true)), Some(262_080));
        assert_eq!(exact(p95, &parts(65, 4_095, true)), None);
        assert_eq!(exact(p95, &parts(16, 4_096, true)), Some(65_536));
        assert_eq!(exact(p95, &parts(17, 4_096, true)), None);
        // Half of the rows in days with digests is not most of them.
        let half = [parts(16, 4_096, true), parts(32, 2_048, true)].concat();
        assert_eq!(exact(p95, &half), Some(131_072));
        // Series without rollups, all days at once.
        assert_eq!(exact(p95, &parts(1, 200_000, false)), Some(200_000));
        // A few days with digests among others leave most rows to be read in any case.
        let few = [parts(90, 1_700, true), parts(9, 5_000, true)].concat();
        assert_eq!(exact(p95, &few), Some(198_000));
        assert_eq!(exact(Metric::Distinct, &parts(200, 5_000, true)), Some(1_000_000));
        assert_eq!(exact(Metric::Distinct, &parts(220, 5_000, true)), None);
    }
}
