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
    sql::{Answering, MemoryGrant, Place, Shown},
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
    answering: Answering,
    place: Place,
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
            let prepared = tokio::task::spawn_blocking(move || workers.prepare()).await;
            if prepared.is_err() || !is_answered || !http.workers.opens_ahead() {
                return;
            }
            let list = http.run(move |app| {
                let snapshot = app.engine.snapshot(namespace);
                Ok((1..=RUNS_AHEAD_MAX).contains(&snapshot.runs()).then(|| snapshot.list()))
            });
            if let Ok(Some(segments)) = list.await {
                let directory = &http.app.settings.data_dir;
                http.workers.open_ahead(namespace, directory, segments).await;
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
    pub held: Place,
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
        part(self.answering.next().await)
    }

    /// Until when it ends.
    pub fn deadline(&self) -> Instant {
        self.answering.deadline()
    }

    /// All rows, behind what the answer begins with.
    ///
    /// Errors: why not all come; 429 and 503 when too many answers wait to be read.
    pub async fn rest(mut self, http: &Http, caller: &Caller, mut rows: Vec<u8>) -> Result<Answer> {
        let done = loop {
            let Some(frame) = self.answering.next_behind(&mut rows).await else { continue };
            if let Part::End(done) = part(frame)? {
                break done;
            }
        };
        let (places, deadline) = (http.workers.places(), self.deadline());
        let Self { started, answering, place, .. } = self;
        drop(answering);
        // The place is kept while the answer waits for room: what is not counted yet is not more than may run.
        let held = places.hold(&caller.org, rows.len(), deadline).await?;
        drop(place);
        Ok(Answer { rows, done, started, held })
    }
}

fn part(frame: Frame) -> Result<Part> {
    match frame {
        Frame::Rows(rows) => Ok(Part::Rows(rows)),
        Frame::Done(done) => Ok(Part::End(done)),
        Frame::Refused(refusal) => Err(explained(refusal)),
        Frame::Taken | Frame::Wanted | Frame::MoreMemory(_) | Frame::Columns(_) | Frame::Stale => {
            Err(ApiError::internal("a worker repeats itself"))
        }
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
    let place = http.workers.places().run(&caller.org, started + wall / WAIT_SHARE).await?;
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
        let mut answering = match handed.await {
            Ok(answering) => answering,
            Err(error) => {
                // What went wrong first says most.
                cause.get_or_insert_with(|| format!("a worker for SQL: {error}"));
                continue;
            }
        };
        // Before the snapshot, which is let go elsewhere: whoever is last gives memory back to the kernel.
        drop(shown);
        let mut first = answering.next().await;
        // Who asks what is no statement has nothing gathered for it.
        if first == Frame::Wanted {
            let snapshot = snapshot.0.take();
            let rows = http.run(move |_| Ok(snapshot.map(|snapshot| snapshot.copied_images())));
            answering.give(&rows.await?.unwrap_or_default()).await;
            first = answering.next().await;
        }
        match first {
            Frame::Columns(columns) => {
                after.is_answered = true;
                return Ok(Running { columns, started, answering, place, _after: after });
            }
            Frame::Stale => {}
            Frame::Refused(refusal) => return Err(explained(refusal)),
            Frame::Taken
            | Frame::Wanted
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
async fn shown(http: &Http, namespace: Namespace) -> Result<(Held, Shown)> {
    let snapshot = http.app.engine.snapshot(namespace);
    let (segments, has_recent) = (snapshot.list(), snapshot.has_recent());
    if !has_recent {
        return Ok((Held(Some(snapshot)), Shown { segments, memory: Vec::new(), has_recent }));
    }
    let laid_out = http.run(move |_| {
        let memory = snapshot.shared_images();
        Ok((Held(Some(snapshot)), Shown { segments, memory, has_recent }))
    });
    laid_out.await
}

/// A worker that has a statement and what it is about.
async fn handed(
    http: &Http,
    org: &str,
    namespace: Namespace,
    ask: &Ask,
    shown: &Shown,
    deadline: Instant,
) -> io::Result<Answering> {
    let taken = http.workers.take(namespace, &shown.segments);
    let worker = tokio::time::timeout_at(deadline, taken).await??;
    let memory = MemoryGrant::none(http.workers.memory(), org);
    worker.ask(&http.app.settings.data_dir, ask, shown, memory, deadline).await
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
