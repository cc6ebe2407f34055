//! Events in, answers out: ingest, metric queries, what events look like, tables of SQL, erasure.

pub mod discover;
pub mod erasures;
pub mod events;
pub mod query;
pub mod saved_queries;

pub mod datasets;
