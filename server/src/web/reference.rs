//! The reference of the API as a page: a guide (`docs_guide.html`), then the operations, drawn from the OpenAPI document.
//!
//! No script, no outside host. Beside each operation stand a request with curl, to the reader's own address, and a
//! response, made from the examples of the schemas:
//!
//! ```text
//! curl -G 'https://inlay.acme.com/v1/query' \
//!   -d event_name=api_call \
//!   -d metric=count \
//!   -H "Authorization: Bearer $KEY"
//! ```

use std::fmt::Write as _;

use askama::Template;
use serde_json::{Map, Value};
use url::form_urlencoded::byte_serialize;

use super::markup::escape;

/// Levels of references that an example or a table follows; a schema may refer to itself.
const DEPTH_MAX: usize = 6;
/// Methods of the API, in the order in which a path lists its operations.
const METHODS: [&str; 4] = ["get", "post", "patch", "delete"];

/// Sections of the guide by their ids, as the menu lists them.
const GUIDE: [(&str, &str); 7] = [
    ("five-minutes", "Five minutes"),
    ("authentication", "Authentication"),
    ("environments", "Environments"),
    ("errors", "Errors"),
    ("pagination", "Pagination"),
    ("idempotency", "Idempotency"),
    ("limits", "Limits"),
];

/// Tags of operations with their titles, in the order in which people need them; other tags follow by their own names.
const RESOURCES: [(&str, &str); 23] = [
    ("events", "Events"),
    ("query", "Queries"),
    ("discover", "Discovery"),
    ("dashboards", "Dashboards"),
    ("widgets", "Widgets"),
    ("embed-sessions", "Embed sessions"),
    ("embed", "Embedded dashboards"),
    ("alerts", "Alerts"),
    ("reports", "Reports"),
    ("webhooks", "Deliveries"),
    ("unsubscribe", "Unsubscribing"),
    ("datasets", "Datasets"),
    ("saved-queries", "Saved queries"),
    ("tenants", "Erasing events"),
    ("erasures", "Erasures"),
    ("api-keys", "API keys"),
    ("auth", "Accounts"),
    ("members", "Team"),
    ("settings", "Organisation"),
    ("usage", "Usage"),
    ("billing", "Billing"),
    ("audit", "Audit log"),
    ("onboarding", "Onboarding"),
];

/// Parameters that the request of an operation shows though not every caller needs them.
const SHOWN: [(&str, &[&str]); 1] = [("Query", &["tenant_id", "period"])];

/// Words of operations' names that are written in capitals.
const CAPITALS: [&str; 4] = ["api", "ddl", "sql", "url"];

/// Values of the template `docs_guide.html`: the address that its commands name.
#[derive(Template)]
#[template(path = "docs_guide.html")]
struct Guide<'a> {
    base_url: &'a str,
}

/// Draws the page: a menu, the guide, then an article for each operation.
///
/// `styles` are addresses of style sheets, `base_url` is that of the server. The document is our own, and is escaped nevertheless: its examples
/// may hold any character.
pub fn reference(document: &Value, styles: &[String], base_url: &str) -> String {
    let mut html = String::from("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    html.push_str("<title>Inlay API</title>");
    for style in styles {
        put(&mut html, format_args!("<link rel=\"stylesheet\" href=\"{}\">", escape(style)));
    }
    html.push_str("</head><body><div class=\"layout\"><nav aria-label=\"Contents\">");
    html.push_str("<a class=\"home\" href=\"#guide\">Inlay API</a>");
    for (id, title) in GUIDE {
        put(&mut html, format_args!("<a href=\"#{id}\">{title}</a>"));
    }
    let groups = groups(document);
    for (title, operations) in &groups {
        put(&mut html, format_args!("<h2>{}</h2>", escape(title)));
        for (_, _, operation) in operations {
            let id = text(operation, "operationId");
            let name = spaced(id);
            put(&mut html, format_args!("<a href=\"#{}\">{}</a>", escape(id), escape(&name)));
        }
    }
    html.push_str("</nav><main>");
    // It has no conditions, and writing to a string cannot fail.
    html.push_str(&Guide { base_url }.render().unwrap_or_default());
    for (title, operations) in &groups {
        put(&mut html, format_args!("<h2 class=\"tag\">{}</h2>", escape(title)));
        for listed in operations {
            draw(&mut html, document, listed, base_url);
        }
    }
    html.push_str("</main></div></body></html>");
    html
}

/// An operation: method in lower case, path, and its object in the document.
type Listed<'a> = (&'a str, &'a str, &'a Value);

