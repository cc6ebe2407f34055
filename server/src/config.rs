//! Settings: a flag, else the environment variable, else the default.
//!
//! An unknown `INLAY_*` variable is an error: a setting that is misspelt must not be ignored. Values are parsed here, once, into
//! types that cannot be wrong, so that a mistake stops the start and names its flag:
//!
//! ```text
//! $ INLAY_DATADIR=/srv/inlay inlay serve
//! Error: INLAY_DATADIR is set but means nothing; `inlay serve --help` lists the settings
//! $ inlay serve --rate-limits queries=1
//! error: invalid value 'queries=1' for '--rate-limits <RATE_LIMITS>': there is no rate limit "queries"
//! $ inlay serve --webhook-allow 10.0.0.0
//! error: invalid value '10.0.0.0' for '--webhook-allow <WEBHOOK_ALLOW>': "10.0.0.0" is not a network such as 10.0.0.0/8
//! $ INLAY_BILLING_PRICES=free=pri_1 inlay serve
//! error: invalid value 'free=pri_1' for '--billing-prices <BILLING_PRICES>': "free=pri_1" is not a plan that is sold (growth, scale) and its price
//! ```

use std::{collections::BTreeMap, ffi::OsStr, net::SocketAddr, path::PathBuf};

use clap::{Args, Command};
use ipnet::IpNet;

