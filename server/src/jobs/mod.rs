//! Background work. A job takes no input: it reads the store, acts, and writes the outcome, so that
//! a lost run loses time and nothing else.

mod every;
mod places;

mod count;
mod deliver;
mod evaluate_alerts;
mod expire;
mod report;
mod run_reports;

pub use count::run as count;
pub use deliver::run as deliver;
pub use evaluate_alerts::{evaluate_now, run as evaluate_alerts};
pub use expire::run as expire;
pub use report::run as report;
pub use run_reports::run as run_reports;
