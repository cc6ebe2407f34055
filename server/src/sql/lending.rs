//! Memory that statements borrow beyond what the process of each has.
//!
//! One that sorts ten million rows takes a gigabyte while others need some megabytes each. What is lent comes back when the
//! statement has ended, however it did.

use std::sync::Arc;

use parking_lot::Mutex;

/// Memory that is lent.
pub struct Lending {
    free: Mutex<u64>,
    /// The most that one statement has at a time, so that something is left for others.
    of_one: u64,
}

impl Lending {
    /// So many bytes, of which one statement has `of_one` at most.
    pub fn new(bytes: u64, of_one: u64) -> Self {
        Self { free: Mutex::new(bytes), of_one }
    }
}

/// What a statement has borrowed. Dropped, it is free again.
pub struct Borrowed {
    of: Arc<Lending>,
    bytes: u64,
}

impl Borrowed {
    /// Nothing yet.
    pub fn none(of: &Arc<Lending>) -> Self {
        Self { of: Arc::clone(of), bytes: 0 }
    }

    /// Borrows more: all of these bytes or none, which the number of them that it has got says.
    pub fn more(&mut self, bytes: u64) -> u64 {
        let mut free = self.of.free.lock();
        let sum = self.bytes.saturating_add(bytes);
        if bytes > *free || sum > self.of.of_one {
            return 0;
        }
        *free -= bytes;
        self.bytes = sum;
        bytes
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        *self.of.free.lock() += self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_statement_has_borrowed_another_one_lacks_until_it_has_ended() {
        let lending = Arc::new(Lending::new(100, 70));
        let (mut first, mut second) = (Borrowed::none(&lending), Borrowed::none(&lending));
        assert_eq!(first.more(71), 0, "something is left for others");
        assert_eq!((first.more(40), first.more(30), first.more(1)), (40, 30, 0));
        assert_eq!((second.more(31), second.more(30)), (0, 30));
        drop(first);
        assert_eq!(second.more(40), 40);
        drop(second);
        assert_eq!(*lending.free.lock(), 100);
        assert_eq!(Borrowed::none(&lending).more(u64::MAX), 0);
    }
}
