// @ts-check
// A native modal dialog inside a frame.
//
// The frame may be far taller than the window, so "the middle" is often out of sight: a dialog stands
// where it was asked for, and the page grows when it would not fit. Focus trap, Escape and focus
// coming back are the browser's.

import { html, useId, useLayoutEffect, useRef, words } from "./kit.js";

const EDGE_PX = 12;

/**
 * @param {{ label: string, at: DOMRect, side?: boolean, onClose: () => void, inside: (close: () => void) => any }} props
 *   `at`: what was clicked; `side`: a sheet at the end edge instead of a box under `at`; `inside` is given what
 *   closes it, which is the only way out that gives the focus back
 */
export function Dialog({ label, at, side = false, onClose, inside }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  const outside = useRef(false);
  const close = () => ref.current?.close();
  useLayoutEffect(() => {
    const dialog = ref.current;
    if (!dialog) return;
    const app = /** @type {HTMLElement} */ (document.getElementById("app"));
    dialog.showModal();
    const place = () => {
      const { offsetWidth: width, offsetHeight: height } = dialog;
      const room = document.documentElement.clientWidth;
      const wanted = side ? (document.dir === "rtl" ? 0 : room) : document.dir === "rtl" ? at.left : at.right - width;
      const top = (side ? at.top - 40 : at.bottom + 8) + scrollY;
      dialog.style.left = `${Math.max(EDGE_PX, Math.min(wanted, room - width - EDGE_PX))}px`;
      // A sheet moves up before it makes the page grow.
      const highest = side ? Math.max(EDGE_PX, Math.min(top, app.offsetHeight - height - EDGE_PX)) : top;
      dialog.style.top = `${highest}px`;
      app.style.minHeight = `${highest + height + EDGE_PX}px`;
    };
    place();
    const observer = new ResizeObserver(place);
    observer.observe(dialog);
    return () => {
      observer.disconnect();
      app.style.minHeight = "";
    };
  }, []);
  return html`<dialog ref=${ref} class=${side ? "sheet" : "pop"} aria-labelledby=${id} onClose=${onClose}
    onPointerDown=${(/** @type {any} */ event) => {
      outside.current = event.target === ref.current;
    }}
    onClick=${(/** @type {any} */ event) => outside.current && event.target === ref.current && close()}>
    <div class="inside">
      <header><h2 id=${id}>${label}</h2>
        <button type="button" class="close" aria-label=${words.close} onClick=${close}>
          <svg width="14" height="14" aria-hidden="true"><path d="M2 2l10 10M12 2L2 12" /></svg>
        </button>
      </header>
      ${inside(close)}
    </div>
  </dialog>`;
}
