//! A first dashboard, made from what an environment's events look like.
//!
//! An event `api_call` with `latency_ms` and the dimension `endpoint` becomes its count, the p95 of its
//! latency, its course over time and a list of endpoints.
//!
//! ```text
//! api_call: numbers latency_ms, cost, x, y, z; properties country (90 values), trace (999), model (4), only (1)
//!
//! row 0    number "Api call"    number "p95 latency ms"    number "Total cost"    number "Average x"
//! row 3    line "Api call over time", 8 columns            donut "Api call by model", 4 columns
//! row 9    bar_list "Api call by country"
//! ```
//!
//! `trace` has as many values as an identifier has, and `only` has one: neither parts anything. `model` stands first since rollups know it.

use inlay_engine::{EventFacts, NumberFacts, TextFacts};
use serde_json::{Value, json};

use super::drafts::NewDashboard;
use crate::{
    app::{
        analytics::discover::is_rollup_dimension,
        request::{callers::Caller, context::App},
    },
    error::{ApiError, Code, Result},
    store::{Dashboard, Settings, Widget},
};

/// Events of a generated dashboard: the most frequent ones.
const EVENTS_MAX: usize = 3;
/// Numbers of an event beside its count.
const NUMBERS_MAX: usize = 3;
/// Dimensions of an event.
const DIMENSIONS_MAX: usize = 3;
/// Values with which a dimension is a donut; with more it is a list.
const DONUT_VALUES: u64 = 8;
/// Values from which on a property is no dimension but an identifier.
const IDENTIFIER_VALUES: u64 = 1_000;

/// Characters of a name within a heading.
const TITLE_CHARS_MAX: usize = 60;

impl App {
    /// Makes a dashboard from the events of the caller's environment. Returns it with the number of
    /// events that were found. 409 when there are none.
    ///
    /// It is named after its event, or `Overview` when there are several.
    ///
    /// Errors: those of [`App::discover`] and [`App::create_dashboard`].
    pub fn auto_create_dashboard(&self, caller: &Caller) -> Result<(Dashboard, usize)> {
        let found = self.discover(caller)?.events;
        if found.is_empty() {
            let message = "there are no events of the last 30 days to make a dashboard from";
            return Err(ApiError::new(Code::Conflict, message));
        }
        let name = match &*found {
            [one] => title(&one.name),
            _ => "Overview".to_owned(),
        };
        let widgets = found.iter().take(EVENTS_MAX).enumerate();
        let mut next_row = 0;
        let mut all = Vec::new();
        for (at, event) in widgets {
            all.extend(widgets_of(event, at, &mut next_row)?);
        }
        let new = NewDashboard { name, widgets: all, settings: Settings::default() };
        Ok((self.create_dashboard(caller, new)?, found.len()))
    }
}

/// The widgets of one event, from row `next_row` of the grid on: how many, its numbers, how it went
/// over time, and what it parts into.
///
/// `at` is the number of the event from 0: ids are `event1_1`, `event1_2` and so on. `next_row` is moved behind the last widget.
fn widgets_of(event: &EventFacts, at: usize, next_row: &mut u32) -> Result<Vec<Widget>> {
    let named = title(&event.name);
    let query = |more: Value| {
        let mut query = json!({"event_name": event.name});
        if let (Some(query), Some(more)) = (query.as_object_mut(), more.as_object()) {
            query.extend(more.clone());
        }
        query
    };
    let mut widgets = Vec::new();
    let mut add = |kind: &str, title: String, query: Value, viz: Value, place: [u32; 4]| {
        let [x, y, w, h] = place;
        let id = format!("event{}_{}", at + 1, widgets.len() + 1);
        let layout = json!({"x": x, "y": y, "w": w, "h": h});
        widgets.push(json!({"id": id, "kind": kind, "title": title, "query": query, "viz": viz, "layout": layout}));
    };
    let count = |more: Value| {
        let mut query = query(json!({"metric": "count"}));
        if let (Some(query), Some(more)) = (query.as_object_mut(), more.as_object()) {
            query.extend(more.clone());
        }
        query
    };
    let mut row = *next_row;
    let sparkline = json!({"sparkline": true});
    add("number", named.clone(), count(json!({"compare": "previous"})), sparkline, [0, row, 3, 3]);
    for (number, x) in event.numbers.iter().take(NUMBERS_MAX).zip([3, 6, 9]) {
        let (metric, label, format) = measure_of(number);
        let asked =
            query(json!({"metric": metric, "numeric_prop": number.name, "compare": "previous"}));
        let viz = json!({"sparkline": true, "format": format});
        add(
            "number",
            format!("{label} {}", title(&number.name).to_lowercase()),
            asked,
            viz,
            [x, row, 3, 3],
        );
    }
    row += 3;
    let mut dimensions: Vec<&TextFacts> =
        event.texts.iter().filter(|text| is_dimension(text)).collect();
    // Those with rollups answer fastest, those that more events have say most.
    dimensions
        .sort_by_key(|text| (!is_rollup_dimension(&text.name), std::cmp::Reverse(text.present)));
    dimensions.truncate(DIMENSIONS_MAX);
    let part = |text: &TextFacts| {
        let kind = if text.distinct_approx <= DONUT_VALUES { "donut" } else { "bar_list" };
        let asked = count(json!({"group_by": text.name}));
        (kind, format!("{named} by {}", title(&text.name).to_lowercase()), asked)
    };
    let width = if dimensions.is_empty() { 12 } else { 8 };
    add(
        "line",
        format!("{named} over time"),
        count(json!({})),
        json!({"fill": true}),
        [0, row, width, 6],
    );
    if let Some(first) = dimensions.first() {
        let (kind, title, asked) = part(first);
        add(kind, title, asked, json!({}), [8, row, 4, 6]);
    }
    row += 6;
    for (text, x) in dimensions.iter().skip(1).zip([0, 6]) {
        let (kind, title, asked) = part(text);
        add(kind, title, asked, json!({}), [x, row, 6, 6]);
    }
    *next_row = row + if dimensions.len() > 1 { 6 } else { 0 };
    serde_json::from_value(Value::Array(widgets))
        .map_err(|error| ApiError::internal(format!("generated widgets: {error}")))
}

