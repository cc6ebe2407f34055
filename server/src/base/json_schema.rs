//! Validation of a JSON body against our own schema: all violations at once, by field.
//!
//! A parser stops at the first thing that is wrong. A form with three mistakes should not take three
//! requests to mend, so a body is validated against the schema that the OpenAPI document shows. For
//! `{"widgets": [{"w": 0}]}` the answer names `name` as missing, `widgets[0].id` as missing and
//! `widgets[0].w` as out of range. Constraints that a schema cannot express (an address, a query that
//! cannot be drawn) are checked by the handler.
//!
//! Only the keywords that our schemas use are known. Another keyword is an error when the schema is
//! compiled, never a rule that is silently not checked. Annotations, `format` and `pattern` are left
//! out on purpose: the types that parse such strings explain better what is wrong with them.
//!
//! ```text
//! {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 3}}}
//! becomes a node of three rules, the type first:
//! {"name": "abcd"}      name must have at most 3 characters
//! {}                    name is required
//! []                    the body must be of type object, and nothing else: the other rules are about objects
//! ```

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Number, Value};

use crate::error::{ApiError, Code, Fault, Result};

/// Violations that an answer lists, at most.
const FAULTS_MAX: usize = 20;

/// Keywords without a rule of their own: they describe, or others check them.
const ANNOTATIONS: [&str; 9] = [
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "components",
    "format",
    "pattern",
];

/// Types as JSON Schema names them, in the order in which messages list them.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Where the schemas stand that references lead to.
const DEFINITIONS: &str = "#/components/schemas/";

/// A compiled schema with those that it refers to.
pub struct JsonSchema {
    root: Node,
    definitions: BTreeMap<String, Node>,
}

/// The rules for one value; without any, every value is right.
struct Node(Vec<Rule>);

/// What one keyword demands.
///
/// A rule about another type than that of the value holds: `maxLength` says nothing about a number.
enum Rule {
    /// `"type": ["string", "null"]`: the value has one of these types.
    Type(Vec<&'static str>),
    /// `"$ref": "#/components/schemas/Widget"`: the rules of that schema hold, too. The name, without the path.
    Reference(String),
    /// `"enum": ["a", "b"]`: "kind must be one of a, b".
    Enum(Vec<Value>),
    /// `"minLength": 1`, in characters: "name must not be empty", or "must have at least 10 characters".
    LengthMin(usize),
    /// `"maxLength": 200`, in characters and not in bytes.
    LengthMax(usize),
    /// `"minItems": 1`: "must have at least 1 entries".
    ItemsMin(usize),
    /// `"maxItems": 100`: "must have at most 100 entries".
    ItemsMax(usize),
    /// `"minimum": 60`: "expires_in must be at least 60".
    Minimum(Number),
    /// `"maximum": 86400`: "expires_in must be at most 86400".
    Maximum(Number),
    /// `"required": ["name"]`: "name is required", with the path of the missing field.
    Required(Vec<String>),
    /// `"properties": {"w": {…}}`: rules of the fields that are there.
    Properties(BTreeMap<String, Node>),
    /// `"additionalProperties": false`: "extra is not a field of this request".
    ///
    /// Names that have a schema of their own, and the schema of all others; without one there are no others.
    OtherProperties(Vec<String>, Option<Node>),
    /// `"propertyNames": {"maxLength": 128}`: rules of the names of an object whose names are free.
    PropertyNames(Node),
    /// `"items": {…}`: rules of each entry; a violation has its index, `widgets[0]`.
    Items(Node),
    /// `"oneOf": [{"type": "null"}, {…}]`: one of them holds.
    OneOf(Vec<Node>),
    /// `"allOf": [{…}, {…}]`: each of them holds.
    AllOf(Vec<Node>),
}

impl JsonSchema {
    /// Compiles a schema. Its references lead to its own `components`.
    ///
    /// Errors: an internal one for a keyword that is not known here, or a reference to nothing.
    /// An unknown keyword reads `a schema does not compile: properties: a: multipleOf: this keyword is not known`, for the log.
    pub fn compile(schema: &Value) -> Result<Self> {
        let compiled = || -> std::result::Result<Self, String> {
            let root = Node::compile(schema)?;
            let definitions = schema.pointer("/components/schemas").and_then(Value::as_object);
            let definitions = nodes(definitions.into_iter().flatten())?;
            let unresolved =
                definitions.values().chain([&root]).find_map(|node| node.unresolved(&definitions));
            match unresolved {
                Some(name) => Err(format!("no schema is called {name}")),
                None => Ok(Self { root, definitions }),
            }
        };
        compiled()
            .map_err(|error| ApiError::internal(format!("a schema does not compile: {error}")))
    }

