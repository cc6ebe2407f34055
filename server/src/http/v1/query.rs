//! `GET /v1/query`.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde_json::{Value, json};

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
) -> Result<Json<Value>> {
    let Query(parameters) = parameters.map_err(|error| {
        ApiError::new(Code::InvalidField, format!("the query string cannot be read: {error}"))
    })?;
    let ask = Ask::parse(&parameters)?;
    let (ask, answer) =
        http.run_query(move |app| app.query(&caller, &ask).map(|answer| (ask, answer))).await?;
    Ok(Json(json!({"data": view::rows(&answer.rows), "meta": view::meta(&ask, &answer)})))
}
