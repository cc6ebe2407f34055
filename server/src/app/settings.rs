//! Settings that operations of `app` read; `config` has all settings of the server, and makes these.

use std::path::PathBuf;

use ipnet::IpNet;

use crate::outbound::WebhookRules;

/// All of them.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where browsers reach this server, without a slash at the end.
    pub base_url: String,
    /// Plan of a new organisation.
    pub default_plan: String,
    /// Work factor of bcrypt.
    pub password_cost: u32,
    /// Whether the demo is served.
    pub demo: bool,
    /// Longest time that a query may take.
    pub query_ms_max: u64,
    /// Networks of proxies that are believed about where a request comes from.
    pub trusted_proxies: Vec<IpNet>,
    /// Where webhooks may go.
    pub webhooks: WebhookRules,
    /// Seconds to wait before each attempt of an alert's webhook.
    pub webhook_waits_s: Vec<u64>,
    /// Seconds in which each alert rule is looked at once.
    pub alert_interval_s: i64,
    /// Where the store's files are.
    pub data_dir: PathBuf,
    /// How the billing provider is spoken to.
    pub billing: BillingSettings,
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
