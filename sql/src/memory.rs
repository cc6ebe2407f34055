//! Memory that the operators of a statement count: a part that each process has, and what it borrows from the server.
//!
//! Most statements need some megabytes, so the server does not set a gigabyte aside for each. An operator that needs more than
//! there is has the server asked for it, which lends what other statements have left:
//!
//! ```text
//! limit 256 MiB, used 250; the windows of 4 million rows need 384  →  asked for 378, lent 378, limit 634 MiB
//! ```

use std::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
};

use datafusion_common::{Result, resources_datafusion_err};
use datafusion_execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use parking_lot::Mutex;

/// Asked for at least, so that memory that grows in small steps is not asked for at each of them.
const STEP_BYTES: usize = 128 << 20;

/// Whoever lends memory: how many bytes of so many it has lent, all of them or none.
pub type Lender = Box<dyn FnMut(usize) -> usize + Send>;

/// The memory of one statement.
pub struct StatementMemory {
    used: AtomicUsize,
    limit: AtomicUsize,
    /// One operator asks at a time.
    lender: Mutex<Option<Lender>>,
}

impl StatementMemory {
    /// So many bytes, and nobody to borrow from.
    pub fn new(limit: usize) -> Self {
        let (used, limit) = (AtomicUsize::new(0), AtomicUsize::new(limit));
        Self { used, limit, lender: Mutex::default() }
    }

    /// From now on more is borrowed where it is needed.
    pub fn borrow_from(&self, lender: Lender) {
        *self.lender.lock() = Some(lender);
    }

    /// Takes bytes of those that there are; what is missing if there are too few.
    fn take(&self, bytes: usize) -> Result<(), usize> {
        let limit = self.limit.load(Ordering::Relaxed);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= limit)
        });
        taken.map(|_| ()).map_err(|used| used.saturating_add(bytes).saturating_sub(limit))
    }

    /// Whether so many bytes have been lent.
    fn borrow(lender: &mut Option<Lender>, missing: usize) -> usize {
        let Some(lender) = lender else { return 0 };
        let lent = lender(missing.max(STEP_BYTES));
        // What a step rounds up may be what there is not.
        if lent == 0 && missing < STEP_BYTES { lender(missing) } else { lent }
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

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if self.take(additional).is_ok() {
            return Ok(());
        }
        let mut lender = self.lender.lock();
        // Whoever asked before may have been lent enough for both.
        while let Err(missing) = self.take(additional) {
            let lent = Self::borrow(&mut lender, missing);
            if lent < missing {
                let name = reservation.consumer().name();
                return Err(resources_datafusion_err!("{name} needs {additional} bytes more"));
            }
            self.limit.fetch_add(lent, Ordering::Relaxed);
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
    fn memory_is_borrowed_in_steps_and_where_there_is_less_in_smaller_ones() {
        let memory = Arc::new(StatementMemory::new(100));
        let pool: Arc<dyn MemoryPool> = Arc::<StatementMemory>::clone(&memory);
        let reservation = MemoryConsumer::new("test").register(&pool);
        reservation.try_grow(100).unwrap();
        assert!(reservation.try_grow(1).is_err(), "nobody lends");
        let mut free = STEP_BYTES + 50;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&asked);
        memory.borrow_from(Box::new(move |bytes| {
            list.lock().push(bytes);
            let lent = if bytes <= free { bytes } else { 0 };
            free -= lent;
            lent
        }));
        for _ in 0..10 {
            reservation.try_grow(STEP_BYTES / 10).unwrap();
        }
        assert_eq!(*asked.lock(), [STEP_BYTES], "one step is enough for ten parts of it");
        let left = STEP_BYTES % 10;
        reservation.try_grow(left + 40).unwrap();
        assert_eq!(asked.lock()[1..], [STEP_BYTES, 40], "a whole step is more than there is");
        assert!(reservation.try_grow(11).is_err());
        assert_eq!(pool.reserved(), 100 + STEP_BYTES + 40, "what was refused is not counted");
        reservation.shrink(50);
        reservation.try_grow(50).unwrap();
        drop(reservation);
        assert_eq!(pool.reserved(), 0);
    }
}
