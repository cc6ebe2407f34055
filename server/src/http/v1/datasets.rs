//! `/v1/datasets`: the tables of SQL.
//!
//! ```text
//! GET /v1/datasets
//! 200 {"data":[
//!   {"name":"events","kind":"table","engine":"inlay","description":"Every event.","rows":43,"bytes":504,"updated_at":"2026-11-28T00:18:56.737Z",
//!    "columns":[{"name":"tenant_id","type":"VARCHAR","nullable":false,"description":"Your customer whose event it is."},…],
//!    "properties":[{"name":"latency_ms","type":"DOUBLE","sql":"numeric_props['latency_ms']","events":["api_call"]},…]},
//!   {"name":"events_hourly","kind":"view",…},{"name":"events_daily","kind":"view",…}],"next":null}
//!
//! GET /v1/datasets/events_daily/ddl
//! 200 {"name":"events_daily","ddl":"CREATE MATERIALIZED VIEW events_daily AS\nSELECT tenant_id, event_name, …"}
//! GET /v1/datasets/nope/ddl
//! 404 dataset not found
//! ```

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::Time;
use crate::{
    app::{Caller, Dataset},
    error::Result,
    http::{
        extract::DatasetName,
        respond::{Answer, List},
        state::context::Http,
    },
};

/// A table that statements can name.
#[derive(Serialize, ToSchema)]
#[schema(as = Dataset)]
pub struct DatasetView {
    #[schema(example = "events")]
    name: &'static str,
    /// `table` or `view`.
    #[schema(example = "table")]
    kind: &'static str,
    /// What it is kept in.
    engine: &'static str,
    description: &'static str,
    /// Approximate number of rows.
    rows: u64,
    /// Approximate size on disk in bytes; both rollup tables show the size of all rollups.
    bytes: u64,
    /// Time of its newest event.
    updated_at: Option<Time>,
    columns: Vec<ColumnView>,
    /// Properties of the events of the last thirty days; of `events` only.
    properties: Vec<PropertyView>,
}

/// A column of a table.
#[derive(Serialize, ToSchema)]
#[schema(as = DatasetColumn)]
struct ColumnView {
    #[schema(example = "tenant_id")]
    name: &'static str,
    /// Type in SQL.
    #[schema(example = "VARCHAR")]
    r#type: &'static str,
    nullable: bool,
    description: &'static str,
}

/// A property of events.
#[derive(Serialize, ToSchema)]
#[schema(as = DatasetProperty)]
struct PropertyView {
    #[schema(example = "model")]
    name: String,
    /// Type in SQL.
    r#type: &'static str,
    /// How a statement reads it.
    #[schema(example = "string_props['model']")]
    sql: String,
    /// Events that have it.
    events: Vec<String>,
}

/// A create statement.
#[derive(Serialize, ToSchema)]
pub struct Ddl {
    name: String,
    #[schema(example = "CREATE TABLE events (…);")]
    ddl: String,
}

/// The tables that statements can name, with their columns and properties. It takes a permit of a query: properties are read from events.
pub async fn list(State(http): State<Http>, caller: Caller) -> Result<List<DatasetView>> {
    let datasets = http.run_query(&caller.org.clone(), move |app| app.datasets(&caller)).await?;
    Ok(List { data: datasets.into_iter().map(view).collect(), next: None })
}

/// The create statement of one: for tools and people. No statement can be run that creates anything.
pub async fn ddl(
    State(http): State<Http>,
    _: Caller,
    DatasetName(name): DatasetName,
) -> Result<Answer<Ddl>> {
    let ddl = http.app.dataset_ddl(&name)?;
    Ok(Answer(Ddl { name, ddl }))
}

fn view(dataset: Dataset) -> DatasetView {
    let columns = dataset.columns.iter().map(|&(name, r#type, nullable, description)| ColumnView {
        name,
        r#type,
        nullable,
        description,
    });
    let properties = dataset.properties.into_iter().map(|property| PropertyView {
        name: property.name,
        r#type: property.kind,
        sql: property.sql,
        events: property.events,
    });
    DatasetView {
        name: dataset.name,
        kind: dataset.kind,
        engine: "inlay",
        description: dataset.about,
        rows: dataset.rows,
        bytes: dataset.bytes,
        updated_at: dataset.updated_at.map(Time),
        columns: columns.collect(),
        properties: properties.collect(),
    }
}
