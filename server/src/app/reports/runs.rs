//! Runs of reports: begun when they are due or asked for, gone on with after a stop, ended with a status.
//!
//! A run knows each of its receivers from the start. What became of one is written down as soon
//! as it is known, so that a crash repeats no more than the attempts that were under way; the file is made
//! anew then, since it is not kept. Times that passed while the server was down are made up for once.
//!
//! ```text
//! next_run_at 08:00    pending → queue                run 0190…: running, boss pending, webhook pending         start_due_reports
//! 08:00:01             leased for 15 minutes          started_at                                                claim_runs
//! 08:00:09             webhook 200                    boss pending, webhook sent                                record_receiver
//! 08:00:10             mail: "try again later"        boss pending, webhook sent
//! 08:00:10             attempt 2, due in 30 to 36 s   running                                                   close_run
//! 08:00:44             mail accepted                  boss sent, webhook sent: succeeded                        close_run
//!
//! the server stops at 08:00:05                        the lease is released at the start; the file is made anew
//! it stops in each of 8 starts                        failed: "the server stopped again and again while it made this report"
//! the next time comes while a run is under way        skipped: "the run before was still under way"
//! ```

use std::collections::{BTreeMap, HashMap};

use inlay_engine::Txn;
use serde_json::json;
use tracing::warn;

use super::schedule::RunTimes;
use crate::{
    app::{
        delivery::{
            backoff::wait_ms,
            queue::{Outcome, attempt_row},
            report_queue::{begin, is_under_way},
        },
        request::{
            callers::{Caller, system_caller},
            context::App,
        },
    },
    error::{ApiError, Code, Result},
    store::{
        Dashboard, Environment, Message, Org, OrgReader, OrgTxn, QueueEntry as _, RecipientStatus,
        ReportRule, ReportRun, RunStatus, RunWork, WebhookDelivery, dequeue, enqueue, global_ids,
        global_records, lease, queued, release,
    },
};

/// Milliseconds of a lease. A run takes at most 10 minutes (`jobs/run_reports.rs`): one whose lease has ended is not worked on.
const LEASE_MS: i64 = 15 * 60_000;
/// Starts of a run, at most: three attempts, and five stops of the server in between.
const STARTS_MAX: u32 = 8;
/// Seconds to wait before each attempt of the mails of a run; their number is that of the attempts. A webhook has one.
const WAITS_S: [u64; 3] = [0, 30, 120];

/// A run to continue, with all records that it needs.
#[derive(Debug, Clone)]
pub struct ReportWork {
    /// The leased entry in the queue, which [`App::close_run`] removes.
    pub work: RunWork,
    /// The rule as it was when this lease of the run began.
    pub rule: ReportRule,
    /// Environment whose data is shown.
    pub environment: Environment,
    /// Dashboard that is shown.
    pub dashboard: Dashboard,
    /// The run so far.
    pub run: ReportRun,
}

impl App {
    /// Begins the runs that are due; returns how many. A rule that cannot be begun keeps no other from it.
    ///
    /// Of a rule whose times passed while the server was down one run is begun, for the earliest of them.
    ///
    /// Errors: none that is expected.
    pub fn start_due_reports(&self) -> Result<usize> {
        let now = self.now_ms();
        let keys = self.engine.keys();
        let mut started = 0;
        for (org, id) in global_ids::<ReportRule>(&keys) {
            let rule = OrgReader::new(keys.clone(), &org).find::<ReportRule>(&id);
            let is_due =
                |rule: &ReportRule| rule.enabled && rule.next_run_at.is_some_and(|at| at <= now);
            let begun = match rule {
                Ok(rule) if rule.as_ref().is_some_and(is_due) => {
                    self.start_due_report(&org, &id, now)
                }
                Ok(_) => continue,
                Err(error) => Err(error),
            };
            match begun {
                Ok(is_begun) => started += usize::from(is_begun),
                Err(error) => {
                    warn!(code = error.code.name(), %error, rule = id, "cannot begin a report");
                }
            }
        }
        Ok(started)
    }

