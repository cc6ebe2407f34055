//! Idempotency: a request that is sent again is answered again, and not carried out again.
//!
//! A client names a request by a key of its choice. The change and the mark that it was made are one
//! transaction; the answer is kept right after it. So a retry after a crash is either new or known.
//!
//! A request that changed nothing leaves nothing: it is carried out again, with the same outcome. Batches of
//! events leave nothing either: their events without an id get one that is made of the name, and count
//! once by it.
//!
//! Answers may hold secrets that are shown once, such as a new API key. They are kept encrypted, under a
//! key made of the client's credential and its idempotency key, of which the store holds only digests.
//!
//! ```text
//! POST /v1/api-keys  Idempotency-Key: one    201 {"key": "inlay_admin_…", …}
//! the same again                             201 {"key": "inlay_admin_…", …}    Idempotent-Replayed: true; also after a restart
//! the same with another body or path         409 {"field": "Idempotency-Key", "error": "this key was used for another request", …}
//! again, and the server was killed before
//! the answer was stored                      409 {…, "error": "the request was carried out, but its answer is lost"}
//! 24 h later                                 201, a second API key
//! ```

use aws_lc_rs::aead::{Aad, NONCE_LEN, Nonce};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use super::{
    context::App,
    idempotency_key::{KIND, NamedRequest, REQUEST_KEPT_MS},
};
use crate::{
    error::{ApiError, Code, Result},
    store::{IdempotentRequest, global_find, global_put},
};

/// Bytes of an answer that is stored, at most, after compression: an answer to a change is small, and the keyspace is in memory.
const KEPT_BYTES_MAX: usize = 128 << 10;
// What decompression may give: far above the 2 MiB that the middleware stores, and a bound for a record that is damaged.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Outcome of the look-up of a request that has an idempotency key.
#[derive(Debug, PartialEq, Eq)]
pub enum Known {
    /// It was not carried out, or longer than 24 hours ago: it is to be carried out.
    Nothing,
    /// It was carried out, and this is its answer: status, type and body, as the middleware wrote them.
    Answer(Vec<u8>),
}

impl App {
    /// What is known of a request. 409 when the name was used for another one, or when it was carried
    /// out and its answer is lost.
    pub fn known_request(&self, request: &NamedRequest) -> Result<Known> {
        let found: Option<IdempotentRequest> = global_find(&self.engine.keys(), KIND, &request.id)?;
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

    /// Stores the answer of a request that was carried out; one that is too long for it is not stored, and a retry is 409.
    pub fn keep_answer(&self, request: &NamedRequest, answer: &[u8]) -> Result<()> {
        let mut nonce = [0; NONCE_LEN];
        self.rng.fill(&mut nonce);
        let mut sealed = zstd::bulk::compress(answer, 0)
            .map_err(|error| ApiError::internal(format!("an answer does not compress: {error}")))?;
        if sealed.len() > KEPT_BYTES_MAX {
            return Ok(());
        }
        let failed = |_| ApiError::internal("an answer cannot be encrypted");
        request
            .cipher()?
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::empty(),
                &mut sealed,
            )
            .map_err(failed)?;
        let answer = Some(STANDARD_NO_PAD.encode([&nonce[..], &sealed].concat()));
        self.org_txn(&request.org, |txn| {
            // What was not carried out by this attempt has no answer of its own.
            let found = global_find::<IdempotentRequest>(txn.global(), KIND, &request.id)?;
            if found.is_none_or(|found| found.attempt != request.attempt) {
                return Ok(());
            }
            global_put(txn.global(), KIND, &request.id, &request.record(self.now_ms(), answer))
        })
    }
}

/// Base64 of `nonce (12) ‖ ciphertext ‖ tag (16)`.
///
/// Errors: internal, for a record that was damaged or changed: the tag does not fit then.
fn open(answer: &str, request: &NamedRequest) -> Result<Vec<u8>> {
    let unreadable = || ApiError::internal("a kept answer is unreadable");
    let mut bytes = STANDARD_NO_PAD.decode(answer).map_err(|_| unreadable())?;
    let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN).ok_or_else(unreadable)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| unreadable())?;
    let plain = request.cipher()?.open_in_place(nonce, Aad::empty(), sealed);
    let plain = plain.map_err(|_| unreadable())?;
    zstd::bulk::decompress(plain, ANSWER_BYTES_MAX).map_err(|_| unreadable())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn named(org: &str, fingerprint: &str, attempt: &str) -> NamedRequest {
        NamedRequest::new(org, "credential", "name", fingerprint.to_owned(), attempt.to_owned())
    }

    #[test]
    fn a_request_that_its_client_gave_up_on_is_not_carried_out_twice() {
        let app = App::in_memory();
        let made = app
            .register(
                "a@b.example",
                "correct horse battery",
                "A",
                "A",
                crate::app::Client::default(),
            )
            .unwrap();
        let org = made.org.id;
        let attempt =
            |name: &str| App { named: Some(Arc::new(named(&org, "body", name))), ..app.clone() };
        // The first is still at work when the second one comes: nobody knows of it yet.
        let (first, second) = (attempt("first"), attempt("second"));
        assert_eq!(second.known_request(&named(&org, "body", "second")).unwrap(), Known::Nothing);
        first.org_txn(&org, |_| Ok(())).unwrap();
        // What belongs to one request may take several transactions.
        first.org_txn(&org, |_| Ok(())).unwrap();
        let refused = second.org_txn(&org, |_| Ok(())).unwrap_err();
        assert_eq!(refused.code, Code::Conflict);
        // Carried out, but not answered yet.
        let known = second.known_request(&named(&org, "body", "second")).unwrap_err();
        assert_eq!(known.code, Code::Conflict);
        // What was refused has no answer to keep.
        app.keep_answer(&named(&org, "body", "second"), b"refused").unwrap();
        app.keep_answer(&named(&org, "body", "first"), b"done").unwrap();
        let answer = app.known_request(&named(&org, "body", "third")).unwrap();
        assert_eq!(answer, Known::Answer(b"done".to_vec()));
        let other = app.known_request(&named(&org, "other body", "third")).unwrap_err();
        assert_eq!(other.field.as_deref(), Some("Idempotency-Key"));
    }

    #[test]
    fn events_of_a_named_batch_are_known_by_name_and_place() {
        let one = named("o", "body", "first");
        assert_eq!(one.event_id(b"x", 0), named("o", "body", "second").event_id(b"x", 0));
        assert_ne!(one.event_id(b"x", 0), one.event_id(b"x", 1));
        assert_ne!(one.event_id(b"x", 0), one.event_id(b"y", 0));
        assert!(one.event_id(b"x", 999).len() <= 256);
    }
}
