//! Memory that statements get beyond what the process of each begins with.
//!
//! One that sorts ten million rows takes a gigabyte while others need some megabytes each. A grant comes back when the
//! statement has ended, however it did. No organisation gets all: its statements have three quarters of the pool together.
//!
//! ```text
//! a pool of 100                          free    granted to
//! a grows by 40, by 30                   30      a 70
//! a second statement of a by 6           30      none: 76 is more than three quarters    503 and not 400: it was short
//! b by 31                                30      none: more than is free                 short, too
//! b by 30                                0       b 30
//! the first statement of a ends          70
//! any statement by 76                            none: nobody may have so much           400: it is not short
//! ```

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

/// Memory that is granted.
pub struct MemoryPool {
    max_of_org: u64,
    state: Mutex<State>,
}

struct State {
    free: u64,
    /// What organisations have got, of those that have some.
    of_org: HashMap<String, u64>,
}

impl MemoryPool {
    /// A pool of so many bytes.
    pub fn new(bytes: u64) -> Self {
        let state = State { free: bytes, of_org: HashMap::new() };
        Self { max_of_org: bytes / 4 * 3, state: Mutex::new(state) }
    }

    /// The most that statements of one organisation have at a time.
    ///
    /// It is also the most that a worker can be granted, by which the template bounds its address space.
    pub fn max_of_org(&self) -> u64 {
        self.max_of_org
    }
}

/// What a statement has got. Dropped, it is free again.
///
/// Grows while the statement runs, by what its worker asks for; it never shrinks.
pub struct MemoryGrant {
    of: Arc<MemoryPool>,
    org: String,
    bytes: u64,
    /// Whether it was refused memory that other statements have.
    was_short: bool,
    /// The request that was refused last, and whether it was short before.
    refused: Option<(u64, bool)>,
}

impl MemoryGrant {
    /// Of no memory yet, to a statement of an organisation.
    pub fn none(of: &Arc<MemoryPool>, org: &str) -> Self {
        Self { of: Arc::clone(of), org: org.to_owned(), bytes: 0, was_short: false, refused: None }
    }

    /// All of these bytes or none, which the number of them that it has got says.
    ///
    /// `bytes` on success, 0 otherwise: this is the number that the worker is sent.
    pub fn grow(&mut self, bytes: u64) -> u64 {
        let mut state = self.of.state.lock();
        let of_org = state.of_org.get(&self.org).copied().unwrap_or_default();
        let sum = of_org.saturating_add(bytes);
        if bytes > state.free || sum > self.of.max_of_org {
            self.refused = Some((bytes, self.was_short));
            // Alone, the statement would have got it: others are the reason.
            self.was_short |= self.bytes.saturating_add(bytes) <= self.of.max_of_org;
            return 0;
        }
        state.free -= bytes;
        state.of_org.insert(self.org.clone(), sum);
        self.bytes += bytes;
        // A worker asks for half of what was refused if it can do without the rest.
        if let Some((refused, was_short)) = self.refused.take()
            && refused / 2 == bytes
        {
            self.was_short = was_short;
        }
        bytes
    }

    /// Whether it was refused memory that it would have got alone.
    ///
    /// A refusal for want of memory is 503 then, and 400 `query_too_large` otherwise.
    pub fn was_short(&self) -> bool {
        self.was_short
    }
}

impl Drop for MemoryGrant {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut state = self.of.state.lock();
        state.free += self.bytes;
        if let Some(of_org) = state.of_org.get_mut(&self.org) {
            *of_org -= self.bytes;
            if *of_org == 0 {
                state.of_org.remove(&self.org);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_lacks_what_others_have_until_they_have_ended() {
        let pool = Arc::new(MemoryPool::new(100));
        let of = |org| MemoryGrant::none(&pool, org);
        let (mut first, mut second, mut other) = (of("a"), of("a"), of("b"));
        assert_eq!(
            (first.grow(76), first.was_short()),
            (0, false),
            "more than there is for anybody"
        );
        assert_eq!((first.grow(40), first.grow(30)), (40, 30));
        assert_eq!(
            (second.grow(6), second.was_short()),
            (0, true),
            "its organisation has its part"
        );
        assert_eq!((other.grow(31), other.was_short()), (0, true));
        assert_eq!(other.grow(30), 30, "something is left for others");
        drop(first);
        assert_eq!(second.grow(70), 70);
        drop((second, other));
        let (mut half, mut whole) = (of("a"), of("b"));
        assert_eq!((whole.grow(60), half.grow(50), half.was_short()), (60, 0, true));
        assert_eq!((half.grow(25), half.was_short()), (25, false), "it does with half");
        assert_eq!((half.grow(30), half.grow(5), half.was_short()), (0, 5, true), "it lacks 25");
        drop((half, whole));
        assert_eq!(pool.state.lock().free, 100);
        assert!(pool.state.lock().of_org.is_empty());
        assert_eq!(of("a").grow(u64::MAX), 0);
    }
}