// The doc comments of both structs and of their fields are the help that `inlay serve --help` prints.
/// Everything that `inlay serve` can be told.
#[derive(Debug, Clone, Args)]
pub struct Config {
    /// Folder that holds everything; made when it does not exist
    #[arg(long, env = "INLAY_DATA_DIR", default_value = "./data")]
    pub data_dir: PathBuf,
    /// PostgreSQL with the log, such as postgres://inlay@db.acme.com/inlay; the data directory is a cache then
    #[arg(long, env = "INLAY_METADATA_URL", hide_env_values = true, requires = "events_url")]
    pub metadata_url: Option<String>,
    /// Bucket with the files, such as s3://bucket/prefix?region=eu-central-1; keys as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
    #[arg(long, env = "INLAY_EVENTS_URL", hide_env_values = true, requires = "metadata_url")]
    pub events_url: Option<String>,
    /// How much of the disk the copies of files in the data directory may take, in MiB, where the files are in a bucket; all of them are copied without it
    #[arg(long, env = "INLAY_CACHE_MB", requires = "events_url", value_parser = clap::value_parser!(u64).range(1..=1_073_741_824))]
    pub cache_mb: Option<u64>,
    /// Address of the HTTP server; port 0 picks a free one
    #[arg(long, env = "INLAY_HTTP_ADDR", default_value = "127.0.0.1:8080")]
    pub http_addr: SocketAddr,
    /// Address of the internal gRPC server; port 0 picks a free one
    #[arg(long, env = "INLAY_GRPC_ADDR", default_value = "127.0.0.1:8081")]
    pub grpc_addr: SocketAddr,
    /// Bearer token of the gRPC server; needed when its address is not a loopback address
    #[arg(long, env = "INLAY_GRPC_TOKEN", hide_env_values = true)]
    pub grpc_token: Option<String>,
    /// Days of events that are kept, in whole days; all are kept without it
    #[arg(long, env = "INLAY_RETENTION_DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub retention_days: Option<u32>,
    /// Memory to use, in MiB; what the control group allows by default, or half of the machine's
    #[arg(long, env = "INLAY_MEMORY_MB", value_parser = clap::value_parser!(u64).range(256..=16_777_216))]
    pub memory_mb: Option<u64>,
    /// Longest time that a question may take, in milliseconds; less than a request may take in all
    #[arg(long, env = "INLAY_QUERY_MS_MAX", default_value = "30000", value_parser = clap::value_parser!(u64).range(1..=45_000))]
    pub query_ms_max: u64,
    /// Where browsers reach this server; the HTTP address by default
    #[arg(long, env = "INLAY_BASE_URL")]
    pub base_url: Option<String>,
    /// Where other processes with the same store reach this one; the HTTP address by default, or the machine's name where that is any address
    #[arg(long, env = "INLAY_NODE_URL", requires = "metadata_url")]
    pub node_url: Option<String>,
    /// Networks of proxies that are believed about where a request comes from, comma-separated
    #[arg(long, env = "INLAY_TRUSTED_PROXIES", default_value = "", value_parser = parse_networks)]
    pub trusted_proxies: Networks,
    /// Certificate chain as PEM; with the key, HTTPS is served
    #[arg(long, env = "INLAY_TLS_CERT", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key as PEM
    #[arg(long, env = "INLAY_TLS_KEY", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Plan of a new organisation; self_hosted by default, free when billing is configured
    #[arg(long, env = "INLAY_DEFAULT_PLAN", value_parser = ["free", "growth", "scale", "self_hosted"])]
    pub default_plan: Option<String>,
    /// Internal networks that webhooks may reach, comma-separated
    #[arg(long, env = "INLAY_WEBHOOK_ALLOW", default_value = "", value_parser = parse_networks)]
    pub webhook_allow: Networks,
    /// Seconds to wait before each attempt of an alert's webhook, comma-separated
    #[arg(long, env = "INLAY_WEBHOOK_BACKOFF_SECONDS", default_value = "0,30,120", value_parser = parse_waits)]
    pub webhook_backoff_seconds: Waits,
    /// Seconds in which each alert rule is evaluated once
    #[arg(long, env = "INLAY_ALERT_INTERVAL_SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub alert_interval_seconds: u32,
    /// Mail server, such as smtps://user:secret@mail.acme.com, or smtp://mail.acme.com:587?tls=required for
    /// STARTTLS; without one, mails are written as files under the data directory's outbox
    #[arg(long, env = "INLAY_SMTP_URL", hide_env_values = true)]
    pub smtp_url: Option<String>,
    /// Sender of mails, such as Acme <reports@acme.com>
    #[arg(long, env = "INLAY_MAIL_FROM")]
    pub mail_from: Option<String>,
    /// The billing provider
    #[command(flatten)]
    pub billing: BillingConfig,
    /// Processes that wait for a statement of SQL; with 0 each is started when it is needed
    #[arg(long, env = "INLAY_SQL_IDLE_WORKERS", default_value = "2", value_parser = parse_idle_workers)]
    pub sql_idle_workers: usize,
    /// Program that answers statements; this one
    #[arg(skip)]
    pub sql_program: Option<PathBuf>,
    /// Seconds for which the server answers after it was told to stop, while `/readyz` is 503; 4 where several processes may have the store, else none
    #[arg(long, env = "INLAY_DRAIN_SECONDS", value_parser = clap::value_parser!(u32).range(0..=300))]
    pub drain_seconds: Option<u32>,
    /// Rate limits, such as query=1000,login=100
    #[arg(long, env = "INLAY_RATE_LIMITS", default_value = "", value_parser = parse_rate_limits)]
    pub rate_limits: RateLimits,
    /// Filter of the log, such as info or inlay_server=debug
    #[arg(long, env = "INLAY_LOG", default_value = "info")]
    pub log: String,
    /// Form of the log: text for people, json for machines
    #[arg(long, env = "INLAY_LOG_FORMAT", default_value = "text", value_parser = ["text", "json"])]
    pub log_format: String,
    /// Also serve the demo: 90 days of sample events and a published dashboard
    #[arg(long)]
    pub demo: bool,
}

/// How the billing provider is spoken to.
#[derive(Debug, Clone, Default, Args)]
pub struct BillingConfig {
    /// Address of the billing API
    #[arg(long, env = "INLAY_BILLING_API_URL", default_value = "https://api.paddle.com")]
    pub billing_api_url: String,
    /// Key of the billing API
    #[arg(long, env = "INLAY_BILLING_API_KEY", hide_env_values = true)]
    pub billing_api_key: Option<String>,
    /// Token of the hosted checkout in browsers
    #[arg(long, env = "INLAY_BILLING_CLIENT_TOKEN", hide_env_values = true)]
    pub billing_client_token: Option<String>,
    /// Environment of the hosted checkout, such as sandbox or production
    #[arg(long, env = "INLAY_BILLING_ENVIRONMENT", default_value = "production")]
    pub billing_environment: String,
    /// Price ids by plan, such as growth=pri_1,scale=pri_2
    #[arg(long, env = "INLAY_BILLING_PRICES", default_value = "", value_parser = parse_prices)]
    pub billing_prices: Prices,
    /// Key of the billing webhook; several, comma-separated, while they change
    #[arg(long, env = "BILLING_NOTIFICATION_KEY", hide_env_values = true, value_delimiter = ',')]
    pub billing_notification_key: Vec<String>,
    /// Seconds that the time of a billing webhook may be off
    #[arg(long, env = "INLAY_BILLING_TOLERANCE_SECONDS", default_value = "300",
          value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub billing_tolerance_seconds: u32,
}

