//! The frame of every chart over time: axes, grid lines, labels, legend.
//!
//! The same measures as in `web/charts/plot.js`.
//!
//! Of a card of 6 columns and 4 rows, a chart has the area (18, 52) 536 × 154:
//!
//! ```text
//! 100K ┤------------------------------   y = 60     8 px from the top
//!  75K ┤------------------------------
//!  50K ┤------------------------------   y = 121
//!  25K ┤------------------------------
//!    0 ┤______________________________   y = 182    24 px from the bottom
//!      x = 54                    x = 542
//!      Nov 1   Nov 5   Nov 9   Nov 13    every fourth of 30 days, 16.8 px apart
//! ```
//!
//! The labels of the widest tick, `100K`, take 26 px, and the plot begins 10 px right of them. Bars have a band each
//! instead, 16.6 px wide, and end 2 px from the right.

use jiff::tz::TimeZone;

use super::{
    dates::{Grain, bucket_short, starts_day},
    font::{self, Weight},
    format::{Axis, Spec},
    scale::{domain, label_stride, linear, text_width, ticks},
    series::{Series, Timed},
    svg::{Style, Svg},
    theme::Ink,
    words::words,
};

// Half a line of text: the label of the largest tick is centred on its line.
const TOP: f64 = 8.0;
// Room for the labels of the horizontal axis.
const BOTTOM: f64 = 24.0;
/// Half of a typical label: the last one may extend this far past its point.
const RIGHT: f64 = 12.0;
const TICK: Style = Style::new(11.5, Weight::Regular, Ink::Muted);
const LEGEND: Style = Style::new(12.5, Weight::Regular, Ink::Text2);
const LEGEND_ROW: f64 = 26.0;
const LEGEND_ROWS_MAX: usize = 4;
/// Height of a drawing that still shows something.
const PLOT_MIN: f64 = 90.0;
// Names are cut at 147 px: this less the mark and its gaps.
const LEGEND_ENTRY_MAX: f64 = 178.0;

/// A rectangle to draw in, in pixels from the upper left corner of the drawing.
/// `Area { x: 18.0, y: 52.0, w: 536.0, h: 154.0 }`.
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
/// `at: [0, 25000, 50000, 75000, 100000]`, `labels: ["0", "25K", "50K", "75K", "100K"]`.
pub struct Ticks {
    /// Values of the ticks, rising, in the unit of the data.
    pub at: Vec<f64>,
    /// Labels of the ticks, with one unit for all.
    pub labels: Vec<String>,
}

impl Ticks {
    /// Ticks for all values, with one unit and as many as are easily read.
    /// `whole`: no ticks between whole numbers, as for counts. `cut`: the axis need not begin at zero.
    pub fn of(values: &[Option<f64>], spec: &Spec, whole: bool, cut: bool) -> Self {
        let (min, max) = domain(values.iter().copied(), cut);
        let axis = Axis::of(min.abs().max(max.abs()), spec);
        let divisor = axis.divisor;
        // Ticks are round in the unit of their labels: 20, 40 and 60 min up to 3,000 s, and not 16.7 min for 1,000 s.
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
    /// For bars, the width of a band.
    pub step: f64,
    /// Number of buckets.
    count: usize,
    /// Whether each bucket has a band, as for bars, or is a point.
    band: bool,
    /// Smallest tick, at the lower edge.
    low: f64,
    /// Largest tick, at the upper edge.
    high: f64,
}

impl Geometry {
    /// Horizontal position of the middle of a bucket, in pixels.
    /// With points, bucket 0 is on the left edge and the last on the right one; a single point is in the middle.
    pub fn x(&self, at: usize) -> f64 {
        match (self.band, self.count) {
            (true, _) => self.left + self.step * (at as f64 + 0.5),
            (false, 1) => f64::midpoint(self.left, self.right),
            _ => self.left + self.step * at as f64,
        }
    }

    /// Vertical position of a value, in pixels; clamped to the plot.
    /// In the example, 25,000 is at 151.5 and 97,000 at 63.7. What lies above the largest tick is drawn on it.
    pub fn y(&self, value: f64) -> f64 {
        // Sums beyond the range of `f64` may be NaN: they are drawn at the lower edge.
        let value = if value.is_nan() { self.low } else { value };
        linear(self.low, self.high, self.bottom, self.top)(value).clamp(self.top, self.bottom)
    }
}

/// Draws axes and labels into an area; returns the geometry of the plot. `band`: buckets have a
/// width, as for bars. `margin` pixels are left free on the right.
/// `ticks` decide the left edge by their widest label; `zone` is that of the labels below.
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
    // However small the card, the plot is at least 10 px high and wide.
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
        // On the middle of a pixel, a line of 1 px is sharp.
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
///
/// ```text
/// grain   buckets    labels
/// day     30         Nov 1, Nov 5, Nov 9, …          as many as do not touch
/// hour    24         Nov 13, 3 AM, 6 AM, …           the date at midnight
/// hour    168        Nov 13, Nov 14, …               midnights only: more than 48 hours
/// month   14         Nov, Jan 2027, Mar, …           the year in January
/// ```
pub fn x_labels(model: &Timed, step: f64, zone: &TimeZone) -> Vec<(usize, String)> {
    let clock = model.grain == Grain::Hour;
    let days = clock && model.buckets.len() > 48;
    let at_midnight = |at: usize| starts_day(model.buckets[at], zone);
    let candidates: Vec<usize> =
        (0..model.buckets.len()).filter(|&at| !days || at_midnight(at)).collect();
    let text = |at: usize| {
        let dated = !clock || days || at_midnight(at);
        bucket_short(model.buckets[at], model.grain, dated, zone, model.locale)
    };
    let widest = candidates.iter().map(|&at| text_width(&text(at))).fold(0.0, f64::max);
    // Midnights are 24 buckets apart, other candidates one.
    let apart = match candidates.as_slice() {
        [first, second, ..] => (second - first) as f64 * step,
        _ => f64::INFINITY,
    };
    let stride = label_stride(candidates.len(), apart, widest);
    candidates.into_iter().step_by(stride).map(|at| (at, text(at))).collect()
}

/// Draws the legend at the lower edge of an area; returns the area above it.
/// `line`: the mark is a short line, else a square. Names that need two rows take 52 px, and the area that
/// comes back is 52 px less high. `+3 more` at the right counts the entries without a row.
pub fn legend(svg: &mut Svg, area: Area, model: &Timed, line: bool) -> Area {
    let label =
        |one: &Series| font::fit(&one.label, LEGEND.size, LEGEND.weight, LEGEND_ENTRY_MAX - 31.0);
    let mut rows: Vec<Vec<(f64, &Series, String)>> = vec![Vec::new()];
    let mut x = 0.0;
    for one in &model.series {
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
        svg.text(area.x + area.w, y, LEGEND.end(), &(words(model.locale).more_series)(hidden));
    }
    Area { h: area.h - height, ..area }
}
