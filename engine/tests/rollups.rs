//! A rollup answer equals the raw answer: every question is asked twice, with rollups and without.
//!
//! Random events (late ones, duplicates, missing properties) go through random flushes, merges, seals,
//! erasures and restarts. That rows themselves are answered rightly is what `queries.rs` compares with
//! an oracle.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use inlay_engine::*;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const TODAY_MS: i64 = 20_000 * DAY_MS;
const MODELS: [&str; 5] = ["small", "medium", "large", "tiny", ""];
const STATUSES: [&str; 3] = ["ok", "error", "late"];

/// Names of files are made by chance, so each start needs chance of its own. `days_later` the days of the events
/// stand alone, in their week, or in their eight weeks.
fn open_later(disk: &SimVfs, rows_min: u32, seed: u64, days_later: i64) -> Engine {
    let compaction = CompactionLimits {
        fan_in: 3,
        rollup_rows_min: rows_min,
        reseal_after_ms: 0,
        ..CompactionLimits::without_waiting()
    };
    let limits = Limits { compaction, log_file_bytes: 1 << 20, ..Limits::default() };
    let options = Options {
        clock: Arc::new(ManualClock::new(TODAY_MS + days_later * DAY_MS + DAY_MS / 2)),
        rng: Arc::new(SeededRng::new(seed)),
        limits,
        background: false,
        // Sketches are used for any number of rows.
        exact: ExactUpTo { users_rows: 0, numbers_rows: 0, digestless_numbers_rows: 0 },
    };
    Engine::open(Arc::new(disk.clone()), options).unwrap()
}

fn open(disk: &SimVfs, rows_min: u32, seed: u64) -> Engine {
    open_later(disk, rows_min, seed, 0)
}

fn pick<'a>(rng: &SeededRng, from: &[&'a str]) -> &'a str {
    from[rng.below(from.len() as u64) as usize]
}

