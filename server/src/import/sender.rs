//! One batch to the server, as often as it takes.
//!
//! ```text
//! 200   {"accepted": 998, "duplicates": 1, "errors": [{"index": 17, "field": "timestamp", …}]}   done
//! 429, 503, no answer                                                                            again, later
//! 401, 402, 403, 404, 413                                                                        the import ends
//! ```

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use reqwest::{StatusCode, Url, header};
use serde::Deserialize;

use super::batches::ImportBatch;

/// Longest wait between two attempts.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// A server that takes no batch for so long is given up.
const PATIENCE: Duration = Duration::from_secs(300);
/// An answer must come within this time.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// What became of a batch.
#[derive(Debug, Default)]
pub struct Sent {
    /// Events that are stored, those among them that were before.
    pub accepted: u64,
    /// Events that were stored before.
    pub duplicates: u64,
    /// Rows that the server refused, and why.
    pub refused: Vec<(u64, String)>,
}

#[derive(Deserialize)]
struct IngestAnswer {
    accepted: u64,
    duplicates: u64,
    errors: Vec<RefusedEvent>,
}

#[derive(Deserialize)]
struct RefusedEvent {
    index: usize,
    field: Option<String>,
    message: String,
}

/// A connection to the API of a server.
#[derive(Debug, Clone)]
pub struct Sender {
    client: reqwest::Client,
    url: Url,
    key: String,
}

impl Sender {
    /// To a server, with a key of its API.
    ///
    /// Errors: an address that is none.
    pub fn new(server: &Url, key: String) -> anyhow::Result<Self> {
        let url = server.join("/v1/events").context("--url is no address of a server")?;
        // A proxy of the environment is for others than a server beside us; redirects would carry the key on.
        let client = reqwest::Client::builder()
            .timeout(ANSWER_TIME_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self { client, url, key })
    }

    /// Stores a batch. It may be stored when an error comes, too: its events have ids, and sent again they count once.
    ///
    /// Errors: a refusal that another attempt does not change, or a server that takes nothing for minutes.
    pub async fn send(&self, batch: &ImportBatch) -> anyhow::Result<Sent> {
        let mut sent = Sent { refused: batch.refused.clone(), ..Sent::default() };
        if batch.rows.is_empty() {
            return Ok(sent);
        }
        let began = Instant::now();
        for attempt in 0_u32.. {
            let (why, wait) = match self.attempt(batch).await {
                Ok(Attempt::Done(answer)) => {
                    (sent.accepted, sent.duplicates) = (answer.accepted, answer.duplicates);
                    for RefusedEvent { index, field, message } in answer.errors {
                        let row = batch.rows.get(index).copied().unwrap_or(batch.last_row);
                        let message =
                            field.map_or(message.clone(), |field| format!("{field}: {message}"));
                        sent.refused.push((row, message));
                    }
                    return Ok(sent);
                }
                Ok(Attempt::Later(why, wait)) => (why, wait),
                Err(error) => return Err(error),
            };
            if began.elapsed() > PATIENCE {
                bail!("{why}, for {} minutes", PATIENCE.as_secs() / 60);
            }
            tokio::time::sleep(wait.unwrap_or_else(|| backoff(attempt)).min(WAIT_MAX)).await;
        }
        bail!("it was tried too often")
    }

    async fn attempt(&self, batch: &ImportBatch) -> anyhow::Result<Attempt> {
        let request = self.client.post(self.url.clone()).bearer_auth(&self.key);
        let request = request.header(header::CONTENT_TYPE, "application/x-ndjson");
        let answer = match request.body(batch.body.clone()).send().await {
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
                Ok(answer) => Ok(Attempt::Done(answer)),
                Err(_) => bail!("{} does not answer as Inlay does: {}", self.url, shortened(&text)),
            };
        }
        let why = format!("{} answered {status}: {}", self.url, shortened(&text));
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            return Ok(Attempt::Later(why, wait));
        }
        bail!("{why}")
    }
}

enum Attempt {
    Done(IngestAnswer),
    /// Why not now, and how long the server asks to wait.
    Later(String, Option<Duration>),
}

/// A wait that doubles, of which a half is left to chance: connections that failed together do not come back together.
fn backoff(attempt: u32) -> Duration {
    let longest = WAIT_MAX.min(Duration::from_millis(250 << attempt.min(8)));
    let chance = f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
    longest.mul_f64(0.5 + chance / 2.0)
}

/// The message of a refusal, or the beginning of whatever came.
fn shortened(text: &str) -> String {
    let body: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let message = body["error"].as_str();
    message.unwrap_or(text).trim().chars().take(300).collect()
}
