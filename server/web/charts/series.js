// @ts-check
// From answer rows to what a chart draws: buckets and series, or ranked groups.
//
// The server fills empty buckets, so this never guesses one. Groups beyond the limit become "Other",
// but only where values add up (counts and sums); averages, percentiles and unique counts have no
// honest rest. Each model also reads as a sentence, for people who do not see the drawing. Pure, so
// that the server's drawing can be checked against the same cases.

import { bucketEnd } from "../shared/format.js";
import { words } from "../shared/words.js";

/**
 * One row of an answer; `values` instead of `value` in a table with measures.
 * @typedef {{ bucket?: string, group?: string | null, value?: number | null, previous?: number | null,
 *   values?: (number | null)[] }} Row
 */
/**
 * `total` is the metric over all groups, also those that were left out.
 * @typedef {{ granularity?: any, group_by?: string | null, from?: string, to?: string, groups_total?: number,
 *   groups_returned?: number, total?: number, metric?: string, measures?: any[] }} Meta
 */
/** @typedef {{ data: Row[], meta: Meta, spark?: Row[] }} Answer */
/** @typedef {{ label: string, color: string, values: (number | null)[], total: number, group?: string | null, other?: boolean }} Series */
/**
 * @typedef {{ buckets: string[], series: Series[], previous: (number | null)[] | null, granularity: any,
 *   partialFirst: boolean, partialLast: boolean }} Timed
 */
/**
 * @typedef {{ label: string, color: string, value: number, share: number | null, previous: number | null,
 *   group?: string | null, other?: boolean }} Ranked
 */

/** Colours in the palette; a chart never shows more groups than this. */
export const COLORS_MAX = 8;
/** Groups shown when the query sets no limit. More than five are hard to tell apart. */
const GROUPS_DEFAULT = 5;

/** Whether values of a metric may be summed over groups and time. @param {string | undefined} metric */
export function isAdditive(metric) {
  return metric === "count" || metric === "sum";
}

/** Whether values of a metric are whole numbers. @param {string | undefined} metric */
export function isWhole(metric) {
  return metric === undefined || metric.startsWith("count");
}

/**
 * The colour of a series. `first` is `viz.color`, the place in the palette that the first one takes.
 * @param {number} index @param {unknown} [first] 1…8
 */
export function colorOf(index, first) {
  const start = Number.isInteger(first) && Number(first) >= 1 && Number(first) <= COLORS_MAX ? Number(first) - 1 : 0;
  return `var(--c${((index + start) % COLORS_MAX) + 1})`;
}
const OTHER = "var(--c-other)";

/** @param {string | null | undefined} group */
export const groupLabel = (group) => (group == null ? words.none : group === "" ? "“”" : group);

/**
 * Whether there is nothing worth drawing: no rows, or only nothings.
 * @param {{ data: { value?: unknown, values?: unknown[] }[] }} answer @param {string | undefined} metric
 */
export function isEmpty(answer, metric) {
  const counts = isAdditive(metric) || isWhole(metric);
  return !answer.data.some((row) => (row.values ?? [row.value]).some((v) => (counts ? v : v != null)));
}

/**
 * Rows with buckets as parallel series.
 * @param {Answer} answer @param {{ title: string, limit?: number | null, metric?: string, color?: unknown }} options
 * @returns {Timed}
 */
export function timed(answer, { title, limit, metric, color }) {
  const { data, meta } = answer;
  const buckets = [...new Set(data.map((row) => row.bucket ?? ""))];
  const position = new Map(buckets.map((bucket, i) => [bucket, i]));
  const additive = isAdditive(metric);
  /** @type {Map<string | null | undefined, (number | null)[]>} */
  const groups = new Map();
  for (const row of data) {
    let values = groups.get(row.group);
    if (!values) groups.set(row.group, (values = Array(buckets.length).fill(additive ? 0 : null)));
    values[/** @type {number} */ (position.get(row.bucket ?? ""))] = row.value ?? null;
  }
  const sum = (/** @type {(number | null)[]} */ values) =>
    values.reduce((/** @type {number} */ a, v) => a + (v ?? 0), 0);
  const ranked = [...groups]
    .map(([group, values]) => ({ group, values, total: sum(values) }))
    .sort((a, b) => b.total - a.total);
  const shown = Math.min(limit || GROUPS_DEFAULT, COLORS_MAX);
  /** @type {Series[]} */
  const series = ranked.slice(0, shown).map(({ group, values, total }, i) => ({
    label: group === undefined ? title : groupLabel(group),
    color: colorOf(i, color),
    values,
    total,
    group,
  }));
  const rest = ranked.slice(shown);
  if (rest.length && additive) {
    const values = buckets.map((_, i) => sum(rest.map((group) => group.values[i])));
    series.push({ label: words.other, color: OTHER, values, total: sum(values), other: true });
  }
  const granularity = meta.granularity ?? "day";
  const ungrouped = groups.size === 1 && groups.has(undefined);
  return {
    buckets,
    series,
    granularity,
    previous: ungrouped && data.some((row) => row.previous != null) ? data.map((row) => row.previous ?? null) : null,
    partialFirst: buckets.length > 1 && !!meta.from && Date.parse(meta.from) > Date.parse(buckets[0]),
    partialLast:
      buckets.length > 0 && !!meta.to && bucketEnd(buckets[buckets.length - 1], granularity) > Date.parse(meta.to),
  };
}

