//! In front of every handler: an id and a line in the log, the caller, rate limits, idempotency.
//!
//! ```text
//! observe        every request, also of pages and of paths that do not exist
//! cluster        where several processes have the store: answered here, or by the one that leads
//! caller         operations of the table: 401, 403, 429
//! idempotency    POST with an `Idempotency-Key`, of a caller with credentials: 409, or the first answer again
//! ```

pub mod idempotency;

pub mod caller;

pub mod cluster;

pub mod observe;
