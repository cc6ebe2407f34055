//! The audit: one row for each change of state, in the same transaction as the change.

use serde_json::Value;

use super::{callers::Caller, context::App};
use crate::{
    error::Result,
    store::{AuditRow, OrgTxn},
};

/// Which rows are wanted.
#[derive(Debug, Default)]
pub struct AuditFilter {
    /// Only rows from before this instant.
    pub before: Option<i64>,
    /// Only rows of this action.
    pub action: Option<String>,
}

impl App {
    /// Adds a row to the transaction that makes the change.
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

    /// The newest rows that are wanted, newest first.
    pub fn audit_rows(&self, caller: &Caller, filter: &AuditFilter) -> Result<Vec<AuditRow>> {
        let mut rows: Vec<AuditRow> = self.org_reader(&caller.org).list()?;
        rows.reverse();
        // A key sees its own environment only; a session sees the organisation.
        rows.retain(|row| {
            (!caller.is_key() || row.environment.as_ref() == Some(&caller.environment.id))
                && filter.before.is_none_or(|before| row.created_at < before)
                && filter.action.as_ref().is_none_or(|action| *action == row.action)
        });
        Ok(rows)
    }
}