    /// Begins the run of one rule in a transaction; returns whether it was begun.
    fn start_due_report(&self, org: &str, id: &str, now: i64) -> Result<bool> {
        self.engine.transact(|txn| {
            let mut records = OrgTxn::new(txn, org);
            let Some(mut rule) = records.find::<ReportRule>(id)? else { return Ok(false) };
            let Some(due) = rule.next_run_at.filter(|at| rule.enabled && *at <= now) else {
                return Ok(false);
            };
            let run = self.new_run(&rule, "schedule", due);
            // However many times have passed, the next one lies ahead. A zone that is not known any more
            // has none: the rule is switched off, and its last run says why.
            let times = match RunTimes::read(&rule.schedule, now) {
                Ok(times) => times,
                Err(error) => {
                    (rule.enabled, rule.next_run_at) = (false, None);
                    records.put(&rule)?;
                    records.put(&ended(run, now, &[error.to_string()]))?;
                    return Ok(false);
                }
            };
            rule.next_run_at = times.after(now);
            records.put(&rule)?;
            if is_under_way(records.global(), org, id)? {
                let run = ReportRun {
                    status: RunStatus::Skipped,
                    error: Some("the run before was still under way".to_owned()),
                    finished_at: Some(now),
                    deliveries: Vec::new(),
                    ..run
                };
                records.put(&run)?;
                return Ok(false);
            }
            begin(&mut records, self.now_ms(), org, &run)?;
            Ok(true)
        })
    }

    /// Computes anew when reports run that wait longer than their schedule says, as the clock was set back.
    ///
    /// The clock was at 2030, a daily report waits for 2030-01-02, and the clock is right again: it runs tomorrow.
    pub fn realign_reports(&self) -> Result<()> {
        let now = self.now_ms();
        for (org, rule) in global_records::<ReportRule>(&self.engine.keys())? {
            let Some(at) = rule.next_run_at.filter(|_| rule.enabled) else { continue };
            let next = RunTimes::read(&rule.schedule, now).ok().and_then(|times| times.after(now));
            if next.is_some_and(|next| at > next) {
                self.engine.transact(|txn| {
                    let mut records = OrgTxn::new(txn, &org);
                    match records.find::<ReportRule>(&rule.id)? {
                        Some(rule) if rule.next_run_at == Some(at) => {
                            records.put(&ReportRule { next_run_at: next, ..rule })
                        }
                        _ => Ok(()),
                    }
                })?;
            }
        }
        Ok(())
    }

    /// Runs a report now. 409 while it runs.
    ///
    /// It does not move the schedule. Errors: 404; 400 for a rule that has no recipient any more.
    pub fn run_report(&self, caller: &Caller, number: u64) -> Result<ReportRun> {
        let rule = self.report(caller, number)?.rule;
        self.org_txn(&caller.org, |txn| {
            // Its receivers may have stopped its mails meanwhile.
            let rule =
                txn.find::<ReportRule>(&rule.id)?.ok_or_else(|| ApiError::not_found("report"))?;
            if !rule.has_receivers() {
                let message = "a report needs recipients or a webhook_url";
                return Err(ApiError::field(Code::MissingField, "recipients", message));
            }
            if is_under_way(txn.global(), &caller.org, &rule.id)? {
                return Err(ApiError::new(Code::Conflict, "this report is running already"));
            }
            let run = self.new_run(&rule, "manual", self.now_ms());
            begin(txn, self.now_ms(), &caller.org, &run)?;
            let number = rule.number.to_string();
            self.audit(txn, caller, "report.run", ("report", &number), json!({"name": rule.name}))?;
            Ok(run)
        })
    }

