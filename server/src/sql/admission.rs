//! Admission of statements: how many run at the same time, and how much memory answers take that clients have not read yet.
//!
//! No organisation keeps the others out: its second statement runs only while a slot stays free for them, and the bytes of its
//! unread answers are limited.
//!
//! ```text
//! 4 slots     a 1st   a 2nd   a 3rd          b 1st   b 2nd             c 1st   d 1st
//!             runs    runs    429            runs    503               runs    503, or the slot that becomes free in time
//!                             2 of a run             one stays free            none is free
//!
//! unread answers of a: 17 MiB, 17 MiB; one byte more     429 "earlier answers have not been read yet; read them, then retry"
//! 64 MiB of all; one byte more of c                      503 "the server is busy; retry soon"
//! ```

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::{
    base::permit_pools::PoolCounts,
    error::{ApiError, Code, Result},
};

/// Statements of an organisation at once; the second one runs only while a slot stays free for others.
const OF_ORG: usize = 2;
/// Bytes of answers that wait to be read, in all and of one organisation. An answer has 16 MiB at most, and a head: two of one fit.
const ANSWERS_BYTES: usize = 64 << 20;
const ANSWERS_BYTES_OF_ORG: usize = 34 << 20;

/// Limits of all organisations together.
pub struct StatementAdmission {
    at_once: usize,
    in_use: Mutex<Usages>,
    freed: Notify,
    /// Statements that got no permit in time.
    refused: AtomicU64,
}

#[derive(Default)]
struct Usages {
    all: Usage,
    /// By organisation, of those with any.
    of_org: HashMap<String, Usage>,
}

/// Running statements, and bytes of unread answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    statements: usize,
    bytes: usize,
}

/// What a statement or an answer of an organisation has in use, until it is dropped.
///
/// A running statement has one with `statements` 1, an unread answer one with its `bytes`; both count against the same organisation.
pub struct StatementPermit {
    admission: Arc<StatementAdmission>,
    org: String,
    usage: Usage,
}

impl StatementAdmission {
    /// Limits with so many statements at the same time.
    pub fn new(at_once: usize) -> Self {
        Self { at_once, in_use: Mutex::default(), freed: Notify::new(), refused: AtomicU64::new(0) }
    }

    /// A permit to run a statement of an organisation; waits for it until `deadline`.
    ///
    /// Errors: 429 while it has as many as it may have, 503 while all slots are in use.
    pub async fn acquire_statement(
        self: &Arc<Self>,
        org: &str,
        deadline: Instant,
    ) -> Result<StatementPermit> {
        self.take(org, Usage { statements: 1, bytes: 0 }, deadline).await.map_err(|own| match own {
            true => {
                let message = format!("{OF_ORG} statements run already; retry when one has ended");
                ApiError::new(Code::RateLimited, message)
            }
            false => ApiError::new(Code::Overloaded, "the server is busy; retry soon"),
        })
    }

    /// Memory for an answer until it has been read, waited for until `deadline`.
    ///
    /// Errors: 429 when the organisation's unread answers are at their limit, 503 when those of all organisations are.
    pub async fn acquire_memory(
        self: &Arc<Self>,
        org: &str,
        bytes: usize,
        deadline: Instant,
    ) -> Result<StatementPermit> {
        self.take(org, Usage { statements: 0, bytes }, deadline).await.map_err(|own| match own {
            true => {
                let message = "earlier answers have not been read yet; read them, then retry";
                ApiError::new(Code::RateLimited, message)
            }
            false => ApiError::new(Code::Overloaded, "the server is busy; retry soon"),
        })
    }

    /// How many statements may run, and how many do.
    pub fn counts(&self) -> PoolCounts {
        let in_use = self.in_use.lock().all.statements;
        let refused = self.refused.load(Ordering::Relaxed);
        PoolCounts { name: "statements", all: self.at_once, in_use, refused }
    }

