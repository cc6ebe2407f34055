//! Odd data in every kind of card and size: drawn without a failure, and without a number that is none.
//!
//! ```text
//! answers       none, 0, rising, negative, ±1e308, 5e-324, gaps      each with and without groups and buckets
//! labels        empty, <script>, control characters, 300 letters, right to left, emoji, ]]>
//! options       {"format": {"style": 7, "decimals": "many"}, "color": 99, "thresholds": [{"value": "no"}, 7]}
//! kinds         all ten, and of_tomorrow, which is drawn as a table
//! sizes         1×1, 3×3 and 12×6 on the grid
//! ```
//!
//! Each drawing must parse as SVG, have no `NaN` or `inf` in it, no `<script`, and no mark that turns the direction
//! of text.

use serde_json::{Map, json};

use super::{
    dates::Grain,
    model::{Answer, Card, Measure, Place, Question, Row, Sheet},
    pdf::pdf,
    png::{drawing, parse},
    table::Table,
};
use crate::base::locale::Locale;

const KINDS: [&str; 11] = [
    "number",
    "line",
    "area",
    "bar",
    "stacked_bar",
    "bar_list",
    "donut",
    "table",
    "text",
    "funnel",
    "of_tomorrow",
];
const DAY_MS: i64 = 86_400_000;

/// A card whose title and options are as odd as its data.
fn card(kind: &str, place: Place, answer: Answer) -> Card {
    let viz = json!({
        "sparkline": true, "text": "Line one\n\nline <two> ".repeat(20), "good_direction": "down", "fill": "yes",
        "format": {"style": 7, "decimals": "many", "currency": {}}, "axis": {"min": "auto"}, "stack": "percent",
        "color": 99, "thresholds": [{"value": 1e308, "label": "<b>]]>".repeat(40)}, {"value": "no"}, 7],
    });
    Card {
        id: "id".to_owned(),
        kind: kind.to_owned(),
        title: "A title <that> & goes on ".repeat(12),
        viz: viz.as_object().cloned().unwrap_or_else(Map::new),
        place,
        query: Question {
            metric: Some("count".to_owned()),
            event_name: Some("api_call".to_owned()),
            ..Question::default()
        },
        answer: Ok(answer),
        locale: Locale::En,
    }
}

/// `count` rows of `value(0)`, `value(1)` and so on. With buckets and groups, eight rows share a bucket. The window
/// begins 1 ms after the first bucket, so that bucket is not whole.
fn rows(count: usize, grouped: bool, timed: bool, value: impl Fn(usize) -> Option<f64>) -> Answer {
    const LABELS: [&str; 6] = [
        "",
        "<script>alert(1)</script>",
        "\u{202e}\u{0}\u{7}x",
        "🙂 العربية 日本語",
        "=1+1",
        "]]>&amp;",
    ];
    let group = |at: usize| match at % 8 {
        7 => None,
        6 => Some("x".repeat(300)),
        kind => {
            Some(format!("{}{}", LABELS[kind], if at < 8 { String::new() } else { at.to_string() }))
        }
    };
    let row = |at: usize| Row {
        bucket: timed.then(|| at as i64 / if grouped { 8 } else { 1 } * DAY_MS),
        group: grouped.then(|| group(at)),
        value: value(at),
        previous: (!grouped).then(|| value(at + 1)),
        values: Vec::new(),
    };
    Answer {
        rows: (0..count).map(row).collect(),
        spark: (0..count).map(value).collect(),
        grain: Grain::Day,
        from: 1,
        to: 3 * DAY_MS + 1,
        groups_total: 5_000,
        groups_returned: count,
        ..Answer::default()
    }
}

/// A sheet in English with the colours of no theme.
fn sheet(cards: Vec<Card>) -> Sheet {
    Sheet {
        title: "T".to_owned(),
        subtitle: String::new(),
        theme: Map::new(),
        cards,
        made_at: 0,
        locale: Locale::En,
    }
}

/// 57 answers: one without rows, and seven courses of values in four shapes, of 1 and of 12 rows.
fn odd_answers() -> Vec<Answer> {
    let mut out = vec![Answer::default()];
    type Value = fn(usize) -> Option<f64>;
    let values: [Value; 7] = [
        |_| None,
        |_| Some(0.0),
        |at| Some(at as f64 * 12.5),
        |at| Some(-(at as f64) - 1.0),
        |at| Some(if at % 2 == 0 { 1e308 } else { -1e308 }),
        |at| Some(if at % 2 == 0 { 5e-324 } else { 0.0 }),
        |at| (at % 3 != 0).then_some(7.0),
    ];
    for value in values {
        for (grouped, timed) in [(false, false), (false, true), (true, false), (true, true)] {
            out.extend([1, 12].map(|count| rows(count, grouped, timed, value)));
        }
    }
    out
}

/// All answers of a kind and size are cards of one sheet, below each other: 33 drawings instead of 1,881.
#[test]
fn odd_data_is_drawn_in_every_kind_and_size() {
    let sizes = [(1, 1), (3, 3), (12, 6)];
    let answers = odd_answers();
    for kind in KINDS {
        for (w, h) in sizes {
            let mut cards = Vec::new();
            for (at, answer) in answers.iter().enumerate() {
                let place = Place { x: 0, y: at as u32 * h, w, h };
                let locale = Locale::ALL[at % Locale::ALL.len()];
                cards.push(Card { locale, ..card(kind, place, answer.clone()) });
            }
            let sheet = Sheet {
                title: "T".repeat(500),
                subtitle: "S".repeat(500),
                theme: Map::new(),
                cards,
                made_at: i64::MAX,
                locale: Locale::En,
            };
            let (drawn, ..) = drawing(&sheet);
            for none in ["NaN", "inf"] {
                let around =
                    drawn.find(none).and_then(|at| drawn.get(at.saturating_sub(200)..at + 20));
                assert_eq!(around, None, "{kind} {w}x{h}");
            }
            assert!(!drawn.contains("<script") && !drawn.contains('\u{202e}'));
            parse(&drawn).unwrap_or_else(|error| panic!("{kind} {w}x{h}: {error}"));
        }
    }
}