    /// A run with all its recipients pending: with a burst each tenant has the rule's recipients, its own, and the webhook.
    fn new_run(&self, rule: &ReportRule, trigger: &str, scheduled_for: i64) -> ReportRun {
        let recipient = |kind: &str, to: &String, tenant_id: Option<&String>| RecipientStatus {
            kind: kind.to_owned(),
            to: to.clone(),
            tenant_id: tenant_id.cloned(),
            status: "pending".to_owned(),
            error: None,
        };
        let mut deliveries = Vec::new();
        let mut to_all = |tenant: Option<&String>, more: &[String]| {
            let further = more.iter().filter(|to| !rule.recipients.contains(to));
            let mails = rule.recipients.iter().chain(further);
            deliveries.extend(mails.map(|to| recipient("email", to, tenant)));
            deliveries.extend(rule.webhook_url.iter().map(|to| recipient("webhook", to, tenant)));
        };
        match rule.burst.as_slice() {
            [] => to_all(None, &[]),
            burst => {
                burst.iter().for_each(|share| to_all(Some(&share.tenant_id), &share.recipients))
            }
        }
        ReportRun {
            id: format!("{}:{}", rule.id, self.new_id()),
            status: RunStatus::Running,
            trigger: trigger.to_owned(),
            scheduled_for,
            started_at: None,
            finished_at: None,
            bytes: None,
            deliveries,
            error: None,
            tenant_id: rule.tenant_id.clone(),
            retries: BTreeMap::new(),
        }
    }

    /// Makes due what was worked on when the server stopped last, and what waits for too long.
    pub fn release_runs(&self) -> Result<()> {
        let now = self.now_ms();
        release::<RunWork>(&self.engine, now, now + LEASE_MS)
    }

    /// Claims up to `room` runs that are due. `under_way` are ids of runs with their organisations.
    ///
    /// One run of an organisation at a time: a large burst delays only reports of its own organisation.
    pub fn claim_runs(
        &self,
        under_way: &HashMap<String, String>,
        room: usize,
    ) -> Result<Vec<ReportWork>> {
        let now = self.now_ms();
        let keys = self.engine.keys();
        let mut due = queued::<RunWork>(&keys)?;
        due.retain(|work| work.due_at <= now && !under_way.contains_key(&work.run));
        // One of an organisation at a time.
        let mut busy: Vec<&String> = under_way.values().collect();
        let mut chosen: Vec<&RunWork> = Vec::new();
        for work in &due {
            if chosen.len() < room && !busy.contains(&&work.org) {
                busy.push(&work.org);
                chosen.push(work);
            }
        }
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        self.engine.transact(|txn| {
            let mut claimed = Vec::new();
            for &work in &chosen {
                if dequeue(txn, work)? {
                    claimed.extend(self.open_run(txn, work, now)?);
                }
            }
            Ok(claimed)
        })
    }

    /// Leases a run. Nothing for one whose rule or organisation is gone.
    fn open_run(&self, txn: &mut Txn, work: &RunWork, now: i64) -> Result<Option<ReportWork>> {
        let mut records = OrgTxn::new(txn, &work.org);
        let rule = work.run.split(':').next().unwrap_or_default();
        let (Some(org), Some(mut rule), Some(mut run)) = (
            records.find::<Org>(&work.org)?,
            records.find::<ReportRule>(rule)?,
            records.find::<ReportRun>(&work.run)?,
        ) else {
            return Ok(None);
        };
        run.started_at = run.started_at.or(Some(now));
        // Without the dashboard the rule is disabled: it could only fail, every day.
        let environment = org.environment_by_id(&rule.environment);
        let dashboard: Option<Dashboard> = records.find(&rule.dashboard_id)?;
        let (Some(environment), Some(dashboard)) = (environment, dashboard) else {
            let reason = "the dashboard was deleted";
            (rule.enabled, rule.next_run_at, rule.updated_at) = (false, None, now);
            records.put(&rule)?;
            records.put(&ended(run, now, &[reason.to_owned()]))?;
            if let Some(environment) = environment {
                let caller = system_caller(&work.org, environment, ("reports", "reports"));
                let metadata = json!({"name": rule.name, "enabled": false, "reason": reason});
                let number = rule.number.to_string();
                self.audit(&mut records, &caller, "report.update", ("report", &number), metadata)?;
            }
            return Ok(None);
        };
        if work.starts >= STARTS_MAX {
            let fault = "the server stopped again and again while it made this report";
            records.put(&ended(run, now, &[fault.to_owned()]))?;
            return Ok(None);
        }
        records.put(&run)?;
        let started = RunWork { starts: work.starts + 1, ..work.clone() };
        let work = lease(records.global(), &started, now + LEASE_MS)?;
        Ok(Some(ReportWork { work, environment: environment.clone(), rule, dashboard, run }))
    }

