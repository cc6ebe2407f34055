//! What processes of one store send each other.
//!
//! ```text
//! POST /internal/counts    204: queries and embed pages that a process that follows has counted
//!                          404: the request is not one of such a process
//! ```

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};

use crate::{
    app::EnvironmentCounts,
    http::{middleware::cluster::FromNode, respond::no_such_path, state::context::Http},
};

/// Adds counts to those of this process, which writes them down.
pub async fn counts(
    State(http): State<Http>,
    node: Option<Extension<FromNode>>,
    Json(counts): Json<Vec<EnvironmentCounts>>,
) -> Response {
    if node.is_none() {
        return no_such_path().await.into_response();
    }
    http.app.counters.add_all(counts);
    StatusCode::NO_CONTENT.into_response()
}