    /// All violations of a body, at most [`FAULTS_MAX`]; none where the body is right. The order is that of the keywords in the schema.
    pub fn faults(&self, body: &Value) -> Vec<Fault> {
        let mut check = SchemaCheck { definitions: &self.definitions, faults: Vec::new() };
        check.node(&self.root, body, Path::Root);
        check.faults.truncate(FAULTS_MAX);
        check.faults
    }
}

impl Node {
    fn compile(schema: &Value) -> std::result::Result<Self, String> {
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(true) => return Ok(Self(Vec::new())),
            other => return Err(format!("{other} is no schema")),
        };
        let mut rules = Vec::new();
        for (keyword, value) in schema {
            if !ANNOTATIONS.contains(&&**keyword) {
                let rule = Rule::compile(keyword, value, schema)
                    .map_err(|error| format!("{keyword}: {error}"))?;
                // A value of another type breaks this rule alone, so it comes first.
                let at = if matches!(rule, Rule::Type(_)) { 0 } else { rules.len() };
                rules.insert(at, rule);
            }
        }
        Ok(Self(rules))
    }

    /// The first name that a reference leads to and that `definitions` does not have. Found at compilation, so that a check never fails.
    fn unresolved(&self, definitions: &BTreeMap<String, Self>) -> Option<String> {
        self.0.iter().find_map(|rule| match rule {
            Rule::Reference(name) => (!definitions.contains_key(name)).then(|| name.clone()),
            rule => rule.nodes().into_iter().find_map(|node| node.unresolved(definitions)),
        })
    }
}

impl Rule {
    fn compile(
        keyword: &str,
        value: &Value,
        schema: &Map<String, Value>,
    ) -> std::result::Result<Self, String> {
        let size = || value.as_u64().and_then(|size| usize::try_from(size).ok()).ok_or("no size");
        let number = || value.as_number().cloned().ok_or("no number");
        let list = || value.as_array().map(Vec::as_slice).ok_or("no list");
        let object = || value.as_object().ok_or("no object");
        let node_list = || -> std::result::Result<Vec<Node>, String> {
            list()?.iter().map(Node::compile).collect()
        };
        Ok(match keyword {
            "type" => Self::Type(types(value)?),
            "$ref" => {
                let name = value.as_str().and_then(|name| name.strip_prefix(DEFINITIONS));
                Self::Reference(name.ok_or("leads elsewhere")?.to_owned())
            }
            "enum" => Self::Enum(list()?.to_vec()),
            "minLength" => Self::LengthMin(size()?),
            "maxLength" => Self::LengthMax(size()?),
            "minItems" => Self::ItemsMin(size()?),
            "maxItems" => Self::ItemsMax(size()?),
            "minimum" => Self::Minimum(number()?),
            "maximum" => Self::Maximum(number()?),
            "required" => Self::Required(strings(list()?).map(str::to_owned).collect()),
            "properties" => Self::Properties(nodes(object()?)?),
            "additionalProperties" => {
                // It depends on its neighbour: the names that `properties` lists are no others.
                let known = schema.get("properties").and_then(Value::as_object);
                let known = known.into_iter().flat_map(Map::keys).cloned().collect();
                let others = (*value != Value::Bool(false)).then(|| Node::compile(value));
                Self::OtherProperties(known, others.transpose()?)
            }
            "propertyNames" => Self::PropertyNames(Node::compile(value)?),
            "items" => Self::Items(Node::compile(value)?),
            // Our alternatives differ in their types, so that at most one can match.
            "oneOf" | "anyOf" => Self::OneOf(node_list()?),
            "allOf" => Self::AllOf(node_list()?),
            _ => return Err("this keyword is not known".to_owned()),
        })
    }

    /// Schemas inside this rule, for the search for references.
    fn nodes(&self) -> Vec<&Node> {
        match self {
            Self::Properties(nodes) => nodes.values().collect(),
            Self::OneOf(nodes) | Self::AllOf(nodes) => nodes.iter().collect(),
            Self::OtherProperties(_, Some(node))
            | Self::PropertyNames(node)
            | Self::Items(node) => vec![node],
            _ => Vec::new(),
        }
    }
}

fn nodes<'a>(
    schemas: impl IntoIterator<Item = (&'a String, &'a Value)>,
) -> std::result::Result<BTreeMap<String, Node>, String> {
    let compile = |(name, schema): (&String, &Value)| {
        let node = Node::compile(schema).map_err(|error| format!("{name}: {error}"))?;
        Ok((name.clone(), node))
    };
    schemas.into_iter().map(compile).collect()
}

