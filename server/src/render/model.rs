//! What is drawn: a sheet of cards with their data. It knows nothing of stores and requests.

use jiff::tz::TimeZone;
use serde_json::{Map, Value as Json};

use super::{
    format::{Grain, Spec},
    theme::SERIES_MAX,
};

/// A dashboard with its data.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// Heading.
    pub title: String,
    /// What it is about: period, tenant, when it was made.
    pub subtitle: String,
    /// Its widgets, in the order in which they were given.
    pub cards: Vec<Card>,
    /// Colours of the dashboard, as they are stored.
    pub theme: Map<String, Json>,
    /// When it was made, in milliseconds since 1970.
    pub made_at: i64,
}

/// A widget with its data.
#[derive(Debug, Clone)]
pub struct Card {
    /// Id within the dashboard.
    pub id: String,
    /// What it is drawn as.
    pub kind: String,
    /// Heading.
    pub title: String,
    /// Drawing options.
    pub viz: Map<String, Json>,
    /// Column and row of its corner, columns and rows that it takes.
    pub place: Place,
    /// What it asks.
    pub query: Question,
    /// Its data, or why there are none.
    pub answer: Result<Answer, String>,
}

/// A place on the grid of twelve columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Column, from 0.
    pub x: u32,
    /// Row, from 0.
    pub y: u32,
    /// Columns.
    pub w: u32,
    /// Rows.
    pub h: u32,
}

/// What a widget asks, as far as drawing needs it.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Name of the metric; nothing for tables of several measures.
    pub metric: Option<String>,
    /// The number that it is about.
    pub numeric_prop: Option<String>,
    /// Event.
    pub event_name: Option<String>,
    /// Property that it is grouped by.
    pub group_by: Option<String>,
    /// Groups that are shown.
    pub limit: Option<usize>,
}

/// One row of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// Start of its bucket.
    pub bucket: Option<i64>,
    /// Its group, where there are groups; the inner absence is what has none.
    pub group: Option<Option<String>>,
    /// Its value.
    pub value: Option<f64>,
    /// The value in the window before, where it was asked for.
    pub previous: Option<Option<f64>>,
    /// Its values, in a table of several measures.
    pub values: Vec<Option<f64>>,
}

/// One measure of a table.
#[derive(Debug, Clone)]
pub struct Measure {
    /// Heading.
    pub label: String,
    /// Name of the metric.
    pub metric: String,
    /// The number that it is about.
    pub numeric_prop: Option<String>,
    /// How it reads.
    pub format: Spec,
}

/// The data of a widget.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Rows in the server's order.
    pub rows: Vec<Row>,
    /// Length of the buckets.
    pub grain: Grain,
    /// First millisecond of the window.
    pub from: i64,
    /// First millisecond after the window.
    pub to: i64,
    /// Name of the period, where it is one.
    pub period: Option<String>,
    /// Groups that there are.
    pub groups_total: usize,
    /// Groups among the rows.
    pub groups_returned: usize,
    /// The metric over all groups, also those that were left out.
    pub total: Option<f64>,
    /// Measures of a table.
    pub measures: Vec<Measure>,
    /// The small line beside a number.
    pub spark: Vec<Option<f64>>,
    /// Zone of its buckets.
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

/// The place in the palette, from 0, of `viz.color`, which is 1 to 8.
pub fn first_color(viz: &Map<String, Json>) -> usize {
    let color = viz.get("color").and_then(Json::as_u64).unwrap_or(1);
    if (1..=SERIES_MAX as u64).contains(&color) { color as usize - 1 } else { 0 }
}

impl Card {
    /// How its values read.
    pub fn spec(&self) -> Spec {
        Spec::read(self.viz.get("format"))
    }

    /// A drawing option that is text.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.viz.get(name).and_then(Json::as_str).filter(|text| !text.is_empty())
    }

    /// The place in the palette that its first colour takes, from 0.
    pub fn first_color(&self) -> usize {
        first_color(&self.viz)
    }

    /// Name of its metric.
    pub fn metric(&self) -> Option<&str> {
        self.query.metric.as_deref()
    }
}
