//! What to merge next: a pure function of what is live, the time, and the limits.
//!
//! Fresh segments are merged and parted by day. Within a day, segments of similar size are merged, so
//! that a row is rewritten once for each eightfold. When a day is over and quiet it is *sealed*: one
//! last merge into segments of full size. Late events start the same in small; the day is sealed
//! again when they are worth it.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    base::time::DAY_MS,
    segment::{FRESH, MERGED, SEALED, Segment, Split},
};

use super::{retention::Retention, settled::EXPIRY_WAIT_MS};

/// When to merge what.
#[derive(Debug, Clone, Copy)]
pub struct CompactionLimits {
    /// Segments, or id runs, of similar size that are merged together.
    pub fan_in: usize,
    /// Inputs of one merge, at most; a seal takes all segments of its day.
    pub inputs_max: usize,
    /// Age at which a fresh segment with rows of a past day is merged although it is alone.
    pub settle_ms: i64,
    /// Time after its end at which a day can be sealed.
    pub seal_after_ms: i64,
    /// Time without new segments of a day after which it is quiet.
    pub quiet_ms: i64,
    /// A sealed day is sealed again when late rows are more than one in so many,
    pub reseal_one_in: u64,
    /// or when they have waited so long.
    pub reseal_after_ms: i64,
    /// Rows of a segment, at most.
    pub segment_rows_max: u32,
    /// Rows from which on a series of a segment has rollups: fewer are read as quickly.
    pub rollup_rows_min: u32,
    /// Ids of a run, at most: the filter is built in memory.
    pub run_ids_max: u64,
    /// Fresh segments at which writes are refused until some are merged.
    pub fresh_max: usize,
    /// How long the clock must stand by what it says before files are dropped for it.
    pub expiry_wait_ms: i64,
}

impl CompactionLimits {
    /// Everything is done as soon as it can be.
    pub fn without_waiting() -> Self {
        Self { settle_ms: 0, seal_after_ms: 0, quiet_ms: 0, expiry_wait_ms: 0, ..Self::default() }
    }
}

impl Default for CompactionLimits {
    fn default() -> Self {
        Self {
            fan_in: 8,
            inputs_max: 32,
            settle_ms: 3_600_000,
            seal_after_ms: 6 * 3_600_000,
            quiet_ms: 3_600_000,
            reseal_one_in: 50,
            reseal_after_ms: DAY_MS,
            segment_rows_max: 4_000_000,
            rollup_rows_min: 2_048,
            run_ids_max: 4_000_000,
            fresh_max: 96,
            expiry_wait_ms: EXPIRY_WAIT_MS,
        }
    }
}

/// What the policy knows of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Its name.
    pub uuid: uuid::Uuid,
    /// Its level.
    pub level: u8,
    /// Its rows.
    pub rows: u64,
    /// Its bytes.
    pub bytes: u64,
    /// When it was written.
    pub created_ms: i64,
    /// Its first day since 1970.
    pub day_first: i64,
    /// Its last day.
    pub day_last: i64,
    /// Namespaces with rows in it.
    pub namespaces: Arc<[u32]>,
}

impl SegmentFacts {
    /// The facts of a segment.
    pub fn of(segment: &Segment) -> Self {
        let meta = segment.meta();
        Self {
            uuid: meta.uuid,
            level: meta.level,
            rows: u64::from(meta.rows),
            bytes: meta.len,
            created_ms: created_ms(meta.uuid),
            day_first: meta.ts_min.div_euclid(DAY_MS),
            day_last: meta.ts_max.div_euclid(DAY_MS),
            namespaces: segment.namespaces(),
        }
    }
}

/// When a file was named: its uuid says so.
pub fn created_ms(uuid: uuid::Uuid) -> i64 {
    uuid.get_timestamp().map_or(0, |at| {
        let (seconds, nanos) = at.to_unix();
        seconds as i64 * 1_000 + i64::from(nanos / 1_000_000)
    })
}

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Nothing is worth it.
    Nothing,
    /// Segments of which every row has expired go.
    Drop(Vec<uuid::Uuid>),
    /// Segments become new ones.
    Merge(Merge),
    /// A segment is alone in its past day: it is sealed as it is.
    Seal(uuid::Uuid),
}

/// A merge of segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    /// Oldest first.
    pub inputs: Vec<uuid::Uuid>,
    /// Level of the outputs.
    pub level: u8,
    /// Whether days are parted.
    pub split: Split,
}

