//! Scheduled reports: rules, when they run, the data and files of a run.

pub mod data;
pub mod schedule;

pub mod rules;

pub mod runs;

pub mod files;
