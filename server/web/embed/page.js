// @ts-check
// The page: title, periods, filters, and the cards with their states. It draws what the server's
// shell drew, now alive.
//
// The old picture stays while a new one loads; the thin bar and the dimming come from the style
// sheet with a delay, so a fast answer shows neither.

import { h, html, useState } from "../shared/ui.js";
import { humanize } from "../shared/format.js";
import { periodWords, words } from "../shared/words.js";
import { drawingOf, hasTableView } from "../charts/kinds.js";
import { useBox } from "../charts/plot.js";
import { isEmpty } from "../charts/series.js";
import { Table } from "../charts/table.js";
import { loneNumbers } from "./boot.js";
import { activeFilters, hasDates } from "./filters.js";

const MINUTE_MS = 60_000;

/** @param {{ context: any }} props */
export function Page({ context }) {
  const { state } = context;
  const { boot } = state;
  const lone = loneNumbers(boot.widgets);
  const clocked = boot.widgets.some((/** @type {any} */ w) => !["number", "text", "table"].includes(w.kind));
  return html`
    ${state.notice.value && html`<p class="notice" role="alert">${state.notice.value}</p>`}
    <header class="head">
      <h1>${boot.name}</h1>
      ${h(Updated, { state })}
      ${h(Periods, { context })}
    </header>
    ${h(Chips, { context })}
    <div class="grid">
      ${boot.widgets.map((/** @type {any} */ widget, /** @type {number} */ index) =>
        h(Card, { key: widget.id, widget, index, lone: lone.has(index), context }))}
    </div>
    ${clocked && html`<footer>${words.utc}</footer>`}
    <p class="vh" role="status">${state.announcement.value}</p>`;
}

/** @param {{ state: any }} props */
function Updated({ state }) {
  const at = state.updatedAt.value;
  const minutes = at ? Math.floor((Date.now() - at.getTime()) / MINUTE_MS) : 0;
  // Reading the ticking signal is what redraws this once a minute.
  void state.minute.value;
  return html`<p class="updated">${at ? (minutes < 1 ? words.updatedNow : words.updatedAgo(minutes)) : ""}</p>`;
}

/** One button a period; a choice of one is none. @param {{ context: any }} props */
function Periods({ context }) {
  const { state } = context;
  const { periods } = state.boot;
  if (periods.length < 2) return null;
  const filters = state.filters.value;
  const current = hasDates(filters) ? null : filters.period;
  return html`<div class="segments" role="group" aria-label=${words.period}>
    ${periods.map((/** @type {string} */ period) => html`<button key=${period} type="button"
      aria-pressed=${String(period === current)} onClick=${() => context.choosePeriod(period)}>${period}</button>`)}
  </div>`;
}

/** @param {{ context: any }} props */
function Chips({ context }) {
  const { state, format } = context;
  const locked = Object.entries(state.boot.permissions.locked_filters);
  const active = activeFilters(state.filters.value, format);
  if (!locked.length && !active.length) return null;
  return html`<ul class="chips" aria-label=${words.filters}>
    ${locked.map(([name, value]) => html`<li key=${`locked ${name}`} class="locked">
      <svg width="12" height="12" aria-hidden="true"><path d="M2.5 5.5h7v5h-7zM4 5.5V3.8a2 2 0 0 1 4 0v1.7" /></svg>
      <span>${humanize(name)}</span><b><bdi>${value}</bdi></b><span class="vh">${words.locked}</span>
    </li>`)}
    ${active.map((filter) => html`<li key=${`${filter.part} ${filter.key}`}>
      <span>${filter.name}</span><b><bdi>${filter.value}</bdi></b>
      <button type="button" aria-label=${words.remove(filter.name)} onClick=${() => context.removeFilter(filter.part, filter.key)}>
        <svg width="10" height="10" aria-hidden="true"><path d="M1.5 1.5l7 7M8.5 1.5l-7 7" /></svg>
      </button>
    </li>`)}
  </ul>`;
}

/** @typedef {{ widget: import("./boot.js").Widget, index: number, lone: boolean, context: any }} CardProps */

