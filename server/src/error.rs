//! The one table of error codes: name, HTTP status, gRPC status.
//!
//! Everything that can go wrong in a request ends as an [`ApiError`]. Only this file knows status
//! numbers.

use inlay_engine::Limit;

/// Result of everything that a request can ask for.
pub type Result<T, E = ApiError> = std::result::Result<T, E>;

macro_rules! codes {
    ($($variant:ident $name:literal $status:literal $grpc:ident;)*) => {
        /// What went wrong, by the name that clients see.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// Name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// HTTP status.
            pub fn status(self) -> u16 {
                match self { $(Code::$variant => $status,)* }
            }

            /// gRPC status.
            pub fn grpc(self) -> tonic::Code {
                match self { $(Code::$variant => tonic::Code::$grpc,)* }
            }
        }
    };
}

codes! {
    InvalidJson "invalid_json" 400 InvalidArgument;
    InvalidField "invalid_field" 400 InvalidArgument;
    MissingField "missing_field" 400 InvalidArgument;
    UnknownField "unknown_field" 400 InvalidArgument;
    UnknownValue "unknown_value" 400 InvalidArgument;
    OutOfRange "out_of_range" 400 OutOfRange;
    TooManyEvents "too_many_events" 400 InvalidArgument;
    QueryTimeout "query_timeout" 400 DeadlineExceeded;
    QueryTooLarge "query_too_large" 400 ResourceExhausted;
    Unauthenticated "unauthenticated" 401 Unauthenticated;
    SessionExpired "session_expired" 401 Unauthenticated;
    TokenExpired "token_expired" 401 Unauthenticated;
    TokenRevoked "token_revoked" 401 Unauthenticated;
    PublishedDashboardsLimit "published_dashboards_limit" 402 ResourceExhausted;
    ApiKeysLimit "api_keys_limit" 402 ResourceExhausted;
    AdvancedEmbedPermissions "advanced_embed_permissions" 402 ResourceExhausted;
    MonthlyEventsLimit "monthly_events_limit" 402 ResourceExhausted;
    ForbiddenScope "forbidden_scope" 403 PermissionDenied;
    ForbiddenRole "forbidden_role" 403 PermissionDenied;
    ForbiddenOrigin "forbidden_origin" 403 PermissionDenied;
    EmbedPermission "embed_permission" 403 PermissionDenied;
    NotFound "not_found" 404 NotFound;
    MethodNotAllowed "method_not_allowed" 405 Unimplemented;
    Conflict "conflict" 409 Aborted;
    DuplicateEmail "duplicate_email" 409 AlreadyExists;
    NotPublished "not_published" 409 FailedPrecondition;
    PayloadTooLarge "payload_too_large" 413 ResourceExhausted;
    UnsupportedMediaType "unsupported_media_type" 415 InvalidArgument;
    RateLimited "rate_limited" 429 ResourceExhausted;
    Internal "internal" 500 Internal;
    Overloaded "overloaded" 503 Unavailable;
}

/// A plan limit that was met: what 402 adds to an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLimit {
    /// Current plan.
    pub plan: String,
    /// Plan that has room, if there is one.
    pub upgrade_to: Option<String>,
    /// The limit.
    pub limit: u64,
    /// What is used of it.
    pub used: u64,
}

/// An error as the caller sees it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// What went wrong.
    pub code: Code,
    /// For people.
    pub message: String,
    /// The part of the request that is to blame.
    pub field: Option<String>,
    /// The plan limit behind a 402.
    pub plan_limit: Option<Box<PlanLimit>>,
    /// What the log should say and the caller should not see.
    pub cause: Option<String>,
}

impl ApiError {
    /// An error of the request as a whole.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), field: None, plan_limit: None, cause: None }
    }

    /// An error of one field.
    pub fn field(code: Code, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..Self::new(code, message) }
    }

    /// An object that the caller does not have, or nobody has: the same answer.
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("{what} not found"))
    }

    /// A failure of ours; `cause` goes to the log only.
    pub fn internal(cause: impl Into<String>) -> Self {
        let message = "something went wrong on our side; the request id finds it in the log";
        Self { cause: Some(cause.into()), ..Self::new(Code::Internal, message) }
    }

    /// Seconds after which a retry makes sense, where it does.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        matches!(self.code, Code::RateLimited | Code::Overloaded).then_some(1)
    }
}

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
            Error::Limit { detail, .. } => overloaded(detail),
            error @ Error::Closed(_) => overloaded(error.to_string()),
            error @ (Error::Corrupt { .. } | Error::Io { .. }) => Self::internal(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_statuses_are_errors() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
        assert!(Code::ALL.iter().all(|code| (400..600).contains(&code.status())));
    }
}
