// @ts-check
// Ticks and positions: the arithmetic between a value and a pixel.
//
// Ticks step by 1, 2, 2.5 or 5 times a power of ten, four intervals at most, so that a reader can
// name every grid line. Everything here is pure; the server's own chart drawing follows the same
// rules and both are tested against the same numbers.

/** Intervals on an axis. Four give at most five lines: enough to read, few enough to ignore. */
const INTERVALS_MAX = 4;
/** Beyond these a sum or a power would be no number. */
const LARGEST = 1e290;
const SMALLEST = 1e-300;
/** Part of a value below which a difference is noise of its last digits. */
const FINEST = 1e-9;

/**
 * Tick values covering `min`…`max`, first and last included.
 * @param {number} min @param {number} max
 * @param {{ whole?: boolean }} [options] `whole`: only whole numbers (counts have no halves)
 * @returns {number[]}
 */
export function ticks(min, max, { whole = false } = {}) {
  // Values at the ends of what a number can be, or closer together than its digits, are drawn flat.
  [min, max] = [min, max].map((end) => Math.min(Math.max(end, -LARGEST), LARGEST) || 0);
  const size = Math.max(Math.abs(min), Math.abs(max));
  if (!(max - min > Math.max(size * FINEST, SMALLEST))) max = min + Math.max(1, size * 0.1);
  const rough = Math.max((max - min) / INTERVALS_MAX, SMALLEST);
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * (1 - 1e-9)) ?? rough;
  if (whole) step = step < 1 ? 1 : step === 2.5 ? 5 : step;
  const first = Math.floor(min / step + 1e-9);
  const count = Math.min(Math.ceil(max / step - 1e-9) - first, INTERVALS_MAX + 2);
  const out = [];
  // Multiplying the index keeps 0.1 + 0.2 out of the labels.
  for (let i = 0; i <= count; i++) out.push(Number(((first + i) * step).toPrecision(12)));
  return out;
}

/**
 * A straight map from a domain to pixels.
 * @param {number} d0 @param {number} d1 @param {number} p0 @param {number} p1
 * @returns {(value: number) => number}
 */
export function linear(d0, d1, p0, p1) {
  const k = d1 === d0 ? 0 : (p1 - p0) / (d1 - d0);
  return (value) => p0 + (value - d0) * k;
}

/**
 * The domain of a set of values. Zero belongs to it unless `cut` allows otherwise.
 * @param {(number | null | undefined)[]} values @param {boolean} [cut]
 * @returns {[number, number]}
 */
export function domain(values, cut = false) {
  let min = cut ? Infinity : 0;
  let max = cut ? -Infinity : 0;
  for (const value of values) {
    if (value == null || !Number.isFinite(value)) continue;
    min = Math.max(Math.min(min, value), -LARGEST);
    max = Math.min(Math.max(max, value), LARGEST);
  }
  return min > max ? [0, 0] : [min, max];
}

/**
 * Which of `count` labels to write so that none touch: every n-th, the first always.
 * @param {number} count @param {number} step_px distance between neighbours
 * @param {number} label_px width of the widest label
 * @returns {number} n
 */
export function labelStride(count, step_px, label_px) {
  const gap_px = 14;
  const needed = Math.max(1, Math.ceil((label_px + gap_px) / Math.max(step_px, 0.01)));
  const nice = [1, 2, 3, 4, 6, 7, 12, 14, 24, 28, 48].find((n) => n >= needed) ?? needed;
  return Math.min(nice, Math.max(count, 1));
}

/** Width of axis text at 11.5 px, near enough for margins without asking the layout engine. @param {string} text */
export function textWidth(text) {
  return text.length * 6.5;
}

/**
 * Moves label positions apart until neighbours are `gap` away, staying inside `min`…`max`.
 * @param {number[]} wanted @param {number} gap @param {number} min @param {number} max
 * @returns {number[]} in the order of `wanted`
 */
export function spread(wanted, gap, min, max) {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const placed = wanted.slice();
  let floor = min;
  for (const i of order) floor = (placed[i] = Math.max(placed[i], floor)) + gap;
  let ceiling = max;
  for (const i of order.reverse()) ceiling = (placed[i] = Math.min(placed[i], ceiling)) - gap;
  return placed;
}
