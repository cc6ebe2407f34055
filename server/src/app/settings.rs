//! Settings that operations of `app` read; `config` has all settings of the server, and makes these.
//!
//! ```text
//! INLAY_BASE_URL=https://inlay.acme.com            base_url          links in mails, embed_url of sessions
//! INLAY_WEBHOOK_BACKOFF_SECONDS=0,30,120           webhook_waits_s   [0, 30, 120]: three attempts
//! INLAY_ALERT_INTERVAL_SECONDS=60                  alert_interval_s  60
//! INLAY_BILLING_PRICES=growth=pri_1,scale=pri_2    billing.prices    [("growth", "pri_1"), ("scale", "pri_2")]
//! ```
//!
//! They are values that were parsed and checked at the start: nothing here is checked again. The default is that of the flags, and
//! what unit tests use.

use std::path::PathBuf;

use ipnet::IpNet;

use crate::{base::membership::StoreMembership, outbound::WebhookRules};

/// Settings of the product. A job may run with a copy that differs, such as a shorter `query_ms_max`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where browsers reach this server, without a slash at the end.
    /// `https://inlay.acme.com`; with `https://` the session cookie is `Secure`.
    pub base_url: String,
    /// Plan of a new organisation.
    /// `self_hosted`, or `free` where billing is configured.
    pub default_plan: String,
    /// Work factor of bcrypt.
    /// 12 is 2^12 rounds; tests take 4, the least that bcrypt has.
    pub password_cost: u32,
    /// Whether the demo is served.
    pub demo: bool,
    /// Milliseconds that a query may take; one that takes longer is refused with `query_timeout`.
    pub query_ms_max: u64,
    /// Networks of proxies that are believed about where a request comes from.
    /// Only from these is `X-Forwarded-For` read; without any the address of the connection counts.
    pub trusted_proxies: Vec<IpNet>,
    /// Addresses that webhooks may reach: public ones, and networks of ours that are listed.
    pub webhooks: WebhookRules,
    /// Seconds to wait before each attempt of an alert's webhook.
    /// As many attempts as there are waits: 0, 30 and 120 are three, the first at once.
    pub webhook_waits_s: Vec<u64>,
    /// Seconds in which each alert rule is evaluated once.
    pub alert_interval_s: i64,
    /// Directory of the store; mails that are written as files are in its folder `outbox`.
    pub data_dir: PathBuf,
    /// Billing provider; by default there is none, and nothing can be bought.
    pub billing: BillingSettings,
    /// Whether this process may answer and may change something, where several have the store.
    pub membership: StoreMembership,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:8080".to_owned(),
            default_plan: "self_hosted".to_owned(),
            password_cost: 12,
            demo: false,
            query_ms_max: 30_000,
            trusted_proxies: Vec::new(),
            webhooks: WebhookRules::default(),
            webhook_waits_s: vec![0, 30, 120],
            alert_interval_s: 60,
            data_dir: PathBuf::new(),
            billing: BillingSettings::default(),
            membership: StoreMembership::default(),
        }
    }
}

/// How the billing provider is spoken to.
#[derive(Debug, Clone, Default)]
pub struct BillingSettings {
    /// Address of its API.
    pub api_url: String,
    /// Key of its API.
    pub api_key: Option<String>,
    /// Token of its checkout in browsers.
    pub client_token: Option<String>,
    /// `sandbox` or `production`.
    pub environment: String,
    /// Price ids by the plan that they buy.
    pub prices: Vec<(String, String)>,
    /// Keys of its webhook that are good now.
    pub notification_keys: Vec<String>,
    /// Seconds that a webhook's time may be off.
    pub tolerance_seconds: i64,
}

impl BillingSettings {
    /// Whether something can be bought.
    pub fn is_configured(&self) -> bool {
        self.api_key.is_some() && self.client_token.is_some() && !self.prices.is_empty()
    }
}
