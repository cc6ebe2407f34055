//! What the pages answer, answered here: see `web/test/golden.js`.
//!
//! The pages draw in the browser and the server draws reports, with two implementations of the same rules. One
//! file of cases holds both to them:
//!
//! ```text
//! {"in": [5, 4], "out": ["up", "25%"]}                       under "change"
//! {"in": [0, 10, true], "out": [0, 5, 10]}                   under "ticks": min, max, whole
//! {"in": "__x--y_", "out": "X y"}                            under "humanize"
//! {"spec": {"style": "bytes"}, "values": [[1234.5, "1.23 KB", "1.23 KB"], …]}     short, full
//! ```
//!
//! `node server/web/test/golden.js --update` writes the file from the JavaScript modules after a change of a rule;
//! the tests here then fail until the server follows.

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::{
    color::{Rgb, apart, contrast, readable_on, rotate},
    dates::{Grain, bucket_end, bucket_long, bucket_short, starts_day},
    format::{Axis, Direction, Spec, change, change_text, full, humanize, period, share, short},
    model::{Answer, Row, first_color},
    scale::{domain, label_stride, spread, ticks},
    series::{ranked, runs, stack, timed},
    theme::{Ink, SERIES_MAX},
    threshold::thresholds_of,
    words::words,
};
use crate::base::{instant, locale::Locale};

fn golden() -> Value {
    serde_json::from_str(include_str!("../../web/test/golden.json")).unwrap()
}

/// Each case with its answer.
/// An empty list fails: a group of cases that was renamed would otherwise test nothing.
fn cases<'a>(golden: &'a Value, name: &str) -> Vec<(&'a Value, &'a Value)> {
    let cases = golden[name].as_array().unwrap();
    assert!(!cases.is_empty());
    cases.iter().map(|case| (&case["in"], &case["out"])).collect()
}

/// `[0, 2.5, 5]` as floats.
fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

/// `[1, null]` is `[Some(1.0), None]`.
fn options(list: &Value) -> Vec<Option<f64>> {
    list.as_array().unwrap().iter().map(Value::as_f64).collect()
}

/// `[49, 94, 217]` as a colour.
fn color(list: &Value) -> Rgb {
    [0, 1, 2].map(|at| u8::try_from(list[at].as_u64().unwrap()).unwrap())
}

/// The file has six decimal places.
fn close(a: f64, b: &Value) -> bool {
    (a - b.as_f64().unwrap()).abs() < 2e-6
}

/// Every pair of 18 colours: contrast, what becomes of the first on the second, and how far apart they look.
#[test]
fn colors_are_told_apart_alike() {
    let golden = golden();
    for (pair, out) in cases(&golden, "contrast") {
        let (a, b) = (color(&pair[0]), color(&pair[1]));
        assert!(close(contrast(a, b), &out[0]), "{pair}");
        let moved = json!([readable_on(a, b, 3.0), readable_on(a, b, 4.5)]);
        assert_eq!(moved, json!([out[1], out[2]]), "{pair}");
    }
    for (pair, out) in cases(&golden, "apart") {
        assert!(close(apart(color(&pair[0]), color(&pair[1])), out), "{pair}");
    }
    let all: Vec<Rgb> = cases(&golden, "rotate").iter().map(|(one, _)| color(one)).collect();
    for (one, out) in cases(&golden, "rotate") {
        assert_eq!(json!(rotate(color(one), &all)), *out, "{one}");
    }
}

/// A group of cases in English, and in each other language.
fn in_all_locales(golden: &Value) -> Vec<(Locale, &Value)> {
    let others = golden["locales"].as_array().unwrap().iter();
    let locale = |of: &Value| Locale::named(of["locale"].as_str().unwrap()).unwrap();
    let others: Vec<_> = others.map(|of| (locale(of), of)).collect();
    let names: Vec<Locale> = others.iter().map(|(locale, _)| *locale).collect();
    assert_eq!(names, Locale::ALL);
    others
        .into_iter()
        .map(|(locale, of)| (locale, if locale.is_default() { golden } else { of }))
        .collect()
}

