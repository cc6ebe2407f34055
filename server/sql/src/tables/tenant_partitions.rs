//! Which tenants are read together where the rows of a tenant must not be divided.
//!
//! Windows by user within a tenant need all rows of a user at once, and hold them. Read tenant by tenant, they hold the rows of a few
//! tenants at a time (`physical/tenant_by_tenant.rs`).
//!
//! ```text
//! acme 70, beta 20, corp 20, dune 300, echo 10 thousand rows; partitions of 100 thousand
//! acme beta                 90
//! corp                      20        with dune it would have more
//! dune                      300       alone, however many it has
//! echo                      10
//! ```
//!
//! Neighbours by name are read together, since rows of a segment are sorted by tenant: a block of rows is read for one partition, or for two.

use std::collections::{BTreeMap, HashMap};

/// The partition of each tenant, and how many partitions there are. A partition has about so many rows at most, or one tenant.
pub fn partition_of_tenants<'a>(
    rows_by_tenant: &BTreeMap<&'a [u8], usize>,
    partition_rows: usize,
) -> (HashMap<&'a [u8], usize>, usize) {
    let (mut partition_of, mut partitions, mut rows_here) = (HashMap::new(), 0, 0);
    for (&tenant, &rows) in rows_by_tenant {
        if partitions == 0 || rows_here + rows > partition_rows {
            (partitions, rows_here) = (partitions + 1, 0);
        }
        rows_here += rows;
        partition_of.insert(tenant, partitions - 1);
    }
    (partition_of, partitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_partition_and_a_large_tenant_has_one_alone() {
        let rows: BTreeMap<&[u8], usize> =
            [(&b"acme"[..], 70), (b"beta", 20), (b"corp", 20), (b"dune", 300), (b"echo", 10)]
                .into();
        let (partition_of, partitions) = partition_of_tenants(&rows, 100);
        let of = |tenant: &str| partition_of[tenant.as_bytes()];
        assert_eq!(["acme", "beta", "corp", "dune", "echo"].map(of), [0, 0, 1, 2, 3]);
        assert_eq!(partitions, 4);
        assert_eq!(partition_of_tenants(&BTreeMap::new(), 100).1, 0);
        assert_eq!(partition_of_tenants(&rows, usize::MAX / 2).1, 1);
    }
}
