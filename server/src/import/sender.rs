//! One batch to the server, as often as it takes.
//!
//! ```text
//! 200   {"accepted": 998, "duplicates": 1, "errors": [{"index": 17, "field": "timestamp", …}]}   done
//! 429, 503, no answer                                                                            again, later
//! 400, 413                                                  none of them is good: halves are sent, down to the rows that are refused
//! 401, 402, 403, 404                                                                             the import ends
//! ```
//!
//! Where no event of a request is good, the API names the reason of the first only. So halves are sent, and halves of these, until each row
//! has its own reason:
//!
//! ```text
//! rows 1 to 4    400 "no event is valid; the first: tenant_id is required"
//! rows 1, 2      400
//! row 1          400    tenant_id is required
//! row 2          400    timestamp is not an ISO 8601 date-time or date
//! rows 3, 4      400
//! row 3, row 4   400    a reason each
//! ```

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use reqwest::{StatusCode, Url, header};
use serde::Deserialize;
use url::Host;

use super::batches::ImportBatch;

/// Longest wait between two attempts, where the server names none.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// A server that takes no batch for so long is given up.
const PATIENCE: Duration = Duration::from_secs(300);
/// How the answer begins when no event of a request is good; then the reason of the first one stands.
const NONE_IS_VALID: &str = "no event is valid; the first: ";
/// An answer must come within this time.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// Outcome of a batch: its events are accepted or refused, each of them once.
#[derive(Debug, Default)]
pub struct Sent {
    /// Events that are stored, those among them that were before.
    pub accepted: u64,
    /// Events that were stored before.
    pub duplicates: u64,
    /// Rows that the server refused, and why.
    pub refused: Vec<(u64, String)>,
}

/// The answer of `POST /v1/events`; fields that are not here are ignored.
#[derive(Default, Deserialize)]
struct IngestAnswer {
    accepted: u64,
    duplicates: u64,
    errors: Vec<RefusedEvent>,
}

/// An event of a request that was refused: `index` counts from 0 in the request.
#[derive(Deserialize)]
struct RefusedEvent {
    index: usize,
    field: Option<String>,
    message: String,
}

/// A connection to the API of a server.
///
/// Clones share the connections.
#[derive(Debug, Clone)]
pub struct Sender {
    client: reqwest::Client,
    url: String,
    key: String,
}

impl Sender {
    /// To a server, with a key of its API.
    ///
    /// Errors: none that is expected.
    pub fn new(server: &Url, key: String) -> anyhow::Result<Self> {
        // A server beside us is not behind the proxy of the environment, and redirects would carry the key on.
        let is_beside = match server.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        let client = reqwest::Client::builder()
            .timeout(ANSWER_TIME_MAX)
            .redirect(reqwest::redirect::Policy::none());
        let client = if is_beside { client.no_proxy() } else { client }.build()?;
        let url = format!("{}/v1/events", server.as_str().trim_end_matches('/'));
        Ok(Self { client, url, key })
    }

    /// Stores a batch. It may be stored when an error comes, too: its events have ids, and sent again they count once.
    ///
    /// Errors: a refusal that another attempt does not change, or a server that takes nothing for minutes.
    ///
    /// Refused rows of the batch itself are in the result, before those of the server.
    pub async fn send(&self, batch: &ImportBatch) -> anyhow::Result<Sent> {
        let mut sent = Sent { refused: batch.refused.clone(), ..Sent::default() };
        // The server answers with the reasons of all only where some events are good: where none is, halves are sent, down to one.
        let mut parts = vec![batch.events.as_slice()];
        while let Some(part) = parts.pop() {
            match (self.send_part(part).await?, part) {
                (Answer::Stored(answer), _) => sent.add(answer, part)?,
                (Answer::Refused(message), [(row, _)]) => sent.refused.push((*row, message)),
                (Answer::Refused(_), _) => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
            }
        }
        Ok(sent)
    }

