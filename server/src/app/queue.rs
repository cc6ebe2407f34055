//! The queue of what is to be delivered: durable, in order, each at most once at a time.
//!
//! An entry is claimed by moving its due time behind the longest time that an attempt takes; who dies
//! with it leaves it to be claimed again then. So nothing is lost, and what may be doubled is the one
//! attempt that was under way. What one rule tells one receiver goes in order: a recovery never
//! overtakes the alarm that it ends.

use std::{collections::HashMap, sync::Arc};

use inlay_engine::{KeyReader, Txn};

use super::context::App;
use crate::{
    error::Result,
    outbound::{Carried, Packet},
    store::{
        AlertEvent, AlertRule, Delivery, Message, Notice, Org, OrgTxn, Told, Way, WebhookDelivery,
        decode, global_delete, global_find, global_list, global_put, global_scan, rule_id,
    },
};

/// Kind of its records, which belong to no organisation.
pub const KIND: &str = "delivery";
/// Longer than any attempt takes.
const LEASE_MS: i64 = 60_000;
/// Attempts of one organisation at once, at most, for each way: its slow receivers hold up its own only,
/// and its webhooks not its mails.
const AT_ONCE_OF_ORG: usize = 4;
/// Attempts at one receiver at once: one that hangs must not take all of its organisation's places.
const AT_ONCE_OF_RECEIVER: usize = 1;
/// Waits before each attempt of a mail: a receiving server that asks to come back later means minutes.
const MAIL_WAITS_S: [u64; 5] = [0, 30, 120, 600, 1_800];

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// When it began.
    pub began_at: i64,
    /// What came of it.
    pub carried: Carried,
}

/// What comes after an attempt.
#[derive(Debug, PartialEq, Eq)]
enum After {
    Done,
    Again { wait_ms: i64 },
    Abandoned,
}

/// Decides what comes after attempt number `attempt` with these waits before each.
fn after(attempt: u32, outcome: &Outcome, waits_s: &[u64]) -> After {
    if outcome.carried.error.is_none() {
        return After::Done;
    }
    match waits_s.get(attempt as usize) {
        Some(&wait) if !outcome.carried.is_final => After::Again { wait_ms: wait as i64 * 1_000 },
        _ => After::Abandoned,
    }
}

/// What is under way: deliveries by their ids.
pub type UnderWay = HashMap<String, Arc<Delivery>>;

/// Entries of the queue that were read already, by their keys: most stay as they are from one look to the
/// next.
#[derive(Default)]
pub struct Queued(HashMap<Vec<u8>, Arc<Delivery>>);

