//! Named requests that are under way: the same one is not carried out twice at once.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use crate::error::{ApiError, Code, Result};

/// Requests with a name that are under way.
#[derive(Default)]
pub struct UnderWay(Mutex<HashSet<String>>);

/// A request's place among them.
pub struct Place {
    of: Arc<UnderWay>,
    id: String,
}

impl UnderWay {
    /// Takes the place of a request. 409 while it is taken.
    pub fn enter(self: &Arc<Self>, id: &str) -> Result<Place> {
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        if is_new {
            return Ok(Place { of: Arc::clone(self), id: id.to_owned() });
        }
        let message = "the request with this key is under way";
        Err(ApiError {
            retry_after: Some(1),
            ..ApiError::field(Code::Conflict, "Idempotency-Key", message)
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
