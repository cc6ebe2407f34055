//! Running a statement: a snapshot, a worker, and what becomes of its answer.

use std::{io, sync::Arc, time::Duration};

use inlay_engine::{Namespace, rows::Snapshot};
use inlay_sql_protocol::{Ask, Done, Form, Frame, OutColumn, Reason, Refusal};
use serde_json::Value;
use tokio::{runtime::Handle, time::Instant};

use super::context::Http;
use crate::{
    app::Caller,
    error::{Advice, ApiError, Code, More, Result},
    sql::{MemoryGrant, ResultStream, SnapshotHandles, StatementPermit},
};

/// Longest time of a statement, in milliseconds: from when it came to when its last row is there.
const WALL_MS_MAX: u64 = 10_000;
/// Of this time, what it may wait for others to end, at most.
const WAIT_SHARE: u32 = 2;
/// Rows of an answer.
const ROWS_MAX: usize = 10_000;
/// Bytes of an answer.
const BYTES_MAX: usize = 16 << 20;
/// So often it is tried again with another snapshot, when segments were merged away while it was handed over, or with
/// another worker, when one has ended while it waited.
const TRIES: usize = 4;
/// Runs of segments that are opened before there is a statement about them: some 40 MB of a worker that waits,
/// besides 64 MB that it touches.
const RUNS_AHEAD_MAX: usize = 1_000_000;

/// A statement that is being answered.
pub struct Running {
    /// Its columns.
    pub columns: Vec<OutColumn>,
    /// Since when.
    pub started: Instant,
    results: ResultStream,
    permit: StatementPermit,
    /// What is done behind it.
    _after: After,
}

/// What is done when a statement has ended, however it did: workers are made ready for the next one.
struct After {
    http: Http,
    namespace: Namespace,
    /// Whether it had an answer: who asks what is none, or goes away, is not waited for.
    is_answered: bool,
}

impl Drop for After {
    fn drop(&mut self) {
        let (http, namespace, is_answered) = (self.http.clone(), self.namespace, self.is_answered);
        // Without a runtime there is no next one.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            let workers = Arc::clone(&http.workers);
            let prepared = tokio::task::spawn_blocking(move || workers.refill()).await;
            if prepared.is_err() || !is_answered || !http.workers.prepares_workers() {
                return;
            }
            let list = http.run(move |app| {
                let snapshot = app.engine.snapshot(namespace);
                Ok((1..=RUNS_AHEAD_MAX).contains(&snapshot.runs()).then(|| snapshot.list()))
            });
            if let Ok(Some(segments)) = list.await {
                let directory = &http.app.settings.data_dir;
                http.workers.prepare_for(namespace, directory, segments).await;
            }
        });
    }
}

/// A snapshot that is let go where it keeps nobody waiting: whoever holds it last takes down what it shows.
struct Held(Option<Snapshot>);

impl Drop for Held {
    fn drop(&mut self) {
        if let (Some(snapshot), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            drop(runtime.spawn_blocking(move || drop(snapshot)));
        }
    }
}

/// All rows of a statement.
pub struct Answer {
    /// What it begins with, and rows, as they are written.
    pub rows: Vec<u8>,
    /// How it ended.
    pub done: Done,
    /// Since when it ran.
    pub started: Instant,
    /// Memory that the rows take until somebody has read them.
    pub held: StatementPermit,
}

/// A part of its rows, or the end.
pub enum Part {
    /// Some rows, as they are written.
    Rows(Vec<u8>),
    /// There are no more.
    End(Done),
}

impl Running {
    /// What comes next.
    ///
    /// Errors: why the rest does not come.
    pub async fn next(&mut self) -> Result<Part> {
        part(self.results.next().await)
    }

    /// Until when it ends.
    pub fn deadline(&self) -> Instant {
        self.results.deadline()
    }

    /// All rows, behind what the answer begins with.
    ///
    /// Errors: why not all come; 429 and 503 when too many answers wait to be read.
    pub async fn rest(mut self, http: &Http, caller: &Caller, mut rows: Vec<u8>) -> Result<Answer> {
        let done = loop {
            let Some(frame) = self.results.next_behind(&mut rows).await else { continue };
            if let Part::End(done) = part(frame)? {
                break done;
            }
        };
        let (admission, deadline) = (http.workers.admission(), self.deadline());
        let Self { started, results, permit, .. } = self;
        drop(results);
        // The permit is held while the answer waits for room: what is not counted yet is not more than may run.
        let held = admission.acquire_memory(&caller.org, rows.len(), deadline).await?;
        drop(permit);
        Ok(Answer { rows, done, started, held })
    }
}

