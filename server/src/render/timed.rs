//! Charts over time: lines, areas, bars, stacked bars.
//!
//! The same drawing as in `web/charts/timed.js`: straight segments, gaps where values are missing, bars on
//! zero, and a bucket that is not whole dashed or paler.
//!
//! ```text
//! line, 2 series       lines, their names at their ends            from 440 px of width and up to 4 series
//! line, 6 series       lines, and a legend below
//! area                 lines, and a fade down to zero
//! bar, 1 series        bars, and the window before as short lines across them
//! stacked_bar          one layer for each series, the first at the bottom
//! stack = percent      each bar is 100 % high; no thresholds
//! ```
//!
//! ```text
//! Nov 10   Nov 11   Nov 12   Nov 13                         it is 10:00 on Nov 13
//!   ──────────────────── ─ ─ ─ ─                            the last part of the line is dashed
//!   █        █        █        ░                            the last bar is paler
//! ```

use super::{
    font::{self, Weight},
    format::Spec,
    model::{Answer, Card},
    plot::{Area, Geometry, Ticks, frame, legend},
    scale::spread,
    series::{Series, Timed, is_additive, is_whole, paint, runs, stack, timed},
    svg::{Style, Svg},
    theme::Ink,
    threshold::{self, thresholds_of},
    words::words,
};

/// Up to this many lines carry their name at their end.
/// More series have a legend.
const DIRECT_LABELS_MAX: usize = 4;
const DIRECT_LABELS_WIDTH_MIN: f64 = 440.0;
// Characters of a name at a line's end.
const LABEL_CHARS_MAX: usize = 18;
// In pixels: a bar stays this narrow where two bars share a wide card.
const BAR_WIDTH_MAX: f64 = 34.0;
const BAR_RADIUS: f64 = 3.0;
// Pixels between two layers of a stack.
const STACK_GAP: f64 = 1.5;
const END: Style = Style::new(11.5, Weight::Medium, Ink::Text2);
const NOTE: Style = Style::new(11.5, Weight::Regular, Ink::Muted);

/// Whether the window covers only a part of a bucket: the first or the last may be such.
fn is_partial(model: &Timed, at: usize) -> bool {
    (model.partial_last && at + 1 == model.buckets.len()) || (model.partial_first && at == 0)
}

/// The series of a card, in the colours that it begins with.
fn model_of(card: &Card, answer: &Answer) -> Timed {
    let mut model = timed(answer, &card.title, card.query.limit, card.metric(), card.locale);
    paint(model.series.iter_mut().map(|one| &mut one.color), card.first_color());
    model
}

/// Draws lines, with areas below them where there is one series.
/// One series has the window before as a dotted line. `{"axis": {"min": "auto"}}` lets the axis begin elsewhere than
/// at zero, and says so below; a filled chart begins at zero in any case.
pub fn lines(svg: &mut Svg, mut area: Area, card: &Card, answer: &Answer) {
    let model = model_of(card, answer);
    let several = model.series.len() > 1;
    let wants_fill = card.viz.get("fill").and_then(serde_json::Value::as_bool) == Some(true);
    // The option `fill` is ignored for several lines, whose fills would hide each other.
    let filled = card.kind == "area" || (wants_fill && !several);
    let direct =
        several && model.series.len() <= DIRECT_LABELS_MAX && area.w >= DIRECT_LABELS_WIDTH_MIN;
    let axis_min =
        card.viz.get("axis").and_then(|axis| axis.get("min")).and_then(|min| min.as_str());
    let cut = !filled && axis_min == Some("auto");
    if several && !direct {
        area = legend(svg, area, &model, true);
    }
    if cut {
        area.h -= 16.0;
        svg.text(area.x, area.y + area.h + 8.0, NOTE, words(card.locale).cut_axis);
    }
    let is_cut_sum = model.partial_first && (is_additive(card.metric()) || is_whole(card.metric()));
    // The axis is one of values that are drawn.
    let from = usize::from(is_cut_sum && model.buckets.len() > 2);
    let drawn = model.series.iter().map(|one| &one.values).chain(&model.previous);
    let mut values: Vec<Option<f64>> =
        drawn.flat_map(|values| values.iter().skip(from).copied()).collect();
    let thresholds = thresholds_of(&card.viz);
    values.extend(thresholds.iter().map(|one| Some(one.value)));
    let ticks = Ticks::of(&values, &card.spec(), is_whole(card.metric()), cut);
    // Names begin 19 px right of the plot: 12 px are free at any plot of lines, and 6 are added here.
    let name_width = |one: &Series| clip(&one.label).chars().count() as f64 * 6.5 + 6.0;
    let margin = if direct { model.series.iter().map(name_width).fold(0.0, f64::max) } else { 0.0 };
    let g = frame(svg, area, &model, &ticks, false, margin, &answer.zone);
    if let Some(previous) = &model.previous {
        for run in runs(previous) {
            let run = shape(&run, is_cut_sum);
            svg.stroke(&line_path(run, previous, &g), Ink::Muted, 1.5, "2 3");
        }
    }
    // The largest is drawn last, above the others.
    for one in model.series.iter().rev() {
        line(svg, one, &model, &g, filled, is_cut_sum);
    }
    threshold::draw(svg, &thresholds, &g, &card.spec());
    if direct {
        end_labels(svg, &model.series, &g);
    }
}

