// @ts-check
// Cases that the pages and the server's own drawing must answer alike.
//
// `golden.json` beside this file holds the cases with the answers of the modules here; the server's
// tests read the same file. After a change of a rule, write it anew: `node server/web/test/golden.js --update`.

import { writeFileSync } from "node:fs";
import { bucketEnd, change, createFormat, humanize } from "../shared/format.js";
import { contrast, readableOn } from "../shared/color.js";
import { apart, rotate } from "../shared/palette.js";
import { domain, labelStride, spread, ticks } from "../shared/scale.js";
import { colorOf, ranked, runs, stack, timed } from "../charts/series.js";
import { thresholdsOf } from "../charts/threshold.js";
import { speak, words } from "../shared/words.js";

const f = createFormat("en");

const SPECS = [
  {},
  { style: "number" },
  { unit: "req" },
  { decimals: 2 },
  { decimals: 0 },
  { style: "percent" },
  { style: "percent", decimals: 2 },
  { style: "currency" },
  { style: "currency", currency: "EUR" },
  { style: "currency", currency: "JPY" },
  { style: "currency", currency: "CHF" },
  { style: "currency", decimals: 3 },
  { style: "duration" },
  { unit: "s" },
  { unit: "ms" },
  { style: "bytes" },
  { style: "bytes", decimals: 1 },
];
const VALUES = [
  0,
  -0,
  1,
  -1,
  0.5,
  0.125,
  0.135,
  2.5,
  3.14159,
  9.995,
  10.05,
  12.345,
  99.95,
  100.4,
  123.456,
  999.5,
  999.999,
  1000,
  1234.5,
  9999,
  9999.99,
  10000,
  12345,
  41250,
  99950,
  99999,
  999949,
  999950,
  999999,
  1e6,
  1234567,
  12345678.9,
  999950000,
  1.5e9,
  2.45e12,
  9.99e14,
  1e15,
  1.234e18,
  5e21,
  1e-4,
  0.00012345,
  0.0009,
  0.001,
  0.0123,
  0.0999,
  0.1,
  0.333333,
  0.9999,
  1e-9,
  -0.004,
  -0.0004,
  -12.5,
  -1234.56,
  -41250,
  -1.5e9,
  null,
];
const MAXIMA = [
  0, 0.004, 0.5, 1, 7, 42, 999, 1000, 9999, 10000, 12345, 99999, 999499, 999500, 1e6, 2.5e6, 1e9, 7.7e12, 1e15, 3e18,
];
const TICKS = [0, 0.25, 0.5, 1, 2.5, 25, 50, 250, 1000, -5, -0.5];
const INSTANTS = [
  "2026-01-01T00:00:00.000Z",
  "2026-11-13T00:00:00.000Z",
  "2026-11-20T14:00:00.000Z",
  "2026-12-31T23:00:00.000Z",
  "2024-02-29T00:00:00.000Z",
  "2026-03-29T12:00:00.000Z",
];
const ZONES = ["UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata"];
const GRAINS = /** @type {("hour" | "day" | "week" | "month")[]} */ (["hour", "day", "week", "month"]);

/** @param {any[]} list @param {(one: any) => any} answer */
const each = (list, answer) => list.map((one) => ({ in: one, out: answer(one) }));

const at = (/** @type {number} */ day) => new Date(Date.UTC(2026, 10, day)).toISOString();
const rows = (/** @type {(number | null)[][]} */ values, /** @type {(string | null)[]} */ groups) =>
  values.flatMap((of, day) => of.map((value, g) => ({ bucket: at(10 + day), group: groups[g], value })));
