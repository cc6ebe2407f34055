//! Chooses the next merge: a pure function of the live segments, the time, and the limits.
//!
//! Fresh segments are merged and parted by unit of time: a day, and of history a week, or two, four or eight. Within a
//! unit, segments of similar size are merged, so that a row is rewritten once for each eightfold. When a unit is over
//! and quiet it is *sealed*: one merge into segments of full size. When a week is over its days are merged on into
//! it, and weeks into their eight, as long as the result fits one segment. Late events start the same in small; the
//! unit is sealed again when they are worth it.
//!
//! ```text
//! 20,000 events a day     7 days → a week; 8 weeks → a segment of 1.1 million rows
//! 110,000 events a day    7 days → a week; 4 weeks → a segment of 3.1 million rows, since eight do not fit one
//! ```

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    base::time::DAY_MS,
    segment::{FRESH, MERGED, SEALED, Segment, Split, Unit, Units, WEEK},
};

use super::{retention::Retention, trusted_clock::EXPIRY_WAIT_MS};

mod ids;

pub use ids::{IdChoice, RunFacts, choose_ids};

/// Limits that decide which segments are merged, and when.
#[derive(Debug, Clone, Copy)]
pub struct CompactionLimits {
    /// Segments, or id runs, of similar size that are merged together.
    pub fan_in: usize,
    /// Inputs of one merge, at most; a seal takes all segments of its unit of time.
    pub inputs_max: usize,
    /// Age at which a fresh segment with rows of a past day is merged although it is alone.
    pub settle_ms: i64,
    /// The same for one most of whose rows are of past days: history that was sent after the fact.
    pub settle_history_ms: i64,
    /// Time after its end at which a day is over and can be sealed.
    pub seal_after_ms: i64,
    /// Time without new segments of a unit of time, or id runs of a week, after which it is quiet.
    pub quiet_ms: i64,
    /// A sealed unit is sealed again when late rows are more than one in so many,
    pub reseal_one_in: u64,
    /// or, of a single day, when they have waited so long.
    pub reseal_after_ms: i64,
    /// Rows of a segment, at most.
    pub segment_rows_max: u32,
    /// Days that share a segment, at most: 1 keeps all days apart, 7 merges weeks, 56 up to eight of them.
    pub span_days_max: i64,
    /// Rows from which on a series of a segment has rollups: fewer are read as quickly.
    pub rollup_rows_min: u32,
    /// Ids of a run, at most: the filter is built in memory.
    pub run_ids_max: u64,
    /// Fresh segments at which writes are refused until some are merged.
    pub fresh_max: usize,
    /// Time for which the clock must show an expiry before files are dropped, in milliseconds.
    pub expiry_wait_ms: i64,
}

impl CompactionLimits {
    /// Everything is done as soon as it can be.
    pub fn without_waiting() -> Self {
        Self {
            settle_ms: 0,
            settle_history_ms: 0,
            seal_after_ms: 0,
            quiet_ms: 0,
            expiry_wait_ms: 0,
            ..Self::default()
        }
    }
}

impl Default for CompactionLimits {
    fn default() -> Self {
        Self {
            fan_in: 8,
            inputs_max: 32,
            settle_ms: 3_600_000,
            settle_history_ms: 30_000,
            seal_after_ms: 6 * 3_600_000,
            quiet_ms: 3_600_000,
            reseal_one_in: 50,
            reseal_after_ms: DAY_MS,
            segment_rows_max: 4_000_000,
            span_days_max: 56,
            rollup_rows_min: 256,
            run_ids_max: 4_000_000,
            fresh_max: 96,
            expiry_wait_ms: EXPIRY_WAIT_MS,
        }
    }
}

/// Facts about a segment that the policy decides by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Name of the file, which sorts by the time at which it was given.
    pub uuid: uuid::Uuid,
    /// Level: `FRESH`, `MERGED` or `SEALED`.
    pub level: u8,
    /// Number of rows, expired rows included.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Time at which the file was named, in milliseconds since 1970.
    pub created_ms: i64,
    /// Its first day since 1970.
    pub day_first: i64,
    /// Its last day.
    pub day_last: i64,
    /// The day up to which at least half of its rows lie, of a fresh one; else its first.
    pub day_middle: i64,
    /// Namespaces with rows in it.
    pub namespaces: Arc<[u32]>,
    /// Of each namespace, the times of its earliest row and of its latest.
    pub namespace_bounds: Arc<[(i64, i64)]>,
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
            day_middle: day_middle(segment),
            namespaces: segment.namespaces(),
            namespace_bounds: segment.namespace_bounds(),
        }
    }
}

