//! Idempotency: a request that is sent again is answered again, and not carried out again.
//!
//! A client names a request by a key of its choice. The change and the mark that it was made are one
//! transaction; the answer is kept right after it. So a retry after a crash is either new or known.
//!
//! Answers may hold secrets that are shown once, such as a new API key. They are kept encrypted, under a
//! key made of the client's credential and its idempotency key, of which the store holds only digests.

use aws_lc_rs::aead::{Aad, NONCE_LEN, Nonce};

use super::{context::App, named::NamedRequest};
use crate::{
    base::secret,
    error::{ApiError, Code, Result},
    store::{IdempotentRequest, global_find, global_put},
};

/// An answer is repeated for this long.
pub const REQUEST_KEPT_MS: i64 = 24 * 3_600_000;

/// What is known of a named request.
#[derive(Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing: it is new.
    Nothing,
    /// It was answered with this.
    Answer(Vec<u8>),
}

impl App {
    /// What is known of a request. 409 when the name was used for another one, or when it was carried
    /// out and its answer is lost.
    pub fn known_request(&self, request: &NamedRequest) -> Result<Known> {
        let found: Option<IdempotentRequest> =
            global_find(&self.engine.keys(), "idempotent_request", &request.id)?;
        let found = found.filter(|found| self.now_ms() < found.created_at + REQUEST_KEPT_MS);
        let Some(found) = found else { return Ok(Known::Nothing) };
        let conflict =
            |message: &str| Err(ApiError::field(Code::Conflict, "Idempotency-Key", message));
        if found.fingerprint != request.fingerprint {
            return conflict("this key was used for another request");
        }
        let Some(answer) = found.answer else {
            return conflict("the request was carried out, but its answer is lost");
        };
        open(&answer, request).map(Known::Answer)
    }

    /// Keeps the answer of a request.
    pub fn keep_answer(&self, request: &NamedRequest, answer: &[u8]) -> Result<()> {
        let mut nonce = [0; NONCE_LEN];
        self.rng.fill(&mut nonce);
        let mut sealed = answer.to_vec();
        let failed = |_| ApiError::internal("an answer cannot be encrypted");
        request
            .cipher()?
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::empty(),
                &mut sealed,
            )
            .map_err(failed)?;
        let answer = Some(secret::hex(&[&nonce[..], &sealed].concat()));
        self.engine.transact(|txn| {
            let record = self.record(request, answer);
            global_put(txn, "idempotent_request", &request.id, &record)
        })
    }

    /// Marks within its transaction that the request under way was carried out.
    pub fn mark_request(&self, txn: &mut inlay_engine::Txn) -> Result<()> {
        let Some(request) = self.named.as_deref() else { return Ok(()) };
        let record = self.record(request, None);
        global_put(txn, "idempotent_request", &request.id, &record)
    }

    fn record(&self, request: &NamedRequest, answer: Option<String>) -> IdempotentRequest {
        IdempotentRequest {
            org: request.org.clone(),
            fingerprint: request.fingerprint.clone(),
            created_at: self.now_ms(),
            answer,
        }
    }
}

fn open(answer: &str, request: &NamedRequest) -> Result<Vec<u8>> {
    let unreadable = || ApiError::internal("a kept answer is unreadable");
    let mut bytes = secret::unhex(answer).ok_or_else(unreadable)?;
    let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN).ok_or_else(unreadable)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| unreadable())?;
    let plain = request.cipher()?.open_in_place(nonce, Aad::empty(), sealed);
    plain.map(|plain| plain.to_vec()).map_err(|_| unreadable())
}