/// Chooses what to do about segments. `now_ms` is the time.
pub fn choose(
    segments: &[SegmentFacts],
    limits: &CompactionLimits,
    retention: &Retention,
    now_ms: i64,
) -> Choice {
    // A clock that was set back must not stop everything: the distance counts.
    let age = |facts: &&SegmentFacts| (now_ms - facts.created_ms).abs();
    let is_over = |day: i64| {
        let end_ms = day.saturating_add(1).saturating_mul(DAY_MS);
        end_ms.saturating_add(limits.seal_after_ms) <= now_ms
    };

    let (expired, partly): (Vec<_>, Vec<_>) = segments
        .iter()
        .filter(|facts| has_expired(facts, retention, facts.day_first))
        .partition(|facts| all_expired(facts, retention));
    if !expired.is_empty() {
        return Choice::Drop(expired.iter().map(|facts| facts.uuid).collect());
    }

    let mut fresh: Vec<&SegmentFacts> =
        segments.iter().filter(|facts| facts.level == FRESH).collect();
    fresh.sort_by_key(|facts| facts.uuid);
    let is_settled =
        |facts: &&SegmentFacts| is_over(facts.day_first) && age(facts) >= limits.settle_ms;
    if fresh.len() >= limits.fan_in || fresh.iter().any(is_settled) {
        let inputs = fresh.iter().take(limits.inputs_max).map(|facts| facts.uuid).collect();
        return Choice::Merge(Merge { inputs, level: MERGED, split: Split::Days });
    }

    // A fresh one that has settled was merged above, without what has expired.
    if let Some(facts) = partly.iter().find(|facts| facts.level != FRESH) {
        let (inputs, level) = (vec![facts.uuid], facts.level);
        return Choice::Merge(Merge { inputs, level, split: Split::Days });
    }

    let mut days: BTreeMap<i64, Vec<&SegmentFacts>> = BTreeMap::new();
    for facts in segments.iter().filter(|facts| facts.level != FRESH) {
        days.entry(facts.day_first).or_default().push(facts);
    }
    for day in days.values_mut() {
        day.sort_by_key(|facts| facts.uuid);
        if let Some(inputs) = tier(day, limits) {
            return Choice::Merge(Merge { inputs, level: MERGED, split: Split::Days });
        }
    }
    for (_, day) in days.iter().filter(|(day, _)| is_over(**day)) {
        let late: Vec<&&SegmentFacts> = day.iter().filter(|facts| facts.level == MERGED).collect();
        let youngest = late.iter().map(|facts| age(facts)).min();
        let oldest = late.iter().map(|facts| age(facts)).max().unwrap_or(0);
        let rows = |level: u8| -> u64 {
            day.iter().filter(|facts| facts.level == level).map(|facts| facts.rows).sum()
        };
        let is_quiet = youngest.is_some_and(|youngest| youngest >= limits.quiet_ms);
        let is_worth_it =
            rows(MERGED) * limits.reseal_one_in > rows(SEALED) || oldest >= limits.reseal_after_ms;
        match (late.as_slice(), is_quiet && is_worth_it) {
            (_, false) => {}
            ([alone], true) if day.len() == 1 => return Choice::Seal(alone.uuid),
            (_, true) => {
                let inputs = day.iter().map(|facts| facts.uuid).collect();
                return Choice::Merge(Merge { inputs, level: SEALED, split: Split::Days });
            }
        }
    }
    Choice::Nothing
}

fn has_expired(facts: &SegmentFacts, retention: &Retention, day: i64) -> bool {
    facts.namespaces.iter().any(|&namespace| day < retention.first_day(namespace))
}

fn all_expired(facts: &SegmentFacts, retention: &Retention) -> bool {
    facts.namespaces.iter().all(|&namespace| facts.day_last < retention.first_day(namespace))
}

/// Segments of a day that are of similar size and enough to be merged.
fn tier(day: &[&SegmentFacts], limits: &CompactionLimits) -> Option<Vec<uuid::Uuid>> {
    let mut tiers: BTreeMap<u32, Vec<uuid::Uuid>> = BTreeMap::new();
    // What is large already waits for the seal.
    let small = |facts: &&&SegmentFacts| {
        facts.level == MERGED && facts.rows < u64::from(limits.segment_rows_max) / 4
    };
    for facts in day.iter().filter(small) {
        tiers.entry(magnitude(facts.rows, limits)).or_default().push(facts.uuid);
    }
    let mut full = tiers.into_values().find(|tier| tier.len() >= limits.fan_in)?;
    full.truncate(limits.inputs_max);
    Some(full)
}

/// How often the fan-in divides a size.
fn magnitude(size: u64, limits: &CompactionLimits) -> u32 {
    size.max(1).ilog(limits.fan_in.max(2) as u64)
}

