// @ts-check
// The filter state: what it may be, how a change is merged in, how it reads in words.
//
// The host's `setFilters` and the viewer's clicks come through the same door. The server enforces
// every rule again; checking here only gives a better answer, sooner.

import { humanize } from "../shared/format.js";
import { words } from "../shared/words.js";

/** @typedef {Record<string, string | string[]>} Dimensions */
/** @typedef {Record<string, { min?: number, max?: number }>} NumericRanges */
/** @typedef {Record<string, { from: string, to: string }>} DateRanges */
/** @typedef {{ period: string, dimensions: Dimensions, numericRanges: NumericRanges, dateRanges: DateRanges }} Filters */
/** @typedef {import("./boot.js").Boot} Boot */

const DAY_MS = 86_400_000;

/** @param {any} value @returns {value is Record<string, any>} */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** @param {Boot} boot @returns {Filters} */
export const initialFilters = (boot) => ({
  period: boot.default_period,
  dimensions: {},
  numericRanges: {},
  dateRanges: {},
});

/** @param {any} dimensions @param {Boot} boot @returns {string | null} */
function refuseDimensions(dimensions, { permissions }) {
  if (!isObject(dimensions)) return "dimensions must be an object";
  for (const [name, value] of Object.entries(dimensions)) {
    if (Object.hasOwn(permissions.locked_filters, name)) return `dimension ${name} is locked`;
    if (permissions.allowed_dimensions && !permissions.allowed_dimensions.includes(name))
      return `dimension ${name} is not allowed`;
    const values = Array.isArray(value) ? value : [value];
    if (!values.length || !values.every((v) => typeof v === "string"))
      return `dimension ${name} must be a string or a list of strings`;
  }
  return null;
}

/** @param {any} ranges @param {Boot} boot @returns {string | null} */
function refuseNumericRanges(ranges, { permissions }) {
  if (!isObject(ranges)) return "numericRanges must be an object";
  for (const [name, range] of Object.entries(ranges)) {
    if (permissions.allowed_dimensions && !permissions.allowed_dimensions.includes(name))
      return `numeric range ${name} is not allowed`;
    const ends = isObject(range) ? [range.min, range.max] : [NaN];
    if (!ends.some(Number.isFinite) || !ends.every((end) => end == null || Number.isFinite(end)))
      return `numeric range ${name} needs numbers`;
  }
  return null;
}

/** @param {any} ranges @param {Boot} boot @returns {string | null} */
function refuseDateRanges(ranges, { permissions, allows_dates }) {
  if (!isObject(ranges)) return "dateRanges must be an object";
  for (const [name, range] of Object.entries(ranges)) {
    if (name !== "timestamp") return `dates are filtered by timestamp only, not by ${name}`;
    if (!allows_dates) return "dates are not allowed";
    const ends = isObject(range) ? [range.from, range.to] : [];
    // Years beyond four digits are dates to nobody but browsers.
    const [from, to] = ends.map((end) => (typeof end === "string" && !/^[+-]/.test(end) ? Date.parse(end) : NaN));
    const length = to - from;
    if (!(length > 0)) return `date range ${name} needs from and to`;
    const days = permissions.max_date_range_days;
    if (days != null && length > days * DAY_MS) return `date range ${name} is longer than ${days} days`;
  }
  return null;
}

/** What the server understands of each entry, and nothing else. @param {Record<string, any>} of @param {(value: any) => any} keep */
const each = (of, keep) => Object.fromEntries(Object.entries(of).map(([key, value]) => [key, keep(value)]));

/** @param {string} text */
const instant = (text) => new Date(text).toISOString();

/**
 * Merges a change into the state: parts that are present replace, absent parts stay.
 * A change that breaks a rule is refused as a whole.
 * @param {Filters} current @param {any} change @param {Boot} boot
 * @returns {{ filters: Filters } | { refused: string }}
 */
export function mergeFilters(current, change, boot) {
  if (!isObject(change)) return { refused: "filters must be an object" };
  const { period, dimensions, numericRanges, dateRanges } = change;
  const refused =
    (period !== undefined && !boot.allowed_periods.includes(period) ? "this period is not allowed" : null) ??
    (dimensions === undefined ? null : refuseDimensions(dimensions, boot)) ??
    (numericRanges === undefined ? null : refuseNumericRanges(numericRanges, boot)) ??
    (dateRanges === undefined ? null : refuseDateRanges(dateRanges, boot));
  if (refused) return { refused };
  return {
    filters: {
      period: period ?? current.period,
      dimensions: dimensions ?? current.dimensions,
      numericRanges: numericRanges
        ? each(numericRanges, ({ min, max }) => ({ min: min ?? undefined, max: max ?? undefined }))
        : current.numericRanges,
      dateRanges: dateRanges
        ? each(dateRanges, ({ from, to }) => ({ from: instant(from), to: instant(to) }))
        : current.dateRanges,
    },
  };
}

/** @param {Filters} a @param {Filters} b */
export const sameFilters = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** Whether dates replace the period. @param {Filters} filters */
export const hasDates = (filters) => Object.keys(filters.dateRanges).length > 0;

/**
 * The filters that a viewer can take away, in words.
 * @param {Filters} filters @param {import("../shared/format.js").Format} format
 * @returns {{ part: "dimensions" | "numericRanges" | "dateRanges", key: string, name: string, value: string }[]}
 */
export function activeFilters(filters, format) {
  const range = (/** @type {{ min?: number, max?: number }} */ { min, max }) =>
    min == null
      ? `≤ ${format.full(max)}`
      : max == null
        ? `≥ ${format.full(min)}`
        : `${format.full(min)} – ${format.full(max)}`;
  /** @param {"dimensions" | "numericRanges" | "dateRanges"} part @param {(value: any) => string} text */
  const chips = (part, text) =>
    Object.entries(filters[part]).map(([key, value]) => ({ part, key, name: humanize(key), value: text(value) }));
  return [
    ...chips("dimensions", (value) => [value].flat().join(", ")),
    ...chips("numericRanges", range),
    ...chips("dateRanges", ({ from, to }) => datesText(from, to, format)).map((chip) => ({
      ...chip,
      name: words.dates,
    })),
  ];
}

/** Days, the first and the last included; one day stands alone. @param {string} from @param {string} to @param {import("../shared/format.js").Format} format */
function datesText(from, to, format) {
  // The end is the first instant outside.
  const [first, last] = [format.day(from), format.day(new Date(Date.parse(to) - 1).toISOString())];
  return first === last ? first : `${first} – ${last}`;
}

/** The state without one filter. @param {Filters} filters @param {"dimensions" | "numericRanges" | "dateRanges"} part @param {string} key @returns {Filters} */
export function withoutFilter(filters, part, key) {
  const { [key]: _, ...rest } = /** @type {Record<string, any>} */ (filters[part]);
  return { ...filters, [part]: rest };
}
