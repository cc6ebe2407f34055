//! A request, before its subject is known: who asks, what they may do, and what is remembered of it.

pub mod access;
pub mod idempotency_key;

pub mod callers;

pub mod context;

pub mod audit;
pub mod idempotency;
