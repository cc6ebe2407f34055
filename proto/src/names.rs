//! Names on the wire that more than one part must agree on, each once.

/// Cookie of a console session.
pub const SESSION_COOKIE: &str = "service_session";

/// Header by which a console session chooses its environment.
pub const ENVIRONMENT_HEADER: &str = "x-service-environment";

/// Header by which a client makes a retry safe.
pub const IDEMPOTENCY_HEADER: &str = "idempotency-key";

/// Header that signs a billing webhook.
pub const BILLING_SIGNATURE_HEADER: &str = "billing-signature";

/// Header that carries the id of a request, on every answer.
pub const REQUEST_ID_HEADER: &str = "x-request-id";

/// Media type of one JSON value a line.
pub const NDJSON: &str = "application/x-ndjson";

/// `typ` of embed tokens.
pub const EMBED_TOKEN_TYPE: &str = "embed+jwt";
