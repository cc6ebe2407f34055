//! Random questions, answered by the engine and by a loop over the same events.
//!
//! Every question is asked of rows in memory, of rows in segments, and of a mixture, before and
//! after a restart. The loop knows nothing of codes, zones, bitmaps or buckets of rows.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use inlay_engine::*;

const START_MS: i64 = 1_700_000_000_000;
const DAY_MS: i64 = 86_400_000;

struct Fact {
    tenant: &'static str,
    event: &'static str,
    at: i64,
    user: Option<String>,
    strings: BTreeMap<&'static str, String>,
    numbers: BTreeMap<&'static str, f64>,
}

fn facts(rng: &SeededRng, count: usize) -> Vec<Fact> {
    let pick = |of: &[&'static str]| of[rng.below(of.len() as u64) as usize];
    (0..count)
        .map(|_| {
            let mut strings = BTreeMap::new();
            let mut numbers = BTreeMap::new();
            if rng.below(20) > 0 {
                // One value in hundreds, so that bitmaps are made.
                let rare = rng.below(300) == 0;
                strings.insert(
                    "model",
                    if rare { "rare".to_owned() } else { format!("m{}", rng.below(3)) },
                );
            }
            if rng.below(3) > 0 {
                strings.insert("country", format!("C{:03}", rng.below(400)));
            }
            if rng.below(200) == 0 {
                strings.insert("seldom", pick(&["", "now", "then"]).to_owned());
            }
            if rng.below(10) > 0 {
                numbers.insert("ms", (rng.below(1_000_000) as f64) / 1_000.0);
            }
            if rng.below(50) == 0 {
                numbers.insert("odd", (rng.below(1_000) as f64).sqrt() - 10.0);
            }
            Fact {
                tenant: pick(&["a", "b", "ünï"]),
                event: pick(&["call", "call", "call", "view"]),
                at: START_MS + rng.below(40 * DAY_MS as u64) as i64,
                user: (rng.below(10) > 0).then(|| format!("u{}", rng.below(500))),
                strings,
                numbers,
            }
        })
        .collect()
}

fn ingest(engine: &Engine, facts: &[Fact], namespace: u32) {
    for facts in facts.chunks(700) {
        let mut batch = engine.batch(Namespace(namespace));
        for fact in facts {
            let event = Event {
                tenant: fact.tenant,
                name: fact.event,
                timestamp_ms: fact.at,
                event_id: None,
                user_id: fact.user.as_deref(),
            };
            let strings: Vec<_> =
                fact.strings.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let numbers: Vec<_> =
                fact.numbers.iter().map(|(name, value)| (*name, *value)).collect();
            batch.push(&event, &strings, &numbers).unwrap();
        }
        engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    }
}

fn question(rng: &SeededRng) -> Query {
    let one_in = |n| rng.below(n) == 0;
    let metric = [
        Metric::Count,
        Metric::Distinct,
        Metric::DistinctApprox,
        Metric::Sum,
        Metric::Avg,
        Metric::Min,
        Metric::Max,
        Metric::Percentile(50),
        Metric::Percentile(95),
        Metric::Percentile(99),
    ][rng.below(10) as usize];
    let from_ms = START_MS - DAY_MS + rng.below(30 * DAY_MS as u64) as i64;
    let aligned = one_in(2);
    let from_ms = if aligned { Granularity::Hour.floor(from_ms) } else { from_ms };
    let granularities = [
        None,
        Some(Granularity::Hour),
        Some(Granularity::Day),
        Some(Granularity::Week),
        Some(Granularity::Month),
    ];
    let mut texts = Vec::new();
    if one_in(2) {
        let any_of = [vec!["m0"], vec!["rare"], vec!["m1", "m2"], vec!["none"], vec![]]
            [rng.below(5) as usize]
            .clone();
        texts.push(TextFilter {
            name: "model".into(),
            any_of: any_of.into_iter().map(str::to_owned).collect(),
        });
    }
    if one_in(5) {
        texts.push(TextFilter {
            name: "seldom".into(),
            any_of: vec![String::new(), "then".to_owned()],
        });
    }
    let numbers = if one_in(4) {
        vec![NumberFilter { name: "ms".into(), min: 100.0, max: 400.5 }]
    } else {
        vec![]
    };
    Query {
        tenant: (!one_in(4)).then(|| ["a", "b", "ünï", "nobody"][rng.below(4) as usize].to_owned()),
        metric,
        number: Some(if one_in(5) { "odd" } else { "ms" }.to_owned()),
        granularity: granularities[rng.below(5) as usize],
        group_by: [None, Some("model"), Some("country"), Some("seldom"), Some("unknown")]
            [rng.below(5) as usize]
            .map(str::to_owned),
        texts,
        numbers,
        groups_max: if one_in(2) { 5 } else { 1_000 },
        ..Query::count(
            Namespace(1),
            if one_in(5) { "view" } else { "call" },
            from_ms..from_ms + 1 + rng.below(20 * DAY_MS as u64) as i64,
        )
    }
}

/// The answer by definition: for each group and bucket a value, `None` for null.
/// Values by group, a bucket each.
type Expected = BTreeMap<Group, Vec<Option<f64>>>;

fn expected(facts: &[Fact], query: &Query) -> (Expected, u64) {
    let buckets = query.buckets().unwrap();
    let mut cells: BTreeMap<Group, Vec<Vec<&Fact>>> = BTreeMap::new();
    if query.group_by.is_none() {
        cells.insert(None, vec![Vec::new(); buckets.len()]);
    }
    let mut looked_at = 0;
    for fact in facts {
        let in_scope = fact.event == query.event
            && query.tenant.as_ref().is_none_or(|tenant| tenant == fact.tenant)
            && (query.from_ms..query.to_ms).contains(&fact.at);
        looked_at += u64::from(in_scope);
        let passes = in_scope
            && query.texts.iter().all(|filter| {
                fact.strings.get(&*filter.name).is_some_and(|value| filter.any_of.contains(value))
            })
            && query.numbers.iter().all(|filter| {
                fact.numbers
                    .get(&*filter.name)
                    .is_some_and(|value| (filter.min..=filter.max).contains(value))
            })
            && match query.metric {
                Metric::Count => true,
                Metric::Distinct | Metric::DistinctApprox => fact.user.is_some(),
                _ => fact.numbers.contains_key(query.number.as_deref().unwrap()),
            };
        if passes {
            let group = query
                .group_by
                .as_ref()
                .and_then(|name| fact.strings.get(&**name))
                .map(|value| Arc::from(&**value));
            let bucket = buckets.iter().rposition(|&start| start <= fact.at).unwrap();
            cells.entry(group).or_insert_with(|| vec![Vec::new(); buckets.len()])[bucket]
                .push(fact);
        }
    }
    let value = |facts: &Vec<&Fact>| evaluate(facts, query);
    (
        cells
            .into_iter()
            .map(|(group, cells)| (group, cells.iter().map(value).collect()))
            .collect(),
        looked_at,
    )
}

fn evaluate(facts: &[&Fact], query: &Query) -> Option<f64> {
    let mut numbers: Vec<f64> = facts
        .iter()
        .filter_map(|fact| fact.numbers.get(query.number.as_deref()?).copied())
        .collect();
    numbers.sort_by(f64::total_cmp);
    let some = |value: f64| (!numbers.is_empty()).then_some(value);
    match query.metric {
        Metric::Count => Some(facts.len() as f64),
        Metric::Distinct | Metric::DistinctApprox => {
            Some(facts.iter().filter_map(|fact| fact.user.as_ref()).collect::<BTreeSet<_>>().len()
                as f64)
        }
        Metric::Sum => Some(numbers.iter().sum()),
        Metric::Avg => some(numbers.iter().sum::<f64>() / numbers.len() as f64),
        Metric::Min => numbers.first().copied(),
        Metric::Max => numbers.last().copied(),
        Metric::Percentile(p) | Metric::PercentileApprox(p) => {
            let rank = f64::from(p) / 100.0 * (numbers.len().checked_sub(1)? as f64);
            let (low, high) = (numbers[rank.floor() as usize], numbers[rank.ceil() as usize]);
            Some(low + (high - low) * rank.fract())
        }
    }
}

fn close(a: Option<f64>, b: Option<f64>, tolerance: f64) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1e-9),
        (a, b) => a == b,
    }
}

