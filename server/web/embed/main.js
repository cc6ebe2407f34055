// @ts-check
// Entry of the embed page: reads the boot block, connects the parts, takes over the shell.
//
// Order matters to the host: listen first, then say `ready`, then `resize`, then load. The page keeps
// nothing: no cookie, no storage; the token is read from the address and sent as a header.

import { h, render } from "../shared/ui.js";
import { createFormat, pickLocale } from "../shared/format.js";
import { createBridge, reportHeight } from "./bridge.js";
import { parseBoot } from "./boot.js";
import { hasDates, mergeFilters, sameFilters, withoutFilter } from "./filters.js";
import { Page } from "./page.js";
import { createLoader, createState } from "./store.js";
import { createTheme } from "./theme.js";

const MINUTE_MS = 60_000;

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
const boot = parseBoot(document.getElementById("boot")?.textContent);
const params = new URLSearchParams(location.search);
const state = createState(boot);
const locale = pickLocale(params.get("locale") ?? navigator.language);
const format = createFormat(locale);
/** @type {Map<string, import("../shared/format.js").Format>} */
const formats = new Map([["UTC", format]]);

const bridge = createBridge({
  origins: boot.origins,
  onFilters: (change) => {
    const result = mergeFilters(state.filters.peek(), change, boot);
    if ("refused" in result) bridge.error("filter_not_allowed", result.refused);
    else if (sameFilters(state.filters.peek(), result.filters)) loader.report();
    else setFilters(result.filters);
  },
  onTheme: (next) => theme.apply(next),
  onReload: () => loader.load(),
});
const theme = createTheme(document.documentElement, (message) => bridge.error("invalid_theme", message));
const loader = createLoader({ state, bridge, token: params.get("token") ?? "" });

/** @param {import("./filters.js").Filters} next */
function setFilters(next) {
  const before = state.filters.peek();
  if (sameFilters(before, next)) return;
  state.filters.value = next;
  if (before.period !== next.period) bridge.post("period-change", { previousPeriod: before.period, period: next.period });
  loader.load();
}

/** What the views may know and do. */
const context = {
  state,
  format,
  retry: loader.retry,
  /** Buckets of an answer are named in the time zone that they were cut in. @param {any} answer */
  formatFor(answer) {
    const zone = answer.meta.timezone ?? "UTC";
    if (!formats.has(zone)) formats.set(zone, createFormat(locale, zone));
    return formats.get(zone);
  },
  /** A period replaces a range of dates. @param {string} period */
  choosePeriod(period) {
    const filters = state.filters.peek();
    setFilters({ ...filters, period, dateRanges: hasDates(filters) ? {} : filters.dateRanges });
  },
  clearFilters: () => setFilters({ ...state.filters.peek(), dimensions: {}, numericRanges: {}, dateRanges: {} }),
  /** @param {"dimensions" | "numericRanges" | "dateRanges"} part @param {string} key */
  removeFilter: (part, key) => setFilters(withoutFilter(state.filters.peek(), part, key)),
};

theme.apply({ ...boot.theme, ...(params.has("theme") ? { mode: params.get("theme") } : {}) });
// The shell is replaced within one task: nothing is painted between the two.
app.replaceChildren();
render(h(Page, { context }), app);
bridge.post("ready", { dashboardId: boot.dashboard_id });
reportHeight(app, bridge.post);
loader.load();

setInterval(() => state.minute.value++, MINUTE_MS);
addEventListener("online", () => loader.load());
addEventListener("offline", loader.offline);
