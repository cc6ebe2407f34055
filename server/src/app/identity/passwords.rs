//! Passwords that are changed: by who knows the old one, or through a link in a mail.
//!
//! The link holds `<user>.<secret>`. Of the secret only a digest is stored, under its user, with the instant at which
//! it stops being good. The next link replaces it, and any change of the password removes it, so a link works once. When
//! the password changes, every session of the user ends, also the one that changes it, which gets a new cookie: a stolen
//! cookie is worth nothing afterwards.
//!
//! ```text
//! POST /v1/auth/forgot-password {"email": "ada@acme.example"}
//! 202, empty, whether or not there is such an account; the mail follows:
//!     https://inlay.acme.com/console/reset-password?token=0190….q8Zt…
//! g/password_reset/0190…   {"org": "0190…", "digest": "<SHA-256 of q8Zt…>", "expires_at": …}     an hour from now
//! POST /v1/auth/reset-password {"token": "0190….q8Zt…", "password": "a new horse battery"}
//! 200, with a cookie
//! 401 {"code": "unauthenticated", "error": "the link is not valid any more; ask for a new one", …}    used, replaced, not ours
//! 401 {"code": "token_expired", "error": "the link has expired; ask for a new one", …}                an hour later
//! POST /v1/auth/change-password {"current_password": "wrong", "new_password": "another horse battery"}
//! 400 {"code": "invalid_field", "field": "current_password", "error": "current_password is wrong", …}
//! ```

use askama::Template;
use serde_json::json;

use super::{
    accounts::{RESERVED_DOMAIN, SessionOpened, is_password},
    sessions::{Client, caller_of_user, end_sessions},
};
use crate::{
    app::request::{callers::Caller, context::App},
    base::{secret, text},
    error::{ApiError, Code, Result},
    outbound::Mail,
    store::{
        Member, OrgTxn, PasswordReset, User, global_delete, global_end_session, global_find,
        global_put,
    },
};

/// Milliseconds for which a link to a new password can be used: an hour.
const RESET_MS: i64 = 3_600_000;
/// Kind of the records of links; the id is that of the user, so that there is one for each.
pub const KIND: &str = "password_reset";
/// Bytes of a token, at most; one of ours has 36 of an id, a point and 49 of a secret.
const TOKEN_BYTES_MAX: usize = 256;

#[derive(Template)]
#[template(path = "password.html")]
struct PasswordMailHtml<'a> {
    mail: &'a PasswordMail,
}

#[derive(Template)]
#[template(path = "password.txt", escape = "none")]
struct PasswordMailText<'a> {
    mail: &'a PasswordMail,
}

/// The content of the mail with the link.
struct PasswordMail {
    heading: &'static str,
    email: String,
    server: String,
    link: String,
}

impl App {
    /// Makes a link to a new password for an account, and the mail with it; nothing for an address without an account.
    /// The link before it ends.
    ///
    /// Accounts of the demo get none: nobody reads mail to their domain. `email` is an address in lower case.
    pub fn request_password_reset(&self, email: &str) -> Result<Option<Mail>> {
        let keys = self.engine.keys();
        let Some(id) = global_find::<String>(&keys, "email", email)? else { return Ok(None) };
        let user: Option<User> = global_find(&keys, "user", &id)?;
        let Some(user) = user.filter(|user| !user.email.ends_with(RESERVED_DOMAIN)) else {
            return Ok(None);
        };
        let secret = secret::mint("", &*self.rng);
        let now = self.now_ms();
        let reset = PasswordReset {
            org: user.org.clone(),
            digest: secret::digest(&secret),
            expires_at: now + RESET_MS,
        };
        self.engine.transact(|txn| {
            // The account may have been removed meanwhile.
            match global_find::<User>(txn, "user", &user.id)? {
                Some(_) => global_put(txn, KIND, &user.id, &reset),
                None => Ok(()),
            }
        })?;
        let base_url = &self.settings.base_url;
        // The mail is sent by the caller of this function: it may take seconds, and is tried several times.
        let content = PasswordMail {
            heading: "Set a new password",
            email: user.email.clone(),
            server: base_url.clone(),
            link: format!("{base_url}/console/reset-password?token={}.{secret}", user.id),
        };
        let failed = |error: askama::Error| ApiError::internal(error.to_string());
        Ok(Some(Mail {
            id: self.new_id(),
            written_at: now,
            to: user.email,
            subject: "Set a new password for Inlay".to_owned(),
            text: PasswordMailText { mail: &content }.render().map_err(failed)?,
            html: PasswordMailHtml { mail: &content }.render().map_err(failed)?,
            unsubscribe: None,
            picture: None,
            file: None,
        }))
    }

