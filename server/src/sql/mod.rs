//! Statements run in workers: processes of this program that are there ahead of need and used once.
//!
//! Whatever a statement does to its worker, it does to nobody else: a worker that runs out of memory or
//! overflows its stack ends, and one that does not end in time is ended.
//!
//! ```text
//! POST /v1/query/adhoc {"sql": "SELECT count(*) FROM events"}
//!     admission.rs      at most 2 statements of an organisation, 1 to 5 in all
//!     worker_pool.rs    a worker that waits, perhaps with the segments open
//!     spawner.rs        else a new one, forked from the template by a thread of low priority (template.rs)
//!     worker.rs         the request down one pipe, frames up another
//!     memory_pool.rs    memory beyond the 512 MiB that the worker begins with
//!     preemption_ticker.rs while it computes
//! 200 {"columns": [{"name": "count(*)", "type": "BIGINT"}], "rows": [[20000]], "stats": {…}}
//! ```

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
