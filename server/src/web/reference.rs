//! The reference of the API as a page, drawn from the OpenAPI document.
//!
//! No script, no outside host: headings, tables, and examples that are made from the schemas.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::markup::escape;

/// Levels of references that an example or a table follows.
const DEPTH_MAX: usize = 6;
const METHODS: [&str; 4] = ["get", "post", "patch", "delete"];

/// Draws the page. `styles` are addresses of style sheets.
pub fn reference(document: &Value, styles: &[String]) -> String {
    let info = &document["info"];
    let mut html = String::from("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    html.push_str("<title>Inlay API</title>");
    for style in styles {
        put(&mut html, format_args!("<link rel=\"stylesheet\" href=\"{}\">", escape(style)));
    }
    html.push_str("</head><body><div class=\"layout\"><nav aria-label=\"Operations\">");
    html.push_str("<a href=\"/openapi.json\">openapi.json</a>");
    let groups = groups(document);
    for (tag, operations) in &groups {
        put(&mut html, format_args!("<h2>{}</h2>", escape(tag)));
        for (_, _, operation) in operations {
            let id = text(operation, "operationId");
            let name = spaced(id);
            put(&mut html, format_args!("<a href=\"#{}\">{}</a>", escape(id), escape(&name)));
        }
    }
    html.push_str("</nav><main>");
    put(&mut html, format_args!("<h1>{} API</h1>", escape(text(info, "title"))));
    put(
        &mut html,
        format_args!(
            "<p class=\"lead\">{}</p>",
            escape(&text(info, "description").replace('`', ""))
        ),
    );
    for (tag, operations) in &groups {
        put(&mut html, format_args!("<h2 class=\"tag\">{}</h2>", escape(tag)));
        for (method, path, operation) in operations {
            draw(&mut html, document, method, path, operation);
        }
    }
    html.push_str("</main></div></body></html>");
    html
}

type Listed<'a> = (&'a str, &'a str, &'a Value);

/// Operations by their tags, both in the order of the document.
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
    groups
}

fn draw(html: &mut String, document: &Value, method: &str, path: &str, operation: &Value) {
    let id = escape(text(operation, "operationId"));
    put(html, format_args!("<article id=\"{id}\"><h3><span class=\"method {method}\">"));
    put(html, format_args!("{}</span><code>{}</code></h3>", method.to_uppercase(), escape(path)));
    put(html, format_args!("<p>{}</p>", escape(text(operation, "summary"))));
    let who: Vec<&str> = operation["security"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|scheme| scheme.as_object()?.keys().next())
        .map(|name| name.as_str())
        .collect();
    if !who.is_empty() {
        put(
            html,
            format_args!(
                "<h4>Credentials</h4><p>{}</p>",
                escape(&who.join(", ").replace('_', " "))
            ),
        );
    }
    let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    if !parameters.is_empty() {
        html.push_str("<h4>Parameters</h4><table>");
        for parameter in &parameters {
            let is_required = parameter["required"] == true;
            let kind = format!("{}, {}", text(parameter, "in"), kind_of(&parameter["schema"]));
            row(html, text(parameter, "name"), &kind, is_required, text(parameter, "description"));
        }
        html.push_str("</table>");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        html.push_str("<h4>Body</h4>");
        schema_table(html, document, body);
        example_block(html, document, body);
    }
    html.push_str("<h4>Answers</h4><table>");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        row(html, status, "", false, text(response, "description"));
    }
    html.push_str("</table>");
    let success = operation["responses"]
        .as_object()
        .into_iter()
        .flatten()
        .find(|(status, _)| status.starts_with('2'));
    if let Some((_, response)) = success {
        let schema = &response["content"]["application/json"]["schema"];
        if !schema.is_null() {
            example_block(html, document, schema);
        }
    }
    html.push_str("</article>");
}

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

fn example_block(html: &mut String, document: &Value, schema: &Value) {
    let example = example(document, schema, 0);
    let example = serde_json::to_string_pretty(&example).unwrap_or_default();
    put(
        html,
        format_args!(
            "<details><summary>Example</summary><pre>{}</pre></details>",
            escape(&example)
        ),
    );
}

/// A value that fits a schema: its examples where there are some.
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

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    target.and_then(|target| document.pointer(target)).unwrap_or(schema)
}

fn first_type(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(one) => one,
        Value::Array(several) => {
            several.iter().filter_map(Value::as_str).find(|one| *one != "null").unwrap_or("")
        }
        _ => "",
    }
}

/// The values that a field may have, where they can be named, and its kind else.
fn options_of(document: &Value, schema: &Value) -> String {
    let alternatives = schema["oneOf"].as_array().into_iter().flatten();
    let named = alternatives.chain([schema]).map(|part| &resolve(document, part)["enum"]);
    let names: Vec<&str> = named
        .flat_map(|options| options.as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    if names.is_empty() { kind_of(schema) } else { format!("one of {}", names.join(", ")) }
}

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

/// `ListDashboards` as `List dashboards`.
fn spaced(name: &str) -> String {
    let mut out = String::new();
    for (at, char) in name.chars().enumerate() {
        if at > 0 && char.is_uppercase() {
            out.push(' ');
            out.extend(char.to_lowercase());
        } else {
            out.push(char);
        }
    }
    out
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn put(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = html.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_document_says_is_shown_as_text() {
        let document = json!({
            "info": {"title": "Inlay", "description": "<b>"},
            "paths": {"/v1/x/{id}": {"post": {
                "operationId": "MakeX", "summary": "Makes <x>.", "tags": ["x"],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/X"}}}},
                "responses": {"201": {"description": "Made.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/X"}}}}},
            }}},
            "components": {"schemas": {"X": {
                "type": "object", "required": ["name"],
                "properties": {"kind": {"$ref": "#/components/schemas/Kind"}, "name": {"type": "string", "example": "Ada"}, "more": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/X"}]}},
            }, "Kind": {"type": "string", "enum": ["a", "b"]}}},
        });
        let html = reference(&document, &["/assets/a.css".to_owned()]);
        assert!(html.contains("Makes &lt;x&gt;.") && !html.contains("<b>"));
        assert!(html.contains("id=\"MakeX\"") && html.contains(">Make x<"));
        assert!(html.contains("<code>name</code> <span class=\"required\">"));
        assert!(html.contains("&quot;name&quot;: &quot;Ada&quot;"));
        assert!(html.contains("one of a, b"));
    }
}
