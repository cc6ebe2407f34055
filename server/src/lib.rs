//! The server of Inlay: REST, gRPC and embed pages over the engine.
//!
//! The groups of modules below are floors: a module uses those of the groups above it, never of
//! its own group or below. `app` is the product as ordinary functions; `http` and `grpc` are how it
//! is spoken; `serve` puts them together.
//!
//! `POST /v1/dashboards/{id}/publish` comes down through these floors:
//!
//! ```text
//! serve   accepts the connection and hands the request to the router
//! http    middleware: request id, caller, rate limit; then v1/dashboards.rs: publish
//! app     dashboards/drafts.rs: publish_dashboard checks the plan, changes the record, writes the audit row, in one transaction
//! store   o/<org>/dashboard/<id> as JSON in the engine's keyspace
//! ```
//!
//! The binary is another crate, `server/inlay`, which parses the command line and calls the functions that are exported here.

mod error;

mod base;

mod config;
mod outbound;
mod render;
mod store;

mod app;

mod sql;

mod web;

mod grpc;
mod http;
mod jobs;

mod commands;
mod import;
mod store_location;

mod serve;

pub use commands::{Backup, Health, Restore, Server, Verify, backup, health, restore, verify};
pub use config::{BillingConfig, Config, Networks, Prices, RateLimits, Waits, unknown_variable};
pub use error::{ApiError, Code};
pub use import::{Import, import};
pub use inlay_engine as engine;
pub use serve::{GRPC_CONNECTIONS_MAX, Running, serve, serve_with};
pub use store_location::{Migrate, migrate};
