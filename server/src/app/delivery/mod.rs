//! Notifications on their way: the durable queue, its backoff, the log of attempts, retries by hand, and the
//! links that stop mails.

pub mod backoff;
pub mod log;
pub mod report_queue;
pub mod rule_fields;
pub mod signature;
pub mod unsubscribe;

pub mod queue;

pub mod retries;
