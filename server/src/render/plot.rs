//! The frame of every chart over time: axes, grid lines, labels, legend.
//!
//! The same measures as in `web/charts/plot.js`.

use jiff::tz::TimeZone;

use super::{
    font::{self, Weight},
    format::{Axis, Grain, Spec, bucket_short, starts_day},
    scale::{domain, label_stride, linear, text_width, ticks},
    series::{Series, Timed},
    svg::{Style, Svg},
    theme::Ink,
};

const TOP: f64 = 8.0;
const BOTTOM: f64 = 24.0;
/// Half of a typical label: the last one may extend this far past its point.
const RIGHT: f64 = 12.0;
const TICK: Style = Style::new(11.5, Weight::Regular, Ink::Muted);
const LEGEND: Style = Style::new(12.5, Weight::Regular, Ink::Text2);
const LEGEND_ROW: f64 = 26.0;
const LEGEND_ROWS_MAX: usize = 4;
/// Height of a drawing that still shows something.
const PLOT_MIN: f64 = 90.0;
const LEGEND_ENTRY_MAX: f64 = 178.0;

/// A rectangle to draw in, in pixels from the upper left corner of the drawing.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    /// Left edge, in pixels.
    pub x: f64,
    /// Upper edge, in pixels.
    pub y: f64,
    /// Width in pixels.
    pub w: f64,
    /// Height in pixels.
    pub h: f64,
}

/// Ticks of an axis with their labels.
pub struct Ticks {
    /// Values of the ticks, rising, in the unit of the data.
    pub at: Vec<f64>,
    /// Labels of the ticks, with one unit for all.
    pub labels: Vec<String>,
}

impl Ticks {
    /// Ticks for all values, with one unit and as many as are easily read.
    pub fn of(values: &[Option<f64>], spec: &Spec, whole: bool, cut: bool) -> Self {
        let (min, max) = domain(values.iter().copied(), cut);
        let axis = Axis::of(min.abs().max(max.abs()), spec);
        let divisor = axis.divisor;
        let at = ticks(min / divisor, max / divisor, whole && divisor == 1.0);
        let labels = at.iter().map(|&tick| axis.label(tick)).collect();
        Self { at: at.iter().map(|tick| tick * divisor).collect(), labels }
    }
}

/// Geometry of a plot: its edges, and the maps from buckets and values to pixels.
#[derive(Debug, Clone, Copy)]
pub struct Geometry {
    /// Left edge of the plot, in pixels.
    pub left: f64,
    /// Right edge of the plot, in pixels.
    pub right: f64,
    /// Upper edge of the plot, in pixels, at the largest tick.
    pub top: f64,
    /// Lower edge of the plot, in pixels, at the smallest tick.
    pub bottom: f64,
    /// Distance between two buckets, in pixels.
    pub step: f64,
    count: usize,
    band: bool,
    low: f64,
    high: f64,
}

impl Geometry {
    /// Horizontal position of the middle of a bucket, in pixels.
    pub fn x(&self, at: usize) -> f64 {
        match (self.band, self.count) {
            (true, _) => self.left + self.step * (at as f64 + 0.5),
            (false, 1) => f64::midpoint(self.left, self.right),
            _ => self.left + self.step * at as f64,
        }
    }

    /// Vertical position of a value, in pixels; clamped to the plot.
    pub fn y(&self, value: f64) -> f64 {
        // Sums beyond the range of `f64` may be NaN: they are drawn at the lower edge.
        let value = if value.is_nan() { self.low } else { value };
        linear(self.low, self.high, self.bottom, self.top)(value).clamp(self.top, self.bottom)
    }
}

