// @ts-check
// Which colour is which. Each entry is a button that takes its series out of the drawing and back.

import { html } from "../shared/ui.js";

/**
 * @param {{ series: import("./series.js").Series[], hidden: string[], onToggle: (hidden: string[]) => void, line?: boolean }} props
 */
export function Legend({ series, hidden, onToggle, line = false }) {
  const toggle = (/** @type {string} */ label) => {
    const next = hidden.includes(label) ? hidden.filter((l) => l !== label) : [...hidden, label];
    // Taking out the last one brings all back: an empty chart helps nobody.
    onToggle(next.length === series.length ? [] : next);
  };
  return html`<ul class="legend">
    ${series.map((s) => html`<li key=${s.label}>
      <button type="button" aria-pressed=${String(!hidden.includes(s.label))} onClick=${() => toggle(s.label)}>
        <svg width="12" height="10" aria-hidden="true">
          ${line ? html`<line x1="0" x2="12" y1="5" y2="5" stroke=${s.color} stroke-width="2.5" />`
            : html`<rect width="10" height="10" rx="3" fill=${s.color} />`}
        </svg>
        <span>${s.label}</span>
      </button>
    </li>`)}
  </ul>`;
}
