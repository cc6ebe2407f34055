// @ts-check
// Line and area: values over time, one or several.
//
// Straight segments, because a smooth curve shows values that never were. Buckets that are not over
// yet, or that the window cuts, are dashed. A missing value is a gap.

import { h, html, useId, useMemo, useState } from "../shared/ui.js";
import { spread, textWidth } from "../shared/scale.js";
import { words } from "../shared/words.js";
import { describeTimed } from "./describe.js";
import { Legend } from "./legend.js";
import { Plot, yAxis } from "./plot.js";
import { isWhole, runs, timed } from "./series.js";

/** Up to this many lines carry their name at their end; more are told apart by a legend. */
const DIRECT_LABELS_MAX = 4;
/** Narrower cards give the room to the drawing and use a legend. */
const DIRECT_LABELS_WIDTH_MIN = 440;
const LABEL_CHARS_MAX = 18;

/** @param {string} text */
const clip = (text) => (text.length > LABEL_CHARS_MAX ? text.slice(0, LABEL_CHARS_MAX - 1) + "…" : text);

/** Path of the values at `indexes`. @param {number[]} indexes @param {(number | null)[]} values @param {any} g */
const path = (indexes, values, g) =>
  indexes.map((i, n) => `${n ? "L" : "M"}${g.x(i).toFixed(1)} ${g.y(values[i]).toFixed(1)}`).join("");

/** The tooltip note for a bucket which is not whole. @param {any} model @param {number} i */
export const noteOf = (model, i) =>
  model.partialLast && i === model.buckets.length - 1 ? words.soFar : model.partialFirst && i === 0 ? words.partial : undefined;

/** @param {{ widget: any, answer: any, format: any, width: number }} props */
export function LineChart({ widget, answer, format, width }) {
  const { query, viz, title, kind } = widget;
  const spec = viz.format;
  const model = useMemo(() => timed(answer, { title, limit: query.limit, metric: query.metric }), [answer]);
  const [hidden, setHidden] = useState(/** @type {string[]} */ ([]));
  const series = model.series.filter((s) => !hidden.includes(s.label));
  const several = model.series.length > 1;
  const filled = kind === "area" || (viz.fill && !several);
  const direct = several && viz.legend !== "bottom" && model.series.length <= DIRECT_LABELS_MAX && width >= DIRECT_LABELS_WIDTH_MIN;
  const cut = !filled && viz.axis?.min === "auto";
  const axis = yAxis([...series.flatMap((s) => s.values), ...(model.previous ?? [])], format, spec,
    { whole: isWhole(query.metric), cut });

  const tip = (/** @type {number} */ i) => {
    /** @type {any[]} */
    const rows = series.map((s) => ({
      label: several ? s.label : model.previous ? words.thisPeriod : s.label, color: s.color, value: format.full(s.values[i], spec), v: s.values[i],
    }));
    if (several) rows.sort((a, b) => (b.v ?? -Infinity) - (a.v ?? -Infinity));
    if (model.previous) {
      rows.push({ label: words.previous, color: "var(--muted)", dashed: true, value: format.full(model.previous[i], spec) });
      rows.push({ label: words.change, value: format.change(series[0]?.values[i], model.previous[i], true) });
    }
    return { title: format.bucketLong(model.buckets[i], model.granularity), note: noteOf(model, i), rows };
  };

  const draw = (/** @type {any} */ g, /** @type {number | null} */ active) => html`
    ${model.previous && runs(model.previous).map((run) => html`<path class="previous" d=${path(run, model.previous ?? [], g)} />`)}
    ${series.slice().reverse().map((s) => h(Line, { key: s.label, one: s, model, g, filled }))}
    ${direct && h(EndLabels, { series, g })}
    ${active != null && series.map((s) => s.values[active] != null
      && html`<circle class="dot" cx=${g.x(active)} cy=${g.y(s.values[active])} r="4.5" fill=${s.color} />`)}`;

  return html`<div class="chart">
    ${h(Plot, {
      title, format, axis, tip, draw, buckets: model.buckets, granularity: model.granularity,
      sentence: describeTimed(kind === "area" ? "Area chart" : "Line chart", model, format, spec) + (cut ? ` ${words.cutAxis}.` : ""),
      margin: direct ? Math.max(...series.map((s) => textWidth(clip(s.label)) + 6), 0) : 0,
    })}
    ${cut && html`<p class="note">${words.cutAxis}</p>`}
    ${several && !direct && h(Legend, { series: model.series, hidden, onToggle: setHidden, line: true })}
  </div>`;
}

/** One series: its fill, its solid part, and the dashed ends. @param {{ one: any, model: any, g: any, filled: boolean, key?: string }} props */
function Line({ one, model, g, filled }) {
  const id = useId();
  const last = model.buckets.length - 1;
  const { values, color } = one;
  const base = g.y(Math.max(0, 0));
  return html`<g>
    ${filled && html`<defs><linearGradient id=${id} x1="0" x2="0" y1="0" y2="1">
      <stop offset="0" stop-color=${color} stop-opacity="0.2" /><stop offset="1" stop-color=${color} stop-opacity="0" />
    </linearGradient></defs>`}
    ${runs(values).map((run) => {
      if (run.length === 1) return html`<circle cx=${g.x(run[0])} cy=${g.y(values[run[0]])} r="3" fill=${color} />`;
      const first = run[0];
      const end = run[run.length - 1];
      const from = model.partialFirst && first === 0 ? 1 : 0;
      const to = run.length - (model.partialLast && end === last ? 1 : 0);
      const solid = run.slice(from, to);
      const dashed = [...(from ? [run.slice(0, 2)] : []), ...(to < run.length && run.length - from > 1 ? [run.slice(-2)] : [])];
      return html`<g class="line">
        ${filled && html`<path d=${`${path(run, values, g)}L${g.x(end)} ${base}L${g.x(first)} ${base}Z`} fill=${`url(#${id})`} stroke="none" />`}
        ${solid.length > 1 && html`<path d=${path(solid, values, g)} stroke=${color} />`}
        ${dashed.map((part) => html`<path d=${path(part, values, g)} stroke=${color} stroke-dasharray="4 4" />`)}
      </g>`;
    })}
  </g>`;
}

/** Names at the line ends, pushed apart where lines end close together. @param {{ series: any[], g: any }} props */
function EndLabels({ series, g }) {
  const ends = series.flatMap((s) => {
    const i = s.values.findLastIndex((/** @type {number | null} */ v) => v != null);
    return i < 0 ? [] : [{ s, y: g.y(s.values[i]) }];
  });
  const ys = spread(ends.map((end) => end.y), 15, g.top + 4, g.bottom - 2);
  return ends.map(({ s }, n) => html`<text key=${s.label} class="end" x=${g.right + 8} y=${ys[n]} dy="0.35em">
    <title>${s.label}</title><tspan fill=${s.color}>●${" "}</tspan>${clip(s.label)}
  </text>`);
}
