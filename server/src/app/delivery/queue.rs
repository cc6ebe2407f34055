//! The queue of deliveries (`store/durable_queue.rs`): one attempt of a delivery at a time, leased for longer than any attempt takes.
//!
//! Notifications of one rule to one recipient go in order: a recovery never overtakes the alarm
//! that it ends.
//!
//! ```text
//! key                                  to                        attempt
//! delivery/00000001795169856789:a1     https://hooks.acme.com    1         due
//! delivery/00000001795169856789:a2     ops@acme.example          1         due, beside it: another channel
//! delivery/00000001795169870000:b7     https://hooks.acme.com    1         the recovery: waits until a1 has ended
//! delivery/00000001795169886789:a1     https://hooks.acme.com    2         a1 after a failure; still before b7
//! ```
//!
//! A webhook has the waits of the settings, by default three attempts at 0, 30 and 120 seconds; a mail five, at 0, 30, 120, 600 and 1,800.

use std::{collections::HashMap, sync::Arc};

use inlay_engine::{KeyReader, Txn};

use super::backoff::{longest_ms, wait_ms};
use crate::{
    app::request::context::App,
    error::Result,
    outbound::DeliveryResult,
    store::{
        AlertEvent, AlertRule, Channel, Delivery, FurtherChange, Message, Notification, Org,
        OrgTxn, QueueEntry as _, RecipientStatus, WebhookDelivery, decode, dequeue, enqueue,
        first_due, global_scan, lease, release, remove_of, rule_id, stored_key,
    },
};

/// Milliseconds of a lease, longer than any attempt takes: an entry whose lease has ended belongs to a process that is gone.
const LEASE_MS: i64 = 60_000;
/// Attempts of one organisation at once, at most, for each way: its slow receivers hold up its own only,
/// and its webhooks not its mails.
const AT_ONCE_OF_ORG: usize = 4;
/// Attempts at one receiver at once: one that hangs must not take all of its organisation's places.
const AT_ONCE_OF_RECEIVER: usize = 1;
/// Waits before each attempt of a mail: a receiving server that asks to come back later means minutes.
const MAIL_WAITS_S: [u64; 5] = [0, 30, 120, 600, 1_800];

/// Error of a delivery that was in the queue when its rule was changed; stored in the event and shown.
const RULE_CHANGED: &str = "the rule was changed or switched off";

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// When the attempt began, in milliseconds since 1970.
    pub began_at: i64,
    /// The response, or why there was none.
    pub result: DeliveryResult,
}

/// The next step after an attempt.
///
/// `after` decides it, without a clock and a store: a test names the cases.
#[derive(Debug, PartialEq, Eq)]
enum After {
    /// The recipient has the message.
    Done,
    /// The next attempt, so many seconds from now and a bit.
    Again { wait_s: u64 },
    /// Refused for good, such as `no such mailbox`, or the last attempt failed.
    Abandoned,
}

/// Decides the next step after attempt number `attempt` with these waits before each.
///
/// `after(1, failed, &[0, 30, 120])` waits 30 seconds, `after(3, …)` is the end. Attempts count from 1.
fn after(attempt: u32, outcome: &Outcome, waits_s: &[u64]) -> After {
    if outcome.result.error.is_none() {
        return After::Done;
    }
    match waits_s.get(attempt as usize) {
        Some(&wait_s) if !outcome.result.is_final => After::Again { wait_s },
        _ => After::Abandoned,
    }
}

/// Deliveries with an attempt under way, by their ids.
pub type UnderWay = HashMap<String, Arc<Delivery>>;

/// Cache of decoded entries by their keys: most do not change from one poll to the next.
///
/// A key names the due time and the id, and an entry is rewritten under another key when either changes: what is known by its key is current.
#[derive(Default)]
pub struct Queued(HashMap<Vec<u8>, Arc<Delivery>>);

