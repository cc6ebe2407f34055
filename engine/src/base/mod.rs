//! Small things that every floor above uses: bytes, hashes, time and chance.

pub mod allocator;
pub mod clock;
pub mod coding;
pub mod meter;
pub mod rng;
pub mod texts;
pub mod time;

pub mod hash;
