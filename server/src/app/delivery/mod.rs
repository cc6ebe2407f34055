//! Notifications on their way: the durable queue, its backoff, the log of attempts, retries by hand, and the
//! links that stop mails; and what mails and their page say in each language (`mail_words.rs`, `unsubscribe_words.rs`).
//!
//! ```text
//! 10:17:36.789    a rule fires    delivery/00000001795169856789:0190…    due now                             queue.rs
//! 10:17:37.289    leased          delivery/00000001795169917289:0190…    for 60 s
//! 10:17:38.000    POST, 503       webhook_delivery/0190…                 attempt 1, status_code 503          log.rs
//!                 due again       delivery/00000001795169891000:0190…    attempt 2, 30 s and 3 s of chance   backoff.rs
//! 10:18:11.000    POST, 200       webhook_delivery/0190…                 attempt 2; its event says `sent`
//! a day later     by hand         POST /v1/webhooks/0190…/retry          attempt 3                           retries.rs
//! ```

pub mod backoff;
pub mod log;
pub mod mail_words;
pub mod report_queue;
pub mod rule_fields;
pub mod signature;
pub mod unsubscribe;

pub mod unsubscribe_words;

pub mod queue;

pub mod retries;
