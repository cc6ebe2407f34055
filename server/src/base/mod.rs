//! Small things that every floor above uses.

pub mod instant;
pub mod json;
pub mod secret;
pub mod text;
