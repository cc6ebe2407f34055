// @ts-check
// The sentence that says what a chart shows, for people who do not see it.

import { isAdditive } from "./series.js";

/**
 * "Line chart, Oct 22 to Nov 20. Lowest 23,100 on Oct 25, highest 97,000 on Nov 12, latest 41,000."
 * @param {string} kind @param {import("./series.js").Timed} model
 * @param {import("../shared/format.js").Format} format @param {any} spec
 */
export function describeTimed(kind, model, format, spec) {
  const { buckets, series, granularity } = model;
  if (!buckets.length) return "";
  const name = (/** @type {number} */ i) => format.bucketLong(buckets[i], granularity);
  const start = `${kind}, ${name(0)} to ${name(buckets.length - 1)}.`;
  if (series.length > 1) {
    const parts = series.map((s) => s.label).join(", ");
    return `${start} ${series.length} series, largest first: ${parts}.`;
  }
  const known = (series[0]?.values ?? []).flatMap((value, i) => (value == null ? [] : [{ value, i }]));
  if (!known.length) return start;
  const low = known.reduce((a, b) => (b.value < a.value ? b : a));
  const high = known.reduce((a, b) => (b.value > a.value ? b : a));
  const last = known[known.length - 1];
  const say = (/** @type {{ value: number, i: number }} */ p) => `${format.full(p.value, spec)} on ${name(p.i)}`;
  return `${start} Lowest ${say(low)}, highest ${say(high)}, latest ${format.full(last.value, spec)}.`;
}

/**
 * "Donut, 4 groups. Largest: Enterprise with 648,200, 48%."
 * @param {string} kind @param {import("./series.js").Ranked[]} items
 * @param {import("../shared/format.js").Format} format @param {any} spec @param {string | undefined} metric
 */
export function describeRanked(kind, items, format, spec, metric) {
  const top = items[0];
  if (!top) return "";
  const share = top.share != null && isAdditive(metric) ? `, ${format.share(top.share)}` : "";
  return `${kind}, ${items.length} groups. Largest: ${top.label} with ${format.full(top.value, spec)}${share}.`;
}