/// Operations by the titles of their tags, each group in the order of the document.
///
/// `POST /v1/embed-sessions` has the tag `embed-sessions` and comes under "Embed sessions"; a tag without a title comes last.
fn groups(document: &Value) -> Vec<(&str, Vec<Listed<'_>>)> {
    let mut groups: Vec<(&str, Vec<Listed<'_>>)> = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for method in METHODS {
            let Some(operation) = item.get(method) else { continue };
            let tag = operation["tags"][0].as_str().unwrap_or("other");
            let listed = (method, path.as_str(), operation);
            match groups.iter_mut().find(|(known, _)| *known == tag) {
                Some((_, operations)) => operations.push(listed),
                None => groups.push((tag, vec![listed])),
            }
        }
    }
    // Sorting is stable: groups without a title keep the order of the document among themselves.
    let place = |tag: &str| RESOURCES.iter().position(|(known, _)| *known == tag);
    groups.sort_by_key(|(tag, _)| place(tag).unwrap_or(RESOURCES.len()));
    for (tag, _) in &mut groups {
        *tag = place(tag).and_then(|at| RESOURCES.get(at)).map_or(*tag, |(_, title)| *title);
    }
    groups
}

/// Writes an operation: on the left its parameters, body and answers, on the right a request and a response.
fn draw(
    html: &mut String,
    document: &Value,
    &(method, path, operation): &Listed<'_>,
    base_url: &str,
) {
    let id = text(operation, "operationId");
    put(html, format_args!("<article id=\"{}\"><div class=\"about\">", escape(id)));
    put(html, format_args!("<h3>{}</h3>", escape(&spaced(id))));
    put(html, format_args!("<p class=\"path\"><span class=\"method {method}\">"));
    put(html, format_args!("{}</span><code>{}</code></p>", method.to_uppercase(), escape(path)));
    put(html, format_args!("<p>{}</p>", escape(text(operation, "summary"))));
    let who = credentials(operation);
    if !who.is_empty() {
        let who = escape(&who.join(", ").replace('_', " "));
        put(html, format_args!("<h4>Credentials</h4><p>{who}</p>"));
    }
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let mut rows = String::new();
    for parameter in parameters {
        let is_required = parameter["required"] == true;
        let kind = format!("{}, {}", text(parameter, "in"), kind_of(&parameter["schema"]));
        let (name, about) = (text(parameter, "name"), text(parameter, "description"));
        row(&mut rows, name, &kind, is_required, about);
    }
    if !rows.is_empty() {
        put(html, format_args!("<h4>Parameters</h4><table>{rows}</table>"));
    }
    // Indexing of a value that is not there gives null, so that operations without a body need no case of their own.
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        html.push_str("<h4>Request body</h4>");
        schema_table(html, document, body);
    }
    html.push_str("<h4>Responses</h4><table>");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        row(html, status, "", false, text(response, "description"));
    }
    html.push_str("</table></div><div class=\"code\"><h4>Request</h4>");
    let request = curl(document, &(method, path, operation), base_url);
    put(html, format_args!("<pre tabindex=\"0\">{}</pre>", escape(&request)));
    let mut responses = operation["responses"].as_object().into_iter().flatten();
    // Of several successes the first is shown: 200 and not 304.
    if let Some((status, response)) = responses.find(|(status, _)| status.starts_with('2')) {
        put(html, format_args!("<h4>Response {}</h4>", escape(status)));
        let schema = &response["content"]["application/json"]["schema"];
        let shown = match schema.is_null() {
            true => text(response, "description").to_owned(),
            false => pretty(&example(document, schema, 0)),
        };
        put(html, format_args!("<pre tabindex=\"0\">{}</pre>", escape(&shown)));
    }
    html.push_str("</div></article>");
}

/// The schemes of credentials that an operation takes, one of which is enough: `api_key`, `session`, `embed_token`. None for public ones.
fn credentials(operation: &Value) -> Vec<&str> {
    let schemes = operation["security"].as_array().into_iter().flatten();
    schemes.filter_map(|scheme| Some(scheme.as_object()?.keys().next()?.as_str())).collect()
}

