//! A request, before its subject is known: who asks, what they may do, and what is remembered of it.
//!
//! ```text
//! credentials → callers.rs → Caller → access.rs: may it → a function of App → audit.rs, idempotency_key.rs in its transaction
//! ```

pub mod access;
pub mod idempotency_key;

pub mod callers;

pub mod context;

pub mod audit;
pub mod idempotency;
