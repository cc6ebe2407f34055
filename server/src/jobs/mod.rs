//! Background work. A job takes no input: it reads the store, acts, and writes the outcome, so that
//! a lost run loses time and nothing else.
//!
//! ```text
//! job                tick      what it does in one turn
//! deliver            250 ms    claims due deliveries, one attempt of each
//! run_reports        1 s       begins due reports, claims runs, makes and sends their files
//! evaluate_alerts    1 s       evaluates the rules whose second it is, commits what was found
//! flush_usage        10 s      writes the counts of queries and embed views
//! send_usage         1 s       where another process leads, sends it these counts instead
//! expire             10 min    removes records of what has ended, and old mails
//! store_health       1 s       logs what keeps the store from its work
//! ```
//!
//! All but the last two run where this process leads (`leading`). All run in tasks of the server and end when `stopped` changes. Reading and writing the store blocks, so that it happens on the
//! blocking pool. A test calls `evaluate_now` and `expire_now` instead of waiting.

mod evaluation_lanes;
mod leased_work;
mod periodic;

mod deliver;
mod evaluate_alerts;
mod expire;
mod flush_usage;
mod run_reports;
mod send_usage;
mod store_health;

mod leading;

pub use evaluate_alerts::evaluate_now;
pub use expire::expire_now;
pub use leading::run as lead;
pub use send_usage::run as send_counts;
pub use store_health::run as report;
