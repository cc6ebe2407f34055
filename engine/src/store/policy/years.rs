//! A year of flushes and merges, played through without any file: what is left, and how often rows were written.
//!
//! Each step is what [`choose`] says, carried out on facts alone: rows by day go where a merge would put them.

use std::{collections::BTreeMap, sync::Arc};

use super::*;
use crate::keyspace::Tree;

const FIRST_DAY: i64 = 20_000;

/// Segments and their rows by day.
struct Store {
    limits: CompactionLimits,
    segments: Vec<(SegmentFacts, BTreeMap<i64, u64>)>,
    now_ms: i64,
    next: u64,
    rows_written: u64,
}

impl Store {
    fn new(span_days_max: i64) -> Self {
        let limits = CompactionLimits { span_days_max, ..CompactionLimits::default() };
        Self { limits, segments: Vec::new(), now_ms: FIRST_DAY * DAY_MS, next: 0, rows_written: 0 }
    }

    fn write(&mut self, level: u8, rows: BTreeMap<i64, u64>) {
        let Some((first, last)) = rows.keys().next().zip(rows.keys().next_back()) else { return };
        self.next += 1;
        let mut bytes = [0; 10];
        bytes[2..].copy_from_slice(&self.next.to_be_bytes());
        let count: u64 = rows.values().sum();
        self.rows_written += count;
        let mut before = 0;
        let middle = rows.iter().find(|(_, rows)| {
            before += **rows;
            before * 2 >= count
        });
        let facts = SegmentFacts {
            uuid: uuid::Builder::from_unix_timestamp_millis(self.now_ms as u64, &bytes).into_uuid(),
            level,
            rows: count,
            bytes: count * 30,
            created_ms: self.now_ms,
            day_first: *first,
            day_last: *last,
            day_middle: middle.map_or(*first, |(day, _)| *day),
            namespaces: Arc::from([1]),
            namespace_bounds: Arc::from([(*first * DAY_MS, *last * DAY_MS)]),
        };
        self.segments.push((facts, rows));
    }

    /// All that is to be done by now.
    fn settle(&mut self, days_kept: Option<u32>) {
        for _ in 0..10_000 {
            let retention = Retention::of(&Tree::default(), days_kept, self.now_ms);
            let facts: Vec<SegmentFacts> =
                { self.segments.iter() }.map(|(facts, _)| facts.clone()).collect();
            match choose(&facts, &self.limits, &retention, self.now_ms) {
                Choice::Nothing => return,
                Choice::Drop(uuids) => drop(self.take(&uuids)),
                Choice::Seal(uuid) => {
                    let segment = self.segments.iter_mut().find(|(facts, _)| facts.uuid == uuid);
                    segment.unwrap().0.level = SEALED;
                }
                Choice::Merge(merge) => {
                    let mut outputs: BTreeMap<Option<Unit>, BTreeMap<i64, u64>> = BTreeMap::new();
                    let first = retention.first_day(1);
                    let inputs = self.take(&merge.inputs).into_iter().flat_map(|(_, rows)| rows);
                    for (day, rows) in inputs.filter(|(day, _)| *day >= first) {
                        let unit = match merge.split {
                            Split::Units(units) => Some(units.of(day)),
                            Split::Nothing => None,
                        };
                        *outputs.entry(unit).or_default().entry(day).or_default() += rows;
                    }
                    for rows in outputs.into_values() {
                        // Parted by series, each with a share of every day.
                        let count: u64 = rows.values().sum();
                        let parts = count.div_ceil(u64::from(self.limits.segment_rows_max)).max(1);
                        for _ in 0..parts {
                            let share = rows.iter().map(|(day, rows)| (*day, rows / parts));
                            self.write(merge.level, share.collect());
                        }
                    }
                }
            }
        }
        panic!("it never ends");
    }

    fn take(&mut self, uuids: &[uuid::Uuid]) -> Vec<(SegmentFacts, BTreeMap<i64, u64>)> {
        assert!(!uuids.is_empty());
        let (taken, left) = std::mem::take(&mut self.segments)
            .into_iter()
            .partition(|(facts, _)| uuids.contains(&facts.uuid));
        self.segments = left;
        taken
    }

    /// Days of `flushes` flushes of `rows` each, of which one row in `late_one_in` is of days before.
    fn live(
        &mut self,
        days: i64,
        flushes: i64,
        rows: u64,
        late_one_in: Option<u64>,
        kept: Option<u32>,
    ) {
        for _ in 0..days * flushes {
            self.now_ms += DAY_MS / flushes;
            let day = (self.now_ms - 1).div_euclid(DAY_MS);
            let late = late_one_in.map_or(0, |one_in| rows / one_in);
            let earlier = day - 1 - (self.next % 60) as i64;
            let mut by_day = BTreeMap::from([(day, rows - late)]);
            if late > 0 {
                by_day.insert(earlier.max(FIRST_DAY), late);
            }
            self.write(FRESH, by_day);
            self.settle(kept);
        }
    }