fn day_middle(segment: &Segment) -> i64 {
    let meta = segment.meta();
    let first = meta.ts_min.div_euclid(DAY_MS);
    if meta.level != FRESH || first == meta.ts_max.div_euclid(DAY_MS) {
        return first;
    }
    let mut by_day: BTreeMap<i64, u64> = BTreeMap::new();
    for day in segment.runs().runs().iter().flat_map(|run| run.by_day()) {
        *by_day.entry(day.day).or_default() += day.rows.len() as u64;
    }
    let mut rows = 0;
    let middle = by_day.into_iter().find(|(_, count)| {
        rows += count;
        rows * 2 >= u64::from(meta.rows)
    });
    middle.map_or(first, |(day, _)| day)
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
    /// A segment is alone in its past unit of time: it is sealed as it is.
    Seal(uuid::Uuid),
}

/// A merge of segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    /// Segments to be merged, oldest first.
    pub inputs: Vec<uuid::Uuid>,
    /// Level of the outputs.
    pub level: u8,
    /// Which rows may share an output.
    pub split: Split,
}

/// Chooses the next action. `now_ms` is the wall time in milliseconds since 1970.
pub fn choose(
    segments: &[SegmentFacts],
    limits: &CompactionLimits,
    retention: &Retention,
    now_ms: i64,
) -> Choice {
    // A clock that was set back must not stop everything: the distance counts.
    let age = |facts: &&SegmentFacts| (now_ms - facts.created_ms).abs();
    let over_before = now_ms.saturating_sub(limits.seal_after_ms).div_euclid(DAY_MS);
    let is_over = |day: i64| day < over_before;
    // Rows that expire together lie together: a unit spans at most a quarter of the retention.
    let kept = retention.longest_days().map_or(i64::MAX, i64::from);
    let days_max = limits.span_days_max.min(kept / 4).max(1);
    let days_fit = days_that_fit(segments, limits);
    // A single week may have fewer rows than others.
    let units = Units { over_before, days_max: days_max.min(days_fit.max(WEEK)) };

    let (expired, partly): (Vec<_>, Vec<_>) = segments
        .iter()
        .filter(|facts| has_expired(facts, retention))
        .partition(|facts| all_expired(facts, retention));
    if !expired.is_empty() {
        return Choice::Drop(expired.iter().map(|facts| facts.uuid).collect());
    }

    let mut fresh: Vec<&SegmentFacts> =
        segments.iter().filter(|facts| facts.level == FRESH).collect();
    fresh.sort_by_key(|facts| facts.uuid);
    let is_settled = |facts: &&SegmentFacts| {
        is_over(facts.day_first) && age(facts) >= limits.settle_ms
            || is_over(facts.day_middle) && age(facts) >= limits.settle_history_ms
    };
    if fresh.len() >= limits.fan_in || fresh.iter().any(is_settled) {
        let inputs = fresh.iter().take(limits.inputs_max).map(|facts| facts.uuid).collect();
        // Rows of units that will not fit are not parted twice more.
        let units = Units { days_max: units.days_max.min(days_fit), ..units };
        return Choice::Merge(Merge { inputs, level: MERGED, split: Split::Units(units) });
    }

    // A fresh one that has settled was merged above, without what has expired.
    if let Some(facts) = partly.iter().find(|facts| facts.level != FRESH) {
        let (inputs, level) = (vec![facts.uuid], facts.level);
        return Choice::Merge(Merge { inputs, level, split: Split::Nothing });
    }

    let groups = match by_unit(segments, units, limits) {
        Ok(groups) => groups,
        Err(parted) => return Choice::Merge(parted),
    };
    for group in groups.values() {
        if let Some(inputs) = tier(group, limits) {
            return Choice::Merge(Merge { inputs, level: MERGED, split: Split::Nothing });
        }
    }
    let mut over = groups.iter().filter(|(unit, _)| unit.end() <= over_before);
    over.find_map(|(unit, group)| settle(*unit, group, limits, &age)).unwrap_or(Choice::Nothing)
}

