//! Settings: a flag, else the environment variable, else the default.
//!
//! An unknown `INLAY_*` variable is an error: a setting that is misspelt must not be ignored.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use clap::Args;

/// Everything that `inlay serve` can be told.
#[derive(Debug, Clone, Args)]
pub struct Config {
    /// Folder that holds everything; made when it does not exist
    #[arg(long, env = "INLAY_DATA_DIR", default_value = "./data")]
    pub data_dir: PathBuf,
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
    /// Plan of a new organisation
    #[arg(long, env = "INLAY_DEFAULT_PLAN", default_value = "self_hosted",
          value_parser = ["free", "growth", "scale", "self_hosted"])]
    pub default_plan: String,
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

/// Requests a second, or a quarter of an hour for the last two, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimits(pub BTreeMap<String, u32>);

const RATE_LIMITS: [(&str, u32); 7] = [
    ("ingest", 1_000),
    ("query", 200),
    ("embed", 50),
    ("sql", 5),
    ("management", 50),
    ("login", 10),
    ("register", 20),
];

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

/// Variables that other parts read, or that later versions of a deployment may set for tools.
const KNOWN: [&str; 11] = [
    "INLAY_DATA_DIR",
    "INLAY_HTTP_ADDR",
    "INLAY_GRPC_ADDR",
    "INLAY_GRPC_TOKEN",
    "INLAY_MEMORY_MB",
    "INLAY_RETENTION_DAYS",
    "INLAY_BASE_URL",
    "INLAY_DEFAULT_PLAN",
    "INLAY_RATE_LIMITS",
    "INLAY_LOG",
    "INLAY_LOG_FORMAT",
];

/// The first `INLAY_*` variable among `names` that means nothing.
pub fn unknown_variable(names: impl Iterator<Item = String>) -> Option<String> {
    names.into_iter().find(|name| name.starts_with("INLAY_") && !KNOWN.contains(&name.as_str()))
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
    fn a_misspelt_variable_is_found() {
        let names = |list: &[&str]| unknown_variable(list.iter().map(|name| (*name).to_owned()));
        assert_eq!(names(&["PATH", "INLAY_LOG"]), None);
        assert_eq!(names(&["INLAY_DATADIR"]).as_deref(), Some("INLAY_DATADIR"));
    }
}
