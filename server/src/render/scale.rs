//! Ticks and positions: the arithmetic between a value and a length.
//!
//! The same rules as in `web/shared/scale.js`, held together by the numbers in `web/test/golden.json`.

/// Intervals on an axis.
const INTERVALS_MAX: f64 = 4.0;
/// Beyond these a sum or a power would be no number.
const LARGEST: f64 = 1e290;
const SMALLEST: f64 = 1e-300;
/// Part of a value below which a difference is noise of its last digits.
const FINEST: f64 = 1e-9;

/// Tick values that cover `min` to `max`; only whole ones where values have no halves.
pub fn ticks(min: f64, max: f64, whole: bool) -> Vec<f64> {
    let bounded = |end: f64| if end.is_nan() { 0.0 } else { end.clamp(-LARGEST, LARGEST) };
    let (min, mut max) = (bounded(min), bounded(max));
    let size = min.abs().max(max.abs());
    if max - min <= (size * FINEST).max(SMALLEST) {
        max = min + (size * 0.1).max(1.0);
    }
    let rough = ((max - min) / INTERVALS_MAX).max(SMALLEST);
    let power = 10_f64.powi(rough.log10().floor() as i32);
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    let mut step = steps.into_iter().find(|step| *step >= rough * (1.0 - 1e-9)).unwrap_or(rough);
    if whole {
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
pub fn linear(d0: f64, d1: f64, p0: f64, p1: f64) -> impl Fn(f64) -> f64 + Copy {
    let slope = (p1 - p0) / (d1 - d0);
    // A domain without a width, or one too narrow to divide by, has one place for all.
    let slope = if slope.is_finite() { slope } else { 0.0 };
    move |value| p0 + (value - d0) * slope
}

/// The smallest and largest of some values; zero belongs to them unless the axis is cut.
pub fn domain(values: impl IntoIterator<Item = Option<f64>>, cut: bool) -> (f64, f64) {
    let (mut min, mut max) = if cut { (f64::INFINITY, f64::NEG_INFINITY) } else { (0.0, 0.0) };
    for value in values.into_iter().flatten().filter(|value| value.is_finite()) {
        min = f64::min(min, value).max(-LARGEST);
        max = f64::max(max, value).min(LARGEST);
    }
    if min > max { (0.0, 0.0) } else { (min, max) }
}

/// Every how manieth of `count` labels is written so that none touch.
pub fn label_stride(count: usize, step_px: f64, label_px: f64) -> usize {
    const GAP_PX: f64 = 14.0;
    let needed = ((label_px + GAP_PX) / step_px.max(0.01)).ceil().max(1.0) as usize;
    let nice = [1, 2, 3, 4, 6, 7, 12, 14, 24, 28, 48].into_iter().find(|nice| *nice >= needed);
    nice.unwrap_or(needed).min(count.max(1))
}

/// Width of axis text at 11.5 px, near enough for margins.
pub fn text_width(text: &str) -> f64 {
    text.encode_utf16().count() as f64 * 6.5
}

/// Moves positions apart until neighbours are `gap` away, staying between `min` and `max`.
pub fn spread(wanted: &[f64], gap: f64, min: f64, max: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut placed = wanted.to_vec();
    let mut floor = min;
    for &at in &order {
        placed[at] = placed[at].max(floor);
        floor = placed[at] + gap;
    }
    let mut ceiling = max;
    for &at in order.iter().rev() {
        placed[at] = placed[at].min(ceiling);
        ceiling = placed[at] - gap;
    }
    placed
}
