//! Endpoints beside `/v1`: pages and files for browsers, health, metrics, the reference of the API.
//!
//! They are public and have no rate limit of the table; `embed_page` counts its requests by embed session.
//!
//! ```text
//! assets        /assets/{hash}/{path}, /sdk/v1/embed.js, /sdk/v1/embed.d.ts, /demo
//! console       /, /console/…
//! embed_page    /embed/{dashboard_id}
//! metrics       /metrics
//! nodes         /internal/counts
//! system        /healthz, /readyz, /leaderz, /openapi.json, /docs
//! ```

pub mod assets;
pub mod console;
pub mod embed_page;
pub mod metrics;
pub mod nodes;
pub mod system;