/// Days whose rows fit one segment, on the average of all days.
fn days_that_fit(segments: &[SegmentFacts], limits: &CompactionLimits) -> i64 {
    let first = segments.iter().map(|facts| facts.day_first).min().unwrap_or_default();
    let last = segments.iter().map(|facts| facts.day_last).max().unwrap_or_default();
    let days = u64::try_from(last.saturating_sub(first)).unwrap_or_default().saturating_add(1);
    let rows_a_day = (segments.iter().map(|facts| facts.rows).sum::<u64>() / days).max(1);
    i64::try_from(u64::from(limits.segment_rows_max) / rows_a_day).unwrap_or(i64::MAX).max(1)
}

/// The segments of each unit, but for fresh ones. Where those of a unit do not fit one segment, its shorter units
/// have their own; a segment with rows of several of these is to be parted first, which is the error.
fn by_unit<'a>(
    segments: &'a [SegmentFacts],
    units: Units,
    limits: &CompactionLimits,
) -> Result<BTreeMap<Unit, Vec<&'a SegmentFacts>>, Merge> {
    let mut groups: BTreeMap<Unit, Vec<&SegmentFacts>> = BTreeMap::new();
    for facts in segments.iter().filter(|facts| facts.level != FRESH) {
        groups.entry(units.of(facts.day_first)).or_default().push(facts);
    }
    let mut out = BTreeMap::new();
    let mut rest: Vec<(Unit, Vec<&SegmentFacts>)> = groups.into_iter().collect();
    while let Some((unit, mut group)) = rest.pop() {
        let shorter = units.shorter_than(unit.days);
        let spans = |facts: &&&SegmentFacts| {
            shorter.of(facts.day_first) != shorter.of(facts.day_last.min(unit.end() - 1))
        };
        group.sort_by_key(|facts| facts.uuid);
        let rows: u64 = group.iter().map(|facts| facts.rows).sum();
        // Of what was merged on already nothing is parted again for some late rows.
        let joined = group.iter().filter(spans).filter(|facts| facts.level == SEALED);
        let is_joined = joined.map(|facts| facts.rows).sum::<u64>() * 2 >= rows;
        if unit.days == 1 || rows <= u64::from(limits.segment_rows_max) || is_joined {
            out.insert(unit, group);
            continue;
        }
        let across: Vec<uuid::Uuid> = group.iter().filter(spans).map(|facts| facts.uuid).collect();
        if !across.is_empty() {
            let inputs = across.into_iter().take(limits.inputs_max).collect();
            return Err(Merge { inputs, level: MERGED, split: Split::Units(shorter) });
        }
        let mut within: BTreeMap<Unit, Vec<&SegmentFacts>> = BTreeMap::new();
        for facts in group {
            within.entry(shorter.of(facts.day_first)).or_default().push(facts);
        }
        rest.extend(within);
    }
    Ok(out)
}

/// Chooses the action for the segments of a unit that is over.
fn settle(
    unit: Unit,
    group: &[&SegmentFacts],
    limits: &CompactionLimits,
    age: &dyn Fn(&&SegmentFacts) -> i64,
) -> Option<Choice> {
    let of_level = |level: u8| group.iter().filter(move |facts| facts.level == level);
    let rows = |level: u8| of_level(level).map(|facts| facts.rows).sum::<u64>();
    let is_quiet =
        of_level(MERGED).map(age).min().is_none_or(|youngest| youngest >= limits.quiet_ms);
    let have_waited = of_level(MERGED).map(age).max() >= Some(limits.reseal_after_ms);
    // Rows that come all the time, however few, must not keep a unit open for ever.
    let is_ready = is_quiet || have_waited;
    let uuids =
        |facts: &mut dyn Iterator<Item = &&SegmentFacts>| facts.map(|facts| facts.uuid).collect();
    let merge = |inputs: Vec<uuid::Uuid>, level: u8| {
        Some(Choice::Merge(Merge { inputs, level, split: Split::Nothing }))
    };
    let is_worth_it = rows(MERGED) * limits.reseal_one_in > rows(SEALED);
    if is_worth_it && !is_ready {
        return None;
    }
    if is_worth_it || have_waited && unit.days == 1 {
        return match group {
            [alone] => Some(Choice::Seal(alone.uuid)),
            _ => merge(uuids(&mut group.iter()), SEALED),
        };
    }
    let fits = |rows: u64| rows <= u64::from(limits.segment_rows_max);
    let largest = of_level(SEALED).max_by_key(|facts| facts.rows);
    if let Some(largest) = largest
        && unit.days > 1
        && fits(rows(MERGED) + rows(SEALED))
    {
        let others = || of_level(SEALED).filter(|facts| facts.uuid != largest.uuid);
        // The days of a week, or the weeks of a long unit, become one; not for a few rows, such as late ones that were sealed
        // by themselves while units were shorter: the average rows of a day move from day to day.
        if (rows(SEALED) - largest.rows) * limits.reseal_one_in > largest.rows {
            return match is_ready {
                true => merge(uuids(&mut group.iter()), SEALED),
                false => merge(uuids(&mut of_level(SEALED)), SEALED),
            };
        }
        if others().count() > 1 {
            return merge(uuids(&mut others()), SEALED);
        }
    }
    // Few late rows stay beside a long unit, in one segment.
    if have_waited && fits(rows(MERGED)) && of_level(MERGED).count() > 1 {
        return merge(uuids(&mut of_level(MERGED)), MERGED);
    }
    None
}

