//! Sketches: small states that answer approximately and merge.
//!
//! They are our own, with bytes of their own; the crates `hyperloglogplus` and `tdigest` are what tests compare
//! them with.

pub mod digest;
pub mod hll;
pub mod sums;

#[cfg(test)]
mod accuracy;
