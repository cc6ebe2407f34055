//! Stops the mails of a rule to one address, by the link that each of these mails carries.
//!
//! ```text
//! {base_url}/v1/unsubscribe?token=…     signed by the organisation: {"aud": "unsubscribe", "sub": "alert:7", "to": "ops@acme.com"}
//! ```
//!
//! Nobody need log in. The address leaves the rule's list, as if an admin had removed it; who manages the rule sees that in
//! the audit, and may add it again. A tenant's report that nobody gets any
//! more leaves the rule, and a report that nobody gets is disabled.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    app::{
        identity::link_tokens::{LinkPurpose, sign_link},
        request::context::App,
    },
    error::{ApiError, Code, Result},
    store::{Actor, AlertRule, AuditRow, OrgTxn, ReportRule, Share, rule_id},
};

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
    /// E-mail address of the receiver.
    pub to: String,
    /// Whether the rule still sends mails there.
    pub is_active: bool,
}

/// What a token is about.
struct Subject {
    org: String,
    source: MailSource,
    number: u64,
    to: String,
}

impl App {
    /// The link that stops the mails of a rule to an address.
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
        let subject = self.subject_of(token)?;
        let reader = self.org_reader(&subject.org);
        let id = rule_id(subject.number);
        let rule = match subject.source {
            MailSource::Alert => {
                reader.find::<AlertRule>(&id)?.map(|rule| (rule.name, rule.email_to))
            }
            MailSource::Report => reader.find::<ReportRule>(&id)?.map(|rule| {
                let of_tenants = rule.burst.into_iter().flat_map(|share| share.recipients);
                (rule.name, rule.recipients.into_iter().chain(of_tenants).collect())
            }),
        };
        let (name, addresses) = rule.ok_or_else(not_found)?;
        let is_active = addresses.contains(&subject.to);
        Ok(MailSubscription { source: subject.source, name, to: subject.to, is_active })
    }

    /// Removes the address of a link from its rule. A second time changes nothing.
    ///
    /// Errors: as [`Self::mail_subscription`].
    pub fn unsubscribe(&self, token: &str) -> Result<MailSubscription> {
        // Whoever asks again writes nothing.
        let found = self.mail_subscription(token)?;
        if !found.is_active {
            return Ok(found);
        }
        let Subject { org, source, number, to } = self.subject_of(token)?;
        let name = self.org_txn(&org, |txn| {
            let now = self.now_ms();
            let id = rule_id(number);
            let (name, environment, is_removed, metadata) = match source {
                MailSource::Alert => {
                    let mut rule: AlertRule = txn.find(&id)?.ok_or_else(not_found)?;
                    let is_removed = remove(&mut rule.email_to, &to);
                    // An evaluation under way must notice the change.
                    rule.updated_at = now.max(rule.updated_at + 1);
                    if is_removed {
                        txn.put(&rule)?;
                    }
                    let metadata = json!({"to": to, "name": rule.name, "enabled": rule.enabled});
                    (rule.name, rule.environment, is_removed, metadata)
                }
                MailSource::Report => {
                    let mut rule: ReportRule = txn.find(&id)?.ok_or_else(not_found)?;
                    let mut is_removed = remove(&mut rule.recipients, &to);
                    for share in &mut rule.burst {
                        is_removed |= remove(&mut share.recipients, &to);
                    }
                    rule.updated_at = now.max(rule.updated_at + 1);
                    let tenants_before = rule.burst.clone();
                    // A tenant's report that nobody gets is not made; one without tenants would be about all of them.
                    if !rule.has_receivers() {
                        let is_read = |share: &Share| !share.recipients.is_empty();
                        match rule.burst.iter().any(is_read) {
                            true => rule.burst.retain(is_read),
                            false => (rule.enabled, rule.next_run_at) = (false, None),
                        }
                    }
                    if is_removed {
                        txn.put(&rule)?;
                    }
                    let left = |share: &Share| {
                        rule.burst.iter().any(|one| one.tenant_id == share.tenant_id)
                    };
                    let tenants_removed: Vec<&str> = tenants_before
                        .iter()
                        .filter(|share| !left(share))
                        .map(|share| share.tenant_id.as_str())
                        .collect();
                    let metadata = json!({
                        "to": to, "name": rule.name, "enabled": rule.enabled,
                        "tenants_removed": tenants_removed,
                    });
                    (rule.name, rule.environment, is_removed, metadata)
                }
            };
            if is_removed {
                self.audit_unsubscribe(txn, (source, number), (&to, metadata), environment)?;
            }
            Ok(name)
        })?;
        Ok(MailSubscription { source, name, to, is_active: false })
    }

    fn audit_unsubscribe(
        &self,
        txn: &mut OrgTxn<'_>,
        (source, number): (MailSource, u64),
        (to, metadata): (&str, Value),
        environment: String,
    ) -> Result<()> {
        txn.put(&AuditRow {
            id: self.new_id(),
            action: format!("{}.unsubscribe", source.name()),
            actor: Actor {
                r#type: "system".to_owned(),
                id: "mail".to_owned(),
                label: to.to_owned(),
            },
            target: (source.name().to_owned(), number.to_string()),
            metadata,
            environment: Some(environment),
            ip: None,
            created_at: self.now_ms(),
        })
    }

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
