// Numbers, dates and changes read as the design says.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bucketEnd, change, createFormat, humanize, NOTHING, pickLocale } from "../shared/format.js";
import { ticks } from "../shared/scale.js";

const format = createFormat("en-US");
const money = { style: "currency", currency: "USD" };

test("short numbers are compact from 10,000 on", () => {
  assert.equal(format.short(8412), "8,412");
  assert.equal(format.short(9999), "9,999");
  assert.equal(format.short(41_234), "41.2K");
  assert.equal(format.short(1_412_345), "1.4M");
  assert.equal(format.full(1_412_345), "1,412,345");
});

test("minus is the minus sign and nothing is a dash", () => {
  assert.equal(format.full(-5), "\u22125");
  assert.equal(format.short(-0), "0");
  for (const nothing of [null, undefined, NaN, Infinity]) assert.equal(format.full(nothing), NOTHING);
});

test("durations take the unit that fits", () => {
  assert.equal(format.full(842, { unit: "ms" }), "842\u00a0ms");
  assert.equal(format.full(1240, { style: "duration" }), "1.24\u00a0s");
  assert.equal(format.full(90_000, { unit: "ms" }), "1.5\u00a0min");
  assert.equal(format.full(2, { unit: "s" }), "2\u00a0s");
});

test("money keeps two decimals below 1,000", () => {
  assert.equal(format.full(12.5, money), "$12.50");
  assert.equal(format.full(4210.4, money), "$4,210");
  assert.equal(format.short(18_312.4, money), "$18.3K");
  assert.equal(format.short(0, money), "$0");
});

test("a language without a short form writes the number out", () => {
  const german = createFormat("de");
  assert.equal(german.short(18_312.4, money), "18.312\u00a0$");
  assert.equal(german.short(1_412_345), "1,4\u00a0Mio.");
});

test("percent takes fractions", () => {
  assert.equal(format.full(0.004, { style: "percent" }), "0.4%");
  assert.equal(format.share(0.002), "<1%");
  assert.equal(format.share(0.48), "48%");
});

test("an axis has one unit", () => {
  const labels = (/** @type {number} */ max, spec, f = format) => {
    const axis = f.axis(max, spec);
    return ticks(0, max / axis.divisor).map(axis.label);
  };
  assert.deepEqual(labels(97_000), ["0", "25K", "50K", "75K", "100K"]);
  assert.deepEqual(labels(1_000_000), ["0", "0.25M", "0.5M", "0.75M", "1M"]);
  assert.deepEqual(labels(18_000, money), ["$0", "$5K", "$10K", "$15K", "$20K"]);
  assert.deepEqual(labels(12_400, { unit: "ms" }), ["0", "5\u00a0s", "10\u00a0s", "15\u00a0s"]);
  assert.deepEqual(labels(97_000, undefined, createFormat("ja")), ["0", "2.5万", "5万", "7.5万", "10万"]);
});

test("changes show one decimal below ten percent and stop at 999", () => {
  assert.equal(format.change(133, 100), "33%");
  assert.equal(format.change(109.4, 100), "9.4%");
  assert.equal(format.change(90, 100, true), "\u221210%");
  assert.equal(format.change(2000, 100), ">999%");
  assert.equal(format.change(5, 0), "New");
  assert.equal(format.change(0, 0), "0%");
  assert.equal(format.change(null, 5), NOTHING);
});

test("a change too small to show has no direction", () => {
  assert.equal(change(100_001, 100_000)?.direction, "flat");
  assert.equal(change(-5, -10)?.direction, "up");
});

test("buckets are named by granularity", () => {
  const iso = "2026-11-13T14:00:00.000Z";
  assert.equal(format.bucketShort(iso, "day"), "Nov 13");
  assert.equal(format.bucketShort(iso, "hour", false).replace("\u202f", " "), "2 PM");
  assert.equal(format.bucketLong("2026-11-13T00:00:00.000Z", "day"), "Friday, Nov 13");
  assert.equal(format.bucketLong("2026-11-01T00:00:00.000Z", "month"), "November 2026");
});

test("a month ends where the next begins", () => {
  assert.equal(bucketEnd("2026-12-01T00:00:00.000Z", "month"), Date.UTC(2027, 0, 1));
  assert.equal(bucketEnd("2026-11-13T00:00:00.000Z", "day"), Date.UTC(2026, 10, 14));
});

test("a locale that Intl refuses becomes English", () => {
  assert.equal(pickLocale("de-DE"), "de-DE");
  assert.equal(pickLocale("not a locale"), "en");
  assert.equal(pickLocale(null), "en");
});

test("names from the data become labels", () => {
  assert.equal(humanize("error_code"), "Error code");
  assert.equal(humanize("plan"), "Plan");
});

test("what is no format is plain, and what is tiny keeps its digits", () => {
  const format = createFormat("en");
  for (const spec of [
    { style: "currency", currency: "dollars" },
    { decimals: 200 },
    { decimals: -1 },
    { style: "percent", decimals: 1e9 },
    { style: "currency", currency: "" },
  ]) {
    assert.match(format.short(1234.5, /** @type {any} */ (spec)), /1,2|123|¤|\$/, JSON.stringify(spec));
  }
  assert.equal(format.full(0.0000012), "0.0000012");
  assert.equal(format.short(-0.4, { decimals: 0 }), "0");
  assert.equal(format.full(12.5, { style: "currency", currency: "JPY" }), "¥13");
  const { divisor, label } = format.axis(0.0019, { style: "percent" });
  assert.deepEqual(
    [0, 0.0005, 0.001, 0.0015].map((t) => label(t / divisor)),
    ["0%", "0.05%", "0.1%", "0.15%"],
  );
});

test("months end where they do in their own time zone", () => {
  // January in Berlin, and February after it.
  assert.equal(new Date(bucketEnd("2025-12-31T23:00:00.000Z", "month")).toISOString(), "2026-01-31T23:00:00.000Z");
  assert.equal(new Date(bucketEnd("2026-02-01T00:00:00.000Z", "month")).toISOString(), "2026-03-01T00:00:00.000Z");
  const berlin = createFormat("en", "Europe/Berlin");
  assert.equal(berlin.bucketShort("2025-12-31T23:00:00.000Z", "month"), "Jan 2026");
  assert.equal(berlin.bucketShort("2026-01-31T23:00:00.000Z", "month"), "Feb");
});
