//! Forgetting what has ended: console sessions and embed sessions.
//!
//! An ended session is refused whether or not its record is still there, so this is only about
//! space.

use super::{accounts::has_ended, context::App};
use crate::{
    error::Result,
    store::{EmbedSession, OrgTxn, Session, global_delete, global_list, global_records},
};

/// An embed session is kept this long after its end, so that a viewer is told that it expired.
const EMBED_KEPT_MS: i64 = 24 * 3_600_000;
/// Records removed in one transaction: others wait for it.
const AT_ONCE: usize = 500;

impl App {
    /// Removes the records of ended sessions; returns how many.
    pub fn expire(&self) -> Result<usize> {
        let now = self.now_ms();
        let keys = self.engine.keys();
        let ended: Vec<String> = global_list::<Session>(&keys, "session")?
            .into_iter()
            .filter(|(_, session)| has_ended(session, now))
            .map(|(digest, _)| digest)
            .collect();
        for some in ended.chunks(AT_ONCE) {
            self.engine.transact(|txn| {
                some.iter().for_each(|digest| global_delete(txn, "session", digest));
                Ok::<_, crate::error::ApiError>(())
            })?;
        }
        let old: Vec<(String, EmbedSession)> = global_records::<EmbedSession>(&keys)?
            .into_iter()
            .filter(|(_, session)| now >= session.expires_at + EMBED_KEPT_MS)
            .collect();
        for some in old.chunks(AT_ONCE) {
            self.engine.transact(|txn| {
                for (org, session) in some {
                    OrgTxn::new(txn, org).delete::<EmbedSession>(&session.id);
                }
                Ok::<_, crate::error::ApiError>(())
            })?;
        }
        Ok(ended.len() + old.len())
    }
}
