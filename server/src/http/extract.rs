//! What handlers take from a request, with errors that name the field.
//!
//! A handler lists these types as its arguments; each is read in order, and the first that fails is the answer. Each also describes itself
//! for the OpenAPI document (`Takes`):
//!
//! ```text
//! argument               from                          fault
//! Caller, Viewer         `middleware::caller`          401, were it not there
//! Id                     {id}                          400 id is not a UUID
//! AlertId                {alert_id}                    400 alert_id is not a number
//! Params<Page>           ?limit=0                      400 limit must be between 1 and 1000
//!                        ?page=2                       400 page is not a field of this request
//! BaseVersion            If-Match: abc                 400 If-Match must be one version
//! Body<CreateDashboard>  {"title": "x"}                400 with two faults: title is not a field of this request; name is required
//!                        Content-Type: text/plain      415 the body must be JSON: Content-Type: application/json
//!                        1.1 MB                        413 the body is larger than this path accepts
//! ```
//!
//! A body is received with its arguments and read by the handler, after it has looked whether the object is there.

use std::{marker::PhantomData, sync::Arc};

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, RawPathParams, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::IntoResponse as _,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        KnownFormat, Required, SchemaFormat,
        path::ParameterIn,
        schema::{ObjectBuilder, SchemaType, Type},
    },
};

use super::{
    openapi::describe::{Description, Takes},
    state::{context::Http, schema_cache::SchemaCache},
};
use crate::{
    app::{Caller, Client, Viewer},
    base::json as base_json,
    error::{ApiError, Code, Result},
    http::middleware::caller::{ClientAddress, SessionCookie},
};

/// Pattern of an `If-Match`: a version in quotes, or any.
const TAG: &str = "^(\"[0-9]{1,18}\"|\\*)$";
/// A body must arrive within this time; a client that sends a byte a second would hold its memory for long.
const BODY_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(20);
/// Entries of a page, at most.
const PAGE_MAX: usize = 1_000;
/// Bodies up to this size are parsed and checked in some ten microseconds, which costs less than another thread.
const SMALL_BODY_BYTES: usize = 4 << 10;

/// Types that the guard has put among the extensions of a request.
macro_rules! from_the_guard {
    ($($kind:ty)*) => {
        $(
            impl<S: Send + Sync> FromRequestParts<S> for $kind {
                type Rejection = ApiError;
                async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
                    parts.extensions.get().cloned().ok_or_else(missing_credentials)
                }
            }

            impl Takes for $kind {}
        )*
    };
}

from_the_guard!(Caller Viewer SessionCookie);

// Address and browser, for the list of sessions: operations without a caller take it, too.
impl<S: Send + Sync> FromRequestParts<S> for Client {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let address = parts.extensions.get::<ClientAddress>().ok_or_else(missing_credentials)?;
        let user_agent = parts.headers.get(header::USER_AGENT);
        let user_agent = user_agent.and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(Self { ip: address.0, user_agent })
    }
}

impl Takes for Client {}

/// 401 for a handler that asks for a caller of a kind that its operation does not allow.
///
/// The guard puts callers there for every operation that allows them, so this is a mistake of ours that stays closed.
fn missing_credentials() -> ApiError {
    ApiError::new(Code::Unauthenticated, "valid credentials for this operation are missing")
}

impl Takes for State<Http> {}
impl Takes for HeaderMap {}

/// Parameters of a path that may be any text: ids that customers choose.
macro_rules! path_texts {
    ($($(#[$doc:meta])* $kind:ident $name:literal;)*) => {
        $(
            $(#[$doc])*
            pub struct $kind(pub String);

            impl<S: Send + Sync> FromRequestParts<S> for $kind {
                type Rejection = ApiError;
                async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
                    parameter(parts, state, $name).await.map(Self)
                }
            }

            impl Takes for $kind {
                fn takes(description: &mut Description) {
                    let schema = ObjectBuilder::new()
                        .schema_type(SchemaType::Type(Type::String))
                        .min_length(Some(1));
                    description.path_parameter($name, concat!("The ", $name, "."), schema);
                }
            }
        )*
    };
}

path_texts! {
    /// The `{widget_id}` of a path, any text.
    WidgetId "widget_id";
    /// The `{name}` of a path, any text.
    DatasetName "name";
    /// The `{tenant_id}` of a path, any text.
    TenantId "tenant_id";
    /// The `{user_id}` of a path, any text.
    UserId "user_id";
}

/// The `{id}` of a path, a UUID of 36 characters. Other notations (braces, no hyphens) are 400: an id is compared as text.
pub struct Id(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let id = parameter(parts, state, "id").await?;
        if id.len() == 36 && uuid::Uuid::try_parse(&id).is_ok() {
            return Ok(Self(id));
        }
        Err(ApiError::field(Code::InvalidField, "id", "id is not a UUID"))
    }
}

impl Takes for Id {
    fn takes(description: &mut Description) {
        let schema = ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)));
        description.path_parameter("id", "The id.", schema);
    }
}

