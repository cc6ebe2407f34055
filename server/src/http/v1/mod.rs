//! The operations: one line each, in the order of the specification.
//!
//! A line names the method, the path, who may (through its [`Operation`]), the handler, and what can
//! go wrong there beside what its parts tell. There is no other way to mount a handler, so none can
//! forget to ask who calls, and none can be missing in the OpenAPI document.
//!
//! ```text
//! POST "/v1/api-keys" CreateApiKey api_keys::create [ApiKeysLimit];
//! │    │              │            │                └ 402 `api_keys_limit`, which no argument of the handler could tell
//! │    │              │            └ async fn create(State<Http>, Caller, Body<CreateApiKey>) -> Result<Created<NewApiKeyView>>
//! │    │              └ row of the access table: admins, owners and admin keys; counted as `management`
//! │    └ path, with parameters in braces
//! └ method
//! ```
//!
//! Each resource has one file, with its request types, its handlers and its views. Doc comments of types that derive `ToSchema` or `IntoParams`
//! are descriptions in the OpenAPI document; notes for readers of the code are ordinary comments there.

use axum::{
    Router,
    handler::Handler,
    middleware,
    routing::{MethodFilter, on},
};
use serde_json::Value;
use utoipa::openapi::HttpMethod;

pub use auth::me_of;
pub use embed_data::{FirstData, first_data};

use super::{
    middleware::caller::guard,
    openapi::{describe::Described, document::Document},
    state::context::Http,
};
use crate::{app::Operation, error::Code};

mod rows;

mod view;

mod alert_trials;
mod alerts;
mod api_keys;
mod audit;
mod billing;
mod dashboards;
mod datasets;
mod discover;
mod embed;
mod embed_data;
mod erasures;
mod events;
mod members;
mod onboarding;
mod query;
mod reports;
mod saved_queries;
mod unsubscribe;
mod usage;
mod webhooks;
mod widgets;

mod auth;
mod sessions;

mod demo;
mod passwords;
mod settings;
mod sql;

/// Bytes of a request body, at most, unless its operation says otherwise.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// Router and document as they grow, row by row.
struct Table {
    http: Http,
    router: Router<Http>,
    document: Document,
}

impl Table {
    /// Mounts a handler behind the guard of its operation, and describes it.
    ///
    /// A handler whose arguments or answer do not describe themselves does not compile here.
    fn row<T, S, H>(
        &mut self,
        (filter, method): (MethodFilter, HttpMethod),
        path: &str,
        operation: Operation,
        handler: H,
        codes: &[Code],
    ) where
        T: 'static,
        H: Handler<T, Http> + Described<S>,
    {
        // Documented and mounted in one step, from one row: neither can be forgotten.
        self.document.add(method, path, operation, H::describe(), codes);
        let guarded = middleware::from_fn_with_state((self.http.clone(), operation), guard);
        let router = std::mem::take(&mut self.router);
        self.router = router.route(path, on(filter, handler).layer(guarded));
    }
}

macro_rules! operations {
    ($table:ident; $($method:ident $path:literal $operation:ident $handler:path [$($code:ident)*];)*) => {
        $($table.row(method::$method, $path, Operation::$operation, $handler, &[$(Code::$code),*]);)*
    };
}

mod method {
    use axum::routing::MethodFilter;
    use utoipa::openapi::HttpMethod;

    // Each method as axum routes it, and as the document names it.
    pub const GET: (MethodFilter, HttpMethod) = (MethodFilter::GET, HttpMethod::Get);
    pub const POST: (MethodFilter, HttpMethod) = (MethodFilter::POST, HttpMethod::Post);
    pub const PATCH: (MethodFilter, HttpMethod) = (MethodFilter::PATCH, HttpMethod::Patch);
    pub const DELETE: (MethodFilter, HttpMethod) = (MethodFilter::DELETE, HttpMethod::Delete);
}