/// 17 formats with every value: `short` and `full` letter by letter, no-break spaces included.
#[test]
fn values_read_alike() {
    let golden = golden();
    for (locale, golden) in in_all_locales(&golden) {
        for of in golden["value"].as_array().unwrap() {
            let spec = Spec::read(Some(&of["spec"])).in_locale(locale);
            for case in of["values"].as_array().unwrap() {
                let value = case[0].as_f64();
                let read = (short(value, &spec), full(value, &spec));
                let expected =
                    (case[1].as_str().unwrap().to_owned(), case[2].as_str().unwrap().to_owned());
                assert_eq!(read, expected, "{locale:?}: {value:?} as {}", of["spec"]);
            }
        }
    }
}

/// For every maximum: the divisor, and the labels of eleven ticks.
#[test]
fn axes_read_alike() {
    let golden = golden();
    let ticks = numbers(&golden["ticks_of"]);
    for (locale, golden) in in_all_locales(&golden) {
        for of in golden["axis"].as_array().unwrap() {
            let spec = Spec::read(Some(&of["spec"])).in_locale(locale);
            for case in of["maxima"].as_array().unwrap() {
                let axis = Axis::of(case[0].as_f64().unwrap(), &spec);
                let labels: Vec<String> = ticks.iter().map(|&tick| axis.label(tick)).collect();
                assert_eq!(
                    json!([case[0], axis.divisor, labels]),
                    json!([case[0], case[1].as_f64(), case[2]]),
                    "{locale:?}: {}",
                    of["spec"]
                );
            }
        }
    }
}

#[test]
fn shares_changes_and_names_read_alike() {
    let golden = golden();
    for (locale, golden) in in_all_locales(&golden) {
        for (case, answer) in cases(golden, "share") {
            assert_eq!(*answer, share(case.as_f64().unwrap(), locale), "{case}");
        }
        for (case, answer) in cases(golden, "change") {
            let (current, previous) = (case[0].as_f64(), case[1].as_f64());
            let direction = change(current, previous).map(|(direction, _)| match direction {
                Direction::Up => "up",
                Direction::Down => "down",
                Direction::Flat => "flat",
            });
            let text = change_text(current, previous, locale);
            let read = if locale.is_default() { json!([direction, text]) } else { json!(text) };
            assert_eq!(*answer, read, "{locale:?}: {case}");
        }
        for (case, answer) in cases(golden, "period") {
            assert_eq!(*answer, period(case.as_str().unwrap(), locale));
        }
    }
    for (case, answer) in cases(&golden, "humanize") {
        assert_eq!(*answer, humanize(case.as_str().unwrap()));
    }
    for name in ["", "d7é", "é", "7"] {
        assert_eq!(period(name, Locale::En), name);
    }
}

/// Sixty currencies: their symbols, on which side of the amount, with how many places.
#[test]
fn currencies_are_written_alike() {
    for of in golden()["locales"].as_array().unwrap() {
        let locale = Locale::named(of["locale"].as_str().unwrap()).unwrap();
        for case in of["currencies"].as_array().unwrap() {
            let spec = json!({"style": "currency", "currency": case[0]});
            let spec = Spec::read(Some(&spec)).in_locale(locale);
            assert_eq!(full(Some(12.3456), &spec), case[1], "{locale:?} {}", case[0]);
        }
    }
}

/// What both say in words.
#[test]
fn words_are_the_same() {
    for of in golden()["locales"].as_array().unwrap() {
        let words = words(Locale::named(of["locale"].as_str().unwrap()).unwrap());
        let said = json!({
            "nothing": words.nothing[0], "no_events": words.no_events, "chart_failed": words.chart_failed,
            "number_failed": words.number_failed, "other": words.other, "none": words.none, "fresh": words.fresh,
            "time": words.time, "group": words.group, "value": words.value, "previous": words.previous,
            "share": words.share, "steps": words.steps, "cut_axis": words.cut_axis,
            "top_of": (words.top_of)("50", "120"), "more": (words.more)(3),
            "versus": (words.versus)(Some("7 #")), "versus_dates": (words.versus)(None),
        });
        assert_eq!(said, of["words"]);
    }
}

