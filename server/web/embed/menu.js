// @ts-check
// A button and the few actions behind it, as a native popover: Escape, a click elsewhere and focus
// are the browser's.

import { html, useId, useRef } from "../shared/ui.js";

/** @param {{ label: string, entries: { label: string, act: () => void }[], dots?: boolean }} props */
export function Menu({ label, entries, dots = false }) {
  const id = useId();
  const button = useRef(/** @type {HTMLElement | null} */ (null));
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const place = () => {
    const { left, right, bottom } = /** @type {HTMLElement} */ (button.current).getBoundingClientRect();
    const menu = /** @type {HTMLElement} */ (list.current);
    const wanted = document.dir === "rtl" ? left : right - menu.offsetWidth;
    menu.style.left = `${Math.max(8, Math.min(wanted, document.documentElement.clientWidth - menu.offsetWidth - 8))}px`;
    menu.style.top = `${bottom + scrollY + 4}px`;
  };
  return html`<button ref=${button} type="button" class=${dots ? "icon" : "tool"} popovertarget=${id} aria-label=${label} title=${label}>
      <svg width="16" height="16" aria-hidden="true">
        ${dots ? html`<path class="dots" d="M3 8h.01M8 8h.01M13 8h.01" />` : html`<path d="M8 2v8M4.5 6.5L8 10l3.5-3.5M2.5 13.5h11" />`}
      </svg>
    </button>
    <ul ref=${list} id=${id} popover class="menu" aria-label=${label} onToggle=${(/** @type {any} */ event) => event.newState === "open" && place()}>
      ${entries.map(
        (entry) => html`<li key=${entry.label}><button type="button"
        onClick=${() => (list.current?.hidePopover(), entry.act())}>${entry.label}</button></li>`,
      )}
    </ul>`;
}
