//! The queue of runs of reports: what is to be begun or gone on with, in order of due times.

use inlay_engine::Txn;

use crate::{
    error::Result,
    store::{OrgTxn, ReportRun, RunWork, global_delete, global_list, global_put},
};

/// Kind of its records, which belong to nobody.
pub const KIND: &str = "report_work";

/// Forgets the runs of a rule that are not done.
pub fn drop_runs(txn: &mut Txn, org: &str, rule: &str) -> Result<()> {
    let prefix = format!("{rule}:");
    for (key, work) in global_list::<RunWork>(txn, KIND)? {
        if work.org == org && work.run.starts_with(&prefix) {
            global_delete(txn, KIND, &key);
        }
    }
    Ok(())
}

/// The entries of a rule: runs that are not done, and retries of runs that were.
pub fn works_of(txn: &Txn, org: &str, rule: &str) -> Result<Vec<RunWork>> {
    let prefix = format!("{rule}:");
    let works = global_list::<RunWork>(txn, KIND)?.into_iter().map(|(_, work)| work);
    Ok(works.filter(|work| work.org == org && work.run.starts_with(&prefix)).collect())
}

/// Whether a run of a rule is not done; a retry of an earlier one keeps no run from starting.
pub fn is_under_way(txn: &Txn, org: &str, rule: &str) -> Result<bool> {
    Ok(works_of(txn, org, rule)?.iter().any(|work| !work.is_retry))
}

/// Where an entry stands.
pub fn key_of(work: &RunWork) -> String {
    format!("{:020}:{}", work.due_at.max(0), work.run)
}

/// Adds an entry.
pub fn put(txn: &mut Txn, work: &RunWork) -> Result<()> {
    global_put(txn, KIND, &key_of(work), work)
}

/// Stores a run and enqueues it, due now.
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
    put(records.global(), &work)
}