impl Queued {
    /// All entries, in order of due times.
    fn read(&mut self, keys: &KeyReader) -> Result<Vec<Arc<Delivery>>> {
        let mut known = HashMap::new();
        let mut pending = Vec::new();
        for (key, bytes) in global_scan(keys, Delivery::KIND) {
            let one = match self.0.remove(&key) {
                Some(one) => one,
                None => Arc::new(decode(&bytes)?),
            };
            pending.push(Arc::clone(&one));
            known.insert(key, one);
        }
        self.0 = known;
        Ok(pending)
    }

    /// Forgets an entry that is taken from its key: another one may come there.
    fn forget(&mut self, one: &Delivery) {
        self.0.remove(&stored_key(one));
    }
}

/// The deliveries to attempt at `now`: due, the oldest of their rule and recipient, and within the limits of
/// concurrent attempts of an organisation and of a recipient. Organisations take turns. `pending` is in order
/// of due times.
///
/// ```text
/// due: 01 02 03 04 05 of org a at five receivers, 10 of org b, room for 3      01, 10, 02
/// due: 1 and 2 of org a at one receiver                                        1
/// due: 2 of rule 7, while 1 of rule 7 to the same receiver waits for later     none: a recovery waits for its alarm
/// ```
fn choose(
    pending: &[Arc<Delivery>],
    under_way: &UnderWay,
    now: i64,
    room: usize,
) -> Vec<Arc<Delivery>> {
    type Line<'a> = (&'a str, u64, Option<&'a str>, Channel, &'a str);
    fn line(one: &Delivery) -> Line<'_> {
        // A mail may be about many tenants, so that those of a rule go one after the other.
        let tenant = one.notification.tenant_id.as_deref();
        let tenant = tenant.filter(|_| one.channel == Channel::Webhook);
        (&one.org, one.alert, tenant, one.channel, &one.to)
    }
    // The head of a line is its oldest entry, by its id: an entry that waits for its next attempt stands later in the queue than a newer one.
    let mut heads: HashMap<Line<'_>, &str> = HashMap::new();
    for one in pending {
        let head = heads.entry(line(one)).or_insert(&one.id);
        *head = (*head).min(&one.id);
    }
    let mut of_org: HashMap<(&str, Channel), usize> = HashMap::new();
    let mut of_receiver: HashMap<(&str, Channel, &str), usize> = HashMap::new();
    for one in under_way.values() {
        *of_org.entry((&one.org, one.channel)).or_default() += 1;
        *of_receiver.entry((&one.org, one.channel, &one.to)).or_default() += 1;
    }
    // What may go, with how much of its organisation goes before it.
    let mut may_go: Vec<(usize, &Arc<Delivery>)> = Vec::new();
    for one in pending.iter().take_while(|one| one.due_at <= now) {
        let is_head = heads.get(&line(one)) == Some(&one.id.as_str());
        let busy = of_org.entry((&one.org, one.channel)).or_default();
        let at_receiver = of_receiver.entry((&one.org, one.channel, &one.to)).or_default();
        let has_room = *busy < AT_ONCE_OF_ORG && *at_receiver < AT_ONCE_OF_RECEIVER;
        if is_head && has_room && !under_way.contains_key(&one.id) {
            may_go.push((*busy, one));
            *busy += 1;
            *at_receiver += 1;
        }
    }
    may_go.sort_by_key(|(turn, _)| *turn);
    may_go.into_iter().take(room).map(|(_, one)| Arc::clone(one)).collect()
}

impl App {
    /// Enqueues a notification to the webhook of a rule, if there is `room`; its status for the event.
    ///
    /// `None` for a rule without a webhook. Without room the status is `failed` with `too many notifications at once`, and nothing is enqueued.
    pub fn enqueue_webhook(
        &self,
        txn: &mut OrgTxn<'_>,
        org: &str,
        rule: &AlertRule,
        (event, notification): (&str, &Notification),
        room: usize,
    ) -> Result<Option<RecipientStatus>> {
        let Some(to) = &rule.webhook_url else { return Ok(None) };
        let status = pending(Channel::Webhook, to);
        if room == 0 {
            let error = Some("too many notifications at once".to_owned());
            return Ok(Some(RecipientStatus { status: "failed".to_owned(), error, ..status }));
        }
        let delivery = self.delivery(org, Channel::Webhook, to, event, notification);
        enqueue(txn.global(), &delivery)?;
        Ok(Some(status))
    }

