//! How long a namespace keeps its events: whole days, counted from midnight UTC.
//!
//! Expired rows disappear for every reader when the day turns. Their segments go when the
//! compaction comes to it, by a time that can be believed (`trusted_clock.rs`).

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::collections::BTreeMap;

use super::names::{RETENTION_PREFIX, is_dropped, namespace_key};
use crate::{
    base::{
        coding::{Cursor, Put},
        time::{DAY_MS, WEEK_MS},
    },
    event::Namespace,
    keyspace::{Tree, Txn},
};

/// Days beyond retention for which ids are still known: clocks differ, and a day is not over
/// everywhere at once.
const ID_GRACE_DAYS: i64 = 2;

/// What is kept how long, as of one instant.
pub struct Retention {
    now_ms: i64,
    default_days: Option<u32>,
    days: BTreeMap<u32, Option<u32>>,
}

impl Retention {
    /// Reads the rules of `tree`. `default_days` holds for namespaces without one; `None` keeps
    /// everything.
    pub fn of(tree: &Tree, default_days: Option<u32>, now_ms: i64) -> Self {
        let mut days = BTreeMap::new();
        for (key, value) in tree.scan(RETENTION_PREFIX, &[]) {
            let namespace = key.get(RETENTION_PREFIX.len()..).and_then(|rest| rest.try_into().ok());
            let namespace = namespace.map(u32::from_be_bytes);
            // The rule of a dropped namespace keeps nothing.
            if let Some(namespace) =
                namespace.filter(|&number| !is_dropped(tree, Namespace(number)))
            {
                days.insert(namespace, read_days(value));
            }
        }
        Self { now_ms, default_days, days }
    }

    fn days_of(&self, namespace: u32) -> Option<u32> {
        self.days.get(&namespace).copied().unwrap_or(self.default_days)
    }

    /// First day since 1970 that a namespace still has; `i64::MIN` when it keeps everything.
    pub fn first_day(&self, namespace: u32) -> i64 {
        self.days_of(namespace).map_or(i64::MIN, |days| first_day(days, self.now_ms))
    }

    /// Days that the namespace with the longest retention keeps; `None` when one keeps everything.
    pub fn longest_days(&self) -> Option<u32> {
        let rules = self.days.values().chain([&self.default_days]);
        rules.copied().collect::<Option<Vec<u32>>>()?.into_iter().max()
    }

    /// First generation of ids that is still needed; `None` when all are.
    pub fn first_generation(&self) -> Option<u32> {
        let longest = self.longest_days()?;
        let kept_ms = (i64::from(longest) + ID_GRACE_DAYS) * DAY_MS;
        let oldest_ms = self.now_ms.saturating_sub(kept_ms);
        u32::try_from(oldest_ms.div_euclid(WEEK_MS)).ok()
    }
}

fn first_day(days: u32, now_ms: i64) -> i64 {
    now_ms.div_euclid(DAY_MS) - i64::from(days)
}

fn read_days(value: &[u8]) -> Option<u32> {
    Cursor::new(value, "retention").u32().ok().filter(|&days| days != u32::MAX)
}

/// Sets how many days a namespace keeps; `None` keeps everything.
pub fn set(txn: &mut Txn, namespace: Namespace, days: Option<u32>) {
    let mut value = Vec::new();
    value.put_u32(days.unwrap_or(u32::MAX));
    txn.write_system(&namespace_key(RETENTION_PREFIX, namespace), Some(value));
}

/// First millisecond that readers of a namespace see: `i64::MAX` when it was dropped, `i64::MIN`
/// when it keeps everything.
pub fn horizon_ms(
    tree: &Tree,
    namespace: Namespace,
    default_days: Option<u32>,
    now_ms: i64,
) -> i64 {
    if is_dropped(tree, namespace) {
        return i64::MAX;
    }
    let own = tree.find(&namespace_key(RETENTION_PREFIX, namespace));
    let days = own.map_or(default_days, |value| read_days(value));
    days.map_or(i64::MIN, |days| first_day(days, now_ms).saturating_mul(DAY_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_days_expire_at_midnight() {
        let mut txn = Txn::new(Tree::default());
        set(&mut txn, Namespace(7), Some(2));
        set(&mut txn, Namespace(8), None);
        let (tree, _) = txn.finish();
        let noon = 10 * DAY_MS + DAY_MS / 2;
        assert_eq!(horizon_ms(&tree, Namespace(7), Some(30), noon), 8 * DAY_MS);
        assert_eq!(horizon_ms(&tree, Namespace(7), Some(30), 11 * DAY_MS), 9 * DAY_MS);
        assert_eq!(horizon_ms(&tree, Namespace(8), Some(30), noon), i64::MIN);
        assert_eq!(horizon_ms(&tree, Namespace(9), Some(5), noon), 5 * DAY_MS);
        assert_eq!(horizon_ms(&tree, Namespace(9), None, noon), i64::MIN);
        let rules = Retention::of(&tree, Some(30), noon);
        assert_eq!(rules.first_day(7), 8);
        assert_eq!(rules.first_day(8), i64::MIN);
        assert_eq!(rules.first_generation(), None, "namespace 8 keeps everything");
    }

    #[test]
    fn ids_outlive_their_events() {
        let now = 3_000 * DAY_MS;
        let rules = Retention::of(&Tree::default(), Some(30), now);
        let generation = i64::from(rules.first_generation().unwrap());
        assert!(generation * WEEK_MS <= now - 32 * DAY_MS);
    }
}
