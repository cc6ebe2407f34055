//! What an organisation uses, and what it pays for.

pub mod usage;

pub mod subscription;
