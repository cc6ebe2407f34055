// @ts-check
// What a click on a value means: filter by it, show its details, or nothing.
//
// The session says whether drilling down is allowed at all, the widget what it does. The server
// refuses what is not allowed again, whatever the page sends.

/** @typedef {import("../charts/pick.js").Drill} Drill */

/** Values of a filter as a list. @param {string | string[] | undefined} value */
const listOf = (value) => (value === undefined ? [] : [value].flat());

/** What is chosen of a property, which may have any name. @param {import("./filters.js").Filters} filters @param {string} name */
export const chosenOf = ({ dimensions }, name) => (Object.hasOwn(dimensions, name) ? listOf(dimensions[name]) : []);

/** Whether the viewer may filter by a property. @param {import("./boot.js").Boot} boot @param {string} name */
export const mayFilter = ({ permissions }, name) =>
  !Object.hasOwn(permissions.locked_filters, name) && (permissions.allowed_dimensions?.includes(name) ?? true);

/**
 * @param {{ boot: import("./boot.js").Boot, widget: any, filters: import("./filters.js").Filters,
 *   onFilter: (dimension: string, value: string, on: boolean) => void,
 *   onDetail: (widget: any, dimension: string, value: string, event: Event) => void,
 *   onNarrow: Drill["narrow"] }} options
 * @returns {Drill | null} null: nothing can be chosen
 */
export function drillOf({ boot, widget, filters, onFilter, onDetail, onNarrow }) {
  const { group_by: dimension } = widget.query;
  const action = widget.viz.drill?.action ?? "filter";
  if (!boot.permissions.allow_drill_down || (action !== "filter" && action !== "detail")) return null;
  const chosen = dimension ? chosenOf(filters, dimension) : [];
  const narrow = boot.allows_dates ? onNarrow : null;
  if (!dimension || !mayFilter(boot, dimension)) return { action, chosen, choose: null, narrow };
  const only = (/** @type {string} */ value) => chosen.length === 1 && chosen[0] === value;
  return {
    action,
    narrow,
    chosen: action === "filter" ? chosen.filter(only) : [],
    choose: (value, event) =>
      action === "detail" ? onDetail(widget, dimension, value, event) : onFilter(dimension, value, !only(value)),
  };
}