    /// Writes down what became of one receiver of a run. A mail that may get through later stays pending.
    ///
    /// An attempt at a webhook is listed by `GET /v1/webhooks`, too.
    pub fn record_receiver(&self, of: &ReportWork, at: usize, outcome: &Outcome) -> Result<()> {
        self.engine.transact(|txn| {
            let mut records = OrgTxn::new(txn, &of.work.org);
            let Some(recipient) = of.run.deliveries.get(at) else { return Ok(()) };
            if records.find::<Org>(&of.work.org)?.is_none() {
                return Ok(());
            }
            let is_mail = recipient.kind == "email";
            // An attempt is an attempt, also when its rule was deleted meanwhile.
            if !is_mail {
                let retry = of.run.retries.get(&at).copied().unwrap_or(0);
                let (id, number) = (self.new_id(), of.rule.number);
                let row = attempt_row(id, "report", number, &recipient.to, 1 + retry, outcome);
                let message = Message::Report { run: of.run.id.clone(), receiver: at };
                records.put(&WebhookDelivery { retry, message: Some(message), ..row })?;
            }
            let Some(mut run) = records.find::<ReportRun>(&of.run.id)? else { return Ok(()) };
            let Some(recipient) = run.deliveries.get_mut(at) else { return Ok(()) };
            let goes_on =
                is_mail && !outcome.result.is_final && (of.work.attempt as usize) < WAITS_S.len();
            let status = match &outcome.result.error {
                None => "sent",
                Some(_) if goes_on => "pending",
                Some(_) => "failed",
            };
            status.clone_into(&mut recipient.status);
            recipient.error.clone_from(&outcome.result.error);
            records.put(&run)
        })
    }

    /// Writes down that some receivers of a run get nothing, and why.
    ///
    /// `receivers` are indexes of the run's list: those of a tenant whose file could not be made, for example.
    pub fn fail_receivers(&self, of: &ReportWork, receivers: &[usize], why: &str) -> Result<()> {
        self.engine.transact(|txn| {
            let mut records = OrgTxn::new(txn, &of.work.org);
            let Some(mut run) = records.find::<ReportRun>(&of.run.id)? else { return Ok(()) };
            for (_, recipient) in
                run.deliveries.iter_mut().enumerate().filter(|(at, _)| receivers.contains(at))
            {
                "failed".clone_into(&mut recipient.status);
                recipient.error = Some(why.to_owned());
            }
            records.put(&run)
        })
    }

    /// Whether a run is still wanted: its rule and its own record are there.
    pub fn is_wanted(&self, of: &ReportWork) -> Result<bool> {
        let reader = self.org_reader(&of.work.org);
        Ok(reader.find::<ReportRun>(&of.run.id)?.is_some())
    }

