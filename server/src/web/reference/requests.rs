//! The request of an operation as a command that can be pasted into a shell.
//!
//! ```text
//! curl -G 'https://inlay.acme.com/v1/query' \
//!   -d event_name=api_call \
//!   -d metric=count \
//!   -H "Authorization: Bearer $KEY"
//! ```

use std::fmt::Write as _;

use serde_json::Value;
use url::form_urlencoded::byte_serialize;

use super::{
    Listed,
    schemas::{example, resolve, text},
};

/// Parameters that the request of an operation shows though not every caller needs them.
const SHOWN: [(&str, &[&str]); 1] = [("Query", &["tenant_id", "period"])];

/// The schemes of credentials that an operation takes, one of which is enough: `api_key`, `session`, `embed_token`. None for public ones.
pub fn credentials(operation: &Value) -> Vec<&str> {
    let schemes = operation["security"].as_array().into_iter().flatten();
    schemes.filter_map(|scheme| Some(scheme.as_object()?.keys().next()?.as_str())).collect()
}

/// A request with curl: what is required, with examples.
///
/// `-X` is left out where curl sends this method by itself: GET, and POST with a body. Of credentials the first that it takes is shown: an
/// API key, then a session, then an embed token.
pub fn curl(document: &Value, &(method, path, operation): &Listed<'_>, base_url: &str) -> String {
    let (mut path, mut query) = (path.to_owned(), String::new());
    let id = text(operation, "operationId");
    let shown = SHOWN.iter().find(|(known, _)| *known == id).map_or(&[][..], |(_, names)| names);
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let (name, place) = (text(parameter, "name"), text(parameter, "in"));
        let value = match parameter.get("example") {
            Some(value) => value.clone(),
            None => example(document, &parameter["schema"], 0),
        };
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        // As in an address: `a b` is `a%20b`, and not `a+b` as in a form.
        let value = byte_serialize(value.as_bytes()).collect::<String>().replace('+', "%20");
        match place {
            "path" => path = path.replace(&format!("{{{name}}}"), &value),
            "query" if parameter["required"] == true || shown.contains(&name) => {
                put(&mut query, format_args!(" \\\n  -d {name}={value}"));
            }
            _ => {}
        }
    }
    let mut request = String::from("curl ");
    if !query.is_empty() {
        request.push_str("-G ");
    }
    if method != "get" && (method != "post" || operation["requestBody"].is_null()) {
        put(&mut request, format_args!("-X {} ", method.to_uppercase()));
    }
    request.push_str(&quoted(&format!("{base_url}{path}")));
    request.push_str(&query);
    let who = credentials(operation);
    let header = match () {
        () if who.contains(&"api_key") => "-H \"Authorization: Bearer $KEY\"",
        () if who.contains(&"session") => "-b \"service_session=$SESSION\"",
        () if who.contains(&"embed_token") => "-H \"Authorization: Bearer $TOKEN\"",
        () => "",
    };
    if !header.is_empty() {
        put(&mut request, format_args!(" \\\n  {header}"));
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        request.push_str(" \\\n  -H 'Content-Type: application/json' \\\n  -d ");
        request.push_str(&quoted(&pretty(&request_example(document, body))));
    }
    request
}

/// The example of a request's body: the required fields and those that have examples of their own, or all where these are
/// none. So a reader sees a small request that works, and finds the other fields in the table.
fn request_example(document: &Value, schema: &Value) -> Value {
    let whole = example(document, schema, 0);
    let schema = resolve(document, schema);
    if schema.get("example").is_some() {
        return whole;
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let is_shown = |name: &String| {
        let property = &schema["properties"][name.as_str()];
        required.iter().any(|known| known == name.as_str()) || property.get("example").is_some()
    };
    match whole.as_object() {
        Some(fields) if fields.keys().any(is_shown) => {
            let shown = fields.iter().filter(|(name, _)| is_shown(name));
            Value::Object(shown.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        _ => whole,
    }
}

/// JSON as people read it, a field a line.
pub fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Text as one word of a shell: `it's` is `'it'\''s'`.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Appends formatted text.
fn put(request: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = request.write_fmt(text);
}
