//! How the product is spoken over HTTP.
//!
//! `v1` has one file a resource and one table of all operations. Every operation of the table
//! passes `caller`, which finds out who asks and whether he may; a handler only runs when he may.

mod chunked_body;
mod describe;
mod in_flight;
mod request_metrics;
mod throttle;

mod schema_cache;

mod context;
mod respond;

mod idempotency;
mod openapi;

mod caller;

mod extract;
mod statements;

mod layers;

mod files;
mod metrics;
mod system;
mod v1;

mod console;
mod embed_page;

mod router;

pub use caller::Peer;
pub use context::Http;
pub use router::router;
pub use throttle::Throttle;
