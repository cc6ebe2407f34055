//! Idempotency keys of requests that are being carried out: the same request is not carried out twice at the same time.
//!
//! ```text
//! 0 ms   POST /v1/dashboards, Idempotency-Key: order-4711     runs
//! 5 ms   the same, from a client that lost its connection     409 the request with this key is under way, Retry-After: 1
//! 9 ms   the first is answered; its guard is dropped
//! 1 s    the same again                                       the stored answer, Idempotent-Replayed: true
//! ```
//!
//! One process serves a data directory, so a set in its memory is enough. After a crash nothing is under way.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use crate::error::{ApiError, Code, Result};

/// The keys of requests that are being carried out: ids that are made of credential and name, not the name that the client sent.
#[derive(Default)]
pub struct InFlight(Mutex<HashSet<String>>);

/// Releases the key of a request when it is dropped.
pub struct InFlightGuard {
    of: Arc<InFlight>,
    id: String,
}

impl InFlight {
    /// Registers the key of a request, until the guard is dropped. 409 while another request has it.
    pub fn enter(self: &Arc<Self>, id: &str) -> Result<InFlightGuard> {
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        if is_new {
            return Ok(InFlightGuard { of: Arc::clone(self), id: id.to_owned() });
        }
        let message = "the request with this key is under way";
        Err(ApiError {
            retry_after: Some(1),
            ..ApiError::field(Code::Conflict, "Idempotency-Key", message)
        })
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.of.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
