//! What Inlay does, as ordinary functions: no HTTP, no async.
//!
//! [`App`] holds what they all need: the engine, the clock, chance, settings. One file is one
//! resource: what it is, and what is allowed. `access` says who may do which operation; the HTTP
//! floor asks it before anything here runs. `query` is the one gate to data.

mod access;

mod context;
mod plans;

mod audit;
mod events;
mod orgs;
mod query;
mod saved_queries;

mod erasures;

mod api_keys;

mod accounts;

mod expire;

mod widgets;

mod dashboards;

mod discover;
mod embed;

mod demo;

pub use access::{Decision, Operation, Principal, decide};
pub use accounts::SESSION_SECONDS;
pub use api_keys::KeyRequest;
pub use context::{App, Caller, Settings};
pub use dashboards::{DashboardChange, NewDashboard, Status, WidgetChange};
pub use discover::is_rollup_dimension;
pub use embed::{EmbedRequest, EmbedView, Viewer, WireFilters};
pub use erasures::scope_name;
pub use query::{Ask, QueryAnswer, QueryRow, granularity_name, parse_granularity, parse_metric};
pub use saved_queries::SavedQueryChange;
pub use widgets::{Preview, ViewFilters, WidgetAnswer};
