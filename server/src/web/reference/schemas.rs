//! What a schema of the OpenAPI document says: an example of its values, and its kind in words.
//!
//! ```text
//! {"type": "object", "properties": {"name": {"type": "string", "example": "Ada"}, "limit": {"type": "integer", "minimum": 1}}}
//!     example    {"name": "Ada", "limit": 1}
//! {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Name"}]}
//!     kind       null or Name
//! {"type": "string", "enum": ["admin", "ingest"]}
//!     options    one of admin, ingest
//! ```

use serde_json::{Map, Value};

/// Levels of references that an example or a table follows; a schema may refer to itself.
const DEPTH_MAX: usize = 6;
/// A value that fits a schema: its examples where there are some, else the first value of an enumeration, the first alternative that is
/// not null, all parts of an `allOf` together, or a value of the type: `{…}`, `[one]`, the minimum or 0, `false`, `"text"`.
pub fn example(document: &Value, schema: &Value, depth: usize) -> Value {
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
pub fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
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
pub fn options_of(document: &Value, schema: &Value) -> String {
    let alternatives = schema["oneOf"].as_array().into_iter().flatten();
    let named = alternatives.chain([schema]).map(|part| &resolve(document, part)["enum"]);
    let names: Vec<&str> = named
        .flat_map(|options| options.as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    if names.is_empty() { kind_of(schema) } else { format!("one of {}", names.join(", ")) }
}

/// The kind of a value in words: `string`, `array of Widget`, `Name or null`.
pub fn kind_of(schema: &Value) -> String {
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

/// The string at a name, or an empty one.
pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}