/// What the policy knows of an id run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunFacts {
    /// Its name.
    pub uuid: uuid::Uuid,
    /// Its generation.
    pub generation: u32,
    /// Its ids.
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
    use crate::keyspace::Tree;

    const NOW: i64 = 20_000 * DAY_MS + 12 * 3_600_000;

    /// A segment of day 20,000 - `days_ago` that was written `age_ms` ago.
    fn segment(n: u64, level: u8, days_ago: i64, rows: u64, age_ms: i64) -> SegmentFacts {
        let mut bytes = [0; 10];
        bytes[2..].copy_from_slice(&n.to_be_bytes());
        let created = (NOW - age_ms) as u64;
        SegmentFacts {
            uuid: uuid::Builder::from_unix_timestamp_millis(created, &bytes).into_uuid(),
            level,
            rows,
            bytes: rows * 30,
            created_ms: NOW - age_ms,
            day_first: 20_000 - days_ago,
            day_last: 20_000 - days_ago,
            namespaces: Arc::from([1]),
        }
    }

    fn decide(segments: &[SegmentFacts]) -> Choice {
        decide_keeping(segments, None)
    }

    fn decide_keeping(segments: &[SegmentFacts], days: Option<u32>) -> Choice {
        let retention = Retention::of(&Tree::default(), days, NOW);
        choose(segments, &CompactionLimits::default(), &retention, NOW)
    }

    fn merges(choice: Choice) -> (usize, u8) {
        match choice {
            Choice::Merge(merge) => (merge.inputs.len(), merge.level),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fresh_segments_wait_for_their_eighth() {
        let fresh: Vec<_> = (0..8).map(|n| segment(n, FRESH, 0, 100, 60_000)).collect();
        assert_eq!(decide(&fresh[..7]), Choice::Nothing);
        assert_eq!(merges(decide(&fresh)), (8, MERGED));
    }

    #[test]
    fn a_fresh_segment_of_a_past_day_settles_after_an_hour() {
        assert_eq!(decide(&[segment(1, FRESH, 2, 100, 60_000)]), Choice::Nothing);
        assert_eq!(merges(decide(&[segment(1, FRESH, 2, 100, 3_600_000)])), (1, MERGED));
        // Today's are not in a hurry.
        assert_eq!(decide(&[segment(1, FRESH, 0, 100, 7_200_000)]), Choice::Nothing);
    }

    #[test]
    fn a_day_is_merged_by_size_and_sealed_when_it_is_over_and_quiet() {
        let mut day: Vec<_> = (0..7).map(|n| segment(n, MERGED, 0, 1_000, 60_000)).collect();
        day.push(segment(9, MERGED, 0, 900_000, 60_000));
        assert_eq!(decide(&day), Choice::Nothing, "seven alike and one large");
        day.push(segment(10, MERGED, 0, 1_010, 60_000));
        assert_eq!(merges(decide(&day)), (8, MERGED));

        let yesterday = |age_ms| {
            vec![segment(1, MERGED, 1, 900_000, 9_000_000), segment(2, MERGED, 1, 70, age_ms)]
        };
        assert_eq!(decide(&yesterday(60_000)), Choice::Nothing, "not quiet yet");
        assert_eq!(merges(decide(&yesterday(4_000_000))), (2, SEALED));
        let alone = segment(1, MERGED, 1, 70, 4_000_000);
        assert_eq!(decide(std::slice::from_ref(&alone)), Choice::Seal(alone.uuid));
    }

    #[test]
    fn late_events_seal_a_day_again_when_they_are_worth_it() {
        let sealed = segment(1, SEALED, 3, 100_000, 90_000_000);
        let late = |rows, age_ms| vec![sealed.clone(), segment(2, MERGED, 3, rows, age_ms)];
        assert_eq!(decide(&late(1_000, 4_000_000)), Choice::Nothing, "one in a hundred");
        assert_eq!(merges(decide(&late(2_001, 4_000_000))), (2, SEALED));
        assert_eq!(merges(decide(&late(1, 90_000_000))), (2, SEALED), "after a day in any case");
        assert_eq!(decide(&[sealed]), Choice::Nothing);
    }

    #[test]
    fn expired_days_go_whole_and_shared_segments_are_rewritten() {
        let old = segment(1, SEALED, 40, 10, 90_000_000);
        let kept = segment(2, SEALED, 20, 10, 90_000_000);
        let choice = decide_keeping(&[old.clone(), kept.clone()], Some(30));
        assert_eq!(choice, Choice::Drop(vec![old.uuid]));
        let mut spanning = kept.clone();
        (spanning.level, spanning.day_first) = (FRESH, 19_960);
        assert_eq!(merges(decide_keeping(&[spanning.clone()], Some(30))), (1, MERGED));
        spanning.level = MERGED;
        assert_eq!(merges(decide_keeping(&[spanning], Some(30))), (1, MERGED));
        assert_eq!(decide_keeping(&[kept], Some(30)), Choice::Nothing);
    }

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
