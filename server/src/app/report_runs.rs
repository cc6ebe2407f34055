//! Runs of reports: begun when they are due or asked for, gone on with after a stop, ended with a status.
//!
//! A run knows each of its receivers from the start. What became of one is written down before the next
//! is tried, so that a crash repeats no more than the attempt that was under way; the file is made anew
//! then, since it is not kept. Times that passed while the server was down are made up for once.

use std::{collections::HashMap, sync::Arc, time::Duration};

use askama::Template;
use inlay_engine::Txn;
use serde_json::json;

use super::{
    alert_notices::signature_headers,
    context::{App, Caller},
    queue::{Outcome, attempt_row},
    report_sheets::{artifact, kind_of_file},
    run_queue::{self, is_under_way, key_of, put},
    schedule::Times,
};
use crate::{
    base::instant,
    error::{ApiError, Code, Result},
    outbound::{Mail, Packet, Post},
    store::{
        Dashboard, Environment, Org, OrgTxn, ReportRule, ReportRun, RunStatus, RunWork, Told,
        global_delete, global_find, global_list, global_records,
    },
};

/// Longer than any run takes.
const LEASE_MS: i64 = 15 * 60_000;
/// Waits before each attempt of the mails of a run.
const WAITS_MS: [i64; 3] = [0, 30_000, 120_000];
/// How long a webhook with a report may take.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(20);

/// A run to go on with, and all that it needs.
#[derive(Debug, Clone)]
pub struct ReportWork {
    /// Its entry in the queue.
    pub work: RunWork,
    /// The rule.
    pub rule: ReportRule,
    /// Whose data it shows.
    pub environment: Environment,
    /// What it shows.
    pub dashboard: Dashboard,
    /// The run so far.
    pub run: ReportRun,
}

/// A report's file, ready to go.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// What it is about, for the mail.
    about: String,
    /// Name.
    file: String,
    /// Bytes.
    pub bytes: Arc<[u8]>,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Html<'a> {
    mail: &'a Content,
}

#[derive(Template)]
#[template(path = "report.txt", escape = "none")]
struct Text<'a> {
    mail: &'a Content,
}

struct Content {
    heading: String,
    about: String,
    file: String,
}

impl App {
    /// Begins the runs that are due; returns how many.
    pub fn start_due_reports(&self) -> Result<usize> {
        let now = self.now_ms();
        let is_due =
            |rule: &ReportRule| rule.enabled && rule.next_run_at.is_some_and(|at| at <= now);
        let mut started = 0;
        for (org, rule) in global_records::<ReportRule>(&self.engine.keys())? {
            if is_due(&rule) {
                started += usize::from(self.start_due_report(&org, &rule.id, now)?);
            }
        }
        Ok(started)
    }

    fn start_due_report(&self, org: &str, id: &str, now: i64) -> Result<bool> {
        self.engine.transact(|txn| {
            let mut records = OrgTxn::new(txn, org);
            let Some(mut rule) = records.find::<ReportRule>(id)? else { return Ok(false) };
            let Some(due) = rule.next_run_at.filter(|at| rule.enabled && *at <= now) else {
                return Ok(false);
            };
            // However many times have passed, the next one lies ahead.
            rule.next_run_at = Times::read(&rule.schedule, now)?.after(now);
            records.put(&rule)?;
            if is_under_way(records.global(), org, id)? {
                let error = Some("the run before was still under way".to_owned());
                let status = RunStatus::Skipped;
                let run = ReportRun {
                    status,
                    error,
                    deliveries: Vec::new(),
                    ..self.new_run(&rule, "schedule", due)
                };
                records.put(&run)?;
                return Ok(false);
            }
            self.begin(&mut records, org, &self.new_run(&rule, "schedule", due))?;
            Ok(true)
        })
    }

