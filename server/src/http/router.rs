//! All routes with the layers around them.
//!
//! ```text
//! /v1/…, /webhooks/billing        operations of the table, each behind `middleware::caller`
//! /openapi.json, /docs            the reference
//! /, /console/…                   the console
//! /embed/{dashboard_id}           the page of a frame
//! /assets/{hash}/…, /sdk/v1/…     files
//! /demo                           the host page of the demo
//! /healthz, /readyz, /leaderz, /metrics     for the operator
//! /internal/counts                for processes with the same store
//! any other path                  404 {"error": "there is nothing at this path", "code": "not_found", …}
//! PUT /v1/dashboards              405 {"error": "this path does not have this method", …}, Allow: GET,HEAD,POST
//! ```

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{get, post},
};
use inlay_proto::names::NDJSON;
use tower::ServiceBuilder;
use tower_http::compression::{
    CompressionLayer,
    predicate::{DefaultPredicate, NotForContentType, Predicate},
};

use super::{
    middleware::observe,
    pages::{assets, console, embed_page, metrics, nodes, system},
    respond::{no_such_method, no_such_path},
    state::context::Http,
    v1,
};
use crate::outbound::COUNTS_PATH;

/// The router of the whole server. `observe` lies inside of compression, so that it can rewrite the body of an error before it is compressed.
pub fn router(http: Http) -> Router {
    let compress = CompressionLayer::new()
        .gzip(true)
        // A compressor would hold back the lines of a stream, and fonts are compressed.
        .compress_when(
            DefaultPredicate::new()
                .and(NotForContentType::const_new(NDJSON))
                .and(NotForContentType::const_new("font/")),
        );
    // One layer of the router: it copies all that it wraps, once a request and layer.
    let layers = ServiceBuilder::new()
        .layer(compress)
        .layer(middleware::from_fn_with_state(http.clone(), observe::observe))
        .layer(DefaultBodyLimit::max(v1::BODY_BYTES_MAX));
    let (operations, document) = v1::operations(http.clone());
    // Drawn once: neither changes while the server runs.
    let reference = system::Reference::new(&http, &document);
    Router::new()
        .merge(operations)
        .route("/openapi.json", get(reference.document()))
        .route("/docs", get(reference.page()))
        .route("/", get(console::root))
        .route("/console", get(console::index))
        .route("/console/", get(console::index))
        .route("/console/{*path}", get(console::page))
        .route("/embed/{dashboard_id}", get(embed_page::page))
        .route("/assets/{hash}/{*path}", get(assets::asset))
        .route("/sdk/v1/{name}", get(assets::helper))
        .route("/demo", get(assets::demo))
        .route("/healthz", get(system::healthz))
        .route("/readyz", get(system::readyz))
        .route("/leaderz", get(system::leaderz))
        .route("/metrics", get(metrics::metrics))
        .route(COUNTS_PATH, post(nodes::counts))
        .method_not_allowed_fallback(no_such_method)
        .fallback(no_such_path)
        .layer(layers)
        .with_state(http)
}
