//! How the product is spoken over HTTP.
//!
//! | room | what is in it |
//! |---|---|
//! | `v1` | one table of all operations; one file a resource |
//! | `middleware` | what every request passes: its id and log line, the caller and what they may do, rate limits, idempotency |
//! | `extract` | what a handler takes from a request, with errors that name the field |
//! | `respond`, `chunked_body` | what a handler answers: JSON with its status, the one shape of errors, large bodies in parts |
//! | `openapi` | the document, read from the signatures of handlers |
//! | `pages` | files for browsers, health, metrics |
//! | `state` | what all requests share |
//!
//! Every operation of the table passes `middleware::caller`; a handler only runs for a caller that may.
//!
//! A request from outside to inside, `PATCH /v1/dashboards/{id}` with a key:
//!
//! ```text
//! router        compression                       the answer as gzip, where the client takes it
//!               middleware::observe               request id, 60 s, panic to 500, log line, headers of every response
//!               body limit                        1 MiB, unless the operation takes its body itself
//! v1::mod       the row of the table              UpdateDashboard
//!               middleware::caller                key -> caller -> access table -> token of the rate limit
//! extract       Caller, Id, BaseVersion, Body     from extensions, path, If-Match, body
//! v1            dashboards::update                calls `app` on the blocking pool, makes the view
//! respond       Versioned<DashboardView>          200, ETag: "8"; or an error: {"error", "code", "request_id"}
//! ```

mod chunked_body;
mod openapi;

mod state;

mod respond;

mod middleware;

mod extract;

mod v1;

mod pages;

mod router;

pub use middleware::caller::Peer;
pub use router::router;
pub use state::{context::Http, throttle::Throttle};