    /// Runs a report now. 409 while it runs.
    pub fn run_report(&self, caller: &Caller, number: u64) -> Result<ReportRun> {
        let rule = self.report(caller, number)?.rule;
        self.org_txn(&caller.org, |txn| {
            if is_under_way(txn.global(), &caller.org, &rule.id)? {
                return Err(ApiError::new(Code::Conflict, "this report is running already"));
            }
            let run = self.new_run(&rule, "manual", self.now_ms());
            self.begin(txn, &caller.org, &run)?;
            let number = rule.number.to_string();
            self.audit(txn, caller, "report.run", ("report", &number), json!({"name": rule.name}))?;
            Ok(run)
        })
    }

    fn new_run(&self, rule: &ReportRule, trigger: &str, scheduled_for: i64) -> ReportRun {
        let told = |kind: &str, to: &String, tenant_id: Option<&String>| Told {
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
            deliveries.extend(mails.map(|to| told("email", to, tenant)));
            deliveries.extend(rule.webhook_url.iter().map(|to| told("webhook", to, tenant)));
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
        }
    }

    fn begin(&self, records: &mut OrgTxn<'_>, org: &str, run: &ReportRun) -> Result<()> {
        records.put(run)?;
        let work = RunWork {
            run: run.id.clone(),
            org: org.to_owned(),
            due_at: self.now_ms(),
            attempt: 1,
            is_leased: false,
        };
        put(records.global(), &work)
    }

    /// Makes due what was worked on when the server stopped last.
    pub fn release_runs(&self) -> Result<()> {
        let left = global_list::<RunWork>(&self.engine.keys(), run_queue::KIND)?;
        let left: Vec<_> = left.into_iter().filter(|(_, work)| work.is_leased).collect();
        if left.is_empty() {
            return Ok(());
        }
        let now = self.now_ms();
        self.engine.transact(|txn| {
            for (key, work) in &left {
                global_delete(txn, run_queue::KIND, key);
                put(txn, &RunWork { due_at: now, is_leased: false, ..work.clone() })?;
            }
            Ok(())
        })
    }