/// A request with curl: what is required, with examples.
///
/// `-X` is left out where curl sends this method by itself: GET, and POST with a body. Of credentials the first that it takes is shown: an
/// API key, then a session, then an embed token.
fn curl(document: &Value, &(method, path, operation): &Listed<'_>, base_url: &str) -> String {
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

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Text as one word of a shell: `it's` is `'it'\''s'`.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A table of the fields of a body. A field without a description has that of its type.
fn schema_table(html: &mut String, document: &Value, schema: &Value) {
    let schema = resolve(document, schema);
    let Some(properties) = schema["properties"].as_object() else { return };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    html.push_str("<table>");
    for (name, property) in properties {
        let is_required = required.iter().any(|known| known == name.as_str());
        let description = text(property, "description");
        let described = if description.is_empty() {
            text(resolve(document, property), "description")
        } else {
            description
        };
        row(html, name, &options_of(document, property), is_required, described);
    }
    html.push_str("</table>");
}

/// Writes a row of a table: name, mark of a required one, description, kind.
fn row(html: &mut String, name: &str, kind: &str, is_required: bool, description: &str) {
    let mark = if is_required { " <span class=\"required\">required</span>" } else { "" };
    let kind = if kind.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"type\">{}</span>", escape(kind))
    };
    let description = escape(&description.replace('`', ""));
    put(
        html,
        format_args!(
            "<tr><td><code>{}</code>{mark}</td><td>{description}{kind}</td></tr>",
            escape(name)
        ),
    );
}

/// A value that fits a schema: its examples where there are some, else the first value of an enumeration, the first alternative that is
/// not null, all parts of an `allOf` together, or a value of the type: `{…}`, `[one]`, the minimum or 0, `false`, `"text"`.
fn example(document: &Value, schema: &Value, depth: usize) -> Value {
    let schema = resolve(document, schema);
    if let Some(example) = schema.get("example").or_else(|| schema["examples"].get(0)) {
        return example.clone();
    }
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    if let Some(one) = schema["enum"].get(0) {
        return one.clone();
    }
    // An example of `allOf` has the fields of all parts; of `oneOf` and `anyOf` it is the first that is not null.
    for (key, which) in [("allOf", None), ("oneOf", Some("null")), ("anyOf", Some("null"))] {
        let Some(parts) = schema[key].as_array() else { continue };
        let mut parts = parts.iter().filter(|part| which.is_none_or(|not| part["type"] != not));
        if key != "allOf" {
            return parts.next().map_or(Value::Null, |part| example(document, part, depth + 1));
        }
        let mut all = Map::new();
        for part in parts {
            if let Value::Object(part) = example(document, part, depth + 1) {
                all.extend(part);
            }
        }
        return Value::Object(all);
    }
    match first_type(schema) {
        "object" => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let part = |(name, part): (&String, &Value)| {
                (name.clone(), example(document, part, depth + 1))
            };
            Value::Object(properties.map(part).collect())
        }
        "array" => Value::Array(vec![example(document, &schema["items"], depth + 1)]),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| 0.into()),
        "boolean" => false.into(),
        "string" => match text(schema, "format") {
            "uuid" => "0190aaaa-0000-7000-8000-000000000000".into(),
            "uri" => "https://app.example.com".into(),
            _ => "text".into(),
        },
        _ => Value::Null,
    }
}

/// The schema that a `$ref` leads to, or the schema itself.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    target.and_then(|target| document.pointer(target)).unwrap_or(schema)
}

/// The first type that is not `null`: `string` of `["string", "null"]`. Empty where there is none.
fn first_type(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(one) => one,
        Value::Array(several) => {
            several.iter().filter_map(Value::as_str).find(|one| *one != "null").unwrap_or("")
        }
        _ => "",
    }
}