    /// Enqueues the changes of one evaluation to the mail addresses of its rule: one mail to each, however many tenants it is about.
    ///
    /// `changes` are ids of events with their notifications; the first event has the status of the mails.
    pub fn enqueue_mails(
        &self,
        txn: &mut OrgTxn<'_>,
        org: &str,
        rule: &AlertRule,
        changes: &[(String, Notification)],
    ) -> Result<()> {
        let Some(((event, first), rest)) = changes.split_first() else { return Ok(()) };
        let further = |(_, change): &(String, Notification)| FurtherChange {
            tenant_id: change.tenant_id.clone(),
            state: change.state,
            value: change.value,
        };
        for to in &rule.email_to {
            let delivery = self.delivery(org, Channel::Email, to, event, first);
            let further = rest.iter().map(further).collect();
            enqueue(txn.global(), &Delivery { further, ..delivery })?;
        }
        Ok(())
    }

    /// A delivery of a notification, which is not in the queue yet. `event` is empty for a test.
    ///
    /// The first attempt is due after the first wait of its channel, by default at once.
    pub fn delivery(
        &self,
        org: &str,
        channel: Channel,
        to: &str,
        event: &str,
        notification: &Notification,
    ) -> Delivery {
        let wait = self.waits_s(channel).first().map_or(0, |&wait| wait as i64 * 1_000);
        Delivery {
            id: self.new_id(),
            org: org.to_owned(),
            due_at: self.now_ms() + wait,
            is_leased: false,
            attempt: 1,
            channel,
            to: to.to_owned(),
            alert: notification.alert,
            event: event.to_owned(),
            notification: notification.clone(),
            retry: 0,
            further: Vec::new(),
        }
    }

    /// Leases up to `room` due deliveries.
    ///
    /// `under_way` are the deliveries that this process works on. A delivery whose rule has another recipient by now fails without an attempt.
    ///
    /// Errors: a record that cannot be read; a store that takes no writes.
    pub fn claim_deliveries(
        &self,
        known: &mut Queued,
        under_way: &UnderWay,
        room: usize,
    ) -> Result<Vec<Delivery>> {
        let keys = self.engine.keys();
        let now = self.now_ms();
        // Most of the time nothing is due, and the first key says so.
        if room == 0 || first_due::<Delivery>(&keys).is_none_or(|due_at| due_at > now) {
            return Ok(Vec::new());
        }
        let chosen = choose(&known.read(&keys)?, under_way, now, room);
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        chosen.iter().for_each(|one| known.forget(one));
        self.engine.transact(|txn| {
            let mut claimed = Vec::new();
            for one in &chosen {
                if !dequeue(txn, &**one)? {
                    continue;
                }
                let rule: Option<AlertRule> =
                    OrgTxn::new(txn, &one.org).find(&rule_id(one.alert))?;
                // A rule that is gone, or has other receivers now, notifies this one no more.
                if rule.is_some_and(|rule| names(&rule, one)) {
                    claimed.push(lease(txn, &**one, now + LEASE_MS)?);
                } else {
                    let mut records = OrgTxn::new(txn, &one.org);
                    set_status(&mut records, one, "failed", Some(RULE_CHANGED))?;
                }
            }
            Ok(claimed)
        })
    }

    /// Releases the leases of the process before, and entries that are due later than any backoff allows,
    /// because the clock was set back.
    ///
    /// Called at the start, before anything is claimed. At most what was under way is sent twice, with the same `webhook-id`.
    pub fn release_deliveries(&self) -> Result<()> {
        let now = self.now_ms();
        let longest = [Channel::Email, Channel::Webhook]
            .into_iter()
            .flat_map(|channel| self.waits_s(channel))
            .max();
        let latest = now + longest.map_or(0, |&wait| longest_ms(wait)).max(LEASE_MS);
        release::<Delivery>(&self.engine, now, latest)
    }