/// `a_rather_long_group_name` is `a_rather_long_gro…`; 18 characters stay.
fn clip(text: &str) -> String {
    if text.chars().count() <= LABEL_CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(LABEL_CHARS_MAX - 1).chain(['…']).collect()
}

/// `M54.0 151.5L70.8 121.0`: the points of a run, one after the other.
fn line_path(run: &[usize], values: &[Option<f64>], g: &Geometry) -> String {
    let point = |(turn, &at): (usize, &usize)| {
        let y = g.y(values[at].unwrap_or_default());
        format!("{}{:.1} {y:.1}", if turn == 0 { "M" } else { "L" }, g.x(at))
    };
    run.iter().enumerate().map(point).collect()
}

/// The points of a line: without the first bucket where the window cuts it.
fn shape(run: &[usize], is_cut_sum: bool) -> &[usize] {
    match run {
        [0, rest @ ..] if is_cut_sum && rest.len() > 1 => rest,
        _ => run,
    }
}

/// One series: its fill, its solid part, and the dashed ends.
/// `is_cut_sum`: the window cuts the first bucket of sums, which would be drawn as a rise from nearly nothing: the line begins behind it.
fn line(svg: &mut Svg, one: &Series, model: &Timed, g: &Geometry, filled: bool, is_cut_sum: bool) {
    for run in runs(&one.values) {
        let run = shape(&run, is_cut_sum);
        let (Some(&first), Some(&end)) = (run.first(), run.last()) else { continue };
        // One value between two gaps has no line: a dot shows it.
        if first == end {
            svg.dot((g.x(first), g.y(one.values[first].unwrap_or_default())), one.color);
            continue;
        }
        if filled {
            let (path, zero) = (line_path(run, &one.values, g), g.y(0.0));
            let area = format!("{path}L{:.1} {zero:.1}L{:.1} {zero:.1}Z", g.x(end), g.x(first));
            svg.fade(&area, one.color, 0.2);
        }
        let from = usize::from(is_partial(model, first));
        let to = run.len() - usize::from(is_partial(model, end));
        // Between the dashed ends; a run of two points may have no solid part.
        if to > from + 1 {
            svg.stroke(&line_path(&run[from..to], &one.values, g), one.color, 2.0, "");
        }
        if from > 0 {
            svg.stroke(&line_path(&run[..2], &one.values, g), one.color, 2.0, "4 4");
        }
        if to < run.len() && run.len() - from > 1 {
            svg.stroke(&line_path(&run[run.len() - 2..], &one.values, g), one.color, 2.0, "4 4");
        }
    }
}

/// Names at the line ends, pushed apart where lines end close together.
/// Names are at least 15 px apart; a dot in the colour of the line is before each.
fn end_labels(svg: &mut Svg, series: &[Series], g: &Geometry) {
    let end = |one: &Series| one.values.iter().rev().flatten().next().map(|&value| g.y(value));
    let ends: Vec<(&Series, f64)> =
        series.iter().filter_map(|one| end(one).map(|y| (one, y))).collect();
    let wanted: Vec<f64> = ends.iter().map(|(_, y)| *y).collect();
    let placed = spread(&wanted, 15.0, g.top + 4.0, g.bottom - 2.0);
    for ((one, _), y) in ends.iter().zip(placed) {
        svg.dot((g.right + 11.0, y), one.color);
        let text = font::fit(&clip(&one.label), END.size, END.weight, 130.0);
        svg.text(g.right + 19.0, y, END, &text);
    }
}