/// A batch of random events; a tenth has been sent before.
fn ingest(engine: &Engine, rng: &SeededRng, count: u64) {
    let mut batch = engine.batch(Namespace(1));
    for _ in 0..count {
        let id = format!("id-{}", rng.below(60_000));
        let user = format!("user-{}", rng.below(200));
        // Most events are of the last days, in the middle of the day.
        let back = rng.below(4).min(rng.below(4)) as i64;
        let timestamp_ms = TODAY_MS - back * DAY_MS + rng.below(DAY_MS as u64 / 2) as i64;
        let event = Event {
            tenant: pick(rng, &["acme", "acme", "other"]),
            name: pick(rng, &["call", "call", "view"]),
            timestamp_ms,
            event_id: Some(&id),
            user_id: Some(&user),
        };
        let trace = rng.below(1 << 40).to_string();
        let mut strings = vec![("trace", &*trace)];
        if rng.below(10) > 0 {
            strings.push(("model", pick(rng, &MODELS)));
        }
        if rng.below(3) > 0 {
            strings.push(("status", pick(rng, &STATUSES)));
        }
        let ms = rng.below(100_000) as f64 / 8.0 - 2_000.0;
        let cost = rng.below(1 << 50) as f64 * 1e-7;
        let numbers = [("ms", ms), ("cost", cost)];
        let skipped = rng.below(4) as usize;
        batch.push(&event, &strings, &numbers[skipped.min(2)..]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
}

fn question(rng: &SeededRng) -> Query {
    let metrics = [
        Metric::Count,
        Metric::Count,
        Metric::Sum,
        Metric::Avg,
        Metric::Min,
        Metric::Max,
        Metric::Distinct,
        Metric::Percentile(95),
        Metric::DistinctApprox,
        Metric::DistinctApprox,
        Metric::PercentileApprox(95),
        Metric::PercentileApprox(95),
    ];
    let metric = metrics[rng.below(12) as usize];
    let granularities =
        [None, Some(Granularity::Hour), Some(Granularity::Day), Some(Granularity::Week)];
    let filter = |name: &str, values: &[&str]| {
        let any_of = (0..=rng.below(2)).map(|_| pick(rng, values).to_owned()).collect();
        TextFilter { name: name.into(), any_of }
    };
    let mut texts = Vec::new();
    if rng.below(3) == 0 {
        texts.push(filter("model", &MODELS));
    }
    if rng.below(4) == 0 {
        texts.push(filter("status", &["ok", "error", "unknown"]));
    }
    let number = if rng.below(2) == 0 { "ms" } else { "cost" };
    // Whole hours mostly, and any instants.
    let from_ms = TODAY_MS - rng.below(4 * 24) as i64 * HOUR_MS;
    let to_ms = from_ms + (1 + rng.below(5 * 24) as i64) * HOUR_MS;
    let ragged = if rng.below(3) == 0 { rng.below(HOUR_MS as u64) as i64 } else { 0 };
    Query {
        tenant: (rng.below(3) > 0).then(|| pick(rng, &["acme", "other"]).to_owned()),
        metric,
        number: Some(number.into()),
        granularity: granularities[rng.below(4) as usize],
        group_by: [None, None, Some("model"), Some("status"), Some("trace")][rng.below(5) as usize]
            .map(str::to_owned),
        texts,
        groups_max: 1 + rng.below(8) as usize,
        ..Query::count(
            Namespace(1),
            pick(rng, &["call", "view"]),
            from_ms + ragged..to_ms + ragged / 2,
        )
    }
}

/// Digests of parts that were brought together otherwise: the same groups, and nearly the same values. The
/// least valued groups may be others.
fn alike(a: &Answer, b: &Answer, query: &Query) {
    assert_eq!((&a.buckets, a.groups_total), (&b.buckets, b.groups_total), "{query:?}");
    let range = if query.number.as_deref() == Some("ms") { 12_500.0 } else { 1.13e8 };
    for (group, values) in a.groups.iter().zip(&a.values) {
        let Some(at) = b.groups.iter().position(|other| other == group) else {
            assert!(a.groups_total > query.groups_max, "{group:?} is missing: {query:?}");
            continue;
        };
        for (a, b) in values.iter().zip(&b.values[at]) {
            match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => assert!((a - b).abs() < range * 0.01, "{a} {b} {query:?}"),
                (a, b) => assert_eq!(a, b, "{query:?}"),
            }
        }
    }
}

/// How many histories are asked: `INLAY_QUESTION_SEEDS`, or as many as fit into everybody's tests.
fn seeds(usually: u64) -> u64 {
    let asked = std::env::var("INLAY_QUESTION_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    asked.unwrap_or(usually)
}

#[test]
fn answers_from_rollups_equal_answers_from_rows() {
    let (mut from_days, mut from_hours) = (0, 0);
    for seed in 0..seeds(12) {
        let rng = SeededRng::new(seed);
        let disk = SimVfs::new();
        let rows_min = [1, 50, 500][rng.below(3) as usize];
        let mut days_later = [0, 9, 70][seed as usize % 3];
        let mut engine = open_later(&disk, rows_min, seed, days_later);
        let mut asked: Vec<Query> = Vec::new();
        for round in 0..12 {
            ingest(&engine, &rng, 200 + rng.below(1_500));
            match rng.below(8) {
                0 => {
                    drop(engine);
                    days_later = days_later.max([0, 9, 70][rng.below(3) as usize]);
                    engine = open_later(&disk, rows_min, 1_000 + seed * 100 + round, days_later);
                }
                1 => {
                    let user = format!("user-{}", rng.below(200));
                    let whose = Whose::User { tenant: "acme", user: &user };
                    engine
                        .transact(|txn| Ok::<_, Error>(engine.erase(txn, Namespace(1), &whose)))
                        .unwrap();
                }
                2..5 => engine.flush().unwrap(),
                _ => {
                    engine.flush().unwrap();
                    engine.compact().unwrap();
                }
            }
            for _ in 0..40 {
                let mut query = question(&rng);
                // Questions come back, about other windows, when segments have come and gone.
                match asked.get(rng.below(200) as usize) {
                    Some(before) => {
                        let Query { from_ms, to_ms, granularity, groups_max, .. } = query;
                        query = Query { from_ms, to_ms, granularity, groups_max, ..before.clone() };
                    }
                    None => asked.push(query.clone()),
                }
                let fast = engine.query(&query, &|| false).unwrap();
                let slow = engine.query_rows(&query, &|| false).unwrap();
                if let Metric::PercentileApprox(_) = query.metric {
                    alike(&fast, &slow, &query);
                } else {
                    let shown = |answer: &Answer| {
                        (
                            answer.buckets.clone(),
                            answer.groups.clone(),
                            answer.values.clone(),
                            answer.groups_total,
                        )
                    };
                    assert_eq!(shown(&fast), shown(&slow), "seed {seed}: {query:?}");
                }
                let again = engine.query(&query, &|| false).unwrap();
                assert_eq!(again, fast, "seed {seed}: again {query:?}");
                assert_eq!(slow.rollup, None);
                from_days += u64::from(fast.rollup == Some(RollupGrain::Day));
                from_hours += u64::from(fast.rollup == Some(RollupGrain::Hour));
            }
        }
        // Their bytes are what the rows add up to.
        let problems = Inspection::open(disk.clone()).unwrap().verify(&mut |_| ()).problems;
        assert_eq!(problems, []);
    }
    assert!(from_days > 300 && from_hours > 100, "{from_days} by day, {from_hours} by hour");
}

/// What was measured to be cheap is cheap: a dashboard's questions read no rows of sealed days.
#[test]
fn questions_about_sealed_days_read_no_rows() {
    let disk = SimVfs::new();
    let engine = open(&disk, 100, 1);
    let rng = SeededRng::new(9);
    (0..3).for_each(|_| ingest(&engine, &rng, 20_000));
    engine.flush().unwrap();
    engine.compact().unwrap();
    let ask_of = |tenant: Option<&str>, metric, group: Option<&str>, filter, hours: bool| {
        let filter: Option<(&str, &str)> = filter;
        let query = Query {
            tenant: tenant.map(str::to_owned),
            metric,
            number: Some("ms".into()),
            granularity: Some(if hours { Granularity::Hour } else { Granularity::Day }),
            group_by: group.map(str::to_owned),
            texts: filter
                .map(|(name, value)| TextFilter { name: name.into(), any_of: vec![value.into()] })
                .into_iter()
                .collect(),
            ..Query::count(Namespace(1), "call", TODAY_MS - DAY_MS..TODAY_MS + DAY_MS)
        };
        let answer = engine.query(&query, &|| false).unwrap();
        (answer.rollup, answer.rows_scanned)
    };
    let ask = |metric, group, filter, hours| ask_of(Some("acme"), metric, group, filter, hours);
    let of_all = |metric, group, filter| ask_of(None, metric, group, filter, false);
    let (day, hour) = (Some(RollupGrain::Day), Some(RollupGrain::Hour));
    let model = Some(("model", "large"));
    let questions = [
        // The directory of runs counts hours.
        (ask(Metric::Count, None, None, false), hour),
        (ask(Metric::Count, None, model, false), day),
        (ask(Metric::Count, Some("model"), None, false), day),
        (ask(Metric::Count, Some("status"), model, false), day),
        (ask(Metric::Avg, None, None, false), day),
        (ask(Metric::Max, None, model, false), day),
        (ask(Metric::Sum, Some("status"), None, false), day),
        (ask(Metric::Count, None, None, true), hour),
        (ask(Metric::Count, None, model, true), hour),
        (ask(Metric::Sum, None, None, true), hour),
        (ask(Metric::DistinctApprox, None, None, false), day),
        (ask(Metric::PercentileApprox(95), None, None, false), day),
        (ask(Metric::Distinct, None, None, false), day),
        (ask(Metric::Distinct, None, model, false), day),
        (ask(Metric::Distinct, Some("status"), None, false), day),
        (of_all(Metric::Count, None, None), hour),
        (of_all(Metric::Count, Some("model"), Some(("status", "ok"))), day),
        (of_all(Metric::Sum, None, model), day),
        (of_all(Metric::DistinctApprox, None, None), day),
        (of_all(Metric::DistinctApprox, Some("status"), None), day),
        (of_all(Metric::PercentileApprox(95), None, None), day),
    ];
    for (at, (asked, grain)) in questions.into_iter().enumerate() {
        assert_eq!(asked, (grain, 0), "question {at}");
    }
    let pairs = ask(Metric::Distinct, Some("status"), model, false);
    assert!(pairs.0.is_none() && pairs.1 > 1_000, "these need rows still");
    // Days add up to both together without rows, though no rollup is of that bucket.
    let both = Query {
        tenant: Some("acme".into()),
        metric: Metric::Distinct,
        ..Query::count(Namespace(1), "call", TODAY_MS - DAY_MS..TODAY_MS + DAY_MS)
    };
    let answer = engine.query(&both, &|| false).unwrap();
    assert_eq!((answer.rollup, answer.rows_scanned), (None, 0));
    assert_eq!(answer.values, engine.query_rows(&both, &|| false).unwrap().values);
}

/// A bucket that is one day of a series counts users without their set; rows in memory, a second segment and totals
/// over days need the sets.
#[test]
fn users_of_days_are_counted_once_wherever_their_rows_are() {
    let disk = SimVfs::new();
    let engine = open(&disk, 100, 1);
    let rng = SeededRng::new(4);
    let check = |what: &str| {
        for (group_by, model) in
            [(None, None), (Some("model"), None), (None, Some("large")), (Some("status"), None)]
        {
            // Days of UTC, weeks, all of it, and days of another time zone.
            let zoned = (-4..1).map(|day| TODAY_MS + day * DAY_MS + 22 * HOUR_MS).collect();
            for (granularity, starts) in [
                (Some(Granularity::Day), None),
                (Some(Granularity::Week), None),
                (None, None),
                (Some(Granularity::Day), Some(zoned)),
            ] {
                let query = Query {
                    tenant: Some("acme".into()),
                    metric: Metric::Distinct,
                    granularity,
                    starts,
                    group_by: group_by.map(str::to_owned),
                    texts: model
                        .map(|value: &str| TextFilter {
                            name: "model".into(),
                            any_of: vec![value.into(), "tiny".into()],
                        })
                        .into_iter()
                        .collect(),
                    ..Query::count(Namespace(1), "call", TODAY_MS - 3 * DAY_MS..TODAY_MS + DAY_MS)
                };
                let rows = engine.query_rows(&query, &|| false).unwrap();
                for ask in 0..3 {
                    let answer = engine.query(&query, &|| false).unwrap();
                    assert_eq!(
                        (&answer.groups, &answer.values),
                        (&rows.groups, &rows.values),
                        "{what}, ask {ask}: {query:?}"
                    );
                }
                let anew = engine.query_uncached(&query, &|| false).unwrap();
                assert_eq!((&anew.groups, &anew.values), (&rows.groups, &rows.values), "{what}");
            }
        }
    };
    ingest(&engine, &rng, 8_000);
    engine.flush().unwrap();
    engine.compact().unwrap();
    check("one segment");
    ingest(&engine, &rng, 500);
    check("rows in memory");
    engine.flush().unwrap();
    check("two segments");
    engine.compact().unwrap();
    check("merged");
}

/// Days that are counted by their number of users stand in one answer with days whose rows helper threads read.
#[test]
fn counted_days_stand_beside_days_that_helpers_read() {
    let disk = SimVfs::new();
    let engine = open(&disk, 100, 1);
    ingest(&engine, &SeededRng::new(4), 8_000);
    engine.flush().unwrap();
    engine.compact().unwrap();
    // Two fresh segments, each with enough rows for one more thread.
    for (day, users) in [(0, 700u64), (5, 900)] {
        for first in (0..70_000u64).step_by(10_000) {
            let mut batch = engine.batch(Namespace(1));
            for n in first..first + 10_000 {
                let user = format!("helped-{}", n % users);
                let event = Event {
                    tenant: "acme",
                    name: "call",
                    timestamp_ms: TODAY_MS - day * DAY_MS + n as i64,
                    event_id: None,
                    user_id: Some(&user),
                };
                batch.push(&event, &[], &[]).unwrap();
            }
            engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
        }
        engine.flush().unwrap();
    }
    let query = Query {
        tenant: Some("acme".into()),
        metric: Metric::Distinct,
        granularity: Some(Granularity::Day),
        // Of these days a part is asked for, and sets of users are of whole days.
        ..Query::count(Namespace(1), "call", TODAY_MS - 5 * DAY_MS + 5..TODAY_MS + 69_000)
    };
    let rows = engine.query_rows(&query, &|| false).unwrap();
    for ask in 0..3 {
        let answer = engine.query(&query, &|| false).unwrap();
        assert_eq!(answer.values, rows.values, "ask {ask}");
        assert_eq!(answer.values[0][..2], [Value::Integer(900), Value::Integer(0)], "ask {ask}");
        // The merged days have 200 users and some thousand rows; those of today are a few more.
        assert!(answer.values[0][2..].iter().all(|value| value.as_f64() > Some(30.0)));
        assert!((138_995..139_995).contains(&answer.rows_scanned), "{}", answer.rows_scanned);
    }
}

/// Twenty thousand calls of one tenant and three users; of each its time and its number.
fn ingest_calls(engine: &Engine, of: impl Fn(i64) -> (i64, f64)) {
    for first in (0..20_000).step_by(5_000) {
        let mut batch = engine.batch(Namespace(1));
        for n in first..first + 5_000 {
            let (user, (timestamp_ms, ms)) = (format!("user-{}", n % 3), of(n));
            let event = Event {
                tenant: "acme",
                name: "call",
                timestamp_ms,
                event_id: None,
                user_id: Some(&user),
            };
            batch.push(&event, &[], &[("ms", ms)]).unwrap();
        }
        engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    }
}

/// Sketches by hour: many rows of few users and few numbers, so that even hours are worth theirs.
#[test]
fn hours_of_sketches_answer() {
    let disk = SimVfs::new();
    let engine = open(&disk, 100, 1);
    ingest_calls(&engine, |n| (TODAY_MS - DAY_MS + n * 300, (n % 100) as f64));
    engine.flush().unwrap();
    engine.compact().unwrap();
    for metric in [Metric::DistinctApprox, Metric::PercentileApprox(95)] {
        let query = Query {
            tenant: Some("acme".into()),
            metric,
            number: Some("ms".into()),
            granularity: Some(Granularity::Hour),
            ..Query::count(Namespace(1), "call", TODAY_MS - DAY_MS..TODAY_MS)
        };
        let answer = engine.query_uncached(&query, &|| false).unwrap();
        assert_eq!(answer.rollup, Some(RollupGrain::Hour), "{metric:?}");
        assert!(answer.rows_scanned < 30, "{metric:?}: {}", answer.rows_scanned);
        let rows = engine.query_rows(&query, &|| false).unwrap();
        alike(&answer, &rows, &query);
    }
}

/// Counts of a segment that is too fresh for rollups are those of its run directory: an attempt answers them, and not
/// questions that read as many rows.
#[test]
fn attempts_count_in_fresh_segments() {
    let disk = SimVfs::new();
    let engine = open(&disk, 100, 1);
    ingest_calls(&engine, |n| (TODAY_MS - 2 * DAY_MS + n * 8_000, n as f64));
    engine.flush().unwrap();
    let attempt = |metric| {
        let query = Query {
            tenant: Some("acme".into()),
            metric,
            number: Some("ms".into()),
            granularity: Some(Granularity::Day),
            ..Query::count(Namespace(1), "call", TODAY_MS - 2 * DAY_MS..TODAY_MS)
        };
        assert_eq!(engine.explain(&query).unwrap()[0].level, "fresh");
        engine.try_query(&query, 1_000, &|| false).unwrap()
    };
    let counted = attempt(Metric::Count).unwrap();
    assert_eq!(counted.values, [[Value::Integer(10_800), Value::Integer(9_200)]]);
    assert_eq!(counted.rows_scanned, 0);
    assert!(attempt(Metric::Sum).is_none());
}

/// What is looked at for one tenant does not grow with what others have.
#[test]
fn other_tenants_cost_a_tenant_nothing() {
    let looked_at = |others: i64| {
        let disk = SimVfs::new();
        let engine = open(&disk, 100, 1);
        for tenant in 0..=others {
            let tenant = format!("tenant-{tenant}");
            let mut batch = engine.batch(Namespace(1));
            for n in 0..500 {
                let event = Event {
                    tenant: &tenant,
                    name: "call",
                    timestamp_ms: TODAY_MS - DAY_MS + n * 100_000,
                    event_id: None,
                    user_id: None,
                };
                let model = MODELS[n as usize % 3];
                batch.push(&event, &[("model", model)], &[("ms", n as f64)]).unwrap();
            }
            engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
        }
        engine.flush().unwrap();
        engine.compact().unwrap();
        let shapes = [(Metric::Count, None), (Metric::Count, Some("model")), (Metric::Sum, None)];
        shapes.map(|(metric, group_by)| {
            let query = Query {
                tenant: Some("tenant-0".into()),
                metric,
                number: Some("ms".into()),
                granularity: Some(Granularity::Day),
                group_by: group_by.map(str::to_owned),
                ..Query::count(Namespace(1), "call", TODAY_MS - DAY_MS..TODAY_MS)
            };
            let answer = engine.query_uncached(&query, &|| false).unwrap();
            let plan = engine.explain(&query).unwrap();
            (answer.rows_scanned, answer.rollup, plan[0].rows, plan[0].by_day, plan.len())
        })
    };
    assert_eq!(looked_at(0), looked_at(50));
}

/// What explains an answer says what it is made of: of few rows no sketches are kept.
#[test]
fn explained_rollups_are_those_that_answer() {
    let disk = SimVfs::new();
    let engine = open(&disk, 1, 3);
    let mut batch = engine.batch(Namespace(1));
    for n in 0..200 {
        let user = format!("user-{n}");
        let event = Event {
            tenant: "acme",
            name: "call",
            timestamp_ms: TODAY_MS - DAY_MS + n * 1_000,
            event_id: None,
            user_id: Some(&user),
        };
        batch.push(&event, &[("model", "large")], &[("ms", n as f64)]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    engine.flush().unwrap();
    engine.compact().unwrap();
    let explained = |metric, tenant: Option<&str>| {
        let query = Query {
            tenant: tenant.map(str::to_owned),
            metric,
            number: Some("ms".into()),
            ..Query::count(Namespace(1), "call", TODAY_MS - DAY_MS..TODAY_MS)
        };
        let steps = engine.explain(&query).unwrap();
        let is_rolled_up = steps.iter().any(|step| step.rolled_up > 0);
        let answer = engine.query_uncached(&query, &|| false).unwrap();
        assert_eq!(is_rolled_up, answer.rollup.is_some(), "{metric:?} {tenant:?}: {steps:?}");
        is_rolled_up
    };
    for tenant in [Some("acme"), None] {
        assert!(explained(Metric::Count, tenant) && explained(Metric::Sum, tenant));
        assert!(!explained(Metric::DistinctApprox, tenant));
        assert!(!explained(Metric::Percentile(95), tenant));
    }
    // Two tenants with too few rows each, and enough of them together.
    let event_of_all = Query {
        metric: Metric::Sum,
        number: Some("ms".into()),
        ..Query::count(Namespace(1), "shared", TODAY_MS - DAY_MS..TODAY_MS)
    };
    let mut batch = engine.batch(Namespace(1));
    for (n, tenant) in ["acme", "acme", "other", "other"].into_iter().enumerate() {
        let timestamp_ms = TODAY_MS - DAY_MS + n as i64;
        let event = Event { tenant, name: "shared", timestamp_ms, event_id: None, user_id: None };
        batch.push(&event, &[], &[("ms", 1.0)]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    engine.flush().unwrap();
    engine.compact().unwrap();
    let answer = engine.query_uncached(&event_of_all, &|| false).unwrap();
    assert_eq!(answer.rollup, Some(RollupGrain::Day));
    let steps = engine.explain(&event_of_all).unwrap();
    let by_day: u64 = steps.iter().map(|step| step.by_day).sum();
    assert_eq!((by_day, steps[0].rejected), (4, None), "{steps:?}");
}

/// Every reason for which rows are read is told, and how much of an answer comes from where.
#[test]
fn a_plan_is_told_in_words() {
    let disk = SimVfs::new();
    let engine = open(&disk, 100, 1);
    let put = |tenant: &str, day: i64, count: i64, every_ms: i64| {
        let mut batch = engine.batch(Namespace(1));
        for n in 0..count {
            let timestamp_ms = TODAY_MS - day * DAY_MS + n * every_ms;
            let event = Event { tenant, name: "call", timestamp_ms, event_id: None, user_id: None };
            let texts = [("model", MODELS[n as usize % 3]), ("trace", "x")];
            batch.push(&event, &texts, &[("ms", n as f64), ("cost", 1.0)]).unwrap();
        }
        engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    };
    // A row every half minute of a day, and for another tenant a few.
    put("acme", 3, 2_880, 30_000);
    put("tiny", 3, 5, 600_000);
    engine.flush().unwrap();
    engine.compact().unwrap();
    put("acme", 0, 7, 1_000);
    let day = TODAY_MS - 3 * DAY_MS;
    let query = Query {
        tenant: Some("acme".into()),
        number: Some("ms".into()),
        ..Query::count(Namespace(1), "call", day..day + DAY_MS)
    };
    let told = |change: &dyn Fn(&mut Query)| {
        let mut query = query.clone();
        change(&mut query);
        let mut steps = engine.explain(&query).unwrap();
        steps[0].source = "S".to_owned();
        steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let text = |name: &str| TextFilter { name: name.into(), any_of: vec!["x".into()] };
    type Change<'a> = &'a dyn Fn(&mut Query);
    let table: [(Change<'_>, &str); 15] = [
        (&|_| (), "2880 rows of 1 series, 2880 by hour"),
        (&|query| query.group_by = Some("model".into()), "2880 rows of 1 series, 2880 by day"),
        (
            &|query| query.granularity = Some(Granularity::Hour),
            "2880 rows of 1 series, 2880 by hour",
        ),
        (&|query| query.to_ms = day + 7 * HOUR_MS, "840 rows of 1 series, 840 by hour"),
        (
            &|query| {
                query.metric = Metric::Sum;
                (query.from_ms, query.to_ms) = (day + HOUR_MS / 2, day + 7 * HOUR_MS);
            },
            "780 rows of 1 series, 720 by hour, 60 read: parts of days or hours are read",
        ),
        (
            &|query| {
                query.metric = Metric::Sum;
                query.group_by = Some("model".into());
                query.to_ms = day + 7 * HOUR_MS;
            },
            "840 rows of 1 series, 840 read: parts of days or hours are read",
        ),
        (
            &|query| {
                query.metric = Metric::Sum;
                query.tenant = Some("tiny".into());
            },
            "5 rows of 1 series, 5 read: series have too few rows for it",
        ),
        (
            &|query| query.metric = Metric::PercentileApprox(95),
            "2880 rows of 1 series, 2880 read: it is not kept of all series",
        ),
        (
            &|query| query.metric = Metric::Percentile(95),
            "2880 rows of 1 series, 2880 read: exact percentiles need every number",
        ),
        (&|query| query.metric = Metric::Distinct, "2880 rows of 1 series, 2880 by day"),
        (
            &|query| query.texts = vec![text("trace")],
            "2880 rows of 1 series, 2880 read: a property is no rollup dimension",
        ),
        (
            &|query| query.texts = vec![text("model"), text("model")],
            "2880 rows of 1 series, 2880 read: a dimension is filtered twice",
        ),
        (
            &|query| {
                query.numbers = vec![NumberFilter { name: "ms".into(), min: 1.0, max: 2.0 }];
            },
            "2880 rows of 1 series, 2880 read: a range of a number is no dimension",
        ),
        (
            &|query| {
                query.metric = Metric::Max;
                query.texts = vec![text("model"), text("plan")];
            },
            "2880 rows of 1 series, 2880 read: pairs are counted only",
        ),
        (
            &|query| query.texts = vec![text("model"), text("plan"), text("status")],
            "2880 rows of 1 series, 2880 read: more than two dimensions",
        ),
    ];
    for (at, (change, expected)) in table.into_iter().enumerate() {
        let expected = format!("sealed S: {expected}; memory memtable: no such rows");
        assert_eq!(told(change), expected, "question {at}");
    }
    assert_eq!(
        told(&|query| (query.from_ms, query.to_ms) = (TODAY_MS, TODAY_MS + DAY_MS)),
        "sealed S: outside the window; memory memtable: 7 rows of 1 series, 7 read: rows in memory \
         have no rollups"
    );
    let nobody = told(&|query| query.tenant = Some("nobody".into()));
    assert_eq!(nobody, "sealed S: no such series; memory memtable: no such rows");
}
