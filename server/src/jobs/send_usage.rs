//! Sends the leader what a process that follows has counted: queries, and embed pages.
//!
//! ```text
//! GET /v1/query, 40 times within a second, at a process that follows
//!     →  POST /internal/counts at the leader, [{"org": "…", "environment": "…", "queries": 40, "embed_views": 0}]
//! ```
//!
//! What is not taken is sent with the next turn. An answer that is lost may count twice what it was about.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, header};
use tokio::sync::watch;
use tracing::warn;

use crate::{
    app::{App, EnvironmentCounts},
    outbound::{COUNTS_PATH, LeaderClient},
};

/// What a crash of such a process may lose of counts.
const EVERY: Duration = Duration::from_secs(1);

/// Runs until this process leads or the server stops; what is left then is sent as well.
pub async fn run(app: App, leader: LeaderClient, mut stopped: watch::Receiver<bool>) {
    let membership = app.settings.membership.clone();
    while !membership.leads() {
        let is_stopping = tokio::select! {
            _ = stopped.changed() => true,
            () = tokio::time::sleep(EVERY) => false,
        };
        if !membership.leads() {
            send(&app, &leader).await;
        }
        if is_stopping {
            return;
        }
    }
}

async fn send(app: &App, leader: &LeaderClient) {
    let counts = app.counters.take();
    if counts.is_empty() {
        return;
    }
    let body = serde_json::json!(EnvironmentCounts::list(&counts)).to_string();
    let headers = HeaderMap::from_iter([(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    )]);
    let request = (Method::POST, COUNTS_PATH);
    let now_seconds = app.now_ms() / 1_000;
    let sent = leader.send(request, headers, Some(body.into()), None, now_seconds).await;
    match sent {
        Ok(response) if response.status().is_success() => {}
        other => {
            app.counters.give_back(counts);
            let why = other.map(|response| response.status());
            warn!(answer = ?why, "counts of queries were not taken by the leader, and are sent again");
        }
    }
}
