// @ts-check
// Groups by size: the bar list (label on the bar), horizontal bars (label beside the bar), and the
// donut (parts of a whole).
//
// All three are lists of text with a drawing, so every value can be read without seeing it. As many
// rows as fit are shown; the rest is named by a count and is in the table view.

import { h, html, useId, useState } from "../shared/ui.js";
import { humanize } from "../shared/format.js";
import { words } from "../shared/words.js";
import { Hatches, hatchOf, usePatterns } from "./pattern.js";
import { Pick, picks } from "./pick.js";
import { useBox } from "./plot.js";
import { colorOf, describeRanked, ranked } from "./series.js";

const LIST_ROW_PX = 35;
const BAR_ROW_PX_MIN = 26;
const BAR_ROW_PX_MAX = 44;
const MORE_PX = 24;

/** @param {any} widget @param {any} answer */
function itemsOf(widget, answer) {
  const { query, viz } = widget;
  return ranked(answer, {
    limit: query.limit || 1000,
    metric: query.metric,
    order: viz.order === "none" ? "none" : "value_desc",
    color: viz.color,
  }).items;
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

/** @typedef {{ widget: any, answer: any, format: any, drill?: import("./pick.js").Drill | null }} Props */

/** @param {Props} props */
export function BarList({ widget, answer, format, drill }) {
  const [ref, box] = useBox();
  const items = itemsOf(widget, answer);
  const { shown, more } = fit(items, box.height, LIST_ROW_PX);
  // What does not fit, often "Other", must not make the rest look small.
  const largest = largestOf(shown);
  const spec = widget.viz.format;
  return html`<div class="ranking" ref=${ref}>
    <ol class="bar-list">
      ${shown.map(
        (item) => html`<li key=${item.label}>
        ${h(
          Pick,
          { drill, item },
          html`
          <i style=${{ width: lengthOf(item, largest) }} class=${item.other ? "other" : ""}></i>
          <span class="name" title=${item.label}><bdi>${item.label}</bdi></span>
          <b title=${format.full(item.value, spec)}>${format.short(item.value, spec)}</b>
          ${item.share != null && html`<small>${format.share(item.share)}</small>`}`,
        )}
      </li>`,
      )}
    </ol>
    ${more > 0 && html`<p class="more">${words.more(more)}</p>`}
  </div>`;
}

/** @param {Props} props */
export function HorizontalBars({ widget, answer, format, drill }) {
  const [ref, box] = useBox();
  const items = itemsOf(widget, answer);
  const row_px = Math.min(Math.max(Math.floor(box.height / Math.max(items.length, 1)), BAR_ROW_PX_MIN), BAR_ROW_PX_MAX);
  const { shown, more } = fit(items, box.height, row_px);
  const largest = largestOf(shown);
  const spec = widget.viz.format;
  return html`<div class="ranking" ref=${ref}>
    <ol class="bars" style=${{ "--row": `${row_px}px` }}>
      ${shown.map(
        (item) => html`<li key=${item.label}>
        ${h(
          Pick,
          { drill, item },
          html`
          <span class="name" title=${item.label}><bdi>${item.label}</bdi></span>
          <span class="track">
            <i style=${{ width: lengthOf(item, largest), background: item.other ? item.color : colorOf(0, widget.viz.color) }}></i>
            <b title=${format.full(item.value, spec)}>${format.short(item.value, spec)}</b>
          </span>`,
        )}
      </li>`,
      )}
    </ol>
    ${more > 0 && html`<p class="more">${words.more(more)}</p>`}
  </div>`;
}

const PARTS_MAX = 6;
const LEGEND_ROW_PX = 30;
/** Wide cards put the list beside the ring, narrow ones below it. */
const SIDE_WIDTH_MIN = 400;
/** Pixels between two parts. */
const GAP = 2;

/**
 * A ring part between two turns (0…1, from 12 o'clock, clockwise).
 * @param {number} from @param {number} to @param {number} outer @param {number} inner
 */
function arc(from, to, outer, inner) {
  // A whole turn has no start and end to draw between.
  const end = Math.min(to, from + 0.9999);
  const at = (/** @type {number} */ turn, /** @type {number} */ r) =>
    `${(Math.sin(turn * 2 * Math.PI) * r).toFixed(2)} ${(-Math.cos(turn * 2 * Math.PI) * r).toFixed(2)}`;
  const large = end - from > 0.5 ? 1 : 0;
  return `M${at(from, outer)}A${outer} ${outer} 0 ${large} 1 ${at(end, outer)}L${at(end, inner)}A${inner} ${inner} 0 ${large} 0 ${at(from, inner)}Z`;
}

/** @param {Props} props */
export function Donut({ widget, answer, format, drill }) {
  const [ref, box] = useBox();
  const [active, setActive] = useState(/** @type {string | null} */ (null));
  const patterned = usePatterns();
  const id = useId();
  const { query, viz } = widget;
  const { items, total } = ranked(answer, {
    limit: Math.min(query.limit || PARTS_MAX, PARTS_MAX),
    metric: query.metric,
    color: viz.color,
  });
  const side = box.width >= SIDE_WIDTH_MIN;
  const room = side
    ? Math.min(box.height, box.width * 0.42)
    : Math.min(box.width, box.height - items.length * LEGEND_ROW_PX - 18);
  const size = Math.min(Math.max(room, 0), 200);
  const outer = size / 2;
  const inner = outer * 0.66;
  const whole = total || items.reduce((sum, item) => sum + Math.max(item.value, 0), 0) || 1;
  let turn = 0;
  const unit =
    viz.value_label ??
    viz.format?.unit ??
    (query.metric === "count" && query.event_name ? humanize(query.event_name).toLowerCase() : "");
  return html`<div class=${side ? "donut side" : "donut"} ref=${ref}>
    <p class="vh">${describeRanked(words.donutChart, items, format, viz.format, query.metric)}</p>
    ${
      size >= 90 &&
      html`<svg width=${size} height=${size} viewBox=${`${-outer} ${-outer} ${size} ${size}`} aria-hidden="true">
      ${patterned && h(Hatches, { id })}
      ${items.map((item, n) => {
        const from = turn;
        turn += Math.max(item.value, 0) / whole;
        const inset = items.length > 1 ? GAP / 2 / (Math.PI * 2 * outer) : 0;
        if (turn - from <= inset * 2) return null;
        const d = arc(from + inset, turn - inset, outer, inner);
        return html`<path key=${item.label} d=${d} fill=${item.color}
          class=${`${active && active !== item.label ? "dim" : ""}${picks(drill, item) ? " pick" : ""}`}
          onPointerEnter=${() => setActive(item.label)} onPointerLeave=${() => setActive(null)}
          onClick=${picks(drill, item) && ((/** @type {Event} */ event) => drill?.choose?.(item.group ?? "", event))} />
          ${patterned && hatchOf(id, n) && html`<path class="shade" d=${d} fill=${hatchOf(id, n)} />`}`;
      })}
      ${total != null && html`<text class="total" y=${unit ? -4 : 0} dy="0.35em" text-anchor="middle">${format.short(total, { ...viz.format, unit: null })}</text>`}
      ${total != null && unit && size >= 120 && html`<text class="tick" y="18" text-anchor="middle">${unit}</text>`}
    </svg>`
    }
    <ul>
      ${items.map(
        (item, n) => html`<li key=${item.label} class=${active && active !== item.label ? "dim" : ""}
        onPointerEnter=${() => setActive(item.label)} onPointerLeave=${() => setActive(null)}>
        ${h(
          Pick,
          { drill, item },
          html`
          <svg width="10" height="10" aria-hidden="true"><rect width="10" height="10" rx="3" fill=${item.color} />
            ${patterned && hatchOf(id, n) && html`<rect width="10" height="10" rx="3" fill=${hatchOf(id, n)} />`}</svg>
          <span class="name" title=${item.label}><bdi>${item.label}</bdi></span>
          <b title=${format.full(item.value, viz.format)}>${format.short(item.value, viz.format)}</b>
          <small>${item.share != null ? format.share(item.share) : ""}</small>`,
        )}
      </li>`,
      )}
    </ul>
  </div>`;
}