    /// Stores the outcome of an attempt, and enqueues the next one.
    ///
    /// Nothing is stored for an organisation that was deleted meanwhile.
    pub fn settle(&self, delivery: &Delivery, outcome: &Outcome) -> Result<()> {
        self.engine.transact(|txn| {
            let is_pending = dequeue(txn, delivery)?;
            let mut records = OrgTxn::new(txn, &delivery.org);
            if records.find::<Org>(&delivery.org)?.is_none() {
                return Ok(());
            }
            if delivery.channel == Channel::Webhook {
                records.put(&alert_attempt(self.new_id(), delivery, outcome))?;
            }
            // A retry by hand is a single attempt.
            let waits_s = if delivery.retry > 0 { &[] } else { self.waits_s(delivery.channel) };
            let next = after(delivery.attempt, outcome, waits_s);
            // Its rule may have been changed during the attempt; then no other one follows.
            let status = match next {
                After::Done => "sent",
                After::Again { .. } if is_pending => "pending",
                After::Again { .. } | After::Abandoned => "failed",
            };
            set_status(&mut records, delivery, status, outcome.result.error.as_deref())?;
            if let After::Again { wait_s } = next
                && is_pending
            {
                let attempt = delivery.attempt + 1;
                let retry_after_s = outcome.result.retry_after_s;
                let due_at = self.now_ms() + wait_ms(wait_s, retry_after_s, self.chance());
                let again = Delivery { attempt, ..delivery.clone() }.rescheduled(due_at, false);
                enqueue(records.global(), &again)?;
            }
            Ok(())
        })
    }

    /// Seconds to wait before each attempt; their number is that of the attempts.
    fn waits_s(&self, channel: Channel) -> &[u64] {
        match channel {
            Channel::Email => &MAIL_WAITS_S,
            Channel::Webhook => &self.settings.webhook_waits_s,
        }
    }
}

/// The record of an attempt to notify a webhook of an alert.
///
/// The message is stored with it, so that it can be sent again by hand.
pub fn alert_attempt(id: String, delivery: &Delivery, outcome: &Outcome) -> WebhookDelivery {
    let Delivery { alert, to, attempt, retry, .. } = delivery;
    let message = Message::Alert {
        delivery: delivery.id.clone(),
        event: delivery.event.clone(),
        notification: Box::new(delivery.notification.clone()),
    };
    let row = attempt_row(id, "alert", *alert, to, *attempt, outcome);
    WebhookDelivery { retry: *retry, message: Some(message), ..row }
}

/// The record of an attempt, without its message.
///
/// `status_code` 503 has the receiver's text as `response_excerpt`; 0 has an `error` such as `connection refused`.
pub fn attempt_row(
    id: String,
    source: &str,
    source_id: u64,
    url: &str,
    attempt: u32,
    outcome: &Outcome,
) -> WebhookDelivery {
    let DeliveryResult { status_code, error, excerpt, took, .. } = outcome.result.clone();
    WebhookDelivery {
        id,
        source: source.to_owned(),
        source_id,
        webhook_url: url.to_owned(),
        attempt,
        status_code,
        // An answer that says no speaks for itself.
        error: error.filter(|_| status_code == 0),
        response_excerpt: excerpt,
        duration_ms: took.as_millis() as u64,
        created_at: outcome.began_at,
        retry: 0,
        message: None,
    }
}

/// Whether a rule has the receiver of a delivery.
fn names(rule: &AlertRule, delivery: &Delivery) -> bool {
    match delivery.channel {
        Channel::Email => rule.email_to.contains(&delivery.to),
        Channel::Webhook => rule.webhook_url.as_ref() == Some(&delivery.to),
    }
}

/// The status of a delivery that waits.
///
/// `{"kind": "email", "to": "ops@acme.example", "status": "pending", "error": null}`.
pub fn pending(channel: Channel, to: &str) -> RecipientStatus {
    RecipientStatus {
        kind: kind_of(channel).to_owned(),
        to: to.to_owned(),
        tenant_id: None,
        status: "pending".to_owned(),
        error: None,
    }
}

