// @ts-check
// The helper in the host's page: `<inlay-dashboard>` and `mountDashboard`.
//
// It puts the signed page into a frame, gives the frame its height, turns messages into events, and
// renews the session before it ends. A new session is loaded behind the old one and takes its place
// when it shows the same filters, so the viewer sees nothing of it. All timers and listeners belong to
// one life that ends when the element leaves the page.

import { addressIn, frameOf } from "./frame.js";
import { addressOf, claimsOf, renewalMs, retryMs } from "./session.js";

const SWAP_MS_MAX = 20_000;
/** A swap waits this long for the new page to show the filters of the old one. */
const SETTLE_MS_MAX = 3000;
/** Timers and the clock beside them differ by less. */
const EARLY_MS = 50;
const CALLBACK_MS_MAX = 30_000;

const ATTRIBUTES = ["src", "label", "height", "min-height", "mode", "locale", "loading"];

const STYLE = `:host(:not([hidden])){display:grid}:host{min-height:var(--dashboard-min-height,80px)}
iframe,slot{grid-area:1/1}iframe{width:100%;border:0;color-scheme:normal}iframe[inert]{opacity:0}`;

/** @typedef {import("./frame.js").Frame} Frame */

const Base = /** @type {typeof HTMLElement} */ (globalThis.HTMLElement ?? class {});

export class InlayDashboard extends Base {
  static observedAttributes = ATTRIBUTES;

  /** @type {AbortController | null} */ #life = null;
  /** @type {Frame | null} */ #frame = null;
  /** @type {{ frame: Frame, end: (error?: any) => void } | null} */ #next = null;
  /** @type {Record<string, any>} */ #theme = {};
  /** @type {Record<string, any> | null} what the host or the viewer chose last */ #filters = null;
  /** @type {any} */ #fetch = null;
  /** @type {Promise<void> | null} */ #renewing = null;
  /** Shows what the host put in for `loading` or `error`; under any other name nothing. */
  #slot = document.createElement("slot");
  #failures = 0;
  #due = Infinity;
  #timer = 0;

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    root.append(this.#slot);
  }

