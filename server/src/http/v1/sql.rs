//! `/v1/query/adhoc` and the run of a saved query: SQL over the caller's events.
//!
//! The header `Accept` chooses the form:
//!
//! ```text
//! POST /v1/query/adhoc
//! {"sql": "SELECT string_props[$1] AS model, count(*) AS calls, avg(numeric_props[$2]) AS ms FROM events GROUP BY 1 ORDER BY 2 DESC",
//!  "params": ["model", "latency_ms"]}
//!
//! application/json       {"columns":[{"name":"model","type":"VARCHAR"},{"name":"calls","type":"BIGINT"},{"name":"ms","type":"DOUBLE"}],
//!                         "rows":[["gpt-large",27,57.03703703703704],["gpt-small",14,58.75],[null,2,null]],
//!                         "stats":{"wall_ms":7,"rows_returned":3,"truncated":false}}
//! text/csv               tenant_id,n            of another statement; X-Truncated: false
//!                        acme,33
//! application/x-ndjson   {"tenant_id":"acme","n":33}
//!                        {"stats":{"rows_returned":2,"truncated":false,"wall_ms":6}}
//! ```
//!
//! Statements that are refused:
//!
//! ```text
//! SELECT tenant FROM events     400 {"code":"invalid_sql","line":1,"column":8,"hint":"did you mean tenant_id? …","field":"sql",…}
//! GIVE 1                        400 syntax: Expected: an SQL statement, found: GIVE
//! DELETE FROM events            400 only SELECT and WITH statements are answered
//! the sixth in a second         429
//! ```

use axum::{
    body::{Body as ResponseBody, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use inlay_proto::names::NDJSON;
use inlay_sql_protocol::{Form, OutColumn};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};
use utoipa::{ToSchema, openapi::Content};

use super::embed_data::Lines;
use crate::{
    app::Caller,
    error::{ApiError, Result},
    http::{
        chunked_body::Paced,
        extract::{Body, Id, OptionalBody},
        openapi::describe::{Description, Gives},
        state::context::Http,
    },
    sql::{ResultChunk, RunningStatement, StatementPermit, StatementResult},
};

const CSV: &str = "text/csv";
/// Parts that wait for a slow reader.
const PARTS_AHEAD: usize = 4;

/// A SQL statement with its parameters.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskSql {
    /// One SELECT or WITH over `events`, `events_hourly` and `events_daily`; 64 KiB at most.
    #[schema(
        min_length = 1,
        example = "SELECT event_name, count(*) AS n FROM events GROUP BY 1 ORDER BY n DESC"
    )]
    sql: String,
    /// Values of `$1`, `$2` and so on: texts, numbers, truths and null.
    #[serde(default)]
    params: Vec<Value>,
}

/// Values for a saved statement.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSavedQuery {
    /// Values of `$1`, `$2` and so on: texts, numbers, truths and null.
    #[serde(default)]
    params: Vec<Value>,
}

/// Rows of a statement.
#[derive(Serialize, ToSchema)]
struct SqlAnswer {
    columns: Vec<SqlColumn>,
    /// A list of values a row. Integers beyond 2^53 are texts.
    rows: Vec<Vec<Value>>,
    stats: SqlStats,
}

/// A column of the answer.
#[derive(Serialize, ToSchema)]
struct SqlColumn {
    #[schema(example = "n")]
    name: String,
    /// Type in SQL.
    #[schema(example = "BIGINT")]
    r#type: String,
}

/// How it went.
#[derive(Serialize, ToSchema)]
struct SqlStats {
    /// Milliseconds that it took.
    wall_ms: u64,
    rows_returned: usize,
    /// Whether there were more than 10,000 rows or 16 MiB.
    truncated: bool,
}

/// Rows in the form that was asked for.
pub struct SqlResponse(Response);

impl IntoResponse for SqlResponse {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Gives for SqlResponse {
    fn gives(description: &mut Description) {
        description.answers::<SqlAnswer>(
            200,
            "Columns and rows; as NDJSON an object a row and the stats last; or CSV.",
        );
        if let Some((_, response)) = description.success.last_mut() {
            for kind in [NDJSON, CSV] {
                let text = Content::new(Some(utoipa::openapi::schema::empty()));
                response.content.insert(kind.to_owned(), text.into());
            }
        }
    }
}

/// Answers a statement over the events of the caller's environment. 200 in one of three forms.
///
/// Errors: `invalid_sql` with its position, `query_timeout` after 10 s, `query_too_large`; 503 where no worker is free in time. As NDJSON an
/// error may also be the last line, since rows are on their way already.
pub async fn adhoc(
    State(http): State<Http>,
    caller: Caller,
    headers: HeaderMap,
    body: Body<AskSql>,
) -> Result<SqlResponse> {
    let AskSql { sql, params } = body.read()?;
    run(&http, &caller, sql, params, form(&headers)).await
}

/// Answers a saved query, with values for its parameters. A body need not be sent.
pub async fn run_saved(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    headers: HeaderMap,
    body: OptionalBody<RunSavedQuery>,
) -> Result<SqlResponse> {
    let (query, body) = http
        .run({
            let caller = caller.clone();
            move |app| Ok((app.find_saved_query(&caller, &id)?, body.read()?))
        })
        .await?;
    run(&http, &caller, query.sql, body.params, form(&headers)).await
}

/// The form with the highest weight in `Accept`; of forms with the same weight, the first.
fn form(headers: &HeaderMap) -> Form {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let mut best = (0.0, Form::Rows);
    for part in accept.unwrap_or_default().split(',') {
        let mut words = part.split(';').map(str::trim);
        let form = match words.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            NDJSON => Form::Lines,
            CSV => Form::Csv,
            "application/json" | "application/*" | "*/*" => Form::Rows,
            _ => continue,
        };
        let weight = words.find_map(|word| word.strip_prefix("q=")?.parse().ok());
        let weight: f32 = weight.unwrap_or(1.0);
        if weight > best.0 {
            best = (weight, form);
        }
    }
    best.1
}