/// Six instants in four zones and four grains, among them a leap day and the day when clocks change in Berlin; in other languages each
/// month in UTC.
#[test]
fn buckets_read_alike() {
    let golden = golden();
    for (locale, golden) in in_all_locales(&golden) {
        for case in golden["bucket"].as_array().unwrap() {
            let at = instant::parse(case["iso"].as_str().unwrap()).unwrap();
            let grain = Grain::named(case["grain"].as_str());
            let zone = TimeZone::get(case["zone"].as_str().unwrap_or("UTC")).unwrap();
            let mut read = json!({
                "iso": case["iso"], "grain": case["grain"],
                "dated": bucket_short(at, grain, true, &zone, locale),
                "short": bucket_short(at, grain, false, &zone, locale),
                "long": bucket_long(at, grain, &zone, locale),
            });
            if locale.is_default() {
                read["zone"] = case["zone"].clone();
                read["starts"] = json!(starts_day(at, &zone));
                read["end"] = json!(bucket_end(at, grain));
            }
            assert_eq!(read, *case, "{locale:?}");
        }
    }
}

/// Among the cases: 1e308, a range narrower than the last digit, and no values at all.
#[test]
fn scales_are_alike() {
    let golden = golden();
    for (case, answer) in cases(&golden, "ticks") {
        let (min, max) = (case[0].as_f64().unwrap(), case[1].as_f64().unwrap());
        assert_eq!(ticks(min, max, case[2] == true), numbers(answer), "{case}");
    }
    for (case, answer) in cases(&golden, "domain") {
        let (min, max) = domain(options(&case[0]), case[1] == true);
        assert_eq!([min, max].to_vec(), numbers(answer), "{case}");
    }
    for (case, answer) in cases(&golden, "stride") {
        let [count, step, label] = numbers(case)[..] else { panic!("{case}") };
        assert_eq!(json!(label_stride(count as usize, step, label)), *answer, "{case}");
    }
    for (case, answer) in cases(&golden, "spread") {
        let [gap, min, max] = [1, 2, 3].map(|at| case[at].as_f64().unwrap());
        assert_eq!(spread(&numbers(&case[0]), gap, min, max), numbers(answer), "{case}");
    }
    for (case, answer) in cases(&golden, "runs") {
        assert_eq!(json!(runs(&options(case))), *answer, "{case}");
    }
}

/// An answer as the API sends it, with `data` and `meta`, in the types that are drawn. A missing `group` and one
/// that is `null` are different.
fn answer_of(answer: &Value) -> Answer {
    let row = |row: &Value| Row {
        bucket: row["bucket"].as_str().and_then(instant::parse),
        group: row.get("group").map(|group| group.as_str().map(str::to_owned)),
        value: row["value"].as_f64(),
        previous: row.get("previous").map(Value::as_f64),
        values: Vec::new(),
    };
    let meta = &answer["meta"];
    let at = |name: &str| meta[name].as_str().and_then(instant::parse);
    let count = |name: &str| meta[name].as_u64().unwrap_or(0) as usize;
    Answer {
        rows: answer["data"].as_array().unwrap().iter().map(row).collect(),
        grain: Grain::named(meta["granularity"].as_str()),
        from: at("from").unwrap_or(0),
        to: at("to").unwrap_or(i64::MAX),
        groups_total: count("groups_total"),
        groups_returned: count("groups_returned"),
        total: meta["total"].as_f64(),
        ..Answer::default()
    }
}

