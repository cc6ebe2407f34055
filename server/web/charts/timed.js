// @ts-check
// Charts over time: lines, areas, bars, stacked bars.
//
// Lines have straight segments, because a smooth curve shows values that never were; a missing value
// is a gap. Bars stand on zero, the parts of a stack are parted by a thin gap instead of an outline.
// A bucket which is not over yet, or which the window cuts, is dashed or hatched and says so. A line of sums
// begins behind a first bucket that is cut: it would be drawn as a rise from nearly nothing.

import { h, html, useId, useMemo, useState } from "../shared/ui.js";
import { spread, textWidth } from "../shared/scale.js";
import { words } from "../shared/words.js";
import { Hatches, dashOf, hatchOf, usePatterns } from "./pattern.js";
import { Legend, Plot, yAxis } from "./plot.js";
import { Thresholds, describeThresholds, thresholdsOf } from "./threshold.js";
import { describeTimed, isAdditive, isWhole, runs, stack, timed } from "./series.js";

/** Up to this many lines carry their name at their end; more are told apart by a legend. */
const DIRECT_LABELS_MAX = 4;
/** Narrower cards give the room to the drawing and use a legend. */
const DIRECT_LABELS_WIDTH_MIN = 440;
const LABEL_CHARS_MAX = 18;
const BAR_WIDTH_MAX = 34;
const BAR_RADIUS = 3;
const STACK_GAP = 1.5;

/** @typedef {import("./series.js").Timed} Model */
/** @typedef {import("./series.js").Series} Series */
/** @typedef {import("./plot.js").Geometry} Geometry */

/** The model of an answer and the series that the viewer has not taken out. @param {any} props */
function useSeries({ widget, answer }) {
  const { query, title, viz } = widget;
  const model = useMemo(
    () => timed(answer, { title, limit: query.limit, metric: query.metric, color: viz.color }),
    [answer, viz.color],
  );
  const [hidden, setHidden] = useState(/** @type {string[]} */ ([]));
  const series = model.series.filter((s) => !hidden.includes(s.label));
  return { model, series, hidden, setHidden, several: model.series.length > 1 };
}

/** Why a bucket is not whole, if so. @param {Model} model @param {number} i */
const noteOf = (model, i) =>
  model.partialLast && i === model.buckets.length - 1
    ? words.soFar
    : model.partialFirst && i === 0
      ? words.partial
      : undefined;

/** The tooltip of one bucket. @param {Model} model @param {Series[]} series @param {number} i @param {any} format @param {any} spec */
function tipOf(model, series, i, format, spec) {
  /** @type {import("./plot.js").TipRow[]} */
  const rows = series.map((s) => ({
    label: model.previous ? words.thisPeriod : s.label,
    color: s.color,
    value: format.full(s.values[i], spec),
  }));
  if (model.previous) {
    rows.push({
      label: words.previous,
      color: "var(--muted)",
      dashed: true,
      value: format.full(model.previous[i], spec),
    });
    rows.push({ label: words.change, value: format.change(series[0]?.values[i], model.previous[i], true) });
  }
  return { title: format.bucketLong(model.buckets[i], model.granularity), note: noteOf(model, i), rows };
}

/** @typedef {{ widget: any, answer: any, format: any, width: number, drill?: import("./pick.js").Drill | null }} Props */

/** @param {Props} props */
export function LineChart(props) {
  const {
    format,
    width,
    drill,
    widget: { query, viz, title, kind },
  } = props;
  const { model, series, hidden, setHidden, several } = useSeries(props);
  const patterned = usePatterns();
  const filled = kind === "area" || (viz.fill && !several);
  const direct = several && model.series.length <= DIRECT_LABELS_MAX && width >= DIRECT_LABELS_WIDTH_MIN;
  const cut = !filled && viz.axis?.min === "auto";
  const late = model.partialFirst && (isAdditive(query.metric) || isWhole(query.metric));
  const thresholds = thresholdsOf(viz);
  const drawn = (/** @type {(number | null)[]} */ values) => values.slice(late && values.length > 2 ? 1 : 0);
  const axis = yAxis(
    [
      ...series.flatMap((s) => drawn(s.values)),
      ...drawn(model.previous ?? []),
      ...thresholds.map(({ value }) => value),
    ],
    format,
    viz.format,
    { whole: isWhole(query.metric), cut },
  );

  const tip = (/** @type {number} */ i) =>
    tipOf(
      model,
      series.slice().sort((a, b) => (b.values[i] ?? -Infinity) - (a.values[i] ?? -Infinity)),
      i,
      format,
      viz.format,
    );
  const draw = (/** @type {Geometry} */ g, /** @type {number | null} */ active) => html`
    ${model.previous && runs(model.previous).map((run) => html`<path class="previous" d=${linePath(shape(run, late), model.previous ?? [], g)} />`)}
    ${series
      .slice()
      .reverse()
      .map((s) =>
        h(Line, {
          key: s.label,
          one: s,
          model,
          g,
          filled,
          late,
          dash: patterned ? dashOf(model.series.indexOf(s)) : undefined,
        }),
      )}
    ${h(Thresholds, { thresholds, g, format, spec: viz.format })}
    ${direct && h(EndLabels, { series, g })}
    ${
      active != null &&
      !(late && !active && model.buckets.length > 2) &&
      series.map(
        (s) =>
          s.values[active] != null &&
          html`<circle class="dot" cx=${g.x(active)} cy=${g.y(s.values[active])} r="4.5" fill=${s.color} />`,
      )
    }`;

  return html`<div class="chart">
    ${h(Plot, {
      title,
      format,
      axis,
      tip,
      draw,
      buckets: model.buckets,
      granularity: model.granularity,
      pick: drill?.narrow,
      sentence:
        describeTimed(kind === "area" ? words.areaChart : words.lineChart, model, format, viz.format) +
        describeThresholds(thresholds, format, viz.format),
      margin: direct ? Math.max(...series.map((s) => textWidth(clip(s.label)) + 6), 0) : 0,
    })}
    ${cut && html`<p class="note">${words.cutAxis}</p>`}
    ${several && !direct && h(Legend, { series: model.series, hidden, onToggle: setHidden, line: true })}
  </div>`;
}

