// @ts-check
// The one state of the page, in signals, and the loading that fills it.
//
// A card keeps its last answer while the next one is on its way, so nothing flickers. One request
// asks for all cards and is answered line by line as each query finishes. A new filter state aborts
// the request before it, and a sequence number makes lines that are late nonetheless harmless. A
// failed card leaves the others alone.

import { signal } from "../shared/ui.js";
import { words } from "../shared/words.js";
import { initialFilters, sameFilters } from "./filters.js";

/** @typedef {{ code: string, message: string, retryable: boolean }} Failure */
/**
 * `stale`: the answer belongs to an earlier filter state and no newer one could be had.
 * @typedef {{ busy: boolean, stale: boolean, answer: import("../charts/series.js").Answer | null, failure: Failure | null }} CardState
 */
/** @typedef {ReturnType<typeof createState>} State */

/** @param {import("./boot.js").Boot} boot */
export function createState(boot) {
  // An id may be any word, also one that every object knows.
  const brought = (/** @type {string} */ id) => (Object.hasOwn(boot.data, id) ? boot.data[id] : null);
  /** @type {Map<string, ReturnType<typeof signal<CardState>>>} */
  const cards = new Map(
    boot.widgets.map((widget) => [
      widget.id,
      signal(/** @type {CardState} */ ({ busy: false, stale: false, answer: brought(widget.id), failure: null })),
    ]),
  );
  const whole = boot.widgets.every((widget) => widget.kind === "text" || brought(widget.id));
  return {
    boot,
    cards,
    filters: signal(initialFilters(boot)),
    /** A sentence on top of the page while the data below stays. */
    notice: signal(/** @type {string | null} */ (null)),
    /** Said once by screen readers. */
    announcement: signal(""),
    updatedAt: signal(whole ? new Date() : null),
    /** Which dialog is open: the filters, or the details of a value. */
    open: signal(/** @type {{ filter?: any, sheet?: any }} */ ({})),
    /** Moves once a minute, for "Updated 3 min ago". */
    minute: signal(0),
    /** @param {string} id @param {Partial<CardState>} change */
    setCard(id, change) {
      const card = cards.get(id);
      if (card) card.value = { ...card.value, ...change };
    },
  };
}

const URL_BASE = "/v1/embed/";
/** A host that renews the session replaces this page; the viewer is told only when it does not. */
const RENEWAL_WAIT_MS = 4000;
/** Times that a busy server is asked again before the viewer is told. */
const RETRIES_MAX = 2;
const RETRY_AFTER_SECONDS_MAX = 30;

/** Cuts chunks of text into lines. */
export function createLineSplitter() {
  let rest = "";
  return {
    /** @param {string} chunk @returns {string[]} the lines completed by it */
    push(chunk) {
      const lines = (rest + chunk).split("\n");
      rest = /** @type {string} */ (lines.pop());
      return lines.filter((line) => line.trim());
    },
    /** @returns {string[]} */
    end() {
      const last = rest;
      rest = "";
      return last.trim() ? [last] : [];
    },
  };
}

/**
 * One line of the answer. Null when it is not one that we know: a newer server may say more.
 * @param {string} line
 * @returns {{ widget: string, answer: import("../charts/series.js").Answer } | { widget: string, error: string, code: string } | { expires_in_seconds: number } | null}
 */
export function parseLine(line) {
  let raw;
  try {
    raw = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof raw !== "object" || raw === null) return null;
  if (typeof raw.widget === "string") {
    if (raw.error != null)
      return { widget: raw.widget, error: String(raw.error), code: String(raw.code ?? "internal") };
    return Array.isArray(raw.data)
      ? { widget: raw.widget, answer: { data: raw.data, meta: raw.meta ?? {}, spark: raw.spark } }
      : null;
  }
  return Number.isFinite(raw.expires_in_seconds) ? { expires_in_seconds: raw.expires_in_seconds } : null;
}

/** Error text as a sentence. @param {string} text */
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");

/**
 * @param {{ state: State, token: string, bridge: any, clock: (date: Date) => string, fetch?: typeof globalThis.fetch }} options
 */