/// Begins a statement and writes its answer in one of the forms. Only lines are sent before the statement has ended.
async fn run(
    http: &Http,
    caller: &Caller,
    sql: String,
    params: Vec<Value>,
    form: Form,
) -> Result<SqlResponse> {
    let running = http.statements.begin(caller, sql, params, form).await?;
    let response = match form {
        Form::Rows => {
            let head = head(&running.columns)?;
            whole(running.collect(caller, head).await?)?
        }
        Form::Csv => csv(running.collect(caller, Vec::new()).await?),
        Form::Lines => lines(running),
    };
    Ok(SqlResponse(response))
}

/// How it went: milliseconds since it was asked, rows, and whether there were more than an answer has.
fn stats(started: Instant, done: inlay_sql_protocol::Done) -> SqlStats {
    SqlStats {
        wall_ms: started.elapsed().as_millis() as u64,
        rows_returned: done.rows,
        truncated: done.truncated,
    }
}

/// JSON as bytes, for the parts of an answer that is put together by hand.
fn text<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    let failed = |error| ApiError::internal(format!("an answer cannot be written: {error}"));
    serde_json::to_vec(value).map_err(failed)
}

/// What the answer as one object begins with.
fn head(columns: &Vec<OutColumn>) -> Result<Vec<u8>> {
    Ok([b"{\"columns\":", &*text(columns)?, b",\"rows\":["].concat())
}

/// One object, as the specification has it.
fn whole(answer: StatementResult) -> Result<Response> {
    let mut body = answer.rows;
    body.extend_from_slice(b"],\"stats\":");
    body.extend(text(&stats(answer.started, answer.done))?);
    body.push(b'}');
    Ok(response("application/json", held(body, answer.held)))
}

/// A file for a spreadsheet. Whether there was more is in a header.
fn csv(answer: StatementResult) -> Response {
    let truncated = if answer.done.truncated { "true" } else { "false" };
    let mut response = response("text/csv; charset=utf-8", held(answer.rows, answer.held));
    response.headers_mut().insert("x-truncated", HeaderValue::from_static(truncated));
    response
}

/// A body whose memory counts against its organisation until it has been read.
fn held(bytes: Vec<u8>, permit: StatementPermit) -> ResponseBody {
    ResponseBody::new(Paced(Bytes::from_owner(HeldBytes { bytes, _permit: permit })))
}

/// Bytes of an answer with the permit for their memory; both are released when the last chunk was written.
struct HeldBytes {
    bytes: Vec<u8>,
    _permit: StatementPermit,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// An object a row, as they come; what went wrong meanwhile, or the stats, is the last line.
fn lines(mut running: RunningStatement) -> Response {
    let (sender, receiver) = mpsc::channel::<Bytes>(PARTS_AHEAD);
    tokio::spawn(async move {
        let last = loop {
            // Nobody reads any more: the worker ends with this.
            let part = tokio::select! {
                part = running.next() => part,
                () = sender.closed() => return,
            };
            match part {
                Ok(ResultChunk::Rows(rows)) => {
                    // The statement's permit is not held longer than the statement may take.
                    let sent = timeout_at(running.deadline(), sender.send(Bytes::from(rows))).await;
                    if !matches!(sent, Ok(Ok(()))) {
                        return;
                    }
                }
                Ok(ResultChunk::End(done)) => break json!({"stats": stats(running.started, done)}),
                Err(error) => {
                    if let Some(cause) = &error.cause {
                        tracing::error!(code = error.code.name(), cause, "a statement failed");
                    }
                    break json!({"error": error.message, "code": error.code.name()});
                }
            }
        };
        let deadline = running.deadline();
        drop(running);
        let _ = timeout_at(deadline, sender.send(Bytes::from(format!("{last}\n")))).await;
    });
    response(NDJSON, ResponseBody::new(Lines(receiver)))
}

fn response(kind: &'static str, body: ResponseBody) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, body).into_response()
}
