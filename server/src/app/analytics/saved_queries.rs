//! Saved queries of the console: made, starred, changed, deleted. A statement is checked when it
//! runs.
//!
//! ```text
//! POST /v1/saved-queries {"name": "Calls by tenant", "sql": "SELECT tenant_id, count(*) FROM events GROUP BY 1"}
//! 201 {"id": "0190…", "name": "Calls by tenant", "sql": "SELECT …", "dataset": "events", "starred": false, …}
//! 400 {"code": "invalid_field", "field": "sql", "error": "sql must not be empty", …}
//! 409 {"code": "conflict", "error": "an organisation keeps at most 1000 queries", …}
//! ```
//!
//! A statement with an error can be saved: it may be half written, and `POST /v1/saved-queries/{id}/run` says what is wrong with it.

use serde_json::json;

use crate::{
    app::request::{callers::Caller, context::App},
    base::text,
    error::{ApiError, Code, Result},
    store::{OrgTxn, SavedQuery},
};

/// Bytes of a statement, at most.
const SQL_BYTES_MAX: usize = 64 << 10;
/// Saved queries of an organisation, at most: a list of them is answered whole.
const QUERIES_MAX: usize = 1_000;
/// The dataset of a query that names none.
const DATASET: &str = "events";

/// Fields of a saved query to make or change; absent fields of an existing query stay.
#[derive(Default)]
pub struct SavedQueryChange {
    /// Display name, 1 to 200 characters after trimming; a new query needs one.
    pub name: Option<String>,
    /// SQL statement of 1 byte to 64 KiB, not checked before it runs; a new query needs one.
    pub sql: Option<String>,
    /// Table that the query is mainly about; `events` for a new query without one.
    pub dataset: Option<String>,
    /// Whether lists show the query first.
    pub starred: Option<bool>,
}

impl SavedQueryChange {
    /// Errors: the first field that is wrong; `query` is not stored then.
    fn apply(self, query: &mut SavedQuery) -> Result<()> {
        if let Some(name) = self.name {
            query.name = text::name("name", &name)?;
        }
        if let Some(sql) = self.sql {
            query.sql = statement(sql)?;
        }
        if let Some(dataset) = self.dataset {
            query.dataset = text::name("dataset", &dataset)?;
        }
        query.starred = self.starred.unwrap_or(query.starred);
        Ok(())
    }
}

/// Errors: a statement that is empty, longer than 64 KiB, or has a zero byte.
fn statement(sql: String) -> Result<String> {
    if sql.trim().is_empty() {
        return Err(ApiError::field(Code::InvalidField, "sql", "sql must not be empty"));
    }
    if sql.len() > SQL_BYTES_MAX {
        let message = format!("sql has at most {SQL_BYTES_MAX} bytes");
        return Err(ApiError::field(Code::OutOfRange, "sql", message));
    }
    if sql.contains('\0') {
        return Err(ApiError::field(Code::InvalidField, "sql", "sql must not contain U+0000"));
    }
    Ok(sql)
}

impl App {
    /// All saved queries of the organisation, starred ones first, then newest first.
    ///
    /// They belong to the organisation, not to an environment: a statement reads that of the caller who runs it.
    pub fn saved_queries(&self, caller: &Caller) -> Result<Vec<SavedQuery>> {
        let mut queries: Vec<SavedQuery> = self.org_reader(&caller.org).list()?;
        queries.reverse();
        queries.sort_by_key(|query| !query.starred);
        Ok(queries)
    }

    /// Saves a query. Name and statement must be there: the request type of the handler requires them.
    ///
    /// Errors: 400 for a field, 409 beyond 1,000 queries of the organisation.
    pub fn create_saved_query(&self, caller: &Caller, new: SavedQueryChange) -> Result<SavedQuery> {
        let now = self.now_ms();
        let mut query = SavedQuery {
            id: self.new_id(),
            name: String::new(),
            sql: String::new(),
            dataset: DATASET.to_owned(),
            starred: false,
            created_by: (!caller.is_key()).then(|| caller.actor.id.clone()),
            created_at: now,
            updated_at: now,
        };
        new.apply(&mut query)?;
        self.org_txn(&caller.org, |txn| {
            if txn.list::<SavedQuery>()?.len() >= QUERIES_MAX {
                let message = format!("an organisation keeps at most {QUERIES_MAX} queries");
                return Err(ApiError::new(Code::Conflict, message));
            }
            txn.put(&query)?;
            let metadata = json!({"name": query.name});
            self.audit(txn, caller, "saved_query.create", ("saved_query", &query.id), metadata)
        })?;
        Ok(query)
    }

    /// Changes a query.
    ///
    /// Errors: 404; 400 for a field.
    pub fn update_saved_query(
        &self,
        caller: &Caller,
        id: &str,
        change: SavedQueryChange,
    ) -> Result<SavedQuery> {
        self.org_txn(&caller.org, |txn| {
            let mut query = found(txn, id)?;
            change.apply(&mut query)?;
            query.updated_at = self.now_ms();
            txn.put(&query)?;
            let metadata = json!({"name": query.name});
            self.audit(txn, caller, "saved_query.update", ("saved_query", id), metadata)?;
            Ok(query)
        })
    }

    /// Finds a saved query. 404 when there is none, which comes before the faults of a request.
    pub fn find_saved_query(&self, caller: &Caller, id: &str) -> Result<SavedQuery> {
        self.org_reader(&caller.org).find(id)?.ok_or_else(not_found)
    }

    /// Deletes a query.
    ///
    /// Errors: 404, also for the second of two deletions.
    pub fn delete_saved_query(&self, caller: &Caller, id: &str) -> Result<()> {
        self.org_txn(&caller.org, |txn| {
            let query = found(txn, id)?;
            txn.delete::<SavedQuery>(id);
            let metadata = json!({"name": query.name});
            self.audit(txn, caller, "saved_query.delete", ("saved_query", id), metadata)
        })
    }
}

fn found(txn: &OrgTxn<'_>, id: &str) -> Result<SavedQuery> {
    txn.find(id)?.ok_or_else(not_found)
}

fn not_found() -> ApiError {
    ApiError::not_found("saved query")
}
