// @ts-check
// One frame with one session in it: made, spoken with, taken away.

/** @typedef {{ type: string, [field: string]: any }} Message */

/** What the page in the frame may say. */
const TYPES = ["ready", "resize", "filter", "period-change", "drill", "error"];
const SANDBOX = "allow-scripts allow-same-origin allow-downloads";
const HEIGHT_PX_MIN = 80;
const HEIGHT_PX_MAX = 20_000;

/** A session's address, checked: nothing but a page may go into a frame. @param {string} text @returns {URL} */
export function addressIn(text) {
  const url = new URL(text, document.baseURI);
  if (url.protocol !== "https:" && url.protocol !== "http:") throw new TypeError("not an embed URL");
  return url;
}

/** @typedef {ReturnType<typeof frameOf>} Frame */

/**
 * @param {URL} url @param {{ label: string, lazy: boolean, display: Record<string, string>, onMessage: (message: Message) => void }} options
 *   `display`: what the first paint needs to know, unsigned
 */
export function frameOf(url, { label, lazy, display, onMessage }) {
  const element = document.createElement("iframe");
  const life = new AbortController();
  const frame = {
    element, url, height: 0, isReady: false,
    /** @param {string} type @param {any} [fields] */
    post(type, fields) {
      if (frame.isReady) element.contentWindow?.postMessage({ _service: true, v: 1, type, ...fields }, url.origin);
    },
    close() {
      life.abort();
      element.remove();
    },
  };
  element.title = label;
  element.part.add("frame");
  if (lazy) element.loading = "lazy";
  element.setAttribute("sandbox", SANDBOX);
  window.addEventListener("message", ({ source, origin, data }) => {
    // Only our own page in our own frame is heard, and only what it can say.
    if (source !== element.contentWindow || origin !== url.origin || data?._service !== true || !TYPES.includes(data.type)) return;
    if (data.type === "resize") {
      if (!Number.isFinite(data.height)) return;
      frame.height = Math.min(Math.max(data.height, HEIGHT_PX_MIN), HEIGHT_PX_MAX);
    }
    if (data.type === "ready") frame.isReady = true;
    onMessage(data);
  }, { signal: life.signal });
  const address = new URL(url);
  for (const name in display) if (display[name]) address.searchParams.set(name, display[name]);
  // The listener is there before the page is.
  element.src = address.href;
  return frame;
}
