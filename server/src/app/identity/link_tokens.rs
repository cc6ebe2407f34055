//! Tokens in links that an organisation signs for itself: of an invite, and of a mail that one can stop.
//!
//! ```text
//! JWT, HS256: {"typ": "invite+jwt", "kid": "<organisation>"} {"aud": "invite", "sub": "<id of the invite>", …}
//! ```
//!
//! The type of a token says what it is for: no other is taken for it. How old one may be is the matter of its user.
//!
//! The key of an organisation is stored under `g/invite_key/<organisation>` and is never replaced. Refused, all with the same `None`:
//!
//! ```text
//! typ "unsubscribe+jwt" where "invite+jwt" is expected      a link of a mail does not accept an invite
//! alg "none", "RS256"                                       the header does not choose how it is checked
//! a signature by the key of another organisation            kid names the key
//! more than 2,048 bytes, a kid of more than 64              nothing is decoded
//! ```
//!
//! The claim `exp` is not checked: an invite ends by its record, which can be withdrawn, and a link in a mail never ends.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    app::request::context::App,
    base::secret,
    error::{ApiError, Result},
    store::{InviteKey, OrgTxn, global_find, global_put},
};

/// Kind of the records of keys.
const KEY_KIND: &str = "invite_key";
/// Bytes of a token, at most.
const TOKEN_BYTES_MAX: usize = 2_048;

/// The purpose of a token: its `aud`, and its `typ` before `+jwt`.
///
/// `LinkPurpose("invite")` makes and accepts tokens with `aud` `invite` and `typ` `invite+jwt`.
#[derive(Clone, Copy)]
pub struct LinkPurpose(pub &'static str);

impl LinkPurpose {
    fn token_type(self) -> String {
        format!("{}+jwt", self.0)
    }
}

impl App {
    /// The key that signs links of an organisation, made when it is first needed.
    ///
    /// 32 random bytes as 64 hexadecimal digits, like other keys of ours.
    pub fn link_key(&self, txn: &mut OrgTxn<'_>, org: &str) -> Result<InviteKey> {
        if let Some(key) = global_find(txn.global(), KEY_KIND, org)? {
            return Ok(key);
        }
        let mut bytes = [0; 32];
        self.rng.fill(&mut bytes);
        let key = InviteKey { org: org.to_owned(), secret: secret::hex(&bytes) };
        global_put(txn.global(), KEY_KIND, org, &key)?;
        Ok(key)
    }

    /// The key that signs links of an organisation, outside of a transaction: a look-up, and a transaction only for the first link.
    ///
    /// Errors: 404 when the organisation does not exist.
    pub fn known_link_key(&self, org: &str) -> Result<InviteKey> {
        match global_find(&self.engine.keys(), KEY_KIND, org)? {
            Some(key) => Ok(key),
            None => self.org_txn(org, |txn| self.link_key(txn, org)),
        }
    }

    /// Organisation and claims of a token for this purpose; `None` when it is not one that the organisation signed.
    ///
    /// Errors: a key that cannot be read.
    ///
    /// `C` is what the token claims, for example `{"aud": "invite", "sub": "0190…", "org": "0190…", …}`. The caller compares the organisation
    /// in its claims, if it has one, with the one returned here, whose key has signed.
    pub fn verify_link<C: DeserializeOwned>(
        &self,
        purpose: LinkPurpose,
        token: &str,
    ) -> Result<Option<(String, C)>> {
        if token.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        let header = jsonwebtoken::decode_header(token).ok();
        let is_ours = |header: &Header| {
            header.typ == Some(purpose.token_type()) && header.alg == Algorithm::HS256
        };
        let kid = header.filter(is_ours).and_then(|header| header.kid);
        let Some(kid) = kid.filter(|kid| kid.len() <= 64) else { return Ok(None) };
        let Some(key) = global_find::<InviteKey>(&self.engine.keys(), KEY_KIND, &kid)? else {
            return Ok(None);
        };
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_required_spec_claims(&["aud", "sub"]);
        validation.set_audience(&[purpose.0]);
        // The library would compare `exp` with the clock of the machine; tests move ours.
        validation.validate_exp = false;
        let secret = DecodingKey::from_secret(key.secret.as_bytes());
        let claims = jsonwebtoken::decode(token, &secret, &validation).ok();
        Ok(claims.map(|decoded| (key.org, decoded.claims)))
    }
}

/// Signs claims, which have `aud` and `sub`.
pub fn sign_link<C: Serialize>(
    purpose: LinkPurpose,
    key: &InviteKey,
    claims: &C,
) -> Result<String> {
    let mut header = Header::new(Algorithm::HS256);
    header.typ = Some(purpose.token_type());
    header.kid = Some(key.org.clone());
    jsonwebtoken::encode(&header, claims, &EncodingKey::from_secret(key.secret.as_bytes()))
        .map_err(|error| ApiError::internal(format!("a link cannot be signed: {error}")))
}