/** @param {CardProps} props */
function Card({ widget, index, lone, context }) {
  const { state, format } = context;
  const { busy, stale, answer, failure } = state.cards.get(widget.id).value;
  const [asTable, setAsTable] = useState(false);
  const { x, y, w, h: rows } = widget.layout;
  const { kind, title, viz, query } = widget;
  const empty = answer && kind !== "number" && isEmpty(answer, query.metric);
  const drawn = answer && !failure && !empty;
  return html`<section class=${`card is-${kind}${lone ? " lone" : ""}`} aria-labelledby=${`t${index}`}
    aria-busy=${String(busy)} data-refreshing=${busy && answer ? "" : undefined} data-stale=${stale ? "" : undefined}
    style=${{ "--x": x + 1, "--y": y + 1, "--w": w, "--h": rows }}>
    <i class="progress"></i>
    <header>
      <h2 id=${`t${index}`}>${title}</h2>
      ${viz.subtitle && html`<p>${viz.subtitle}</p>`}
      ${drawn && h(Extent, { answer, format, kind })}
      ${drawn && hasTableView(kind) && html`<button type="button" class="icon" aria-pressed=${String(asTable)}
        aria-label=${words.viewTable(title)} title=${words.viewTable(title)} onClick=${() => setAsTable(!asTable)}>
        <svg width="16" height="16" aria-hidden="true"><path d="M2.5 3.5h11v9h-11zM2.5 6.5h11M2.5 9.5h11M6.5 6.5v6" /></svg>
      </button>`}
    </header>
    <div class="body">
      ${kind === "text" ? h(drawingOf(kind), { widget })
        : failure ? h(Failed, { widget, failure, onRetry: () => context.retry(widget.id) })
        : !answer ? h(Skeleton, { kind })
        : empty ? h(Empty, { context })
        : h(Drawing, { key: String(asTable), widget, answer, context, asTable })}
    </div>
  </section>`;
}

/** @param {{ widget: any, answer: any, context: any, asTable: boolean, key?: string }} props */
function Drawing({ widget, answer, context, asTable }) {
  const [ref, box] = useBox();
  const period = answer.meta.period ?? context.state.filters.value.period;
  return html`<div class="drawing" ref=${ref}>
    ${box.width > 0 && h(asTable ? Table : drawingOf(widget.kind), { widget, answer, format: context.formatFor(answer), period, width: box.width })}
  </div>`;
}

/** How much of the groups is there, when it is not all. @param {{ answer: any, format: any, kind: string }} props */
function Extent({ answer, format, kind }) {
  const { groups_total: total, groups_returned: returned } = answer.meta;
  if (kind === "number" || !(total > returned)) return null;
  return html`<p>${words.topOf(format.full(returned), format.full(total))}</p>`;
}

/** The shape of the drawing before there is one. The server draws the same markup. @param {{ kind: string }} props */
function Skeleton({ kind }) {
  return html`<div class=${`skeleton is-${kind}`} aria-hidden="true"><i></i><i></i></div>`;
}

/** @param {{ context: any }} props */
function Empty({ context }) {
  const { state, format } = context;
  const filters = state.filters.value;
  const active = activeFilters(filters, format);
  const period = hasDates(filters) ? "" : periodWords(filters.period);
  const inWords = active.map((filter) => `${filter.name}: ${filter.value}`).join(", ");
  return html`<div class="state">
    <svg width="30" height="26" aria-hidden="true"><path d="M1 24h28M6 19v-3M12 19v-7M18 19v-8M25 19V4" stroke-dasharray="3 3" /></svg>
    <h3>${words.nothing}</h3>
    ${period && html`<p>${words.noMatch(period, inWords)}</p>`}
    ${active.length > 0 && html`<button type="button" class="button" onClick=${context.clearFilters}>${words.clearFilters}</button>`}
  </div>`;
}

/** @param {{ widget: any, failure: import("./store.js").Failure, onRetry: () => void }} props */
function Failed({ widget, failure, onRetry }) {
  if (widget.kind === "number") {
    return html`<div class="state small" title=${failure.message}>
      <p>${words.numberFailed}</p>
      ${failure.retryable && html`<button type="button" class="link" onClick=${onRetry}>${words.retry}</button>`}
    </div>`;
  }
  return html`<div class="state">
    <svg width="28" height="28" aria-hidden="true"><circle cx="14" cy="14" r="12" /><path d="M14 8v7M14 19v.5" /></svg>
    <h3>${words.chartFailed}</h3>
    <p>${failure.message}</p>
    ${failure.retryable && html`<button type="button" class="button" onClick=${onRetry}>${words.tryAgain}</button>`}
  </div>`;
}