/// Parameters of a path that are numbers, which an organisation counts from 1.
macro_rules! path_numbers {
    ($($(#[$doc:meta])* $kind:ident $name:literal;)*) => {
        $(
            $(#[$doc])*
            pub struct $kind(pub u64);

            impl<S: Send + Sync> FromRequestParts<S> for $kind {
                type Rejection = ApiError;
                async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
                    let text = parameter(parts, state, $name).await?;
                    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                        let message = concat!($name, " is not a number");
                        return Err(ApiError::field(Code::InvalidField, $name, message));
                    }
                    // A number beyond all that were given is that of nothing.
                    Ok(Self(text.parse().unwrap_or(u64::MAX)))
                }
            }

            impl Takes for $kind {
                fn takes(description: &mut Description) {
                    let schema = ObjectBuilder::new()
                        .schema_type(SchemaType::Type(Type::Integer))
                        .minimum(Some(0));
                    description.path_parameter($name, "The number.", schema);
                }
            }
        )*
    };
}

path_numbers! {
    /// The `{alert_id}` of a path.
    AlertId "alert_id";
    /// The `{report_id}` of a path.
    ReportId "report_id";
}

/// A parameter of a path with its escapes resolved. 400 when it is not UTF-8.
async fn parameter<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Result<String> {
    let wrong = || ApiError::field(Code::InvalidField, name, format!("{name} is not readable"));
    let parameters = RawPathParams::from_request_parts(parts, state).await.map_err(|_| wrong())?;
    let value =
        parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned());
    value.ok_or_else(wrong)
}

/// Parameters of the query string. A parameter that `T` does not have is 400, where `T` denies unknown fields.
pub struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let text = parts.uri.query().unwrap_or_default();
        let pairs = serde_urlencoded::Deserializer::new(form_urlencoded::parse(text.as_bytes()));
        serde_path_to_error::deserialize(pairs).map(Self).map_err(|error| {
            let (path, message) = (error.path().to_string(), error.inner().to_string());
            base_json::explain_text(&path, &message)
        })
    }
}

impl<T: IntoParams> Takes for Params<T> {
    fn takes(description: &mut Description) {
        description.parameters.extend(T::into_params(|| Some(ParameterIn::Query)));
        description.codes.extend([Code::InvalidField, Code::UnknownField, Code::OutOfRange]);
    }
}

/// Parameters of the query string as they are, documented as those of `T`.
/// For `GET /v1/query`, whose filters have names of properties: `f_model=gpt-large`.
pub struct RawParams<T>(pub Vec<(String, String)>, PhantomData<T>);

impl<S: Send + Sync, T: Send> FromRequestParts<S> for RawParams<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let text = parts.uri.query().unwrap_or_default();
        let pairs = form_urlencoded::parse(text.as_bytes()).into_owned().collect();
        Ok(Self(pairs, PhantomData))
    }
}

impl<T: IntoParams> Takes for RawParams<T> {
    fn takes(description: &mut Description) {
        Params::<T>::takes(description);
    }
}

/// Which part of a list is wanted: all of it, or a page.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Entries of a page, at most; all without it.
    #[param(minimum = 1, maximum = 1000, example = 50)]
    pub limit: Option<usize>,
    /// `next` of the page before.
    #[param(pattern = "^[0-9a-f-]{20,40}$")]
    pub cursor: Option<String>,
}

