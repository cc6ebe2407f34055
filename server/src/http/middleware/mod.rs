//! In front of every handler: an id and a line in the log, the caller, rate limits, idempotency.

pub mod idempotency;
pub mod observe;

pub mod caller;
