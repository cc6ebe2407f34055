//! The OpenAPI document: read from the signatures of handlers, put together from the table of operations.

pub mod describe;

pub mod document;