/**
 * The values of a number's sparkline. Those of sums begin behind a first bucket that the window cuts, as lines do.
 * @param {Answer} answer @param {boolean} sums
 */
export function course({ spark = [], meta }, sums) {
  const late = sums && spark.length > 2 && !!meta.from && Date.parse(meta.from) > Date.parse(spark[0].bucket ?? "");
  return spark.slice(late ? 1 : 0).map((row) => row.value ?? null);
}

/**
 * Rows without buckets, largest first, the rest as "Other" where that is true. When the server left
 * groups out, shares need its total over all of them; without it there are none.
 * @param {Answer} answer @param {{ limit: number, metric?: string, order?: string, color?: unknown }} options
 * @returns {{ items: Ranked[], total: number | null }} total null: not known, or the metric does not add up
 */
export function ranked(answer, { limit, metric, order, color }) {
  const { data, meta } = answer;
  const additive = isAdditive(metric);
  const rows = data.map((row) => ({
    label: groupLabel(row.group),
    group: row.group,
    value: row.value ?? 0,
    previous: row.previous ?? null,
  }));
  if (order !== "none") rows.sort((a, b) => b.value - a.value);
  const total = additive ? totalOf(answer) : null;
  const share = (/** @type {number} */ value) => (total ? value / total : null);
  /** @type {Ranked[]} */
  const items = rows.slice(0, limit).map((row, i) => ({ ...row, color: colorOf(i, color), share: share(row.value) }));
  const left = rows.slice(limit);
  if (left.length && additive) {
    const value =
      total != null && isCut(meta)
        ? total - items.reduce((sum, item) => sum + item.value, 0)
        : left.reduce((sum, row) => sum + row.value, 0);
    items.push({ label: words.other, color: OTHER, value, share: share(value), previous: null, other: true });
  }
  return { items, total };
}

/** Whether the server left groups out. @param {Meta} meta */
const isCut = (meta) => (meta.groups_total ?? 0) > (meta.groups_returned ?? 0);

/** The sum over all groups, or null when some are missing and the server did not say. @param {Answer} answer */
export function totalOf({ data, meta }) {
  return meta.total ?? (isCut(meta) ? null : data.reduce((sum, row) => sum + (row.value ?? 0), 0));
}

/**
 * Stacks series per bucket: positive parts upwards from zero, negative ones downwards.
 * @param {Series[]} series @param {number} count buckets @param {boolean} [percent] each bucket fills 0…1
 * @returns {{ from: number, to: number }[][]} per series, per bucket
 */
export function stack(series, count, percent = false) {
  const up = Array(count).fill(0);
  const down = Array(count).fill(0);
  const whole = up.map((_, i) => series.reduce((sum, s) => sum + Math.abs(s.values[i] ?? 0), 0) || 1);
  return series.map((one) =>
    one.values.map((raw, i) => {
      const value = percent ? (raw ?? 0) / whole[i] : (raw ?? 0);
      const side = value < 0 ? down : up;
      const from = side[i];
      side[i] += value;
      return { from, to: side[i] };
    }),
  );
}

/** Runs of indexes without a gap: a line is broken where a value is missing. @param {(number | null)[]} values */
export function runs(values) {
  /** @type {number[][]} */
  const out = [];
  values.forEach((value, i) => {
    if (value == null) return;
    const open = out[out.length - 1];
    if (open && open[open.length - 1] === i - 1) open.push(i);
    else out.push([i]);
  });
  return out;
}

/**
 * "Line chart, Oct 22 to Nov 20. Lowest 23,100 on Oct 25, highest 97,000 on Nov 12, latest 41,000."
 * @param {string} kind @param {Timed} model
 * @param {import("../shared/format.js").Format} format @param {any} spec
 */
export function describeTimed(kind, model, format, spec) {
  const { buckets, series, granularity } = model;
  if (!buckets.length) return "";
  const name = (/** @type {number} */ i) => format.bucketLong(buckets[i], granularity);
  const start = words.span(kind, name(0), name(buckets.length - 1));
  if (series.length > 1) return `${start} ${words.seriesList(series.length, series.map((s) => s.label).join(", "))}`;
  const known = (series[0]?.values ?? []).flatMap((value, i) => (value == null ? [] : [{ value, i }]));
  if (!known.length) return start;
  const low = known.reduce((a, b) => (b.value < a.value ? b : a));
  const high = known.reduce((a, b) => (b.value > a.value ? b : a));
  const last = known[known.length - 1];
  const full = (/** @type {number} */ value) => format.full(value, spec);
  return `${start} ${words.lowHigh([full(low.value), name(low.i), full(high.value), name(high.i), full(last.value)])}`;
}

/**
 * "Donut, 4 groups. Largest: Enterprise with 648,200, 48%."
 * @param {string} kind @param {Ranked[]} items
 * @param {import("../shared/format.js").Format} format @param {any} spec @param {string | undefined} metric
 */
export function describeRanked(kind, items, format, spec, metric) {
  const top = items[0];
  if (!top) return "";
  const share = top.share != null && isAdditive(metric) ? `, ${format.share(top.share)}` : "";
  return words.largest(kind, items.length, top.label, format.full(top.value, spec) + share);
}