/// Whether grouping by a property tells something: it has several values, but not one for each event.
///
/// 4 values in 1,000 events are a dimension; 999 in 1,000 are none. Two values always are one, since two events may be all there are so far.
fn is_dimension(text: &TextFacts) -> bool {
    (2..IDENTIFIER_VALUES).contains(&text.distinct_approx)
        && text.distinct_approx * 2 <= text.present.max(4)
}

/// Metric, word and format that suit a number, by what its name says.
///
/// `latency_ms` is a duration and shown by its p95, `cost_usd` is summed as a currency, `tokens` summed, anything else averaged. Only
/// whole words count: `items` is a quantity, `systems` is not.
fn measure_of(number: &NumberFacts) -> (&'static str, &'static str, Value) {
    let name = number.name.to_ascii_lowercase();
    let says = |words: &[&str]| {
        name.split(|char: char| !char.is_ascii_alphanumeric()).any(|part| words.contains(&part))
    };
    if says(&["ms", "latency", "duration"]) {
        return ("p95", "p95", json!({"style": "duration"}));
    }
    if says(&["usd", "cost", "price", "revenue", "amount", "spend"]) {
        return ("sum", "Total", json!({"style": "currency", "currency": "USD"}));
    }
    if says(&["count", "tokens", "bytes", "total", "items", "credits", "quantity"]) {
        return ("sum", "Total", json!({"style": "number"}));
    }
    ("avg", "Average", json!({"style": "number"}))
}

/// `api_call` as people write it: `Api call`. At most 60 characters; `Events` for a name without any that can be shown.
fn title(name: &str) -> String {
    let words = name.replace(['_', '-', '.'], " ");
    // Names may hold what a heading may not, and be as long as a paragraph.
    let shown: String =
        words.trim().chars().filter(|char| !char.is_control()).take(TITLE_CHARS_MAX).collect();
    let mut words = if shown.trim().is_empty() { "Events".to_owned() } else { shown };
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_makes_a_heading() {
        assert_eq!(title("api_call"), "Api call");
        assert_eq!((&*title("_"), &*title("\u{7}")), ("Events", "Events"));
        assert_eq!(title(&"é".repeat(200)).chars().count(), TITLE_CHARS_MAX);
    }

    fn text(name: &str, distinct_approx: u64) -> TextFacts {
        TextFacts { name: name.to_owned(), present: 1_000, distinct_approx, samples: Vec::new() }
    }

    fn number(name: &str) -> NumberFacts {
        NumberFacts { name: name.to_owned(), present: 1_000, min: 0.0, max: 9.0, avg: 4.0 }
    }

    #[test]
    fn a_generated_dashboard_is_one_that_could_be_saved() {
        let event = |name: &str, texts, numbers| EventFacts {
            name: name.to_owned(),
            count: 1_000,
            tenants: 2,
            first_ms: 0,
            last_ms: 1,
            rows_read: 1_000,
            texts,
            numbers,
        };
        let all = [
            event(
                "api_call",
                vec![text("country", 90), text("trace", 999), text("model", 4), text("only", 1)],
                vec![number("latency_ms"), number("cost"), number("x"), number("y"), number("z")],
            ),
            event("ünï.code", vec![], vec![]),
        ];
        let mut next_row = 0;
        let mut widgets = Vec::new();
        for (at, event) in all.iter().enumerate() {
            widgets.extend(widgets_of(event, at, &mut next_row).unwrap());
        }
        widgets
            .iter()
            .for_each(|widget| crate::app::dashboards::widgets::validate(widget, "").unwrap());
        let told: Vec<(&str, &str)> =
            widgets.iter().map(|widget| (&*widget.kind, &*widget.title)).collect();
        assert_eq!(
            told,
            [
                ("number", "Api call"),
                ("number", "p95 latency ms"),
                ("number", "Total cost"),
                ("number", "Average x"),
                ("line", "Api call over time"),
                ("donut", "Api call by model"),
                ("bar_list", "Api call by country"),
                ("number", "ünï code"),
                ("line", "ünï code over time"),
            ]
        );
        // No two of them lie on the same place.
        for (at, a) in widgets.iter().enumerate() {
            for b in &widgets[at + 1..] {
                let (a, b) = (&a.layout, &b.layout);
                let apart =
                    a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
                assert!(apart, "{a:?} {b:?}");
            }
        }
    }
}
