//! Console sessions: by the digest of their cookie, and by their user.
//!
//! `g/session/<digest>` is the session, which every request of the console reads. `g/session_of/<user>/<digest>`
//! says that the user has it, so that all of a user's sessions are found without reading those of others.

use inlay_engine::Txn;
use serde::{Deserialize, Serialize};

use super::{
    keys::{Keys, global_delete, global_find, global_list, global_put},
    records::Session,
};
use crate::error::Result;

const KIND: &str = "session";

/// What is stored under a user and a digest; deleting an organisation finds it by `org`.
#[derive(Serialize, Deserialize)]
struct Owned {
    org: String,
}

fn kind_of_user(user: &str) -> String {
    format!("session_of/{user}")
}

/// Stores a new session under the digest of its cookie.
pub fn global_open_session(txn: &mut Txn, digest: &str, session: &Session) -> Result<()> {
    global_put(txn, KIND, digest, session)?;
    global_put(txn, &kind_of_user(&session.user), digest, &Owned { org: session.org.clone() })
}

/// Ends a session, if there is one with this digest.
pub fn global_end_session(txn: &mut Txn, digest: &str) -> Result<()> {
    if let Some(session) = global_find::<Session>(txn, KIND, digest)? {
        global_delete(txn, &kind_of_user(&session.user), digest);
        global_delete(txn, KIND, digest);
    }
    Ok(())
}

/// The sessions of a user with the digests of their cookies, in no order; those that are too old may be among them.
pub fn global_sessions_of(keys: &impl Keys, user: &str) -> Result<Vec<(String, Session)>> {
    let mut sessions = Vec::new();
    for (digest, _) in global_list::<Owned>(keys, &kind_of_user(user))? {
        if let Some(session) = global_find(keys, KIND, &digest)? {
            sessions.push((digest, session));
        }
    }
    Ok(sessions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{app::App, error::ApiError};

    #[test]
    fn sessions_are_found_by_their_user_until_they_end() {
        let app = App::in_memory();
        let session = |user: &str| Session {
            id: app.new_id(),
            user: user.to_owned(),
            org: "o".to_owned(),
            created_at: 1,
            seen_at: 1,
            ip: None,
            user_agent: None,
        };
        let digests = |user: &str| -> Vec<String> {
            let found = global_sessions_of(&app.engine.keys(), user).unwrap();
            found.into_iter().map(|(digest, _)| digest).collect()
        };
        let open = |txn: &mut Txn, digest: &str, user: &str| {
            global_open_session(txn, digest, &session(user))
        };
        app.engine
            .transact(|txn| {
                open(txn, "1", "ada")?;
                open(txn, "2", "ada")?;
                // A name that begins like another one.
                open(txn, "3", "ada2")
            })
            .unwrap();
        assert_eq!(
            (digests("ada"), digests("ada2")),
            (vec!["1".into(), "2".into()], vec!["3".into()])
        );
        app.engine
            .transact(|txn| {
                global_end_session(txn, "1")?;
                global_end_session(txn, "1")?;
                Ok::<_, ApiError>(())
            })
            .unwrap();
        assert_eq!(digests("ada"), ["2"]);
        // Nothing is left of it.
        assert!(!app.engine.keys().scan(b"g/").iter().any(|(key, _)| key.ends_with(b"/1")));
    }
}