/// Thresholds, and the first colour: `{"color": 2}` begins the palette with the second.
#[test]
fn drawing_options_mean_the_same() {
    let golden = golden();
    for (viz, expected) in cases(&golden, "thresholds") {
        let name = |ink: Ink| match ink {
            Ink::Good => "good",
            Ink::Warn => "warn",
            Ink::Bad => "bad",
            _ => "plain",
        };
        let read = thresholds_of(viz.as_object().unwrap());
        let read: Vec<Value> = read
            .iter()
            .map(|one| json!({"value": one.value, "label": one.label, "tone": name(one.ink)}))
            .collect();
        let expected: Vec<Value> = expected
            .as_array()
            .unwrap()
            .iter()
            .map(|one| json!({"value": one["value"].as_f64(), "label": one["label"], "tone": one["tone"]}))
            .collect();
        assert_eq!(read, expected, "{viz}");
    }
    for (color, expected) in cases(&golden, "first_color") {
        let viz = Map::from_iter([("color".to_owned(), color.clone())]);
        let first = first_color(&viz);
        let names = [0, 7].map(|at| format!("var(--c{})", (at + first) % SERIES_MAX + 1));
        assert_eq!(&json!(names), expected, "{color}");
    }
}

/// Buckets, series in their order, parts that are not whole, and both kinds of stack.
#[test]
fn answers_become_the_same_series() {
    let golden = golden();
    for (case, expected) in cases(&golden, "timed") {
        let limit = case["limit"].as_u64().map(|limit| limit as usize);
        let (title, metric) = (case["title"].as_str().unwrap(), case["metric"].as_str());
        let model = timed(&answer_of(&case["answer"]), title, limit, metric, Locale::En);
        let buckets: Vec<String> = model.buckets.iter().map(|&at| instant::format(at)).collect();
        assert_eq!(json!(buckets), expected["buckets"]);
        assert_eq!(
            (model.partial_first, model.partial_last),
            (expected["partialFirst"] == true, expected["partialLast"] == true),
            "{case}"
        );
        assert_eq!(
            model.previous,
            expected["previous"].as_array().map(|_| options(&expected["previous"]))
        );
        let series = expected["series"].as_array().unwrap();
        assert_eq!(model.series.len(), series.len(), "{case}");
        for (one, expected) in model.series.iter().zip(series) {
            assert_eq!(expected["label"], one.label);
            assert_eq!(
                (&one.values, one.total),
                (&options(&expected["values"]), expected["total"].as_f64().unwrap())
            );
        }
        for (name, percent) in [("stacked", false), ("percent", true)] {
            let parts = stack(&model.series, model.buckets.len(), percent);
            for (part, expected) in parts.iter().zip(expected[name].as_array().unwrap()) {
                for ((from, to), expected) in part.iter().zip(expected.as_array().unwrap()) {
                    let expected =
                        [&expected["from"], &expected["to"]].map(|end| end.as_f64().unwrap());
                    assert_eq!([*from, *to], expected);
                }
            }
        }
    }
}

/// With and without a total from the server, and with the order of the query.
#[test]
fn answers_become_the_same_ranking() {
    let golden = golden();
    for (case, expected) in cases(&golden, "ranked") {
        let limit = case["limit"].as_u64().unwrap() as usize;
        let answer = answer_of(&case["answer"]);
        let (items, total) =
            ranked(&answer, limit, case["metric"].as_str(), case["order"] == "none", Locale::En);
        assert_eq!(total, expected["total"].as_f64(), "{case}");
        let items: Vec<_> = items
            .iter()
            .map(|item| (item.label.clone(), item.value, item.share, item.is_other))
            .collect();
        let wanted = |item: &Value| {
            let label = item["label"].as_str().unwrap().to_owned();
            (label, item["value"].as_f64().unwrap(), item["share"].as_f64(), item["other"] == true)
        };
        let expected: Vec<_> = expected["items"].as_array().unwrap().iter().map(wanted).collect();
        assert_eq!(items, expected, "{case}");
    }
}
