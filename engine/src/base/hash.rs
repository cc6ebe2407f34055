//! Hashes that are stored, and therefore never change: xxh3 in 64 and 128 bits, and CRC-32.
//!
//! Users are compared by 128-bit hashes and event ids by 88 bits, with a secret seed of the database, so that a client
//! can neither construct a collision nor meet one by chance (among 1e9 users: 1.5e-21, among 1e9 ids: 1.6e-9).

use xxhash_rust::xxh3::{Xxh3Builder, xxh3_64, xxh3_128_with_seed};

use crate::base::coding::Put;

/// Hash of a user id within a database. Zero is reserved for "no user".
pub fn user(seed: u64, user_id: &[u8]) -> u128 {
    xxh3_128_with_seed(user_id, seed).max(1)
}

/// Hash of an event id, 88 bits: two tenants, or two namespaces, may number alike.
///
/// `scratch` is reused between calls to spare an allocation an event.
pub fn event_id(seed: u64, ns: u32, tenant: &[u8], id: &[u8], scratch: &mut Vec<u8>) -> u128 {
    scratch.clear();
    scratch.put_u32(ns);
    scratch.put_bytes(tenant);
    scratch.extend_from_slice(id);
    shortened(xxh3_128_with_seed(scratch, seed ^ EVENT_ID_DOMAIN) >> (u128::BITS - EVENT_ID_BITS))
}

/// Bits of the hash of an event id. Each is one in id runs, for ever (`doc/decisions.md`, 68).
const EVENT_ID_BITS: u32 = 88;

#[cfg(not(test))]
fn shortened(hash: u128) -> u128 {
    hash
}

#[cfg(test)]
thread_local! {
    /// Bits that hashes of event ids keep, so that a test can see what collisions do.
    pub static KEPT_BITS: std::cell::Cell<u128> = const { std::cell::Cell::new(u128::MAX) };
}

#[cfg(test)]
fn shortened(hash: u128) -> u128 {
    hash & KEPT_BITS.get()
}

/// Separates the hashes of event ids from those of users under one seed.
const EVENT_ID_DOMAIN: u64 = 0x6964_735f_696e_6c61;

/// CRC-32 of several slices as if they were one.
pub fn crc(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

/// A hash of many values in their order, to tell whether they are still the same. Not stored.
///
/// Each step is a bijection of the state, so that one changed value always changes the hash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ValueHash(u64);

impl ValueHash {
    /// Adds a number.
    pub fn add(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    /// Adds a string.
    pub fn text(&mut self, bytes: &[u8]) {
        self.add(xxh3_64(bytes));
    }

    /// The hash of what was added so far, in that order.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// What a value at a position adds to a sum over many: 0 for the value 0, wherever it is. Values that change
/// places must not cancel, so position and value go through a finalizer together (that of MurmurHash3).
pub fn positioned(position: u64, value: u64) -> u64 {
    if value == 0 {
        return 0;
    }
    let mut x = position
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(value.wrapping_mul(0xd6e8_feb8_6659_fd93));
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

/// Hash of a string, for [`positioned`].
pub fn text_hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Hasher of maps in memory: fast, and not stored anywhere.
pub type MapHasher = Xxh3Builder;

/// Hasher of keys that are hashes already: takes their low half.
#[derive(Default, Clone, Copy)]
pub struct IdentityHasher(u64);

impl std::hash::Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }
    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// Values by 128-bit hashes.
pub type HashMap128<T> =
    std::collections::HashMap<u128, T, std::hash::BuildHasherDefault<IdentityHasher>>;

/// A set of 128-bit hashes.
pub type HashSet128 =
    std::collections::HashSet<u128, std::hash::BuildHasherDefault<IdentityHasher>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_and_namespaces_number_alone() {
        let mut scratch = Vec::new();
        let base = event_id(1, 1, b"a", b"x", &mut scratch);
        assert_ne!(base, event_id(1, 1, b"b", b"x", &mut scratch));
        assert_ne!(base, event_id(1, 2, b"a", b"x", &mut scratch));
        assert_ne!(
            event_id(1, 1, b"a", b"bx", &mut scratch),
            event_id(1, 1, b"ab", b"x", &mut scratch),
            "the tenant's length is part of the hash"
        );
    }
}
