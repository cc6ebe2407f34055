//! `GET /v1/onboarding/status`: the checklist of the console's first page.
//!
//! ```text
//! 200 {"sample_only":false,"real_events":43,
//!      "steps":{"sent_event":true,"created_dashboard":true,"published_dashboard":true,"created_embed_session":true,"invited_member":true}}
//! ```
//!
//! A new organisation has `sample_only: true` and no step done.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::Caller,
    error::Result,
    http::{respond::Answer, state::context::Http},
};

/// How far setting up is.
#[derive(Serialize, ToSchema)]
pub struct OnboardingStatus {
    /// Whether there is nothing but the sample.
    sample_only: bool,
    /// Events beside the sample.
    real_events: u64,
    steps: Steps,
}

/// What was done.
#[derive(Serialize, ToSchema)]
struct Steps {
    sent_event: bool,
    created_dashboard: bool,
    published_dashboard: bool,
    created_embed_session: bool,
    invited_member: bool,
}

/// How far setting up is: each step is read from its records.
pub async fn status(State(http): State<Http>, caller: Caller) -> Result<Answer<OnboardingStatus>> {
    let found = http.run(move |app| app.onboarding(&caller)).await?;
    Ok(Answer(OnboardingStatus {
        sample_only: found.real_events == 0,
        real_events: found.real_events,
        steps: Steps {
            sent_event: found.real_events > 0,
            created_dashboard: found.created_dashboard,
            published_dashboard: found.published_dashboard,
            created_embed_session: found.created_embed_session,
            invited_member: found.invited_member,
        },
    }))
}