    /// Claims up to `room` runs that are due. `under_way` are ids of runs with their organisations.
    pub fn claim_runs(
        &self,
        under_way: &HashMap<String, String>,
        room: usize,
    ) -> Result<Vec<ReportWork>> {
        let now = self.now_ms();
        let keys = self.engine.keys();
        let mut due: Vec<RunWork> = global_list::<RunWork>(&keys, run_queue::KIND)?
            .into_iter()
            .map(|(_, work)| work)
            .collect();
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
                if global_find::<RunWork>(txn, run_queue::KIND, &key_of(work))?.is_some() {
                    global_delete(txn, run_queue::KIND, &key_of(work));
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
        let environment = org.environment_by_id(&rule.environment);
        let dashboard: Option<Dashboard> = records.find(&rule.dashboard_id)?;
        let (Some(environment), Some(dashboard)) = (environment, dashboard) else {
            (rule.enabled, rule.next_run_at) = (false, None);
            records.put(&rule)?;
            records.put(&ended(run, now, Some("the dashboard was deleted")))?;
            return Ok(None);
        };
        records.put(&run)?;
        let work = RunWork { due_at: now + LEASE_MS, is_leased: true, ..work.clone() };
        put(records.global(), &work)?;
        Ok(Some(ReportWork { work, environment: environment.clone(), rule, dashboard, run }))
    }

    /// Makes the file of a run for a tenant, or for all of them.
    pub fn report_parcel(&self, of: &ReportWork, tenant: Option<&str>) -> Result<Parcel> {
        let tenant = tenant.or(of.rule.tenant_id.as_deref());
        let sheet = self.report_sheet(&of.rule, &of.environment, &of.dashboard, tenant);
        let bytes = artifact(&sheet, of.rule.format)?;
        let about: Vec<&str> = [Some(sheet.title.as_str()), tenant].into_iter().flatten().collect();
        let date = instant::date(sheet.made_at);
        let (_, ending) = kind_of_file(of.rule.format);
        let name = if of.rule.burst.is_empty() { "" } else { tenant.unwrap_or_default() };
        Ok(Parcel {
            about: about.join(", for "),
            file: format!("{}.{ending}", file_name(&[&of.rule.name, name, &date])),
            bytes: bytes.into(),
        })
    }

    /// What is carried to the receiver at a place of a run's list, in an attempt that begins at `at_ms`.
    pub fn report_packet(
        &self,
        of: &ReportWork,
        (at, told): (usize, &Told),
        parcel: &Parcel,
        at_ms: i64,
    ) -> Result<Packet> {
        Ok(match told.kind.as_str() {
            "webhook" => Packet::Post(self.report_post(of, told, parcel, at_ms)),
            _ => Packet::Mail(Box::new(self.report_mail(of, at, &told.to, parcel)?)),
        })
    }

    /// The mail that brings a file to one address.
    fn report_mail(&self, of: &ReportWork, at: usize, to: &str, parcel: &Parcel) -> Result<Mail> {
        let content = Content {
            heading: of.rule.name.clone(),
            about: parcel.about.clone(),
            file: parcel.file.clone(),
        };
        let failed = |error: askama::Error| ApiError::internal(error.to_string());
        let (content_type, _) = kind_of_file(of.rule.format);
        let run = of.run.id.rsplit(':').next().unwrap_or_default();
        Ok(Mail {
            id: format!("{run}.{at}"),
            written_at: of.run.started_at.unwrap_or_else(|| self.now_ms()),
            to: to.to_owned(),
            subject: of.rule.name.clone(),
            text: Text { mail: &content }.render().map_err(failed)?,
            html: Html { mail: &content }.render().map_err(failed)?,
            file: Some((parcel.file.clone(), content_type, parcel.bytes.to_vec())),
        })
    }

    /// The webhook that brings a file to a receiver.
    fn report_post(&self, of: &ReportWork, told: &Told, parcel: &Parcel, at_ms: i64) -> Post {
        let (content_type, _) = kind_of_file(of.rule.format);
        let run = of.run.id.rsplit(':').next().unwrap_or_default();
        let id = told
            .tenant_id
            .as_ref()
            .map_or(run.to_owned(), |tenant| format!("{run}.{}", header(tenant)));
        let secret = of.rule.webhook_secret.as_deref();
        let signature = secret.map(|secret| signature_headers(secret, &id, at_ms, &parcel.bytes));
        let mut headers = signature.unwrap_or_default();
        headers.push(("x-service-report-id", of.rule.number.to_string()));
        headers.push(("x-service-report-name", header(&of.rule.name)));
        headers.push(("x-service-dashboard-id", of.rule.dashboard_id.clone()));
        headers.extend(told.tenant_id.iter().map(|tenant| ("x-service-tenant-id", header(tenant))));
        Post {
            url: told.to.clone(),
            content_type,
            headers,
            body: parcel.bytes.to_vec(),
            timeout: WEBHOOK_TIMEOUT,
        }
    }

    /// Writes down what became of one receiver of a run. A mail that may get through later stays pending.
    pub fn record_told(&self, of: &ReportWork, at: usize, outcome: &Outcome) -> Result<()> {
        self.engine.transact(|txn| {
            let mut records = OrgTxn::new(txn, &of.work.org);
            let Some(mut run) = records.find::<ReportRun>(&of.run.id)? else { return Ok(()) };
            let Some(told) = run.deliveries.get_mut(at) else { return Ok(()) };
            let is_mail = told.kind == "email";
            let goes_on =
                is_mail && !outcome.carried.is_final && (of.work.attempt as usize) < WAITS_MS.len();
            let status = match &outcome.carried.error {
                None => "sent",
                Some(_) if goes_on => "pending",
                Some(_) => "failed",
            };
            status.clone_into(&mut told.status);
            told.error.clone_from(&outcome.carried.error);
            if !is_mail {
                let (id, to) = (self.new_id(), told.to.clone());
                records.put(&attempt_row(id, "report", of.rule.number, &to, 1, outcome))?;
            }
            records.put(&run)
        })
    }

    /// Ends a run, or says when what is pending is tried again. `bytes` is the size of its files, `error`
    /// why there are none.
    pub fn close_run(&self, of: &ReportWork, bytes: u64, error: Option<&str>) -> Result<()> {
        self.engine.transact(|txn| {
            global_delete(txn, run_queue::KIND, &key_of(&of.work));
            let mut records = OrgTxn::new(txn, &of.work.org);
            let Some(run) = records.find::<ReportRun>(&of.run.id)? else { return Ok(()) };
            let run = ReportRun { bytes: Some(bytes).filter(|bytes| *bytes > 0), ..run };
            let is_pending = run.deliveries.iter().any(|told| told.status == "pending");
            let wait =
                WAITS_MS.get(of.work.attempt as usize).filter(|_| is_pending && error.is_none());
            if let Some(wait) = wait {
                let due_at = self.now_ms() + wait;
                let attempt = of.work.attempt + 1;
                put(
                    records.global(),
                    &RunWork { due_at, attempt, is_leased: false, ..of.work.clone() },
                )?;
                return records.put(&run);
            }
            records.put(&ended(run, self.now_ms(), error))
        })
    }
}

/// A run that is over: what is still pending has failed.
fn ended(mut run: ReportRun, now: i64, error: Option<&str>) -> ReportRun {
    for told in run.deliveries.iter_mut().filter(|told| told.status == "pending") {
        "failed".clone_into(&mut told.status);
        told.error = told.error.take().or_else(|| error.map(str::to_owned));
    }
    let sent = run.deliveries.iter().filter(|told| told.status == "sent").count();
    run.status = match sent {
        0 => RunStatus::Failed,
        _ if sent < run.deliveries.len() => RunStatus::Partial,
        _ => RunStatus::Succeeded,
    };
    run.finished_at = Some(now);
    let failed = run.deliveries.len() - sent;
    let summary = || format!("{failed} of {} deliveries failed", run.deliveries.len());
    run.error = error.map(str::to_owned).or_else(|| (failed > 0).then(summary));
    run
}

/// A name as a header may hold it: what is not plain ASCII is percent-encoded, as is the percent sign.
fn header(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'%' | 0..=31 | 127.. => out.push_str(&format!("%{byte:02X}")),
            plain => out.push(char::from(plain)),
        }
    }
    out
}

