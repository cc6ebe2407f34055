// @ts-check
// Bars over time: single and stacked, upright, from zero.
//
// The parts of a stack are parted by a thin gap instead of an outline, so that colours stay true.
// Only the topmost part has round corners. A bucket which is not over yet is hatched.

import { h, html, useId, useMemo, useState } from "../shared/ui.js";
import { words } from "../shared/words.js";
import { describeTimed } from "./describe.js";
import { Legend } from "./legend.js";
import { noteOf } from "./line.js";
import { Plot, yAxis } from "./plot.js";
import { isAdditive, isWhole, stack, timed } from "./series.js";

const BAR_WIDTH_MAX = 34;
const GAP = 1.5;
const RADIUS = 3;

/**
 * A bar from `from` to `to` (pixels, y grows downwards), rounded at the far end when `round`.
 * @param {number} x @param {number} width @param {number} from @param {number} to @param {boolean} round
 */
function barPath(x, width, from, to, round) {
  const sign = to < from ? 1 : -1;
  const r = round ? Math.min(RADIUS, width / 2, Math.abs(from - to)) : 0;
  return `M${x} ${from}V${to + sign * r}Q${x} ${to} ${x + r} ${to}H${x + width - r}Q${x + width} ${to} ${x + width} ${to + sign * r}V${from}Z`;
}

/** @param {{ widget: any, answer: any, format: any, width: number }} props */
export function BarChart({ widget, answer, format }) {
  const { query, viz, title, kind } = widget;
  const percent = kind === "stacked_bar" && viz.stack === "percent";
  const spec = percent ? { style: "percent" } : viz.format;
  const model = useMemo(() => timed(answer, { title, limit: query.limit, metric: query.metric }), [answer]);
  const [hidden, setHidden] = useState(/** @type {string[]} */ ([]));
  const pattern = useId();
  const series = model.series.filter((s) => !hidden.includes(s.label));
  const several = model.series.length > 1;
  const count = model.buckets.length;
  const parts = stack(series, count, percent);
  const axis = yAxis([...parts.flat().map((p) => p.to), ...(several ? [] : model.previous ?? [])], format, spec,
    { whole: !percent && isWhole(query.metric) });

  const tip = (/** @type {number} */ i) => {
    /** @type {any[]} */
    const rows = series.map((s) => ({ label: s.label, color: s.color, value: format.full(s.values[i], viz.format) })).reverse();
    if (several && isAdditive(query.metric)) {
      const total = series.reduce((sum, s) => sum + (s.values[i] ?? 0), 0);
      rows.push({ label: words.total, value: format.full(total, viz.format), strong: true });
    }
    if (model.previous) {
      rows.push({ label: words.previous, color: "var(--muted)", dashed: true, value: format.full(model.previous[i], spec) });
      rows.push({ label: words.change, value: format.change(series[0]?.values[i], model.previous[i], true) });
    }
    return { title: format.bucketLong(model.buckets[i], model.granularity), note: noteOf(model, i), rows };
  };

  const draw = (/** @type {any} */ g) => {
    const width = Math.max(1, Math.min(BAR_WIDTH_MAX, g.step * (g.step < 8 ? 0.8 : 0.68)));
    const gap = width > 4 ? GAP : 0;
    const last = count - 1;
    // The far end of a stack is its last part with any height.
    const tops = model.buckets.map((_, i) => parts.findLastIndex((p) => p[i].to !== p[i].from));
    return html`
      <defs><pattern id=${pattern} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="3" height="6" fill="var(--card)" fill-opacity="0.55" />
      </pattern></defs>
      ${series.map((s, n) => html`<g key=${s.label} fill=${s.color}>${parts[n].map(({ from, to }, i) => {
        if (from === to) return null;
        const [y0, y1] = [g.y(from), g.y(to)];
        const foot = from === 0 ? y0 : y0 - Math.sign(y0 - y1) * Math.min(gap, Math.abs(y0 - y1) / 2);
        return html`<path d=${barPath(g.x(i) - width / 2, width, foot, y1, tops[i] === n)} />`;
      })}</g>`)}
      ${model.partialLast && count > 0 && series.length > 0 && html`<path fill=${`url(#${pattern})`}
        d=${barPath(g.x(last) - width / 2, width, g.y(0), g.y(Math.max(...parts.map((p) => p[last].to))), true)} />`}
      ${!several && model.previous && model.previous.map((v, i) => v != null
        && html`<line class="mark" x1=${g.x(i) - width / 2 - 1} x2=${g.x(i) + width / 2 + 1} y1=${g.y(v)} y2=${g.y(v)} />`)}`;
  };

  return html`<div class="chart">
    ${h(Plot, {
      title, format, axis, tip, draw, band: true, buckets: model.buckets, granularity: model.granularity,
      sentence: describeTimed(several ? "Stacked bar chart" : "Bar chart", model, format, viz.format),
    })}
    ${several && h(Legend, { series: model.series, hidden, onToggle: setHidden })}
  </div>`;
}
