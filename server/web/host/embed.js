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
  /** @type {{ frame_: Frame, end_: (error?: any) => void } | null} */ #next = null;
  /** @type {Record<string, any>} */ #theme = {};
  /** @type {Record<string, any> | null} what the host wants beside what is shown */ #wanted = null;
  /** @type {Record<string, any> | null} what the page said last */ #shown = null;
  /** @type {any} */ #fetch = null;
  /** @type {Promise<void> | null} */ #renewing = null;
  #root = this.attachShadow({ mode: "open" });
  /** Shows what the host put in for `loading` or `error`; under any other name nothing. */
  #slot = document.createElement("slot");
  #failures = 0;
  #due = Infinity;
  #timer = 0;

  constructor() {
    super();
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    this.#root.adoptedStyleSheets = [sheet];
    this.#root.append(this.#slot);
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
    const life = (this.#life = new AbortController());
    for (const type of ["visibilitychange", "online", "pageshow"])
      window.addEventListener(type, this.#wake, { signal: life.signal });
    this.#slot.name = "loading";
    this.#measure();
    this.#start();
  }

  disconnectedCallback() {
    this.#life?.abort();
    this.#life = null;
    clearTimeout(this.#timer);
    this.#next?.end_(REPLACED);
    this.#frame?.close_();
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

  get theme() {
    return this.#theme;
  }
  set theme(value) {
    if (value) this.setTheme(value);
  }
  get filters() {
    return this.getFilters();
  }
  set filters(value) {
    if (value) this.setFilters(value);
  }
  get fetchEmbedUrl() {
    return this.#fetch;
  }
  set fetchEmbedUrl(value) {
    this.#fetch = value;
    if (this.#frame) this.#adopt(this.#frame);
    this.#start();
  }

  /** @param {Record<string, any>} filters */
  setFilters(filters) {
    this.#wanted = { ...this.#wanted, ...filters };
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

  destroy() {
    this.remove();
  }

  reload() {
    this.#tell("reload");
  }

  /** @param {string} type @param {any} [fields] */
  #tell(type, fields) {
    this.#frame?.post_(type, fields);
    this.#next?.frame_.post_(type, fields);
  }

  getFilters() {
    return (this.#shown || this.#wanted) && { ...this.#shown, ...this.#wanted };
  }

  /** Asks the host's callback for a new session and swaps it in. One at a time. */
  refresh() {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  /**
   * Loads another session behind the current one and puts it in its place. A later call cancels an
   * earlier one; when it fails, the current one stays.
   * @param {string} address @returns {Promise<void>}
   */
  setEmbedUrl(address) {
    return this.#swap(address).catch((error) => {
      if (error !== REPLACED) this.#fail("swap_failed", error);
      throw error;
    });
  }

  /** @param {string} address */
  async #swap(address) {
    const url = addressIn(address);
    // Not in a page yet: it is where the element will begin.
    if (!this.#life) return this.setAttribute("src", address);
    this.#next?.end_(REPLACED);
    const old = this.#frame;
    const frame = frameOf(url, {
      label_: /** @type {any} */ (this).label || "Dashboard",
      display_: { theme: JSON.stringify(this.#look()), locale: /** @type {any} */ (this).locale },
      onMessage_: (message) => this.#hear(frame, message),
    });
    if (!old) {
      // What comes to replace a frame later must load wherever that one is.
      frame.element_.loading = /** @type {any} */ (this).loading;
      this.#adopt(frame);
      return this.#root.append(frame.element_);
    }
    frame.element_.inert = true;
    /** @type {any} */ let next, timer;
    try {
      await new Promise((resolve, reject) => {
        next = this.#next = {
          frame_: frame,
          end_: (/** @type {any} */ error) => (error ? reject(error) : resolve(null)),
        };
        timer = setTimeout(reject, SWAP_MS_MAX, new Error("no answer"));
        this.#root.append(frame.element_);
      });
    } catch (error) {
      frame.close_();
      throw error;
    } finally {
      clearTimeout(timer);
      if (this.#next === next) this.#next = null;
    }
    const focused = this.#root.activeElement === old.element_;
    frame.element_.inert = false;
    if (old.url_.pathname !== url.pathname) this.#wanted = this.#shown = null;
    this.#adopt(frame);
    old.close_();
    if (focused) frame.element_.focus();
    const { exp, sub } = claimsOf(url.href);
    this.#emit("session-swapped", { dashboardId: sub, expiresAt: exp && new Date(exp * 1000).toISOString() });
  }

  /** Begins, once there is an address or a way to one. What follows in the same task belongs to it. */
  #start() {
    const life = this.#life;
    queueMicrotask(() => {
      if (!life || life !== this.#life || this.#frame) return;
      const address = /** @type {any} */ (this).src;
      if (address) {
        this.setEmbedUrl(address).catch(() => {
          this.#slot.name = "error";
        });
      } else if (this.#fetch) this.refresh().catch(() => {});
    });
  }

  /** @param {Frame} frame */
  #adopt(frame) {
    this.#frame = frame;
    this.#measure();
    if (this.#fetch) this.#wait(renewalMs(frame.url_.href, Math.random()));
  }

  /** @param {number} ms until the next renewal */
  #wait(ms) {
    clearTimeout(this.#timer);
    this.#due = performance.now() + ms;
    this.#timer = window.setTimeout(this.#wake, ms + EARLY_MS);
  }

  /** A tab that nobody sees renews when it is seen again; after a failure, whatever changes is a reason to try. */
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
      if (!address || address === this.#frame?.url_.href) throw { status: given ?? 401, message: "no session" };
      await this.setEmbedUrl(address);
      this.#failures = 0;
    } catch (error) {
      if (life !== this.#life) return;
      const status = /** @type {any} */ (error)?.status;
      const wait = status === 401 || status === 403 ? null : retryMs(this.#failures++);
      console.warn("inlay-dashboard", error);
      if (wait !== null) {
        this.#wait(wait);
        this.#due = 0;
      } else {
        this.#due = Infinity;
        this.#failures = 0;
        if (!this.#frame) this.#slot.name = "error";
        this.#fail("renewal_failed", error);
      }
      throw error;
    }
  }

  /** @param {Frame} frame @param {import("./frame.js").Message} message */
  #hear(frame, { _service, v, type, ...detail }) {
    const next = this.#next?.frame_ === frame ? this.#next : null;
    if (type === "ready" || type === "error") this.#slot.name = "-";
    if (type === "ready") {
      frame.post_("setTheme", { theme: this.#look() });
      const filters = frame.url_.pathname === this.#frame?.url_.pathname && this.getFilters();
      if (filters) frame.post_("setFilters", { filters });
      if (next) setTimeout(next.end_, filters ? SETTLE_MS_MAX : 0);
    }
    const shown = type === "filter" && asFilters(detail);
    if (next) {
      if (shown && JSON.stringify(shown) === JSON.stringify(this.#shown)) next.end_();
      // What comes before `ready` is why there will be none.
      if (type === "error" && !frame.isReady_) next.end_(detail);
    } else if (frame === this.#frame) {
      if (shown) this.#shown = shown;
      // What was wanted is there now, or was refused.
      if (shown || detail.code === "filter_not_allowed") this.#wanted = null;
      if (type === "resize") this.#measure();
      if (detail.code === "session_expired" && this.#due < Infinity) {
        this.#due = 0;
        this.#wake();
      }
      this.#emit(type, detail);
    }
  }

  #look() {
    const mode = /** @type {any} */ (this).mode;
    return mode ? { ...this.#theme, mode } : this.#theme;
  }

  #measure() {
    const frame = this.#frame;
    if (/** @type {any} */ (this)["min-height"]) this.style.minHeight = px(/** @type {any} */ (this)["min-height"]);
    if (frame)
      frame.element_.style.height =
        px(/** @type {any} */ (this).height) || (frame.height_ ? `${frame.height_}px` : "100%");
  }

  /** @param {string} code @param {any} error */
  #fail(code, error) {
    this.#emit("error", { code, message: `${error?.message}`, retryable: false });
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
const asFilters = ({ period, filters, numericRanges, dateRanges }) => ({
  period,
  dimensions: filters,
  numericRanges,
  dateRanges,
});

/** A number is pixels. @param {string} text */
const px = (text) => (/^\d+$/.test(text) ? `${text}px` : text);

// Attributes as properties.
for (const name of ATTRIBUTES) {
  Object.defineProperty(InlayDashboard.prototype, name, {
    get() {
      return this.getAttribute(name) ?? "";
    },
    set(value) {
      value == null ? this.removeAttribute(name) : this.setAttribute(name, value);
    },
  });
}

if (globalThis.customElements && !customElements.get("inlay-dashboard"))
  customElements.define("inlay-dashboard", InlayDashboard);

/**
 * Puts a dashboard into an element of the page and returns it.
 * @param {string | Element} target an element, or a selector of one
 * @param {Record<string, any>} options see `public.d.ts`
 */
export function mountDashboard(target, { embedUrl, ...options }) {
  const element = document.createElement("inlay-dashboard");
  // What holds no address is an error like an address that is none.
  Object.assign(element, options, embedUrl && { src: addressOf(embedUrl) ?? "x:" });
  const parent = typeof target === "string" ? document.querySelector(target) : target;
  if (!parent) throw new Error(`no element ${target}`);
  parent.append(element);
  return element;
}