impl Queued {
    /// All entries, in order of due times.
    fn read(&mut self, keys: &KeyReader) -> Result<Vec<Arc<Delivery>>> {
        let mut known = HashMap::new();
        let mut pending = Vec::new();
        for (key, bytes) in global_scan(keys, KIND) {
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
        self.0.remove(format!("g/{KIND}/{}", key_of(one)).as_bytes());
    }
}

/// The next to be tried at `now`: due, the oldest of what its rule tells its receiver, and within what
/// an organisation and a receiver may have under way. Organisations take turns. `pending` is in order of
/// due times.
fn choose(
    pending: &[Arc<Delivery>],
    under_way: &UnderWay,
    now: i64,
    room: usize,
) -> Vec<Arc<Delivery>> {
    type Line<'a> = (&'a str, u64, Option<&'a str>, Way, &'a str);
    fn line(one: &Delivery) -> Line<'_> {
        (&one.org, one.alert, one.notice.tenant_id.as_deref(), one.way, &one.to)
    }
    let mut heads: HashMap<Line<'_>, &str> = HashMap::new();
    for one in pending {
        let head = heads.entry(line(one)).or_insert(&one.id);
        *head = (*head).min(&one.id);
    }
    let mut of_org: HashMap<(&str, Way), usize> = HashMap::new();
    let mut of_receiver: HashMap<(&str, Way, &str), usize> = HashMap::new();
    for one in under_way.values() {
        *of_org.entry((&one.org, one.way)).or_default() += 1;
        *of_receiver.entry((&one.org, one.way, &one.to)).or_default() += 1;
    }
    // What may go, with how much of its organisation goes before it.
    let mut may_go: Vec<(usize, &Arc<Delivery>)> = Vec::new();
    for one in pending.iter().take_while(|one| one.due_at <= now) {
        let is_head = heads.get(&line(one)) == Some(&one.id.as_str());
        let busy = of_org.entry((&one.org, one.way)).or_default();
        let at_receiver = of_receiver.entry((&one.org, one.way, &one.to)).or_default();
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
    /// Puts a notice on its way to the receivers of a rule, of which the first `room` get it; who they are,
    /// as the event tells it.
    pub fn enqueue(
        &self,
        txn: &mut OrgTxn<'_>,
        org: &str,
        rule: &AlertRule,
        event: &str,
        notice: &Notice,
        room: usize,
    ) -> Result<Vec<Told>> {
        let mails = rule.email_to.iter().map(|to| (Way::Email, to));
        let ways = mails.chain(rule.webhook_url.iter().map(|to| (Way::Webhook, to)));
        let mut told = Vec::new();
        for (turn, (way, to)) in ways.enumerate() {
            if turn >= room {
                told.push(Told {
                    kind: kind_of(way).to_owned(),
                    to: to.clone(),
                    tenant_id: None,
                    status: "failed".to_owned(),
                    error: Some("too much was told at once".to_owned()),
                });
                continue;
            }
            let delivery = Delivery {
                id: self.new_id(),
                org: org.to_owned(),
                due_at: self.now_ms()
                    + self.waits_s(way).first().map_or(0, |&wait| wait as i64 * 1_000),
                is_leased: false,
                attempt: 1,
                way,
                to: to.clone(),
                alert: rule.number,
                event: event.to_owned(),
                notice: notice.clone(),
                retry: 0,
            };
            put(txn.global(), &delivery)?;
            told.push(Told {
                kind: kind_of(way).to_owned(),
                to: to.clone(),
                tenant_id: None,
                status: "pending".to_owned(),
                error: None,
            });
        }
        Ok(told)
    }

    /// Claims up to `room` of what is due.
    pub fn claim(
        &self,
        known: &mut Queued,
        under_way: &UnderWay,
        room: usize,
    ) -> Result<Vec<Delivery>> {
        let keys = self.engine.keys();
        let now = self.now_ms();
        // Most of the time nothing is due, and the first key says so.
        let first = keys.first(b"g/delivery/", b"g/delivery/");
        if room == 0 || first.is_none_or(|(key, _)| due_of(&key) > now) {
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
                if global_find::<Delivery>(txn, KIND, &key_of(one))?.is_none() {
                    continue;
                }
                global_delete(txn, KIND, &key_of(one));
                let rule: Option<AlertRule> =
                    OrgTxn::new(txn, &one.org).find(&rule_id(one.alert))?;
                // Nobody is told any more of a rule that is gone, or that does not name him any more.
                if rule.is_some_and(|rule| names(&rule, one)) {
                    let due_at = now + LEASE_MS;
                    let leased = Delivery { due_at, is_leased: true, ..(**one).clone() };
                    put(txn, &leased)?;
                    claimed.push(leased);
                }
            }
            Ok(claimed)
        })
    }

    /// Makes due what was being tried when the server stopped last, as nobody is at it any more, and what
    /// waits longer than anything does, as the clock was set back.
    pub fn release(&self) -> Result<()> {
        let now = self.now_ms();
        let left = global_list::<Delivery>(&self.engine.keys(), KIND)?;
        let longest =
            [Way::Email, Way::Webhook].into_iter().flat_map(|way| self.waits_s(way)).max();
        let latest = now + longest.map_or(0, |&wait| wait as i64 * 1_000).max(LEASE_MS);
        let is_left = |one: &Delivery| one.is_leased || one.due_at > latest;
        let left: Vec<_> = left.into_iter().filter(|(_, one)| is_left(one)).collect();
        if left.is_empty() {
            return Ok(());
        }
        self.engine.transact(|txn| {
            for (key, one) in &left {
                global_delete(txn, KIND, key);
                put(txn, &Delivery { due_at: now, is_leased: false, ..one.clone() })?;
            }
            Ok(())
        })
    }

    /// What is carried for a delivery, in an attempt that begins at `at_ms`.
    pub fn alert_packet(&self, delivery: &Delivery, at_ms: i64) -> Result<Packet> {
        Ok(match delivery.way {
            Way::Webhook => Packet::Post(self.alert_post(delivery, at_ms)?),
            Way::Email => {
                let mail = self.alert_mail(&delivery.id, &delivery.to, &delivery.notice)?;
                Packet::Mail(Box::new(mail))
            }
        })
    }

    /// Writes down what became of an attempt, and what comes next.
    pub fn settle(&self, delivery: &Delivery, outcome: &Outcome) -> Result<()> {
        self.engine.transact(|txn| {
            let is_pending = global_find::<Delivery>(txn, KIND, &key_of(delivery))?.is_some();
            global_delete(txn, KIND, &key_of(delivery));
            let mut records = OrgTxn::new(txn, &delivery.org);
            if records.find::<Org>(&delivery.org)?.is_none() {
                return Ok(());
            }
            if delivery.way == Way::Webhook {
                records.put(&alert_attempt(self.new_id(), delivery, outcome))?;
            }
            // A retry by hand is a single attempt.
            let waits_s = if delivery.retry > 0 { &[] } else { self.waits_s(delivery.way) };
            let next = after(delivery.attempt, outcome, waits_s);
            let status = match next {
                After::Done => "sent",
                After::Again { .. } => "pending",
                After::Abandoned => "failed",
            };
            let event: Option<AlertEvent> = records.find(&delivery.event)?;
            if let Some(mut event) = event {
                let kind = kind_of(delivery.way);
                let of_it = |told: &&mut Told| told.kind == kind && told.to == delivery.to;
                if let Some(told) = event.deliveries.iter_mut().find(of_it) {
                    status.clone_into(&mut told.status);
                    told.error.clone_from(&outcome.carried.error);
                }
                records.put(&event)?;
            }
            if let After::Again { wait_ms } = next
                && is_pending
            {
                let attempt = delivery.attempt + 1;
                let due_at = self.now_ms() + wait_ms;
                let again = Delivery { attempt, due_at, is_leased: false, ..delivery.clone() };
                put(records.global(), &again)?;
            }
            Ok(())
        })
    }

    fn waits_s(&self, way: Way) -> &[u64] {
        match way {
            Way::Email => &MAIL_WAITS_S,
            Way::Webhook => &self.settings.webhook_waits_s,
        }
    }
}

