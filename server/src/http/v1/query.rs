//! `GET /v1/query`.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde_json::value::RawValue;

use super::view;
use crate::{
    app::{Ask, Caller},
    error::{ApiError, Code, Result},
    http::context::Http,
};

/// Answers a question.
pub async fn query(
    State(http): State<Http>,
    caller: Caller,
    parameters: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Json<Box<RawValue>>> {
    let Query(parameters) = parameters.map_err(|error| {
        ApiError::new(Code::InvalidField, format!("the query string cannot be read: {error}"))
    })?;
    let ask = Ask::parse(&parameters)?;
    let body = http.run_query(move |app| view::query(&ask, &app.query(&caller, &ask)?)).await?;
    Ok(Json(body))
}