fn compare(engine: &Engine, facts: &[Fact], query: &Query, what: &str) {
    let (expected, looked_at) = expected(facts, query);
    let of_rows = engine.query_rows(query, &|| false).unwrap();
    assert_eq!(of_rows.rows_scanned, looked_at, "{what}: rows looked at by {query:?}");
    compare_values(&of_rows, &expected, query, what);
    let answer = engine.query(query, &|| false).unwrap();
    compare_values(&answer, &expected, query, what);
    // What segments gave is known now.
    assert_eq!(engine.query(query, &|| false).unwrap(), answer, "{what}: again {query:?}");
}

fn compare_values(answer: &Answer, expected: &Expected, query: &Query, what: &str) {
    let groups: Vec<&Group> = answer.groups.iter().collect();
    assert_eq!(answer.groups_total, expected.len(), "{what}: groups of {query:?}");
    assert_eq!(groups.len(), expected.len().min(query.groups_max), "{what}: groups of {query:?}");
    let tolerance = match query.metric {
        Metric::DistinctApprox => 0.02,
        Metric::Count | Metric::Distinct | Metric::Min | Metric::Max => 0.0,
        _ => 1e-12,
    };
    for (group, values) in answer.groups.iter().zip(&answer.values) {
        let right = &expected[group];
        assert_eq!(values.len(), right.len());
        for (at, (value, right)) in values.iter().zip(right).enumerate() {
            assert!(
                close(value.as_f64(), *right, tolerance),
                "{what}: {group:?} bucket {at}: {value:?} is not {right:?} in {query:?}"
            );
        }
    }
    if query.granularity.is_none() {
        let totals: Vec<Option<f64>> =
            answer.values.iter().map(|values| values[0].as_f64()).collect();
        assert!(
            totals
                .windows(2)
                .all(|pair| pair[0].unwrap_or(f64::MIN) >= pair[1].unwrap_or(f64::MIN)),
            "{what}: order"
        );
    }
}

