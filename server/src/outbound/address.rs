//! Whether a webhook may be sent to an address.
//!
//! A customer names the URL, and the server stands inside somebody's network: what is not plainly a
//! public web address is refused. A host that is a number must be written the one usual way, so that
//! nothing internal hides behind an odd notation. Names are judged here by their look only; what they
//! resolve to is judged where the connection is made.
//!
//! ```text
//! https://hooks.acme.com/in/secret      allowed, by its look
//! https://8.8.8.8/                      allowed
//! https://10.0.0.1, https://[::1]       webhook_url must be a public web address
//! https://127.1, https://0x7f000001     the same: numbers that are not written as they are read back
//! https://127.0.0.1.nip.io              the same: a name that means any address
//! https://acme.com:22                   the same: a port of a system service
//! https://user:pw@acme.com              webhook_url must not contain credentials
//! ftp://acme.com                        webhook_url must begin with http:// or https://
//! ```
//!
//! `--webhook-allow 127.0.0.0/8` allows `http://127.0.0.1:9000/x`, and names such as `localhost`, which are judged when they are resolved.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

use crate::error::{ApiError, Code, Result};

/// Characters of a URL, at most.
const URL_CHARS_MAX: usize = 2_048;
/// Ports below this are those of system services, and two of them speak HTTP.
/// So `https://acme.com:8080/x` is allowed as is `:443`, and `https://acme.com:22` is not.
const PORT_MIN: u16 = 1_024;

/// IPv4 networks that are not global unicast, and one platform address that is but should not be.
const BLOCKED_V4: [&str; 16] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "168.63.129.16/32",
];
/// The only IPv6 network of which anything may be reached.
const GLOBAL_V6: &str = "2000::/3";
/// What is special inside of it: protocol assignments with Teredo, documentation, 6to4.
const BLOCKED_V6: [&str; 4] = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];
/// Names that mean something inside a network, or nothing.
const BLOCKED_NAMES: [&str; 24] = [
    "local",
    "localhost",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "corp",
    "home",
    "home.arpa",
    "private",
    "onion",
    "test",
    "invalid",
    "example",
    "arpa",
    "svc",
    "cluster.local",
    "consul",
    "metadata.goog",
    "nip.io",
    "sslip.io",
    "xip.io",
    "localtest.me",
    "lvh.me",
];

/// Where webhooks may go beside the public internet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookRules {
    /// Networks that are reached although they are internal.
    pub allowed: Vec<IpNet>,
}

impl WebhookRules {
    /// Whether a connection to this address may be made.
    pub fn allow(&self, address: IpAddr) -> bool {
        self.is_named(address) || is_public(address)
    }

    /// Whether the operator named a network with this address.
    pub fn is_named(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|network| network.contains(&address))
    }
}

/// The URL, when a webhook may be sent there as far as its text tells.
///
/// Errors: 400 naming `webhook_url`; the reason is not told closer than that it is not allowed.
pub fn check_webhook(text: &str, rules: &WebhookRules) -> Result<Url> {
    let refused = |message: &str| ApiError::field(Code::InvalidField, "webhook_url", message);
    let not_allowed = || refused("webhook_url must be a public web address");
    if text.chars().count() > URL_CHARS_MAX {
        return Err(refused("webhook_url must have at most 2048 characters"));
    }
    // The URL parser mends what it can; what needs mending is refused before.
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let rest = rest.ok_or_else(|| refused("webhook_url must begin with http:// or https://"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || text.chars().any(is_hidden) || text.contains('\\') {
        return Err(not_allowed());
    }
    let url = Url::parse(text).map_err(|_| refused("webhook_url is not a URL"))?;
    if !url.username().is_empty() || url.password().is_some() || authority.contains('@') {
        return Err(refused("webhook_url must not contain credentials"));
    }
    let port = url.port_or_known_default().unwrap_or(0);
    if !matches!(port, 80 | 443) && port < PORT_MIN {
        return Err(not_allowed());
    }
    let host = url.host().ok_or_else(not_allowed)?;
    let written = written_host(authority);
    let is_allowed = match host {
        Host::Ipv4(address) => written == address.to_string() && rules.allow(IpAddr::V4(address)),
        Host::Ipv6(address) => !written.contains('%') && rules.allow(IpAddr::V6(address)),
        Host::Domain(name) => {
            !written.contains('%') && (is_public_name(name) || !rules.allowed.is_empty())
        }
    };
    if is_allowed { Ok(url) } else { Err(not_allowed()) }
}

/// The host as it was written, without brackets and port: `hooks.acme.com` of `hooks.acme.com:8443`, `::1` of `[::1]:80`.
fn written_host(authority: &str) -> &str {
    if let Some(inside) = authority.strip_prefix('[') {
        return inside.split(']').next().unwrap_or_default();
    }
    authority.split(':').next().unwrap_or_default()
}

/// Control, format and space characters: they hide what a text means.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || char.is_whitespace()
        || matches!(char, '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
}

/// A name that anybody may resolve, by its look: `acme.co.uk`, but not `printer`, `db.internal`, `acme.com.` or `a_b.com`.
fn is_public_name(name: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let name = name.to_ascii_lowercase();
    let is_special = |special: &str| {
        name.strip_suffix(special).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    name.len() <= 253
        && name.contains('.')
        && name.split('.').all(label)
        // A last label of digits is an address that somebody tried to hide.
        && !name.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()))
        && !BLOCKED_NAMES.iter().any(|special| is_special(special))
}

/// Whether an address is global unicast.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !BLOCKED_V4.iter().any(|network| contains_v4(network, address))
}

