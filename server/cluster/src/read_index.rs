//! How far the log goes, asked for requests that must see what was acknowledged before them.
//!
//! ```text
//! request a comes     asks
//! b and c come        wait: the statement under way began before them
//! a is answered       b asks; c has come before that, and takes its answer
//! ```
//!
//! So there is one statement at a time, however many requests there are, and each of them sees the log as it was after it had come.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_postgres::Row;

use crate::{schema, session::DatabaseSession};

/// Longest time for an answer.
const TIME_MAX: Duration = Duration::from_secs(3);

/// The end of the log, for all requests of a process.
pub struct ReadIndex {
    session: Arc<DatabaseSession>,
    last: tokio::sync::Mutex<Option<Asked>>,
}

/// An answer, and when it was asked for.
struct Asked {
    began: Instant,
    end: Result<End, String>,
}

/// Where the log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Number of the next record.
    pub lsn_next: i64,
    /// Checksum of the last group, by which this history is told from another one.
    pub chain: i64,
}

impl ReadIndex {
    /// Over a session of its own: nothing waits for a long answer to something else.
    pub fn new(session: DatabaseSession) -> Self {
        Self { session: Arc::new(session), last: tokio::sync::Mutex::default() }
    }

    /// The end of the log, asked for after this was called.
    ///
    /// Errors: why that is not known.
    pub async fn end(&self) -> Result<End, String> {
        let came = Instant::now();
        let mut last = self.last.lock().await;
        if let Some(asked) = last.as_ref().filter(|asked| asked.began >= came) {
            return asked.end.clone();
        }
        let began = Instant::now();
        let answer = self.ask().await;
        *last = Some(Asked { began, end: answer.clone() });
        answer
    }

    async fn ask(&self) -> Result<End, String> {
        let asked = self.session.run_here_within(TIME_MAX, |client| async move {
            let rows = client.query_typed(schema::END, &[]).await?;
            let end = |row: &Row| End { lsn_next: row.get(0), chain: row.get(1) };
            Ok(rows.first().map(end))
        });
        match asked.await {
            Ok(end) => end.ok_or_else(|| "inlay.cluster has no row".to_owned()),
            Err(failure) => Err(failure.error().to_string()),
        }
    }
}
