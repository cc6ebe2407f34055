//! State that all requests share: the product, its limits, caches, counters.

pub mod in_flight;
pub mod request_metrics;
pub mod schema_cache;
pub mod throttle;

pub mod context;
