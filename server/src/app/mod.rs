//! What Inlay does, as ordinary functions: no HTTP, no async.
//!
//! [`App`] holds what they all need: the engine, the clock, chance, settings. One file is one
//! resource: what it is, and what is allowed. `access` says who may do which operation; the HTTP
//! floor asks it before anything here runs. `query` is the one gate to data.

mod access;
mod backoff;

mod counters;
mod idempotency_key;
mod plans;
mod settings;

mod callers;

mod context;

mod audit;
mod deliveries;
mod idempotency;
mod onboarding;
mod query;
mod saved_queries;
mod schedule;

mod orgs;
mod usage;

mod billing;
mod events;

mod erasures;

mod api_keys;
mod sessions;

mod accounts;

mod passwords;

mod members;

mod expire;

mod widgets;

mod dashboards;

mod alert_notifications;
mod alert_state;
mod delivery_queue;
mod discover;
mod embed;
mod embed_limits;
mod report_queue;
mod rules;
mod standalone_widgets;

mod alert_evaluation;
mod datasets;
mod embed_views;
mod report_data;
mod reports;

mod alerts;

mod alert_preview;
mod demo;
mod report_runs;

mod report_files;
mod webhook_retries;

pub use access::{Decision, Operation, Principal, Quota, decide};
pub use accounts::{RESERVED_DOMAIN, SessionOpened};
pub use alert_evaluation::Check;
pub use alerts::{Alert, AlertChange, AlertSubject};
pub use api_keys::KeyRequest;
pub use audit::AuditFilter;
pub use billing::{BillingState, Received};
pub use callers::Caller;
pub use context::{App, Attempt};
pub use counters::Counted;
pub use dashboards::{DashboardChange, NewDashboard, Status, WidgetChange};
pub use datasets::Dataset;
pub use deliveries::{RuleDeliveries, WINDOW_HOURS};
pub use delivery_queue::{Outcome, Queued, UnderWay};
pub use demo::demo_tenants;
pub use discover::is_rollup_dimension;
pub use embed::{EmbedRequest, Viewer};
pub use embed_limits::{Offered, WireFilters};
pub use embed_views::EmbedView;
pub use erasures::scope_name;
pub use events::RejectedEvent;
pub use idempotency::Known;
pub use idempotency_key::NamedRequest;
pub use plans::{PLANS, Plan};
pub use query::{Ask, QueryAnswer, QueryRow, granularity_name, parse_granularity, parse_metric};
pub use report_files::ReportFile;
pub use report_runs::ReportWork;
pub use reports::{Report, ReportChange, next_runs, runs_after};
pub use rules::{masked_email, masked_url};
pub use saved_queries::SavedQueryChange;
pub use sessions::{Client, OwnSession, SESSION_SECONDS};
pub use settings::{BillingSettings, Settings};
pub use standalone_widgets::StandaloneChange;
pub use usage::Usage;
pub use widgets::{Preview, ViewFilters, WIDGET_KINDS, WidgetAnswer};