/// All operations, and the document that describes them.
pub fn operations(http: Http) -> (Router<Http>, Value) {
    let mut table = Table { http, router: Router::new(), document: Document::new() };
    operations! { table;
        // Accounts: most of these have no caller yet.
        POST "/v1/auth/register" Register auth::register [DuplicateEmail];
        POST "/v1/auth/login" Login auth::login [Unauthenticated];
        POST "/v1/auth/logout" Logout auth::logout [];
        GET "/v1/auth/me" Me auth::me [];
        POST "/v1/auth/accept-invite" AcceptInvite auth::accept_invite [Unauthenticated TokenExpired TokenRevoked NotFound DuplicateEmail];
        POST "/v1/auth/forgot-password" ForgotPassword passwords::forgot [];
        POST "/v1/auth/reset-password" ResetPassword passwords::reset [Unauthenticated TokenExpired];
        POST "/v1/auth/change-password" ChangePassword passwords::change [Conflict];
        GET "/v1/auth/sessions" ListSessions sessions::list [];
        DELETE "/v1/auth/sessions/{id}" EndSession sessions::end [];
        // Events and dashboards.
        POST "/v1/events" IngestEvents events::ingest [];
        GET "/v1/dashboards" ListDashboards dashboards::list [];
        GET "/v1/dashboards/{id}" GetDashboard dashboards::get [];
        POST "/v1/dashboards" CreateDashboard dashboards::create [];
        PATCH "/v1/dashboards/{id}" UpdateDashboard dashboards::update [];
        GET "/v1/dashboards/{id}/published" GetPublishedDashboard dashboards::published [];
        GET "/v1/dashboards/{id}/widgets/{widget_id}/data" GetDashboardWidgetData widgets::data [QueryTimeout QueryTooLarge];
        DELETE "/v1/dashboards/{id}" DeleteDashboard dashboards::delete [];
        POST "/v1/dashboards/{id}/publish" PublishDashboard dashboards::publish [PublishedDashboardsLimit];
        POST "/v1/dashboards/{id}/unpublish" UnpublishDashboard dashboards::unpublish [];
        POST "/v1/dashboards/{id}/restore-published" RestoreDashboard dashboards::restore [Conflict];
        POST "/v1/dashboards/{id}/widgets" AddDashboardWidget dashboards::add_widget [Conflict];
        PATCH "/v1/dashboards/{id}/widgets/{widget_id}" UpdateDashboardWidget dashboards::update_widget [];
        DELETE "/v1/dashboards/{id}/widgets/{widget_id}" DeleteDashboardWidget dashboards::delete_widget [];
        GET "/v1/widgets" ListWidgets widgets::list [];
        GET "/v1/widgets/{id}" GetWidget widgets::get [];
        POST "/v1/widgets" CreateWidget widgets::create [Conflict];
        PATCH "/v1/widgets/{id}" UpdateWidget widgets::update [];
        POST "/v1/widgets/{id}/publish" PublishWidget widgets::publish [];
        DELETE "/v1/widgets/{id}" DeleteWidget widgets::delete [];
        POST "/v1/widgets/preview/data" PreviewWidget widgets::preview [QueryTimeout QueryTooLarge];
        // Embeds: a backend mints sessions; their data is at the end of the table.
        POST "/v1/embed-sessions" CreateEmbedSession embed::create [NotFound AdvancedEmbedPermissions];
        GET "/v1/embed-sessions" ListEmbedSessions embed::list [];
        DELETE "/v1/embed-sessions/{id}" RevokeEmbedSession embed::revoke [];
        POST "/v1/embed-sessions/rotate-key" RotateEmbedKey embed::rotate_key [];
        // Questions: metric queries and SQL. Both may take too long or too much memory.
        GET "/v1/discover" Discover discover::get [QueryTimeout QueryTooLarge];
        POST "/v1/discover/auto-create" AutoCreateDashboard discover::auto_create [NotFound QueryTimeout QueryTooLarge];
        GET "/v1/query" Query query::query [MissingField UnknownValue QueryTimeout QueryTooLarge];
        GET "/v1/datasets" ListDatasets datasets::list [QueryTimeout QueryTooLarge];
        GET "/v1/datasets/{name}/ddl" GetDatasetDdl datasets::ddl [NotFound];
        GET "/v1/saved-queries" ListSavedQueries saved_queries::list [];
        POST "/v1/query/adhoc" QuerySql sql::adhoc [InvalidSql QueryTimeout QueryTooLarge Overloaded];
        POST "/v1/saved-queries" CreateSavedQuery saved_queries::create [Conflict];
        PATCH "/v1/saved-queries/{id}" UpdateSavedQuery saved_queries::update [];
        DELETE "/v1/saved-queries/{id}" DeleteSavedQuery saved_queries::delete [];
        POST "/v1/saved-queries/{id}/run" RunSavedQuery sql::run_saved [InvalidSql QueryTimeout QueryTooLarge Overloaded];
        // Rules that send something.
        GET "/v1/alerts" ListAlerts alerts::list [];
        GET "/v1/alerts/{alert_id}" GetAlert alerts::get [];
        GET "/v1/alerts/{alert_id}/events" ListAlertEvents alerts::events [];
        POST "/v1/alerts" CreateAlert alerts::create [NotFound Conflict];
        PATCH "/v1/alerts/{alert_id}" UpdateAlert alerts::update [];
        DELETE "/v1/alerts/{alert_id}" DeleteAlert alerts::delete [];
        POST "/v1/alerts/{alert_id}/test" TestAlert alert_trials::test [];
        POST "/v1/alerts/preview" PreviewAlert alert_trials::preview [NotFound QueryTimeout QueryTooLarge];
        GET "/v1/reports" ListReports reports::list [];
        GET "/v1/reports/{report_id}" GetReport reports::get [];
        GET "/v1/reports/{report_id}/runs" ListReportRuns reports::runs [];
        GET "/v1/reports/{report_id}/file" GetReportFile reports::file [MissingField UnknownValue QueryTimeout QueryTooLarge];
        POST "/v1/reports" CreateReport reports::create [NotFound Conflict];
        PATCH "/v1/reports/{report_id}" UpdateReport reports::update [];
        DELETE "/v1/reports/{report_id}" DeleteReport reports::delete [];
        POST "/v1/reports/{report_id}/run" RunReport reports::run [];
        POST "/v1/reports/preview" PreviewReport reports::preview [];
        // The organisation: keys, members, settings, billing, audit.
        GET "/v1/api-keys" ListApiKeys api_keys::list [];
        POST "/v1/api-keys" CreateApiKey api_keys::create [ApiKeysLimit];
        DELETE "/v1/api-keys/{id}" RevokeApiKey api_keys::revoke [];
        GET "/v1/members" ListMembers members::list [];
        POST "/v1/members/invite" InviteMember members::invite [DuplicateEmail InvitePending];
        GET "/v1/members/invites" ListInvites members::invites [];
        DELETE "/v1/members/invites/{id}" RevokeInvite members::revoke_invite [];
        PATCH "/v1/members/{id}" UpdateMember members::update [Conflict];
        DELETE "/v1/members/{id}" DeleteMember members::delete [ForbiddenRole Conflict];
        GET "/v1/settings/org" GetOrg settings::get [];
        PATCH "/v1/settings/org" UpdateOrg settings::update [];
        DELETE "/v1/settings/org" DeleteOrg settings::delete [];
        GET "/v1/demo/embed-url" DemoEmbedUrl demo::embed_url [NotFound];
        POST "/v1/demo/session" DemoSession demo::session [NotFound];
        GET "/v1/usage" Usage usage::get [MissingField UnknownValue QueryTimeout QueryTooLarge];
        GET "/v1/billing" Billing billing::get [];
        GET "/v1/billing/plans" ListPlans billing::plans [];
        GET "/v1/billing/checkout-config" CheckoutConfig billing::checkout_config [BillingNotConfigured];
        GET "/v1/billing/portal" BillingPortal billing::portal [NotFound BillingNotConfigured];
        POST "/webhooks/billing" BillingWebhook billing::webhook [Unauthenticated BillingNotConfigured];
        GET "/v1/audit" ListAudit audit::list [];
        GET "/v1/onboarding/status" OnboardingStatus onboarding::status [];
        GET "/v1/webhooks" ListWebhooks webhooks::list [];
        POST "/v1/webhooks/{id}/retry" RetryWebhook webhooks::retry [];
        GET "/v1/unsubscribe" AskToUnsubscribe unsubscribe::ask [];
        POST "/v1/unsubscribe" Unsubscribe unsubscribe::stop [NotFound];
        // Erasing, and its receipts.
        DELETE "/v1/tenants/{tenant_id}/events" EraseTenantEvents erasures::tenant [];
        DELETE "/v1/tenants/{tenant_id}/users/{user_id}/events" EraseUserEvents erasures::user [];
        GET "/v1/erasures" ListErasures erasures::list [];
        GET "/v1/erasures/{id}" GetErasure erasures::get [];
        // For embed tokens only.
        GET "/v1/embed/dashboard" EmbedDashboard embed_data::dashboard [NotFound NotPublished];
        POST "/v1/embed/data" EmbedData embed_data::data [EmbedPermission NotFound NotPublished];
        POST "/v1/embed/values" EmbedValues embed_data::values [EmbedPermission NotFound NotPublished];
        POST "/v1/embed/detail" EmbedDetail embed_data::detail [EmbedPermission NotFound NotPublished];
    }
    (table.router, table.document.finish())
}