const TIMED = [
  {
    answer: {
      data: [
        { bucket: at(10), value: 5, previous: 3 },
        { bucket: at(11), value: null, previous: 4 },
        { bucket: at(12), value: 7, previous: null },
      ],
      meta: { granularity: "day", from: at(10), to: "2026-11-12T10:00:00.000Z" },
    },
    title: "Calls",
    limit: null,
    metric: "avg",
  },
  {
    answer: {
      data: rows(
        [
          [1, 2, 3],
          [4, 5, 6],
        ],
        ["a", "b", null],
      ),
      meta: { granularity: "day", from: "2026-11-10T08:00:00.000Z", to: at(12) },
    },
    title: "T",
    limit: 2,
    metric: "count",
  },
  {
    answer: {
      data: rows(
        [
          [1, 2, 3],
          [4, 5, 6],
        ],
        ["a", "b", ""],
      ),
      meta: { granularity: "week", from: at(10), to: at(30) },
    },
    title: "T",
    limit: 2,
    metric: "p95",
  },
  {
    answer: {
      data: rows([[6, 5, 4, 3, 2, 1, 0]], ["a", "b", "c", "d", "e", "f", "g"]),
      meta: { granularity: "month", from: at(10), to: at(30) },
    },
    title: "T",
    limit: null,
    metric: "sum",
  },
  { answer: { data: [], meta: {} }, title: "T", limit: null, metric: "count" },
];
const RANKED = [
  {
    answer: {
      data: [
        { group: "b", value: 2 },
        { group: "a", value: 6 },
        { group: null, value: 1 },
        { group: "", value: 1 },
      ],
      meta: {},
    },
    limit: 2,
    metric: "count",
  },
  {
    answer: {
      data: [
        { group: "a", value: 6 },
        { group: "b", value: 2 },
      ],
      meta: { groups_total: 9, groups_returned: 2, total: 20 },
    },
    limit: 1,
    metric: "sum",
  },
  {
    answer: {
      data: [
        { group: "a", value: 6 },
        { group: "b", value: 2 },
      ],
      meta: { groups_total: 9, groups_returned: 2 },
    },
    limit: 5,
    metric: "count",
  },
  {
    answer: {
      data: [
        { group: "a", value: 1 },
        { group: "b", value: 2.5 },
        { group: "c", value: null },
      ],
      meta: {},
    },
    limit: 2,
    metric: "avg",
    order: "none",
  },
];

/** Colours far from each other and close, grey ones and the ends. @type {import("../shared/color.js").Rgb[]} */
const COLORS = [
  [0, 0, 0],
  [255, 255, 255],
  [23, 24, 28],
  [127, 127, 127],
  [128, 128, 128],
  [255, 0, 0],
  [0, 255, 0],
  [0, 0, 255],
  [15, 118, 110],
  [22, 163, 74],
  [14, 165, 233],
  [225, 29, 72],
  [49, 94, 217],
  [3, 164, 144],
  [16, 24, 32],
  [250, 204, 21],
  [88, 28, 135],
  [1, 2, 3],
];
const PAIRS = COLORS.flatMap((a) => COLORS.map((b) => /** @type {const} */ ([a, b])));
const rounded = (/** @type {number} */ value) => Math.round(value * 1e6) / 1e6;

const THRESHOLDS = [
  {
    thresholds: [
      { value: 500, label: "Budget", tone: "bad" },
      { value: "7" },
      { label: "none" },
      { value: -1.5, tone: "odd" },
      { value: 2, label: 3, tone: "good" },
      { value: 3 },
    ],
  },
  { thresholds: { value: 1 } },
  { thresholds: [null, 7, "x"] },
  {},
];

