//! Small things that every floor above uses.

pub mod civil;
pub mod ids;
pub mod instant;
pub mod json;
pub mod memory;
pub mod secret;
pub mod shape;
pub mod text;

pub mod signature;
