//! Running a statement: a snapshot, a worker, and what becomes of its answer.

use std::time::Instant;

use inlay_sql::{Ask, Done, Form, Frame, OutColumn, Reason, Refusal};
use serde_json::Value;

use super::context::Http;
use crate::{
    app::Caller,
    error::{Advice, ApiError, Code, More, Result},
    sql::{Answering, Place},
};

/// Longest time of a statement, in milliseconds.
const WALL_MS_MAX: u64 = 10_000;
/// Rows of an answer.
const ROWS_MAX: usize = 10_000;
/// Bytes of an answer.
const BYTES_MAX: usize = 16 << 20;
/// A snapshot whose segments were merged away while it was handed over is taken again so often.
const TRIES: usize = 4;

/// A statement that is being answered.
pub struct Running {
    /// Its columns.
    pub columns: Vec<OutColumn>,
    /// Since when.
    pub started: Instant,
    answering: Answering,
    _place: Place,
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
        match self.answering.next().await {
            Frame::Rows(rows) => Ok(Part::Rows(rows)),
            Frame::Done(done) => Ok(Part::End(done)),
            Frame::Refused(refusal) => Err(explained(refusal)),
            Frame::Columns(_) | Frame::Stale => Err(ApiError::internal("a worker repeats itself")),
        }
    }

    /// All rows.
    ///
    /// Errors: why not all come.
    pub async fn rest(mut self) -> Result<(Vec<OutColumn>, Vec<u8>, Done, Instant)> {
        let mut all = Vec::new();
        loop {
            match self.next().await? {
                Part::Rows(rows) => all.extend(rows),
                Part::End(done) => return Ok((self.columns, all, done, self.started)),
            }
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
    let place = http.workers.place(&caller.org).await?;
    let ask = Ask {
        sql,
        params,
        form,
        rows_max: ROWS_MAX,
        bytes_max: BYTES_MAX,
        wall_ms: WALL_MS_MAX.min(http.app.settings.query_ms_max),
        directory: http.app.settings.data_dir.clone(),
    };
    let started = Instant::now();
    for _ in 0..TRIES {
        let namespace = caller.environment.namespace();
        let snapshot = http.run(move |app| Ok(app.engine.snapshot(namespace).hand_over())).await?;
        let broken = |error: std::io::Error| {
            let cause = Some(format!("a worker for SQL: {error}"));
            let message = "statements cannot be run right now; retry soon";
            ApiError { cause, ..ApiError::new(Code::Overloaded, message) }
        };
        let worker = http.workers.take().await.map_err(broken)?;
        let mut answering = worker.ask(&ask, &snapshot).await.map_err(broken)?;
        match answering.next().await {
            Frame::Columns(columns) => {
                return Ok(Running { columns, started, answering, _place: place });
            }
            Frame::Stale => {}
            Frame::Refused(refusal) => return Err(explained(refusal)),
            Frame::Rows(_) | Frame::Done(_) => {
                return Err(ApiError::internal("a worker answers without columns"));
            }
        }
    }
    let message = "the store is busy merging; retry soon";
    Err(ApiError::new(Code::Overloaded, message))
}

/// A refusal as the API says it.
fn explained(refusal: Refusal) -> ApiError {
    let Refusal { reason, message, position, hint } = refusal;
    let code = match reason {
        Reason::Invalid => Code::InvalidSql,
        Reason::TooLarge => Code::QueryTooLarge,
        Reason::TooSlow => Code::QueryTimeout,
        Reason::Broken => return ApiError::internal(format!("a worker for SQL: {message}")),
    };
    let message = match &hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    };
    let more = More::Statement(Advice { position, hint });
    ApiError { more: Some(Box::new(more)), ..ApiError::field(code, "sql", message) }
}
