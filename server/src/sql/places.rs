//! Places among the statements that run, and memory for answers that are read slowly.
//!
//! No organisation keeps the others out: its second statement runs only while a place stays free, and what it has
//! not read yet of its answers is limited.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::error::{ApiError, Code, Result};

/// Statements of an organisation at once.
const OF_ORG: usize = 2;
/// Bytes of answers that wait to be read, in all and of one organisation.
const ANSWERS_BYTES: usize = 64 << 20;
const ANSWERS_BYTES_OF_ORG: usize = 34 << 20;

/// Places of everybody.
pub struct Places {
    at_once: usize,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    all: Parts,
    /// Of organisations that have something.
    of_org: HashMap<String, Parts>,
}

/// Statements that run, and bytes that wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Parts {
    statements: usize,
    bytes: usize,
}

/// What an organisation has taken. Dropped, it is free again.
pub struct Place {
    places: Arc<Places>,
    org: String,
    parts: Parts,
}

impl Places {
    /// Places for so many statements at once.
    pub fn new(at_once: usize) -> Self {
        Self { at_once, taken: Mutex::default(), freed: Notify::new() }
    }

    /// A place to run a statement of an organisation, waited for until `deadline`.
    ///
    /// Errors: 429 while it has as many as it may have, 503 while all are taken.
    pub async fn run(self: &Arc<Self>, org: &str, deadline: Instant) -> Result<Place> {
        self.take(org, Parts { statements: 1, bytes: 0 }, deadline).await.map_err(|own| match own {
            true => {
                let message = format!("{OF_ORG} statements run already; retry when one has ended");
                ApiError::new(Code::RateLimited, message)
            }
            false => ApiError::new(Code::Overloaded, "the server is busy; retry soon"),
        })
    }

    /// Memory for an answer until it has been read, waited for until `deadline`.
    ///
    /// Errors: 429 while the organisation reads its other answers, 503 while everybody does.
    pub async fn hold(
        self: &Arc<Self>,
        org: &str,
        bytes: usize,
        deadline: Instant,
    ) -> Result<Place> {
        self.take(org, Parts { statements: 0, bytes }, deadline).await.map_err(|own| match own {
            true => {
                let message = "answers before this one were not read yet; read them, then retry";
                ApiError::new(Code::RateLimited, message)
            }
            false => ApiError::new(Code::Overloaded, "the server is busy; retry soon"),
        })
    }

    /// Takes parts when there is room for them. The error says whether the organisation itself has too much.
    async fn take(
        self: &Arc<Self>,
        org: &str,
        parts: Parts,
        deadline: Instant,
    ) -> std::result::Result<Place, bool> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // From now on nothing that becomes free is missed.
            freed.as_mut().enable();
            let refused = match self.taken.lock().add(org, parts, self.at_once) {
                Ok(()) => {
                    return Ok(Place { places: Arc::clone(self), org: org.to_owned(), parts });
                }
                Err(refused) => refused,
            };
            if tokio::time::timeout_at(deadline, freed).await.is_err() {
                return Err(refused);
            }
        }
    }
}

impl Taken {
    fn add(&mut self, org: &str, parts: Parts, at_once: usize) -> std::result::Result<(), bool> {
        let own = self.of_org.get(org).copied().unwrap_or_default();
        let has_own_room = own.statements + parts.statements <= OF_ORG
            && own.bytes + parts.bytes <= ANSWERS_BYTES_OF_ORG;
        if !has_own_room {
            return Err(true);
        }
        let sum = self.all.plus(parts);
        // Who has one already leaves one to the others.
        let kept_free = usize::from(parts.statements > 0 && own.statements > 0);
        if sum.statements + kept_free > at_once || sum.bytes > ANSWERS_BYTES {
            return Err(false);
        }
        self.all = sum;
        self.of_org.insert(org.to_owned(), own.plus(parts));
        Ok(())
    }

    fn give_back(&mut self, org: &str, parts: Parts) {
        self.all = self.all.minus(parts);
        if let Some(own) = self.of_org.get_mut(org) {
            *own = own.minus(parts);
            if *own == Parts::default() {
                self.of_org.remove(org);
            }
        }
    }
}

impl Parts {
    fn plus(self, other: Self) -> Self {
        Self { statements: self.statements + other.statements, bytes: self.bytes + other.bytes }
    }

    fn minus(self, other: Self) -> Self {
        Self { statements: self.statements - other.statements, bytes: self.bytes - other.bytes }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.lock().give_back(&self.org, self.parts);
        self.places.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[tokio::test]
    async fn who_has_none_finds_a_place() {
        let places = Arc::new(Places::new(4));
        let code = |taken: Result<Place>| taken.map(drop).map_err(|error| error.code);
        let mut held = Vec::new();
        held.push(places.run("a", soon()).await.unwrap());
        held.push(places.run("a", soon()).await.unwrap());
        assert_eq!(code(places.run("a", soon()).await), Err(Code::RateLimited));
        held.push(places.run("b", soon()).await.unwrap());
        assert_eq!(code(places.run("b", soon()).await), Err(Code::Overloaded), "one stays free");
        held.push(places.run("c", soon()).await.unwrap());
        assert_eq!(code(places.run("d", soon()).await), Err(Code::Overloaded));
        // Whoever waits gets what becomes free.
        let waiting = tokio::spawn({
            let places = Arc::clone(&places);
            async move { places.run("d", Instant::now() + Duration::from_secs(10)).await.map(drop) }
        });
        tokio::task::yield_now().await;
        held.pop();
        waiting.await.unwrap().unwrap();
        held.clear();
        assert_eq!(places.taken.lock().all, Parts::default());
        assert!(places.taken.lock().of_org.is_empty());
    }

    #[tokio::test]
    async fn answers_that_nobody_reads_are_limited() {
        let places = Arc::new(Places::new(1));
        let code = |taken: Result<Place>| taken.map(drop).map_err(|error| error.code);
        let of = |org: &'static str, bytes| {
            let places = Arc::clone(&places);
            async move { places.hold(org, bytes, soon()).await }
        };
        let first = of("a", 17 << 20).await.unwrap();
        let _second = of("a", 17 << 20).await.unwrap();
        assert_eq!(code(of("a", 1).await), Err(Code::RateLimited));
        let _other = of("b", 30 << 20).await.unwrap();
        assert_eq!(code(of("c", 1).await), Err(Code::Overloaded));
        drop(first);
        of("a", 1).await.unwrap();
    }
}