/// Types of a `type` keyword, which is a name or a list of them, in the order of [`TYPES`].
fn types(value: &Value) -> std::result::Result<Vec<&'static str>, String> {
    let named = match value {
        Value::Array(names) => names.as_slice(),
        name => std::slice::from_ref(name),
    };
    match named.iter().find(|name| !TYPES.iter().any(|known| *name == known)) {
        Some(unknown) => Err(format!("{unknown} is no type")),
        None => {
            Ok(TYPES.into_iter().filter(|known| named.iter().any(|name| name == known)).collect())
        }
    }
}

fn strings(values: &[Value]) -> impl Iterator<Item = &str> {
    values.iter().filter_map(Value::as_str)
}

/// The field that is being looked at, as a message names it: `widgets[0].id`. Written only where there is a fault.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Path::Root, name) => out.write_str(name),
            Self::Field(parent, name) => write!(out, "{parent}.{name}"),
            Self::Index(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}

/// One validation: the violations that it has found so far.
struct SchemaCheck<'a> {
    definitions: &'a BTreeMap<String, Node>,
    faults: Vec<Fault>,
}

impl<'a> SchemaCheck<'a> {
    fn node(&mut self, node: &'a Node, value: &Value, path: Path<'_>) {
        for rule in &node.0 {
            if self.faults.len() >= FAULTS_MAX {
                return;
            }
            if let Rule::Type(types) = rule {
                if !types.iter().any(|name| is_of_type(value, name)) {
                    // The value itself is not repeated: it may be long, or a secret in the wrong field.
                    let message = format!("must be of type {}", types.join(", "));
                    return self.fault(Code::InvalidField, path, &message);
                }
            } else {
                self.rule(rule, value, path);
            }
        }
    }

    fn rule(&mut self, rule: &'a Rule, value: &Value, path: Path<'_>) {
        match (rule, value) {
            (Rule::Reference(name), _) => {
                if let Some(node) = self.definitions.get(name) {
                    self.node(node, value, path);
                }
            }
            (Rule::AllOf(nodes), _) => nodes.iter().for_each(|node| self.node(node, value, path)),
            (Rule::OneOf(nodes), _) => self.one_of(nodes, value, path),
            (Rule::Properties(nodes), Value::Object(fields)) => {
                for (name, node) in nodes {
                    if let Some(value) = fields.get(name) {
                        self.node(node, value, Path::Field(&path, name));
                    }
                }
            }
            (Rule::OtherProperties(known, node), Value::Object(fields)) => {
                for (name, value) in fields.iter().filter(|(name, _)| !known.contains(name)) {
                    let path = Path::Field(&path, name);
                    match node {
                        Some(node) => self.node(node, value, path),
                        None => {
                            self.fault(Code::UnknownField, path, "is not a field of this request");
                        }
                    }
                }
            }
            (Rule::PropertyNames(node), Value::Object(fields)) => {
                for name in fields.keys() {
                    self.node(node, &Value::String(name.clone()), Path::Field(&path, name));
                }
            }
            (Rule::Required(names), Value::Object(fields)) => {
                for name in names.iter().filter(|name| !fields.contains_key(*name)) {
                    self.fault(Code::MissingField, Path::Field(&path, name), "is required");
                }
            }
            (Rule::Items(node), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.node(node, item, Path::Index(&path, index));
                }
            }
            // Rules about one value without parts, and rules about another type, which say nothing.
            (rule, value) => {
                if let Some((code, message)) = violation(rule, value) {
                    self.fault(code, path, &message);
                }
            }
        }
    }

    /// Where no alternative matches, the violations of the one whose type the value has.
    ///
    /// For `{"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}`: `["a", 1]` is an array with a wrong entry,
    /// `either[1] must be of type string`; `1` is neither, "either has none of the forms that are accepted here".
    fn one_of(&mut self, nodes: &'a [Node], value: &Value, path: Path<'_>) {
        let check = |node| {
            let mut check = SchemaCheck { definitions: self.definitions, faults: Vec::new() };
            check.node(node, value, path);
            check.faults
        };
        // All are checked, since the one that is meant is known only when none holds.
        let alternatives: Vec<Vec<Fault>> = nodes.iter().map(check).collect();
        if alternatives.iter().any(Vec::is_empty) {
            return;
        }
        let meant = nodes.iter().position(|node| self.has_type(node, value));
        match meant.and_then(|index| alternatives.into_iter().nth(index)) {
            Some(faults) => self.faults.extend(faults),
            None => {
                let message = "has none of the forms that are accepted here";
                self.fault(Code::InvalidField, path, message);
            }
        }
    }

    /// Whether a value has the type that a schema asks for, whatever else is wrong with it.
    fn has_type(&self, node: &Node, value: &Value) -> bool {
        node.0.iter().all(|rule| match rule {
            Rule::Type(types) => types.iter().any(|name| is_of_type(value, name)),
            Rule::Reference(name) => {
                self.definitions.get(name).is_some_and(|node| self.has_type(node, value))
            }
            Rule::AllOf(nodes) => nodes.iter().all(|node| self.has_type(node, value)),
            Rule::OneOf(nodes) => nodes.iter().any(|node| self.has_type(node, value)),
            _ => true,
        })
    }

    /// Adds a violation; the message begins with the field, or with "the body" where it is the whole.
    fn fault(&mut self, code: Code, path: Path<'_>, message: &str) {
        let field = path.to_string();
        let subject = if field.is_empty() { "the body" } else { &field };
        let message = format!("{subject} {message}");
        self.faults.push(Fault { field, code, message });
    }
}