    /// The answer about some events, after as many attempts as it takes.
    async fn send_part(&self, events: &[(u64, String)]) -> anyhow::Result<Answer> {
        if events.is_empty() {
            return Ok(Answer::Stored(IngestAnswer::default()));
        }
        let lines: Vec<&str> = events.iter().map(|(_, event)| event.as_str()).collect();
        let body = lines.join("\n");
        let began = Instant::now();
        let mut attempt = 0;
        loop {
            let (why, wait) = match self.attempt(&body).await? {
                Attempt::Done(answer) => return Ok(answer),
                Attempt::Later(why, wait) => (why, wait),
            };
            let wait = wait.unwrap_or_else(|| backoff(attempt));
            if began.elapsed() + wait > PATIENCE {
                bail!("{why}, for {} minutes", PATIENCE.as_secs() / 60);
            }
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    /// One request. `Later` for 429, 5xx and no answer, with the `Retry-After` of the server.
    ///
    /// Errors: a server that is no Inlay; a refusal of the key, the plan or the path.
    async fn attempt(&self, body: &str) -> anyhow::Result<Attempt> {
        let request = self.client.post(&self.url).bearer_auth(&self.key);
        let request = request.header(header::CONTENT_TYPE, "application/x-ndjson");
        let answer = match request.body(body.to_owned()).send().await {
            Ok(answer) => answer,
            Err(error) if error.is_builder() => return Err(error.into()),
            Err(error) => {
                // The address is said once, by us.
                let error = anyhow::Error::from(error.without_url());
                return Ok(Attempt::Later(
                    format!("{} does not answer: {error:#}", self.url),
                    None,
                ));
            }
        };
        let status = answer.status();
        let wait = answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let wait = wait.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let text = answer.text().await.unwrap_or_default();
        if status == StatusCode::OK {
            return match serde_json::from_str(&text) {
                Ok(answer) => Ok(Attempt::Done(Answer::Stored(answer))),
                Err(_) => bail!("{} does not answer as Inlay does: {}", self.url, shortened(&text)),
            };
        }
        let why = format!("{} answered {status}: {}", self.url, shortened(&text));
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            return Ok(Attempt::Later(why, wait));
        }
        if status == StatusCode::BAD_REQUEST || status == StatusCode::PAYLOAD_TOO_LARGE {
            return Ok(Attempt::Done(Answer::Refused(shortened(&text))));
        }
        bail!("{why}")
    }
}

impl Sent {
    /// Adds the answer about some events.
    ///
    /// Errors: one that does not account for each of them.
    fn add(&mut self, answer: IngestAnswer, events: &[(u64, String)]) -> anyhow::Result<()> {
        let IngestAnswer { accepted, duplicates, errors } = answer;
        if accepted + errors.len() as u64 != events.len() as u64 || duplicates > accepted {
            let (count, refused) = (events.len(), errors.len());
            bail!(
                "of {count} events the server took {accepted}, {duplicates} of them before, and refused {refused}"
            );
        }
        self.accepted += accepted;
        self.duplicates += duplicates;
        for RefusedEvent { index, field, message } in errors {
            let row = events.get(index).context("the server refuses an event that was not sent")?.0;
            let message = match field {
                Some(field) if !message.starts_with(&field) => format!("{field}: {message}"),
                _ => message,
            };
            self.refused.push((row, message));
        }
        Ok(())
    }
}

/// The final answer about some events.
enum Answer {
    Stored(IngestAnswer),
    /// None is stored, and why, of one of them.
    Refused(String),
}

/// The outcome of one request.
enum Attempt {
    Done(Answer),
    /// Why not now, and how long the server asks to wait.
    Later(String, Option<Duration>),
}

/// A wait that doubles, of which a half is left to chance: connections that failed together do not come back together.
///
/// At first 125 to 250 ms, then twice as long each time, up to 7.5 to 15 seconds.
fn backoff(attempt: u32) -> Duration {
    let longest = WAIT_MAX.min(Duration::from_millis(250 << attempt.min(8)));
    let chance = f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
    longest.mul_f64(0.5 + chance / 2.0)
}

/// The message of a refusal, or the beginning of whatever came.
///
/// `{"error": "no event is valid; the first: tenant_id is required", …}` is `tenant_id is required`. At most 300 characters.
fn shortened(text: &str) -> String {
    let body: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let message = body["error"].as_str().map(|text| text.trim_start_matches(NONE_IS_VALID));
    message.unwrap_or(text).trim().chars().take(300).collect()
}
