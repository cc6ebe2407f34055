//! Concurrency limits for alert evaluation: slow rules have lanes of their own and hardly delay quick ones.
//!
//! ```text
//! quick lane   4 evaluations at the same time
//! slow lane    2, of rules that took more than 250 ms the last time
//! late lane    8, of rules that turn out to be slow while they have a permit of the quick lane, which they give back
//! ```
//!
//! ```text
//! rule 12 takes 5 s      first turn                                     next turns
//! 0 ms                   a permit of the quick lane                     a permit of the slow lane, waited for
//! 250 ms                 gives it back for one of the late lane
//! 5 s                    ends, and is known as slow                     ends; in 200 ms the next time: quick again
//! ```

use std::{collections::HashSet, future::Future, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::base::permit_pools::{PermitPool, PermitPools};

/// Evaluations of the quick lane at the same time.
const AT_ONCE: usize = 4;
/// Evaluations of the slow lane.
const SLOW_AT_ONCE: usize = 2;
/// Evaluations of the late lane.
const LATE_AT_ONCE: usize = 8;
/// A rule whose evaluation takes longer is slow.
const SLOW: Duration = Duration::from_millis(250);

/// An organisation and a rule.
pub type Key = (String, String);

#[derive(Default)]
struct RuleStates {
    /// Rules that are evaluated or wait for a permit: one that is due again meanwhile misses this turn.
    in_flight: HashSet<Key>,
    /// Rules whose last evaluation took longer than [`SLOW`].
    slow: HashSet<Key>,
}

/// The lanes, and what is known of the rules.
pub struct EvaluationLanes {
    states: Mutex<RuleStates>,
    quick: Arc<PermitPool>,
    slow: Arc<PermitPool>,
    late: Arc<PermitPool>,
}

impl EvaluationLanes {
    /// Lanes without evaluations.
    ///
    /// Their pools are `evaluations_quick`, `evaluations_slow` and `evaluations_late` of `inlay_permits`.
    pub fn new(pools: &PermitPools) -> Arc<Self> {
        Arc::new(Self {
            states: Mutex::default(),
            quick: pools.pool("evaluations_quick", AT_ONCE),
            slow: pools.pool("evaluations_slow", SLOW_AT_ONCE),
            late: pools.pool("evaluations_late", LATE_AT_ONCE),
        })
    }

    /// Evaluates a rule when it gets a permit of its lane. `None` where its last evaluation has not ended: it misses this turn.
    pub async fn evaluate<T>(&self, key: Key, evaluation: impl Future<Output = T>) -> Option<T> {
        let is_slow = {
            let mut states = self.states.lock();
            if !states.in_flight.insert(key.clone()) {
                return None;
            }
            states.slow.contains(&key)
        };
        let lanes = if is_slow { &self.slow } else { &self.quick };
        let mut permit = lanes.acquire_in_turn().await;
        let began = Instant::now();
        let mut evaluation = std::pin::pin!(evaluation);
        let outcome = match tokio::time::timeout(SLOW, evaluation.as_mut()).await {
            Ok(outcome) => outcome,
            Err(_) => {
                // Without a free permit of the late lane the rule stays in the quick one: so many slow rules at once delay the quick ones after all.
                if !is_slow && let Some(late) = self.late.acquire_if_free() {
                    permit = Some(late);
                }
                evaluation.await
            }
        };
        drop(permit);
        let mut states = self.states.lock();
        states.in_flight.remove(&key);
        if began.elapsed() > SLOW {
            states.slow.insert(key);
        } else {
            states.slow.remove(&key);
        }
        Some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates so many quick and slow rules once each within a minute. Returns the longest time a quick one took, waiting
    /// included, and the number of slow evaluations.
    async fn minute(lanes: &Arc<EvaluationLanes>, quick: usize, slow: usize) -> (Duration, usize) {
        let latest = Arc::new(Mutex::new((Duration::ZERO, 0)));
        let mut evaluations = Vec::new();
        for second in 0..60 {
            for n in (0..quick).filter(|n| n % 60 == second) {
                let (lanes, latest) = (Arc::clone(lanes), Arc::clone(&latest));
                evaluations.push(tokio::spawn(async move {
                    let due = Instant::now();
                    let evaluate = tokio::time::sleep(Duration::from_millis(1));
                    assert!(
                        lanes.evaluate(("org".to_owned(), n.to_string()), evaluate).await.is_some()
                    );
                    let mut latest = latest.lock();
                    latest.0 = latest.0.max(due.elapsed());
                }));
            }
            for n in (0..slow).filter(|n| n % 60 == second) {
                let (lanes, latest) = (Arc::clone(lanes), Arc::clone(&latest));
                evaluations.push(tokio::spawn(async move {
                    let evaluate = tokio::time::sleep(Duration::from_secs(5));
                    if lanes.evaluate(("slow".to_owned(), n.to_string()), evaluate).await.is_some()
                    {
                        latest.lock().1 += 1;
                    }
                }));
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        for evaluate in evaluations {
            evaluate.await.unwrap();
        }
        let latest = latest.lock();
        *latest
    }

    #[tokio::test(start_paused = true)]
    async fn slow_rules_delay_no_quick_one() {
        let lanes = EvaluationLanes::new(&PermitPools::default());
        let (alone, _) = minute(&lanes, 10_000, 0).await;
        // One slow rule a second, as yet unknown: they move on when they turn out slow.
        let (first, evaluated) = minute(&lanes, 10_000, 60).await;
        assert_eq!(evaluated, 60);
        assert!(first <= alone + SLOW, "{first:?} beside {alone:?}");
        // Once they are known to be slow, they wait for each other only. Two of five seconds fit into five.
        let (then, evaluated) = minute(&lanes, 10_000, 60).await;
        assert!(then <= alone, "{then:?} beside {alone:?}");
        assert!((24..=60).contains(&evaluated), "{evaluated}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rule_that_is_quick_again_has_a_quick_lane() {
        let lanes = EvaluationLanes::new(&PermitPools::default());
        let key = ("org".to_owned(), "1".to_owned());
        for (seconds, is_slow) in [(1, true), (0, false)] {
            lanes.evaluate(key.clone(), tokio::time::sleep(Duration::from_secs(seconds))).await;
            assert_eq!(lanes.states.lock().slow.contains(&key), is_slow);
        }
        let still = lanes.evaluate(key.clone(), tokio::time::sleep(Duration::from_secs(9)));
        let again = lanes.evaluate(key.clone(), async {});
        assert_eq!(tokio::join!(still, again), (Some(()), None));
    }
}
