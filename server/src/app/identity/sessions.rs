//! Console sessions: opened with a password or an invite, used with a cookie, ended by their user or by time.
//!
//! The cookie is random, and only its digest is stored. A session that was removed with its user or organisation, or is too old, is
//! refused whether or not its record is still there.
//!
//! ```text
//! Cookie: service_session=q8Zt…                  49 characters
//! g/session/<SHA-256 of q8Zt…>                   {"id": "0190…", "user": "0190…", "org": "0190…", "created_at": …, "seen_at": …, …}
//! g/session_of/<user>/<SHA-256 of q8Zt…>         {"org": "0190…"}
//!
//! day 0    10:00:00    login                     seen_at 10:00:00
//!          10:00:30    a request                 nothing is written
//!          10:01:05    a request                 seen_at 10:01:05
//! day 3    10:01:05    no request since          401 {"code": "session_expired", "error": "the session has ended; log in again", …}
//! day 14   10:00:00    a request every day       401, in spite of it
//! ```

use std::net::IpAddr;

use crate::{
    app::request::{
        access::Principal,
        callers::{Caller, Identity},
        context::App,
    },
    base::secret,
    error::{ApiError, Code, Result},
    store::{
        Actor, Member, Org, OrgTxn, Role, Session, User, global_end_session, global_find,
        global_open_session, global_sessions_of,
    },
};

/// A session ends after this, whatever happens.
pub const SESSION_SECONDS: i64 = 14 * 86_400;
/// A session ends when it was not used for this long.
const IDLE_SECONDS: i64 = 3 * 86_400;
/// Use is noted at most this often: a write a request would be too much.
pub const SEEN_EVERY_MS: i64 = 60_000;
/// The account of whoever looks at the demo's console without one.
pub const GUEST_EMAIL: &str = "guest@inlay.invalid";
/// Characters of a `User-Agent` that are stored.
const USER_AGENT_CHARS: usize = 300;

/// Where a request comes from.
///
/// Shown to the user in the list of their sessions; it decides nothing.
#[derive(Debug, Clone, Default)]
pub struct Client {
    /// Address, as far as we believe it.
    /// `203.0.113.7`; from `X-Forwarded-For` only where the connection is from a trusted proxy.
    pub ip: Option<IpAddr>,
    /// The `User-Agent` header as it came; what is stored of it is bounded.
    pub user_agent: Option<String>,
}

/// A session as its user sees it.
#[derive(Debug)]
pub struct OwnSession {
    /// The record, without its cookie.
    pub session: Session,
    /// Whether the request that asks belongs to it.
    pub is_current: bool,
}

impl App {
    /// Opens a session within a transaction; gives the cookie's value.
    ///
    /// The caller of this function decides who may have one: after a password, an invite or a link to a new password.
    pub fn open_session(
        &self,
        txn: &mut inlay_engine::Txn,
        user: &str,
        org: &str,
        client: &Client,
    ) -> Result<String> {
        let cookie = secret::mint("", &*self.rng);
        let now = self.now_ms();
        let session = Session {
            id: self.new_id(),
            user: user.to_owned(),
            org: org.to_owned(),
            created_at: now,
            seen_at: now,
            ip: client.ip.map(|ip| ip.to_string()),
            user_agent: client.user_agent.as_deref().map(shortened),
        };
        global_open_session(txn, &secret::digest(&cookie), &session)?;
        Ok(cookie)
    }

    /// Ends a session.
    ///
    /// Nothing happens to a session that has ended before. The audit gets its row in either case.
    pub fn logout(&self, caller: &Caller, cookie: &str) -> Result<()> {
        let digest = secret::digest(cookie);
        self.org_txn(&caller.org, |txn| {
            global_end_session(txn.global(), &digest)?;
            let target = ("user", caller.actor.id.as_str());
            self.audit(txn, caller, "session.end", target, serde_json::json!({}))
        })
    }