const CHANGES = [
  [5, 4],
  [4, 5],
  [0, 0],
  [5, 0],
  [-5, 0],
  [1000, 1],
  [100, 99.99],
  [109.94, 100],
  [109.96, 100],
  [-4, -8],
  [null, 1],
  [1, null],
];
const SHARES = [0, 0.001, 0.0049, 0.005, 0.014, 0.015, 0.5, 0.995, 1, 1.5];
const PERIODS = ["1h", "24h", "1d", "7d", "30d", "90d", "1w", "4w", "1m", "12m"];
/** Locales of reports. Each month is among the buckets, and each weekday. */
const LOCALES = ["de", "fr", "ja"];
const LOCAL_SPECS = SPECS.filter((spec) => Object.keys(spec).length < 2);
const LOCAL_VALUES = [...VALUES, 99994999, 99995000, 99999999, 999999.7, 1234567890123, 999499999, 999500000];
const LOCAL_INSTANTS = [...Array(12).keys()].map((month) =>
  new Date(Date.UTC(2026, month, 1 + month, month)).toISOString(),
);

/** What a report in another language says. @param {string} locale */
async function inLocale(locale) {
  await speak(locale, /** @type {any} */ ({}));
  const f = createFormat(locale);
  return {
    locale,
    value: LOCAL_SPECS.map((spec) => ({
      spec,
      values: LOCAL_VALUES.map((v) => [v, f.short(v, spec), f.full(v, spec)]),
    })),
    axis: LOCAL_SPECS.map((spec) => ({
      spec,
      maxima: [...MAXIMA, 99995000].map((max) => {
        const { divisor, label } = f.axis(max, spec);
        return [max, divisor, TICKS.map(label)];
      }),
    })),
    share: each(SHARES, (v) => f.share(v)),
    change: each(CHANGES, ([a, b]) => f.change(a, b)),
    period: each(PERIODS, (name) => f.period(name)),
    bucket: LOCAL_INSTANTS.flatMap((iso) =>
      GRAINS.map((grain) => ({
        iso,
        grain,
        dated: f.bucketShort(iso, grain),
        short: f.bucketShort(iso, grain, false),
        long: f.bucketLong(iso, grain),
      })),
    ),
    currencies: currencies(locale),
    words: said(),
  };
}

/** Currencies with a symbol in one of the languages, with other places than two, and without either. */
const CURRENCIES = (
  "USD EUR GBP JPY INR CNY KRW BRL CAD AUD MXN NZD HKD TWD ILS VND PHP THB XAF XOF XCD XPF ARS BMD BND BZD CLP COP FJD FKP GIP " +
  "LBP NAD SBD SGD SRD TTD UYU WST CHF SEK PLN TRY ZAR ISK HUF IDR PYG UGX YER BHD JOD KWD LYD OMR TND"
).split(" ");
/** A small amount in each of them. @param {string} locale */
const currencies = (locale) =>
  CURRENCIES.map((currency) => [currency, createFormat(locale).full(12.3456, { style: "currency", currency })]);

/** What charts of both say, in the language that is spoken. */
const said = () => ({
  nothing: words.nothing,
  no_events: words.noEvents,
  chart_failed: words.chartFailed,
  number_failed: words.numberFailed,
  other: words.other,
  none: words.none,
  fresh: words.fresh,
  time: words.time,
  group: words.group,
  value: words.value,
  previous: words.previous,
  share: words.share,
  steps: words.steps,
  cut_axis: words.cutAxis,
  top_of: words.topOf("50", "120"),
  more: words.more("3"),
  versus: words.versus("7 #"),
  versus_dates: words.versusDates,
});

/** All cases with their answers. English first: a language is spoken from then on. */
export const golden = {
  ...english(),
  /** Version of the language data that the cases below are from. */
  cldr: process.versions.cldr,
  locales: [
    { locale: "en", currencies: currencies("en"), words: said() },
    ...(await LOCALES.reduce(
      async (before, locale) => [...(await before), await inLocale(locale)],
      /** @type {Promise<any[]>} */ (Promise.resolve([])),
    )),
  ],
};