/// Mapped, translated and tunnelled forms of IPv4 lie outside, whatever they lead to.
fn is_public_v6(address: Ipv6Addr) -> bool {
    contains_v6(GLOBAL_V6, address)
        && !BLOCKED_V6.iter().any(|network| contains_v6(network, address))
}

/// A network that cannot be read would contain everything; a test reads all of them.
fn contains_v4(network: &str, address: Ipv4Addr) -> bool {
    network.parse::<Ipv4Net>().map_or(true, |network| network.contains(&address))
}

fn contains_v6(network: &str, address: Ipv6Addr) -> bool {
    network.parse::<Ipv6Net>().map_or(true, |network| network.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_readable() {
        assert!(BLOCKED_V4.iter().all(|network| network.parse::<Ipv4Net>().is_ok()));
        assert!(BLOCKED_V6.iter().all(|network| network.parse::<Ipv6Net>().is_ok()));
        assert!(GLOBAL_V6.parse::<Ipv6Net>().is_ok());
    }

    #[test]
    fn only_public_web_addresses_pass() {
        let rules = WebhookRules::default();
        let passes = |text: &str| check_webhook(text, &rules).is_ok();
        for text in [
            "https://hooks.acme.com/in/secret",
            "http://acme.co.uk:8080/x?y=1#z",
            "https://8.8.8.8/",
            "https://[2606:4700::1111]/x",
            "https://bücher.de/x",
            "https://acme.com:443",
        ] {
            assert!(passes(text), "{text}");
        }
        for text in [
            "",
            "ftp://acme.com",
            "http:/8.8.8.8",
            "http:\\\\8.8.8.8",
            "//acme.com",
            " https://acme.com",
            "https://acme.com/\n",
            "https://acme.com/\u{202e}",
            "https://user@acme.com",
            "https://user:pw@acme.com",
            "https://@acme.com",
            "https://acme.com:22",
            "https://acme.com:0",
            "https://127.0.0.1",
            "https://127.1",
            "https://2130706433",
            "https://0x7f000001",
            "https://0177.0.0.1",
            "https://127.0.0.1.",
            "https://010.8.8.8",
            "https://8.8.8.8.",
            "https://134744072",
            "https://10.0.0.1",
            "https://169.254.169.254/latest",
            "https://100.100.100.200",
            "https://192.0.0.192",
            "https://168.63.129.16",
            "https://255.255.255.255",
            "https://[::1]",
            "https://[::ffff:127.0.0.1]",
            "https://[::ffff:8.8.8.8]",
            "https://[64:ff9b::8.8.8.8]",
            "https://[2002:808:808::1]",
            "https://[2001::1]",
            "https://[2001:db8::1]",
            "https://[fd00:ec2::254]",
            "https://[fe80::1%25eth0]",
            "https://[v1.fe]",
            "https://localhost",
            "https://localhost:8080/x",
            "https://a.localhost",
            "https://printer",
            "https://db.internal",
            "https://metadata.google.internal/x",
            "https://x.cluster.local",
            "https://acme.com.",
            "https://a_b.com",
            "https://-a.com",
            "https://127%2e0%2e0%2e1",
            "https://%31%32%37.0.0.1",
            "https://①②⑦.0.0.1",
            "https://127。0。0。1",
            "https://127.0.0.1.nip.io",
        ] {
            assert!(!passes(text), "{text}");
        }
        assert!(!passes(&format!("https://acme.com/{}", "x".repeat(2_048))));
    }

    #[test]
    fn an_operator_may_allow_networks() {
        let allowed = vec!["127.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let rules = WebhookRules { allowed };
        for text in ["http://127.0.0.1:9000/x", "http://[fd00::1]/", "http://localhost:9000/x"] {
            assert!(check_webhook(text, &rules).is_ok(), "{text}");
        }
        for text in ["http://10.0.0.1/", "http://127.1:9000/", "http://127.0.0.1:22/"] {
            assert!(check_webhook(text, &rules).is_err(), "{text}");
        }
    }
}
