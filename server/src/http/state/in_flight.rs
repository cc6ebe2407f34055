//! Idempotency keys of requests that are being carried out: the same request is not carried out twice at the same time.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use crate::error::{ApiError, Code, Result};

/// The keys of requests that are being carried out.
#[derive(Default)]
pub struct InFlight(Mutex<HashSet<String>>);

/// Releases the key of a request when it is dropped.
pub struct InFlightGuard {
    of: Arc<InFlight>,
    id: String,
}

impl InFlight {
    /// Registers the key of a request. 409 while another request has it.
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
