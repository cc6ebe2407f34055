//! Members of an organisation with their roles, and invites.
//!
//! An account belongs to one organisation. Accepting an invite makes it, removing the member ends it, so
//! that the same address can be invited anew, there or elsewhere.
//!
//! ```text
//! POST /v1/members/invite {"email": "Grace@Acme.example", "role": "editor"}
//! 201 {"id": "0190…", "email": "grace@acme.example", "role": "editor", "invited_by": "ada@acme.example", "expires_at": …,
//!      "token": "eyJ…", "invite_url": "https://inlay.acme.com/console/invite?token=eyJ…"}
//! 409 {"code": "invite_pending", "field": "email", "error": "an invite of this address is pending", …}
//! POST /v1/auth/accept-invite {"token": "eyJ…", "name": "Grace Hopper", "password": "correct horse battery"}
//! 200 {"user": {…}, "org": {…}, "role": "editor"}, with a cookie
//! 401 {"code": "token_revoked", "error": "the invite was used or withdrawn", …}      the same token again
//! 401 {"code": "token_expired", "error": "the invite has expired", …}                7 days after it was made
//! ```
//!
//! Who may remove whom; the last owner is 409 for everybody:
//!
//! ```text
//!              itself   viewer   editor   admin   owner
//! viewer       yes      no       no       no      no
//! editor       yes      no       no       no      no
//! admin        yes      yes      yes      no      no
//! admin key             yes      yes      no      no
//! owner        yes      yes      yes      yes     yes
//! ```

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    accounts::{RESERVED_DOMAIN, SessionOpened},
    link_tokens::{LinkPurpose, sign_link},
    passwords,
    sessions::{Client, caller_of_user, end_sessions, is_guest},
};
use crate::{
    app::request::{access::Principal, callers::Caller, context::App},
    base::text,
    error::{ApiError, Code, Faults, Result},
    store::{
        Invite, InviteKey, Member, OrgTxn, Role, User, global_delete, global_find, global_put,
    },
};

/// Milliseconds for which an invite can be accepted: 7 days.
const INVITE_MS: i64 = 7 * 86_400_000;
// A token of a mail that can be stopped has another purpose, and is no invite.
const PURPOSE: LinkPurpose = LinkPurpose("invite");
/// Invites of an organisation at once, at most: the list is answered whole.
const INVITES_MAX: usize = 1_000;

/// Claims that are not here make a token invalid: it was not signed by this build.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InviteClaims {
    aud: String,
    /// Id of the invite.
    sub: String,
    org: String,
    iat: i64,
    exp: i64,
}

/// An invite that was just made, with its token and link.
pub struct NewInvite {
    /// Stored record, valid for 7 days.
    pub invite: Invite,
    /// Signed token, a JWT with HS256; shown once and not stored.
    pub token: String,
    /// Address of the console page that accepts the invite, with the token in its query.
    pub url: String,
}

impl App {
    /// All members with their accounts, newest first.
    ///
    /// A member whose account is gone is left out.
    pub fn members(&self, caller: &Caller) -> Result<Vec<(Member, User)>> {
        let keys = self.engine.keys();
        let mut found = Vec::new();
        for member in self.org_reader(&caller.org).list::<Member>()?.into_iter().rev() {
            if let Some(user) = global_find::<User>(&keys, "user", &member.id)? {
                found.push((member, user));
            }
        }
        Ok(found)
    }

    /// Finds a member. 404 when there is none, which comes before the faults of a request.
    pub fn member(&self, caller: &Caller, id: &str) -> Result<Member> {
        self.org_reader(&caller.org).find(id)?.ok_or_else(not_found)
    }

