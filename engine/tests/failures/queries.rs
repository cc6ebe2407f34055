//! Queries that want too much, and answers that must not be wrong at the edges of numbers.

use super::*;

#[test]
fn percentiles_never_go_backwards() {
    let disk = SimVfs::new();
    let engine = open(&disk);
    let rng = SeededRng::new(12);
    let mut batch = engine.batch(Namespace(1));
    for _ in 0..5_000 {
        let number = match rng.below(4) {
            0 => -0.0,
            1 => rng.below(10) as f64,
            2 => -(rng.below(1_000) as f64) / 7.0,
            _ => (rng.below(1 << 50) as f64).sqrt(),
        };
        batch.push(&call_today(), &[], &[("ms", number)]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    for _ in 0..2 {
        let answers: Vec<f64> = (0..=100)
            .map(|percent| ask(&engine, &question(Metric::Percentile(percent))).unwrap())
            .collect();
        assert!(answers.is_sorted(), "{answers:?}");
        assert_eq!(answers[0], ask(&engine, &question(Metric::Min)).unwrap());
        assert_eq!(answers[100], ask(&engine, &question(Metric::Max)).unwrap());
        engine.flush().unwrap();
    }
}

#[test]
fn a_hungry_query_is_refused_and_others_go_on() {
    let disk = SimVfs::new();
    let engine = open(&disk);
    ingest(&engine, 0, 0, 20_000);
    for _ in 0..2 {
        let wide = Query {
            group_by: Some("model".into()),
            groups_max: 1_000,
            granularity: Some(Granularity::Hour),
            ..question(Metric::Count)
        };
        let refused = engine.query(&wide, &|| false);
        assert!(
            matches!(refused, Err(Error::Limit { limit: Limit::QueryMemory, .. })),
            "{refused:?}"
        );
        assert_eq!(count(&engine), 20_000);
        engine.flush().unwrap();
    }
}

/// States are charged to the query, and to all of them: one beyond its share is refused for good, one
/// that finds the shares of others taken waits for its own, and what was charged is given back.
#[test]
fn queries_share_a_bound_of_memory() {
    let disk = SimVfs::new();
    let limits =
        Limits { queries_bytes_max: 20 << 20, query_bytes_max: 12_200_000, ..Limits::default() };
    let engine = Engine::open(Arc::new(disk.clone()), options(limits)).unwrap();
    ingest(&engine, 0, 0, 30_000);
    engine.flush().unwrap();
    let groups = |metric| Query { group_by: Some("model".into()), ..question(metric) };
    // 30,000 groups of a count take 11.8 MB; with numbers in each they take more than a share, and with
    // digests too.
    let refused = engine.query(&groups(Metric::PercentileApprox(95)), &|| false);
    assert!(matches!(refused, Err(Error::Limit { limit: Limit::QueryMemory, .. })), "{refused:?}");
    assert_eq!(engine.metrics().query_bytes, 0);
    // While one runs, another like it does not fit and waits, and a small one is answered.
    ingest(&engine, 1, 30_000, 10);
    std::thread::scope(|scope| {
        let other = Mutex::new(None);
        let meanwhile = || {
            let mut other = other.lock().unwrap();
            if engine.metrics().query_bytes > 10 << 20 && other.is_none() {
                let waiting = scope.spawn(|| engine.query(&groups(Metric::Count), &|| false));
                std::thread::sleep(std::time::Duration::from_millis(500));
                assert!(!waiting.is_finished());
                assert_eq!(count(&engine), 30_010);
                *other = Some(waiting);
            }
            false
        };
        engine.query(&groups(Metric::Count), &meanwhile).unwrap();
        other.into_inner().unwrap().unwrap().join().unwrap().unwrap();
    });
    assert_eq!(engine.metrics().query_bytes, 0);
    engine.query(&groups(Metric::Count), &|| false).unwrap();
}

/// Approximate questions are answered exactly where that fits, and from sketches where it does not.
#[test]
fn approximate_answers_are_exact_while_there_is_memory() {
    const USERS: u32 = 20_000;
    for (query_bytes_max, is_exact) in [(Limits::default().query_bytes_max, true), (200_000, false)]
    {
        let disk = SimVfs::new();
        let limits = Limits { query_bytes_max, ..Limits::default() };
        let engine = Engine::open(Arc::new(disk.clone()), options(limits)).unwrap();
        ingest(&engine, 0, 0, USERS);
        // Half of the numbers do not fit, the largest twentieth does.
        let median = engine.query(&question(Metric::Percentile(50)), &|| false);
        assert_eq!(median.is_ok(), is_exact);
        let exact_high = ask(&engine, &question(Metric::Percentile(95))).unwrap();
        let users = ask(&engine, &question(Metric::DistinctApprox)).unwrap();
        assert!((exact_high / (0.95 * f64::from(USERS)) - 1.0).abs() < 1e-3, "{exact_high}");
        let high = ask(&engine, &question(Metric::PercentileApprox(95))).unwrap();
        assert_eq!(users == f64::from(USERS), is_exact, "{users}");
        assert!((users / f64::from(USERS) - 1.0).abs() < 0.02, "{users}");
        if is_exact {
            assert_eq!(high, exact_high);
        } else {
            assert!((high / exact_high - 1.0).abs() < 0.02, "{high}");
        }
    }
}
