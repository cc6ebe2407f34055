//! Which id runs are merged, and which are of no use any more.

use std::collections::BTreeMap;

use super::{CompactionLimits, created_ms, magnitude};
use crate::ids::generation_at;

/// What the policy knows of an id run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunFacts {
    /// Name of the run's file.
    pub uuid: uuid::Uuid,
    /// Week since 1970 in which the ids arrived.
    pub generation: u32,
    /// Number of ids in the run.
    pub count: u64,
}

/// The next thing to do about id runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdChoice {
    /// Nothing is worth it.
    Nothing,
    /// Runs whose events have all expired go.
    Drop(Vec<uuid::Uuid>),
    /// Runs of one generation become one.
    Merge(Vec<uuid::Uuid>),
}

/// Chooses what to do about id runs. Generations before that of `now_ms` get no more ids and are merged as far as they
/// can be. In one that has been quiet, as many of the smaller runs as at least double the largest of them are merged:
/// all ids together are written about twice.
pub fn choose_ids(
    runs: &[RunFacts],
    limits: &CompactionLimits,
    first_needed: Option<u32>,
    now_ms: i64,
) -> IdChoice {
    let current = generation_at(now_ms);
    let expired: Vec<uuid::Uuid> = runs
        .iter()
        .filter(|run| first_needed.is_some_and(|first| run.generation < first))
        .map(|run| run.uuid)
        .collect();
    if !expired.is_empty() {
        return IdChoice::Drop(expired);
    }
    let mut generations: BTreeMap<u32, Vec<RunFacts>> = BTreeMap::new();
    for run in runs {
        generations.entry(run.generation).or_default().push(*run);
    }
    for (generation, mut runs) in generations {
        runs.sort_by_key(|run| (run.count, run.uuid));
        if generation < current {
            let chosen = fill(&runs, limits);
            if chosen.len() > 1 {
                return IdChoice::Merge(chosen);
            }
        }
        let newest_ms = runs.iter().map(|run| created_ms(run.uuid)).max().unwrap_or(now_ms);
        if newest_ms.saturating_add(limits.quiet_ms) <= now_ms {
            let mut chosen = fill(&runs, limits);
            let all = |count: usize| runs.iter().take(count).map(|run| run.count).sum::<u64>();
            let doubles = |count: &usize| {
                let largest = count.checked_sub(1).and_then(|at| runs.get(at));
                largest.is_some_and(|run| all(*count) >= run.count.saturating_mul(2))
            };
            if let Some(count) = (2..=chosen.len()).rev().find(doubles) {
                chosen.truncate(count);
                return IdChoice::Merge(chosen);
            }
        }
        let mut tiers: BTreeMap<u32, Vec<RunFacts>> = BTreeMap::new();
        for run in runs {
            tiers.entry(magnitude(run.count, limits)).or_default().push(run);
        }
        for tier in tiers.values().filter(|tier| tier.len() >= limits.fan_in) {
            let chosen = fill(tier, limits);
            if chosen.len() > 1 {
                return IdChoice::Merge(chosen);
            }
        }
    }
    IdChoice::Nothing
}

/// As many runs, smallest first, as fit one run.
fn fill(runs: &[RunFacts], limits: &CompactionLimits) -> Vec<uuid::Uuid> {
    let mut total = 0;
    runs.iter()
        .take(limits.inputs_max)
        .take_while(|run| {
            total += run.count;
            total <= limits.run_ids_max
        })
        .map(|run| run.uuid)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK_MS: i64 = 7 * 24 * 3_600_000;
    /// An hour into week 5.
    const NOW_MS: i64 = 5 * WEEK_MS + 3_600_000;

    fn choose(runs: &[RunFacts], first_needed: Option<u32>) -> IdChoice {
        choose_ids(runs, &CompactionLimits::default(), first_needed, NOW_MS)
    }

    /// A run that was written some milliseconds before now.
    fn run_before(before_ms: i64, n: u8, generation: u32, count: u64) -> RunFacts {
        let at = (NOW_MS - before_ms) as u64;
        let mut chance = [0; 10];
        chance[9] = n;
        let uuid = uuid::Builder::from_unix_timestamp_millis(at, &chance).into_uuid();
        RunFacts { uuid, generation, count }
    }

    fn run(n: u8, generation: u32, count: u64) -> RunFacts {
        run_before(1_000, n, generation, count)
    }

    #[test]
    fn ids_are_merged_within_their_week() {
        let mut runs: Vec<RunFacts> = (0..7).map(|n| run(n, 5, 1_000)).collect();
        assert_eq!(choose(&runs, None), IdChoice::Nothing);
        runs.push(run(7, 5, 1_100));
        let all: Vec<_> = runs.iter().map(|run| run.uuid).collect();
        assert_eq!(choose(&runs, None), IdChoice::Merge(all));
        // A past week is merged although its runs are few.
        assert!(matches!(choose(&[run(1, 4, 10), run(2, 4, 900_000)], None), IdChoice::Merge(_)));
        let full = [run(1, 4, 3_000_000), run(2, 4, 3_000_000)];
        assert_eq!(choose(&full, None), IdChoice::Nothing);
        let gone = run(1, 4, 10);
        assert_eq!(choose(&[gone, run(2, 5, 10)], Some(5)), IdChoice::Drop(vec![gone.uuid]));
    }

    #[test]
    fn a_quiet_week_becomes_few_runs() {
        let quiet = |counts: &[u64]| -> Vec<RunFacts> {
            (0..).zip(counts).map(|(n, &count)| run_before(3_600_000, n, 5, count)).collect()
        };
        let imported = quiet(&[60_000, 290_000, 290_000, 290_000]);
        let all = imported.iter().map(|run| run.uuid).collect();
        assert_eq!(choose(&imported, None), IdChoice::Merge(all));
        // One more run since: ids still come.
        let more = [&imported[..], &[run(9, 5, 1_000)]].concat();
        assert_eq!(choose(&more, None), IdChoice::Nothing);
        // A few ids beside many are not worth writing the many again.
        assert_eq!(choose(&quiet(&[40_000, 1_000_000]), None), IdChoice::Nothing);
        let few = quiet(&[1_000, 1_000, 1_000_000]);
        assert_eq!(choose(&few, None), IdChoice::Merge(vec![few[0].uuid, few[1].uuid]));
        // What does not fit one run stays.
        assert_eq!(choose(&quiet(&[2_500_000, 2_500_000]), None), IdChoice::Nothing);
    }
}
