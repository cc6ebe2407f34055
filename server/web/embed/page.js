// @ts-check
// The page: title, tools, filters, cards. It draws what the server's shell drew, now alive.

import { h, html, lazy, useSignal } from "../shared/ui.js";
import { humanize } from "../shared/format.js";
import { words } from "../shared/words.js";
import { isTimed } from "../charts/kinds.js";
import { loneCards } from "./boot.js";
import { Card } from "./card.js";
import { activeFilters, hasDates } from "./filters.js";
import { Menu } from "./menu.js";

const MINUTE_MS = 60_000;

/** Most viewers never open these: they come when they are asked for. */
const FilterDialog = lazy(() => import("./filter.js"));
const Sheet = lazy(() => import("./sheet.js"));

/** @param {{ context: any }} props */
export function Page({ context }) {
  const { state } = context;
  const { boot } = state;
  const lone = loneCards(boot.widgets);
  const zones = [
    ...new Set(
      boot.widgets
        .filter((/** @type {any} */ w) => isTimed(w.kind))
        .map((/** @type {any} */ w) => w.query.timezone ?? "UTC"),
    ),
  ];
  const { filter, sheet } = useSignal(state.open);
  const notice = useSignal(state.notice);
  const onClose = () => {
    state.open.value = {};
  };
  return html`
    ${notice && html`<p class="notice" role="alert">${notice}</p>`}
    <header class="head">
      <h1>${boot.name}</h1>
      ${h(Updated, { context })}
      ${h(Periods, { context })}
      ${h(Tools, { context })}
    </header>
    ${h(Chips, { context })}
    <div class="grid">
      ${boot.widgets.map((/** @type {any} */ widget, /** @type {number} */ index) =>
        h(Card, { key: widget.id, widget, index, lone: lone.has(index), context }),
      )}
    </div>
    ${zones.length > 0 && html`<footer>${words.timesIn(zones.join(", "))}</footer>`}
    ${filter && h(FilterDialog, { context, onClose, ...filter })}
    ${sheet && h(Sheet, { context, onClose, ...sheet })}
    <p class="vh" role="status">${useSignal(state.announcement)}</p>`;
}

/** @param {{ context: any }} props */
function Updated({ context: { state, format } }) {
  const at = useSignal(state.updatedAt);
  const minutes = at ? Math.floor((Date.now() - at.getTime()) / MINUTE_MS) : 0;
  // The ticking signal is what redraws this once a minute.
  useSignal(state.minute);
  return html`<p class="updated">${at ? (minutes < 1 ? words.updatedNow : words.updatedAgo(format.minutes(minutes))) : ""}</p>`;
}

/** One button a period, and one for dates; a choice of one is none. @param {{ context: any }} props */
function Periods({ context }) {
  const { state, format } = context;
  const { periods, allows_dates } = state.boot;
  const filters = useSignal(state.filters);
  if (periods.length < 2) return null;
  const dated = hasDates(filters);
  return html`<div class="segments" role="group" aria-label=${words.period}>
    ${periods.map(
      (/** @type {string} */ period) => html`<button key=${period} type="button" title=${format.period(period)}
      aria-pressed=${String(!dated && period === filters.period)} onClick=${() => context.choosePeriod(period)}>${format.period(period, "narrow")}</button>`,
    )}
    ${
      allows_dates &&
      html`<button type="button" aria-pressed=${String(dated)} aria-haspopup="dialog"
      onClick=${(/** @type {any} */ e) => context.openFilter(e.currentTarget, true)}>${words.custom}</button>`
    }
  </div>`;
}

/** @param {{ context: any }} props */
function Tools({ context }) {
  const { offered, periods, allows_dates } = context.state.boot;
  // The server's shell follows the same rule.
  const filterable = offered.dimensions.length + offered.numbers.length > 0 || (allows_dates && periods.length < 2);
  return html`${
    filterable &&
    html`<button type="button" class="tool" aria-haspopup="dialog" onClick=${(/** @type {any} */ e) => context.openFilter(e.currentTarget, false)}>
      <svg width="14" height="12" aria-hidden="true"><path d="M1 2h12M3 6h8M5 10h4" /></svg>${words.filter}
    </button>`
  }
    ${h(Menu, { label: words.download, entries: [{ label: words.saveAll, act: context.saveAll }] })}`;
}

/** @param {{ context: any }} props */
function Chips({ context }) {
  const { state, format } = context;
  const locked = Object.entries(state.boot.permissions.locked_filters);
  const active = activeFilters(useSignal(state.filters), format);
  if (!locked.length && !active.length) return null;
  return html`<ul class="chips" aria-label=${words.filters}>
    ${locked.map(
      ([name, value]) => html`<li key=${`locked ${name}`} class="locked">
      <svg width="12" height="12" aria-hidden="true"><path d="M2.5 5.5h7v5h-7zM4 5.5V3.8a2 2 0 0 1 4 0v1.7" /></svg>
      <span>${humanize(name)}</span><b><bdi>${[value].flat().join(", ")}</bdi></b><span class="vh">${words.locked}</span>
    </li>`,
    )}
    ${active.map(
      (filter) => html`<li key=${`${filter.part} ${filter.key}`}>
      <span>${filter.name}</span><b title=${filter.value}><bdi>${filter.value}</bdi></b>
      <button type="button" aria-label=${words.remove(filter.name)} onClick=${() => context.removeFilter(filter.part, filter.key)}>
        <svg width="10" height="10" aria-hidden="true"><path d="M1.5 1.5l7 7M8.5 1.5l-7 7" /></svg>
      </button>
    </li>`,
    )}
  </ul>`;
}
