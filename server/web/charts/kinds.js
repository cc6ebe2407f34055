// @ts-check
// Which drawing belongs to which kind of widget. A new kind is one more line here.

import { h, html } from "../shared/ui.js";
import { BarChart } from "./bar.js";
import { Donut } from "./donut.js";
import { LineChart } from "./line.js";
import { NumberTile } from "./number.js";
import { BarList, HorizontalBars } from "./ranking.js";
import { Table } from "./table.js";

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
  number: NumberTile, line: LineChart, area: LineChart, bar: Bars, stacked_bar: BarChart,
  bar_list: BarList, donut: Donut, table: Table, text: Text,
};

/** The component for a kind. A kind from a newer server is still readable as a table. @param {string} kind */
export const drawingOf = (kind) => KINDS[kind] ?? Table;

/** Kinds whose content is also offered as a table. @param {string} kind */
export const hasTableView = (kind) => !["number", "text", "table"].includes(kind) && kind in KINDS;
