//! Counts of answered requests and of refused events, as `GET /metrics` shows them:
//!
//! ```text
//! inlay_http_requests_total{path="/v1/alerts/{alert_id}",method="GET",status="404"} 1
//! inlay_http_request_seconds_total{path="/v1/alerts/{alert_id}",method="GET",status="404"} 0.000040731
//! inlay_events_total{outcome="rejected"} 3
//! ```
//!
//! All requests to a path that no route has are counted as `(none)`: a scanner must not make a new row with each address.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Kind of an answered request: pattern of the path, method, status.
pub type Answered = (String, &'static str, u16);

/// Requests of one path, by method and status.
type OfPath = BTreeMap<(&'static str, u16), Taken>;

/// Number and total duration of requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// Number of answered requests.
    pub count: u64,
    /// Sum of their durations in seconds.
    pub seconds: f64,
}

/// Requests that were answered, by kind, and events that were refused one by one. Paths are patterns, so
/// that there are few.
#[derive(Default)]
pub struct Requests {
    answered: Mutex<BTreeMap<String, OfPath>>,
    rejected: AtomicU64,
}

impl Requests {
    /// Counts an answer. `path` is the pattern of the route, `seconds` the time until the answer could be sent.
    pub fn count(&self, path: &str, method: &'static str, status: u16, seconds: f64) {
        let mut all = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains_key(path) {
            all.insert(path.to_owned(), BTreeMap::new());
        }
        let Some(of_path) = all.get_mut(path) else { return };
        let taken = of_path.entry((method, status)).or_default();
        taken.count += 1;
        taken.seconds += seconds;
    }

    /// All counts so far, by kind of request.
    pub fn read(&self) -> BTreeMap<Answered, Taken> {
        let all = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let of_path = |(path, kinds): (&String, &BTreeMap<_, _>)| {
            let kind = |(&(method, status), &taken)| ((path.clone(), method, status), taken);
            kinds.iter().map(kind).collect::<Vec<_>>()
        };
        all.iter().flat_map(of_path).collect()
    }

    /// Counts events of a batch that were refused while others were taken.
    pub fn reject(&self, events: usize) {
        self.rejected.fetch_add(events as u64, Ordering::Relaxed);
    }

    /// Events that were refused so far.
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }
}
