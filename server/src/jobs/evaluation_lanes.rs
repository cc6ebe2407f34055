//! Places at which alert rules are looked at, so that slow ones delay slow ones only.
//!
//! A few rules are looked at at once. One that turns out to be slow moves to a place of its own when one is
//! free, and waits for such a place from then on, until it is quick again.

use std::{collections::HashSet, future::Future, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Semaphore, time::Instant};

/// Rules that are looked at at once.
const AT_ONCE: usize = 4;
/// Slow ones among them at once, with places of their own.
const SLOW_AT_ONCE: usize = 2;
/// Rules that turned out slow just now, at once.
const LATE_AT_ONCE: usize = 8;
/// A rule that takes longer is a slow one.
const SLOW: Duration = Duration::from_millis(250);

/// An organisation and a rule.
pub type Key = (String, String);

#[derive(Default)]
struct Known {
    /// Looked at now, or waiting for a place.
    under_way: HashSet<Key>,
    /// Took long the last time.
    slow: HashSet<Key>,
}

/// The places, and what is known of the rules that come to them.
pub struct Places {
    known: Mutex<Known>,
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    late: Arc<Semaphore>,
}

impl Places {
    /// All places, free.
    pub fn new() -> Arc<Self> {
        let places = |count| Arc::new(Semaphore::new(count));
        Arc::new(Self {
            known: Mutex::default(),
            quick: places(AT_ONCE),
            slow: places(SLOW_AT_ONCE),
            late: places(LATE_AT_ONCE),
        })
    }

    /// Looks at a rule when it has a place. A rule that is not done with its last turn misses this one:
    /// nothing then.
    pub async fn look<T>(&self, key: Key, looking: impl Future<Output = T>) -> Option<T> {
        let is_slow = {
            let mut known = self.known.lock();
            if !known.under_way.insert(key.clone()) {
                return None;
            }
            known.slow.contains(&key)
        };
        let places = if is_slow { &self.slow } else { &self.quick };
        let mut place = Arc::clone(places).acquire_owned().await;
        let began = Instant::now();
        let mut looking = std::pin::pin!(looking);
        let outcome = match tokio::time::timeout(SLOW, looking.as_mut()).await {
            Ok(outcome) => outcome,
            Err(_) => {
                if !is_slow && let Ok(late) = Arc::clone(&self.late).try_acquire_owned() {
                    place = Ok(late);
                }
                looking.await
            }
        };
        drop(place);
        let mut known = self.known.lock();
        known.under_way.remove(&key);
        if began.elapsed() > SLOW {
            known.slow.insert(key);
        } else {
            known.slow.remove(&key);
        }
        Some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks a minute long, each second, at so many quick rules and slow ones; how late the latest quick
    /// one was, and how many looks at slow ones were done.
    async fn minute(places: &Arc<Places>, quick: usize, slow: usize) -> (Duration, usize) {
        let latest = Arc::new(Mutex::new((Duration::ZERO, 0)));
        let mut looks = Vec::new();
        for second in 0..60 {
            for n in (0..quick).filter(|n| n % 60 == second) {
                let (places, latest) = (Arc::clone(places), Arc::clone(&latest));
                looks.push(tokio::spawn(async move {
                    let due = Instant::now();
                    let look = tokio::time::sleep(Duration::from_millis(1));
                    assert!(places.look(("org".to_owned(), n.to_string()), look).await.is_some());
                    let mut latest = latest.lock();
                    latest.0 = latest.0.max(due.elapsed());
                }));
            }
            for n in (0..slow).filter(|n| n % 60 == second) {
                let (places, latest) = (Arc::clone(places), Arc::clone(&latest));
                looks.push(tokio::spawn(async move {
                    let look = tokio::time::sleep(Duration::from_secs(5));
                    if places.look(("slow".to_owned(), n.to_string()), look).await.is_some() {
                        latest.lock().1 += 1;
                    }
                }));
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        for look in looks {
            look.await.unwrap();
        }
        let latest = latest.lock();
        *latest
    }

    #[tokio::test(start_paused = true)]
    async fn slow_rules_delay_no_quick_one() {
        let places = Places::new();
        let (alone, _) = minute(&places, 10_000, 0).await;
        // One slow rule a second, as yet unknown: they move on when they turn out slow.
        let (first, looked) = minute(&places, 10_000, 60).await;
        assert_eq!(looked, 60);
        assert!(first <= alone + SLOW, "{first:?} beside {alone:?}");
        // Once they are known, they wait for each other only. Two of five seconds fit into five.
        let (then, looked) = minute(&places, 10_000, 60).await;
        assert!(then <= alone, "{then:?} beside {alone:?}");
        assert!((24..=60).contains(&looked), "{looked}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rule_that_is_quick_again_has_a_quick_place() {
        let places = Places::new();
        let key = ("org".to_owned(), "1".to_owned());
        for (seconds, is_slow) in [(1, true), (0, false)] {
            places.look(key.clone(), tokio::time::sleep(Duration::from_secs(seconds))).await;
            assert_eq!(places.known.lock().slow.contains(&key), is_slow);
        }
        let still = places.look(key.clone(), tokio::time::sleep(Duration::from_secs(9)));
        let again = places.look(key.clone(), async {});
        assert_eq!(tokio::join!(still, again), (Some(()), None));
    }
}