/** @param {string} text */
const clip = (text) => (text.length > LABEL_CHARS_MAX ? text.slice(0, LABEL_CHARS_MAX - 1) + "…" : text);

/** The points of a line. @param {number[]} run @param {boolean} late whether it begins behind the first bucket */
const shape = (run, late) => (late && run[0] === 0 && run.length > 2 ? run.slice(1) : run);

/** @param {number[]} indexes @param {(number | null)[]} values @param {Geometry} g */
const linePath = (indexes, values, g) =>
  indexes
    .map((i, n) => `${n ? "L" : "M"}${g.x(i).toFixed(1)} ${g.y(/** @type {number} */ (values[i])).toFixed(1)}`)
    .join("");

/** One series: its fill, its solid part, and the dashed ends. @param {{ one: Series, model: Model, g: Geometry, filled: boolean, late: boolean, dash?: string, key?: string }} props */
function Line({ one: { values, color }, model, g, filled, late, dash }) {
  const id = useId();
  return html`<g>
    ${
      filled &&
      html`<defs><linearGradient id=${id} x1="0" x2="0" y1="0" y2="1">
      <stop offset="0" stop-color=${color} stop-opacity="0.2" /><stop offset="1" stop-color=${color} stop-opacity="0" />
    </linearGradient></defs>`
    }
    ${runs(values).map((all) => {
      const run = shape(all, late);
      const first = run[0];
      const end = run[run.length - 1];
      if (first === end)
        return html`<circle cx=${g.x(first)} cy=${g.y(/** @type {number} */ (values[first]))} r="3" fill=${color} />`;
      const from = noteOf(model, first) ? 1 : 0;
      const to = run.length - (noteOf(model, end) ? 1 : 0);
      const solid = run.slice(from, to);
      const dashed = [
        ...(from ? [run.slice(0, 2)] : []),
        ...(to < run.length && run.length - from > 1 ? [run.slice(-2)] : []),
      ];
      return html`<g class="line">
        ${filled && html`<path d=${`${linePath(run, values, g)}L${g.x(end)} ${g.y(0)}L${g.x(first)} ${g.y(0)}Z`} fill=${`url(#${id})`} />`}
        ${solid.length > 1 && html`<path d=${linePath(solid, values, g)} stroke=${color} stroke-dasharray=${dash} />`}
        ${dashed.map((part) => html`<path d=${linePath(part, values, g)} stroke=${color} stroke-dasharray="4 4" />`)}
      </g>`;
    })}
  </g>`;
}

/** Names at the line ends, pushed apart where lines end close together. @param {{ series: Series[], g: Geometry }} props */
function EndLabels({ series, g }) {
  const ends = series.flatMap((s) => {
    const i = s.values.findLastIndex((v) => v != null);
    return i < 0 ? [] : [{ s, y: g.y(/** @type {number} */ (s.values[i])) }];
  });
  const ys = spread(
    ends.map((end) => end.y),
    15,
    g.top + 4,
    g.bottom - 2,
  );
  return ends.map(
    ({ s }, n) => html`<text key=${s.label} class="end" x=${g.right + 8} y=${ys[n]} dy="0.35em">
    <title>${s.label}</title><tspan fill=${s.color}>●${" "}</tspan>${clip(s.label)}
  </text>`,
  );
}

/** @param {Props} props */
export function BarChart(props) {
  const {
    format,
    drill,
    widget: { query, viz, title, kind },
  } = props;
  const { model, series, hidden, setHidden, several } = useSeries(props);
  const pattern = useId();
  const patterned = usePatterns();
  const percent = kind === "stacked_bar" && viz.stack === "percent";
  const parts = stack(series, model.buckets.length, percent);
  // Parts of a whole have no amount to compare with.
  const thresholds = percent ? [] : thresholdsOf(viz);
  const axis = yAxis(
    [...parts.flat().map((p) => p.to), ...(model.previous ?? []), ...thresholds.map(({ value }) => value)],
    format,
    percent ? { style: "percent" } : viz.format,
    { whole: !percent && isWhole(query.metric) },
  );

  const tip = (/** @type {number} */ i) => {
    // The order of the rows is the order of the stack, seen from above.
    const one = tipOf(model, series.slice().reverse(), i, format, viz.format);
    if (several && isAdditive(query.metric)) {
      one.rows.push({
        label: words.total,
        value: format.full(
          series.reduce((sum, s) => sum + (s.values[i] ?? 0), 0),
          viz.format,
        ),
        strong: true,
      });
    }
    return one;
  };
  const picks = (/** @type {Series} */ s) => !!s.group && drill?.choose;
  const draw = (/** @type {Geometry} */ g) => {
    const width = Math.max(1, Math.min(BAR_WIDTH_MAX, g.step * (g.step < 8 ? 0.8 : 0.68)));
    const gap = width > 4 ? STACK_GAP : 0;
    const left = (/** @type {number} */ i) => g.x(i) - width / 2;
    // The far end of a stack is its last part with any height.
    const tops = model.buckets.map((_, i) => parts.findLastIndex((p) => p[i].to !== p[i].from));
    return html`
      <defs><pattern id=${pattern} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="3" height="6" fill="var(--card)" fill-opacity="0.55" />
      </pattern></defs>
      ${patterned && h(Hatches, { id: pattern })}
      ${series.map((s, n) => {
        const d = parts[n]
          .map(({ from, to }, i) => {
            if (from === to) return "";
            const [y0, y1] = [g.y(from), g.y(to)];
            const foot = from === 0 ? y0 : y0 - Math.sign(y0 - y1) * Math.min(gap, Math.abs(y0 - y1) / 2);
            return barPath(left(i), width, foot, y1, tops[i] === n);
          })
          .join("");
        const hatch = patterned && hatchOf(pattern, model.series.indexOf(s));
        return html`<g key=${s.label} class=${picks(s) ? "pick" : ""}
          onClick=${
            picks(s) &&
            ((/** @type {PointerEvent} */ event) => {
              // A tap reads a value.
              if (event.pointerType === "touch") return;
              event.stopPropagation();
              drill?.choose?.(/** @type {string} */ (s.group), event);
            })
          }>
          <path d=${d} fill=${s.color} />${hatch && html`<path d=${d} fill=${hatch} />`}
        </g>`;
      })}
      ${model.buckets.map(
        (_, i) =>
          noteOf(model, i) &&
          html`<path class="shade" fill=${`url(#${pattern})`}
        d=${barPath(left(i), width, g.y(0), g.y(Math.max(0, ...parts.map((p) => p[i].to))), true)} />`,
      )}
      ${
        model.previous &&
        model.previous.map(
          (v, i) =>
            v != null &&
            html`<line class="mark" x1=${left(i) - 1} x2=${left(i) + width + 1} y1=${g.y(v)} y2=${g.y(v)} />`,
        )
      }
      ${h(Thresholds, { thresholds, g, format, spec: viz.format })}`;
  };

  return html`<div class="chart">
    ${h(Plot, {
      title,
      format,
      axis,
      tip,
      draw,
      band: true,
      buckets: model.buckets,
      granularity: model.granularity,
      pick: drill?.narrow,
      sentence:
        describeTimed(several ? words.stackedChart : words.barChart, model, format, viz.format) +
        describeThresholds(thresholds, format, viz.format),
    })}
    ${several && h(Legend, { series: model.series, hidden, onToggle: setHidden })}
  </div>`;
}

/**
 * A bar from `from` to `to` (pixels, y grows downwards), rounded at the far end when `round`.
 * @param {number} x @param {number} width @param {number} from @param {number} to @param {boolean} round
 */
function barPath(x, width, from, to, round) {
  const sign = to < from ? 1 : -1;
  const r = round ? Math.min(BAR_RADIUS, width / 2, Math.abs(from - to)) : 0;
  return `M${x} ${from}V${to + sign * r}Q${x} ${to} ${x + r} ${to}H${x + width - r}Q${x + width} ${to} ${x + width} ${to + sign * r}V${from}Z`;
}
