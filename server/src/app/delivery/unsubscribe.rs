//! Stops the mails of a rule to one address, by the link that each of these mails carries.
//!
//! ```text
//! {base_url}/v1/unsubscribe?token=…     signed by the organisation: {"aud": "unsubscribe", "sub": "alert:7", "to": "ops@acme.com"}
//! ```
//!
//! Nobody need log in. The address leaves the rule's list, as if an admin had removed it; who manages the rule sees that in
//! the audit, and may add it again. A tenant's report that nobody gets any more leaves the rule, and a report that nobody
//! gets is disabled.
//!
//! ```text
//! rule                                                              ada@acme.com leaves
//! recipients [ada, bob]                                             recipients [bob]
//! recipients [ada], no webhook                                      recipients [], enabled false
//! burst [{acme: [ada]}, {globex: [ada, bob]}], no recipients        burst [{globex: [bob]}]; audit: tenants_removed ["acme"]
//! ```

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    app::{
        identity::link_tokens::{LinkPurpose, sign_link},
        request::{callers::system_caller, context::App},
    },
    base::locale::Locale,
    error::{ApiError, Code, Result},
    store::{AlertRule, Org, OrgTxn, ReportRule, rule_id},
};

// A token of an invite has another purpose, and stops nothing.
const PURPOSE: LinkPurpose = LinkPurpose("unsubscribe");

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnsubscribeClaims {
    aud: String,
    /// `alert:` or `report:`, and the number of the rule.
    sub: String,
    /// E-mail address of the receiver.
    to: String,
}

/// The kind of a rule that sends mails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailSource {
    /// An alert rule.
    Alert,
    /// A report rule.
    Report,
}

impl MailSource {
    /// `alert` or `report`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alert => "alert",
            Self::Report => "report",
        }
    }
}

/// An address that a rule sends mails to, or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailSubscription {
    /// Kind of the rule.
    pub source: MailSource,
    /// Display name of the rule.
    pub name: String,
    /// Language of the rule's mails.
    pub locale: Locale,
    /// E-mail address of the receiver.
    pub to: String,
    /// Whether the rule still sends mails there.
    pub is_active: bool,
}

/// The rule and the address that a token names; whether they exist is not checked yet.
struct Subject {
    org: String,
    source: MailSource,
    number: u64,
    to: String,
}

impl App {
    /// The link that stops the mails of a rule to an address.
    ///
    /// `rule` is its kind and number. The link has no end: a mail may be read years later.
    pub fn unsubscribe_url(
        &self,
        org: &str,
        (source, number): (MailSource, u64),
        to: &str,
    ) -> Result<String> {
        let claims = UnsubscribeClaims {
            aud: PURPOSE.0.to_owned(),
            sub: format!("{}:{number}", source.name()),
            to: to.to_owned(),
        };
        let token = sign_link(PURPOSE, &self.known_link_key(org)?, &claims)?;
        Ok(format!("{}/v1/unsubscribe?token={token}", self.settings.base_url))
    }

    /// The rule and address of a link.
    ///
    /// Errors: 404 for a link that is not ours, or whose rule is gone.
    pub fn mail_subscription(&self, token: &str) -> Result<MailSubscription> {
        self.subscription_of(self.subject_of(token)?).map(|(_, subscription)| subscription)
    }

    /// Removes the address of a link from its rule. A second time changes nothing.
    ///
    /// Errors: as [`Self::mail_subscription`].
    pub fn unsubscribe(&self, token: &str) -> Result<MailSubscription> {
        let (subject, subscription) = self.subscription_of(self.subject_of(token)?)?;
        // A mail program may send the request several times; only the first one writes.
        if subscription.is_active {
            self.org_txn(&subject.org, |txn| match subject.source {
                MailSource::Alert => self.leave_alert(txn, &subject),
                MailSource::Report => self.leave_report(txn, &subject),
            })?;
        }
        Ok(MailSubscription { is_active: false, ..subscription })
    }