    /// Sets a new password with the token of a link, and opens a session; all others of the user end, and the one with the
    /// cookie `before`, which the browser had.
    ///
    /// Errors: 401 when the token is not ours, was used or replaced, or has expired; 400 for the password.
    pub fn reset_password(
        &self,
        token: &str,
        password: &str,
        before: Option<&str>,
        client: Client,
    ) -> Result<SessionOpened> {
        let invalid = || {
            ApiError::new(
                Code::Unauthenticated,
                "the link is not valid any more; ask for a new one",
            )
        };
        if token.len() > TOKEN_BYTES_MAX {
            return Err(invalid());
        }
        let (user_id, secret) = token.split_once('.').ok_or_else(invalid)?;
        let digest = secret::digest(secret);
        let check = |reset: Option<PasswordReset>| match reset {
            Some(reset) if reset.digest != digest => Err(invalid()),
            Some(reset) if self.now_ms() >= reset.expires_at => {
                Err(ApiError::new(Code::TokenExpired, "the link has expired; ask for a new one"))
            }
            Some(_) => Ok(()),
            None => Err(invalid()),
        };
        let keys = self.engine.keys();
        check(find_reset(&keys, user_id)?)?;
        // The link is looked at first, so that only its owner learns what a password must be; a refused password leaves the link as it is.
        text::password("password", password)?;
        let password_hash = self.hash_password(password)?;
        let user: User = global_find(&keys, "user", user_id)?.ok_or_else(invalid)?;
        let org = self.org(&user.org)?;
        self.org_txn(&org.id, |txn| {
            // Asked again where nobody can come between: a link is good for once.
            check(find_reset(txn.global(), user_id)?)?;
            let member: Member = txn.find(user_id)?.ok_or_else(invalid)?;
            let user = find_user(txn, user_id)?.ok_or_else(invalid)?;
            let user = put_password(txn, user, &password_hash)?;
            if let Some(before) = before {
                global_end_session(txn.global(), &secret::digest(before))?;
            }
            let caller = caller_of_user(&user, member.role, &org, &client);
            self.audit(txn, &caller, "user.password_reset", ("user", user_id), json!({}))?;
            let session = self.open_session(txn.global(), user_id, &org.id, &client)?;
            Ok(SessionOpened { user, org: org.clone(), role: member.role, session })
        })
    }

    /// Changes the caller's own password. All sessions end, and one is opened in place of this one; gives its cookie.
    ///
    /// Errors: 400 when the current password is wrong or the new one is too short or too long; 409 when it was changed meanwhile.
    pub fn change_password(
        &self,
        caller: &Caller,
        current: &str,
        new: &str,
        client: &Client,
    ) -> Result<String> {
        let user = self.user_of(caller)?;
        let user = user.ok_or_else(|| ApiError::internal("a session without its user"))?;
        text::password("new_password", new)?;
        if !is_password(current, &user.password_hash)? {
            let message = "current_password is wrong";
            return Err(ApiError::field(Code::InvalidField, "current_password", message));
        }
        let password_hash = self.hash_password(new)?;
        self.org_txn(&caller.org, |txn| {
            let known = find_user(txn, &user.id)?;
            let known = known.filter(|known| known.password_hash == user.password_hash);
            let known = known.ok_or_else(|| {
                ApiError::new(Code::Conflict, "the password was changed meanwhile")
            })?;
            let user = put_password(txn, known, &password_hash)?;
            self.audit(txn, caller, "user.password_change", ("user", &user.id), json!({}))?;
            self.open_session(txn.global(), &user.id, &caller.org, client)
        })
    }
}

fn find_user(txn: &mut OrgTxn<'_>, id: &str) -> Result<Option<User>> {
    global_find(txn.global(), "user", id)
}

/// Stores a password; the link to another one, and all sessions, end.
///
/// The change of a forgotten and of a known password end here, so that neither leaves a session or a link behind.
fn put_password(txn: &mut OrgTxn<'_>, mut user: User, password_hash: &str) -> Result<User> {
    user.password_hash = password_hash.to_owned();
    global_put(txn.global(), "user", &user.id, &user)?;
    global_delete(txn.global(), KIND, &user.id);
    end_sessions(txn, &user.id)?;
    Ok(user)
}

/// The link of a user. What is no id of a user has none.
fn find_reset(keys: &impl crate::store::Keys, user: &str) -> Result<Option<PasswordReset>> {
    match user.contains('/') {
        true => Ok(None),
        false => global_find(keys, KIND, user),
    }
}
