//! `/v1/saved-queries`: stored, changed, starred, deleted. `sql` runs them.
//!
//! ```text
//! POST /v1/saved-queries
//! {"name": "Calls by tenant", "sql": "SELECT tenant_id, count(*) AS n FROM events WHERE event_name = $1 GROUP BY 1 ORDER BY 2 DESC"}
//! 201 {"id":"01a21f86-8796-…","name":"Calls by tenant","sql":"SELECT …","dataset":"events","starred":false,"created_by":null,…}
//!
//! PATCH /v1/saved-queries/01a21f86-8796-… {"starred": true}                    200, first in the list from now on
//! POST /v1/saved-queries/01a21f86-8796-…/run {"params": ["api_call"]}          200 {"columns":[…],"rows":[["acme",32],["globex",10]],…}
//! ```
//!
//! A statement is stored without a check of its syntax: tables and functions may be there later.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::view::{Name, Time};
use crate::{
    app::{Caller, SavedQueryChange},
    error::Result,
    http::{
        extract::{Body, Id, Page, Params},
        respond::{Answer, Created, List, NoContent},
        state::context::Http,
    },
    store::SavedQuery,
};

/// A query to keep.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSavedQuery {
    #[schema(value_type = Name, example = "Calls by tenant")]
    name: String,
    /// Checked when it runs; 64 KiB at most.
    #[schema(min_length = 1, example = "SELECT tenant_id, count(*) FROM events GROUP BY 1")]
    sql: String,
    /// The dataset that it is mainly about; `events` by default.
    #[schema(value_type = Option<Name>, example = "events")]
    dataset: Option<String>,
    #[serde(default)]
    starred: bool,
}

/// What to change of a saved query; absent parts stay.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateSavedQuery {
    #[schema(value_type = Option<Name>)]
    name: Option<String>,
    #[schema(min_length = 1)]
    sql: Option<String>,
    #[schema(value_type = Option<Name>)]
    dataset: Option<String>,
    starred: Option<bool>,
}

/// A saved query.
#[derive(Serialize, ToSchema)]
#[schema(as = SavedQuery)]
pub struct SavedQueryView {
    #[schema(format = Uuid)]
    id: String,
    name: String,
    sql: String,
    dataset: String,
    /// Whether it stands at the top.
    starred: bool,
    /// Id of the user, if a user made it.
    created_by: Option<String>,
    created_at: Time,
    updated_at: Time,
}

/// All of the organisation: starred ones first, then newest first.
///
/// The key of a page is the star and the id, such as `101a21f86-8796-…`, since the order is not that of the ids alone.
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<SavedQueryView>> {
    let queries = http.run(move |app| app.saved_queries(&caller)).await?;
    let (queries, next) =
        page.cut(queries, |query| format!("{}{}", u8::from(query.starred), query.id))?;
    Ok(List { data: queries.into_iter().map(view).collect(), next })
}

/// Stores a query. 201, or 409 for the 1,001st of the organisation.
pub async fn create(
    State(http): State<Http>,
    caller: Caller,
    body: Body<CreateSavedQuery>,
) -> Result<Created<SavedQueryView>> {
    let body = body.read()?;
    let new = SavedQueryChange {
        name: Some(body.name),
        sql: Some(body.sql),
        dataset: body.dataset,
        starred: Some(body.starred),
    };
    http.run(move |app| app.create_saved_query(&caller, new)).await.map(view).map(Created)
}

/// Changes a query; absent parts stay. 200 with the whole of it.
pub async fn update(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    body: Body<UpdateSavedQuery>,
) -> Result<Answer<SavedQueryView>> {
    let query = http
        .run(move |app| {
            // Whether the query exists comes before what is wrong with the body.
            app.find_saved_query(&caller, &id)?;
            let body = body.read()?;
            let change = SavedQueryChange {
                name: body.name,
                sql: body.sql,
                dataset: body.dataset,
                starred: body.starred,
            };
            app.update_saved_query(&caller, &id, change)
        })
        .await?;
    Ok(Answer(view(query)))
}

/// Deletes a query. 204; 404 for one of another organisation.
pub async fn delete(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<NoContent> {
    http.run(move |app| app.delete_saved_query(&caller, &id)).await?;
    Ok(NoContent)
}

fn view(query: SavedQuery) -> SavedQueryView {
    SavedQueryView {
        id: query.id,
        name: query.name,
        sql: query.sql,
        dataset: query.dataset,
        starred: query.starred,
        created_by: query.created_by,
        created_at: Time(query.created_at),
        updated_at: Time(query.updated_at),
    }
}