/// Sets the status of a delivery in its alert event. Of a mail about several, that is the first; the others refer to it.
pub fn set_status(
    records: &mut OrgTxn<'_>,
    delivery: &Delivery,
    status: &str,
    error: Option<&str>,
) -> Result<()> {
    // A test has no event.
    if delivery.event.is_empty() {
        return Ok(());
    }
    let Some(mut event) = records.find::<AlertEvent>(&delivery.event)? else { return Ok(()) };
    let kind = kind_of(delivery.channel);
    let of_it =
        |recipient: &&mut RecipientStatus| recipient.kind == kind && recipient.to == delivery.to;
    let Some(recipient) = event.deliveries.iter_mut().find(of_it) else { return Ok(()) };
    // A receiver that has the message has it, also when it fails once more.
    if delivery.retry > 0 && recipient.status == "sent" {
        return Ok(());
    }
    status.clone_into(&mut recipient.status);
    recipient.error = error.map(str::to_owned);
    records.put(&event)
}

/// Removes the queued deliveries of a rule, which then count as failed.
///
/// Called when a rule is switched off or deleted; the event shows `the rule was changed or switched off`.
pub fn drop_deliveries(txn: &mut Txn, org: &str, alert: u64) -> Result<()> {
    let is_of_rule = |one: &Delivery| one.alert == alert;
    for one in remove_of(txn, org, is_of_rule)? {
        set_status(&mut OrgTxn::new(txn, org), &one, "failed", Some(RULE_CHANGED))?;
    }
    Ok(())
}