/// Days of a namespace in a segment that are left to expire together, rather than written away one after the other.
const EXPIRE_TOGETHER_DAYS: i64 = 7;

/// Whether so much of a namespace's rows has expired that a segment is to be written anew: all of them, or half of
/// their days and at least a week.
fn has_expired(facts: &SegmentFacts, retention: &Retention) -> bool {
    facts.namespaces.iter().zip(&*facts.namespace_bounds).any(
        |(&namespace, (first_ms, last_ms))| {
            let (first, last) = (first_ms.div_euclid(DAY_MS), last_ms.div_euclid(DAY_MS));
            let expired = retention.first_day(namespace).saturating_sub(first);
            let span = last - first;
            expired > span || expired >= EXPIRE_TOGETHER_DAYS && expired.saturating_mul(2) >= span
        },
    )
}

fn all_expired(facts: &SegmentFacts, retention: &Retention) -> bool {
    facts.namespaces.iter().all(|&namespace| facts.day_last < retention.first_day(namespace))
}

/// Segments of a unit that are of similar size and enough to be merged.
fn tier(group: &[&SegmentFacts], limits: &CompactionLimits) -> Option<Vec<uuid::Uuid>> {
    let mut tiers: BTreeMap<u32, Vec<uuid::Uuid>> = BTreeMap::new();
    // Large segments wait for the seal.
    let small = |facts: &&&SegmentFacts| {
        facts.level == MERGED && facts.rows < u64::from(limits.segment_rows_max) / 4
    };
    for facts in group.iter().filter(small) {
        tiers.entry(magnitude(facts.rows, limits)).or_default().push(facts.uuid);
    }
    let mut full = tiers.into_values().find(|tier| tier.len() >= limits.fan_in)?;
    full.truncate(limits.inputs_max);
    Some(full)
}

/// Logarithm of a size to the base of the fan-in, rounded down.
fn magnitude(size: u64, limits: &CompactionLimits) -> u32 {
    size.max(1).ilog(limits.fan_in.max(2) as u64)
}

#[cfg(test)]
mod years;

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
            day_middle: 20_000 - days_ago,
            namespaces: Arc::from([1]),
            namespace_bounds: Arc::from([(
                (20_000 - days_ago) * DAY_MS,
                (20_000 - days_ago) * DAY_MS,
            )]),
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
        let late =
            |age_ms| SegmentFacts { day_middle: 20_000, ..segment(1, FRESH, 2, 100, age_ms) };
        assert_eq!(decide(&[late(60_000)]), Choice::Nothing);
        assert_eq!(merges(decide(&[late(3_600_000)])), (1, MERGED));
        // History is in a hurry,
        let history = |age_ms| segment(1, FRESH, 2, 100, age_ms);
        assert_eq!(decide(&[history(29_000)]), Choice::Nothing);
        assert_eq!(merges(decide(&[history(30_000)])), (1, MERGED));
        // today's rows are not.
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
        spanning.namespace_bounds = Arc::from([(19_960 * DAY_MS, 19_980 * DAY_MS)]);
        assert_eq!(merges(decide_keeping(&[spanning.clone()], Some(30))), (1, MERGED));
        spanning.level = MERGED;
        assert_eq!(merges(decide_keeping(&[spanning], Some(30))), (1, MERGED));
        assert_eq!(decide_keeping(&[kept], Some(30)), Choice::Nothing);
    }
}