    fn rows(&self) -> u64 {
        self.segments.iter().map(|(facts, _)| facts.rows).sum()
    }
}

/// Rows written in a year for each that was sent, with the segments left: of units of eight weeks, and of days.
fn compared(flushes: i64, rows: u64, late_one_in: Option<u64>) -> [(f64, usize); 2] {
    [56, 1].map(|span| {
        let mut store = Store::new(span);
        store.live(365, flushes, rows, late_one_in, None);
        let sent = 365 * flushes as u64 * rows;
        assert!(store.rows() <= sent && store.rows() > sent - sent / 100);
        (store.rows_written as f64 / sent as f64, store.segments.len())
    })
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures of the documents")]
fn a_year_is_few_segments_and_rows_are_written_little_more_often() {
    // Flushes a day, rows of each: 20,000 events a day, a flush an hour; the same with late rows; 110,000, 2 and
    // 4 million a day.
    for (flushes, rows, late) in [
        (24, 833, None),
        (24, 833, Some(100)),
        (24, 4_600, None),
        (24, 4_600, Some(100)),
        (24, 83_000, None),
        (16, 250_000, None),
    ] {
        let [(spanning, segments), (daily, daily_segments)] = compared(flushes, rows, late);
        println!(
            "{flushes} flushes of {rows}: rows written {spanning:.2} times, {segments} segments; \
             by days {daily:.2} times, {daily_segments} segments"
        );
        // In the log and in runs of ids a row takes as much as two and a half times in segments, in both.
        assert!((spanning + 2.5) / (daily + 2.5) <= 1.3, "{spanning} {daily}");
        if rows < 1_000 {
            // Late rows, here of each of sixty days before, stand beside the units.
            assert!(segments <= if late.is_some() { 45 } else { 20 }, "{segments}");
        }
    }
}

/// A flush a minute, of which eight are merged at once: there is never an hour without late rows.
#[test]
fn late_rows_all_the_time_keep_no_unit_open() {
    let mut store = Store::new(56);
    store.live(130, 180, 111, Some(100), None);
    let over = store.now_ms.div_euclid(DAY_MS) - 2;
    let weeks =
        store.segments.iter().filter(|(facts, _)| facts.level == SEALED && facts.day_last < over);
    assert!(weeks.count() <= 130 / 56 + 1 + 7 + 7, "{}", store.segments.len());
    assert!(store.segments.len() <= 70, "{}", store.segments.len());
}

/// Six events over eight weeks must not make a unit of what comes later in millions.
#[test]
fn a_small_segment_that_spans_a_unit_does_not_keep_a_large_one_whole() {
    let mut store = Store::new(56);
    let first = FIRST_DAY - 60;
    store.write(FRESH, (0..6).map(|week| (first + week * 7, 1)).collect());
    for _ in 0..5 {
        store.now_ms += 3_600_000;
        store.settle(None);
    }
    for day in 0..50 {
        store.write(FRESH, BTreeMap::from([(first + day, 2_000_000)]));
    }
    for _ in 0..5 {
        store.now_ms += 3_600_000;
        store.settle(None);
    }
    assert!(store.segments.iter().all(|(facts, _)| facts.rows <= 4_000_000));
    assert!(store.rows_written <= 100_000_000 * 5, "{}", store.rows_written);
}

#[test]
fn history_is_merged_at_once_into_long_units() {
    let mut store = Store::new(56);
    store.now_ms = (FIRST_DAY + 500) * DAY_MS;
    let today = FIRST_DAY + 500;
    store.write(FRESH, (today - 400..today).map(|day| (day, 1_500)).collect());
    store.settle(None);
    assert_eq!(store.segments.len(), 1, "others may follow");
    store.now_ms += 30_000;
    store.settle(None);
    assert!(store.segments.len() <= 400 / 56 + 2 + 7 + 7, "{}", store.segments.len());
    assert!(store.segments.iter().all(|(facts, _)| facts.level == MERGED));
    store.now_ms += 3_600_000;
    let written = store.rows_written;
    store.settle(None);
    assert!(
        store
            .segments
            .iter()
            .all(|(facts, _)| facts.level == SEALED || facts.day_last == today - 1)
    );
    assert_eq!(store.rows_written, written, "they are sealed where they stand");
}

/// Where the average rows of a day are about as many as let eight weeks, four or two fit, units change from day to day, and full segments
/// must not be written anew for it.
#[test]
fn rows_near_the_borders_of_units_are_written_as_often_as_others() {
    let written = |rows_a_day: u64| {
        let mut store = Store::new(56);
        store.live(300, 24, rows_a_day / 24, Some(100), None);
        store.rows_written as f64 / (300 * 24 * (rows_a_day / 24)) as f64
    };
    let usual = written(20_000);
    // Each was written 11 to 16 times when a full segment was written anew for any sealed row beside it.
    for rows_a_day in [72_000, 72_600, 73_000, 143_600, 287_000] {
        let near = written(rows_a_day);
        assert!(near <= usual * 1.1, "{rows_a_day} a day: {near:.2}, {usual:.2} for 20,000");
    }
}

/// Where eight weeks do not fit a segment, four or two do; where they do, weeks wait for their eight.
#[test]
fn each_store_has_the_longest_units_that_fit() {
    for (rows_a_day, days) in [(20_000, 56), (110_000, 28), (220_000, 14), (450_000, 7)] {
        let mut store = Store::new(56);
        store.live(56 * 3, 4, rows_a_day / 4, None, None);
        let spans = store.segments.iter().map(|(facts, _)| facts.day_last - facts.day_first + 1);
        let spans: Vec<i64> = spans.collect();
        assert!(spans.iter().all(|&span| span <= days), "{rows_a_day} a day: {spans:?}");
        let full = spans.iter().filter(|&&span| span == days).count() as i64;
        assert!(full >= 56 * 2 / days, "{rows_a_day} a day: {spans:?}");
        let written = store.rows_written as f64 / (56.0 * 3.0 * rows_a_day as f64);
        // A day by its flushes, a day, a week, and the unit.
        assert!(written <= 4.8, "{rows_a_day} a day: {written}");
    }
}

#[test]
fn days_too_large_for_one_segment_stay_apart_and_late_rows_find_them() {
    let mut store = Store::new(56);
    store.live(70, 4, 400_000, None, None);
    let full = |facts: &SegmentFacts| facts.level == SEALED && facts.day_first == facts.day_last;
    assert!(store.segments.iter().filter(|(facts, _)| full(facts)).count() >= 60);
    // Late rows of many days, in one segment: they are parted, and then merged with the day that they belong to.
    store.write(FRESH, (FIRST_DAY..FIRST_DAY + 50).map(|day| (day, 40_000)).collect());
    store.now_ms += 60_000;
    store.settle(None);
    store.now_ms += 2 * 3_600_000;
    store.settle(None);
    let of_day = |day: i64| {
        let segments = store.segments.iter();
        segments.filter(move |(facts, _)| (facts.day_first..=facts.day_last).contains(&day)).count()
    };
    assert!((FIRST_DAY..FIRST_DAY + 50).all(|day| of_day(day) == 1));
}

#[test]
fn few_late_rows_stay_beside_a_long_unit() {
    let mut store = Store::new(56);
    store.live(120, 4, 1_000, None, None);
    let long = { store.segments.iter() }.find(|(facts, _)| facts.day_last - facts.day_first == 55);
    let uuid = long.unwrap().0.uuid;
    let day = long.unwrap().0.day_first + 3;
    for _ in 0..10 {
        store.write(FRESH, BTreeMap::from([(day, 1)]));
        for _ in 0..24 {
            store.now_ms += DAY_MS / 24;
            store.settle(None);
        }
    }
    assert!(store.segments.iter().any(|(facts, _)| facts.uuid == uuid), "it was not rewritten");
    let late = store.segments.iter().filter(|(facts, _)| facts.day_last == day).count();
    assert!(late <= 2, "{late}");
    // One in fifty is worth it.
    store.write(FRESH, BTreeMap::from([(day, 5_000)]));
    for _ in 0..2 {
        store.now_ms += DAY_MS / 2;
        store.settle(None);
    }
    assert!(!store.segments.iter().any(|(facts, _)| facts.uuid == uuid));
}

#[test]
fn expired_days_are_written_away_half_a_unit_at_a_time() {
    let mut store = Store::new(56);
    store.live(200, 4, 1_000, None, Some(60));
    let today = store.now_ms.div_euclid(DAY_MS);
    let first = store.segments.iter().map(|(facts, _)| facts.day_first).min().unwrap();
    assert!(first >= today - 60 - 14, "{}", today - first);
    let sent = 200 * 4 * 1_000;
    assert!(store.rows_written < sent * 5, "{}", store.rows_written);
    // Units are a quarter of what is kept, at most.
    assert!(store.segments.iter().all(|(facts, _)| facts.day_last - facts.day_first < 15));
}
