//! A request that its client named, so that it can be sent again without being carried out again.
//!
//! ```text
//! secret         SHA-256("inlay idempotency\0" credential "\0" name)     32 bytes, in memory only
//! id             SHA-256(secret), hexadecimal                            g/idempotent_request/<id>
//! fingerprint    SHA-256(secret, digest of environment, path and body)   in the record
//! answer         AES-256-GCM under the secret                            in the record
//! ```
//!
//! Who reads the store finds neither credential nor name nor answer, and cannot test a guess of the body either.

use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use sha2::{Digest, Sha256};

use inlay_engine::Txn;

use crate::{
    base::secret,
    error::{ApiError, Code, Result},
    store::{IdempotentRequest, global_find, global_put},
};

/// Kind of the records of requests that were carried out.
pub const KIND: &str = "idempotent_request";
/// An answer is repeated for this long.
pub const REQUEST_KEPT_MS: i64 = 24 * 3_600_000;

/// A request with an idempotency key, and a secret that only its sender can compute.
#[derive(Clone)]
pub struct NamedRequest {
    /// Digest of credential and key: the id of the stored record.
    pub id: String,
    /// Id of the organisation of the caller.
    pub org: String,
    /// Digest of environment, path and body, which only the sender can make.
    pub fingerprint: String,
    /// Distinguishes this attempt from others of the same request.
    pub attempt: String,
    secret: [u8; 32],
}

impl NamedRequest {
    /// Names a request of a caller's credential.
    ///
    /// `credential` is the key or the cookie as it was sent, `name` the value of the header; `fingerprint` is a digest already.
    pub fn new(
        org: &str,
        credential: &str,
        name: &str,
        fingerprint: String,
        attempt: String,
    ) -> Self {
        let known = Sha256::new().chain_update("inlay idempotency\0").chain_update(credential);
        let known = known.chain_update("\0").chain_update(name);
        let secret: [u8; 32] = known.finalize().into();
        let id = secret::hex(&Sha256::digest(secret));
        // With the secret, which is not stored: a stored digest of a body with a password could be guessed at.
        let fingerprint = Sha256::new().chain_update(secret).chain_update(fingerprint);
        let fingerprint = secret::hex(&fingerprint.finalize());
        Self { id, org: org.to_owned(), fingerprint, attempt, secret }
    }

    /// An id for an event of the request that has none: the same whenever the request is sent again.
    ///
    /// `named:<64 hexadecimal digits>:7` for the eighth event. Errors in a batch do not move the numbers: they count in the body.
    pub fn event_id(&self, body: &[u8], index: usize) -> String {
        let whole = Sha256::new().chain_update(&self.id).chain_update(body);
        format!("named:{}:{index}", secret::hex(&whole.finalize()))
    }

    /// The cipher that encrypts and decrypts the stored answer.
    pub fn cipher(&self) -> Result<LessSafeKey> {
        let key = UnboundKey::new(&AES_256_GCM, &self.secret);
        key.map(LessSafeKey::new).map_err(|_| ApiError::internal("an answer cannot be encrypted"))
    }

    /// Marks within the transaction of its change that the request was carried out. 409 when another attempt
    /// at it was: its client gave up waiting and sent it again.
    pub fn mark(&self, txn: &mut Txn, now_ms: i64) -> Result<()> {
        let found: Option<IdempotentRequest> = global_find(txn, KIND, &self.id)?;
        let is_known = |found: &IdempotentRequest| {
            found.attempt != self.attempt && now_ms < found.created_at + REQUEST_KEPT_MS
        };
        if found.as_ref().is_some_and(is_known) {
            let message = "the request was carried out meanwhile; send it again for its answer";
            return Err(ApiError::field(Code::Conflict, "Idempotency-Key", message));
        }
        global_put(txn, KIND, &self.id, &self.record(now_ms, None))
    }

    /// The record of the request: that it was carried out, and its encrypted answer.
    pub fn record(&self, now_ms: i64, answer: Option<String>) -> IdempotentRequest {
        IdempotentRequest {
            org: self.org.clone(),
            fingerprint: self.fingerprint.clone(),
            attempt: self.attempt.clone(),
            created_at: now_ms,
            answer,
        }
    }
}
