// @ts-check
// Steps on the way: how many get to each, of all that began.
//
// The steps are counted independently of each other, since the order of a user's events is not
// looked at; the chart says so. So a later step can be larger than an earlier one.

import { html } from "../shared/ui.js";
import { words } from "../shared/words.js";
import { groupLabel } from "./series.js";

/** @param {{ widget: any, answer: any, format: any }} props */
export function Funnel({ widget, answer, format }) {
  const spec = widget.viz.format;
  const first = answer.data[0]?.value ?? 0;
  const largest = Math.max(...answer.data.map((/** @type {any} */ row) => row.value ?? 0), 0);
  const part = (/** @type {number} */ value, /** @type {number} */ of) => (of > 0 ? format.share(value / of) : "—");
  return html`<div class="funnel">
    <ol>
      ${answer.data.map((/** @type {any} */ { group, value }, /** @type {number} */ i) => {
        const before = answer.data[i - 1]?.value ?? 0;
        const label = groupLabel(group);
        return html`<li key=${i}>
          <span class="name" title=${label}><bdi>${label}</bdi></span>
          <b title=${format.full(value, spec)}>${format.short(value, spec)}</b>
          <small title=${i ? `${part(value ?? 0, before)} ← ${groupLabel(answer.data[i - 1].group)}` : undefined}>${part(value ?? 0, first)}</small>
          <span class="track" aria-hidden="true"><i style=${{ width: `${largest > 0 ? ((value ?? 0) / largest) * 100 : 0}%` }}></i></span>
        </li>`;
      })}
    </ol>
    <p class="more">${words.steps}</p>
  </div>`;
}
