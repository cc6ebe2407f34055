// @ts-check
// Messages between this page and the page that frames it.
//
// Every message is an object with `_service: true` and a `type`. A message is heard only if it comes
// from the parent window and from an allowed origin; when no origin is configured, the one found at
// load counts, else that of the first valid message, which is then pinned. Unknown types and fields
// are ignored: that is the version rule, additions never break an older side.
//
// This module knows neither the view library nor the state, so that a page with nothing but a
// message can use it alone.

/** Longest message read, in characters of JSON. Filters and themes are far smaller. */
const MESSAGE_CHARS_MAX = 65_536;
/** Commands that arrive together are one change. */
const BURST_MS = 50;
const RELOAD_INTERVAL_MS = 1000;
const VERSION = 1;

/** @typedef {{ type: "setFilters", filters: any } | { type: "setTheme", theme: any } | { type: "reload" }} Command */

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** The command in a message, or null when it is not one of ours. @param {any} data @returns {Command | null} */
export function parseMessage(data) {
  if (!isObject(data) || data._service !== true) return null;
  try {
    if (JSON.stringify(data).length > MESSAGE_CHARS_MAX) return null;
  } catch {
    return null;
  }
  switch (data.type) {
    case "setFilters":
      return isObject(data.filters) ? { type: "setFilters", filters: data.filters } : null;
    case "setTheme":
      return isObject(data.theme) ? { type: "setTheme", theme: data.theme } : null;
    case "reload":
      return { type: "reload" };
    default:
      return null;
  }
}

/** Whether an origin is the one that is meant; `https://*.example.com` means any below. @param {string} meant @param {string} origin */
const isOrigin = (meant, origin) => {
  const [before, after] = meant.split("*.");
  return after === undefined ? origin === meant : origin.startsWith(before) && origin.endsWith(`.${after}`);
};

/**
 * Who may speak, and to whom we speak.
 * @param {string[]} configured @param {string | null} found the origin seen at load
 */
export function createOrigins(configured, found) {
  const isMeant = (/** @type {string} */ origin) => configured.some((meant) => isOrigin(meant, origin));
  // Where origins are configured, only one of them is ever known.
  let known = found !== null && configured.length && !isMeant(found) ? null : found;
  return {
    /** Whether to hear this origin. @param {string} origin */
    allows(origin) {
      if (origin === "null") return false;
      if (configured.length) {
        if (!isMeant(origin)) return false;
        known ??= origin;
        return true;
      }
      known ??= origin;
      return origin === known;
    },
    /** Where to post. `*` only when nothing can be known: whoever frames the page holds its signed address anyway. */
    targets() {
      if (known !== null) return [known];
      return configured.length ? configured.filter((meant) => !meant.includes("*")) : ["*"];
    },
  };
}

/** @param {Window} window @returns {string | null} */
function parentOrigin(window) {
  const ancestor = window.location.ancestorOrigins?.[0];
  if (ancestor && ancestor !== "null") return ancestor;
  try {
    return new URL(window.document.referrer).origin;
  } catch {
    return null;
  }
}

/**
 * @param {{ origins: string[], window?: Window, onFilters?: (filters: any) => void,
 *   onTheme?: (theme: any) => void, onReload?: () => void }} options
 */
export function createBridge({ origins, window = globalThis.window, onFilters, onTheme, onReload }) {
  const framed = window.parent !== window;
  const rules = createOrigins(origins, framed ? parentOrigin(window) : null);
  /** @type {any} */ let filters = null;
  let reloadedAt = -Infinity;
  let reloadTimer = 0;

  const settle = () => {
    const merged = filters;
    filters = null;
    onFilters?.(merged);
  };
  const reload = () => {
    clearTimeout(reloadTimer);
    const wait_ms = reloadedAt + RELOAD_INTERVAL_MS - performance.now();
    if (wait_ms > 0) {
      reloadTimer = window.setTimeout(reload, wait_ms);
      return;
    }
    reloadedAt = performance.now();
    onReload?.();
  };

  if (framed) {
    window.addEventListener("message", (event) => {
      if (event.source !== window.parent) return;
      const command = parseMessage(event.data);
      if (!command || !rules.allows(event.origin)) return;
      if (command.type === "setTheme") onTheme?.(command.theme);
      else if (command.type === "reload") reload();
      else {
        if (!filters) setTimeout(settle, BURST_MS);
        filters = { ...filters, ...command.filters };
      }
    });
  }

  /** @param {string} type @param {Record<string, any>} [payload] */
  function post(type, payload) {
    if (!framed) return;
    for (const target of rules.targets())
      window.parent.postMessage({ _service: true, v: VERSION, type, ...payload }, target);
  }

  return {
    post,
    /** @param {string} code @param {string} message @param {{ widgetId?: string, retryable?: boolean }} [more] */
    error: (code, message, more) => post("error", { message, code, retryable: false, ...more }),
  };
}

/**
 * Tells the host the height of `box` whenever it changes, at most once a frame. One measured box,
 * never the document's scroll height: that one follows the frame and would never shrink.
 * @param {HTMLElement} box @param {(type: string, payload: any) => void} post
 */
export function reportHeight(box, post) {
  let sent = 0;
  let frame = 0;
  const root = document.documentElement;
  // A frame that follows our height needs no scroll bar of its own.
  const fit = () => {
    root.style.overflowY = sent > 0 && window.innerHeight >= sent ? "hidden" : "";
  };
  const send = () => {
    frame = 0;
    const height = Math.ceil(box.getBoundingClientRect().height);
    if (Math.abs(height - sent) < 1) return;
    sent = height;
    post("resize", { height });
    fit();
  };
  send();
  new ResizeObserver(() => {
    frame ||= requestAnimationFrame(send);
  }).observe(box);
  window.addEventListener("resize", fit);
}