impl BillingConfig {
    /// Whether plans can be bought: API key, client token and at least one price are set. Without any of them, billing answers 503.
    pub fn is_configured(&self) -> bool {
        self.billing_api_key.is_some()
            && self.billing_client_token.is_some()
            && !self.billing_prices.0.is_empty()
    }
}

/// Networks of `--trusted-proxies` and `--webhook-allow`: `10.0.0.0/8, fd00::/8` are two; an empty text is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<IpNet>);

/// Errors: a part that is no network in CIDR notation. An address without a prefix length is none.
fn parse_networks(text: &str) -> Result<Networks, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let network = |part: &str| {
        part.parse().map_err(|_| format!("{part:?} is not a network such as 10.0.0.0/8"))
    };
    parts.map(network).collect::<Result<_, _>>().map(Networks)
}

/// Seconds to wait before each attempt, the first included: `0,30,120` are three attempts, at once, after 30 s, and 120 s later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waits(pub Vec<u64>);

impl Default for Waits {
    fn default() -> Self {
        Self(vec![0, 30, 120])
    }
}

/// Errors: no number, more than a day (86,400 s), more than ten attempts. An empty text is no number.
fn parse_waits(text: &str) -> Result<Waits, String> {
    let wait = |part: &str| {
        let seconds = part.trim().parse().ok().filter(|seconds| *seconds <= 86_400);
        seconds.ok_or_else(|| format!("{part:?} is not a number of seconds up to 86400"))
    };
    let waits: Vec<u64> = text.split(',').map(wait).collect::<Result<_, _>>()?;
    if waits.len() > 10 {
        return Err("there are at most 10 attempts".to_owned());
    }
    Ok(Waits(waits))
}

/// Pairs of a plan and the price id that buys it at the provider: `growth=pri_1,scale=pri_2`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices(pub Vec<(String, String)>);

/// Errors: a part without `=`, an empty price, and plans that nobody can buy (`free`, `self_hosted`).
fn parse_prices(text: &str) -> Result<Prices, String> {
    let mut prices = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (plan, price) =
            part.split_once('=').ok_or_else(|| format!("{part:?} is not plan=price"))?;
        if !["growth", "scale"].contains(&plan) || price.is_empty() {
            return Err(format!(
                "{part:?} is not a plan that is sold (growth, scale) and its price"
            ));
        }
        prices.push((plan.to_owned(), price.to_owned()));
    }
    Ok(Prices(prices))
}

impl Config {
    /// Plan of a new organisation: the configured one, else `free` where plans can be bought, else `self_hosted`, which has no limits.
    pub fn plan_of_new_orgs(&self) -> &str {
        let sold = if self.billing.is_configured() { "free" } else { "self_hosted" };
        self.default_plan.as_deref().unwrap_or(sold)
    }
}

/// Tokens of a bucket by the name of its rate limit: per second, but per quarter of an hour for `login` and `register`.
///
/// `--rate-limits query=1000,login=100` changes two of them; the others keep their defaults from the table below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RateLimits(pub BTreeMap<String, u32>);

impl RateLimits {
    /// The limit with this name: the configured one, or the default. 1 for a name that the table does not have.
    pub fn of(&self, name: &str) -> u32 {
        let default =
            || RATE_LIMITS.iter().find(|(known, _)| *known == name).map(|(_, limit)| *limit);
        self.0.get(name).copied().or_else(default).unwrap_or(1)
    }
}