/// The record of an attempt to notify a webhook of an alert.
pub fn alert_attempt(id: String, delivery: &Delivery, outcome: &Outcome) -> WebhookDelivery {
    let Delivery { alert, to, attempt, retry, .. } = delivery;
    let message = Message::Alert {
        delivery: delivery.id.clone(),
        event: delivery.event.clone(),
        notice: Box::new(delivery.notice.clone()),
    };
    let row = attempt_row(id, "alert", *alert, to, *attempt, outcome);
    WebhookDelivery { retry: *retry, message: Some(message), ..row }
}

/// The record of an attempt, without its message.
pub fn attempt_row(
    id: String,
    source: &str,
    source_id: u64,
    url: &str,
    attempt: u32,
    outcome: &Outcome,
) -> WebhookDelivery {
    let Carried { status_code, error, excerpt, took, .. } = outcome.carried.clone();
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
    match delivery.way {
        Way::Email => rule.email_to.contains(&delivery.to),
        Way::Webhook => rule.webhook_url.as_ref() == Some(&delivery.to),
    }
}

/// Forgets what a rule still had to tell.
pub fn drop_deliveries(txn: &mut Txn, org: &str, alert: u64) -> Result<()> {
    for (key, bytes) in global_scan(txn, KIND) {
        // Most entries are those of others, and are not read for that.
        let is_ours = std::str::from_utf8(&bytes).is_ok_and(|text| text.contains(org));
        if !is_ours {
            continue;
        }
        let one: Delivery = decode(&bytes)?;
        if one.org == org && one.alert == alert {
            txn.delete(&key);
        }
    }
    Ok(())
}

/// The name of a way, as others read it.
pub fn kind_of(way: Way) -> &'static str {
    match way {
        Way::Email => "email",
        Way::Webhook => "webhook",
    }
}

/// Key of an entry: the queue is in order of due times.
pub fn key_of(delivery: &Delivery) -> String {
    format!("{:020}:{}", delivery.due_at.max(0), delivery.id)
}

fn due_of(key: &[u8]) -> i64 {
    let text = key.get(b"g/delivery/".len()..).and_then(|rest| rest.get(..20));
    let digits = text.and_then(|text| std::str::from_utf8(text).ok());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Adds an entry.
pub fn put(txn: &mut Txn, delivery: &Delivery) -> Result<()> {
    global_put(txn, KIND, &key_of(delivery), delivery)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::{AlertState, ConditionType};

    fn outcome(error: Option<&str>, is_final: bool) -> Outcome {
        let carried = Carried {
            status_code: 0,
            error: error.map(str::to_owned),
            excerpt: None,
            is_final,
            took: Duration::ZERO,
        };
        Outcome { began_at: 0, carried }
    }

    fn delivery(id: &str, org: &str, alert: u64, due_at: i64) -> Delivery {
        let notice = Notice {
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
        };
        Delivery {
            id: id.to_owned(),
            org: org.to_owned(),
            due_at,
            is_leased: false,
            attempt: 1,
            way: Way::Webhook,
            to: "https://acme.com/x".to_owned(),
            alert,
            event: String::new(),
            notice,
            retry: 0,
        }
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
        assert_eq!(after(1, &failed, &waits), After::Again { wait_ms: 30_000 });
        assert_eq!(after(2, &failed, &waits), After::Again { wait_ms: 120_000 });
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
        mixed.push(Delivery { way: Way::Email, ..apart(11, "a", 9) });
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
        let other = Delivery { way: Way::Email, ..delivery("3", "a", 7, 60) };
        assert_eq!(chosen(&[second.clone(), other.clone(), first.clone()], &[], 70, 10), ["3"]);
        assert_eq!(
            chosen(&[second.clone(), other.clone(), first.clone()], &[], 100, 10),
            ["3", "1"]
        );
        assert_eq!(chosen(&[second, other], &[], 70, 10), ["2", "3"]);
    }
}