    /// Waits until there is room. The error says whether the organisation itself has too much.
    ///
    /// Those who wait are all woken by a release, and the first that fits goes on: there is no queue, since deadlines are short.
    async fn take(
        self: &Arc<Self>,
        org: &str,
        usage: Usage,
        deadline: Instant,
    ) -> std::result::Result<StatementPermit, bool> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Registered before the check, so that a release in between is not lost.
            freed.as_mut().enable();
            let refused = match self.in_use.lock().add(org, usage, self.at_once) {
                Ok(()) => {
                    return Ok(StatementPermit {
                        admission: Arc::clone(self),
                        org: org.to_owned(),
                        usage,
                    });
                }
                Err(refused) => refused,
            };
            if tokio::time::timeout_at(deadline, freed).await.is_err() {
                self.refused.fetch_add(usage.statements as u64, Ordering::Relaxed);
                return Err(refused);
            }
        }
    }
}

impl Usages {
    /// Adds to what is in use if there is room. `Err(true)` where the organisation itself has too much, `Err(false)` where all have.
    fn add(&mut self, org: &str, usage: Usage, at_once: usize) -> std::result::Result<(), bool> {
        let own = self.of_org.get(org).copied().unwrap_or_default();
        let has_own_room = own.statements + usage.statements <= OF_ORG
            && own.bytes + usage.bytes <= ANSWERS_BYTES_OF_ORG;
        if !has_own_room {
            return Err(true);
        }
        let sum = self.all.plus(usage);
        // An organisation that already runs a statement may not take the last free slot.
        let kept_free = usize::from(usage.statements > 0 && own.statements > 0);
        if sum.statements + kept_free > at_once || sum.bytes > ANSWERS_BYTES {
            return Err(false);
        }
        self.all = sum;
        self.of_org.insert(org.to_owned(), own.plus(usage));
        Ok(())
    }

    /// Subtracts what was added; an organisation that has nothing in use is forgotten.
    fn give_back(&mut self, org: &str, usage: Usage) {
        self.all = self.all.minus(usage);
        if let Some(own) = self.of_org.get_mut(org) {
            *own = own.minus(usage);
            if *own == Usage::default() {
                self.of_org.remove(org);
            }
        }
    }
}

impl Usage {
    fn plus(self, other: Self) -> Self {
        Self { statements: self.statements + other.statements, bytes: self.bytes + other.bytes }
    }

    fn minus(self, other: Self) -> Self {
        Self { statements: self.statements - other.statements, bytes: self.bytes - other.bytes }
    }
}

impl Drop for StatementPermit {
    fn drop(&mut self) {
        self.admission.in_use.lock().give_back(&self.org, self.usage);
        self.admission.freed.notify_waiters();
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
    async fn an_organisation_without_a_statement_gets_a_permit() {
        let admission = Arc::new(StatementAdmission::new(4));
        let code = |permit: Result<StatementPermit>| permit.map(drop).map_err(|error| error.code);
        let mut held = Vec::new();
        held.push(admission.acquire_statement("a", soon()).await.unwrap());
        held.push(admission.acquire_statement("a", soon()).await.unwrap());
        assert_eq!(code(admission.acquire_statement("a", soon()).await), Err(Code::RateLimited));
        held.push(admission.acquire_statement("b", soon()).await.unwrap());
        assert_eq!(
            code(admission.acquire_statement("b", soon()).await),
            Err(Code::Overloaded),
            "one stays free"
        );
        held.push(admission.acquire_statement("c", soon()).await.unwrap());
        assert_eq!(code(admission.acquire_statement("d", soon()).await), Err(Code::Overloaded));
        // Whoever waits gets what becomes free.
        let waiting = tokio::spawn({
            let admission = Arc::clone(&admission);
            async move {
                admission
                    .acquire_statement("d", Instant::now() + Duration::from_secs(10))
                    .await
                    .map(drop)
            }
        });
        tokio::task::yield_now().await;
        held.pop();
        waiting.await.unwrap().unwrap();
        held.clear();
        assert_eq!(admission.in_use.lock().all, Usage::default());
        assert!(admission.in_use.lock().of_org.is_empty());
    }

    #[tokio::test]
    async fn answers_that_nobody_reads_are_limited() {
        let admission = Arc::new(StatementAdmission::new(1));
        let code = |permit: Result<StatementPermit>| permit.map(drop).map_err(|error| error.code);
        let of = |org: &'static str, bytes| {
            let admission = Arc::clone(&admission);
            async move { admission.acquire_memory(org, bytes, soon()).await }
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
