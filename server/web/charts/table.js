// @ts-check
// Tables: the table widget, and the table form of every chart.
//
// A real `<table>` with a sticky head and sortable columns. What does not fit scrolls inside the card,
// the first column staying in sight; the scrolling region is reachable by keyboard.

import { h, html, useState } from "../shared/ui.js";
import { humanize } from "../shared/format.js";
import { words } from "../shared/words.js";
import { Pick } from "./pick.js";
import { groupLabel, isAdditive, totalOf } from "./series.js";

/** Rows drawn at most; a file has all of them. */
const ROWS_MAX = 1000;

/** @typedef {{ label: string, numeric: boolean, text: (value: any) => string, group?: boolean }} Column */

/** Columns and rows of a widget's answer. @param {any} widget @param {any} answer @param {any} format */
export function tableOf(widget, answer, format) {
  const { query, viz } = widget;
  const { data, meta } = answer;
  const number = (/** @type {string} */ label, /** @type {any} */ spec) => ({
    label,
    numeric: true,
    text: (/** @type {any} */ v) => format.full(v, spec),
  });
  const has = (/** @type {string} */ key) => data.some((/** @type {any} */ row) => row[key] !== undefined);
  /** @type {Column[]} */
  const columns = [];
  /** @type {((row: any) => any)[]} */
  const cells = [];
  if (has("bucket")) {
    columns.push({ label: words.time, numeric: false, text: (v) => format.bucketLong(v, meta.granularity ?? "day") });
    cells.push((row) => row.bucket);
  }
  if (has("group")) {
    columns.push({ label: humanize(meta.group_by ?? words.group), numeric: false, text: groupLabel, group: true });
    cells.push((row) => row.group);
  }
  if (meta.measures?.length) {
    meta.measures.forEach((/** @type {any} */ measure, /** @type {number} */ i) => {
      columns.push(
        number(measure.label || humanize(measure.numeric_prop || measure.metric || words.value), measure.format),
      );
      cells.push((row) => row.values?.[i]);
    });
  } else {
    columns.push(number(viz.value_label || words.value, viz.format));
    cells.push((row) => row.value);
    if (has("previous")) {
      columns.push(number(words.previous, viz.format));
      cells.push((row) => row.previous);
    }
    const total = has("group") && !has("bucket") && isAdditive(query.metric) ? totalOf(answer) : null;
    if (total != null) {
      columns.push({ label: words.share, numeric: true, text: (v) => format.share(v) });
      cells.push((row) => (total ? (row.value ?? 0) / total : 0));
    }
  }
  return { columns, rows: data.map((/** @type {any} */ row) => cells.map((cell) => cell(row))) };
}

/** Order of two cells: numbers by size, text by the locale, nothing always last. @param {any} a @param {any} b @param {number} sign */
export function compareCells(a, b, sign) {
  if (a == null || b == null) return a == null ? (b == null ? 0 : 1) : -1;
  const order = typeof a === "number" ? a - b : String(a).localeCompare(String(b));
  return order * sign;
}

/** @param {{ widget: any, answer: any, format: any, drill?: import("./pick.js").Drill | null }} props */
export function Table({ widget, answer, format, drill }) {
  const { columns, rows } = tableOf(widget, answer, format);
  const first = columns.findIndex((column) => column.numeric);
  const timed = answer.data.some((/** @type {any} */ row) => row.bucket !== undefined);
  // The server orders by the first value; say so in the head from the start.
  const [sort, setSort] = useState({ at: timed ? 0 : first, down: !timed });
  const sorted = rows
    .slice()
    .sort((/** @type {any[]} */ a, /** @type {any[]} */ b) => compareCells(a[sort.at], b[sort.at], sort.down ? -1 : 1));
  const shown = sorted.slice(0, ROWS_MAX);
  const choose = (/** @type {number} */ at) => setSort({ at, down: sort.at === at ? !sort.down : columns[at].numeric });
  const text = (/** @type {number} */ i, /** @type {any} */ cell) =>
    columns[i].group
      ? h(
          Pick,
          { drill, item: { label: columns[i].text(cell), group: cell } },
          html`<bdi>${columns[i].text(cell)}</bdi>`,
        )
      : html`<bdi>${columns[i].text(cell)}</bdi>`;
  return html`<div class="table" role="group" tabindex="0" aria-label=${widget.title}>
    <table>
      <thead><tr>${columns.map((column, i) =>
        h(Head, {
          key: i,
          column,
          sorted: sort.at !== i ? null : sort.down ? "descending" : "ascending",
          onSort: () => choose(i),
        }),
      )}</tr></thead>
      <tbody>
        ${shown.map(
          (/** @type {any[]} */ row, /** @type {number} */ n) => html`<tr key=${n}>
          ${row.map((cell, i) =>
            i === 0
              ? html`<th scope="row" title=${columns[i].text(cell)}>${text(i, cell)}</th>`
              : html`<td class=${columns[i].numeric ? "num" : ""}>${text(i, cell)}</td>`,
          )}
        </tr>`,
        )}
      </tbody>
    </table>
    ${sorted.length > ROWS_MAX && html`<p class="more">${words.more(sorted.length - ROWS_MAX)}</p>`}
  </div>`;
}

/** @param {{ column: Column, sorted: "ascending" | "descending" | null, onSort: () => void, key?: any }} props */
function Head({ column, sorted, onSort }) {
  return html`<th scope="col" class=${column.numeric ? "num" : ""} aria-sort=${sorted ?? undefined}>
    <button type="button" onClick=${onSort}>${column.label}<svg width="8" height="6" aria-hidden="true" class=${sorted ? "" : "off"}>
      <path d=${sorted === "ascending" ? "M4 0L8 6H0Z" : "M4 6L0 0H8Z"} fill="currentColor" />
    </svg></button>
  </th>`;
}
