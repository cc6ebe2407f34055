//! A statement from its text to its rows: permit, snapshot, worker, and the refusals on the way.
//!
//! ```text
//! SELECT count(*) FROM events
//!   permit      one of the organisation's, or 429 or 503 after half of the time
//!   snapshot    of the caller's environment: segments by name, rows in memory by descriptor
//!   worker      a child process that was started in advance, used once
//!   ← NeedMemtable?   rows that cannot be mapped are copied, once the statement has passed the gate
//!   ← Columns, Rows…, Done
//! ```
//!
//! A snapshot whose segments were merged away while it was handed over, or a worker that ended while it waited, costs
//! another attempt and no error.
//!
//! Answers that are refused, as `POST /v1/query/adhoc` shows them:
//!
//! ```text
//! 400 invalid_sql        "error": "…; <hint>", "line": 1, "column": 8, "hint": "…"      Reason::Invalid
//! 400 query_too_large    it takes more memory than there is for it alone                 Reason::TooLarge
//! 400 query_timeout      "the statement took too long"                                   Reason::TooSlow
//! 503 overloaded         "other statements have the memory that it needs"                Reason::Busy
//! 500 internal           the cause is in the log                                         Reason::Broken
//! 503 overloaded         "statements cannot be run right now; retry soon"                four attempts without a worker that took it
//! ```

use std::{io, sync::Arc, time::Duration};

use inlay_engine::{Namespace, rows::Snapshot};
use inlay_sql_protocol::{Ask, Done, Form, Frame, OutColumn, Reason, Refusal};
use serde_json::Value;
use tokio::{
    runtime::Handle,
    task::{JoinError, spawn_blocking},
    time::Instant,
};

use super::{
    admission::{StatementAdmission, StatementPermit},
    memory_pool::MemoryGrant,
    worker::{ResultStream, SnapshotHandles},
    worker_pool::WorkerPool,
};
use crate::{
    app::{App, Caller},
    error::{Advice, ApiError, Code, More, Result},
};

/// Longest time of a statement, in milliseconds: from its arrival to its last row.
const WALL_MS_MAX: u64 = 10_000;
/// Divisor of this time: a statement waits for its permit for half of it at most.
const WAIT_SHARE: u32 = 2;
/// Rows of an answer, at most.
const ROWS_MAX: usize = 10_000;
/// Bytes of an answer, at most.
const BYTES_MAX: usize = 16 << 20;
/// Attempts, each with a new snapshot and a new worker.
const ATTEMPTS: usize = 4;
/// Runs of segments that a worker opens before it has a statement, at most: some 40 MB of an idle
/// worker, besides 64 MB that it touches.
const RUNS_AHEAD_MAX: usize = 1_000_000;

/// Runs statements of callers.
#[derive(Clone)]
pub struct StatementRunner {
    app: App,
    workers: Arc<WorkerPool>,
}

/// A statement whose rows are being read.
pub struct RunningStatement {
    /// Columns of the result in order, each with name and SQL type.
    pub columns: Vec<OutColumn>,
    /// When the statement arrived.
    pub started: Instant,
    results: ResultStream,
    permit: StatementPermit,
    follow_up: FollowUp,
}

/// Makes workers ready for the next statement, however the last one ended.
///
/// When it is dropped, the pool is refilled; after an answer a worker also opens the segments of this namespace for the next statement.
struct FollowUp {
    runner: StatementRunner,
    namespace: Namespace,
    /// Whether rows came: after a refusal, or when the client has left, no worker opens segments ahead.
    is_answered: bool,
}

/// A snapshot that is dropped on a blocking thread, since its last owner unmaps memory.
struct DropElsewhere(Option<Snapshot>);

/// The whole result of a statement.
pub struct StatementResult {
    /// Head of the answer and rows, as bytes of the response.
    pub rows: Vec<u8>,
    /// Number of rows, and whether a limit cut them.
    pub done: Done,
    /// When the statement arrived.
    pub started: Instant,
    /// Permit for the memory of the rows, until the client has read them.
    pub held: StatementPermit,
}

/// A part of the rows, or the end.
pub enum ResultChunk {
    /// Some rows, as bytes of the response.
    Rows(Vec<u8>),
    /// The end of the rows.
    End(Done),
}

impl StatementRunner {
    /// Runs statements over the events of `app` in the workers of a pool.
    pub fn new(app: App, workers: Arc<WorkerPool>) -> Self {
        Self { app, workers }
    }

    /// Limits on statements that run.
    ///
    /// For `GET /metrics`.
    pub fn admission(&self) -> &StatementAdmission {
        self.workers.admission()
    }