/// The name of a channel in the API.
pub fn kind_of(channel: Channel) -> &'static str {
    match channel {
        Channel::Email => "email",
        Channel::Webhook => "webhook",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        app::Client,
        base::locale::Locale,
        store::{AlertState, ConditionType, queued},
    };

    fn outcome(error: Option<&str>, is_final: bool) -> Outcome {
        let result = DeliveryResult {
            status_code: 0,
            error: error.map(str::to_owned),
            excerpt: None,
            is_final,
            retry_after_s: None,
            took: Duration::ZERO,
        };
        Outcome { began_at: 0, result }
    }

    fn delivery(id: &str, org: &str, alert: u64, due_at: i64) -> Delivery {
        let notification = Notification {
            alert,
            name: String::new(),
            dashboard_id: String::new(),
            dashboard_name: String::new(),
            widget_id: String::new(),
            widget_title: String::new(),
            condition_type: ConditionType::NoData,
            operator: None,
            threshold_value: None,
            state: AlertState::Firing,
            fired_at: 0,
            resolved_at: None,
            tenant_id: None,
            value: None,
            window_from: 0,
            window_to: 0,
            reason: None,
            locale: Locale::En,
        };
        Delivery {
            id: id.to_owned(),
            org: org.to_owned(),
            due_at,
            is_leased: false,
            attempt: 1,
            channel: Channel::Webhook,
            to: "https://acme.com/x".to_owned(),
            alert,
            event: String::new(),
            notification,
            retry: 0,
            further: Vec::new(),
        }
    }

    #[test]
    fn an_attempt_that_fails_after_its_rule_was_changed_leaves_nothing_pending() {
        let app = App::in_memory();
        let made = app
            .register("a@b.example", "correct horse battery", "A", "A", Client::default())
            .unwrap();
        let org = made.org.id;
        let event = AlertEvent {
            id: format!("{}:{}", rule_id(1), app.new_id()),
            state: AlertState::Firing,
            value: None,
            threshold_value: None,
            window_from: 0,
            window_to: 1,
            tenant_id: None,
            reason: None,
            deliveries: vec![RecipientStatus {
                kind: "webhook".to_owned(),
                to: "https://acme.com/x".to_owned(),
                tenant_id: None,
                status: "pending".to_owned(),
                error: None,
            }],
            mails_with: None,
            created_at: 0,
        };
        let under_way = Delivery {
            org: org.clone(),
            event: event.id.clone(),
            is_leased: true,
            ..delivery("1", "a", 1, app.now_ms())
        };
        app.org_txn(&org, |txn| {
            txn.put(&event)?;
            enqueue(txn.global(), &under_way)?;
            drop_deliveries(txn.global(), &org, 1)
        })
        .unwrap();
        app.settle(&under_way, &outcome(Some("no answer"), false)).unwrap();
        let stored: AlertEvent = app.org_reader(&org).find(&event.id).unwrap().unwrap();
        assert_eq!(stored.deliveries[0].status, "failed");
        assert!(queued::<Delivery>(&app.engine.keys()).unwrap().is_empty());
    }

    fn chosen(pending: &[Delivery], under_way: &[Delivery], now: i64, room: usize) -> Vec<String> {
        let shared = |one: &Delivery| Arc::new(one.clone());
        let under_way = under_way.iter().map(|one| (one.id.clone(), shared(one))).collect();
        let pending: Vec<_> = pending.iter().map(shared).collect();
        let chosen = choose(&pending, &under_way, now, room);
        chosen.into_iter().map(|one| one.id.clone()).collect()
    }

    /// Each at a receiver of its own.
    fn apart(id: u64, org: &str, due_at: i64) -> Delivery {
        Delivery {
            to: format!("https://acme.com/{id}"),
            ..delivery(&format!("{id:02}"), org, id, due_at)
        }
    }

    #[test]
    fn attempts_end_when_delivered_refused_for_good_or_used_up() {
        let waits = [0, 30, 120];
        let failed = outcome(Some("no"), false);
        assert_eq!(after(1, &outcome(None, false), &waits), After::Done);
        assert_eq!(after(1, &failed, &waits), After::Again { wait_s: 30 });
        assert_eq!(after(2, &failed, &waits), After::Again { wait_s: 120 });
        assert_eq!(after(3, &failed, &waits), After::Abandoned);
        assert_eq!(after(1, &outcome(Some("no such mailbox"), true), &waits), After::Abandoned);
        assert_eq!(after(1, &failed, &[]), After::Abandoned);
    }

    #[test]
    fn what_is_due_is_chosen_in_order_and_within_bounds() {
        let pending: Vec<Delivery> = (1..=9).map(|n| apart(n, "a", n as i64)).collect();
        assert_eq!(chosen(&pending, &[], 3, 10), ["01", "02", "03"]);
        assert_eq!(chosen(&pending, &[], 9, 2), ["01", "02"]);
        assert_eq!(
            chosen(&pending, &[], 9, 10),
            ["01", "02", "03", "04"],
            "four of an organisation"
        );
        assert_eq!(chosen(&pending, &pending[..2], 9, 10), ["03", "04"]);
        let mut mixed = pending;
        mixed.push(apart(10, "b", 9));
        mixed.push(Delivery { channel: Channel::Email, ..apart(11, "a", 9) });
        assert_eq!(
            chosen(&mixed, &[], 9, 3),
            ["01", "10", "11"],
            "organisations and ways take turns"
        );
    }

    #[test]
    fn a_receiver_that_hangs_takes_one_place() {
        let pending = [delivery("1", "a", 1, 1), delivery("2", "a", 2, 2), apart(3, "a", 3)];
        assert_eq!(chosen(&pending, &[], 9, 10), ["1", "03"]);
        assert_eq!(chosen(&pending, &pending[..1], 9, 10), ["03"]);
        // The same address of another organisation is another receiver.
        assert_eq!(chosen(&[delivery("4", "b", 1, 1)], &pending[..1], 9, 10), ["4"]);
    }

    #[test]
    fn what_one_rule_tells_one_receiver_goes_in_order() {
        // The first waits for its next attempt; the second of the same rule is due before it.
        let first = delivery("1", "a", 7, 100);
        let second = delivery("2", "a", 7, 50);
        let other = Delivery { channel: Channel::Email, ..delivery("3", "a", 7, 60) };
        assert_eq!(chosen(&[second.clone(), other.clone(), first.clone()], &[], 70, 10), ["3"]);
        assert_eq!(
            chosen(&[second.clone(), other.clone(), first.clone()], &[], 100, 10),
            ["3", "1"]
        );
        assert_eq!(chosen(&[second, other], &[], 70, 10), ["2", "3"]);
    }
}
