//! The one table of error codes: name, HTTP status, gRPC status.
//!
//! Everything that can go wrong in a request ends as an [`ApiError`]. Only this file knows status
//! numbers. On the wire, `ApiError::field(Code::OutOfRange, "limit", "limit must be between 1 and 1000")` is
//!
//! ```text
//! HTTP/1.1 400 Bad Request
//!
//! {"error": "limit must be between 1 and 1000", "code": "out_of_range", "field": "limit", "request_id": "01a21f84-f458-…",
//!  "details": [{"field": "limit", "code": "out_of_range", "message": "limit must be between 1 and 1000"}]}
//! ```
//!
//! and over gRPC the status `OUT_OF_RANGE` with the same message. Clients decide by `code`; the text may change.

use inlay_engine::Limit;

/// Result of everything that a request can ask for; another error type only where a parser has its own.
pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// Makes the enum and its three columns of one table, so that no code can lack a status.
macro_rules! codes {
    ($($variant:ident $name:literal $status:literal $grpc:ident;)*) => {
        /// What went wrong, by the name that clients see.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Code {
            /// All codes, in the order of the table below.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// Name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// Status of an HTTP answer with this code.
            pub fn status(self) -> u16 {
                match self { $(Code::$variant => $status,)* }
            }

            /// Status of a gRPC answer with this code.
            pub fn grpc(self) -> tonic::Code {
                match self { $(Code::$variant => tonic::Code::$grpc,)* }
            }
        }
    };
}

codes! {
    // 400: the request as it was sent is wrong, and sending it again does not help.
    // No JSON, no object, or nested deeper than 32 levels: "the body must be a JSON object".
    InvalidJson "invalid_json" 400 InvalidArgument;
    // A field of the wrong type or form: "id is not a UUID", "name must not be empty".
    InvalidField "invalid_field" 400 InvalidArgument;
    // "tenant_id is required"
    MissingField "missing_field" 400 InvalidArgument;
    // "title is not a field of this request": a misspelt field must not be ignored.
    UnknownField "unknown_field" 400 InvalidArgument;
    // "scope must be one of admin, ingest"
    UnknownValue "unknown_value" 400 InvalidArgument;
    OutOfRange "out_of_range" 400 OutOfRange;
    // More events in one request than it may have.
    TooManyEvents "too_many_events" 400 InvalidArgument;
    // Comes with `line`, `column` and `hint` where they are known: "syntax: Expected: an SQL statement, found: GIVE".
    InvalidSql "invalid_sql" 400 InvalidArgument;
    // One query needed more time, or more memory, than a query may have: a shorter window or fewer groups help.
    QueryTimeout "query_timeout" 400 DeadlineExceeded;
    QueryTooLarge "query_too_large" 400 ResourceExhausted;
    // 401: credentials are missing or no longer valid. A client logs in again, or mints a new token.
    Unauthenticated "unauthenticated" 401 Unauthenticated;
    SessionExpired "session_expired" 401 Unauthenticated;
    // Of embed tokens and invites: the time is over; or (revoked) the token was withdrawn or, as an invite, used before.
    TokenExpired "token_expired" 401 Unauthenticated;
    TokenRevoked "token_revoked" 401 Unauthenticated;
    // 402: a limit of the plan. The error has a `PlanLimit`.
    PublishedDashboardsLimit "published_dashboards_limit" 402 ResourceExhausted;
    ApiKeysLimit "api_keys_limit" 402 ResourceExhausted;
    AdvancedEmbedPermissions "advanced_embed_permissions" 402 ResourceExhausted;
    MonthlyEventsLimit "monthly_events_limit" 402 ResourceExhausted;
    // 403: the credentials are valid and may not do this, by the scope of an API key or the role of a member.
    ForbiddenScope "forbidden_scope" 403 PermissionDenied;
    ForbiddenRole "forbidden_role" 403 PermissionDenied;
    // A change with the session cookie from a page of another site.
    ForbiddenOrigin "forbidden_origin" 403 PermissionDenied;
    // An embed token whose permissions exclude the request: "this session does not allow the period 90d".
    EmbedPermission "embed_permission" 403 PermissionDenied;
    // 404 also for objects of other organisations, whose existence is not disclosed.
    NotFound "not_found" 404 NotFound;
    MethodNotAllowed "method_not_allowed" 405 Unimplemented;
    // 409: the state forbids it: an older version in `If-Match`, the last owner, an idempotency key of another request.
    Conflict "conflict" 409 Aborted;
    DuplicateEmail "duplicate_email" 409 AlreadyExists;
    InvitePending "invite_pending" 409 AlreadyExists;
    // The dashboard of an embed session exists, and was never published or is no longer.
    NotPublished "not_published" 409 FailedPrecondition;
    PayloadTooLarge "payload_too_large" 413 ResourceExhausted;
    UnsupportedMediaType "unsupported_media_type" 415 InvalidArgument;
    // 429 and 503: send it again later, after `Retry-After` seconds.
    RateLimited "rate_limited" 429 ResourceExhausted;
    // 500: the message says nothing of the cause, which the log has under the request id.
    Internal "internal" 500 Internal;
    Overloaded "overloaded" 503 Unavailable;
    // 503 without an error in the log: such a server works as it was configured.
    BillingNotConfigured "billing_not_configured" 503 FailedPrecondition;
}

