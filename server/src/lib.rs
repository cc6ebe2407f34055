//! The server of Inlay: REST, gRPC and embed pages over the engine.
//!
//! The groups of modules below are floors: a module uses those of the groups above it, never of
//! its own group or below. `app` is the product as ordinary functions; `http` and `grpc` are how it
//! is spoken; `serve` puts them together.

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
mod serve;

pub use commands::{Backup, Health, Restore, Server, Verify, backup, health, restore, verify};
pub use config::{BillingConfig, Config, Networks, Prices, RateLimits, Waits, unknown_variable};
pub use error::{ApiError, Code};
pub use import::{Import, import};
pub use inlay_engine as engine;
pub use serve::{GRPC_CONNECTIONS_MAX, Running, serve, serve_with};
