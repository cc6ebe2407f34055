//! Endpoints beside `/v1`: pages and files for browsers, health, metrics, the reference of the API.

pub mod assets;
pub mod console;
pub mod embed_page;
pub mod metrics;
pub mod system;
