//! Files for browsers: the hashed tree, the helper for host pages, the demo.
//!
//! ```text
//! GET /assets/3b963ae98bb164ec/dist/embed.js     200 text/javascript; charset=utf-8, Cache-Control: public, max-age=31536000, immutable
//! GET /assets/0000/dist/embed.js                 404: the hash of another build
//! GET /sdk/v1/embed.js                           200 Cache-Control: public, max-age=3600, ETag: W/"3b963ae98bb164ec"
//! GET /sdk/v1/embed.js
//! If-None-Match: W/"3b963ae98bb164ec"              304
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
    // The tree's hash changes with every file in it, which is often enough. The tag is weak: it is the same for each coding of the file.
    let hash = format!("\"{}\"", http.files.base().replace("/assets/", ""));
    let tag = HeaderValue::from_str(&format!("W/{hash}"))
        .map_err(|_| ApiError::internal("a hash is no header"))?;
    // A browser may send several tags: the hash may stand anywhere in the header.
    let is_known = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .any(|sent| sent.as_bytes().windows(hash.len()).any(|part| part == hash.as_bytes()));
    let mut response = answer(file, HELPER_AGE, &headers);
    if is_known {
        // With the headers of the whole answer, by which the browser keeps its copy.
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(header::CONTENT_LENGTH);
        // Of what a cache has, which may be in another coding.
        response.headers_mut().remove(header::CONTENT_ENCODING);
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

/// A file, as brotli or gzip for clients that take it. Pages of other origins may read it.
///
/// `age` is the value of `Cache-Control`. The copies were made before; where there is none, the bytes are sent as they are.
fn answer(file: &WebFile, age: &'static str, headers: &HeaderMap) -> Response {
    let fixed = |text: &'static str| HeaderValue::from_static(text);
    let copies = [("br", &file.brotli), ("gzip", &file.gzip)];
    let compressed = copies.into_iter().find_map(|(coding, copy)| {
        copy.as_ref().filter(|_| takes(headers, coding)).map(|copy| (coding, copy))
    });
    let bytes = compressed.map_or(&file.bytes, |(_, copy)| copy);
    let mut response = bytes.clone().into_response();
    let out = response.headers_mut();
    out.insert(header::CONTENT_TYPE, fixed(file.content_type));
    out.insert(header::CACHE_CONTROL, fixed(age));
    out.insert(header::VARY, fixed("accept-encoding"));
    out.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, fixed("*"));
    out.insert(HeaderName::from_static("cross-origin-resource-policy"), fixed("cross-origin"));
    if let Some((coding, _)) = compressed {
        out.insert(header::CONTENT_ENCODING, fixed(coding));
    }
    response
}

/// Whether a client names a coding among those that it takes.
///
/// ```text
/// Accept-Encoding: gzip, deflate, br    gzip yes, br yes
/// Accept-Encoding: gzip;q=0.5, br;q=0   gzip yes, br no
/// ```
fn takes(headers: &HeaderMap, coding: &str) -> bool {
    let codings = headers.get_all(header::ACCEPT_ENCODING).iter();
    codings.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(
        |named| {
            let (name, weight) = named.split_once(';').unwrap_or((named, ""));
            let weight = weight.split_once('=').and_then(|(_, weight)| weight.trim().parse().ok());
            name.trim().eq_ignore_ascii_case(coding) && weight != Some(0.0)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_the_smallest_copy_that_it_takes() {
        let file = WebFile {
            content_type: "text/css; charset=utf-8",
            bytes: b"plain".to_vec(),
            gzip: Some(b"gz".to_vec()),
            brotli: Some(b"b".to_vec()),
        };
        let coding = |accepted: &'static str| {
            let headers = HeaderMap::from_iter([(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static(accepted),
            )]);
            let answered = answer(&file, FOR_EVER, &headers);
            let coding = answered.headers().get(header::CONTENT_ENCODING).cloned();
            coding.map(|coding| coding.to_str().unwrap().to_owned())
        };
        assert_eq!(coding("gzip, deflate, br, zstd").as_deref(), Some("br"));
        assert_eq!(coding("gzip, BR;q=1.0").as_deref(), Some("br"));
        assert_eq!(coding("gzip;q=0.5, br; Q=0").as_deref(), Some("gzip"));
        assert_eq!(coding("brotli, identity"), None);
        assert_eq!(
            answer(&file, FOR_EVER, &HeaderMap::new()).headers()[header::VARY],
            "accept-encoding"
        );
    }
}