/// Days are over and quiet at once.
fn eager() -> CompactionLimits {
    CompactionLimits {
        reseal_after_ms: 0,
        rollup_rows_min: 20,
        ..CompactionLimits::without_waiting()
    }
}

fn engine_on(disk: &SimVfs) -> Engine {
    engine_with(disk, Limits { compaction: eager(), ..Limits::default() })
}

fn engine_with(disk: &SimVfs, limits: Limits) -> Engine {
    let rng = Arc::new(SeededRng::new(5));
    let options = Options { rng, limits, background: false, ..Options::default() };
    Engine::open(Arc::new(disk.clone()), options).unwrap()
}

/// How many histories are asked: `INLAY_QUESTION_SEEDS`, or as many as fit into everybody's tests.
fn seeds(usually: u64) -> u64 {
    let asked = std::env::var("INLAY_QUESTION_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    asked.unwrap_or(usually)
}

#[test]
fn every_answer_equals_the_definition() {
    for seed in 0..seeds(6) {
        let rng = SeededRng::new(seed);
        let facts = facts(&rng, 6_000);
        let other = self::facts(&rng, 500);
        let disk = SimVfs::new();
        let span_days_max = [1, 7, 56][seed as usize % 3];
        let compaction = CompactionLimits { span_days_max, ..eager() };
        let engine_on =
            |disk: &SimVfs| engine_with(disk, Limits { compaction, ..Limits::default() });
        let engine = engine_on(&disk);
        ingest(&engine, &other, 2);
        ingest(&engine, &facts[..2_000], 1);
        let mut asked: Vec<Query> = Vec::new();
        let mut ask = |engine: &Engine, facts: &[Fact], what: &str, count: usize| {
            for _ in 0..count {
                let mut query = question(&rng);
                // Questions come back, about other windows, when segments have come and gone.
                if asked.len() > 100 && rng.below(2) == 0 {
                    let before = &asked[rng.below(asked.len() as u64) as usize];
                    let Query { from_ms, to_ms, granularity, groups_max, .. } = query;
                    query = Query { from_ms, to_ms, granularity, groups_max, ..before.clone() };
                } else {
                    asked.push(query.clone());
                }
                compare(engine, facts, &query, &format!("seed {seed}, {what}"));
            }
        };
        ask(&engine, &facts[..2_000], "memory", 150);
        engine.flush().unwrap();
        ask(&engine, &facts[..2_000], "one segment", 200);
        ingest(&engine, &facts[2_000..4_000], 1);
        engine.flush().unwrap();
        ingest(&engine, &facts[4_000..], 1);
        ask(&engine, &facts, "segments and memory", 200);
        drop(engine);
        let engine = engine_on(&disk);
        ask(&engine, &facts, "after a restart", 150);
        engine.flush().unwrap();
        let mut steps = 0;
        while engine.compact_step().unwrap() {
            steps += 1;
            ask(&engine, &facts, "while days are parted and sealed", 15);
        }
        let steps_min = if span_days_max == 1 { 40 } else { 2 };
        assert!(steps >= steps_min, "{steps} steps for forty days");
        drop(engine);
        ask(&engine_on(&disk), &facts, "after another restart", 100);
    }
}

/// One more day, with rows for days that are sealed already.
#[test]
fn late_rows_of_sealed_days_count_at_once_and_after_sealing_again() {
    let rng = SeededRng::new(9);
    let facts = facts(&rng, 5_000);
    let disk = SimVfs::new();
    let engine = engine_on(&disk);
    let mut known = 3_000;
    ingest(&engine, &facts[..known], 1);
    engine.flush().unwrap();
    engine.compact().unwrap();
    for late in [1, 40, 300, 1_600] {
        ingest(&engine, &facts[known..known + late], 1);
        known += late;
        for what in ["in memory", "fresh", "merged"] {
            for _ in 0..25 {
                compare(&engine, &facts[..known], &question(&rng), &format!("{late} late {what}"));
            }
            if what == "in memory" {
                engine.flush().unwrap();
            } else {
                engine.compact().unwrap();
            }
        }
    }
    let segments = engine.stats().segments;
    assert!(segments <= 82, "{segments} segments for forty-one days");
}

/// Segments that are smaller than the days they come from: series are kept whole where they fit.
#[test]
fn days_that_do_not_fit_a_segment_are_cut() {
    let rng = SeededRng::new(10);
    let mut facts = facts(&rng, 20_000);
    for fact in &mut facts {
        fact.at = START_MS + (fact.at - START_MS) % (2 * DAY_MS);
    }
    let disk = SimVfs::new();
    let limits = Limits {
        compaction: CompactionLimits { segment_rows_max: 1_500, ..eager() },
        ..Limits::default()
    };
    let engine = engine_with(&disk, limits);
    for facts in facts.chunks(5_000) {
        ingest(&engine, facts, 1);
        engine.flush().unwrap();
        engine.compact().unwrap();
    }
    assert!(engine.stats().segments >= 14, "{} segments", engine.stats().segments);
    for _ in 0..150 {
        compare(&engine, &facts, &question(&rng), "cut");
    }
}

/// A segment of two blocks and one of one, which are so many rows that two threads read them.
#[test]
fn a_block_boundary_changes_nothing() {
    let disk = SimVfs::new();
    let engine = engine_on(&disk);
    let rng = SeededRng::new(77);
    let facts = facts(&rng, 150_000);
    for facts in facts.chunks(100_000) {
        ingest(&engine, facts, 1);
        engine.flush().unwrap();
    }
    for _ in 0..40 {
        compare(&engine, &facts, &question(&rng), "three blocks");
    }
}

/// Blocks of the inputs and of the output end at different rows.
#[test]
fn a_merge_over_block_boundaries_changes_nothing() {
    let disk = SimVfs::new();
    let engine = engine_on(&disk);
    let rng = SeededRng::new(78);
    let mut facts = facts(&rng, 150_000);
    for fact in &mut facts {
        fact.at = START_MS + (fact.at - START_MS) % (DAY_MS / 2);
    }
    for facts in facts.chunks(40_000) {
        ingest(&engine, facts, 1);
        engine.flush().unwrap();
    }
    engine.compact().unwrap();
    assert!(engine.stats().segments <= 2);
    for _ in 0..40 {
        compare(&engine, &facts, &question(&rng), "merged blocks");
    }
}

#[test]
fn impossible_questions_are_refused_by_name() {
    let engine = engine_on(&SimVfs::new());
    let query = Query {
        metric: Metric::Sum,
        groups_max: 10,
        ..Query::count(Namespace(1), "call", 0..START_MS)
    };
    let refused = |query: &Query| match engine.query(query, &|| false) {
        Err(Error::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&query), "numeric_prop");
    let query = Query { metric: Metric::Count, ..query };
    assert_eq!(
        refused(&Query { granularity: Some(Granularity::Hour), ..query.clone() }),
        "granularity"
    );
    assert_eq!(refused(&Query { from_ms: 5, to_ms: 4, ..query.clone() }), "from");
    let empty = engine
        .query(&Query { from_ms: START_MS, granularity: Some(Granularity::Day), ..query }, &|| {
            false
        })
        .unwrap();
    assert_eq!(empty.rows_scanned, 0);
}

#[test]
fn a_query_stops_when_it_is_told_to() {
    let disk = SimVfs::new();
    let engine = engine_on(&disk);
    let facts = facts(&SeededRng::new(1), 2_000);
    ingest(&engine, &facts, 1);
    engine.flush().unwrap();
    let query = Query {
        from_ms: 0,
        to_ms: START_MS * 2,
        granularity: None,
        ..question(&SeededRng::new(4))
    };
    let stopped = engine.query(&query, &|| true);
    assert!(matches!(stopped, Err(Error::Limit { limit: Limit::QueryTime, .. })), "{stopped:?}");
}

/// A dictionary of more than two blocks is searched on the disk for a value, until a question by group
/// has read it as a whole; both find what is there, at the ends of blocks too, and nothing else.
#[test]
fn values_of_a_large_dictionary_are_found_block_by_block() {
    const VALUES: usize = 140_000;
    let disk = SimVfs::new();
    let engine = engine_on(&disk);
    for first in (0..VALUES).step_by(20_000) {
        let mut batch = engine.batch(Namespace(1));
        for n in first..first + 20_000 {
            let trace = format!("trace-{:06}", n * 2);
            let event = Event {
                tenant: "t",
                name: "call",
                timestamp_ms: START_MS + n as i64,
                event_id: None,
                user_id: None,
            };
            batch.push(&event, &[("trace", &trace)], &[]).unwrap();
        }
        engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    }
    engine.flush().unwrap();
    let all = Query::count(Namespace(1), "call", START_MS..START_MS + VALUES as i64);
    let count = |value: String| {
        let texts = vec![TextFilter { name: "trace".into(), any_of: vec![value] }];
        let answer = engine.query(&Query { texts, ..all.clone() }, &|| false).unwrap();
        answer.values[0][0].as_f64().unwrap()
    };
    let compare = || {
        for n in [0, 1, 65_535, 65_536, 65_537, 131_071, 131_072, VALUES - 1] {
            assert_eq!(count(format!("trace-{:06}", n * 2)), 1.0, "{n}");
            assert_eq!(count(format!("trace-{:06}", n * 2 + 1)), 0.0, "behind {n}");
        }
        assert_eq!((count(String::new()), count("u".into())), (0.0, 0.0));
    };
    compare();
    assert!(engine.metrics().dictionary_bytes < 1 << 15, "nothing was read as a whole");
    engine.query(&Query { group_by: Some("trace".into()), ..all.clone() }, &|| false).unwrap();
    assert!(engine.metrics().dictionary_bytes > 1 << 20);
    compare();
}

/// Names, counts and properties of the events, from segments and memory, equal a loop over them.
#[test]
fn what_is_discovered_equals_a_loop_over_the_events() {
    let rng = SeededRng::new(31);
    let facts = facts(&rng, 6_000);
    let disk = SimVfs::new();
    let engine = engine_on(&disk);
    ingest(&engine, &self::facts(&rng, 500), 2);
    ingest(&engine, &facts[..3_000], 1);
    engine.flush().unwrap();
    engine.compact().unwrap();
    ingest(&engine, &facts[3_000..5_000], 1);
    engine.flush().unwrap();
    ingest(&engine, &facts[5_000..], 1);
    let hour = |ms: i64| Granularity::Hour.floor(ms);
    for (from, to) in [(0, 40), (5, 17)] {
        let window = hour(START_MS + from * DAY_MS)..hour(START_MS + to * DAY_MS) + 3_600_000;
        let found = engine.discover(Namespace(1), window.start, window.end - 1, &|| false).unwrap();
        assert_eq!(found.iter().map(|event| &*event.name).collect::<Vec<_>>(), ["call", "view"]);
        for event in found {
            let of_it: Vec<&Fact> = facts
                .iter()
                .filter(|fact| fact.event == event.name && window.contains(&fact.at))
                .collect();
            assert_eq!((event.count, event.rows_read), (of_it.len() as u64, of_it.len() as u64));
            assert_eq!(event.tenants, 3);
            assert_eq!(event.first_ms, of_it.iter().map(|fact| fact.at).min().unwrap());
            assert_eq!(event.last_ms, of_it.iter().map(|fact| fact.at).max().unwrap());
            let names: Vec<_> = event.texts.iter().map(|text| &*text.name).collect();
            assert_eq!(names, ["country", "model", "seldom"]);
            for text in &event.texts {
                let values = of_it.iter().filter_map(|fact| fact.strings.get(&*text.name));
                let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
                values.for_each(|value| *counts.entry(value).or_default() += 1);
                assert_eq!(text.present, counts.values().sum::<u64>());
                let distinct = counts.len() as f64;
                assert!((text.distinct_approx as f64 - distinct).abs() <= distinct * 0.02);
                let mut most: Vec<_> = counts.into_iter().collect();
                most.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
                let most: Vec<_> = most.into_iter().take(5).map(|(value, _)| value).collect();
                assert_eq!(text.samples, most, "{}", text.name);
            }
            let names: Vec<_> = event.numbers.iter().map(|number| &*number.name).collect();
            assert_eq!(names, ["ms", "odd"]);
            for number in &event.numbers {
                let values: Vec<f64> = of_it
                    .iter()
                    .filter_map(|fact| fact.numbers.get(&*number.name))
                    .copied()
                    .collect();
                assert_eq!(number.present, values.len() as u64);
                assert_eq!(number.min, values.iter().copied().fold(f64::INFINITY, f64::min));
                assert_eq!(number.max, values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                assert!((number.avg - mean).abs() <= mean.abs() * 1e-9);
            }
        }
    }
    assert_eq!(engine.discover(Namespace(3), 0, i64::MAX, &|| false).unwrap(), []);
    assert!(engine.discover(Namespace(1), 0, i64::MAX, &|| true).is_err());
}