/// Draws bars over time, stacked where there are several series.
/// One value of the window before is a line across its bar, 2 px wider than it.
pub fn bars(svg: &mut Svg, mut area: Area, card: &Card, answer: &Answer) {
    let model = model_of(card, answer);
    let several = model.series.len() > 1;
    let percent = card.kind == "stacked_bar" && card.option("stack") == Some("percent");
    if several {
        area = legend(svg, area, &model, false);
    }
    let parts = stack(&model.series, model.buckets.len(), percent);
    let mut values: Vec<Option<f64>> = parts.iter().flatten().map(|(_, to)| Some(*to)).collect();
    values.extend(model.previous.iter().flatten());
    // Parts of a whole have no amount to compare with.
    let thresholds = if percent { Vec::new() } else { thresholds_of(&card.viz) };
    values.extend(thresholds.iter().map(|one| Some(one.value)));
    let spec = if percent { Spec::percent(card.locale) } else { card.spec() };
    let ticks = Ticks::of(&values, &spec, !percent && is_whole(card.metric()), false);
    let g = frame(svg, area, &model, &ticks, true, 0.0, &answer.zone);
    // Two thirds of a band, or four fifths where bands are narrower than 8 px.
    let width = (g.step * if g.step < 8.0 { 0.8 } else { 0.68 }).clamp(1.0, BAR_WIDTH_MAX);
    let gap = if width > 4.0 { STACK_GAP } else { 0.0 };
    // The last layer of a bar that has a height: only that one has round corners.
    let top = |at: usize| parts.iter().rposition(|layer| layer[at].0 != layer[at].1);
    for (layer, (one, part)) in model.series.iter().zip(&parts).enumerate() {
        let bar = |(at, &(from, to)): (usize, &(f64, f64))| {
            if from == to {
                return String::new();
            }
            let (y0, y1) = (g.y(from), g.y(to));
            // The gap is taken from the foot of a layer, at most half of its height; the first layer stands on zero.
            let inset = (y0 - y1).signum() * gap.min((y0 - y1).abs() / 2.0);
            let foot = if from == 0.0 { y0 } else { y0 - inset };
            bar_path(g.x(at) - width / 2.0, width, foot, y1, top(at) == Some(layer))
        };
        let path: String = part.iter().enumerate().map(bar).collect();
        svg.fill(&path, one.color);
    }
    for at in (0..model.buckets.len()).filter(|&at| is_partial(&model, at)) {
        // A veil in the colour of the card over the whole bar makes it paler.
        let highest = parts.iter().map(|layer| layer[at].1).fold(0.0, f64::max);
        let path = bar_path(g.x(at) - width / 2.0, width, g.y(0.0), g.y(highest), true);
        let card = svg.color(Ink::Card);
        svg.raw(format_args!(r#"<path d="{path}" fill="{card}" fill-opacity="0.45"/>"#));
    }
    let ink = svg.color(Ink::Text);
    for (at, value) in model.previous.iter().flatten().enumerate() {
        let Some(value) = value else { continue };
        let (left, y) = (g.x(at) - width / 2.0 - 1.0, g.y(*value));
        svg.raw(format_args!(
            r#"<path d="M{left:.1} {y:.1}h{:.1}" stroke="{ink}" stroke-width="1.5" stroke-opacity="0.55"/>"#,
            width + 2.0
        ));
    }
    threshold::draw(svg, &thresholds, &g, &card.spec());
}

/// A bar between two heights, rounded at the far end.
/// From x 10 to 18 and from y 100 up to 40, round:
///
/// ```text
/// M10.00 100.00V43.00Q10.00 40.00 13.00 40.00H15.00Q18.00 40.00 18.00 43.00V100.00Z
/// ```
fn bar_path(x: f64, width: f64, from: f64, to: f64, round: bool) -> String {
    let sign = if to < from { 1.0 } else { -1.0 };
    let r = if round { BAR_RADIUS.min(width / 2.0).min((from - to).abs()) } else { 0.0 };
    let (near, far) = (x + r, x + width);
    format!(
        "M{x:.2} {from:.2}V{0:.2}Q{x:.2} {to:.2} {near:.2} {to:.2}H{1:.2}Q{far:.2} {to:.2} {far:.2} {0:.2}V{from:.2}Z",
        to + sign * r,
        far - r
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_sums_begins_behind_a_bucket_that_the_window_cuts() {
        assert_eq!(shape(&[0, 1, 2], true), [1, 2]);
        assert_eq!(shape(&[0, 1, 2], false), [0, 1, 2]);
        // A line behind a gap begins with a whole bucket, and of two buckets a line would be left with one point.
        assert_eq!(shape(&[3, 4, 5], true), [3, 4, 5]);
        assert_eq!(shape(&[0, 1], true), [0, 1]);
    }
}
