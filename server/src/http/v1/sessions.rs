//! `/v1/auth/sessions`: one's own console sessions.
//!
//! ```text
//! GET /v1/auth/sessions
//! 200 {"data":[{"id":"01a21f84-f44c-…","created_at":"2026-11-28T00:18:56.716Z","seen_at":"2026-11-28T00:18:56.716Z","ip":"203.0.113.7",
//!               "user_agent":"Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0","current":true},
//!              {"id":"01a21f84-f2ae-…",…,"current":false}],"next":null}
//! DELETE /v1/auth/sessions/01a21f84-f2ae-…     204: a lost laptop is logged out
//! GET, with an API key                         403 an API key of this scope may not do this
//! ```

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::Time;
use crate::{
    app::{Caller, OwnSession},
    error::Result,
    http::{
        extract::{Id, Page, Params},
        middleware::caller::SessionCookie,
        respond::{List, NoContent},
        state::context::Http,
    },
};

/// A console session.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionView {
    #[schema(format = Uuid)]
    id: String,
    created_at: Time,
    /// When it was last used, to the minute.
    seen_at: Time,
    /// Address that it was opened from.
    #[schema(required = true, example = "203.0.113.7")]
    ip: Option<String>,
    /// What the browser called itself.
    #[schema(required = true, example = "Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0")]
    user_agent: Option<String>,
    /// Whether this request belongs to it.
    current: bool,
}

/// The sessions of the caller's user, newest first. Nobody sees those of other members, whatever the role.
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    SessionCookie(cookie): SessionCookie,
    Params(page): Params<Page>,
) -> Result<List<SessionView>> {
    let sessions = http.run(move |app| app.own_sessions(&caller, &cookie)).await?;
    let (sessions, next) = page.cut(sessions, |own| own.session.id.clone())?;
    Ok(List { data: sessions.into_iter().map(view).collect(), next })
}

/// Ends one of the caller's sessions, also the one that asks. 204; 404 for a session of another user.
pub async fn end(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<NoContent> {
    http.run(move |app| app.end_own_session(&caller, &id)).await?;
    Ok(NoContent)
}

fn view(OwnSession { session, is_current }: OwnSession) -> SessionView {
    SessionView {
        id: session.id,
        created_at: Time(session.created_at),
        seen_at: Time(session.seen_at),
        ip: session.ip,
        user_agent: session.user_agent,
        current: is_current,
    }
}
