//! Scans of an engine's rows, in segments and in memory, here and where they are handed over to.

use std::{collections::BTreeMap, ops::Range};

use super::*;
use crate::{
    Engine, Error, Event, Limits, ManualClock, NumberFilter, Options, Query, TextFilter,
    base::time::HOUR_MS,
    scan::{
        Column, EventIdCondition, Filter, Grain, HourStates, NumberState, SeriesFilter,
        StateSelection, TextMatch, TextTable, TimeBuckets, UserState, Values,
    },
};

const DAY_MS: i64 = 24 * HOUR_MS;
const NOW_MS: i64 = 20_000 * DAY_MS;

/// All files are whole.
fn no_parts() -> LoadParts {
    Arc::new(|_, _| Err(io::ErrorKind::Unsupported.into()))
}

/// An engine without rows, in which they expire after thirty days.
fn empty_engine(directory: &Path) -> Engine {
    let options = Options {
        clock: Arc::new(ManualClock::new(NOW_MS)),
        background: false,
        limits: Limits { retention_days: Some(30), ..Limits::default() },
        ..Options::default()
    };
    Engine::open_directory(directory, options).unwrap()
}

/// An engine with rows of two namespaces, some in segments, some in memory, some expired.
fn engine(directory: &Path) -> Engine {
    let engine = empty_engine(directory);
    for part in 0..4 {
        for namespace in [1, 2] {
            let mut batch = engine.batch(Namespace(namespace));
            for n in (0..3_000u32).map(|n| n * 4 + part) {
                let (id, user) = (format!("e{n}"), format!("u{}", n % 500));
                let event = Event {
                    tenant: ["acme", "beta", "core"][n as usize % 3],
                    name: ["call", "login"][n as usize % 2],
                    timestamp_ms: NOW_MS - i64::from(n % 977) * HOUR_MS - i64::from(n),
                    event_id: n.is_multiple_of(2).then_some(&id),
                    user_id: (!n.is_multiple_of(7)).then_some(&user),
                };
                let plan = format!("plan {}", n % 5 * namespace);
                let texts = [("plan", &*plan), ("rare", "x")];
                let texts = &texts[..1 + usize::from(n.is_multiple_of(100))];
                let numbers = &[("ms", f64::from(n % 300) / 4.0)][..usize::from(n % 11 > 0)];
                batch.push(&event, texts, numbers).unwrap();
            }
            engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
        }
        if part < 3 {
            engine.flush().unwrap();
        }
        if part == 1 {
            engine.compact().unwrap();
        }
    }
    engine
}

#[test]
fn blocks_are_checked_ahead_until_it_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let list = engine.snapshot(Namespace(1)).list();
    let open = || OpenSegments::open(directory.path(), list.clone(), &no_parts()).unwrap();
    let opened = open();
    let all = opened.verify_ahead(&|| false);
    assert!(all > 0);
    assert_eq!(opened.verify_ahead(&|| false), 0, "all of them were checked before");
    assert_eq!(open().verify_ahead(&|| true), 0);
    let asked = std::cell::Cell::new(0);
    let some = open().verify_ahead(&|| {
        asked.set(asked.get() + 1);
        asked.get() > 2
    });
    assert!(0 < some && some < all, "{some} of {all}");
}