    /// Ends workers that wait and could read what is not there any more: segments that were erased, or merged. Returns when they have ended.
    pub async fn retire_workers(&self) {
        self.workers.retire(|namespace| self.app.engine.snapshot(namespace).list()).await;
    }

    /// Begins to answer a statement over the caller's events.
    ///
    /// Errors: 400 when it is refused or takes too much; 429 and 503 when too many run.
    ///
    /// The statement counts as a query of the environment once it has its permit.
    pub async fn begin(
        &self,
        caller: &Caller,
        sql: String,
        params: Vec<Value>,
        form: Form,
    ) -> Result<RunningStatement> {
        let wall_ms = WALL_MS_MAX.min(self.app.settings.query_ms_max);
        let (started, wall) = (Instant::now(), Duration::from_millis(wall_ms));
        let admission = self.workers.admission();
        let permit = admission.acquire_statement(&caller.org, started + wall / WAIT_SHARE).await?;
        self.app.count_statement(caller);
        let ask = Ask { sql, params, form, rows_max: ROWS_MAX, bytes_max: BYTES_MAX, wall_ms };
        let namespace = caller.environment.namespace();
        let mut follow_up = FollowUp { runner: self.clone(), namespace, is_answered: false };
        let (mut cause, mut is_gone) = (None, false);
        for _ in 0..ATTEMPTS {
            if started.elapsed() >= wall {
                break;
            }
            let (mut snapshot, handles) = self.snapshot(namespace).await?;
            let execution = self.execute(&caller.org, namespace, &ask, &handles, started + wall);
            let mut results = match execution.await {
                Ok(results) => results,
                Err(error) => {
                    // The first fault says most.
                    cause.get_or_insert_with(|| format!("a worker for SQL: {error}"));
                    continue;
                }
            };
            // Before the snapshot, which is dropped on another thread: the last owner gives memory back to the kernel.
            drop(handles);
            let mut first = results.next().await;
            // Only a statement that has passed the gate has rows copied for it.
            if first == Frame::NeedMemtable {
                let snapshot = snapshot.0.take();
                let images = spawn_blocking(move || snapshot.map(|rows| rows.copied_images()));
                results.send_memtable(&images.await.map_err(ended)?.unwrap_or_default()).await;
                first = results.next().await;
            }
            match first {
                Frame::Columns(columns) => {
                    // Who was answered is likely to ask again; a refused statement says nothing about the next.
                    follow_up.is_answered = true;
                    return Ok(RunningStatement { columns, started, results, permit, follow_up });
                }
                // A merge was published meanwhile.
                Frame::SnapshotGone if !is_gone => is_gone = true,
                // Twice in a row: a directory that is a cache may be deleted.
                Frame::SnapshotGone => {
                    let app = self.app.clone();
                    let restored = spawn_blocking(move || app.engine.restore_copies());
                    match tokio::time::timeout_at(started + wall, restored).await {
                        Ok(restored) => {
                            if let Err(error) = restored.map_err(ended)? {
                                cause.get_or_insert_with(|| error.to_string());
                            }
                        }
                        Err(_) => break,
                    }
                }
                Frame::Refused(refusal) => return Err(refusal_error(refusal)),
                Frame::Accepted
                | Frame::NeedMemtable
                | Frame::MoreMemory(_)
                | Frame::NeedPart(_)
                | Frame::Rows(_)
                | Frame::Done(_) => {
                    return Err(ApiError::internal("a worker answers without columns"));
                }
            }
        }
        let message = "statements cannot be run right now; retry soon";
        Err(ApiError { cause, ..ApiError::new(Code::Overloaded, message) })
    }

    /// The snapshot of a statement. Rows in memory are laid out on a blocking thread.
    async fn snapshot(&self, namespace: Namespace) -> Result<(DropElsewhere, SnapshotHandles)> {
        let snapshot = self.app.engine.snapshot(namespace);
        let (segments, missing) = (snapshot.list(), snapshot.missing());
        let has_recent = snapshot.has_recent();
        let with = |snapshot, memory| {
            let handles = SnapshotHandles { segments, missing, memory, has_recent };
            (DropElsewhere(Some(snapshot)), handles)
        };
        if !has_recent {
            return Ok(with(snapshot, Vec::new()));
        }
        let images = spawn_blocking(move || (snapshot.shared_images(), snapshot));
        let (memory, snapshot) = images.await.map_err(ended)?;
        Ok(with(snapshot, memory))
    }

