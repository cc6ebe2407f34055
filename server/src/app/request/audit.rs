//! The audit: one row for each change of state, in the same transaction as the change.
//!
//! ```text
//! {"id": "0190…", "action": "dashboard.publish", "actor": {"type": "user", "id": "0190…", "label": "ada@acme.example"},
//!  "target": ["dashboard", "0190…"], "metadata": {"name": "API usage", "version": 7}, "environment": "0190…", "ip": "203.0.113.7",
//!  "created_at": 1795169856789}
//! ```
//!
//! A refused request leaves no row: its transaction is not committed. Deleting an organisation takes its audit with it.

use serde_json::Value;

use super::{callers::Caller, context::App};
use crate::{
    error::Result,
    store::{AuditRow, OrgTxn},
};

/// Conditions on the rows of an answer; those that are `None` hold for every row.
#[derive(Debug, Default)]
pub struct AuditFilter {
    /// Only rows from before this instant.
    /// Milliseconds since 1970; a row of this very millisecond is not among them.
    pub before: Option<i64>,
    /// Only rows of this action.
    /// `dashboard.publish`, compared as a whole. A name that no operation has finds nothing.
    pub action: Option<String>,
    /// Only rows whose ids are below this one: the last of the page before.
    pub cursor: Option<String>,
}

impl App {
    /// Adds a row to the transaction that makes the change.
    ///
    /// `target` is type and id: `("dashboard", "0190…")`. `metadata` is an object with what a reader wants to know later, such as the name
    /// at that time and the values before: the record itself may be gone by then.
    pub fn audit(
        &self,
        txn: &mut OrgTxn<'_>,
        caller: &Caller,
        action: &str,
        target: (&str, &str),
        metadata: Value,
    ) -> Result<()> {
        txn.put(&AuditRow {
            id: self.new_id(),
            action: action.to_owned(),
            actor: caller.actor.clone(),
            target: (target.0.to_owned(), target.1.to_owned()),
            metadata,
            environment: Some(caller.environment.id.clone()),
            ip: caller.ip.map(|ip| ip.to_string()),
            created_at: self.now_ms(),
        })
    }

    /// The newest `count` rows that meet the conditions, newest first. No more are read than it takes to find them.
    pub fn audit_rows(
        &self,
        caller: &Caller,
        filter: &AuditFilter,
        count: usize,
    ) -> Result<Vec<AuditRow>> {
        let reader = self.org_reader(&caller.org);
        // A key sees its own environment only; a session sees the organisation.
        let is_wanted = |row: &AuditRow| {
            (!caller.is_key() || row.environment.as_ref() == Some(&caller.environment.id))
                && filter.before.is_none_or(|before| row.created_at < before)
                && filter.action.as_ref().is_none_or(|action| *action == row.action)
        };
        let mut rows = Vec::new();
        reader.visit_last(filter.cursor.as_deref(), |row| {
            if rows.len() < count && is_wanted(&row) {
                rows.push(row);
            }
            rows.len() < count
        })?;
        Ok(rows)
    }
}
