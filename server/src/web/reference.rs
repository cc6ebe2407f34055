//! The reference of the API as a page: a guide (`docs_guide.html`), then the operations of the OpenAPI document (`docs_operation.html`).
//!
//! No script, no outside host. Beside each operation stand a request with curl, to the reader's own address, and a
//! response, made from the examples of the schemas:
//!
//! ```text
//! POST /v1/x/{id}  Makes <x>.        | Request
//! Credentials      session           | curl 'https://inlay.acme.com/v1/x/a%20b' -b "service_session=$SESSION" …
//! Request body     name  required    | Response 201
//! Responses        201   Made.       | {"name": "Ada", …}
//! ```

use askama::Template;
use serde_json::Value;

use requests::{credentials, curl, pretty};
use schemas::{example, kind_of, options_of, resolve, text};

mod schemas;

mod requests;

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

/// Words of operations' names that are written in capitals.
const CAPITALS: [&str; 4] = ["api", "ddl", "sql", "url"];

/// Values of the template `docs.html`: the page.
#[derive(Template)]
#[template(path = "docs.html")]
struct ReferencePage<'a> {
    /// Addresses of style sheets.
    styles: &'a [String],
    /// The server's own address, which commands name.
    base_url: &'a str,
    groups: Vec<Resource<'a>>,
}

/// Operations of one tag: `Embed sessions`.
struct Resource<'a> {
    title: &'a str,
    operations: Vec<Article<'a>>,
}

/// Values of the template `docs_operation.html`: an operation.
struct Article<'a> {
    /// `QuerySql`, which links lead to.
    id: &'a str,
    /// `Query SQL`.
    title: String,
    /// In lower case.
    method: &'a str,
    path: &'a str,
    summary: &'a str,
    /// `session, api key`; empty for operations of everybody.
    credentials: String,
    parameters: Vec<Row<'a>>,
    /// Fields of the body; `None` without one.
    body: Option<Vec<Row<'a>>>,
    responses: Vec<Row<'a>>,
    request: String,
    /// The status of a success and what comes with it.
    response: Option<(&'a str, String)>,
}

/// A line of a table.
struct Row<'a> {
    name: &'a str,
    is_required: bool,
    description: String,
    /// `string`, `one of a, b`; empty for responses.
    kind: String,
}

/// Draws the page: a menu, the guide, then an article for each operation.
///
/// `styles` are addresses of style sheets, `base_url` is that of the server. The document is our own, and is escaped nevertheless: its examples
/// may hold any character.
pub fn reference(document: &Value, styles: &[String], base_url: &str) -> String {
    let mut shown = Vec::new();
    for (title, operations) in groups(document) {
        let articles = operations.iter().map(|listed| article(document, listed, base_url));
        shown.push(Resource { title, operations: articles.collect() });
    }
    // Its values are written to a string, which cannot fail.
    ReferencePage { styles, base_url, groups: shown }.render().unwrap_or_default()
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

/// An operation: on the left its parameters, body and answers, on the right a request and a response.
fn article<'a>(
    document: &'a Value,
    &(method, path, operation): &Listed<'a>,
    base_url: &str,
) -> Article<'a> {
    let id = text(operation, "operationId");
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let parameter = |parameter: &'a Value| {
        let kind = format!("{}, {}", text(parameter, "in"), kind_of(&parameter["schema"]));
        let is_required = parameter["required"] == true;
        row(text(parameter, "name"), kind, is_required, text(parameter, "description"))
    };
    let responses = || operation["responses"].as_object().into_iter().flatten();
    let answer = |(status, response): (&'a String, &'a Value)| {
        row(status, String::new(), false, text(response, "description"))
    };
    // Of several successes the first is shown: 200 and not 304.
    let success = responses().find(|(status, _)| status.starts_with('2'));
    let response = success.map(|(status, response)| {
        let schema = &response["content"]["application/json"]["schema"];
        let shown = match schema.is_null() {
            true => text(response, "description").to_owned(),
            false => pretty(&example(document, schema, 0)),
        };
        (status.as_str(), shown)
    });
    // Indexing of a value that is not there gives null, so that operations without a body need no case of their own.
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    Article {
        id,
        title: spaced(id),
        method,
        path,
        summary: text(operation, "summary"),
        credentials: credentials(operation).join(", ").replace('_', " "),
        parameters: parameters.map(parameter).collect(),
        body: (!body.is_null()).then(|| fields(document, body)),
        responses: responses().map(answer).collect(),
        request: curl(document, &(method, path, operation), base_url),
        response,
    }
}

/// The fields of a body. A field without a description has that of its type.
fn fields<'a>(document: &'a Value, schema: &'a Value) -> Vec<Row<'a>> {
    let schema = resolve(document, schema);
    let is_required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name))
    };
    let field = |(name, property): (&'a String, &'a Value)| {
        let description = match text(property, "description") {
            "" => text(resolve(document, property), "description"),
            description => description,
        };
        row(name, options_of(document, property), is_required(name), description)
    };
    schema["properties"].as_object().into_iter().flatten().map(field).collect()
}

/// A line of a table, without the marks of code in its description.
fn row<'a>(name: &'a str, kind: String, is_required: bool, description: &str) -> Row<'a> {
    Row { name, is_required, description: description.replace('`', ""), kind }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{requests::quoted, *};

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
        assert!(html.contains("Makes &#60;x&#62;."));
        assert!(html.contains("id=\"MakeX\"") && html.contains(">Make x<"));
        assert!(html.contains("<code>name</code> <span class=\"required\">"));
        assert!(html.contains("&#34;name&#34;: &#34;Ada&#34;"));
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