fn text(values: &Values, row: usize) -> String {
    let bytes = match values {
        Values::Codes(codes, table) => match codes[row].checked_sub(1) {
            Some(code) => table.at(code as usize),
            None => b"-",
        },
        Values::Texts(table) => table.at(row),
        _ => unreachable!("a column of texts"),
    };
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// All rows of a scan as one line each, sorted.
fn lines(scan: &Scan, filter: &Filter, from_ms: i64, to_ms: i64) -> Vec<String> {
    let mut lines = Vec::new();
    for source in scan.sources() {
        let tenants = ["acme", "beta"].map(str::to_owned);
        let series_filter = SeriesFilter { tenants: Some(&tenants), names: None };
        for morsel in source.morsels(series_filter, &(from_ms..to_ms)).unwrap() {
            if source.excludes(&morsel, filter).unwrap() {
                continue;
            }
            let marks = source.passing(&morsel, filter).unwrap();
            let read = |column: Column| {
                let mut values = source.read(&morsel, &column).unwrap();
                marks.iter().for_each(|marks| values.retain(marks));
                values
            };
            let series = morsel.row_ranges.iter().flat_map(|row_range| {
                row_range.rows.clone().map(|_| &source.series()[row_range.series])
            });
            let mut at = 0..;
            let is_kept = |_: &&_| marks.as_ref().is_none_or(|marks| marks[at.next().unwrap()]);
            let series: Vec<_> = series.filter(is_kept).collect();
            let Values::Times(times) = read(Column::Time) else { unreachable!() };
            let Values::Numbers(ms) = read(Column::Number("ms".to_owned())) else { unreachable!() };
            let (ids, users) = (read(Column::EventId), read(Column::User));
            let (plan, rare) =
                (read(Column::Text("plan".to_owned())), read(Column::Text("rare".to_owned())));
            let none = read(Column::Text("nobody has it".to_owned()));
            for row in 0..times.len() {
                lines.push(format!(
                    "{} {} {} {} {} {} {} {} {}",
                    source.tenants().text(series[row].tenant as usize),
                    source.names()[series[row].name as usize],
                    times[row],
                    text(&ids, row),
                    // By code or as a text, as there are more rows or more users.
                    text(&users, row).trim_start_matches('-'),
                    text(&plan, row),
                    text(&rare, row),
                    ms[row],
                    text(&none, row),
                ));
            }
        }
    }
    lines.sort();
    lines
}

/// The same rows, from how they were made.
fn expected(passes: impl Fn(u32) -> bool, from_ms: i64, to_ms: i64) -> Vec<String> {
    let time = |n: u32| NOW_MS - i64::from(n % 977) * HOUR_MS - i64::from(n);
    let is_shown = |n: &u32| {
        n % 3 != 2 && (from_ms..to_ms).contains(&time(*n)) && time(*n) >= NOW_MS - 30 * DAY_MS
    };
    let or = |is: bool, text: String, or: &str| if is { text } else { or.to_owned() };
    let mut lines: Vec<String> = (0..12_000)
        .filter(is_shown)
        .filter(|n| passes(*n))
        .map(|n| {
            let ms = if n % 11 > 0 { f64::from(n % 300) / 4.0 } else { f64::NAN };
            format!(
                "{} {} {} {} {} plan {} {} {ms} -",
                ["acme", "beta", "core"][n as usize % 3],
                ["call", "login"][n as usize % 2],
                time(n),
                or(n.is_multiple_of(2), format!("e{n}"), ""),
                or(!n.is_multiple_of(7), format!("u{}", n % 500), ""),
                n % 5,
                or(n.is_multiple_of(100), "x".to_owned(), "-"),
            )
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn a_scan_shows_the_rows_of_its_namespace_here_and_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let snapshot = engine.snapshot(Namespace(1));
    let here = snapshot.open().unwrap();
    let elsewhere = Scan::receive(directory.path(), snapshot.hand_over()).unwrap();
    assert!(here.sources().len() >= 3);
    let odd = NOW_MS - 3 * DAY_MS - 12_345;
    for (from_ms, to_ms) in [(i64::MIN, i64::MAX), (odd, NOW_MS), (odd - DAY_MS, odd), (0, 1)] {
        let all = expected(|_| true, from_ms, to_ms);
        assert_eq!(lines(&here, &Filter::default(), from_ms, to_ms), all);
        assert_eq!(lines(&elsewhere, &Filter::default(), from_ms, to_ms), all);
    }
    let any_of = ["plan 1", "plan 3", "plan 4"].map(str::to_owned).to_vec();
    // All but one of them.
    let accepts = |table: &TextTable| {
        let is_like = |at| !table.at(at).ends_with(b" 4");
        Ok((0..table.len()).map(is_like).collect())
    };
    let filter = Filter {
        texts: vec![TextFilter { name: "plan".to_owned(), any_of }],
        numbers: vec![NumberFilter { name: "ms".to_owned(), min: 10.0, max: 20.0 }],
        alike: vec![TextMatch::new("plan".to_owned(), accepts)],
    };
    let passes = |n: u32| {
        [1, 3].contains(&(n % 5)) && !n.is_multiple_of(11) && (40..=80).contains(&(n % 300))
    };
    let all = expected(passes, i64::MIN, i64::MAX);
    assert!(!all.is_empty());
    assert_eq!(lines(&here, &filter, i64::MIN, i64::MAX), all);
    assert_eq!(lines(&elsewhere, &filter, i64::MIN, i64::MAX), all);
    let sizes = snapshot.sizes();
    let shown = (0..12_000).filter(|n| n % 977 * 3_600_000 + n < 30 * DAY_MS + 1).count();
    assert_eq!(sizes.rows, shown as u64);
    assert!(sizes.days < sizes.hours && sizes.hours < sizes.rows, "{sizes:?}");
    assert!(sizes.bytes > 0 && sizes.last_ms == Some(NOW_MS), "{sizes:?}");
    let none = engine.snapshot(Namespace(3)).open().unwrap();
    assert_eq!(engine.snapshot(Namespace(3)).sizes().rows, 0);
    assert_eq!(lines(&none, &Filter::default(), i64::MIN, i64::MAX), Vec::<String>::new());
}

#[test]
fn stretches_are_the_buckets_of_their_rows() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let elsewhere = engine.snapshot(Namespace(1)).hand_over();
    let scan = Scan::receive(directory.path(), elsewhere).unwrap();
    let odd = NOW_MS - 3 * DAY_MS - 12_345;
    let all = i64::MIN..i64::MAX;
    let hour = Grain::Hour.start(odd);
    let boundaries = vec![odd - 400 * DAY_MS, odd - DAY_MS, hour, odd, odd + 1, NOW_MS + 5];
    for (times, grain, boundaries) in [
        (all.clone(), Some(Grain::Hour), vec![]),
        (all.clone(), Some(Grain::Day), vec![]),
        (odd - 5 * DAY_MS..odd, Some(Grain::Hour), vec![]),
        (all.clone(), None, vec![odd]),
        (all.clone(), None, boundaries.clone()),
        (odd - 5 * DAY_MS..odd + 7, None, boundaries.clone()),
        (all.clone(), Some(Grain::Day), boundaries.clone()),
        (odd - 5 * DAY_MS..odd + 7, Some(Grain::Hour), boundaries.clone()),
        (all.clone(), Some(Grain::QuarterHour), vec![]),
        (odd - 5 * DAY_MS..odd + 7, Some(Grain::FiveMinutes), boundaries),
        (odd - 5 * DAY_MS..odd, Some(Grain::Minute), vec![]),
    ] {
        expect_stretches(&scan, &times, &TimeBuckets { grain, boundaries });
    }
}

/// Checks that the runs of buckets of all morsels are the buckets of their rows' times.
fn expect_stretches(scan: &Scan, times: &Range<i64>, buckets: &TimeBuckets) {
    for source in scan.sources() {
        for morsel in source.morsels(SeriesFilter::default(), times).unwrap() {
            let Values::Times(read) = source.read(&morsel, &Column::Time).unwrap() else {
                unreachable!("times are times");
            };
            let series = morsel
                .row_ranges
                .iter()
                .flat_map(|row_range| row_range.rows.clone().map(|_| row_range.series));
            let expected: Vec<_> = series.zip(read.iter().map(|ms| buckets.start(*ms))).collect();
            let bucket_runs = source.bucket_runs(&morsel, buckets).unwrap();
            let told = bucket_runs
                .iter()
                .flat_map(|one| (0..one.rows).map(|_| (one.series, one.start_ms)));
            assert_eq!(told.collect::<Vec<_>>(), expected, "{times:?} {buckets:?}");
            let whole = source.bucket_runs(&morsel, &TimeBuckets::default()).unwrap();
            let rows: usize = whole.iter().map(|one| one.rows as usize).sum();
            assert_eq!((whole.len(), rows), (morsel.row_ranges.len(), morsel.rows()));
        }
    }
}

#[test]
fn bounds_and_buckets_are_found_in_series_of_many_vectors() {
    let directory = tempfile::tempdir().unwrap();
    let engine = empty_engine(directory.path());
    // Three at a time, so that some of them stand in two vectors.
    let times: Vec<i64> = (0..20_000).rev().map(|n| NOW_MS - i64::from(n / 3) * 297_001).collect();
    let mut batch = engine.batch(Namespace(1));
    for (tenant, times) in [("acme", &times[..]), ("beta", &times[..700]), ("core", &times)] {
        for &timestamp_ms in times {
            let event = Event { tenant, name: "call", timestamp_ms, event_id: None, user_id: None };
            batch.push(&event, &[], &[]).unwrap();
        }
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    engine.flush().unwrap();
    engine.compact().unwrap();
    let scan = engine.snapshot(Namespace(1)).open().unwrap();
    for at in [0, 1, 699, 1_022, 1_023, 1_024, 2_048, 9_999, 19_999] {
        for from in [times[at] - 1, times[at], times[at] + 1] {
            for to in [from, from + 1, from + 297_001, from + 5 * DAY_MS, i64::MAX] {
                let within =
                    |times: &[i64]| times.iter().filter(|ms| (from..to).contains(*ms)).count();
                let morsels = scan.sources().iter().flat_map(|source| {
                    source.morsels(SeriesFilter::default(), &(from..to)).unwrap()
                });
                let rows: usize = morsels.map(|morsel| morsel.rows()).sum();
                assert_eq!(rows, 2 * within(&times) + within(&times[..700]), "{from}..{to}");
            }
        }
    }
    let all = i64::MIN..i64::MAX;
    let (first, last) = (times[0], times[19_999]);
    for grain in [None, Some(Grain::Day), Some(Grain::Hour), Some(Grain::QuarterHour)] {
        // One is looked for; between many, times are read one after the other.
        for boundaries in [1, 40, 200] {
            let step = (last - first) / (boundaries + 1);
            let boundaries = (1..=boundaries).map(|at| first + at * step).collect();
            expect_stretches(&scan, &all, &TimeBuckets { grain, boundaries });
        }
        expect_stretches(&scan, &all, &TimeBuckets { grain, boundaries: vec![] });
    }
}

#[test]
fn users_and_event_ids_are_searched_for_in_segments_and_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let scan = engine.snapshot(Namespace(1)).open().unwrap();
    let mut found = 0;
    for (wanted, column) in [
        (vec!["u7", "u499", "nobody", "u"], Column::User),
        (vec!["u12"], Column::User),
        (vec!["nobody"], Column::User),
        (vec!["e14", "e11998", "e15", "no event"], Column::EventId),
    ] {
        let wanted: Vec<&[u8]> = wanted.iter().map(|text| text.as_bytes()).collect();
        for source in scan.sources() {
            for morsel in source.morsels(SeriesFilter::default(), &(i64::MIN..i64::MAX)).unwrap() {
                let mut marks: Vec<bool> = (0..morsel.rows()).map(|row| row % 5 > 0).collect();
                let expected: Vec<bool> = match source.read(&morsel, &column).unwrap() {
                    Values::Codes(codes, table) => codes
                        .iter()
                        .map(|code| *code > 0 && wanted.contains(&table.at(*code as usize - 1)))
                        .collect(),
                    Values::Texts(table) => {
                        (0..morsel.rows()).map(|row| wanted.contains(&table.at(row))).collect()
                    }
                    _ => unreachable!("texts are texts"),
                };
                let expected: Vec<bool> =
                    marks.iter().zip(expected).map(|(mark, is_it)| *mark && is_it).collect();
                match column {
                    Column::User => source.mark_users(&morsel, &wanted, &mut marks).unwrap(),
                    _ => {
                        let ids = EventIdCondition::AnyOf(wanted.iter().copied().collect());
                        source.mark_event_ids(&morsel, &ids, &mut marks).unwrap();
                    }
                }
                found += marks.iter().filter(|mark| **mark).count();
                assert_eq!(marks, expected);
            }
        }
    }
    assert!(found > 20, "{found}");
}

#[test]
fn hours_add_up_to_what_a_query_answers() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let scan = engine.snapshot(Namespace(2)).open().unwrap();
    let wanted = StateSelection { users: true, numbers: vec!["ms".to_owned()] };
    let (from_ms, to_ms) = (NOW_MS - 9 * DAY_MS, NOW_MS - DAY_MS);
    let mut hours = HourStates::new();
    let mut by_tenant: BTreeMap<String, u64> = BTreeMap::new();
    for source in scan.sources() {
        for (at, series) in source.series().iter().enumerate() {
            let states = source.hours(at, &(from_ms..to_ms), &wanted).unwrap();
            let (tenant, name) = (series.tenant as usize, series.name as usize);
            let (tenant, name) = (source.tenants().text(tenant), &source.names()[name]);
            for (hour, state) in states.into_iter().filter(|_| &**name == "call") {
                *by_tenant.entry(tenant.to_string()).or_default() += state.count;
                hours
                    .entry(hour)
                    .or_insert_with(|| super::super::Hour::empty(&wanted))
                    .merge(&state);
            }
        }
    }
    let count = Query::count(Namespace(2), "call", from_ms..to_ms);
    let answer = |query: &Query| engine.query_rows(query, &|| false).unwrap();
    let all: u64 = hours.values().map(|state| state.count).sum();
    assert_eq!(answer(&count).values[0][0].as_f64(), Some(all as f64));
    let of_acme = Query { tenant: Some("acme".to_owned()), ..count.clone() };
    assert_eq!(answer(&of_acme).values[0][0].as_f64(), Some(by_tenant["acme"] as f64));
    let (mut users, mut numbers) = (UserState::default(), NumberState::default());
    for state in hours.values() {
        users.add(&state.users().unwrap()).unwrap();
        state.number(0).iter().for_each(|bytes| numbers.add(bytes).unwrap());
    }
    assert!(users.add(b"no state").is_err() && numbers.add(b"\xff\xff").is_err());
    // As many as are listed are known nearly exactly.
    let distinct = Query { metric: crate::Metric::Distinct, ..count.clone() };
    let exact = answer(&distinct).values[0][0].as_f64().unwrap();
    assert!((users.estimate() as f64 - exact).abs() <= exact * 0.01, "{exact}");
    let metric = crate::Metric::Percentile(95);
    let p95 = Query { metric, number: Some("ms".to_owned()), ..count };
    let exact = answer(&p95).values[0][0].as_f64().unwrap();
    assert!((numbers.quantile(0.95).unwrap() - exact).abs() <= exact * 0.02, "{exact}");
}

/// Many rows in memory, of two namespaces, some of them expired: parts that are shared, and rows behind them.
#[test]
fn rows_in_shared_memory_are_those_that_came() {
    let directory = tempfile::tempdir().unwrap();
    let engine = empty_engine(directory.path());
    let ingest = |from: u32, count: u32| {
        for namespace in [1, 2] {
            let mut batch = engine.batch(Namespace(namespace));
            for n in (from..from + count).filter(|n| n % 3 == 0 || namespace == 1) {
                let (id, user) = (format!("e{n}"), format!("u{}", n % 77));
                let (tenant, hours) = match n % 50 {
                    // Of one tenant every row has expired, and some of the others'.
                    0 => ("gone", 24 * 31),
                    _ => (["acme", "beta"][n as usize % 2], n % 800),
                };
                let event = Event {
                    tenant,
                    name: ["call", "login"][usize::from(n % 50 == 0)],
                    timestamp_ms: NOW_MS - i64::from(hours) * HOUR_MS - i64::from(n),
                    event_id: Some(&id),
                    user_id: Some(&user),
                };
                batch.push(&event, &[("plan", "pro")], &[("ms", f64::from(n % 9))]).unwrap();
            }
            engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
        }
    };
    let mut shown = Vec::new();
    for (from, count) in [(0, 900), (900, 9_000), (9_900, 9_000), (18_900, 40_000), (58_900, 1)] {
        ingest(from, count);
        let snapshot = engine.snapshot(Namespace(1));
        let scan = Scan::receive(directory.path(), snapshot.hand_over()).unwrap();
        let here = snapshot.open().unwrap();
        let rows = |scan: &Scan| -> usize {
            let morsels = scan.sources().iter().flat_map(|source| {
                source.morsels(SeriesFilter::default(), &(i64::MIN..i64::MAX)).unwrap()
            });
            morsels.map(|morsel| morsel.rows()).sum()
        };
        let is_shown = |n: &u32| {
            let age_ms = i64::from(n % 800) * HOUR_MS + i64::from(*n);
            !n.is_multiple_of(50) && age_ms <= NOW_MS.rem_euclid(DAY_MS) + 30 * DAY_MS
        };
        assert_eq!(rows(&scan), (0..from + count).filter(is_shown).count());
        let gone = |source: &Source| source.tenants().position(b"gone");
        assert!(scan.sources().iter().all(|source| gone(source).is_none()));
        assert_eq!(
            lines(&scan, &Filter::default(), i64::MIN, i64::MAX),
            lines(&here, &Filter::default(), i64::MIN, i64::MAX)
        );
        shown.push(snapshot.shared_images().len());
    }
    assert_eq!(shown.first(), Some(&0));
    assert!(shown.last() > Some(&1), "{shown:?}");
    // After a flush no row is in memory, and what was handed over before still is what it was.
    let before = engine.snapshot(Namespace(1)).hand_over();
    engine.flush().unwrap();
    let after = engine.snapshot(Namespace(1)).hand_over();
    assert!(after.shared.is_empty() && after.copied.is_empty());
    let read = |handed: SerializedSnapshot| {
        let scan = Scan::receive(directory.path(), handed).unwrap();
        lines(&scan, &Filter::default(), i64::MIN, i64::MAX)
    };
    assert_eq!(read(before), read(after));
}

#[test]
fn a_segment_that_went_away_is_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let handed = engine.snapshot(Namespace(1)).hand_over();
    let gone = Scan::receive(&directory.path().join("elsewhere"), handed.clone());
    let is_not_found = matches!(gone, Err(Error::Io { kind: std::io::ErrorKind::NotFound, .. }));
    assert!(is_not_found);
    let cut = |bytes: &[u8], len: usize| bytes[..len].to_vec();
    let SerializedSnapshot { segments, missing, shared, copied } = handed;
    let receive = |segments: Vec<u8>, copied: Vec<u8>| {
        Scan::receive(
            directory.path(),
            SerializedSnapshot {
                segments,
                missing: missing.clone(),
                shared: shared.clone(),
                copied,
            },
        )
    };
    for len in [0, 1, segments.len() / 2, segments.len() - 1] {
        assert!(receive(cut(&segments, len), copied.clone()).is_err(), "{len}");
    }
    for len in [1, copied.len() / 2, copied.len() - 1] {
        assert!(receive(segments.clone(), cut(&copied, len)).is_err(), "{len}");
    }
    let opened = OpenSegments::open(directory.path(), segments.clone(), &no_parts()).unwrap();
    assert!(opened.is_of(&segments) && !opened.is_of(&cut(&segments, segments.len() - 1)));
}
