//! Lines across a chart over time where a value begins to matter: `viz.thresholds`.
//!
//! The same lines as in `web/charts/threshold.js`: dashed, and named by their label or value.
//!
//! ```text
//! viz.thresholds
//! {"value": 500, "label": "Budget", "tone": "bad"}    a red line at 500, named Budget
//! {"value": -1.5, "tone": "odd"}                      a grey line at −1.5, named −1.5
//! {"value": "7"}   {"label": "none"}                  skipped: no number
//! the fourth that can be drawn                        not drawn
//! {"value": 1} instead of a list                      nothing
//! ```
//!
//! The axis reaches as far as the thresholds: callers add their values to those of the series. Charts in percent of
//! a stack have none.

use serde_json::{Map, Value};

use super::{
    font::Weight,
    format::{Spec, short},
    plot::Geometry,
    svg::{Style, Svg},
    theme::Ink,
};

/// More lines than this hide what they are drawn over.
/// Entries that are skipped do not count.
const THRESHOLDS_MAX: usize = 3;
const LABEL: Style = Style::new(11.5, Weight::Medium, Ink::Text2).end();

/// A line across a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// Where it lies.
    pub value: f64,
    /// Its name; empty without one.
    /// At the right end of the line; without one, its value is written there, as `$500`.
    pub label: String,
    /// The colour of its `tone`; grey without one.
    /// `good`, `warn` and `bad`; any other tone is grey as well.
    pub ink: Ink,
}

/// What can be drawn of the thresholds in drawing options.
/// In the order of the list; a threshold needs only its `value`.
pub fn thresholds_of(viz: &Map<String, Value>) -> Vec<Threshold> {
    let all = viz.get("thresholds").and_then(Value::as_array);
    let read = |one: &Value| {
        let ink = match one["tone"].as_str() {
            Some("good") => Ink::Good,
            Some("warn") => Ink::Warn,
            Some("bad") => Ink::Bad,
            _ => Ink::Text2,
        };
        let label = one["label"].as_str().unwrap_or_default().to_owned();
        Some(Threshold { value: one["value"].as_f64()?, label, ink })
    };
    all.into_iter().flatten().filter_map(read).take(THRESHOLDS_MAX).collect()
}

/// Draws them over a chart.
/// Dashes of 6 px with gaps of 4 px, from edge to edge of the plot.
pub fn draw(svg: &mut Svg, thresholds: &[Threshold], g: &Geometry, spec: &Spec) {
    for Threshold { value, label, ink } in thresholds {
        let y = g.y(*value);
        svg.stroke(&format!("M{:.1} {y:.1}L{:.1} {y:.1}", g.left, g.right), *ink, 1.5, "6 4");
        // Above its line, but for one at the upper edge.
        let middle = if y - g.top > 14.0 { y - 10.0 } else { y + 9.0 };
        let text = if label.is_empty() { short(Some(*value), spec) } else { label.clone() };
        svg.text(g.right, middle, Style { color: *ink, ..LABEL }, &text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_numbers_are_lines_and_three_at_most() {
        let given = json!([
            {"value": 500, "label": "Budget", "tone": "bad"}, {"value": "7"}, {"label": "none"},
            {"value": -1.5, "tone": "odd"}, {"value": 2}, {"value": 3},
        ]);
        let mut viz = Map::from_iter([("thresholds".to_owned(), given)]);
        let read = thresholds_of(&viz);
        let seen: Vec<_> = read.iter().map(|one| (one.value, &*one.label, one.ink)).collect();
        assert_eq!(
            seen,
            [(500.0, "Budget", Ink::Bad), (-1.5, "", Ink::Text2), (2.0, "", Ink::Text2)]
        );
        viz.insert("thresholds".to_owned(), json!({"value": 1}));
        assert_eq!(thresholds_of(&viz), []);
    }
}
