//! Scheduled reports: rules, when they run, the data and files of a run.
//!
//! ```text
//! rules.rs       POST /v1/reports {"dashboard_id": "0190…", "name": "Weekly usage", "schedule": "weekly", "format": "pdf", …}
//! schedule.rs    Monday 08:00 UTC: next_run_at
//! runs.rs        that Monday: a run in the queue, leased, with each recipient pending
//! data.rs        the dashboard with its data, as a sheet of cards
//! files.rs       Weekly-usage-2026-11-23.pdf, in a mail and in a webhook
//! runs.rs        the run is succeeded, or goes on with who could not be reached
//! ```

pub mod data;
pub mod schedule;

pub mod rules;

pub mod runs;

pub mod files;
