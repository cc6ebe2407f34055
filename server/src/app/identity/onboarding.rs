//! How far an organisation is with setting up.
//!
//! ```text
//! GET /v1/onboarding/status
//! 200 {"sample_only": false, "real_events": 11,
//!      "steps": {"sent_event": true, "created_dashboard": true, "published_dashboard": true, "created_embed_session": true,
//!                "invited_member": false}}
//! ```
//!
//! Nothing of it is stored: each step is read from what it leaves behind. A step is undone when that is: without a dashboard,
//! `created_dashboard` is false again.

use crate::{
    app::request::{callers::Caller, context::App},
    error::Result,
    store::{AuditRow, Dashboard, Invite, Member, UsageDay},
};

/// Newest audit rows among which an embed session is looked for: embed sessions themselves are removed a day after they end.
const ROWS_LOOKED_AT: usize = 1_000;

/// What was done so far.
pub struct Onboarding {
    /// Events that were stored and are no sample; days of usage count them, in both environments.
    pub real_events: u64,
    /// Whether there is a dashboard, published or not.
    pub created_dashboard: bool,
    /// Whether embeds show one of them now.
    pub published_dashboard: bool,
    /// Whether one of the last 1,000 changes minted an embed session.
    pub created_embed_session: bool,
    /// Whether there is a second member or an invite.
    pub invited_member: bool,
}

impl App {
    /// What was done so far, over all environments; a key knows of the events of its own only. The sample is
    /// not counted as usage.
    pub fn onboarding(&self, caller: &Caller) -> Result<Onboarding> {
        let reader = self.org_reader(&caller.org);
        let dashboards: Vec<Dashboard> = reader.list()?;
        let rows: Vec<AuditRow> = reader.list_last(ROWS_LOOKED_AT)?;
        Ok(Onboarding {
            real_events: reader
                .list::<UsageDay>()?
                .iter()
                .filter(|day| !caller.is_key() || day.id.starts_with(&caller.environment.id))
                .map(|day| day.events)
                .sum(),
            created_dashboard: !dashboards.is_empty(),
            published_dashboard: dashboards.iter().any(|dashboard| dashboard.is_live),
            created_embed_session: rows.iter().any(|row| row.action == "embed_session.create"),
            invited_member: reader.list::<Member>()?.len() > 1
                || !reader.list::<Invite>()?.is_empty(),
        })
    }
}
