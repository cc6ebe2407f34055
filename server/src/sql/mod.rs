//! Statements run in workers: processes of this program that are there ahead of need and used once.
//!
//! Whatever a statement does to its worker, it does to nobody else: a worker that runs out of memory or
//! overflows its stack ends, and one that does not end in time is ended.

mod admission;
mod memory_pool;
mod preemption_ticker;
mod template;

mod worker;

mod spawner;

mod worker_pool;

mod statement;

pub use admission::StatementPermit;
pub use statement::{ResultChunk, RunningStatement, StatementResult, StatementRunner};
pub use worker_pool::WorkerPool;
