// @ts-check
// One frame with one session in it: made, spoken with, taken away.

/** @typedef {{ type: string, [field: string]: any }} Message */

/** What the page in the frame may say. */
const TYPES = ["ready", "resize", "filter", "period-change", "drill", "error"];
const SANDBOX = "allow-scripts allow-same-origin allow-forms allow-downloads";
const HEIGHT_PX_MIN = 80;
const HEIGHT_PX_MAX = 20_000;

/** A session's address, checked: nothing but a page may go into a frame. @param {string} text @returns {URL} */
export function addressIn(text) {
  const url = new URL(text, document.baseURI);
  if (url.protocol !== "https:" && url.protocol !== "http:") throw new TypeError("no embed URL");
  return url;
}

/**
 * Names that end in an underscore are ours alone; the bundler shortens them.
 * @typedef {{ element_: HTMLIFrameElement, url_: URL, height_: number, isReady_: boolean,
 *   post_: (type: string, fields?: any) => void, close_: () => void }} Frame
 */

/**
 * @param {URL} url @param {{ label_: string, display_: Record<string, string>, onMessage_: (message: Message) => void }} options
 *   `display_`: what the first paint needs to know, unsigned
 * @returns {Frame}
 */
export function frameOf(url, { label_, display_, onMessage_ }) {
  const element = document.createElement("iframe");
  const life = new AbortController();
  /** @type {Frame} */
  const frame = {
    element_: element,
    url_: url,
    height_: 0,
    isReady_: false,
    post_(type, fields) {
      if (frame.isReady_) element.contentWindow?.postMessage({ _service: true, v: 1, type, ...fields }, url.origin);
    },
    close_() {
      life.abort();
      element.remove();
    },
  };
  element.title = label_;
  element.part.add("frame");
  element.setAttribute("sandbox", SANDBOX);
  window.addEventListener(
    "message",
    ({ source, origin, data }) => {
      // Only our own page in our own frame is heard, and only what it can say.
      if (
        source !== element.contentWindow ||
        origin !== url.origin ||
        data?._service !== true ||
        !TYPES.includes(data.type)
      )
        return;
      if (data.type === "resize") {
        if (!Number.isFinite(data.height)) return;
        frame.height_ = Math.min(Math.max(data.height, HEIGHT_PX_MIN), HEIGHT_PX_MAX);
      }
      if (data.type === "ready") frame.isReady_ = true;
      onMessage_(data);
    },
    { signal: life.signal },
  );
  const address = new URL(url);
  for (const name in display_) if (display_[name]) address.searchParams.set(name, display_[name]);
  // The listener is there before the page is.
  element.src = address.href;
  return frame;
}
