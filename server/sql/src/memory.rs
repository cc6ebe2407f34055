//! Memory that the operators of a statement count: a part that each process begins with, and what the server grants.
//!
//! Most statements need some megabytes, so the server does not set a gigabyte aside for each. Where an operator needs more than
//! there is, the server is asked, which grants what other statements have left:
//!
//! ```text
//! limit 256 MiB, used 250; the windows of 4 million rows need 384  →  asked for 378, granted 378, limit 634 MiB
//! ```
//!
//! And where the server has less, what its operators do:
//!
//! ```text
//! ask 378 MiB      refused: other statements have the memory        the operator fails: "the statement takes more memory than there is for it"
//! ask 20 MiB       lacks 20, so 128 are asked for                    granted: smaller requests are answered without asking
//! ask 20 MiB       128 are refused, then 20 are asked for            granted, or the operator fails
//! ask 200 MiB      200 were refused before                           fails at once
//! ```
//!
//! An operator that can do with less, such as a group by that hands on partial groups, does so when it fails here.

use std::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
};

use datafusion_common::{Result, resources_datafusion_err};
use datafusion_execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use parking_lot::Mutex;

/// Asked for at least, so that memory that grows in small steps is not asked for at each of them; and where there is less.
/// 128 MiB, then 16 MiB.
const STEPS_BYTES: [usize; 2] = [128 << 20, 16 << 20];

/// Asks whoever grants memory for so many bytes: how many of them were granted, all or none.
/// In a worker it asks the server over the pipe (`worker.rs`), and blocks until the server has answered.
pub type AskForMemory = Box<dyn FnMut(usize) -> usize + Send>;

/// The memory of one statement.
///
/// `used` may exceed `limit`: operators that cannot fail count what they took ([`grow`](MemoryPool::grow)).
pub struct StatementMemory {
    /// Bytes that operators have taken and not given back.
    used: AtomicUsize,
    /// Bytes that they may take: those of the beginning and what was granted since. It never falls.
    limit: AtomicUsize,
    /// One operator asks at a time.
    asking: Mutex<Option<Asking>>,
}

struct Asking {
    /// Sends a request for bytes, and returns how many were granted.
    ask: AskForMemory,
    /// The least that was refused. As much is not asked for again: operators come back for memory that there is not, some of them at each batch.
    refused: usize,
}

impl StatementMemory {
    /// So many bytes, and nobody to ask for more.
    /// As the template's session has it, whose statements are over no rows.
    pub fn new(limit: usize) -> Self {
        let (used, limit) = (AtomicUsize::new(0), AtomicUsize::new(limit));
        Self { used, limit, asking: Mutex::default() }
    }

    /// From now on more is asked for where it is needed.
    pub fn ask_by(&self, ask: AskForMemory) {
        *self.asking.lock() = Some(Asking { ask, refused: usize::MAX });
    }

    /// Takes bytes of those that there are; what is missing if there are too few.
    /// Of 256 MiB with 250 taken, 384 more lack 378: `Err(378 MiB)`, and none is taken.
    fn take(&self, bytes: usize) -> Result<(), usize> {
        let limit = self.limit.load(Ordering::Relaxed);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= limit)
        });
        taken.map(|_| ()).map_err(|used| used.saturating_add(bytes).saturating_sub(limit))
    }
}

impl Asking {
    /// What was granted to one who lacks so many bytes: as many or more, or none.
    ///
    /// The steps in turn: at least 128 MiB, then at least 16 MiB. A request as large as one that was refused is not sent.
    fn grow(&mut self, missing: usize) -> usize {
        for step in STEPS_BYTES {
            let bytes = missing.max(step);
            if bytes < self.refused {
                match (self.ask)(bytes) {
                    0 => self.refused = bytes,
                    granted => return granted,
                }
            }
        }
        0
    }
}

impl MemoryPool for StatementMemory {
    fn name(&self) -> &str {
        "statement"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::Relaxed);
    }

    /// Takes bytes, and asks for more where there are too few.
    ///
    /// Errors: `ResourcesExhausted`, which the operator may answer with less work at a time, and which else ends the statement as `TooLarge`.
    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if self.take(additional).is_ok() {
            return Ok(());
        }
        let mut asking = self.asking.lock();
        // Whoever asked before may have got enough for both.
        while let Err(missing) = self.take(additional) {
            let granted = asking.as_mut().map_or(0, |asking| asking.grow(missing));
            if granted < missing {
                let name = reservation.consumer().name();
                return Err(resources_datafusion_err!("{name} needs {additional} bytes more"));
            }
            self.limit.fetch_add(granted, Ordering::Relaxed);
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for StatementMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatementMemory").field("used", &self.used).finish_non_exhaustive()
    }
}

impl fmt::Display for StatementMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (used, limit) = (&self.used, self.limit.load(Ordering::Relaxed));
        write!(f, "{} of {limit} bytes", used.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion_execution::memory_pool::MemoryConsumer;

    use super::*;

    #[test]
    fn memory_is_asked_for_in_steps_and_where_there_is_less_in_smaller_ones() {
        let [step, small] = STEPS_BYTES;
        let memory = Arc::new(StatementMemory::new(100));
        let pool: Arc<dyn MemoryPool> = Arc::<StatementMemory>::clone(&memory);
        let reservation = MemoryConsumer::new("test").register(&pool);
        reservation.try_grow(100).unwrap();
        assert!(reservation.try_grow(1).is_err(), "nobody grants any");
        let mut free = step + small + 50;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&asked);
        memory.ask_by(Box::new(move |bytes| {
            list.lock().push(bytes);
            let granted = if bytes <= free { bytes } else { 0 };
            free -= granted;
            granted
        }));
        for _ in 0..8 {
            reservation.try_grow(step / 8).unwrap();
        }
        assert_eq!(*asked.lock(), [step], "one step is enough for eight parts of it");
        reservation.try_grow(40).unwrap();
        assert_eq!(asked.lock()[1..], [step, small], "a whole step is more than there is");
        for _ in 0..3 {
            assert!(reservation.try_grow(small).is_err());
        }
        assert_eq!(asked.lock().len(), 4, "what was refused is not asked for again");
        assert_eq!(pool.reserved(), 140 + step, "what was refused is not counted");
        reservation.shrink(50);
        reservation.try_grow(50).unwrap();
        drop(reservation);
        assert_eq!(pool.reserved(), 0);
    }
}
