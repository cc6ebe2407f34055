//! Notifications on their way: the durable queue, its backoff, the log of attempts, retries by hand.

pub mod backoff;
pub mod log;
pub mod report_queue;
pub mod rule_fields;
pub mod signature;

pub mod queue;

pub mod retries;
