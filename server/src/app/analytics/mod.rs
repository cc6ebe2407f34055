//! Events in, answers out: ingest, metric queries, what events look like, tables of SQL, erasure.
//!
//! ```text
//! POST /v1/events        events.rs           {"events": [{"tenant_id": "acme", "event_name": "api_call", …}]}
//! GET /v1/query          query.rs            …&metric=count&period=7d            {"data": [{"value": 5}], "meta": {…}}
//!                        query_parameters.rs           what may stand in its URL
//! GET /v1/discover       discover.rs         which events there are, with which properties
//! GET /v1/datasets       datasets.rs         the same as tables of SQL
//! /v1/saved-queries      saved_queries.rs    statements with a name
//! DELETE /v1/tenants/…   erasures.rs         a job and its receipt
//! ```
//!
//! Statements of SQL themselves are in `sql`, above all subjects: they run in processes of their own.

pub mod discover;
pub mod erasures;
pub mod events;
pub mod query;
pub mod query_parameters;
pub mod saved_queries;

pub mod datasets;
