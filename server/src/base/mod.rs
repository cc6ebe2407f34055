//! Small things that every floor above uses.

pub mod civil;
pub mod ids;
pub mod instant;
pub mod json;
pub mod json_schema;
pub mod memory;
pub mod permit_pools;
pub mod query_threads;
pub mod secret;
pub mod text;

pub mod query_permits;
pub mod signature;
