// @ts-check
// Groups by size: the bar list (label on the bar) and horizontal bars (label beside the bar).
//
// Both are lists of text with a drawn length, so they need no second form for screen readers. As
// many rows as fit are shown; the rest is named by a count and is in the table view.

import { html } from "../shared/ui.js";
import { words } from "../shared/words.js";
import { useBox } from "./plot.js";
import { ranked } from "./series.js";

const LIST_ROW_PX = 35;
const BAR_ROW_PX_MIN = 26;
const BAR_ROW_PX_MAX = 44;
const MORE_PX = 24;

/** @param {any} widget @param {any} answer */
function itemsOf(widget, answer) {
  const { query, viz } = widget;
  return ranked(answer, { limit: query.limit || 1000, metric: query.metric, order: viz.order === "none" ? "none" : "value_desc" }).items;
}

/** The rows that fit, and how many do not. @param {any[]} items @param {number} height @param {number} row_px */
function fit(items, height, row_px) {
  if (items.length * row_px <= height + 4) return { shown: items, more: 0 };
  const room = Math.max(1, Math.floor((height - MORE_PX) / row_px));
  return { shown: items.slice(0, room), more: items.length - room };
}

/** Length of a bar relative to the largest, in percent. @param {any} item @param {number} largest */
const lengthOf = (item, largest) => `${largest > 0 ? Math.max((Math.abs(item.value) / largest) * 100, 0.5) : 0}%`;

/** @param {any[]} items */
const largestOf = (items) => Math.max(...items.map((item) => Math.abs(item.value)), 0);

/** @param {{ widget: any, answer: any, format: any }} props */
export function BarList({ widget, answer, format }) {
  const [ref, box] = useBox();
  const items = itemsOf(widget, answer);
  const largest = largestOf(items);
  const { shown, more } = fit(items, box.height, LIST_ROW_PX);
  const spec = widget.viz.format;
  return html`<div class="ranking" ref=${ref}>
    <ol class="bar-list">
      ${shown.map((item) => html`<li key=${item.label}>
        <i style=${{ width: lengthOf(item, largest) }} class=${item.other ? "other" : ""}></i>
        <span class="name" title=${item.label}><bdi>${item.label}</bdi></span>
        <b title=${format.full(item.value, spec)}>${format.short(item.value, spec)}</b>
        ${item.share != null && html`<small>${format.share(item.share)}</small>`}
      </li>`)}
    </ol>
    ${more > 0 && html`<p class="more">${words.more(more)}</p>`}
  </div>`;
}

/** @param {{ widget: any, answer: any, format: any }} props */
export function HorizontalBars({ widget, answer, format }) {
  const [ref, box] = useBox();
  const items = itemsOf(widget, answer);
  const largest = largestOf(items);
  const row_px = Math.min(Math.max(Math.floor(box.height / Math.max(items.length, 1)), BAR_ROW_PX_MIN), BAR_ROW_PX_MAX);
  const { shown, more } = fit(items, box.height, row_px);
  const spec = widget.viz.format;
  return html`<div class="ranking" ref=${ref}>
    <ol class="bars" style=${{ "--row": `${row_px}px` }}>
      ${shown.map((item) => html`<li key=${item.label}>
        <span class="name" title=${item.label}><bdi>${item.label}</bdi></span>
        <span class="track">
          <i style=${{ width: lengthOf(item, largest), background: item.other ? item.color : "var(--c1)" }}></i>
          <b title=${format.full(item.value, spec)}>${format.short(item.value, spec)}</b>
        </span>
      </li>`)}
    </ol>
    ${more > 0 && html`<p class="more">${words.more(more)}</p>`}
  </div>`;
}