    /// Ends a run, or says when what is pending is tried again. `bytes` is the size of the files that were
    /// made, `faults` what could not be shown or made.
    pub fn close_run(&self, of: &ReportWork, bytes: u64, faults: &[String]) -> Result<()> {
        self.engine.transact(|txn| {
            dequeue(txn, &of.work)?;
            let mut records = OrgTxn::new(txn, &of.work.org);
            let Some(run) = records.find::<ReportRun>(&of.run.id)? else { return Ok(()) };
            // A later attempt makes only the files that are still needed, so that its sum is smaller.
            let bytes = run.bytes.max(Some(bytes)).filter(|bytes| *bytes > 0);
            let run = ReportRun { bytes, ..run };
            let is_pending = run.deliveries.iter().any(|recipient| recipient.status == "pending");
            let wait_s = WAITS_S.get(of.work.attempt as usize).filter(|_| is_pending);
            if let Some(&wait_s) = wait_s {
                let due_at = self.now_ms() + wait_ms(wait_s, None, self.chance());
                let attempt = of.work.attempt + 1;
                let again = RunWork { attempt, ..of.work.clone() }.rescheduled(due_at, false);
                enqueue(records.global(), &again)?;
                return records.put(&run);
            }
            records.put(&ended(run, self.now_ms(), faults))
        })
    }
}

/// A run that is over: what is still pending has failed.
///
/// `[sent, failed]` is partial with `1 of 2 deliveries failed`; `[sent, sent]` with a widget that lacks its data is partial, too.
fn ended(mut run: ReportRun, now: i64, faults: &[String]) -> ReportRun {
    for recipient in run.deliveries.iter_mut().filter(|recipient| recipient.status == "pending") {
        "failed".clone_into(&mut recipient.status);
        recipient.error = recipient.error.take().or_else(|| faults.first().cloned());
    }
    let sent = run.deliveries.iter().filter(|recipient| recipient.status == "sent").count();
    let failed = run.deliveries.len() - sent;
    run.status = match sent {
        0 => RunStatus::Failed,
        _ if failed > 0 || !faults.is_empty() => RunStatus::Partial,
        _ => RunStatus::Succeeded,
    };
    run.finished_at = Some(now);
    let mut summary = faults.to_vec();
    if failed > 0 && (sent > 0 || summary.is_empty()) {
        summary.push(format!("{failed} of {} deliveries failed", run.deliveries.len()));
    }
    run.error = Some(summary.join("; ")).filter(|summary| !summary.is_empty());
    run
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::rule_id;

    fn run(statuses: &[&str]) -> ReportRun {
        let recipient = |status: &&str| RecipientStatus {
            kind: "email".to_owned(),
            to: "a@b.example".to_owned(),
            tenant_id: None,
            status: (*status).to_owned(),
            error: None,
        };
        ReportRun {
            id: format!("{}:x", rule_id(1)),
            status: RunStatus::Running,
            trigger: "schedule".to_owned(),
            scheduled_for: 0,
            started_at: Some(1),
            finished_at: None,
            bytes: None,
            deliveries: statuses.iter().map(recipient).collect(),
            error: None,
            tenant_id: None,
            retries: BTreeMap::new(),
        }
    }

    #[test]
    fn a_run_ends_as_its_deliveries_did() {
        for (statuses, status, error) in [
            (&["sent", "sent"][..], RunStatus::Succeeded, None),
            (&["sent", "failed"], RunStatus::Partial, Some("1 of 2 deliveries failed")),
            (&["failed"], RunStatus::Failed, Some("1 of 1 deliveries failed")),
            (&["pending", "sent"], RunStatus::Partial, Some("1 of 2 deliveries failed")),
        ] {
            let ended = ended(run(statuses), 9, &[]);
            assert_eq!((ended.status, ended.error.as_deref()), (status, error), "{statuses:?}");
            assert!(
                ended.finished_at == Some(9)
                    && ended.deliveries.iter().all(|recipient| recipient.status != "pending")
            );
        }
        let ended = ended(run(&["pending"]), 9, &["the dashboard was deleted".to_owned()]);
        assert_eq!(ended.deliveries[0].error.as_deref(), Some("the dashboard was deleted"));
        assert_eq!(ended.error.as_deref(), Some("the dashboard was deleted"));
        let faults = ["a widget could not be shown: Calls".to_owned()];
        let ended = super::ended(run(&["sent", "sent"]), 9, &faults);
        assert_eq!(
            (ended.status, ended.error.as_deref()),
            (RunStatus::Partial, Some(faults[0].as_str()))
        );
    }
}
