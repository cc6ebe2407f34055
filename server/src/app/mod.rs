//! What Inlay does, as ordinary functions: no HTTP, no async.
//!
//! [`App`] holds what all operations need: the engine, the clock, chance, settings. One folder is one subject, one
//! file in it one resource: what it is, and what is allowed.
//!
//! | subject | what is in it |
//! |---|---|
//! | `request` | who asks (`callers`), what they may do (`access`), what is remembered of a request (`idempotency`, `audit`), and [`App`] itself (`context`) |
//! | `analytics` | events in (`events`), metric queries out (`query`, the one gate to data), what events look like, erasure |
//! | `identity` | organisations, members, console sessions, passwords, API keys |
//! | `billing` | usage, and what the billing provider says of a subscription |
//! | `dashboards` | drafts and published snapshots, widgets, a first dashboard made from events |
//! | `embed` | signed sessions, what their viewers may ask, what they are answered |
//! | `delivery` | the durable queue of notifications, backoff, the log of attempts, retries by hand |
//! | `alerts` | rules, how they are evaluated, when they fire, what they send |
//! | `reports` | rules, times, runs, data and files |
//!
//! `plans`, `periods`, `counters` and `settings` are below all subjects; `demo` and `expire` use many of them.

mod counters;
mod periods;
mod plans;
mod settings;

mod request;

mod billing;
mod identity;

mod analytics;

mod dashboards;

mod delivery;

mod alerts;
mod embed;

mod reports;

mod demo;
mod expire;

pub use alerts::evaluation::Check;
pub use alerts::replay::ReplayedChange;
pub use alerts::rules::{Alert, AlertChange, AlertSubject};
pub use analytics::datasets::Dataset;
pub use analytics::discover::is_rollup_dimension;
pub use analytics::erasures::scope_name;
pub use analytics::events::{Envelope, RawEvent, RejectedEvent};
pub use analytics::query::{
    Ask, QueryAnswer, QueryRow, granularity_name, parse_granularity, parse_metric,
};
pub use analytics::query_parameters::QueryParameters;
pub use analytics::saved_queries::SavedQueryChange;
pub use billing::subscription::{BillingState, Received};
pub use billing::usage::Usage;
pub use counters::{Counted, EnvironmentCounts};
pub use dashboards::drafts::{DashboardChange, NewDashboard, Status, WidgetChange};
pub use dashboards::standalone_widgets::StandaloneChange;
pub use dashboards::widgets::{Preview, ViewFilters, WIDGET_KINDS, WidgetAnswer};
pub use delivery::log::{RuleDeliveries, WINDOW_HOURS};
pub use delivery::queue::{Outcome, Queued};
pub use delivery::rule_fields::{SigningChange, masked_email, masked_url};
pub use delivery::{
    unsubscribe::MailSubscription,
    unsubscribe_words::{UnsubscribeWords, unsubscribe_words},
};
pub use demo::demo_tenants;
pub use embed::limits::{Offered, WireFilters};
pub use embed::sessions::{EmbedRequest, Viewer};
pub use embed::views::EmbedView;
pub use identity::accounts::{RESERVED_DOMAIN, SessionOpened};
pub use identity::api_keys::KeyRequest;
pub use identity::sessions::{Client, OwnSession, SESSION_SECONDS};
pub use plans::{PLANS, Plan};
pub use reports::files::{NextMessage, ReportFile};
pub use reports::rules::{Report, ReportChange, next_runs, runs_after};
pub use reports::runs::ReportWork;
pub use request::access::{Decision, Operation, Principal, Quota, decide};
pub use request::audit::AuditFilter;
pub use request::callers::Caller;
pub use request::context::{App, Attempt};
pub use request::idempotency::Known;
pub use request::idempotency_key::NamedRequest;
pub use settings::{BillingSettings, Settings};