    /// Invites somebody. 409 when the address is invited already or belongs to a member.
    ///
    /// An invite of the same address that has expired is replaced. The token is not stored: a second invite needs the first one withdrawn.
    ///
    /// Errors: 400 for the address, and for the role `owner`; 409 `conflict` beyond 1,000 pending invites.
    pub fn invite(&self, caller: &Caller, email: &str, role: Role) -> Result<NewInvite> {
        let mut faults = Faults::default();
        let email = faults.take(text::email("email", email));
        if role == Role::Owner {
            let message = "an invite makes a viewer, an editor or an admin";
            faults.take::<()>(Err(ApiError::field(Code::UnknownValue, "role", message)));
        }
        if email.as_ref().is_some_and(|email| email.ends_with(RESERVED_DOMAIN)) {
            let message = "email is not an e-mail address that gets mail";
            faults.take::<()>(Err(ApiError::field(Code::InvalidField, "email", message)));
        }
        let Some(email) = email else { return Err(faults.error()) };
        faults.end()?;
        let now = self.now_ms();
        let invite = Invite {
            id: self.new_id(),
            email,
            role,
            invited_by: caller.actor.label.clone(),
            created_at: now,
            expires_at: now + INVITE_MS,
        };
        let key = self.org_txn(&caller.org, |txn| {
            let invites: Vec<Invite> = txn.list()?;
            for old in invites.iter().filter(|old| old.email == invite.email) {
                if old.expires_at > now {
                    let message = "an invite of this address is pending";
                    return Err(ApiError::field(Code::InvitePending, "email", message));
                }
                txn.delete::<Invite>(&old.id);
            }
            if invites.iter().filter(|invite| invite.expires_at > now).count() >= INVITES_MAX {
                let message = format!("an organisation has at most {INVITES_MAX} invites");
                return Err(ApiError::new(Code::Conflict, message));
            }
            let user: Option<String> = global_find(txn.global(), "email", &invite.email)?;
            if let Some(user) = user
                && txn.find::<Member>(&user)?.is_some()
            {
                let message = "this address belongs to a member";
                return Err(ApiError::field(Code::DuplicateEmail, "email", message));
            }
            txn.put(&invite)?;
            let metadata = json!({"email": invite.email, "role": invite.role});
            self.audit(txn, caller, "member.invite", ("invite", &invite.id), metadata)?;
            self.link_key(txn, &caller.org)
        })?;
        let token = sign(&caller.org, &invite, &key)?;
        let url = format!("{}/console/invite?token={token}", self.settings.base_url);
        Ok(NewInvite { invite, token, url })
    }

    /// Invites that can still be accepted, newest first.
    pub fn invites(&self, caller: &Caller) -> Result<Vec<Invite>> {
        let now = self.now_ms();
        let mut invites: Vec<Invite> = self.org_reader(&caller.org).list()?;
        invites.retain(|invite| invite.expires_at > now);
        invites.reverse();
        Ok(invites)
    }

    /// Withdraws an invite: its link is dead.
    ///
    /// Errors: 404 when there is none with this id, also when it was accepted.
    pub fn revoke_invite(&self, caller: &Caller, id: &str) -> Result<()> {
        self.org_txn(&caller.org, |txn| {
            let invite: Invite = txn.find(id)?.ok_or_else(|| ApiError::not_found("invite"))?;
            txn.delete::<Invite>(id);
            let metadata = json!({"email": invite.email});
            self.audit(txn, caller, "member.invite_revoke", ("invite", id), metadata)
        })
    }

    /// Makes the invited a member and opens a session. 401 when the token is not ours, too old, used
    /// or withdrawn; 409 when the address has an account elsewhere.
    pub fn accept_invite(
        &self,
        token: &str,
        name: &str,
        password: &str,
        client: Client,
    ) -> Result<SessionOpened> {
        // Looked at before the password is hashed: a token that ended costs a look-up and no hash.
        let (org, id) = self.verify_invite(token)?;
        self.pending_invite(&mut |id| self.org_reader(&org).find(id), &id)?;
        let mut faults = Faults::default();
        let name = faults.take(text::name("name", name));
        faults.take(text::password("password", password));
        let Some(name) = name else { return Err(faults.error()) };
        faults.end()?;
        let password_hash = self.hash_password(password)?;
        let now = self.now_ms();
        let organisation = self.org(&org)?;
        self.org_txn(&org, |txn| {
            // Asked again where nobody can come between: an invite is good for once.
            let invite = self.pending_invite(&mut |id| txn.find(id), &id)?;
            if global_find::<String>(txn.global(), "email", &invite.email)?.is_some() {
                let message = "an account with this e-mail address exists";
                return Err(ApiError::new(Code::DuplicateEmail, message));
            }
            let user = User {
                id: self.new_id(),
                email: invite.email.clone(),
                name: name.clone(),
                password_hash: password_hash.clone(),
                org: org.clone(),
                created_at: now,
            };
            txn.delete::<Invite>(&id);
            global_put(txn.global(), "email", &user.email, &user.id)?;
            global_put(txn.global(), "user", &user.id, &user)?;
            txn.put(&Member { id: user.id.clone(), role: invite.role, joined_at: now })?;
            let session = self.open_session(txn.global(), &user.id, &org, &client)?;
            let caller = caller_of_user(&user, invite.role, &organisation, &client);
            let metadata = json!({"email": user.email, "role": invite.role});
            self.audit(txn, &caller, "member.join", ("member", &user.id), metadata)?;
            Ok(SessionOpened { user, org: organisation.clone(), role: invite.role, session })
        })
    }

