//! Statements run in workers: processes of this program that are there ahead of need and used once.
//!
//! Whatever a statement does to its worker, it does to nobody else: a worker that runs out of memory or
//! overflows its stack ends, and one that does not end in time is ended.

mod memory_pool;
mod places;
mod pulse;
mod template;

mod worker;

mod starter;

mod workers;

pub use memory_pool::MemoryGrant;
pub use places::Place;
pub use worker::{Answering, Shown};
pub use workers::Workers;
