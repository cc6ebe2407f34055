//! How far an organisation is with setting up.

use crate::{
    app::request::{callers::Caller, context::App},
    error::Result,
    store::{AuditRow, Dashboard, Invite, Member, UsageDay},
};

/// Audit rows among which an embed session is looked for.
const ROWS_LOOKED_AT: usize = 1_000;

/// What was done so far.
pub struct Onboarding {
    /// Events beside the sample.
    pub real_events: u64,
    /// Whether a dashboard was made.
    pub created_dashboard: bool,
    /// Whether one is published.
    pub published_dashboard: bool,
    /// Whether an embed session was minted lately.
    pub created_embed_session: bool,
    /// Whether somebody was invited or came.
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