    /// The invite with this id, read by `find` from a snapshot or within a transaction.
    ///
    /// Errors: 401 `token_revoked` when it is gone, `token_expired` when its time is over.
    fn pending_invite(
        &self,
        find: &mut dyn FnMut(&str) -> Result<Option<Invite>>,
        id: &str,
    ) -> Result<Invite> {
        let invite = find(id)?
            .ok_or_else(|| ApiError::new(Code::TokenRevoked, "the invite was used or withdrawn"))?;
        if self.now_ms() >= invite.expires_at {
            return Err(ApiError::new(Code::TokenExpired, "the invite has expired"));
        }
        Ok(invite)
    }

    /// Organisation and invite that a token names.
    fn verify_invite(&self, token: &str) -> Result<(String, String)> {
        let claims = self.verify_link::<InviteClaims>(PURPOSE, token)?;
        // How old it may be, its record says.
        let claims = claims.filter(|(org, claims)| claims.org == *org).map(|(_, claims)| claims);
        let claims = claims
            .ok_or_else(|| ApiError::new(Code::Unauthenticated, "the invite is not valid"))?;
        Ok((claims.org, claims.sub))
    }

    /// Changes what a member may do; the next request of his sessions knows. 409 for the last owner.
    ///
    /// Errors: 404 when there is no such member; 409 when the last owner would lose that role.
    pub fn update_member(&self, caller: &Caller, id: &str, role: Role) -> Result<(Member, User)> {
        let member = self.org_txn(&caller.org, |txn| {
            let mut member: Member = txn.find(id)?.ok_or_else(not_found)?;
            if member.role == Role::Owner && role != Role::Owner {
                keep_an_owner(txn)?;
            }
            let metadata = json!({"before": member.role, "role": role});
            member.role = role;
            txn.put(&member)?;
            self.audit(txn, caller, "member.update", ("member", id), metadata)?;
            Ok(member)
        })?;
        let user = global_find(&self.engine.keys(), "user", id)?.ok_or_else(not_found)?;
        Ok((member, user))
    }

    /// Removes a member with the account: sessions, the link to a new password and invites by this member end; API keys, dashboards and
    /// rules stay. Viewers and editors may remove themselves, admins also viewers and editors, owners everybody but the last owner.
    ///
    /// Errors: 403 `forbidden_role` where the table above says no, and for the demo's guest; 404; 409 for the last owner.
    pub fn delete_member(&self, caller: &Caller, id: &str) -> Result<()> {
        let is_self = !caller.is_key() && caller.actor.id == id;
        let forbidden = |message: &str| Err(ApiError::new(Code::ForbiddenRole, message));
        if matches!(caller.principal, Principal::Viewer | Principal::Editor) && !is_self {
            return forbidden("your role may remove nobody but yourself");
        }
        if is_guest(caller) {
            return forbidden("a guest of the demo cannot leave it");
        }
        self.org_txn(&caller.org, |txn| {
            let member: Member = txn.find(id)?.ok_or_else(not_found)?;
            if caller.principal != Principal::Owner && !is_self && member.role >= Role::Admin {
                return forbidden("only an owner may remove an admin or an owner");
            }
            if member.role == Role::Owner {
                keep_an_owner(txn)?;
            }
            let user: Option<User> = global_find(txn.global(), "user", id)?;
            txn.delete::<Member>(id);
            global_delete(txn.global(), "user", id);
            global_delete(txn.global(), passwords::KIND, id);
            end_sessions(txn, id)?;
            let email = user.map(|user| user.email).unwrap_or_default();
            global_delete(txn.global(), "email", &email);
            // A removed admin could otherwise come back by an invite that was made before, for an address of theirs.
            for invite in txn.list::<Invite>()?.iter().filter(|invite| invite.invited_by == email) {
                txn.delete::<Invite>(&invite.id);
            }
            let metadata = json!({"email": email, "role": member.role});
            self.audit(txn, caller, "member.remove", ("member", id), metadata)
        })
    }
}

/// `iat` and `exp` are seconds, as in every JWT; the record has milliseconds.
fn sign(org: &str, invite: &Invite, key: &InviteKey) -> Result<String> {
    let claims = InviteClaims {
        aud: PURPOSE.0.to_owned(),
        sub: invite.id.clone(),
        org: org.to_owned(),
        iat: invite.created_at / 1_000,
        exp: invite.expires_at / 1_000,
    };
    sign_link(PURPOSE, key, &claims)
}

/// Refuses when there is only one owner.
fn keep_an_owner(txn: &OrgTxn<'_>) -> Result<()> {
    let owners = txn.list::<Member>()?.iter().filter(|member| member.role == Role::Owner).count();
    if owners > 1 {
        return Ok(());
    }
    Err(ApiError::new(Code::Conflict, "an organisation keeps at least one owner"))
}

fn not_found() -> ApiError {
    ApiError::not_found("member")
}
