//! The OpenAPI document, put together from the table of operations.
//!
//! What an operation takes and gives is read from its handler (`describe`), who may call it from the
//! access table, and what can go wrong from both. Nothing is written twice, so nothing can differ.
//!
//! For a status, all codes that an operation can answer stand in one description; every error has the schema `Error`:
//!
//! ```text
//! POST /v1/api-keys
//! 201   What was made.
//! 400   `invalid_field`, `invalid_json`, `missing_field`, `out_of_range`, `unknown_field`, `unknown_value`
//! 402   `api_keys_limit`
//! 403   `forbidden_origin`, `forbidden_role`, `forbidden_scope`
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use utoipa::{
    ToSchema,
    openapi::{
        Components, Content, HttpMethod, InfoBuilder, LicenseBuilder, OpenApiBuilder, Paths, RefOr,
        ResponseBuilder, Schema, ServerBuilder,
        path::OperationBuilder,
        security::{
            ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
        },
    },
};

use super::describe::Description;
use crate::{
    app::{Decision, Operation, Principal, decide},
    error::Code,
};
use inlay_proto::names::{ENVIRONMENT_HEADER, IDEMPOTENCY_HEADER, SESSION_COOKIE};

/// Every error has this shape.
#[derive(ToSchema)]
#[schema(as = Error)]
#[expect(dead_code, reason = "documents what `respond::error_body` writes")]
struct ErrorView {
    /// A sentence for people; it may change.
    #[schema(example = "numeric_prop is required for metric p95")]
    error: String,
    /// A code for programs, which does not change.
    #[schema(example = "missing_field")]
    code: String,
    /// The part of the request that is to blame.
    #[schema(example = "numeric_prop")]
    field: Option<String>,
    /// All faults, where there are fields to blame.
    details: Option<Vec<FaultView>>,
    /// Finds the request in the log.
    request_id: String,
    /// Line of a statement where it is wrong, from 1; with `invalid_sql` only.
    line: Option<u64>,
    /// Column of it, from 1.
    column: Option<u64>,
    /// What may help.
    hint: Option<String>,
    /// Current plan; with 402 only.
    plan: Option<String>,
    /// Plan that has room; with 402 only.
    upgrade_to: Option<String>,
    /// The limit; with 402 only.
    limit: Option<u64>,
    /// What is used of it; with 402 only.
    used: Option<u64>,
}

/// One fault of a request.
#[derive(ToSchema)]
#[schema(as = Fault)]
#[expect(dead_code, reason = "documents what `respond::error_body` writes")]
struct FaultView {
    field: String,
    code: String,
    message: String,
}

/// The document as it grows.
pub struct Document {
    paths: Paths,
    schemas: BTreeMap<String, RefOr<Schema>>,
}

impl Document {
    /// A document without operations.
    pub fn new() -> Self {
        let mut errors = Description::default();
        errors.schema_of::<ErrorView>();
        Self { paths: Paths::new(), schemas: errors.schemas }
    }