/** The cases in English. */
function english() {
  return {
    value: SPECS.map((spec) => ({ spec, values: VALUES.map((v) => [v, f.short(v, spec), f.full(v, spec)]) })),
    axis: SPECS.map((spec) => ({
      spec,
      maxima: MAXIMA.map((max) => {
        const { divisor, label } = f.axis(max, spec);
        return [max, divisor, TICKS.map(label)];
      }),
    })),
    ticks_of: TICKS,
    contrast: each(PAIRS, ([a, b]) => [rounded(contrast(a, b)), readableOn(a, b, 3), readableOn(a, b, 4.5)]),
    apart: each(PAIRS, ([a, b]) => rounded(apart(a, b))),
    rotate: each(COLORS, (color) => rotate(color, COLORS)),
    share: each(SHARES, (v) => f.share(v)),
    change: each(CHANGES, ([a, b]) => [change(a, b)?.direction ?? null, f.change(a, b)]),
    period: each(PERIODS, (name) => f.period(name)),
    humanize: each(["error_code", "api-call", "already fine", "__x--y_", ""], humanize),
    bucket: ZONES.flatMap((zone) =>
      INSTANTS.flatMap((iso) =>
        GRAINS.map((grain) => {
          const z = createFormat("en", zone);
          return {
            zone,
            iso,
            grain,
            dated: z.bucketShort(iso, grain),
            short: z.bucketShort(iso, grain, false),
            long: z.bucketLong(iso, grain),
            starts: z.startsDay(iso),
            end: bucketEnd(iso, grain),
          };
        }),
      ),
    ),
    ticks: each(
      [
        [0, 10],
        [0, 0],
        [0, 1],
        [0, 3],
        [0, 97000],
        [-5, 5],
        [0.2, 0.21],
        [1e300, 1e308],
        [0, 1e-310],
        [5, 5],
        [-3, -1],
        [1e9, 1e9 + 1e-3],
      ].flatMap(([min, max]) => [
        [min, max, false],
        [min, max, true],
      ]),
      ([min, max, whole]) => ticks(min, max, { whole }),
    ),
    domain: each(
      [
        [[1, 5, null], false],
        [[1, 5], true],
        [[-2, null], false],
        [[], false],
        [[], true],
        [[null], true],
        [[-1e305, 1e305], false],
      ],
      ([values, cut]) => domain(values, cut),
    ),
    stride: each(
      [
        [30, 20, 40],
        [30, 100, 40],
        [1, 0, 40],
        [0, 10, 40],
        [100, 1, 60],
        [365, 3, 45],
      ],
      ([count, step, label]) => labelStride(count, step, label),
    ),
    spread: each(
      [
        [[10, 12, 50], 15, 0, 60],
        [[5, 5, 5], 10, 0, 30],
        [[100], 15, 0, 60],
        [[], 15, 0, 60],
      ],
      ([wanted, gap, min, max]) => spread(wanted, gap, min, max),
    ),
    runs: each([[1, 2, null, 3], [null], [], [null, 1, null, 2, 2]], runs),
    thresholds: each(THRESHOLDS, (viz) => thresholdsOf(viz)),
    first_color: each([1, 2, 8, 0, 9, 1.5, "2", null], (color) => [0, 7].map((at) => colorOf(at, color))),
    timed: each(TIMED, ({ answer, ...options }) => {
      const model = timed(answer, options);
      return {
        ...model,
        series: model.series.map(({ label, values, total }) => ({ label, values, total })),
        stacked: stack(model.series, model.buckets.length),
        percent: stack(model.series, model.buckets.length, true),
      };
    }),
    ranked: each(RANKED, ({ answer, ...options }) => {
      const { items, total } = ranked(answer, options);
      return { total, items: items.map(({ label, value, share, other }) => ({ label, value, share, other: !!other })) };
    }),
  };
}

/** The file's text: JSON has no undefined, and a line a list keeps differences readable. */
export const text = () => JSON.stringify(golden, null, 1).replace(/\n {4,}/g, " ") + "\n";

// The test runner runs every file here, and must not write what it checks.
if (process.argv.includes("--update")) writeFileSync(new URL("golden.json", import.meta.url), text());
