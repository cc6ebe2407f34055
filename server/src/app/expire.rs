//! Forgetting what has ended: sessions, invites, and what is remembered of requests and events.
//!
//! What has ended is refused or ignored whether or not its record is still there, so this is only
//! about space.
//!
//! ```text
//! kind                      removed from the store
//! session                   14 days after it began, or 3 days after its last use
//! password_reset            when its link ends, an hour after it was made
//! idempotent_request        24 h after its change or its answer was stored
//! billing_event             100 days after it arrived
//! signing_key               48 h after a newer key replaced it
//! embed_session             24 h after its end
//! invite                    30 days after its end
//! alert_event, report_run   after 90 days
//! webhook_delivery          after 30 days
//! audit                     after 400 days
//! ```
//!
//! A key that signs embed tokens outlives its replacement by two days: the last token that it signed lives for at most one, and for a
//! day more its viewer reads `token_expired` instead of an error without a reason. The current key has no `retired_at` and stays.

use inlay_engine::Txn;
use serde::de::DeserializeOwned;

use crate::{
    app::{
        identity::{passwords, sessions::has_ended},
        request::{context::App, idempotency_key::REQUEST_KEPT_MS},
    },
    error::{ApiError, Result},
    store::{
        AlertEvent, AuditRow, BillingEvent, EmbedSession, IdempotentRequest, Invite, OrgTxn,
        PasswordReset, Record, ReportRun, Session, SigningKey, WebhookDelivery, global_delete,
        global_end_session, global_find, global_list, global_orgs, global_records,
    },
};

/// An embed session is retained this long after its end. Its token is accepted for 5 seconds longer (clock skew), while the record
/// is there; that it has expired, the token says by itself.
const EMBED_KEPT_MS: i64 = 24 * 3_600_000;
/// An invite is retained this long after its end, so that the page behind its link says that it expired.
const INVITE_KEPT_MS: i64 = 30 * 86_400_000;
/// A billing event is known for this long: its provider tries for days, and a person for weeks.
const BILLING_EVENT_KEPT_MS: i64 = 100 * 86_400_000;
/// Changes of alerts and runs of reports are kept this long.
const HISTORY_KEPT_MS: i64 = 90 * 86_400_000;
/// Attempts of webhooks are kept this long: a day of them is shown.
const ATTEMPTS_KEPT_MS: i64 = 30 * 86_400_000;
/// Rows of the audit are kept this long: a year's review sees all of its year.
const AUDIT_KEPT_MS: i64 = 400 * 86_400_000;
/// Records removed in one transaction: others wait for it.
const AT_ONCE: usize = 500;

/// Removes one record of a kind that belongs to no organisation, and nothing else.
fn removed(kind: &str) -> impl Fn(&mut Txn, &str) -> Result<()> {
    move |txn, id| {
        global_delete(txn, kind, id);
        Ok(())
    }
}

impl App {
    /// Removes records of what has ended; returns how many.
    ///
    /// The job `expire` calls it every 10 minutes. `AT_ONCE` records go in one transaction, so an organisation with a million audit rows
    /// does not block writes for as long as all of them take.
    ///
    /// Errors: a record that cannot be read; a store that takes no writes. What was removed until then stays removed.
    pub fn expire(&self) -> Result<usize> {
        let now = self.now_ms();
        // A closure each, since every kind has its own field that says when it ended.
        let globals = [
            self.expire_globals::<Session>(
                "session",
                |session| has_ended(session, now),
                global_end_session,
            )?,
            self.expire_globals::<PasswordReset>(
                passwords::KIND,
                |reset| now >= reset.expires_at,
                removed(passwords::KIND),
            )?,
            self.expire_globals::<IdempotentRequest>(
                "idempotent_request",
                |request| now >= request.created_at + REQUEST_KEPT_MS,
                removed("idempotent_request"),
            )?,
            self.expire_globals::<BillingEvent>(
                "billing_event",
                |event| now >= event.received_at + BILLING_EVENT_KEPT_MS,
                removed("billing_event"),
            )?,
            self.expire_globals::<SigningKey>(
                "signing_key",
                |key| key.retired_at.is_some_and(|at| now >= at + EMBED_KEPT_MS * 2),
                removed("signing_key"),
            )?,
        ];
        let records = [
            self.expire_records::<EmbedSession>(|session| {
                now >= session.expires_at + EMBED_KEPT_MS
            })?,
            self.expire_records::<Invite>(|invite| now >= invite.expires_at + INVITE_KEPT_MS)?,
            self.expire_records::<AlertEvent>(|event| now >= event.created_at + HISTORY_KEPT_MS)?,
            self.expire_records::<ReportRun>(|run| now >= run.scheduled_for + HISTORY_KEPT_MS)?,
            self.expire_oldest::<WebhookDelivery>(|attempt| {
                now >= attempt.created_at + ATTEMPTS_KEPT_MS
            })?,
            self.expire_oldest::<AuditRow>(|row| now >= row.created_at + AUDIT_KEPT_MS)?,
        ];
        Ok(globals.iter().chain(&records).sum())
    }

