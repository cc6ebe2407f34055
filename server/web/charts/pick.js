// @ts-check
// What a viewer can choose in a drawing, where the session lets him drill down.
//
// A row is a real button then: keyboard, screen reader and pointer all find the same thing. Without
// the right nothing looks or acts as if it could be chosen.

import { html } from "../shared/ui.js";
import { words } from "../shared/words.js";

/**
 * `chosen`: the values filtered by now. `narrow` takes the start of a bucket and of the next one.
 * @typedef {{ action: "filter" | "detail", chosen: string[], choose: ((value: string, event: Event) => void) | null,
 *   narrow: ((bucket: string, next: string | undefined, granularity: any) => void) | null }} Drill
 */
/** @typedef {{ label: string, group?: string | null, other?: boolean }} Item */

/** Whether an item stands for one value. "Other" and events without the property do not. @param {Drill | null | undefined} drill @param {Item} item */
export const picks = (drill, item) => !!drill?.choose && !!item.group && !item.other;

/** The content of a row: in a button where it can be chosen. @param {{ drill?: Drill | null, item: Item, children?: any }} props */
export function Pick({ drill, item, children }) {
  if (!drill?.choose || !picks(drill, item)) return html`<div class="row-of">${children}</div>`;
  const value = /** @type {string} */ (item.group);
  const chosen = drill.chosen.includes(value);
  const says = drill.action === "detail" ? words.showDetail : chosen ? words.unfilter : words.filterBy;
  return html`<button type="button" class=${chosen ? "row-of pick chosen" : "row-of pick"}
    onClick=${(/** @type {Event} */ event) => drill.choose?.(value, event)}>${children}<span class="vh">. ${says(item.label)}</span></button>`;
}