/// A plan limit that was reached: the part that 402 adds to an error.
///
/// For a second published dashboard on the plan `free`: `"plan": "free", "upgrade_to": "growth", "limit": 1, "used": 1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLimit {
    /// Name of the current plan, such as `growth`.
    pub plan: String,
    /// Name of the smallest plan with room for the request; `None` when no plan has.
    pub upgrade_to: Option<String>,
    /// Number that the current plan allows; 0 for a feature that the plan lacks.
    pub limit: u64,
    /// Number in use before the refused request; 0 for a feature.
    pub used: u64,
}

/// Position of the fault in a SQL statement, and a hint.
///
/// For `SELECT tenant FROM events`: line 1, column 8, and "did you mean tenant_id? there are: event_id, event_name, …".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// Line and column, from 1.
    pub position: Option<(u64, u64)>,
    /// A hint for people: how to write the statement instead.
    pub hint: Option<String>,
}

/// Details of errors of one kind only. Boxed in [`ApiError`]: most errors have none, and every result carries the room for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum More {
    /// The limit behind a 402.
    Plan(PlanLimit),
    /// Where a statement is wrong.
    Statement(Advice),
    /// The request changes something, and another process leads: nothing was done, and that one is to be asked.
    Elsewhere,
}

/// One of several faults of a request, an entry of `details`.
///
/// For a registration with an empty name: `name`, `invalid_field`, "name must not be empty".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Path of the faulty field, such as `widgets[0].title`; empty for the whole request.
    pub field: String,
    /// What is wrong, for programs.
    pub code: Code,
    /// What is wrong, for people.
    pub message: String,
}

/// An error as the caller sees it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// What went wrong.
    pub code: Code,
    /// Message for people; clients decide by `code`.
    pub message: String,
    /// Path of the faulty field; `None` for the whole request.
    pub field: Option<String>,
    /// All faults of the request; empty when there is only one.
    pub faults: Vec<Fault>,
    /// Details of errors of this kind only.
    pub more: Option<Box<More>>,
    /// Seconds after which a retry makes sense, where that is known.
    pub retry_after: Option<u32>,
    /// Cause for the log, never sent to the caller.
    pub cause: Option<String>,
}

impl ApiError {
    /// An error of the request as a whole.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            field: None,
            faults: Vec::new(),
            more: None,
            retry_after: None,
            cause: None,
        }
    }

    /// An error of one field.
    pub fn field(code: Code, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..Self::new(code, message) }
    }

    /// A value that is none of a list; the message has the list.
    ///
    /// `unknown_value("period", "2d", ["1h", "24h"])` reads `period must be one of 1h, 24h, not "2d"`.
    pub fn unknown_value(
        field: &str,
        value: &str,
        allowed: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let allowed: Vec<_> = allowed.into_iter().collect();
        let message = format!("{field} must be one of {}, not {value:?}", allowed.join(", "));
        Self::field(Code::UnknownValue, field, message)
    }

    /// An error of several fields: the first speaks for it, and all are listed.
    /// A single fault leaves `faults` empty: the error itself has its field, code and message.
    pub fn of_faults(faults: Vec<Fault>) -> Self {
        let Some(first) = faults.first().cloned() else {
            return Self::internal("a request was refused without a fault");
        };
        let faults = if faults.len() > 1 { faults } else { Vec::new() };
        let field = Some(first.field).filter(|field| !field.is_empty());
        Self { field, faults, ..Self::new(first.code, first.message) }
    }

    /// An object that does not exist or belongs to another organisation, with the same answer: `not_found("alert")` reads "alert not found".
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("{what} not found"))
    }

    /// A failure of ours; `cause` goes to the log only.
    pub fn internal(cause: impl Into<String>) -> Self {
        let message = "something went wrong on our side; the request id finds it in the log";
        Self { cause: Some(cause.into()), ..Self::new(Code::Internal, message) }
    }

    /// Whether nothing was done because another process leads.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.more.as_deref(), Some(More::Elsewhere))
    }

    /// Seconds for the header `Retry-After`: those of the error, or 1 for 429 and overload; `None` where a retry cannot help.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        let is_soon = matches!(self.code, Code::RateLimited | Code::Overloaded);
        self.retry_after.or(is_soon.then_some(1)).map(u64::from)
    }
}