    /// Removes the oldest records of a kind of all organisations, whose ids rise with time; returns how many. Besides
    /// these one record of each organisation is read.
    ///
    /// For kinds whose ids are UUIDv7, such as `audit`: the first record that has not ended is the last that is read, however many follow.
    fn expire_oldest<R: Record>(&self, has_ended: impl Fn(&R) -> bool) -> Result<usize> {
        let mut count = 0;
        for org in global_orgs(&self.engine.keys()) {
            loop {
                let reader = self.org_reader(&org);
                if !reader.list_first::<R>(1)?.first().is_some_and(&has_ended) {
                    break;
                }
                let mut ended: Vec<R> = reader.list_first(AT_ONCE)?;
                ended.retain(&has_ended);
                // The ids rise, so the records that have ended are the first ones: nothing is read twice.
                self.engine.transact(|txn| {
                    let mut org = OrgTxn::new(txn, &org);
                    ended.iter().for_each(|record| org.delete::<R>(record.id()));
                    Ok::<_, ApiError>(())
                })?;
                count += ended.len();
            }
        }
        Ok(count)
    }

    /// Removes records of a kind of all organisations; returns how many.
    ///
    /// All records of the kind are read: their ids do not rise with the time of their end. An embed session of 60 seconds ends before an
    /// older one of 24 hours, and the id of an alert event begins with its rule.
    fn expire_records<R: Record>(&self, has_ended: impl Fn(&R) -> bool) -> Result<usize> {
        let mut ended = global_records::<R>(&self.engine.keys())?;
        ended.retain(|(_, record)| has_ended(record));
        for some in ended.chunks(AT_ONCE) {
            self.engine.transact(|txn| {
                for (org, record) in some {
                    OrgTxn::new(txn, org).delete::<R>(record.id());
                }
                Ok::<_, ApiError>(())
            })?;
        }
        Ok(ended.len())
    }

    /// Removes records of a kind that belong to no organisation; returns how many.
    ///
    /// `remove` takes a record away with what points to it: of a session also the entry under its user.
    fn expire_globals<R: DeserializeOwned>(
        &self,
        kind: &str,
        has_ended: impl Fn(&R) -> bool,
        remove: impl Fn(&mut Txn, &str) -> Result<()>,
    ) -> Result<usize> {
        let all = global_list::<R>(&self.engine.keys(), kind)?;
        let ended: Vec<String> =
            all.into_iter().filter(|(_, record)| has_ended(record)).map(|(id, _)| id).collect();
        for some in ended.chunks(AT_ONCE) {
            self.engine.transact(|txn| {
                for id in some {
                    // A record of the same id may have been stored since the list was read: a second link to a new password, for example.
                    if global_find::<R>(txn, kind, id)?.is_some_and(|record| has_ended(&record)) {
                        remove(txn, id)?;
                    }
                }
                Ok::<_, ApiError>(())
            })?;
        }
        Ok(ended.len())
    }
}