    fn subscription_of(&self, subject: Subject) -> Result<(Subject, MailSubscription)> {
        let reader = self.org_reader(&subject.org);
        let id = rule_id(subject.number);
        let rule = match subject.source {
            MailSource::Alert => {
                reader.find::<AlertRule>(&id)?.map(|rule| (rule.name, rule.locale, rule.email_to))
            }
            MailSource::Report => reader.find::<ReportRule>(&id)?.map(|rule| {
                let of_tenants = rule.burst.into_iter().flat_map(|share| share.recipients);
                let all = rule.recipients.into_iter().chain(of_tenants).collect();
                (rule.name, rule.locale, all)
            }),
        };
        let (name, locale, addresses) = rule.ok_or_else(not_found)?;
        let (source, to) = (subject.source, subject.to.clone());
        let is_active = addresses.contains(&to);
        Ok((subject, MailSubscription { source, name, locale, to, is_active }))
    }

    /// Removes the address from an alert rule, which stays enabled: its webhook and the console still show what happens.
    fn leave_alert(&self, txn: &mut OrgTxn<'_>, subject: &Subject) -> Result<()> {
        let found = txn.find::<AlertRule>(&rule_id(subject.number))?;
        let mut rule = found.ok_or_else(not_found)?;
        // Two requests may have come at once.
        if !remove(&mut rule.email_to, &subject.to) {
            return Ok(());
        }
        // An evaluation under way must notice the change.
        rule.updated_at = self.now_ms().max(rule.updated_at + 1);
        txn.put(&rule)?;
        let metadata = json!({"to": subject.to, "name": rule.name, "enabled": rule.enabled});
        self.audit_leave(txn, subject, &rule.environment, metadata)
    }

    /// Removes the address from a report rule and its tenants, and what nobody gets any more.
    fn leave_report(&self, txn: &mut OrgTxn<'_>, subject: &Subject) -> Result<()> {
        let found = txn.find::<ReportRule>(&rule_id(subject.number))?;
        let mut rule = found.ok_or_else(not_found)?;
        let mut is_removed = remove(&mut rule.recipients, &subject.to);
        for share in &mut rule.burst {
            is_removed |= remove(&mut share.recipients, &subject.to);
        }
        if !is_removed {
            return Ok(());
        }
        let mut tenants_removed = Vec::new();
        if !rule.has_receivers() {
            if rule.burst.iter().any(|share| !share.recipients.is_empty()) {
                // A tenant's report that nobody gets is not made.
                let unread = rule.burst.extract_if(.., |share| share.recipients.is_empty());
                tenants_removed.extend(unread.map(|share| share.tenant_id));
            } else {
                // Without its tenants the report would be about all of them.
                (rule.enabled, rule.next_run_at) = (false, None);
            }
        }
        rule.updated_at = self.now_ms().max(rule.updated_at + 1);
        txn.put(&rule)?;
        let metadata = json!({
            "to": subject.to, "name": rule.name, "enabled": rule.enabled,
            "tenants_removed": tenants_removed,
        });
        self.audit_leave(txn, subject, &rule.environment, metadata)
    }

    fn audit_leave(
        &self,
        txn: &mut OrgTxn<'_>,
        subject: &Subject,
        environment: &str,
        metadata: Value,
    ) -> Result<()> {
        let org = txn.find::<Org>(&subject.org)?;
        let environment = org.as_ref().and_then(|org| org.environment_by_id(environment));
        let caller =
            system_caller(&subject.org, environment.ok_or_else(not_found)?, ("mail", &subject.to));
        let source = subject.source.name();
        let target = (source, &*subject.number.to_string());
        self.audit(txn, &caller, &format!("{source}.unsubscribe"), target, metadata)
    }

    /// The subject of a token. Errors: 404 for anything that we did not sign.
    fn subject_of(&self, token: &str) -> Result<Subject> {
        let (org, claims) =
            self.verify_link::<UnsubscribeClaims>(PURPOSE, token)?.ok_or_else(not_found)?;
        let (source, number) = claims.sub.split_once(':').ok_or_else(not_found)?;
        let source = match source {
            "alert" => MailSource::Alert,
            "report" => MailSource::Report,
            _ => return Err(not_found()),
        };
        let number = number.parse().map_err(|_| not_found())?;
        Ok(Subject { org, source, number, to: claims.to })
    }
}

/// Removes an address from a list; returns whether it was there.
fn remove(addresses: &mut Vec<String>, to: &str) -> bool {
    let before = addresses.len();
    addresses.retain(|address| address != to);
    addresses.len() < before
}

fn not_found() -> ApiError {
    ApiError::new(Code::NotFound, "this link is not valid, or its rule is gone")
}