impl Page {
    /// The page of `items`, whose keys fall, and the cursor of the next one.
    ///
    /// `key` is the id of an item, a UUIDv7, so that items that are added while somebody turns pages do not shift them:
    ///
    /// ```text
    /// ?limit=2             e, d      next: d
    /// ?limit=2&cursor=d    c, b      next: b      f, which was added meanwhile, is not on it
    /// ?limit=2&cursor=b    a         next: null
    /// ```
    ///
    /// Errors: 400 for a limit outside of 1 to 1,000, and for a cursor that no page can have had.
    pub fn cut<T>(
        &self,
        items: Vec<T>,
        key: impl Fn(&T) -> String,
    ) -> Result<(Vec<T>, Option<String>)> {
        let mut items = items;
        let is_key = |char: char| char.is_ascii_hexdigit() || char == '-';
        if let Some(cursor) = &self.cursor {
            if !(20..=40).contains(&cursor.len()) || !cursor.chars().all(is_key) {
                let message = "cursor must be next of an earlier page";
                return Err(ApiError::field(Code::InvalidField, "cursor", message));
            }
            items.retain(|item| key(item) < *cursor);
        }
        let Some(limit) = self.limit else { return Ok((items, None)) };
        if !(1..=PAGE_MAX).contains(&limit) {
            let message = format!("limit must be between 1 and {PAGE_MAX}");
            return Err(ApiError::field(Code::OutOfRange, "limit", message));
        }
        let is_last = items.len() <= limit;
        items.truncate(limit);
        let next = items.last().filter(|_| !is_last).map(key);
        Ok((items, next))
    }
}

/// The version that a client has, of `If-None-Match`.
pub struct KnownVersion(pub Option<HeaderValue>);

impl<S: Send + Sync> FromRequestParts<S> for KnownVersion {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        Ok(Self(parts.headers.get(header::IF_NONE_MATCH).cloned()))
    }
}

impl Takes for KnownVersion {
    fn takes(description: &mut Description) {
        let text = "ETag of the version that is known: 304 when it is the current one.";
        description.header_parameter("If-None-Match", text, None, json!("\"7\""));
    }
}

/// The version that a change was made from, of `If-Match`.
pub struct BaseVersion(Vec<HeaderValue>);

impl BaseVersion {
    /// The version, when one was named: 7 of `"7"`, and of `7`, which clients send by mistake. `None` without the header and for `*`.
    ///
    /// Errors: 400 for several versions, and for any other text.
    pub fn read(&self) -> Result<Option<u64>> {
        let text = match &self.0[..] {
            [] => return Ok(None),
            [one] => one.to_str().unwrap_or_default().trim(),
            _ => "",
        };
        if text == "*" {
            return Ok(None);
        }
        let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let digits = quoted.unwrap_or(text);
        let is_version = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| is_version).map(Some).ok_or_else(|| {
            ApiError::field(Code::InvalidField, "If-Match", "If-Match must be one version")
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for BaseVersion {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        Ok(Self(parts.headers.get_all(header::IF_MATCH).iter().cloned().collect()))
    }
}

impl Takes for BaseVersion {
    fn takes(description: &mut Description) {
        let text = "ETag of the version that the change was made from: 409 when it is not the current one.";
        description.header_parameter("If-Match", text, Some(TAG), json!("\"7\""));
        description.codes.push(Code::Conflict);
    }
}

/// A JSON body that is read when the handler asks for it: who may do this, and whether the object is
/// there, come before what is wrong with the body.
pub struct Body<T> {
    headers: HeaderMap,
    bytes: Bytes,
    schemas: Arc<SchemaCache>,
    kind: PhantomData<fn() -> T>,
}

impl<T> FromRequest<Http> for Body<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, http: &Http) -> Result<Self> {
        let headers = request.headers().clone();
        let bytes = received(request, http).await?;
        Ok(Self { headers, bytes, schemas: Arc::clone(&http.schemas), kind: PhantomData })
    }
}

/// The whole body of a request, when it comes in time and is not too large.
///
/// Errors: 413; 503 after 20 s, "the body took too long to arrive"; 400 for a connection that ended in the middle.
pub async fn received(request: Request, http: &Http) -> Result<Bytes> {
    let receiving = tokio::time::timeout(BODY_TIME_MAX, Bytes::from_request(request, http)).await;
    let received = receiving
        .map_err(|_| ApiError::new(Code::Overloaded, "the body took too long to arrive"))?;
    received.map_err(|rejection| {
        // The limit is that of the router; only the status of the rejection tells it from a broken connection.
        if rejection.into_response().status() == StatusCode::PAYLOAD_TOO_LARGE {
            let message = "the body is larger than this path accepts";
            return ApiError::new(Code::PayloadTooLarge, message);
        }
        ApiError::new(Code::InvalidJson, "the body cannot be read")
    })
}

