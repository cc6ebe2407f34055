//! Input of a drawing: a sheet of cards with their data, without access to the store or to
//! requests.
//!
//! ```text
//! Sheet   title "Usage", subtitle "Last 7 days  ·  northwind  ·  Made 2026-11-20 10:17 UTC"
//!   Card  id "requests", kind "number", place (0, 0) 3×3, metric count
//!         Ok   rows [Row { value: Some(1820.0), previous: Some(Some(1683.0)) }]
//!   Card  id "over_time", kind "line", place (3, 0) 9×3, metric count, grain Day
//!         Ok   rows [Row { bucket: Some(1794528000000), value: Some(412.0) }, …]
//!   Card  id "by_model", kind "bar_list", metric sum of cost_usd, group_by model
//!         Ok   rows [Row { group: Some(Some("gpt-4o")), value: Some(12.5) }, Row { group: Some(None), … }]
//!   Card  id "slow", kind "line"
//!         Err  "the query took too long"
//! ```

use jiff::tz::TimeZone;
use serde_json::{Map, Value as Json};

use super::{dates::Grain, format::Spec, theme::SERIES_MAX};
use crate::base::locale::Locale;

/// A dashboard with its data.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// Name of the dashboard: heading of the picture, or of the first page.
    pub title: String,
    /// Line below the heading: period, tenant, and time of making.
    pub subtitle: String,
    /// The widgets of the dashboard, in its order.
    pub cards: Vec<Card>,
    /// Theme of the dashboard as stored: mode and CSS colours.
    pub theme: Map<String, Json>,
    /// When the sheet was made, in milliseconds since 1970.
    pub made_at: i64,
    /// Language of the sheet, which its cards have as well.
    pub locale: Locale,
}

impl Sheet {
    /// The same in another language, but for the subtitle.
    pub fn in_locale(&self, locale: Locale) -> Self {
        let card = |card: &Card| Card { locale, ..card.clone() };
        Self { locale, cards: self.cards.iter().map(card).collect(), ..self.clone() }
    }
}

/// A widget with its data.
#[derive(Debug, Clone)]
pub struct Card {
    /// Id of the widget within the dashboard.
    pub id: String,
    /// Kind of the widget, such as `line` or `table`.
    pub kind: String,
    /// Heading of the widget; may be empty.
    pub title: String,
    /// Drawing options of the widget as stored, such as `format` and `color`.
    pub viz: Map<String, Json>,
    /// Position and size on the grid.
    pub place: Place,
    /// The parts of the query that affect the drawing.
    pub query: Question,
    /// The data, or a message for the card that there are none.
    pub answer: Result<Answer, String>,
    /// Language of numbers, dates and words.
    pub locale: Locale,
}

/// Position and size on a grid of twelve columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Column, from 0.
    pub x: u32,
    /// Row, from 0.
    pub y: u32,
    /// Width in columns, 1 to 12.
    pub w: u32,
    /// Height in rows, from 1; reports limit it to 24.
    pub h: u32,
}

/// The parts of a widget's query that affect the drawing.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Name of the metric; may be absent in tables of several measures, funnels and texts.
    pub metric: Option<String>,
    /// Numeric property of the metric; absent where the metric needs none.
    pub numeric_prop: Option<String>,
    /// Name of the event; absent for texts, and for funnels whose steps name theirs.
    pub event_name: Option<String>,
    /// Property that the rows are grouped by; absent: no groups.
    pub group_by: Option<String>,
    /// Number of groups to draw; absent: the default of the chart.
    pub limit: Option<usize>,
}

/// One row of the data.
/// Three shapes occur: one row alone (a number), rows by bucket with or without groups (charts over time),
/// and rows by group (lists, donuts, funnels, tables). An axis that the data lacks is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// Start of the bucket, in milliseconds since 1970; absent in data without buckets.
    pub bucket: Option<i64>,
    /// The group; the outer `None` in data without groups, the inner one for events without the
    /// property.
    /// `Some(None)` is drawn as `(none)`, and `Some(Some(""))` as `“”`.
    pub group: Option<Option<String>>,
    /// Value of the metric; absent where there is none, and in tables of several measures.
    pub value: Option<f64>,
    /// Value in the window before; the outer `None` when no comparison was requested.
    /// `Some(None)`: a comparison was requested, and the window before has no value.
    pub previous: Option<Option<f64>>,
    /// Values of the measures, in their order; empty but in tables of several measures.
    /// `[Some(1820.0), None]` for a row of two measures, the second without a value.
    pub values: Vec<Option<f64>>,
}

/// One measure of a table.
/// One column of a table: `sum` of `cost_usd`, headed `Cost`, with `{"style": "currency"}`.
#[derive(Debug, Clone)]
pub struct Measure {
    /// Heading of the column.
    pub label: String,
    /// Name of the metric.
    pub metric: String,
    /// Numeric property of the metric; absent where the metric needs none.
    pub numeric_prop: Option<String>,
    /// Format of the values.
    pub format: Spec,
}

/// The data of a widget.
/// The counts of groups differ where the server cut the list: of 120 countries, 50 come back. The head of the
/// card says `Top 50 of 120`, and shares are computed only with a `total` of all of them.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Rows in the server's order.
    pub rows: Vec<Row>,
    /// Length of the buckets.
    /// `Day` where the data has no buckets.
    pub grain: Grain,
    /// Start of the window, in milliseconds since 1970.
    pub from: i64,
    /// End of the window, in milliseconds since 1970; the first millisecond after it.
    pub to: i64,
    /// Name of the period, such as `30d`; absent for a window between two dates.
    pub period: Option<String>,
    /// Number of groups in the data.
    pub groups_total: usize,
    /// Number of groups among the rows.
    pub groups_returned: usize,
    /// The metric over all groups, those without a row included; absent when it is not known.
    pub total: Option<f64>,
    /// Measures of a table of several measures; empty for other data.
    pub measures: Vec<Measure>,
    /// Values of the sparkline of a number, by bucket; empty without one.
    /// Fewer than two values are not drawn.
    pub spark: Vec<Option<f64>>,
    /// Time zone of the buckets.
    pub zone: TimeZone,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            grain: Grain::Day,
            from: 0,
            to: 0,
            period: None,
            groups_total: 0,
            groups_returned: 0,
            total: None,
            measures: Vec::new(),
            spark: Vec::new(),
            zone: TimeZone::UTC,
        }
    }
}

/// The first colour of a widget as an index into the palette: `viz.color`, 1 to 8, less one.
/// `{"color": 8}` is 7. What is no integer of 1 to 8, such as 0, 9, 1.5 or `"2"`, is 0, the primary colour.
pub fn first_color(viz: &Map<String, Json>) -> usize {
    let color = viz.get("color").and_then(Json::as_u64).unwrap_or(1);
    if (1..=SERIES_MAX as u64).contains(&color) { color as usize - 1 } else { 0 }
}

impl Card {
    /// Format of the values.
    pub fn spec(&self) -> Spec {
        Spec::read(self.viz.get("format")).in_locale(self.locale)
    }

    /// A drawing option that is a string; `None` for an empty one.
    /// `option("subtitle")` of `{"subtitle": "per hour"}` is `per hour`; a number under the name is `None` as well.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.viz.get(name).and_then(Json::as_str).filter(|text| !text.is_empty())
    }

    /// The first colour of the widget as an index into the palette.
    pub fn first_color(&self) -> usize {
        first_color(&self.viz)
    }

    /// Name of the metric, if the query has one.
    pub fn metric(&self) -> Option<&str> {
        self.query.metric.as_deref()
    }
}