    /// The caller behind a session cookie, from memory alone, and whether its use is to be noted. `environment` is a name,
    /// production by default.
    ///
    /// Errors: 401 `session_expired` when the session, its user, its organisation or the membership is gone, or its time is over; 400 for
    /// an environment that does not exist.
    pub fn caller_of_session(
        &self,
        cookie: &str,
        environment: Option<&str>,
    ) -> Result<(Caller, bool)> {
        let expired = || ApiError::new(Code::SessionExpired, "the session has ended; log in again");
        let digest = secret::digest(cookie);
        let keys = self.engine.keys();
        let session: Session = global_find(&keys, "session", &digest)?.ok_or_else(expired)?;
        let now = self.now_ms();
        let ended = has_ended(&session, now);
        let user: Option<User> = global_find(&keys, "user", &session.user)?;
        let reader = self.org_reader(&session.org);
        let (Some(user), Some(org), Some(member), false) =
            (user, reader.find::<Org>(&session.org)?, reader.find::<Member>(&session.user)?, ended)
        else {
            return Err(expired());
        };
        let is_due = now >= session.seen_at + SEEN_EVERY_MS;
        let environment = match environment {
            Some(name) => org.environment(name).cloned().ok_or_else(|| no_environment(name))?,
            None => org.environments[0].clone(),
        };
        let principal = Principal::of_role(member.role);
        let caller = Caller::from(Identity {
            principal,
            org: org.id,
            environment,
            actor: actor_of(&user),
            session: Some(digest),
        });
        Ok((caller, is_due))
    }

    /// The caller's sessions that have not ended, newest first.
    ///
    /// A guest of the demo sees only the session of the cookie: the account is shared by all guests.
    pub fn own_sessions(&self, caller: &Caller, cookie: &str) -> Result<Vec<OwnSession>> {
        let (now, current) = (self.now_ms(), secret::digest(cookie));
        let mut found = global_sessions_of(&self.engine.keys(), &caller.actor.id)?;
        found.retain(|(digest, session)| {
            !has_ended(session, now) && (!is_guest(caller) || *digest == current)
        });
        found.sort_by(|(_, a), (_, b)| b.id.cmp(&a.id));
        let own = |(digest, session)| OwnSession { session, is_current: digest == current };
        Ok(found.into_iter().map(own).collect())
    }

    /// Ends one of the caller's own sessions. 404 when it is not one of them.
    ///
    /// `id` is that of the list, not the cookie: it opens nothing and may be shown. The session that asks may end itself.
    pub fn end_own_session(&self, caller: &Caller, id: &str) -> Result<()> {
        self.org_txn(&caller.org, |txn| {
            let found = global_sessions_of(txn.global(), &caller.actor.id)?;
            let is_own =
                |digest: &str| !is_guest(caller) || caller.session.as_deref() == Some(digest);
            let found =
                found.into_iter().find(|(digest, session)| session.id == id && is_own(digest));
            let (digest, _) = found.ok_or_else(|| ApiError::not_found("session"))?;
            global_end_session(txn.global(), &digest)?;
            let metadata = serde_json::json!({"session": id});
            self.audit(txn, caller, "session.end", ("user", &caller.actor.id), metadata)
        })
    }
}

/// Ends all sessions of a user, within the transaction that changes the password or removes the member.
pub fn end_sessions(txn: &mut OrgTxn<'_>, user: &str) -> Result<()> {
    for (digest, _) in global_sessions_of(txn.global(), user)? {
        global_end_session(txn.global(), &digest)?;
    }
    Ok(())
}

/// A member who has just proved who they are, as the caller of what they do next: in production, without a session yet.
pub fn caller_of_user(user: &User, role: Role, org: &Org, client: &Client) -> Caller {
    let identity = Identity {
        principal: Principal::of_role(role),
        org: org.id.clone(),
        environment: org.environments[0].clone(),
        actor: actor_of(user),
        session: None,
    };
    Caller::from(identity).at(client.ip)
}

/// Whether a caller is the demo's guest: many people, who must not manage one another's sessions.
pub fn is_guest(caller: &Caller) -> bool {
    !caller.is_key() && caller.actor.label == GUEST_EMAIL
}

/// Whether a session is too old, or was not used for too long. One of a build before sessions had ids is not found
/// by its user, so that a new password could not end it: it has ended.
pub fn has_ended(session: &Session, now: i64) -> bool {
    session.id.is_empty()
        || now >= session.created_at + SESSION_SECONDS * 1_000
        || now >= session.seen_at + IDLE_SECONDS * 1_000
}

/// A user as the author of changes: `{"type": "user", "id": "0190…", "label": "ada@acme.example"}`.
pub fn actor_of(user: &User) -> Actor {
    Actor { r#type: "user".to_owned(), id: user.id.clone(), label: user.email.clone() }
}

/// The error for a name that no environment of the organisation has: 400 `unknown_value` of `X-Service-Environment`, with the message
/// `there is no environment "staging"`.
pub fn no_environment(name: &str) -> ApiError {
    let message = format!("there is no environment {name:?}");
    ApiError::field(Code::UnknownValue, "X-Service-Environment", message)
}

/// At most 300 characters of a `User-Agent`, without control characters: it is stored and shown.
fn shortened(user_agent: &str) -> String {
    user_agent.chars().filter(|char| !char.is_control()).take(USER_AGENT_CHARS).collect()
}
