//! Embeds: a signed session that shows one published dashboard to one tenant.

pub mod limits;
pub mod sessions;

pub mod views;