/// The violation of a rule by a value without parts: code and message without the field. `None` where the rule holds or is about another type.
fn violation(rule: &Rule, value: &Value) -> Option<(Code, String)> {
    let length = |text: &str| text.chars().count();
    let is_below = |a: &Number, b: &Number| a.as_f64() < b.as_f64();
    match (rule, value) {
        (Rule::Enum(options), value) if !options.contains(value) => {
            let names: Vec<&str> = strings(options).collect();
            Some((Code::UnknownValue, format!("must be one of {}", names.join(", "))))
        }
        (Rule::LengthMin(1), Value::String(text)) if text.is_empty() => {
            Some((Code::InvalidField, "must not be empty".to_owned()))
        }
        (Rule::LengthMin(limit), Value::String(text)) if length(text) < *limit => {
            Some((Code::InvalidField, format!("must have at least {limit} characters")))
        }
        (Rule::LengthMax(limit), Value::String(text)) if length(text) > *limit => {
            Some((Code::InvalidField, format!("must have at most {limit} characters")))
        }
        (Rule::ItemsMin(limit), Value::Array(items)) if items.len() < *limit => {
            Some((Code::InvalidField, format!("must have at least {limit} entries")))
        }
        (Rule::ItemsMax(limit), Value::Array(items)) if items.len() > *limit => {
            Some((Code::OutOfRange, format!("must have at most {limit} entries")))
        }
        (Rule::Minimum(limit), Value::Number(number)) if is_below(number, limit) => {
            Some((Code::OutOfRange, format!("must be at least {limit}")))
        }
        (Rule::Maximum(limit), Value::Number(number)) if is_below(limit, number) => {
            Some((Code::OutOfRange, format!("must be at most {limit}")))
        }
        _ => None,
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
        Value::Number(number) => {
            // 1.0 is an integer in JSON Schema, which knows one kind of number.
            name == "number" || name == "integer" && is_whole(number)
        }
    }
}