  connectedCallback() {
    // Properties set before the element was defined hide those of the class.
    const self = /** @type {any} */ (this);
    for (const name of [...ATTRIBUTES, "theme", "filters", "fetchEmbedUrl"]) {
      if (!Object.hasOwn(this, name)) continue;
      const value = self[name];
      delete self[name];
      self[name] = value;
    }
    const life = this.#life = new AbortController();
    for (const type of ["visibilitychange", "online", "pageshow"]) window.addEventListener(type, this.#wake, { signal: life.signal });
    this.#slot.name = "loading";
    this.#measure();
    this.#start();
  }

  disconnectedCallback() {
    this.#life?.abort();
    this.#life = null;
    clearTimeout(this.#timer);
    this.#next?.end(REPLACED);
    this.#frame?.close();
    this.#frame = this.#renewing = null;
  }

  /** Moved within the page without leaving it: nothing changes. */
  connectedMoveCallback() {}

  /** @param {string} name @param {string | null} old @param {string | null} value */
  attributeChangedCallback(name, old, value) {
    if (!this.#life || old === value) return;
    if (name === "src" && value) this.setEmbedUrl(value).catch(() => {});
    if (name === "mode") this.#tell("setTheme", { theme: { mode: value ?? "auto" } });
    this.#measure();
  }

  get theme() { return this.#theme; }
  set theme(value) { if (value) this.setTheme(value); }
  get filters() { return this.#filters; }
  set filters(value) { if (value) this.setFilters(value); }
  get fetchEmbedUrl() { return this.#fetch; }
  set fetchEmbedUrl(value) {
    this.#fetch = value;
    this.#start();
  }

  /** @param {string} name */
  #at(name) { return this.getAttribute(name) ?? ""; }

  /** @param {Record<string, any>} filters */
  setFilters(filters) {
    this.#filters = { ...this.#filters, ...filters };
    this.#tell("setFilters", { filters });
  }

  /** @param {Record<string, any>} theme */
  setTheme(theme) {
    this.#theme = { ...this.#theme, ...theme };
    this.#tell("setTheme", { theme });
  }

  /** @param {string} type @param {(detail: any) => void} listener @returns {() => void} takes it away */
  on(type, listener) {
    const hear = (/** @type {any} */ event) => listener(event.detail);
    this.addEventListener(type, hear);
    return () => this.removeEventListener(type, hear);
  }

  destroy() { this.remove(); }

  reload() { this.#tell("reload"); }

  /** @param {string} type @param {any} [fields] */
  #tell(type, fields) {
    this.#frame?.post(type, fields);
    this.#next?.frame.post(type, fields);
  }

  getFilters() { return this.#filters; }

  /** Asks the host's callback for a new session and swaps it in. One at a time. */
  refresh() {
    this.#renewing ??= this.#renew().finally(() => { this.#renewing = null; });
    return this.#renewing;
  }

  /**
   * Loads another session behind the current one and puts it in its place. A later call cancels an
   * earlier one; when it fails, the current one stays.
   * @param {string} address @returns {Promise<void>}
   */
  async setEmbedUrl(address) {
    const url = addressIn(address);
    if (!this.#life) throw new Error("not in a page");
    this.#next?.end(REPLACED);
    const old = this.#frame;
    const frame = frameOf(url, {
      label: this.#at("label") || "Dashboard", lazy: this.#at("loading") === "lazy", display: { theme: JSON.stringify(this.#look()), locale: this.#at("locale") },
      onMessage: (message) => this.#hear(frame, message),
    });
    if (!old) {
      this.#adopt(frame);
      return this.shadowRoot?.append(frame.element);
    }
    if (old.url.pathname !== url.pathname) this.#filters = null;
    frame.element.inert = true;
    /** @type {any} */ let next;
    try {
      await new Promise((resolve, reject) => {
        next = this.#next = { frame, end: (/** @type {any} */ error) => (error ? reject(error) : resolve(null)) };
        setTimeout(() => reject(new Error("no answer from the new session")), SWAP_MS_MAX);
        this.shadowRoot?.append(frame.element);
      });
    } catch (error) {
      frame.close();
      if (error !== REPLACED) this.#fail("swap_failed", error);
      throw error;
    } finally {
      if (this.#next === next) this.#next = null;
    }
    const focused = this.shadowRoot?.activeElement === old.element;
    frame.element.inert = false;
    this.#adopt(frame);
    old.close();
    if (focused) frame.element.focus();
    const { exp, sub } = claimsOf(url.href);
    this.#emit("session-swapped", { dashboardId: sub ?? null, expiresAt: exp ? new Date(exp * 1000).toISOString() : null });
  }

  /** Begins, once there is an address or a way to one. What follows in the same task belongs to it. */
  #start() {
    const life = this.#life;
    queueMicrotask(() => {
      if (!life || life !== this.#life || this.#frame) return;
      const address = this.#at("src");
      if (address) {
        this.setEmbedUrl(address).catch((error) => {
          this.#slot.name = "error";
          this.#fail("invalid_url", error);
        });
      } else if (this.#fetch) this.refresh().catch(() => {});
    });
  }

  /** @param {Frame} frame */
  #adopt(frame) {
    this.#frame = frame;
    this.#measure();
    if (this.#fetch) this.#wait(renewalMs(frame.url.href, Math.random()));
  }

  /** @param {number} ms until the next renewal */
  #wait(ms) {
    clearTimeout(this.#timer);
    this.#due = performance.now() + ms;
    this.#timer = window.setTimeout(this.#wake, ms + EARLY_MS);
  }

  /** A tab that nobody sees renews when it is seen again. */
  #wake = () => {
    if (performance.now() >= this.#due && !document.hidden) this.refresh().catch(() => {});
  };

  async #renew() {
    const life = this.#life;
    if (!this.#fetch || !life) return;
    clearTimeout(this.#timer);
    try {
      const signal = AbortSignal.any([life.signal, AbortSignal.timeout(CALLBACK_MS_MAX)]);
      const late = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      const given = await Promise.race([this.#fetch({ signal }), late]);
      const address = addressOf(given);
      // `null` says that there will be none.
      if (!address || address === this.#frame?.url.href) throw { status: given ?? 401, message: "no new session from fetchEmbedUrl" };
      await this.setEmbedUrl(address);
      this.#failures = 0;
    } catch (error) {
      if (life !== this.#life) return;
      const { status } = /** @type {any} */ (error);
      const wait = status === 401 || status === 403 ? null : retryMs(this.#failures++);
      console.warn("inlay-dashboard", error);
      if (wait !== null) this.#wait(wait);
      else {
        if (!this.#frame) this.#slot.name = "error";
        this.#fail("renewal_failed", error);
      }
      throw error;
    }
  }

  /** @param {Frame} frame @param {import("./frame.js").Message} message */
  #hear(frame, { _service, v, type, ...detail }) {
    const next = this.#next?.frame === frame && this.#next;
    if (type === "ready" || type === "error") this.#slot.name = "-";
    if (type === "ready") {
      frame.post("setTheme", { theme: this.#look() });
      const filters = this.#filters;
      if (filters) frame.post("setFilters", { filters });
      if (next) setTimeout(next.end, filters ? SETTLE_MS_MAX : 0);
    }
    const shown = type === "filter" && asFilters(detail);
    if (next) {
      if (shown && JSON.stringify(shown) === JSON.stringify(this.#filters)) next.end();
      // What comes before `ready` is why there will be none.
      if (type === "error" && !frame.isReady) next.end(detail);
    } else if (frame === this.#frame) {
      if (shown) this.#filters = shown;
      if (type === "resize") this.#measure();
      if (detail.code === "session_expired") {
        this.#due = 0;
        this.#wake();
      }
      this.#emit(type, detail);
    }
  }

  #look() {
    const mode = this.#at("mode");
    return mode ? { ...this.#theme, mode } : this.#theme;
  }

  #measure() {
    const frame = this.#frame;
    this.style.minHeight = px(this.#at("min-height"));
    if (frame) frame.element.style.height = px(this.#at("height")) || (frame.height ? `${frame.height}px` : "100%");
  }

  /** @param {string} code @param {any} error */
  #fail(code, { message }) {
    this.#emit("error", { code, message, retryable: false });
  }

  /** @param {string} type @param {any} detail */
  #emit(type, detail) {
    // They do not bubble: pages listen on the window for `resize` and `error` of their own.
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** A later session, or the end of the element: nobody needs to hear of it. */
const REPLACED = new Error("replaced");

/** A `filter` message in the shape that `setFilters` takes. @param {any} detail */
const asFilters = ({ period, filters, numericRanges, dateRanges }) => ({ period, dimensions: filters, numericRanges, dateRanges });

/** A number is pixels. @param {string} text */
const px = (text) => (/^\d+$/.test(text) ? `${text}px` : text);

// Attributes as properties.
for (const name of ATTRIBUTES) {
  Object.defineProperty(InlayDashboard.prototype, name, {
    get() { return this.getAttribute(name) ?? ""; },
    set(value) { this.setAttribute(name, value); },
  });
}

if (globalThis.customElements && !customElements.get("inlay-dashboard")) customElements.define("inlay-dashboard", InlayDashboard);

/**
 * Puts a dashboard into an element of the page and returns it.
 * @param {string | Element} target an element, or a selector of one
 * @param {Record<string, any>} options see `embed.d.ts`
 */
export function mountDashboard(target, { embedUrl, ...options }) {
  const element = document.createElement("inlay-dashboard");
  Object.assign(element, options, embedUrl && { src: addressOf(embedUrl) });
  const parent = typeof target === "string" ? document.querySelector(target) : target;
  if (!parent) throw new Error(`no element ${target}`);
  parent.append(element);
  return element;
}
