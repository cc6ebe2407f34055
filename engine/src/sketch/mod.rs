//! Sketches: small states that answer approximately and merge.
//!
//! The crates behind them stay behind them: nobody else names `hyperloglogplus` or `tdigest`, so
//! that either can be replaced when a measurement asks for it.

pub mod digest;
pub mod hll;
pub mod sums;

#[cfg(test)]
mod accuracy;
