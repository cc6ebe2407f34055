// @ts-check
// Which drawing belongs to which kind of widget; a new kind is one more line in the list below.
//
// The two kinds that are mostly text stand here too: the number, the loudest thing on the page, so
// that nothing competes with it, and plain prose.

import { h, html, useId } from "../shared/ui.js";
import { change } from "../shared/format.js";
import { domain, linear } from "../shared/scale.js";
import { words } from "../shared/words.js";
import { Funnel } from "./funnel.js";
import { BarList, Donut, HorizontalBars } from "./groups.js";
import { useBox } from "./plot.js";
import { colorOf, course, isAdditive, isWhole, runs } from "./series.js";
import { Table } from "./table.js";
import { BarChart, LineChart } from "./timed.js";

/** Plain text with line breaks. @param {{ widget: any }} props */
function Text({ widget }) {
  return html`<p class="prose">${widget.viz.text ?? ""}</p>`;
}

/** Bars stand up over time and lie down over categories. @param {any} props */
function Bars(props) {
  const timed = props.answer.data.some((/** @type {any} */ row) => row.bucket !== undefined);
  return h(timed ? BarChart : HorizontalBars, props);
}

/** @type {Record<string, (props: any) => any>} */
const KINDS = {
  number: NumberTile,
  line: LineChart,
  area: LineChart,
  bar: Bars,
  stacked_bar: BarChart,
  bar_list: BarList,
  donut: Donut,
  funnel: Funnel,
  table: Table,
  text: Text,
};

/** The component for a kind. A kind from a newer server is still readable as a table. @param {string} kind */
export const drawingOf = (kind) => KINDS[kind] ?? Table;

/** Kinds whose content is also offered as a table. @param {string} kind */
export const hasTableView = (kind) => !["number", "text", "table"].includes(kind) && kind in KINDS;

/** Kinds with times in them. @param {string} kind */
export const isTimed = (kind) => ["line", "area", "bar", "stacked_bar"].includes(kind);

/** Less height than this shows no course, only noise. */
const SPARK_HEIGHT_MIN = 22;

/** @param {{ widget: any, answer: any, format: any, period: string | null }} props */
export function NumberTile({ widget, answer, format, period }) {
  const { query, viz } = widget;
  const row = answer.data[0] ?? {};
  const counts = isAdditive(query.metric) || isWhole(query.metric);
  const value = row.value ?? (counts ? 0 : null);
  const short = format.short(value, viz.format);
  const full = format.full(value, viz.format);
  return html`<div class="number">
    <p class=${value == null ? "value none" : "value"} title=${short === full ? undefined : full}>
      ${short === full ? html`<bdi>${short}</bdi>` : html`<bdi aria-hidden="true">${short}</bdi><span class="vh">${full}</span>`}
    </p>
    ${
      value == null
        ? html`<p class="delta">${words.noEvents}</p>`
        : row.previous !== undefined &&
          h(Delta, { current: value, previous: row.previous, good: viz.good_direction, format, period })
    }
    ${answer.spark?.length > 1 && h(Spark, { values: course(answer, counts), color: colorOf(0, viz.color) })}
  </div>`;
}

/**
 * The change in words and with an arrow: colour alone says nothing to many people.
 * @param {{ current: number, previous: number | null, good?: string, format: any, period: string | null }} props
 */
function Delta({ current, previous, good = "up", format, period }) {
  const result = change(current, previous);
  if (!result) return null;
  const { direction } = result;
  const tone = direction === "flat" || good === "neutral" ? "" : direction === good ? "good" : "bad";
  return html`<p class="delta">
    <b class=${tone}>
      ${
        direction !== "flat" &&
        html`<svg width="8" height="6" aria-hidden="true">
        <path d=${direction === "up" ? "M4 0L8 6H0Z" : "M4 6L0 0H8Z"} fill="currentColor" />
      </svg>`
      }
      <span class="vh">${words[direction]} </span>${format.change(current, previous)}
    </b>
    <span class="versus">${period ? words.versus(format.period(period)) : words.versusDates}</span>
  </p>`;
}

/** A course without axes, filling what is left of the card. @param {{ values: (number | null)[], color?: string }} props */
export function Spark({ values, color = colorOf(0) }) {
  const [ref, box] = useBox();
  const id = useId();
  const [min, max] = domain(values, true);
  // A flat course lies in the middle instead of on the floor.
  const y = max === min ? () => box.height / 2 : linear(min, max, box.height - 6, 3);
  const x = linear(0, values.length - 1, 0, box.width);
  const point = (/** @type {number} */ i) => `${x(i).toFixed(1)} ${y(/** @type {number} */ (values[i])).toFixed(1)}`;
  return html`<div class="spark" ref=${ref} aria-hidden="true">
    ${
      box.height >= SPARK_HEIGHT_MIN &&
      html`<svg width=${box.width} height=${box.height} viewBox=${`0 0 ${box.width} ${box.height}`} preserveAspectRatio="none">
      <defs><linearGradient id=${id} x1="0" x2="0" y1="0" y2="1">
        <stop offset="0" stop-color=${color} stop-opacity="0.16" /><stop offset="1" stop-color=${color} stop-opacity="0" />
      </linearGradient></defs>
      ${runs(values).map(
        (run) => html`
        <path d=${`M${x(run[0])} ${box.height}L${run.map(point).join("L")}L${x(run[run.length - 1])} ${box.height}Z`} fill=${`url(#${id})`} />
        <path d=${`M${run.map(point).join("L")}`} fill="none" stroke=${color} stroke-width="1.5" stroke-linejoin="round" />`,
      )}
    </svg>`
    }
  </div>`;
}
