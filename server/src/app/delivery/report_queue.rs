//! The queue of runs of reports: what is to be begun or gone on with, in order of due times.
//!
//! ```text
//! report_work/00000001795169856789:00000000000000000003:0190…      {"run": "00000000000000000003:0190…", "attempt": 1, …}
//! ```

use inlay_engine::Txn;

use crate::{
    error::Result,
    store::{OrgTxn, ReportRun, RunWork, enqueue, queued, remove_of},
};

/// Removes the runs of a rule that are not done from the queue. Their records stay.
pub fn drop_runs(txn: &mut Txn, org: &str, rule: &str) -> Result<()> {
    let prefix = format!("{rule}:");
    let is_of_rule = |work: &RunWork| work.run.starts_with(&prefix);
    remove_of(txn, org, is_of_rule).map(|_| ())
}

/// The entries of a rule: runs that are not done, and retries of runs that were.
///
/// `rule` is the id with twenty digits, and a colon ends it: 1 is not the beginning of 10.
pub fn works_of(txn: &Txn, org: &str, rule: &str) -> Result<Vec<RunWork>> {
    let prefix = format!("{rule}:");
    let works = queued::<RunWork>(txn)?.into_iter();
    Ok(works.filter(|work| work.org == org && work.run.starts_with(&prefix)).collect())
}

/// Whether a run of a rule is not done; a retry of an earlier one keeps no run from starting.
///
/// A second run would send the same file twice: a schedule that comes while one is under way is skipped.
pub fn is_under_way(txn: &Txn, org: &str, rule: &str) -> Result<bool> {
    Ok(works_of(txn, org, rule)?.iter().any(|work| !work.is_retry))
}

/// Stores a run and enqueues it, due now.
///
/// `retries` of the run say whether it is a new one or repeats a delivery of an old one.
pub fn begin(records: &mut OrgTxn<'_>, now_ms: i64, org: &str, run: &ReportRun) -> Result<()> {
    records.put(run)?;
    let work = RunWork {
        run: run.id.clone(),
        org: org.to_owned(),
        due_at: now_ms,
        attempt: 1,
        starts: 0,
        is_leased: false,
        is_retry: !run.retries.is_empty(),
    };
    enqueue(records.global(), &work)
}
