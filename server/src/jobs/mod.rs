//! Background work. A job takes no input: it reads the store, acts, and writes the outcome, so that
//! a lost run loses time and nothing else.

mod evaluation_lanes;
mod leased_work;
mod periodic;

mod deliver;
mod evaluate_alerts;
mod expire;
mod flush_usage;
mod run_reports;
mod store_health;

pub use deliver::run as deliver;
pub use evaluate_alerts::{evaluate_now, run as evaluate_alerts};
pub use expire::{expire_now, run as expire};
pub use flush_usage::run as count;
pub use run_reports::run as run_reports;
pub use store_health::run as report;
