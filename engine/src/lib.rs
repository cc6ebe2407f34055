//! The event store of Inlay.
mod error;

mod base;

mod vfs;

mod event;

mod column;

mod batch;

mod encode;
pub use error::{Error, Limit, Result};
