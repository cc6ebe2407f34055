//! Which id runs are merged, and which are of no use any more.

use std::collections::BTreeMap;

use super::{CompactionLimits, magnitude};

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

/// Chooses what to do about id runs. Generations before `current` get no more ids and are merged as
/// far as they can be.
pub fn choose_ids(
    runs: &[RunFacts],
    limits: &CompactionLimits,
    first_needed: Option<u32>,
    current: u32,
) -> IdChoice {
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

    #[test]
    fn ids_are_merged_within_their_week() {
        let run = |n: u128, generation, count| RunFacts {
            uuid: uuid::Uuid::from_u128(n),
            generation,
            count,
        };
        let limits = CompactionLimits::default();
        let mut runs: Vec<RunFacts> = (0..7).map(|n| run(n, 5, 1_000)).collect();
        assert_eq!(choose_ids(&runs, &limits, None, 5), IdChoice::Nothing);
        runs.push(run(7, 5, 1_100));
        let all: Vec<_> = runs.iter().map(|run| run.uuid).collect();
        assert_eq!(choose_ids(&runs, &limits, None, 5), IdChoice::Merge(all));
        // A past week is merged although its runs are few.
        let two = [run(1, 4, 10), run(2, 4, 900_000)];
        assert!(matches!(choose_ids(&two, &limits, None, 5), IdChoice::Merge(_)));
        let full = [run(1, 4, 3_000_000), run(2, 4, 3_000_000)];
        assert_eq!(choose_ids(&full, &limits, None, 5), IdChoice::Nothing);
        let gone = IdChoice::Drop(vec![uuid::Uuid::from_u128(1)]);
        assert_eq!(choose_ids(&[run(1, 4, 10), run(2, 5, 10)], &limits, Some(5), 5), gone);
    }
}
