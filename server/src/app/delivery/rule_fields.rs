//! Fields that alert rules and report rules share: number, recipients, webhook with its secrets, and dashboard.
//!
//! ```text
//! "email_to": ["A@b.example", "a@b.example"]     stored as ["a@b.example"]
//! "email_to": ["nope", "a@b.example", "no"]      400, details: email_to[0] and email_to[2]
//!
//! webhook_signed: true             whsec_n1     in the answer, and never again
//! rotate_webhook_secret: true      whsec_n2     both sign for 24 hours: webhook-signature: v1,<by n2> v1,<by n1>
//! the same within the day          whsec_n3     n1 ends at once; n3 and n2 sign
//! webhook_signed: false            none         unsigned from the next attempt on
//!
//! for a viewer    https://hooks.acme.com/in/secret    is    https://hooks.acme.com/…
//!                 ada@acme.example                    is    a…@acme.example
//! ```

use base64::{Engine as _, engine::general_purpose::STANDARD};
use inlay_engine::Rng;

use crate::{
    app::request::{callers::Caller, context::App},
    base::text,
    error::{ApiError, Code, Faults, Result},
    outbound::check_webhook,
    store::{Dashboard, OrgTxn, PreviousSecret, Sequence},
};

/// Mail addresses of a rule, at most.
const RECEIVERS_MAX: usize = 50;

/// Milliseconds for which a secret that was replaced signs beside its successor: receivers change theirs within a day.
const OVERLAP_MS: i64 = 24 * 3_600_000;

/// The next number of a kind of rule within an organisation.
///
/// The number of a deleted rule is not used again: links and headers of old messages name it.
pub fn next_number(txn: &mut OrgTxn<'_>, kind: &str) -> Result<u64> {
    let last = txn.find::<Sequence>(kind)?.map_or(0, |sequence| sequence.last);
    txn.put(&Sequence { id: kind.to_owned(), last: last + 1 })?;
    Ok(last + 1)
}

/// A change of how a rule's webhooks are signed.
#[derive(Debug, Clone, Copy, Default)]
pub struct SigningChange {
    /// `true` makes a secret if there is none, `false` ends it.
    pub signed: Option<bool>,
    /// Replaces the secret; the one before signs for a day on.
    pub rotate: bool,
}

impl SigningChange {
    /// Makes, replaces or ends the secret of a rule.
    ///
    /// Errors: a secret that is to be replaced and is not there.
    pub fn apply(
        self,
        secret: &mut Option<String>,
        previous: &mut Option<PreviousSecret>,
        now: i64,
        rng: &dyn Rng,
    ) -> Result<()> {
        if self.rotate && (self.signed == Some(false) || self.signed.is_none() && secret.is_none())
        {
            let field = "rotate_webhook_secret";
            let message = "webhooks of this rule are not signed: webhook_signed makes a secret";
            return Err(ApiError::field(Code::InvalidField, field, message));
        }
        match self.signed {
            Some(false) => (*secret, *previous) = (None, None),
            Some(true) if secret.is_none() => *secret = Some(new_webhook_secret(rng)),
            _ if self.rotate => {
                let replaced = secret.replace(new_webhook_secret(rng));
                *previous =
                    replaced.map(|secret| PreviousSecret { secret, until: now + OVERLAP_MS });
            }
            _ => {}
        }
        Ok(())
    }
}

/// The secrets that a rule's webhooks are signed with at an instant; none where they are not signed.
///
/// The current one first: a receiver that checks only one signature checks the new one.
pub fn signing_secrets<'a>(
    secret: Option<&'a str>,
    previous: Option<&'a PreviousSecret>,
    at_ms: i64,
) -> Vec<&'a str> {
    let previous = previous.filter(|previous| previous.signs(at_ms));
    secret.into_iter().chain(previous.map(|previous| &*previous.secret)).collect()
}

/// A secret that webhooks are signed with, in the form in which libraries for it expect it.
fn new_webhook_secret(rng: &dyn Rng) -> String {
    let mut bytes = [0; 32];
    rng.fill(&mut bytes);
    format!("whsec_{}", STANDARD.encode(bytes))
}

/// Mail addresses, each once.
///
/// Errors: `out_of_range` for more than 50; all addresses that are none, each with its index.
pub fn receivers(field: &str, addresses: &[String]) -> Result<Vec<String>> {
    if addresses.len() > RECEIVERS_MAX {
        let message = format!("{field} must have at most {RECEIVERS_MAX} entries");
        return Err(ApiError::field(Code::OutOfRange, field, message));
    }
    let mut faults = Faults::default();
    let mut checked: Vec<String> = Vec::new();
    for (index, address) in addresses.iter().enumerate() {
        let address = faults.take(text::email(&format!("{field}[{index}]"), address));
        checked.extend(address.filter(|address| !checked.contains(address)));
    }
    faults.end()?;
    Ok(checked)
}

impl App {
    /// A webhook's address, when it may be sent there.
    ///
    /// Errors: 400 for text that is no URL, for another scheme, a user or password in it, and an address that is not public. Names are looked
    /// up elsewhere, where it may take time.
    pub fn webhook(&self, url: &str) -> Result<String> {
        check_webhook(url, &self.settings.webhooks)?;
        Ok(url.to_owned())
    }

    /// The dashboard of a rule. Errors: 404, naming the field `dashboard_id`.
    pub fn rule_dashboard(&self, caller: &Caller, id: &str) -> Result<Dashboard> {
        self.dashboard(caller, id).map_err(|error| {
            let field = Some("dashboard_id".to_owned());
            if error.code == Code::NotFound { ApiError { field, ..error } } else { error }
        })
    }
}

/// A webhook's address as those see it who may not know where it leads: its path is a secret.
pub fn masked_url(url: &str) -> String {
    let end = url.find("://").map(|at| at + 3).unwrap_or_default();
    let host = url.get(end..).and_then(|rest| rest.split(['/', '?', '#']).next());
    format!("{}{}/…", url.get(..end).unwrap_or_default(), host.unwrap_or_default())
}

/// A mail address as those see it who may not know it.
pub fn masked_email(address: &str) -> String {
    let (name, domain) = address.split_once('@').unwrap_or((address, ""));
    let first = name.chars().next().map(String::from).unwrap_or_default();
    format!("{first}…@{domain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_keep_what_helps_and_hide_what_opens() {
        assert_eq!(masked_url("https://hooks.acme.com/in/secret?x=1"), "https://hooks.acme.com/…");
        assert_eq!(masked_url("http://acme.com:8080"), "http://acme.com:8080/…");
        assert_eq!(masked_url("https://acme.com?key=1"), "https://acme.com/…");
        assert_eq!(masked_email("ada@acme.example"), "a…@acme.example");
    }

    #[test]
    fn receivers_are_checked_one_by_one() {
        let list = |addresses: &[&str]| {
            receivers("email_to", &addresses.iter().map(|&a| a.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(list(&["A@b.example", "a@b.example"]).unwrap(), ["a@b.example"]);
        let error = list(&["nope", "a@b.example", "also nope"]).unwrap_err();
        let fields: Vec<&str> = error.faults.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, ["email_to[0]", "email_to[2]"]);
    }
}