/// Draws axes and labels into an area; returns the geometry of the plot. `band`: buckets have a
/// width, as for bars. `margin` pixels are left free on the right.
pub fn frame(
    svg: &mut Svg,
    area: Area,
    model: &Timed,
    ticks: &Ticks,
    band: bool,
    margin: f64,
    zone: &TimeZone,
) -> Geometry {
    let widest = ticks.labels.iter().map(|label| text_width(label)).fold(0.0, f64::max);
    let left = area.x + widest.ceil() + 10.0;
    let edge = if band { 2.0 } else { RIGHT };
    let right = (area.x + area.w - edge - margin).max(left + 10.0);
    let (top, bottom) = (area.y + TOP, (area.y + area.h - BOTTOM).max(area.y + TOP + 10.0));
    let count = model.buckets.len();
    let parts = if band { count } else { count.saturating_sub(1) };
    let geometry = Geometry {
        left,
        right,
        top,
        bottom,
        step: (right - left) / parts.max(1) as f64,
        count,
        band,
        low: ticks.at.first().copied().unwrap_or(0.0),
        high: ticks.at.last().copied().unwrap_or(1.0),
    };
    for (&value, label) in ticks.at.iter().zip(&ticks.labels) {
        let y = geometry.y(value).round() + 0.5;
        svg.line((left, y), (right, y), if value == 0.0 { Ink::Axis } else { Ink::Grid }, 1.0);
        svg.text(left - 8.0, y, TICK.end(), label);
    }
    let mut last: Option<f64> = None;
    for (at, text) in x_labels(model, geometry.step, zone) {
        let half = text_width(&text) / 2.0;
        let x = geometry.x(at).clamp(area.x + half, (area.x + area.w - half).max(area.x + half));
        // The last label was moved in from the edge: leave it out when it would touch its
        // neighbour.
        if last.is_some_and(|last| x - last < half * 2.0 + 8.0) {
            continue;
        }
        last = Some(geometry.x(at));
        svg.text(x, bottom + 14.0, TICK.middle(), &text);
    }
    geometry
}

/// Labels of the horizontal axis: index of the bucket, and text.
pub fn x_labels(model: &Timed, step: f64, zone: &TimeZone) -> Vec<(usize, String)> {
    let clock = model.grain == Grain::Hour;
    let days = clock && model.buckets.len() > 48;
    let at_midnight = |at: usize| starts_day(model.buckets[at], zone);
    let candidates: Vec<usize> =
        (0..model.buckets.len()).filter(|&at| !days || at_midnight(at)).collect();
    let text = |at: usize| {
        bucket_short(model.buckets[at], model.grain, !clock || days || at_midnight(at), zone)
    };
    let widest = candidates.iter().map(|&at| text_width(&text(at))).fold(0.0, f64::max);
    let apart = match candidates.as_slice() {
        [first, second, ..] => (second - first) as f64 * step,
        _ => f64::INFINITY,
    };
    let stride = label_stride(candidates.len(), apart, widest);
    candidates.into_iter().step_by(stride).map(|at| (at, text(at))).collect()
}

/// Draws the legend at the lower edge of an area; returns the area above it.
pub fn legend(svg: &mut Svg, area: Area, series: &[Series], line: bool) -> Area {
    let label =
        |one: &Series| font::fit(&one.label, LEGEND.size, LEGEND.weight, LEGEND_ENTRY_MAX - 31.0);
    let mut rows: Vec<Vec<(f64, &Series, String)>> = vec![Vec::new()];
    let mut x = 0.0;
    for one in series {
        let text = label(one);
        let wide = 12.0 + 19.0 + font::width(&text, LEGEND.size, LEGEND.weight) + 4.0;
        if x > 0.0 && x + wide > area.w {
            rows.push(Vec::new());
            x = 0.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push((x, one, text));
        }
        x += wide;
    }
    // Paper does not scroll: draw as many rows as leave room for the plot, and count the others.
    let fit = (((area.h - PLOT_MIN) / LEGEND_ROW).floor().max(0.0) as usize).min(LEGEND_ROWS_MAX);
    let hidden: usize = rows.iter().skip(fit).map(Vec::len).sum();
    rows.truncate(fit);
    let height = rows.len() as f64 * LEGEND_ROW;
    for (at, row) in rows.iter().enumerate() {
        let y = area.y + area.h - height + (at as f64 + 0.5) * LEGEND_ROW + 6.0;
        for (x, one, text) in row {
            let x = area.x + x;
            if line {
                svg.line((x, y), (x + 12.0, y), one.color, 2.5);
            } else {
                svg.rect((x, y - 5.0, 10.0, 10.0), 3.0, one.color);
            }
            svg.text(x + 19.0, y, LEGEND, text);
        }
    }
    if hidden > 0 && fit > 0 {
        let y = area.y + area.h - 0.5 * LEGEND_ROW + 6.0;
        svg.text(area.x + area.w, y, LEGEND.end(), &format!("+{hidden} more"));
    }
    Area { h: area.h - height, ..area }
}
