//! The operations: one line each, in the order of the specification.
//!
//! A line names the method, the path, who may (through its [`Operation`]) and the handler. There is
//! no other way to mount a handler, so none can forget to ask who calls.

use axum::{
    Router,
    handler::Handler,
    middleware,
    routing::{MethodFilter, on},
};

use super::{caller::guard, context::Http};
use crate::app::Operation;

mod view;

mod api_keys;
mod audit;
mod dashboards;
mod demo;
mod discover;
mod embed;
mod erasures;
mod events;
mod query;
mod saved_queries;
mod widgets;

mod auth;

mod settings;

/// Bytes of a request body, at most, unless its operation says otherwise.
pub const BODY_BYTES_MAX: usize = 1 << 20;

struct Table {
    http: Http,
    router: Router<Http>,
}

impl Table {
    fn row<T: 'static, H: Handler<T, Http>>(
        mut self,
        method: MethodFilter,
        path: &str,
        operation: Operation,
        handler: H,
    ) -> Self {
        let guarded = middleware::from_fn_with_state((self.http.clone(), operation), guard);
        self.router = self.router.route(path, on(method, handler).layer(guarded));
        self
    }
}

/// All operations under `/v1`.
pub fn operations(http: Http) -> Router<Http> {
    const GET: MethodFilter = MethodFilter::GET;
    const POST: MethodFilter = MethodFilter::POST;
    const PATCH: MethodFilter = MethodFilter::PATCH;
    const DELETE: MethodFilter = MethodFilter::DELETE;
    let table = Table { http, router: Router::new() }
        .row(POST, "/v1/auth/register", Operation::Register, auth::register)
        .row(POST, "/v1/auth/login", Operation::Login, auth::login)
        .row(POST, "/v1/auth/logout", Operation::Logout, auth::logout)
        .row(GET, "/v1/auth/me", Operation::Me, auth::me)
        .row(POST, "/v1/events", Operation::IngestEvents, events::ingest)
        .row(GET, "/v1/dashboards", Operation::ListDashboards, dashboards::list)
        .row(GET, "/v1/dashboards/{id}", Operation::GetDashboard, dashboards::get)
        .row(POST, "/v1/dashboards", Operation::CreateDashboard, dashboards::create)
        .row(PATCH, "/v1/dashboards/{id}", Operation::UpdateDashboard, dashboards::update)
        .row(DELETE, "/v1/dashboards/{id}", Operation::DeleteDashboard, dashboards::delete)
        .row(POST, "/v1/dashboards/{id}/publish", Operation::PublishDashboard, dashboards::publish)
        .row(
            POST,
            "/v1/dashboards/{id}/unpublish",
            Operation::UnpublishDashboard,
            dashboards::unpublish,
        )
        .row(
            POST,
            "/v1/dashboards/{id}/restore-published",
            Operation::RestoreDashboard,
            dashboards::restore,
        )
        .row(
            POST,
            "/v1/dashboards/{id}/widgets",
            Operation::AddDashboardWidget,
            dashboards::add_widget,
        )
        .row(
            PATCH,
            "/v1/dashboards/{id}/widgets/{widget_id}",
            Operation::UpdateDashboardWidget,
            dashboards::update_widget,
        )
        .row(
            DELETE,
            "/v1/dashboards/{id}/widgets/{widget_id}",
            Operation::DeleteDashboardWidget,
            dashboards::delete_widget,
        )
        .row(POST, "/v1/widgets/preview/data", Operation::PreviewWidget, widgets::preview)
        .row(POST, "/v1/embed-sessions", Operation::CreateEmbedSession, embed::create)
        .row(GET, "/v1/embed-sessions", Operation::ListEmbedSessions, embed::list)
        .row(DELETE, "/v1/embed-sessions/{id}", Operation::RevokeEmbedSession, embed::revoke)
        .row(GET, "/v1/discover", Operation::Discover, discover::get)
        .row(
            POST,
            "/v1/discover/auto-create",
            Operation::AutoCreateDashboard,
            discover::auto_create,
        )
        .row(GET, "/v1/query", Operation::Query, query::query)
        .row(GET, "/v1/api-keys", Operation::ListApiKeys, api_keys::list)
        .row(POST, "/v1/api-keys", Operation::CreateApiKey, api_keys::create)
        .row(DELETE, "/v1/api-keys/{id}", Operation::RevokeApiKey, api_keys::revoke)
        .row(GET, "/v1/demo/embed-url", Operation::DemoEmbedUrl, demo::embed_url)
        .row(GET, "/v1/saved-queries", Operation::ListSavedQueries, saved_queries::list)
        .row(POST, "/v1/saved-queries", Operation::CreateSavedQuery, saved_queries::create)
        .row(PATCH, "/v1/saved-queries/{id}", Operation::UpdateSavedQuery, saved_queries::update)
        .row(DELETE, "/v1/saved-queries/{id}", Operation::DeleteSavedQuery, saved_queries::delete)
        .row(GET, "/v1/settings/org", Operation::GetOrg, settings::get)
        .row(PATCH, "/v1/settings/org", Operation::UpdateOrg, settings::update)
        .row(DELETE, "/v1/settings/org", Operation::DeleteOrg, settings::delete)
        .row(GET, "/v1/audit", Operation::ListAudit, audit::list)
        .row(
            DELETE,
            "/v1/tenants/{tenant_id}/events",
            Operation::EraseTenantEvents,
            erasures::tenant,
        )
        .row(
            DELETE,
            "/v1/tenants/{tenant_id}/users/{user_id}/events",
            Operation::EraseUserEvents,
            erasures::user,
        )
        .row(GET, "/v1/erasures", Operation::ListErasures, erasures::list)
        .row(GET, "/v1/erasures/{id}", Operation::GetErasure, erasures::get)
        .row(GET, "/v1/embed/dashboard", Operation::EmbedDashboard, embed::dashboard)
        .row(POST, "/v1/embed/data", Operation::EmbedData, embed::data);
    table.router
}