fn part(frame: Frame) -> Result<Part> {
    match frame {
        Frame::Rows(rows) => Ok(Part::Rows(rows)),
        Frame::Done(done) => Ok(Part::End(done)),
        Frame::Refused(refusal) => Err(explained(refusal)),
        Frame::Accepted
        | Frame::NeedMemtable
        | Frame::MoreMemory(_)
        | Frame::Columns(_)
        | Frame::SnapshotGone => Err(ApiError::internal("a worker repeats itself")),
    }
}

/// Begins to answer a statement over the caller's events.
///
/// Errors: 400 when it is none, or takes too much; 429 and 503 when too many run.
pub async fn begin(
    http: &Http,
    caller: &Caller,
    sql: String,
    params: Vec<Value>,
    form: Form,
) -> Result<Running> {
    let wall_ms = WALL_MS_MAX.min(http.app.settings.query_ms_max);
    let (started, wall) = (Instant::now(), Duration::from_millis(wall_ms));
    let permit = http
        .workers
        .admission()
        .acquire_statement(&caller.org, started + wall / WAIT_SHARE)
        .await?;
    http.app.count_statement(caller);
    let ask = Ask { sql, params, form, rows_max: ROWS_MAX, bytes_max: BYTES_MAX, wall_ms };
    let namespace = caller.environment.namespace();
    let mut after = After { http: http.clone(), namespace, is_answered: false };
    let mut cause = None;
    for _ in 0..TRIES {
        if started.elapsed() >= wall {
            break;
        }
        let (mut snapshot, shown) = shown(http, namespace).await?;
        let handed = handed(http, &caller.org, namespace, &ask, &shown, started + wall);
        let mut results = match handed.await {
            Ok(results) => results,
            Err(error) => {
                // What went wrong first says most.
                cause.get_or_insert_with(|| format!("a worker for SQL: {error}"));
                continue;
            }
        };
        // Before the snapshot, which is let go elsewhere: whoever is last gives memory back to the kernel.
        drop(shown);
        let mut first = results.next().await;
        // Who asks what is no statement has nothing gathered for it.
        if first == Frame::NeedMemtable {
            let snapshot = snapshot.0.take();
            let rows = http.run(move |_| Ok(snapshot.map(|snapshot| snapshot.copied_images())));
            results.send_memtable(&rows.await?.unwrap_or_default()).await;
            first = results.next().await;
        }
        match first {
            Frame::Columns(columns) => {
                after.is_answered = true;
                return Ok(Running { columns, started, results, permit, _after: after });
            }
            Frame::SnapshotGone => {}
            Frame::Refused(refusal) => return Err(explained(refusal)),
            Frame::Accepted
            | Frame::NeedMemtable
            | Frame::MoreMemory(_)
            | Frame::Rows(_)
            | Frame::Done(_) => {
                return Err(ApiError::internal("a worker answers without columns"));
            }
        }
    }
    let message = "statements cannot be run right now; retry soon";
    Err(ApiError { cause, ..ApiError::new(Code::Overloaded, message) })
}

/// What a statement is about. Rows in memory are laid out where that keeps nobody waiting.
async fn shown(http: &Http, namespace: Namespace) -> Result<(Held, SnapshotHandles)> {
    let snapshot = http.app.engine.snapshot(namespace);
    let (segments, has_recent) = (snapshot.list(), snapshot.has_recent());
    if !has_recent {
        return Ok((
            Held(Some(snapshot)),
            SnapshotHandles { segments, memory: Vec::new(), has_recent },
        ));
    }
    let laid_out = http.run(move |_| {
        let memory = snapshot.shared_images();
        Ok((Held(Some(snapshot)), SnapshotHandles { segments, memory, has_recent }))
    });
    laid_out.await
}

/// A worker that has a statement and what it is about.
async fn handed(
    http: &Http,
    org: &str,
    namespace: Namespace,
    ask: &Ask,
    shown: &SnapshotHandles,
    deadline: Instant,
) -> io::Result<ResultStream> {
    let taken = http.workers.take(namespace, &shown.segments);
    let worker = tokio::time::timeout_at(deadline, taken).await??;
    let memory = MemoryGrant::none(http.workers.memory(), org);
    worker.execute(&http.app.settings.data_dir, ask, shown, memory, deadline).await
}

/// A refusal as the API says it.
fn explained(refusal: Refusal) -> ApiError {
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