fn is_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> JsonSchema {
        JsonSchema::compile(&json!({
            "type": "object", "additionalProperties": false, "required": ["name", "widgets"],
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 3},
                "kind": {"type": "string", "enum": ["a", "b"]},
                "widgets": {
                    "type": "array", "minItems": 0, "maxItems": 2,
                    "items": {"$ref": "#/components/schemas/Widget"},
                },
                "place": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Widget"}]},
                "label": {"oneOf": [{"$ref": "#/components/schemas/Name"}, {"type": "null"}]},
                "either": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                "numbers": {
                    "type": "object", "propertyNames": {"type": "string", "maxLength": 2},
                    "additionalProperties": {"type": "number", "maximum": 10},
                },
                "both": {"allOf": [
                    {"$ref": "#/components/schemas/Widget"},
                    {"type": "object", "required": ["h"]},
                ]},
            },
            "components": {"schemas": {"Name": {"type": "string", "minLength": 1}, "Widget": {
                "type": "object", "required": ["id"],
                "properties": {"id": {"type": ["string", "null"]}, "w": {"type": "integer", "minimum": 1}},
            }}},
        }))
        .unwrap()
    }

    #[test]
    fn every_violation_is_named_at_once() {
        let body = json!({
            "kind": "c", "extra": 1, "widgets": [{"id": 7}, {"w": 0}], "place": {"w": 1},
            "numbers": {"a": 11, "long": 1, "b": "x"}, "both": {"id": "x"},
        });
        let mut faults: Vec<(String, &str)> = schema()
            .faults(&body)
            .into_iter()
            .map(|fault| (fault.field, fault.code.name()))
            .collect();
        faults.sort();
        let expected = [
            ("both.h", "missing_field"),
            ("extra", "unknown_field"),
            ("kind", "unknown_value"),
            ("name", "missing_field"),
            ("numbers.a", "out_of_range"),
            ("numbers.b", "invalid_field"),
            ("numbers.long", "invalid_field"),
            ("place.id", "missing_field"),
            ("widgets[0].id", "invalid_field"),
            ("widgets[1].id", "missing_field"),
            ("widgets[1].w", "out_of_range"),
        ];
        assert_eq!(faults, expected.map(|(field, code)| (field.to_owned(), code)));
    }

    #[test]
    fn a_message_says_what_is_right_instead() {
        let schema = schema();
        let messages = |body: Value| -> Vec<String> {
            schema.faults(&body).into_iter().map(|fault| fault.message).collect()
        };
        let with = |name: &str, value: Value| {
            let mut body = json!({"name": "ab", "widgets": []});
            body[name] = value;
            messages(body).join("; ")
        };
        assert_eq!(messages(json!([])), ["the body must be of type object"]);
        assert_eq!(with("name", json!(5)), "name must be of type string");
        assert_eq!(with("name", json!("")), "name must not be empty");
        assert_eq!(with("name", json!("äöüß")), "name must have at most 3 characters");
        assert_eq!(with("name", json!("äöü")), "");
        assert_eq!(with("kind", json!("c")), "kind must be one of a, b");
        let id = "widgets[0].id must be of type null, string";
        assert_eq!(with("widgets", json!([{"id": false}])), id);
        let three = json!([{"id": "x"}, {"id": "y"}, {"id": null}]);
        assert_eq!(with("widgets", three), "widgets must have at most 2 entries");
        assert_eq!(with("widgets", json!([{"id": "x", "w": 1.0}])), "");
        let whole = "widgets[0].w must be of type integer";
        assert_eq!(with("widgets", json!([{"id": "x", "w": 1.5}])), whole);
        assert_eq!(with("either", json!(["a"])), "");
        assert_eq!(with("either", json!("a")), "");
        assert_eq!(with("either", json!(["a", 1])), "either[1] must be of type string");
        assert_eq!(with("either", json!(1)), "either has none of the forms that are accepted here");
        assert_eq!(with("label", json!("")), "label must not be empty");
        assert_eq!(with("label", json!(null)), "");
        assert_eq!(with("label", json!(1)), "label has none of the forms that are accepted here");
        assert_eq!(with("place", json!(null)), "");
        assert_eq!(with("place", json!({"id": "x"})), "");
        let long = "numbers.long must have at most 2 characters";
        assert_eq!(with("numbers", json!({"long": 1})), long);
    }

    #[test]
    fn a_list_of_violations_has_an_end() {
        let widgets: Vec<Value> = (0..2).map(|_| json!({})).collect();
        let mut body = json!({"widgets": widgets});
        for index in 0..1_000 {
            body[format!("unknown{index}")] = json!(index);
        }
        assert_eq!(schema().faults(&body).len(), FAULTS_MAX);
    }

    #[test]
    fn every_body_of_the_document_compiles() {
        let document: Value = serde_json::from_str(include_str!("../../doc/openapi.json")).unwrap();
        let operations = document["paths"].as_object().unwrap().values();
        let bodies = operations
            .flat_map(|path| path.as_object().unwrap().values())
            .filter_map(|operation| operation.pointer("/requestBody/content"))
            .flat_map(|content| content.as_object().unwrap().values())
            .map(|content| content["schema"].clone());
        let mut count = 0;
        for mut schema in bodies {
            schema["components"] = document["components"].clone();
            JsonSchema::compile(&schema).map_err(|error| error.cause).unwrap();
            count += 1;
        }
        assert!(count > 20, "{count}");
    }

    #[test]
    fn a_rule_that_would_not_be_checked_does_not_compile() {
        let refused = |schema: Value| JsonSchema::compile(&schema).err().and_then(|e| e.cause);
        let unknown = refused(json!({"properties": {"a": {"multipleOf": 2}}})).unwrap();
        let at = "a schema does not compile: properties: a: multipleOf: this keyword is not known";
        assert_eq!(unknown, at);
        assert!(refused(json!({"$ref": "#/components/schemas/Nobody"})).is_some());
        assert!(refused(json!({"items": {"$ref": "elsewhere.json"}})).is_some());
        assert!(refused(json!({"type": "text"})).is_some());
        assert!(refused(json!({"maxLength": -1})).is_some());
    }
}