/// Collects the faults of a request, so that one answer lists them all.
///
/// ```text
/// let mut faults = Faults::default();
/// let name = faults.take(text::name("name", &body.name));      None, and a fault more
/// let email = faults.take(text::email("email", &body.email));  Some("ada@acme.example")
/// faults.end()?;                                               400 with one entry
/// ```
#[derive(Default)]
pub struct Faults(Vec<ApiError>);

impl Faults {
    /// The value, or nothing and a fault more.
    pub fn take<T>(&mut self, checked: Result<T>) -> Option<T> {
        checked.map_err(|error| self.0.push(error)).ok()
    }

    /// The value of a part that may be absent; a fault more when it is there and wrong.
    pub fn take_some<T>(&mut self, checked: Option<Result<T>>) -> Option<T> {
        self.take(checked?)
    }

    /// Nothing, or all faults as one error.
    pub fn end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(self.error()) }
    }

    /// All faults as one error: the first speaks for it. An error of another status than 400 is returned alone: where the dashboard does
    /// not exist, the answer is 404, whatever else is wrong with the body.
    pub fn error(self) -> ApiError {
        let alone = self.0.iter().position(|error| error.code.status() != 400);
        let mut errors = self.0;
        if let Some(at) = alone {
            return errors.swap_remove(at);
        }
        let faults = errors.into_iter().flat_map(|error| {
            let own = Fault {
                field: error.field.unwrap_or_default(),
                code: error.code,
                message: error.message,
            };
            if error.faults.is_empty() { vec![own] } else { error.faults }
        });
        ApiError::of_faults(faults.collect())
    }
}

// Kind of the engine     code on the wire
// Invalid                invalid_field, with the field that the engine names
// Limit QueryMemory      query_too_large: this query needs more than one query may have
// Limit QueryTime        query_timeout
// Limit QueriesMemory    overloaded: all queries together need more than there is
// Limit Unreachable      overloaded: a file that is elsewhere cannot be fetched
// Limit, any other       overloaded: writes wait for the disk or for background work
// Closed, Elsewhere      overloaded: the store was closed by a failed write, or another process has it
// Corrupt, Io            internal
impl From<inlay_engine::Error> for ApiError {
    fn from(error: inlay_engine::Error) -> Self {
        use inlay_engine::Error;
        let overloaded = |cause: String| Self {
            cause: Some(cause),
            ..Self::new(Code::Overloaded, "the server cannot take writes right now; retry soon")
        };
        match error {
            Error::Invalid { field, detail } => {
                Self::field(Code::InvalidField, field, format!("{field} {detail}"))
            }
            Error::Limit { limit: Limit::QueryMemory, detail } => {
                Self::new(Code::QueryTooLarge, detail)
            }
            Error::Limit { limit: Limit::QueryTime, detail } => {
                Self::new(Code::QueryTimeout, detail)
            }
            Error::Limit { limit: Limit::QueriesMemory, detail } => {
                Self::new(Code::Overloaded, detail)
            }
            Error::Limit { limit: Limit::Unreachable, detail } => {
                let message = "a file of the store cannot be fetched right now; retry soon";
                Self { cause: Some(detail), ..Self::new(Code::Overloaded, message) }
            }
            Error::Limit { detail, .. } => overloaded(detail),
            error @ Error::Closed(_) => overloaded(error.to_string()),
            error @ Error::Elsewhere => {
                Self { more: Some(Box::new(More::Elsewhere)), ..overloaded(error.to_string()) }
            }
            error @ (Error::Corrupt { .. } | Error::Io { .. }) => Self::internal(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_together() {
        let mut faults = Faults::default();
        assert_eq!(faults.take(Ok(1)), Some(1));
        let wrong =
            |name: &str| ApiError::field(Code::InvalidField, name, format!("{name} is wrong"));
        assert_eq!(faults.take::<()>(Err(wrong("a"))), None);
        assert_eq!(faults.take_some::<()>(Some(Err(wrong("b")))), None);
        let error = faults.error();
        assert_eq!((error.field.as_deref(), error.message.as_str()), (Some("a"), "a is wrong"));
        assert_eq!(error.faults.len(), 2);
        let mut faults = Faults::default();
        faults.take::<()>(Err(wrong("a")));
        faults.take::<()>(Err(ApiError::not_found("dashboard")));
        assert_eq!(faults.error().code, Code::NotFound);
        assert!(Faults::default().end().is_ok());
    }

    #[test]
    fn names_are_unique_and_statuses_are_errors() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
        assert!(Code::ALL.iter().all(|code| (400..600).contains(&code.status())));
    }
}
