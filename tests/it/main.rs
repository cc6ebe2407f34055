//! Whole-server tests over HTTP, one file a resource.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod accounts;
mod alert_trials;
mod alerts;
mod audit;
mod billing;
mod console;
mod contract;
mod dashboards;
mod docs;
mod edge;
mod embed;
mod erasures;
mod events;
mod garbage;
mod internal;
mod isolation;
mod members;
mod metrics;
mod passwords;
mod query;
mod reports;
mod rules;
mod settings;
mod sql;
mod unsubscribe;
mod usage;
mod webhooks;
