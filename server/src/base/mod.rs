//! Small things that every floor above uses.

pub mod instant;
pub mod secret;
pub mod text;
