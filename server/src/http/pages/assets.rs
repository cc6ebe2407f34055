//! Files for browsers: the hashed tree, the helper for host pages, the demo.
//!
//! ```text
//! GET /assets/3b963ae98bb164ec/dist/embed.js     200 text/javascript; charset=utf-8, Cache-Control: public, max-age=31536000, immutable
//! GET /assets/0000/dist/embed.js                 404: the hash of another build
//! GET /sdk/v1/embed.js                           200 Cache-Control: public, max-age=3600, ETag: "3b963ae98bb164ec"
//! GET /sdk/v1/embed.js
//! If-None-Match: "3b963ae98bb164ec"              304
//! GET /sdk/v1/other.js                           404
//! GET /demo                                      200, or 404 where the server runs without `--demo`
//! ```
//!
//! Pages of any origin may load files and the helper (`Access-Control-Allow-Origin: *`): host pages import it.

use axum::{
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::{
    app::demo_tenants,
    error::{ApiError, Code, Result},
    http::state::context::Http,
    web::{self, WebFile},
};

/// A file of the tree never changes under its name.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// The helper keeps its address; an hour is how long a new one may take to reach everybody.
const HELPER_AGE: &str = "public, max-age=3600";
/// Paths of the helper and its types within the tree.
const HELPER: [(&str, &str); 2] =
    [("embed.js", "dist/helper.js"), ("embed.d.ts", "host/public.d.ts")];
/// The demo frames embeds, whose addresses begin as the settings say.
/// The base URL of the server is added to `frame-src`: behind a proxy it is not `'self'`.
const DEMO_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; \
                           img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                           frame-ancestors 'none'; frame-src 'self'";

/// A file of the hashed tree. 404 for another hash too: a page of an older build must not mix its files with those of this one.
pub async fn asset(
    State(http): State<Http>,
    Path((hash, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let is_current = http.files.base().ends_with(&format!("/{hash}"));
    match http.files.find(&path).filter(|_| is_current) {
        Some(file) => answer(file, FOR_EVER, &headers),
        None => (StatusCode::NOT_FOUND, "no such file").into_response(),
    }
}

/// The helper (`embed.js`) and its types (`embed.d.ts`); 304 where the browser has this version, 404 for every other name.
pub async fn helper(
    State(http): State<Http>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response> {
    let known = HELPER.iter().find(|(known, _)| *known == name);
    let file = known.and_then(|(_, path)| http.files.find(path));
    let file = file.ok_or_else(|| ApiError::new(Code::NotFound, "there is nothing here"))?;
    // The tree's hash changes with every file in it, which is often enough.
    let tag = HeaderValue::from_str(&format!("\"{}\"", http.files.base().replace("/assets/", "")))
        .map_err(|_| ApiError::internal("a hash is no header"))?;
    // A browser may send several tags, and proxies mark them as weak (`W/"…"`): the tag may stand anywhere in the header.
    let is_known = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .any(|sent| sent.as_bytes().windows(tag.len()).any(|part| part == tag.as_bytes()));
    let mut response = answer(file, HELPER_AGE, &headers);
    if is_known {
        // With the headers of the whole answer, by which the browser keeps its copy.
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

/// The demo page. 404 when the server runs without it.
pub async fn demo(State(http): State<Http>) -> Result<Response> {
    let settings = &http.app.settings;
    if !settings.demo {
        return Err(ApiError::new(Code::NotFound, "this server runs without the demo"));
    }
    let base = http.files.base();
    let (style, script) = (format!("{base}/dist/demo.css"), format!("{base}/dist/demo.js"));
    let page = web::demo(&style, &script, &settings.base_url, &demo_tenants())?;
    let policy = HeaderValue::from_str(&format!("{DEMO_POLICY} {}", settings.base_url))
        .unwrap_or_else(|_| HeaderValue::from_static(DEMO_POLICY));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, policy),
    ];
    Ok((headers, page).into_response())
}

/// A file, as gzip for clients that take it. Pages of other origins may read it.
///
/// `age` is the value of `Cache-Control`. The copy as gzip was made at start; where there is none, the bytes are sent as they are.
fn answer(file: &WebFile, age: &'static str, headers: &HeaderMap) -> Response {
    let fixed = |text: &'static str| HeaderValue::from_static(text);
    let takes_gzip = headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| coding.trim() == "gzip" || coding.trim().starts_with("gzip;q=1"));
    let compressed = file.gzip.as_ref().filter(|_| takes_gzip);
    let mut response = compressed.unwrap_or(&file.bytes).clone().into_response();
    let out = response.headers_mut();
    out.insert(header::CONTENT_TYPE, fixed(file.content_type));
    out.insert(header::CACHE_CONTROL, fixed(age));
    out.insert(header::VARY, fixed("accept-encoding"));
    out.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, fixed("*"));
    out.insert(HeaderName::from_static("cross-origin-resource-policy"), fixed("cross-origin"));
    if compressed.is_some() {
        out.insert(header::CONTENT_ENCODING, fixed("gzip"));
    }
    response
}
