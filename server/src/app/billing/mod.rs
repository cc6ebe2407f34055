//! What an organisation uses, and what it pays for.
//!
//! The provider has the money and the invoices. Here is what follows from it: the plan of an organisation, and what was used of it.
//!
//! ```text
//! POST /webhooks/billing    subscription.rs    plan and status
//! POST /v1/events           usage.rs           events of the day and the month
//! GET /v1/billing           subscription.rs    {"plan": "growth", "status": "active", "usage": {"monthly_events": 11, …}, …}
//! ```

pub mod usage;

pub mod subscription;
