// @ts-check
// Entry of the embed page: reads the boot block, connects the parts, takes over the shell.
//
// Order matters to the host: listen first, then say `ready`, then `resize`, then load. The page keeps
// nothing: no cookie, no storage; the token is read from the address and sent as a header.

import "./kit.js";
import { h, render } from "../shared/ui.js";
import { bucketEnd, createFormat, pickLocale } from "../shared/format.js";
import { speak, words } from "../shared/words.js";
import { createBridge, reportHeight } from "./bridge.js";
import { parseBoot } from "./boot.js";
import { drillOf } from "./drill.js";
import { hasDates, mergeFilters, sameFilters, withoutFilter } from "./filters.js";
import { Page } from "./page.js";
import { createLoader, createState } from "./store.js";
import { createTheme, displayTheme } from "./theme.js";

const MINUTE_MS = 60_000;

const root = document.documentElement;
const app = /** @type {HTMLElement} */ (document.getElementById("app"));
const boot = parseBoot(document.getElementById("boot")?.textContent);
const params = new URLSearchParams(location.search);
const state = createState(boot);
const locale = pickLocale(params.get("locale") ?? navigator.language);
const format = createFormat(locale);
/** @type {Map<string, import("../shared/format.js").Format>} */
const formats = new Map([["UTC", format]]);

let isReady = false;
/** @type {any[]} */
const early = [];
/** @param {any} change */
function hearFilters(change) {
  const result = mergeFilters(state.filters.value, change, boot);
  if ("refused" in result) bridge.error("filter_not_allowed", result.refused);
  else if (sameFilters(state.filters.value, result.filters)) loader.report();
  else setFilters(result.filters);
}

const bridge = createBridge({
  origins: boot.origins,
  // A host that does not wait for `ready` is heard after it.
  onFilters: (change) => (isReady ? hearFilters(change) : early.push(change)),
  onTheme: (next) => theme.apply(next),
  onReload: () => isReady && loader.load(),
});
// What is said before `ready` would be taken for the reason why there is nothing to see.
const theme = createTheme(root, (message) => isReady && bridge.error("invalid_theme", message));
const loader = createLoader({ state, bridge, clock: format.clock, token: params.get("token") ?? "" });

/** @param {import("./filters.js").Filters} next */
function setFilters(next) {
  const before = state.filters.value;
  if (sameFilters(before, next)) return;
  state.filters.value = next;
  if (before.period !== next.period)
    bridge.post("period-change", { previousPeriod: before.period, period: next.period });
  loader.load();
}

/** @param {string} dimension @param {any} value @param {"apply" | "clear" | "detail"} action */
const tellDrill = (dimension, value, action) => bridge.post("drill", { dimension, value, action });

/** @param {string} dimension @param {string} value @param {boolean} on */
function filterBy(dimension, value, on) {
  const filters = state.filters.value;
  tellDrill(dimension, value, on ? "apply" : "clear");
  setFilters(
    on
      ? { ...filters, dimensions: { ...filters.dimensions, [dimension]: value } }
      : withoutFilter(filters, "dimensions", dimension),
  );
}

/** @param {any} widget @param {string} dimension @param {string} value @param {Event} event */
function openDetail(widget, dimension, value, event) {
  tellDrill(dimension, value, "detail");
  const at = /** @type {Element} */ (event.currentTarget).getBoundingClientRect();
  state.open.value = { sheet: { widget, dimension, value, at } };
}

/** A bucket becomes the range of dates. @param {string} bucket @param {string | undefined} next @param {any} granularity */
function narrow(bucket, next, granularity) {
  const range = {
    from: new Date(bucket).toISOString(),
    to: new Date(next ?? bucketEnd(bucket, granularity)).toISOString(),
  };
  const result = mergeFilters(state.filters.value, { dateRanges: { timestamp: range } }, boot);
  if (!("filters" in result)) return;
  tellDrill("timestamp", range.from, "apply");
  setFilters(result.filters);
}

/** The code that makes files comes when a file is wanted. */
const exports = () => import("./export.js");

/** What the views may know and do. */
const context = {
  state,
  format,
  retry: loader.retry,
  ask: loader.ask.bind(loader),
  /** Buckets of an answer are named in the time zone that they were cut in. @param {any} answer */
  formatFor(answer) {
    const zone = answer.meta.timezone ?? "UTC";
    if (!formats.has(zone)) formats.set(zone, createFormat(locale, zone));
    return formats.get(zone);
  },
  /** @param {any} widget */
  drillOf: (widget) =>
    drillOf({ boot, widget, filters: state.filters.value, onFilter: filterBy, onDetail: openDetail, onNarrow: narrow }),
  /** A period replaces a range of dates. @param {string} period */
  choosePeriod(period) {
    const filters = state.filters.value;
    setFilters({ ...filters, period, dateRanges: hasDates(filters) ? {} : filters.dateRanges });
  },
  /** @param {Element} from @param {boolean} dates */
  openFilter(from, dates) {
    state.open.value = { filter: { at: from.getBoundingClientRect(), dates } };
  },
  /** What the filter dialog chose. @param {any} change */
  changeFilters(change) {
    const result = mergeFilters(state.filters.value, change, boot);
    if ("filters" in result) setFilters(result.filters);
  },
  clearFilters: () => setFilters({ ...state.filters.value, dimensions: {}, numericRanges: {}, dateRanges: {} }),
  /** @param {"dimensions" | "numericRanges" | "dateRanges"} part @param {string} key */
  removeFilter(part, key) {
    const filters = state.filters.value;
    if (part !== "numericRanges")
      tellDrill(key, part === "dimensions" ? filters.dimensions[key] : filters.dateRanges[key]?.from, "clear");
    setFilters(withoutFilter(filters, part, key));
    // The button that had the focus is gone; the next one takes it.
    setTimeout(
      () =>
        document.activeElement === document.body &&
        /** @type {HTMLElement | null} */ (
          document.querySelector(".chips button") ?? document.querySelector("button.tool")
        )?.focus(),
    );
  },
  /** @param {any} widget @param {any} answer */
  saveCsv: (widget, answer) =>
    exports().then((m) => m.saveCsv(m.rowsOf(widget, answer, context.formatFor(answer)), widget.title), fileFailed),
  /** @param {any} widget @param {Element} card */
  savePng: (widget, card) =>
    exports()
      .then((m) => m.savePng(card, widget.title))
      .catch(fileFailed),
  saveAll() {
    const parts = boot.widgets.flatMap((widget) => {
      const { answer, failure } = state.cards.get(widget.id)?.value ?? {};
      return answer && !failure ? [{ widget, answer }] : [];
    });
    return exports().then((m) => m.saveCsv(m.longRows(parts), boot.name), fileFailed);
  },
};

function fileFailed() {
  state.notice.value = words.saveFailed;
  bridge.error("export_failed", words.saveFailed, { retryable: true });
}

theme.apply({ ...boot.theme, ...displayTheme(params.get("theme")) });
await Promise.all([speak(locale, root), theme.ready()]);
// The shell is replaced within one task: nothing is painted between the two.
app.replaceChildren();
render(h(Page, { context }), app);
bridge.post("ready", { dashboardId: boot.dashboard_id });
isReady = true;
reportHeight(app, bridge.post);
loader.start();
early.forEach(hearFilters);

setInterval(() => state.minute.value++, MINUTE_MS);
addEventListener("online", () => loader.load());
addEventListener("offline", loader.offline);
if (boot.expires_in_seconds != null) setTimeout(loader.ended, boot.expires_in_seconds * 1000);