    /// Adds an operation. `codes` are what can go wrong beside what its parts tell.
    ///
    /// For `("/v1/api-keys", CreateApiKey, [ApiKeysLimit])` the document has 402 with `api_keys_limit` beside the codes of its body, and 403 with
    /// `forbidden_origin`, `forbidden_role` and `forbidden_scope`, since the operation is a change that some callers may not make.
    pub fn add(
        &mut self,
        method: HttpMethod,
        path: &str,
        operation: Operation,
        mut description: Description,
        codes: &[Code],
    ) {
        // The access table decides who may call, with one question for each kind of caller.
        let is_change = !matches!(method, HttpMethod::Get);
        let may = |principal| decide(operation, principal) == Decision::Allowed;
        let is_public = may(Principal::Anonymous);
        let takes_session = !is_public && may(Principal::Owner);
        let takes_key = !is_public && (may(Principal::AdminKey) || may(Principal::IngestKey));
        if takes_session {
            let text = "Environment that a session works in; `production` by default.";
            let names = Some("^(production|development)$");
            description.header_parameter(ENVIRONMENT_HEADER, text, names, json!("development"));
        }
        if method == HttpMethod::Post && (takes_session || takes_key) {
            let text = "Makes a retry safe: the first answer is repeated for 24 hours.";
            let printable = Some("^[!-~]([ -~]{0,253}[!-~])?$");
            let example = json!("order-4711");
            description.header_parameter(IDEMPOTENCY_HEADER, text, printable, example);
            description.codes.extend([Code::InvalidField, Code::Conflict]);
        }
        description.codes.extend(codes);
        description.codes.extend(expected_codes(operation, is_public, takes_session, is_change));
        let mut built = OperationBuilder::new()
            .tag(tag(path))
            .operation_id(Some(operation.name()))
            .summary(Some(operation.summary()))
            .parameters(Some(description.parameters))
            .request_body(description.body);
        for (status, response) in description.success {
            built = built.response(status.to_string(), response);
        }
        // Codes of one status share a response: OpenAPI has one for each status.
        let mut by_status: BTreeMap<u16, BTreeSet<&str>> = BTreeMap::new();
        for code in &description.codes {
            by_status.entry(code.status()).or_default().insert(code.name());
        }
        for (status, names) in by_status {
            let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
            let schema = utoipa::openapi::Ref::from_schema_name("Error");
            let response = ResponseBuilder::new()
                .description(names.join(", "))
                .content("application/json", Content::new(Some(schema)));
            built = built.response(status.to_string(), response.build());
        }
        let requirement = |name: &str| SecurityRequirement::new(name, Vec::<String>::new());
        let schemes = [
            ("api_key", takes_key),
            ("session", takes_session),
            ("embed_token", !is_public && may(Principal::Embed)),
        ];
        // An empty list says that no credentials are needed; without it the reader would not know.
        if is_public {
            built = built.securities(Some(Vec::<SecurityRequirement>::new()));
        }
        for (name, _) in schemes.into_iter().filter(|(_, is_taken)| *is_taken) {
            built = built.security(requirement(name));
        }
        self.paths.add_path_operation(path, vec![method], built.build());
        self.schemas.extend(description.schemas);
    }

    /// The whole document as JSON.
    pub fn finish(self) -> Value {
        let bearer = |text: &str, format: Option<&str>| {
            let mut scheme: HttpBuilder =
                HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(text));
            if let Some(format) = format {
                scheme = scheme.bearer_format(format);
            }
            SecurityScheme::Http(scheme.build())
        };
        let mut components = Components::new();
        components.schemas.extend(self.schemas);
        components.add_security_scheme("api_key", bearer("An API key.", None));
        let cookie = ApiKeyValue::with_description(
            SESSION_COOKIE,
            "The session of the console, set by register and login.",
        );
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
        components.add_security_scheme(
            "embed_token",
            bearer("The token of an embed session.", Some("JWT")),
        );
        let info = InfoBuilder::new()
            .title("Inlay")
            .description(Some(
                "Embedded analytics: send product events, query them, and show each customer a \
                 dashboard. Times are RFC 3339 in UTC; every error has the shape `Error`, and \
                 `details` lists all faults of a request.",
            ))
            .version(env!("CARGO_PKG_VERSION"))
            .license(Some(
                LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build(),
            ));
        let document = OpenApiBuilder::new()
            .info(info.build())
            .servers(Some([ServerBuilder::new().url("/").build()]))
            .paths(self.paths)
            .components(Some(components))
            .build();
        serde_json::to_value(document).unwrap_or_default()
    }
}

/// Codes that follow from the access table, and those that every operation can answer: 429, 500, 503.
fn expected_codes(
    operation: Operation,
    is_public: bool,
    takes_session: bool,
    is_change: bool,
) -> Vec<Code> {
    let mut codes = vec![Code::RateLimited, Code::Internal, Code::Overloaded];
    if is_public {
        return codes;
    }
    codes.push(Code::Unauthenticated);
    let forbids = |principal| decide(operation, principal) == Decision::Forbidden;
    if forbids(Principal::IngestKey) || forbids(Principal::AdminKey) {
        codes.push(Code::ForbiddenScope);
    }
    if forbids(Principal::Viewer) || forbids(Principal::Owner) {
        codes.push(Code::ForbiddenRole);
    }
    if takes_session {
        // The environment may be unknown, and two credentials may disagree.
        codes.extend([Code::SessionExpired, Code::UnknownValue, Code::InvalidField]);
        if is_change {
            codes.push(Code::ForbiddenOrigin);
        }
    } else {
        codes.push(Code::InvalidField);
    }
    if decide(operation, Principal::Embed) == Decision::Allowed {
        codes.extend([Code::TokenExpired, Code::TokenRevoked]);
    }
    codes
}

/// The resource that a path is about: `alerts` of `/v1/alerts/{alert_id}/events`, `webhooks` of `/webhooks/billing`.
fn tag(path: &str) -> String {
    let resource = path.trim_start_matches("/v1/").trim_start_matches('/');
    resource.split('/').next().unwrap_or_default().to_owned()
}