impl<T> Body<T> {
    /// Whether the body is read in less time than another thread takes to begin.
    pub fn is_small(&self) -> bool {
        self.bytes.len() <= SMALL_BODY_BYTES
    }
}

impl<T: DeserializeOwned + ToSchema + 'static> Body<T> {
    /// Reads the body.
    ///
    /// Errors: 415 for another media type, 400 naming every field that is wrong.
    pub fn read(&self) -> Result<T> {
        self.read_text(text(&self.headers, &self.bytes)?)
    }

    fn read_text(&self, text: &str) -> Result<T> {
        base_json::check_shape(text)?;
        let body = base_json::parse(text)?;
        // The schema finds all faults at once; constraints that it cannot express are left to serde, which stops at the first.
        let faults = self.schemas.of::<T>()?.faults(&body);
        if !faults.is_empty() {
            return Err(ApiError::of_faults(faults));
        }
        serde_path_to_error::deserialize(body).map_err(|error| {
            let (field, code, message) = base_json::explain(&error);
            ApiError { field, ..ApiError::new(code, message) }
        })
    }
}

impl<T: ToSchema> Takes for Body<T> {
    fn takes(description: &mut Description) {
        let schema = description.schema_of::<T>();
        description.takes_body(vec![("application/json", schema)]);
        description.codes.extend([
            Code::InvalidJson,
            Code::InvalidField,
            Code::MissingField,
            Code::UnknownField,
            Code::UnknownValue,
            Code::OutOfRange,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
        ]);
    }
}

/// A JSON body that need not be sent: `POST /v1/saved-queries/{id}/run` without parameters.
pub struct OptionalBody<T>(Body<T>);

impl<T> FromRequest<Http> for OptionalBody<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, http: &Http) -> Result<Self> {
        Body::from_request(request, http).await.map(Self)
    }
}

impl<T: DeserializeOwned + ToSchema + 'static> OptionalBody<T> {
    /// Reads the body; none at all is an empty object.
    ///
    /// Errors: as of [`Body::read`].
    pub fn read(&self) -> Result<T> {
        if self.0.bytes.is_empty() { self.0.read_text("{}") } else { self.0.read() }
    }
}

impl<T: ToSchema> Takes for OptionalBody<T> {
    fn takes(description: &mut Description) {
        Body::<T>::takes(description);
        if let Some(body) = &mut description.body {
            body.required = Some(Required::False);
        }
    }
}

/// The text of a JSON body. 415 for another media type and for a compressed body, 400 for bytes that are no UTF-8.
fn text<'a>(headers: &HeaderMap, body: &'a Bytes) -> Result<&'a str> {
    let media_type = media_type(headers);
    if media_type != "application/json" && !media_type.ends_with("+json") {
        return Err(ApiError::new(
            Code::UnsupportedMediaType,
            "the body must be JSON: Content-Type: application/json",
        ));
    }
    let encoding = headers.get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        let message = "only events may be sent compressed";
        return Err(ApiError::new(Code::UnsupportedMediaType, message));
    }
    std::str::from_utf8(body).map_err(|_| ApiError::new(Code::InvalidJson, "the body is not UTF-8"))
}

/// The media type of a request without its parameters, in lower case: `application/json` of `Application/JSON; charset=utf-8`.
pub fn media_type(headers: &HeaderMap) -> String {
    let value =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_without_gaps() {
        let items = || (0..7).rev().map(|number| format!("{number:020}")).collect::<Vec<_>>();
        let mut page = Page { limit: Some(3), cursor: None };
        let mut seen = Vec::new();
        loop {
            let (items, next) = page.cut(items(), Clone::clone).unwrap();
            seen.extend(items);
            let Some(next) = next else { break };
            page.cursor = Some(next);
        }
        assert_eq!(seen, items());
        for cursor in ["", "zzz", "%", "0"] {
            let page = Page { limit: None, cursor: Some(cursor.to_owned()) };
            assert_eq!(page.cut(items(), Clone::clone).unwrap_err().field.unwrap(), "cursor");
        }
        for limit in [0, 1_001] {
            let page = Page { limit: Some(limit), cursor: None };
            assert_eq!(page.cut(items(), Clone::clone).unwrap_err().field.unwrap(), "limit");
        }
    }
}