/// The values that a field may have, where they can be named (`one of admin, ingest`), and its kind else.
fn options_of(document: &Value, schema: &Value) -> String {
    let alternatives = schema["oneOf"].as_array().into_iter().flatten();
    let named = alternatives.chain([schema]).map(|part| &resolve(document, part)["enum"]);
    let names: Vec<&str> = named
        .flat_map(|options| options.as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    if names.is_empty() { kind_of(schema) } else { format!("one of {}", names.join(", ")) }
}

/// The kind of a value in words: `string`, `array of Widget`, `Name or null`.
fn kind_of(schema: &Value) -> String {
    if let Some(target) = schema["$ref"].as_str() {
        return target.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(parts) = schema["oneOf"].as_array() {
        let kinds: Vec<String> = parts.iter().map(kind_of).collect();
        return kinds.join(" or ");
    }
    match first_type(schema) {
        "array" => format!("array of {}", kind_of(&schema["items"])),
        kind => kind.to_owned(),
    }
}

/// `ListDashboards` as `List dashboards`, `QuerySql` as `Query SQL`.
fn spaced(name: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for char in name.chars() {
        match words.last_mut() {
            Some(word) if !char.is_uppercase() => word.push(char),
            None => words.push(char.to_string()),
            Some(_) => words.push(char.to_lowercase().collect()),
        }
    }
    for word in &mut words {
        let singular = word.trim_end_matches('s');
        if CAPITALS.contains(&singular) {
            *word = word.replacen(singular, &singular.to_uppercase(), 1);
        }
    }
    words.join(" ")
}

/// The string at a name, or an empty one.
fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Appends formatted text.
fn put(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = html.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({
            "info": {"title": "Inlay"},
            "paths": {
                "/v1/x/{id}": {"post": {
                    "operationId": "MakeX", "summary": "Makes <x>.", "tags": ["x"], "security": [{"session": []}],
                    "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}, "example": "a b"}],
                    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/X"}}}},
                    "responses": {"201": {"description": "Made.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/X"}}}}},
                }},
                "/v1/y": {"delete": {"operationId": "DropY", "tags": ["x"], "responses": {"204": {"description": "Gone."}}}},
                "/v1/query": {"get": {
                    "operationId": "Query", "tags": ["query"], "security": [{"session": []}, {"api_key": []}],
                    "parameters": [
                        {"name": "event", "in": "query", "required": true, "schema": {"type": "string", "example": "it's"}},
                        {"name": "period", "in": "query", "schema": {"type": "string"}, "example": "7d"},
                        {"name": "limit", "in": "query", "schema": {"type": "integer"}},
                    ],
                    "responses": {},
                }},
            },
            "components": {"schemas": {"X": {
                "type": "object", "required": ["name"],
                "properties": {"kind": {"$ref": "#/components/schemas/Kind"}, "name": {"type": "string", "example": "Ada"}, "more": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/X"}]}},
            }, "Kind": {"type": "string", "enum": ["a", "b"]}}},
        })
    }

    #[test]
    fn what_a_document_says_is_shown_as_text() {
        let document = document();
        let html = reference(&document, &["/assets/a.css".to_owned()], "https://inlay.acme.com");
        assert!(html.contains("Makes &lt;x&gt;."));
        assert!(html.contains("id=\"MakeX\"") && html.contains(">Make x<"));
        assert!(html.contains("<code>name</code> <span class=\"required\">"));
        assert!(html.contains("&quot;name&quot;: &quot;Ada&quot;"));
        assert!(html.contains("one of a, b"));
        let menu = html.split_once("</nav>").unwrap().0;
        assert!(menu.find(">Query<") < menu.find(">Make x<"), "{menu}");
    }

    #[test]
    fn requests_can_be_pasted_into_a_shell() {
        let document = document();
        let request = |method, path: &'static str| {
            let operation = &document["paths"][path][method];
            curl(&document, &(method, path, operation), "https://inlay.acme.com")
        };
        assert_eq!(
            request("post", "/v1/x/{id}"),
            "curl 'https://inlay.acme.com/v1/x/a%20b' \\\n  -b \"service_session=$SESSION\" \\\n  \
             -H 'Content-Type: application/json' \\\n  -d '{\n  \"name\": \"Ada\"\n}'"
        );
        assert_eq!(
            request("get", "/v1/query"),
            "curl -G 'https://inlay.acme.com/v1/query' \\\n  -d event=it%27s \\\n  -d period=7d \\\n  -H \"Authorization: Bearer $KEY\""
        );
        assert_eq!(request("delete", "/v1/y"), "curl -X DELETE 'https://inlay.acme.com/v1/y'");
        assert_eq!(["QuerySql", "ListApiKeys"].map(spaced), ["Query SQL", "List API keys"]);
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
