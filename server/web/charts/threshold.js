// @ts-check
// Lines across a chart over time where a value begins to matter: `viz.thresholds`.
//
//   { "thresholds": [{ "value": 500, "label": "Budget", "tone": "bad" }] }
//
// A line without a label is named by its value. The colour is never all that it says: the line is dashed, and
// its name stands on it.

import { html } from "../shared/ui.js";
import { words } from "../shared/words.js";

/** More lines than this hide what they are drawn over. */
const THRESHOLDS_MAX = 3;
const TONES = ["good", "warn", "bad"];

/** @typedef {{ value: number, label: string, tone: string }} Threshold */

/** What can be drawn of `viz.thresholds`. @param {any} viz @returns {Threshold[]} */
export function thresholdsOf(viz) {
  const all = Array.isArray(viz.thresholds) ? viz.thresholds : [];
  return all
    .filter((/** @type {any} */ one) => Number.isFinite(one?.value))
    .slice(0, THRESHOLDS_MAX)
    .map((/** @type {any} */ { value, label, tone }) => ({
      value,
      label: typeof label === "string" ? label : "",
      tone: TONES.includes(tone) ? tone : "plain",
    }));
}

/** @param {{ thresholds: Threshold[], g: import("./plot.js").Geometry, format: any, spec: any }} props */
export function Thresholds({ thresholds, g, format, spec }) {
  return thresholds.map(({ value, label, tone }) => {
    const y = g.y(value);
    // Above its line, but for one at the upper edge.
    const above = y - g.top > 14;
    return html`<g class=${`threshold ${tone}`}>
      <line x1=${g.left} x2=${g.right} y1=${y} y2=${y} />
      <text x=${g.right} y=${above ? y - 6 : y + 12} text-anchor="end">${label || format.short(value, spec)}</text>
    </g>`;
  });
}

/** The lines as words, after the sentence of their chart. @param {Threshold[]} thresholds @param {any} format @param {any} spec */
export const describeThresholds = (thresholds, format, spec) =>
  thresholds.map(({ value, label }) => ` ${words.threshold(label, format.full(value, spec))}`).join("");
