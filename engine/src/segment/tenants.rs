//! The rows of each tenant of a segment, and its users.
//!
//! Runs are ordered by tenant, and so are users: a tenant's users stand together, sorted, and the code of a
//! row counts among them. A user id that two tenants use is listed for each.
//! So codes are small, and counting a tenant's users touches no others.
//!
//! ```text
//! tenants of eight rows: (1, a) has rows 0..4, (1, b) 4..6, (2, b) 6..8; they have 3, 0 and 2 users
//!
//! extra of the section of users    05  03 00 02      all, then each
//! users(of_row(3))                 0..3
//! users(of_row(5))                 3..3              rows of (1, b) have no user
//! users(of_row(7))                 3..5              code 1 of row 7 is user 3 of the segment
//! ```
//!
//! Refused: `tenants have more users than there are`, `tenants have fewer users than there are`.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::ops::Range;

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// The tenants of a segment in the order of their rows.
#[derive(Debug, Default, Clone)]
pub struct Tenants(Vec<TenantPart>);

/// Where one tenant's rows and users end, and the next one's begin.
#[derive(Debug, Clone, Copy)]
struct TenantPart {
    rows_end: u32,
    users_end: u32,
}

impl Tenants {
    /// Reads the numbers of users behind their sum, as [`write_counts`] wrote them. `row_ends` has the row behind
    /// the last one of each tenant.
    pub fn read(extra: &[u8], row_ends: impl Iterator<Item = u32>, place: &str) -> Result<Self> {
        let mut cursor = Cursor::new(extra, place);
        let count = cursor.varint_u32()?;
        let mut parts = Vec::new();
        let mut users_end = 0u32;
        for rows_end in row_ends {
            let here = cursor.varint_u32()?;
            users_end = users_end
                .checked_add(here)
                .filter(|&end| end <= count)
                .ok_or_else(|| cursor.error("tenants have more users than there are"))?;
            parts.push(TenantPart { rows_end, users_end });
        }
        cursor.finish()?;
        if users_end != count {
            return Err(Cursor::new(extra, place).error("tenants have fewer users than there are"));
        }
        Ok(Self(parts))
    }

    /// Bytes in memory.
    pub fn bytes_used(&self) -> usize {
        self.0.capacity() * size_of::<TenantPart>()
    }

    /// Number of tenants.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The index of the tenant that a row belongs to; behind the last row, the number of tenants.
    pub fn of_row(&self, row: u32) -> usize {
        self.0.partition_point(|part| part.rows_end <= row)
    }

    /// The rows of a tenant, counted in the segment.
    pub fn rows(&self, tenant: usize) -> Range<u32> {
        self.between(tenant, |part| part.rows_end)
    }

    /// The users of a tenant, as indexes among all users of the segment.
    pub fn users(&self, tenant: usize) -> Range<usize> {
        let users = self.between(tenant, |part| part.users_end);
        users.start as usize..users.end as usize
    }

    fn between(&self, tenant: usize, end: impl Fn(&TenantPart) -> u32) -> Range<u32> {
        let end_of = |tenant: usize| self.0.get(tenant).map(&end);
        let before = tenant.checked_sub(1).and_then(end_of).unwrap_or_default();
        before..end_of(tenant).unwrap_or(before)
    }
}

/// Appends the sum of `counts` and each of them: the users of each tenant.
pub fn write_counts(counts: &[u32], out: &mut Vec<u8>) {
    out.put_varint(counts.iter().map(|&count| u64::from(count)).sum());
    counts.iter().for_each(|&count| out.put_varint(u64::from(count)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{column::SeriesKey, event::Namespace, segment::RunDirectory};

    #[test]
    fn users_belong_to_the_tenant_of_the_row() {
        let mut runs = RunDirectory::default();
        for (namespace, tenant, name) in
            [(1, "a", "x"), (1, "a", "y"), (1, "b", "x"), (2, "b", "x")]
        {
            let namespace = Namespace(namespace);
            let key = SeriesKey { namespace, tenant: tenant.into(), name: name.into() };
            runs.push(key, &[1, 2]);
        }
        let mut extra = Vec::new();
        write_counts(&[3, 0, 2], &mut extra);
        let tenants = Tenants::read(&extra, runs.tenant_ends(), "test").unwrap();
        let users: Vec<_> = (0..8).map(|row| tenants.users(tenants.of_row(row))).collect();
        assert_eq!(users, [0..3, 0..3, 0..3, 0..3, 3..3, 3..3, 3..5, 3..5]);
        assert_eq!(tenants.rows(1), 4..6);
        assert_eq!((tenants.of_row(8), tenants.users(3)), (3, 5..5), "nothing is behind the last");
        for wrong in [&[6u8, 3, 0, 2][..], &[4, 3, 0, 2], &[5, 3, 0], &[5, 3, 0, 2, 0]] {
            assert!(Tenants::read(wrong, runs.tenant_ends(), "test").is_err(), "{wrong:?}");
        }
    }
}