export function createLoader({ state, token, bridge, clock, fetch = globalThis.fetch.bind(globalThis) }) {
  const all = state.boot.widgets.filter((widget) => widget.kind !== "text").map((widget) => widget.id);
  let sequence = 0;
  let controller = new AbortController();
  /** @type {import("./filters.js").Filters | null} the filters of the data on the page */
  let shown = all.some((id) => state.cards.get(id)?.value.answer) ? state.filters.value : null;
  let endTimer = 0;

  /** @param {string[]} ids @param {Partial<CardState>} change */
  const setCards = (ids, change) => ids.forEach((id) => state.setCard(id, change));

  /** The whole request failed. Cards with data keep it where only time has passed. @param {string[]} ids @param {string} code @param {string} message */
  function failAll(ids, code, message) {
    const stays = code === "session_expired" || code === "offline" || code === "not_published";
    const retryable = !stays || code === "offline";
    if (code === "session_expired") tellEnd(message);
    else if (stays) state.notice.value = code === "offline" ? words.offline(clockText()) : message;
    for (const id of ids) {
      const kept = stays && state.cards.get(id)?.value.answer;
      state.setCard(
        id,
        kept
          ? { busy: false, stale: !shown || !sameFilters(shown, state.filters.value) }
          : { busy: false, failure: { code, message, retryable } },
      );
    }
    bridge.error(code, message, { retryable });
  }

  /** @param {string} message */
  function tellEnd(message) {
    clearTimeout(endTimer);
    endTimer = setTimeout(() => {
      state.notice.value = message;
    }, RENEWAL_WAIT_MS);
  }

  /** @param {string} path @param {any} body @param {AbortSignal} signal @param {string} accept */
  const send = (path, body, signal, accept) =>
    fetch(URL_BASE + path, {
      method: "POST",
      signal,
      credentials: "omit",
      cache: "no-store",
      headers: { authorization: `Bearer ${token}`, accept, "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  /** When the data on the page is from. */
  const clockText = () => clock(state.updatedAt.value ?? new Date());

  /** What went wrong, from an answer that is not 200. @param {Response} response @param {string[]} ids @param {number} mine */
  async function refuse(response, ids, mine) {
    const body = await response.json().catch(() => ({}));
    if (mine !== sequence) return;
    if (response.status === 401) return failAll(ids, "session_expired", words.sessionEnded);
    if (response.status === 409) return failAll(ids, "not_published", words.notPublished);
    if (response.status === 429 || response.status === 503) return failAll(ids, body.code ?? "overloaded", words.busy);
    return failAll(ids, body.code ?? "internal", sentence(body.error ?? words.unreachable));
  }

  /** @param {string[]} ids @param {number} mine @param {number} attempt @returns {Promise<boolean>} whether it was answered */
  async function request(ids, mine, attempt) {
    const signal = controller.signal;
    const response = await send("data", { widgets: ids, filters: state.filters.value }, signal, "application/x-ndjson");
    if ((response.status === 429 || response.status === 503) && attempt < RETRIES_MAX) {
      const seconds = Math.min(Math.max(Number(response.headers.get("retry-after")) || 1, 1), RETRY_AFTER_SECONDS_MAX);
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      return mine === sequence ? request(ids, mine, attempt + 1) : false;
    }
    if (!response.ok || !response.body) {
      await refuse(response, ids, mine);
      return false;
    }
    const open = new Set(ids);
    const take = (/** @type {string[]} */ lines) =>
      lines.forEach((line) => {
        const one = parseLine(line);
        if (!one || !("widget" in one) || mine !== sequence || !open.delete(one.widget)) return;
        if ("answer" in one)
          return state.setCard(one.widget, { busy: false, stale: false, failure: null, answer: one.answer });
        const message = sentence(one.error);
        state.setCard(one.widget, { busy: false, failure: { code: one.code, message, retryable: true } });
        bridge.error(one.code, message, { widgetId: one.widget, retryable: true });
      });
    const splitter = createLineSplitter();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) take(splitter.push(part.value));
    take(splitter.end());
    if (open.size && mine === sequence) failAll([...open], "internal", words.connectionLost);
    return true;
  }

  /** @param {string[]} ids @param {number} mine */
  async function run(ids, mine) {
    setCards(ids, { busy: true });
    try {
      const answered = await request(ids, mine, 0);
      if (mine !== sequence || !answered) return;
      shown = state.filters.value;
      state.notice.value = null;
      state.updatedAt.value = new Date();
    } catch {
      if (mine !== sequence) return;
      const offline = navigator.onLine === false;
      failAll(
        ids.filter((id) => state.cards.get(id)?.value.busy),
        offline ? "offline" : "network",
        words.unreachable,
      );
    }
  }

  /** Tells the host which filters the page shows. */
  function report() {
    const { period, dimensions, numericRanges, dateRanges } = state.filters.value;
    bridge.post("filter", { period, filters: dimensions, numericRanges, dateRanges });
  }

  /** @param {string[]} ids */
  async function load(ids) {
    controller.abort();
    controller = new AbortController();
    const mine = ++sequence;
    if (ids.length) {
      state.announcement.value = words.updating;
      await run(ids, mine);
      if (mine !== sequence) return;
      state.announcement.value = state.notice.value ? "" : words.updated;
    }
    report();
  }

  return {
    /** Loads every card with the current filters. */
    load: () => load(all),
    /** Loads the cards that the page did not bring along. */
    start: () => load(all.filter((id) => !state.cards.get(id)?.value.answer)),
    report,
    /** Says that the connection is gone; the data stays. */
    offline() {
      state.notice.value = words.offline(clockText());
    },
    /** The time of the session is over. */
    ended() {
      bridge.error("session_expired", words.sessionEnded);
      tellEnd(words.sessionEnded);
    },
    /** Loads one card again. @param {string} id */
    retry: (id) => run([id], sequence),
    /**
     * Asks for something beside the cards; fails with an error that reads as a sentence.
     * @param {string} path @param {any} body @param {AbortSignal} signal
     */
    async ask(path, body, signal) {
      /** @type {Response} */ let response;
      try {
        response = await send(path, body, signal, "application/json");
      } catch {
        throw new Error(words.unreachable);
      }
      const answer = await response.json().catch(() => ({}));
      if (response.ok) return answer;
      if (response.status === 401) this.ended();
      throw new Error(
        response.status === 401
          ? words.sessionEnded
          : response.status === 429
            ? words.busy
            : sentence(answer.error ?? words.unreachable),
      );
    },
  };
}