/// A file's name from parts, without what file systems do not like.
fn file_name(parts: &[&str]) -> String {
    let clean = |part: &&str| {
        let plain =
            |char: char| if char.is_alphanumeric() || "._".contains(char) { char } else { '-' };
        let text: String = part.chars().take(60).map(plain).collect();
        text.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
    };
    let parts: Vec<String> = parts.iter().map(clean).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::rule_id;

    fn run(statuses: &[&str]) -> ReportRun {
        let told = |status: &&str| Told {
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
            deliveries: statuses.iter().map(told).collect(),
            error: None,
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
            let ended = ended(run(statuses), 9, None);
            assert_eq!((ended.status, ended.error.as_deref()), (status, error), "{statuses:?}");
            assert!(
                ended.finished_at == Some(9)
                    && ended.deliveries.iter().all(|told| told.status != "pending")
            );
        }
        let ended = ended(run(&["pending"]), 9, Some("the dashboard was deleted"));
        assert_eq!(ended.deliveries[0].error.as_deref(), Some("the dashboard was deleted"));
    }

    #[test]
    fn names_fit_where_they_go() {
        assert_eq!(header("Übersicht 50 %\r\nx: y"), "%C3%9Cbersicht 50 %25%0D%0Ax: y");
        assert_eq!(file_name(&["Weekly / usage", "", "2026-11-20"]), "Weekly-usage-2026-11-20");
        assert_eq!(file_name(&["../../etc/passwd"]), "..-..-etc-passwd");
    }
}