    /// Sends a statement with its snapshot to a worker.
    async fn execute(
        &self,
        org: &str,
        namespace: Namespace,
        ask: &Ask,
        handles: &SnapshotHandles,
        deadline: Instant,
    ) -> io::Result<ResultStream> {
        let taken = self.workers.take(namespace, &handles.segments);
        let worker = tokio::time::timeout_at(deadline, taken).await??;
        let memory = MemoryGrant::none(self.workers.memory(), org);
        worker.execute(&self.app.settings.data_dir, ask, handles, memory, deadline).await
    }
}

impl RunningStatement {
    /// The next rows, or their end.
    ///
    /// Errors: why further rows are missing.
    ///
    /// Rows come as the client asked for them: JSON arrays with commas between, lines of CSV, or an object a line.
    pub async fn next(&mut self) -> Result<ResultChunk> {
        chunk_of(self.results.next().await)
    }

    /// The time at which the statement ends at the latest.
    pub fn deadline(&self) -> Instant {
        self.results.deadline()
    }

    /// All rows, appended to the head of an answer.
    ///
    /// Errors: why rows are missing; 429 and 503 when too many answers wait to be read.
    ///
    /// `rows` is the head of the answer, such as `{"columns":[…],"rows":[`; a client that is streamed to uses [`RunningStatement::next`].
    pub async fn collect(mut self, caller: &Caller, mut rows: Vec<u8>) -> Result<StatementResult> {
        let done = loop {
            let Some(frame) = self.results.next_behind(&mut rows).await else { continue };
            if let ResultChunk::End(done) = chunk_of(frame)? {
                break done;
            }
        };
        let deadline = self.deadline();
        let Self { started, results, permit, follow_up, .. } = self;
        drop(results);
        // The permit is held while the answer waits for memory, and limits the bytes that are not
        // counted yet.
        let admission = follow_up.runner.workers.admission();
        let held = admission.acquire_memory(&caller.org, rows.len(), deadline).await?;
        drop(permit);
        Ok(StatementResult { rows, done, started, held })
    }
}

impl Drop for FollowUp {
    fn drop(&mut self) {
        let (runner, namespace) = (self.runner.clone(), self.namespace);
        let opens_segments = self.is_answered && runner.workers.prepares_workers();
        // Without a runtime there is no next statement.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            let workers = Arc::clone(&runner.workers);
            let is_refilled = spawn_blocking(move || workers.refill()).await.is_ok();
            if !is_refilled || !opens_segments {
                return;
            }
            let app = runner.app.clone();
            let list = spawn_blocking(move || {
                let snapshot = app.engine.snapshot(namespace);
                let is_cheap = (1..=RUNS_AHEAD_MAX).contains(&snapshot.runs());
                // What would have to be fetched is left to the statement that needs it.
                (is_cheap && snapshot.missing().is_empty()).then(|| snapshot.list())
            });
            if let Ok(Some(segments)) = list.await {
                let directory = &runner.app.settings.data_dir;
                let now = |namespace| runner.app.engine.snapshot(namespace).list();
                runner.workers.prepare_for(namespace, directory, segments, now).await;
            }
        });
    }
}

impl Drop for DropElsewhere {
    fn drop(&mut self) {
        if let (Some(snapshot), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            drop(runtime.spawn_blocking(move || drop(snapshot)));
        }
    }
}

/// A frame behind the columns. Errors: a refusal, or a frame that does not come here.
fn chunk_of(frame: Frame) -> Result<ResultChunk> {
    match frame {
        Frame::Rows(rows) => Ok(ResultChunk::Rows(rows)),
        Frame::Done(done) => Ok(ResultChunk::End(done)),
        Frame::Refused(refusal) => Err(refusal_error(refusal)),
        Frame::Accepted
        | Frame::NeedMemtable
        | Frame::MoreMemory(_)
        | Frame::NeedPart(_)
        | Frame::Columns(_)
        | Frame::SnapshotGone => Err(ApiError::internal("a worker repeats itself")),
    }
}

/// The error of a blocking task that was cancelled or panicked.
fn ended(error: JoinError) -> ApiError {
    ApiError::internal(format!("a task ended: {error}"))
}

/// A refusal as an error of the API.
///
/// The field is `sql`, and the hint is in the message as well: clients that show one line show it.
fn refusal_error(refusal: Refusal) -> ApiError {
    let Refusal { reason, message, position, hint } = refusal;
    let code = match reason {
        Reason::Invalid => Code::InvalidSql,
        Reason::TooLarge => Code::QueryTooLarge,
        Reason::TooSlow => Code::QueryTimeout,
        Reason::Busy => Code::Overloaded,
        Reason::Broken => return ApiError::internal(format!("a worker for SQL: {message}")),
    };
    let message = match &hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    };
    let more = More::Statement(Advice { position, hint });
    ApiError { more: Some(Box::new(more)), ..ApiError::field(code, "sql", message) }
}
