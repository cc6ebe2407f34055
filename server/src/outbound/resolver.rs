//! Names of webhooks become addresses here, and only such as may be reached.
//!
//! The client connects to exactly the addresses that were looked at, so an answer that is another one a
//! moment later leads nowhere. One address that may not be reached spoils the whole answer: whoever
//! mixes them tries something.
//!
//! ```text
//! name resolves to                  result
//! 8.8.8.8, 2606:4700::1111          both, for the connection
//! 8.8.8.8, 10.0.0.1                 NotAllowed: one address is internal
//! an address of this machine        NotAllowed, unless the operator has named its network
//! nothing, or no answer in 5 s      Unresolved
//! ```
//!
//! Both errors read "address not allowed, or its name could not be resolved".

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use hickory_resolver::{TokioResolver, config::LookupIpStrategy};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tracing::warn;

use super::address::WebhookRules;

/// A name must be resolved in this time.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A name server gets this long to answer, and is then asked again: a packet may be lost.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(1_600);
/// How often a name server is asked: three times 1.6 s fit into the five of a look-up.
const TRIES: usize = 3;

/// Why no connection is made. Both read alike: which names exist inside is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It leads where webhooks may not go. Where that is, is not told.
    #[error("address not allowed, or its name could not be resolved")]
    NotAllowed,
    /// There is no such name, or nobody says so in time.
    #[error("address not allowed, or its name could not be resolved")]
    Unresolved,
}

/// Resolves names by the machine's name servers.
#[derive(Clone)]
pub struct Names {
    resolver: Option<Arc<TokioResolver>>,
    rules: WebhookRules,
}

impl Names {
    /// By the name servers that the machine is configured with; without them no name is resolved.
    pub fn of_machine(rules: WebhookRules) -> Self {
        let resolver = TokioResolver::builder_tokio().and_then(|mut builder| {
            let options = builder.options_mut();
            // Both kinds, as both are looked at; and anew for each attempt.
            options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
            options.cache_size = 0;
            options.timeout = ANSWER_TIMEOUT;
            options.attempts = TRIES;
            builder.build()
        });
        let resolver = resolver
            .inspect_err(|error| warn!(%error, "webhooks to names will fail: no name servers"));
        Self { resolver: resolver.ok().map(Arc::new), rules }
    }

    /// The addresses of a name, all of which may be reached: at least one.
    ///
    /// Errors: `Unresolved` without name servers, without an answer in time, for a name that does not exist; `NotAllowed`.
    pub async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, Refusal> {
        let resolver = self.resolver.as_ref().ok_or(Refusal::Unresolved)?;
        // With the dot at the end no search domain of the machine is tried.
        let full = format!("{}.", name.trim_end_matches('.'));
        let found = tokio::time::timeout(TIMEOUT, resolver.lookup_ip(full)).await;
        let found = found.map_err(|_| Refusal::Unresolved)?.map_err(|_| Refusal::Unresolved)?;
        let addresses: Vec<IpAddr> = found.iter().collect();
        self.check(&addresses)?;
        Ok(addresses)
    }

    /// Whether all of these may be reached.
    pub fn check(&self, addresses: &[IpAddr]) -> Result<(), Refusal> {
        let allowed = |&address: &IpAddr| {
            self.rules.is_named(address) || (self.rules.allow(address) && !is_own(address))
        };
        match addresses {
            [] => Err(Refusal::Unresolved),
            _ if addresses.iter().all(allowed) => Ok(()),
            _ => Err(Refusal::NotAllowed),
        }
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let found = names.lookup(name.as_str()).await?;
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// Whether an address is one of this machine's own: what listens there is not for the public.
fn is_own(address: IpAddr) -> bool {
    // They may change while the server runs, and looking is cheap.
    let own = if_addrs::get_if_addrs().unwrap_or_default();
    own.iter().any(|interface| interface.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_that_is_not_allowed_spoils_the_answer() {
        let names = Names { resolver: None, rules: WebhookRules::default() };
        let check = |texts: &[&str]| {
            names.check(&texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(check(&["8.8.8.8", "2606:4700::1111"]), Ok(()));
        assert_eq!(check(&["8.8.8.8", "10.0.0.1"]), Err(Refusal::NotAllowed));
        assert_eq!(check(&["2606:4700::1111", "::1"]), Err(Refusal::NotAllowed));
        assert_eq!(check(&["::ffff:8.8.8.8"]), Err(Refusal::NotAllowed));
        assert_eq!(check(&[]), Err(Refusal::Unresolved));
    }

    #[test]
    fn the_machine_knows_itself() {
        assert!(is_own("127.0.0.1".parse().unwrap()));
        assert!(!is_own("8.8.8.8".parse().unwrap()));
    }
}