/// The colours of the theme are in the markup, and without a theme the usual primary colour is.
#[test]
fn a_theme_is_in_the_picture() {
    let theme = json!({"cardBackground": "#101820", "primaryColor": "#0f766e"});
    let mut shown = card("number", Place { x: 0, y: 0, w: 3, h: 3 }, Answer::default());
    let spark = vec![Some(1.0), Some(2.0)];
    shown.answer = Ok(Answer {
        rows: vec![Row { value: Some(3.0), ..Row::default() }],
        spark,
        ..Answer::default()
    });
    shown.viz.insert("sparkline".to_owned(), json!(true));
    let sheet =
        Sheet { theme: theme.as_object().cloned().unwrap_or_default(), ..sheet(vec![shown]) };
    let (drawn, ..) = drawing(&sheet);
    assert!(drawn.contains(r##"fill="#101820""##) && drawn.contains("#0f766e"), "{drawn}");
    let (drawn, ..) = drawing(&Sheet { theme: Map::new(), ..sheet });
    assert!(drawn.contains("#315ed9") && !drawn.contains("#101820"));
}

/// PNG and PDF of a sheet without cards, and a card far down the grid whose query failed.
#[test]
fn a_sheet_of_nothing_is_a_sheet() {
    let sheet = Sheet {
        title: String::new(),
        subtitle: String::new(),
        theme: Map::new(),
        cards: Vec::new(),
        made_at: 0,
        locale: Locale::En,
    };
    assert!(super::png(&sheet).unwrap().starts_with(b"\x89PNG"));
    assert!(pdf(&sheet).unwrap().starts_with(b"%PDF"));
    let mut failed = card("line", Place { x: 0, y: 900, w: 6, h: 4 }, Answer::default());
    failed.answer = Err("it took too long".to_owned());
    let (drawn, _, height) = drawing(&Sheet { cards: vec![failed], ..sheet });
    assert!(drawn.contains("it took too long"));
    assert!(height < 400.0, "rows without a card are closed up: {height}");
}

/// Twenty measures of `123,456,789.25`: the card leaves out columns and says so, and the parts have each measure once.
#[test]
fn a_wide_table_is_parted_and_no_number_is_cut() {
    let measure = |at: usize| Measure {
        label: format!("Measure {at}"),
        metric: "sum".to_owned(),
        numeric_prop: None,
        format: super::Spec::default(),
    };
    let row = |at: usize| Row {
        group: Some(Some(format!("group {at}"))),
        values: vec![Some(123_456_789.25); 20],
        ..Row::default()
    };
    let answer = Answer {
        rows: (0..60).map(row).collect(),
        measures: (0..20).map(measure).collect(),
        ..Answer::default()
    };
    let card = card("table", Place { x: 0, y: 0, w: 3, h: 6 }, answer.clone());
    let parts = Table::of(&card, &answer).parts(1_160.0);
    assert!(parts.len() > 1);
    let sheet = sheet(vec![card]);
    let (drawn, ..) = drawing(&sheet);
    assert!(drawn.contains("column") && drawn.contains("not shown"), "{drawn}");
    assert!(!drawn.contains("123,456,7…") && !drawn.contains("123,456…"));
    let mut heads = Vec::new();
    for part in &parts {
        let mut svg = super::svg::Svg::default();
        let area = super::plot::Area { x: 0.0, y: 0.0, w: 1_160.0, h: 400.0 };
        part.draw(&mut svg, area, 0..1, 26.0);
        let drawn = svg.finish(10.0, 10.0);
        assert!(drawn.contains("group 0") && !drawn.contains('…'), "{drawn}");
        heads.extend((0..20).filter(|at| drawn.contains(&format!(">Measure {at}<"))));
    }
    assert_eq!(heads, (0..20).collect::<Vec<_>>(), "each measure once");
}

/// Numbers and words of a drawing, as text in its markup.
#[test]
fn a_drawing_is_in_its_language() {
    for (locale, value, versus) in [
        (Locale::En, "1,234.5", "vs previous 7 days"),
        (Locale::De, "1.234,5", "ggü. 7 Tage zuvor"),
        (Locale::Fr, "1\u{a0}234,5", "par rapport à 7\u{a0}jours avant"),
        (Locale::Ja, "1,234.5", "前の7 日比"),
    ] {
        let mut card = card("number", Place { x: 0, y: 0, w: 6, h: 3 }, Answer::default());
        card.viz.insert("format".to_owned(), json!({"decimals": 1}));
        card.locale = locale;
        card.answer = Ok(Answer {
            rows: vec![Row {
                value: Some(1_234.5),
                previous: Some(Some(1_000.0)),
                ..Row::default()
            }],
            period: Some("7d".to_owned()),
            ..Answer::default()
        });
        let sheet = sheet(vec![card]);
        let (drawn, ..) = drawing(&sheet);
        assert!(drawn.contains(&format!(">{value}<")), "{locale:?} {drawn}");
        assert!(drawn.contains(versus), "{locale:?} {drawn}");
    }
}
