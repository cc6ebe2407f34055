//! Embeds: a signed session that shows one published dashboard to one tenant.
//!
//! ```text
//! POST /v1/embed-sessions {"tenant_id": "acme", "dashboard_id": "0190…"}      by an admin key            sessions.rs: a token
//! GET  /embed/0190…?token=eyJ…                                                by a browser in a frame    views.rs: the dashboard
//! POST /v1/embed/data {"widgets": ["calls"], "filters": {"period": "7d"}}     with the token             limits.rs: may it; views.rs
//! ```

pub mod limits;
pub mod sessions;

pub mod views;
