//! State that all requests share: the product, its limits, caches, counters.
//!
//! ```text
//! context            the product, files, and permits: how a handler runs its work
//! throttle           429 when a caller asks too often
//! in_flight          409 while a request with the same idempotency key runs
//! schema_cache       compiled schemas of bodies
//! request_metrics    inlay_http_requests_total{path="/v1/query",method="GET",status="200"} 5
//! ```

pub mod in_flight;
pub mod request_metrics;
pub mod schema_cache;
pub mod throttle;

pub mod context;
