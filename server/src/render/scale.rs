//! Ticks and positions: the arithmetic between a value and a length.
//!
//! The same rules as in `web/shared/scale.js`, held together by the numbers in `web/test/golden.json`.
//!
//! ```text
//! ticks(0, 97000, false)        [0, 25000, 50000, 75000, 100000]
//! ticks(0, 10, false)           [0, 2.5, 5, 7.5, 10]
//! ticks(0, 10, true)            [0, 5, 10]                          no half calls
//! ticks(-5, 5, false)           [-5, -2.5, 0, 2.5, 5]
//! ticks(0.2, 0.21, false)       [0.2, 0.2025, 0.205, 0.2075, 0.21]
//! ticks(0, 0, false)            [0, 0.25, 0.5, 0.75, 1]             a chart of zeros has an axis too
//! ticks(5, 5, false)            [5, 5.25, 5.5, 5.75, 6]
//! ```

/// Intervals on an axis.
/// Rounding the ends outwards may add to them: from −2 to 97, there are −25, 0, 25, 50, 75 and 100.
const INTERVALS_MAX: f64 = 4.0;
/// Beyond these a sum or a power would be no number.
const LARGEST: f64 = 1e290;
// Least difference of two ends, and least step.
const SMALLEST: f64 = 1e-300;
/// Part of a value below which a difference is noise of its last digits.
const FINEST: f64 = 1e-9;

/// Tick values that cover `min` to `max`; only whole ones where values have no halves.
/// Steps are 1, 2, 2.5 or 5 times a power of ten. The first tick is at most `min`, and the last at least `max`.
pub fn ticks(min: f64, max: f64, whole: bool) -> Vec<f64> {
    let bounded = |end: f64| if end.is_nan() { 0.0 } else { end.clamp(-LARGEST, LARGEST) };
    let (min, mut max) = (bounded(min), bounded(max));
    let size = min.abs().max(max.abs());
    // One value, or values that differ in their last digits only: the axis covers a tenth of the value, or 1 if that is more.
    if max - min <= (size * FINEST).max(SMALLEST) {
        max = min + (size * 0.1).max(1.0);
    }
    let rough = ((max - min) / INTERVALS_MAX).max(SMALLEST);
    let power = 10_f64.powi(rough.log10().floor() as i32);
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    let mut step = steps.into_iter().find(|step| *step >= rough * (1.0 - 1e-9)).unwrap_or(rough);
    if whole {
        // 2.5 is the only step from 1 on that makes halves.
        step = if step < 1.0 {
            1.0
        } else if step == 2.5 {
            5.0
        } else {
            step
        };
    }
    let first = (min / step + 1e-9).floor();
    let count = ((max / step - 1e-9).ceil() - first).min(INTERVALS_MAX + 2.0);
    // The index times the step, rounded, keeps 0.1 + 0.2 out of the labels.
    let tick = |at: f64| format!("{:.11e}", (first + at) * step).parse().unwrap_or(0.0);
    (0..=count.max(0.0) as u32).map(|at| tick(f64::from(at))).collect()
}

/// A straight map from a domain to lengths.
/// `linear(0.0, 100.0, 200.0, 0.0)(25.0)` is 150: pixels run down, values up.
pub fn linear(d0: f64, d1: f64, p0: f64, p1: f64) -> impl Fn(f64) -> f64 + Copy {
    let slope = (p1 - p0) / (d1 - d0);
    // A domain without a width, or one too narrow to divide by, has one place for all.
    let slope = if slope.is_finite() { slope } else { 0.0 };
    move |value| p0 + (value - d0) * slope
}

/// The smallest and largest of some values; zero belongs to them unless the axis is cut.
/// `[1, 5, none]` is `(0, 5)`, with `cut` `(1, 5)`; `[-2]` is `(-2, 0)`; no values are `(0, 0)`. Infinite values
/// are skipped.
pub fn domain(values: impl IntoIterator<Item = Option<f64>>, cut: bool) -> (f64, f64) {
    let (mut min, mut max) = if cut { (f64::INFINITY, f64::NEG_INFINITY) } else { (0.0, 0.0) };
    for value in values.into_iter().flatten().filter(|value| value.is_finite()) {
        min = f64::min(min, value).max(-LARGEST);
        max = f64::max(max, value).min(LARGEST);
    }
    if min > max { (0.0, 0.0) } else { (min, max) }
}

/// Every how manieth of `count` labels is written so that none touch.
/// 30 labels of 40 px, 20 px apart: every third. 365 labels of 45 px, 3 px apart: every 24th. 1 is all of them.
pub fn label_stride(count: usize, step_px: f64, label_px: f64) -> usize {
    const GAP_PX: f64 = 14.0;
    let needed = ((label_px + GAP_PX) / step_px.max(0.01)).ceil().max(1.0) as usize;
    // Among them strides of half a day and a day in hours, and of one, two and four weeks in days.
    let nice = [1, 2, 3, 4, 6, 7, 12, 14, 24, 28, 48].into_iter().find(|nice| *nice >= needed);
    nice.unwrap_or(needed).min(count.max(1))
}

/// Width of axis text at 11.5 px, near enough for margins.
/// `100K` is 26 px. Both sides compute it alike, where measured widths would differ by font.
pub fn text_width(text: &str) -> f64 {
    text.encode_utf16().count() as f64 * 6.5
}

/// Moves positions apart until neighbours are `gap` away, staying between `min` and `max`.
/// `spread([10, 12, 50], 15, 0, 60)` is `[10, 25, 50]`, and `spread([100], 15, 0, 60)` is `[60]`. The order of the
/// positions stays; where there is no room for all, the first go below `min`.
pub fn spread(wanted: &[f64], gap: f64, min: f64, max: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut placed = wanted.to_vec();
    // From the smallest on: each is at least `gap` after the one before.
    let mut floor = min;
    for &at in &order {
        placed[at] = placed[at].max(floor);
        floor = placed[at] + gap;
    }
    // Then back from the largest, for those that are beyond `max` now.
    let mut ceiling = max;
    for &at in order.iter().rev() {
        placed[at] = placed[at].min(ceiling);
        ceiling = placed[at] - gap;
    }
    placed
}