/// Names and defaults. `README.md` has the same table, with the key by which each is counted.
const RATE_LIMITS: [(&str, u32); 7] = [
    ("ingest", 1_000),
    ("query", 200),
    ("embed", 50),
    ("sql", 5),
    ("management", 50),
    ("login", 10),
    ("register", 20),
];

/// Errors: no number, or more than 16: each idle worker is a process.
fn parse_idle_workers(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count <= 16);
    count.ok_or_else(|| "it is a number up to 16".to_owned())
}

/// The defaults with the changes of a text.
///
/// Errors: a part without `=`, a name that is not in the table, a limit that is no number or 0.
fn parse_rate_limits(text: &str) -> Result<RateLimits, String> {
    let mut limits: BTreeMap<String, u32> =
        RATE_LIMITS.iter().map(|(name, limit)| ((*name).to_owned(), *limit)).collect();
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let (name, limit) =
            part.split_once('=').ok_or_else(|| format!("{part:?} is not name=number"))?;
        let known = limits
            .get_mut(name.trim())
            .ok_or_else(|| format!("there is no rate limit {name:?}"))?;
        *known = limit
            .trim()
            .parse()
            .ok()
            .filter(|limit| *limit > 0)
            .ok_or_else(|| format!("{limit:?} is not a number above 0"))?;
    }
    Ok(RateLimits(limits))
}

/// The first `INLAY_*` variable among `names` that means nothing to a program's commands.
///
/// `program` is the whole command line, so that a variable of any command counts as known: `INLAY_API_KEY` belongs to `import`, and
/// may be set while `serve` runs. `INLAY_DATADIR` is returned, since no flag names it; `PATH` never is.
pub fn unknown_variable(
    program: &Command,
    mut names: impl Iterator<Item = String>,
) -> Option<String> {
    let arguments = program.get_subcommands().flat_map(Command::get_arguments);
    let known: Vec<&OsStr> = arguments.filter_map(|argument| argument.get_env()).collect();
    names.find(|name| name.starts_with("INLAY_") && !known.contains(&OsStr::new(name.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limits_name_what_they_change() {
        let limits = parse_rate_limits("query=1000, login=100").unwrap();
        assert_eq!((limits.0["query"], limits.0["login"], limits.0["ingest"]), (1_000, 100, 1_000));
        for wrong in ["query", "queries=1", "query=0", "query=many"] {
            assert!(parse_rate_limits(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn networks_may_be_none() {
        assert_eq!(parse_networks("").unwrap(), Networks::default());
        assert_eq!(parse_networks("10.0.0.0/8, fd00::/8").unwrap().0.len(), 2);
        assert!(parse_networks("10.0.0.0").is_err() && parse_networks("x").is_err());
    }

    #[test]
    fn waits_are_seconds_before_each_attempt() {
        assert_eq!(parse_waits("0,30,120"), Ok(Waits::default()));
        assert_eq!(parse_waits(" 1 , 2").unwrap().0, [1, 2]);
        for wrong in ["", "-1", "1,,2", "soon", "86401", "1,2,3,4,5,6,7,8,9,10,11"] {
            assert!(parse_waits(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn prices_name_plans_that_are_sold() {
        let prices = parse_prices("growth=pri_1, scale=pri_2").unwrap().0;
        assert_eq!(prices[1], ("scale".to_owned(), "pri_2".to_owned()));
        for wrong in ["growth", "growth=", "free=pri_1", "self_hosted=pri_1"] {
            assert!(parse_prices(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_misspelt_variable_is_found() {
        let program = Command::new("inlay")
            .subcommand(Config::augment_args(Command::new("serve")))
            .subcommand(Command::new("import").arg(clap::Arg::new("key").env("INLAY_API_KEY")));
        let names =
            |list: &[&str]| unknown_variable(&program, list.iter().map(|name| (*name).to_owned()));
        assert_eq!(names(&["INLAY_API_KEY"]), None);
        assert_eq!(names(&["PATH", "INLAY_LOG", "INLAY_QUERY_MS_MAX", "INLAY_TLS_CERT"]), None);
        assert_eq!(names(&["INLAY_DATADIR"]).as_deref(), Some("INLAY_DATADIR"));
    }
}
