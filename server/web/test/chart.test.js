// Ticks, series, stacks and the sentences made of them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { tableOf, compareCells } from "../charts/table.js";
import { course, describeRanked, describeTimed, isEmpty, ranked, runs, stack, timed } from "../charts/series.js";
import { createFormat } from "../shared/format.js";
import { domain, labelStride, spread, ticks, linear } from "../shared/scale.js";

const format = createFormat("en-US");
const DAYS = ["2026-11-18T00:00:00.000Z", "2026-11-19T00:00:00.000Z", "2026-11-20T00:00:00.000Z"];
const meta = { granularity: "day", from: "2026-11-17T12:00:00.000Z", to: "2026-11-20T12:00:00.000Z" };

/** @param {Record<string, (number | null)[]>} groups */
const grouped = (groups) => ({
  meta,
  data: DAYS.flatMap((bucket, i) =>
    Object.entries(groups).map(([group, values]) => ({ bucket, group, value: values[i] })),
  ),
});

test("ticks step by 1, 2, 2.5 or 5 and cover the domain", () => {
  assert.deepEqual(ticks(0, 97), [0, 25, 50, 75, 100]);
  assert.deepEqual(ticks(0, 62), [0, 20, 40, 60, 80]);
  assert.deepEqual(ticks(0, 0.3), [0, 0.1, 0.2, 0.3]);
  assert.deepEqual(ticks(-30, 80), [-50, 0, 50, 100]);
});

test("a sparkline of sums begins behind a bucket that the window cuts", () => {
  const spark = [3, 40, null].map((value, i) => ({ bucket: DAYS[i], value }));
  const of = (/** @type {string} */ from, sums = true, count = 3) =>
    course({ data: [], meta: { ...meta, from }, spark: spark.slice(0, count) }, sums);
  assert.deepEqual(of("2026-11-18T12:00:00.000Z"), [40, null]);
  assert.deepEqual(of("2026-11-18T00:00:00.000Z"), [3, 40, null]);
  assert.deepEqual(of("2026-11-18T12:00:00.000Z", false), [3, 40, null]);
  assert.deepEqual(of("2026-11-18T12:00:00.000Z", true, 2), [3, 40], "nothing would be left of two");
});

test("ticks of counts are whole", () => {
  assert.deepEqual(ticks(0, 3, { whole: true }), [0, 1, 2, 3]);
  assert.deepEqual(ticks(0, 10, { whole: true }), [0, 5, 10]);
  assert.deepEqual(ticks(0, 0, { whole: true }), [0, 1]);
});

test("there are at most five or six grid lines at any size", () => {
  for (let max = 0.001; max < 1e12; max *= 1.37) {
    const at = ticks(0, max);
    assert.ok(at.length >= 3 && at.length <= 6, `${max}: ${at}`);
    assert.ok(at[at.length - 1] >= max * (1 - 1e-9), `${max} is covered by ${at}`);
  }
});

test("zero belongs to the domain unless the axis is cut", () => {
  assert.deepEqual(domain([5, 9, null]), [0, 9]);
  assert.deepEqual(domain([5, 9, null], true), [5, 9]);
  assert.deepEqual(domain([null], true), [0, 0]);
});

test("labels keep a distance", () => {
  assert.equal(labelStride(30, 20, 40), 3);
  assert.equal(labelStride(5, 200, 40), 1);
  assert.deepEqual(spread([10, 12, 90], 14, 0, 100), [10, 24, 90]);
  assert.deepEqual(spread([95, 96], 14, 0, 100), [86, 100]);
});

test("groups are ordered by total and the rest of a count becomes Other", () => {
  const model = timed(grouped({ a: [1, 1, 1], b: [5, 5, 5], c: [2, 0, 0] }), { title: "t", limit: 1, metric: "count" });
  assert.deepEqual(
    model.series.map((s) => s.label),
    ["b", "Other"],
  );
  assert.deepEqual(model.series[1].values, [3, 1, 1]);
});

test("averages have no Other", () => {
  const model = timed(grouped({ a: [1, 1, 1], b: [5, null, 5] }), { title: "t", limit: 1, metric: "avg" });
  assert.deepEqual(
    model.series.map((s) => s.label),
    ["b"],
  );
  assert.deepEqual(model.series[0].values, [5, null, 5]);
});

test("the last bucket is partial while it is not over", () => {
  const one = { meta, data: DAYS.map((bucket) => ({ bucket, value: 1, previous: 2 })) };
  const model = timed(one, { title: "Calls", metric: "count" });
  assert.equal(model.partialLast, true);
  assert.equal(model.series[0].label, "Calls");
  assert.deepEqual(model.previous, [2, 2, 2]);
  const over = timed({ ...one, meta: { ...meta, to: "2026-11-21T00:00:00.000Z" } }, { title: "Calls" });
  assert.equal(over.partialLast, false);
});

test("stacks rise from zero, negative parts fall, percent fills", () => {
  const series = [
    [1, -2],
    [3, 4],
  ].map((values, i) => ({ label: String(i), color: "", values, total: 0 }));
  assert.deepEqual(stack(series, 2), [
    [
      { from: 0, to: 1 },
      { from: 0, to: -2 },
    ],
    [
      { from: 1, to: 4 },
      { from: 0, to: 4 },
    ],
  ]);
  assert.equal(stack(series, 2, true)[1][0].to, 1);
});

test("a missing value breaks a line", () => {
  assert.deepEqual(runs([1, null, 2, 3]), [[0], [2, 3]]);
});

test("zeros are nothing for counts and something for averages", () => {
  const zeros = { meta, data: [{ value: 0 }] };
  assert.equal(isEmpty(zeros, "count"), true);
  assert.equal(isEmpty(zeros, "avg"), false);
  assert.equal(isEmpty({ meta, data: [{ value: null }] }, "avg"), true);
});

test("ranked groups carry shares only where values add up", () => {
  const answer = {
    meta: {},
    data: [
      { group: "a", value: 1 },
      { group: null, value: 3 },
    ],
  };
  const counts = ranked(answer, { limit: 10, metric: "count" });
  assert.deepEqual(
    counts.items.map((i) => [i.label, i.share]),
    [
      ["(none)", 0.75],
      ["a", 0.25],
    ],
  );
  assert.equal(ranked(answer, { limit: 10, metric: "p95" }).items[0].share, null);
});

test("shares are of all groups or not shown", () => {
  const data = [
    { group: "a", value: 6 },
    { group: "b", value: 2 },
  ];
  const cut = { groups_total: 9, groups_returned: 2 };
  const unknown = ranked({ meta: cut, data }, { limit: 9, metric: "count" });
  assert.deepEqual([unknown.total, unknown.items[0].share], [null, null]);
  const known = ranked({ meta: { ...cut, total: 12 }, data }, { limit: 1, metric: "count" });
  assert.deepEqual(
    known.items.map((i) => [i.label, i.value, i.share]),
    [
      ["a", 6, 0.5],
      ["Other", 6, 0.5],
    ],
  );
});

test("sentences name range, low, high and latest", () => {
  const model = timed(
    { meta, data: DAYS.map((bucket, i) => ({ bucket, value: [3, 9, 4][i] })) },
    { title: "Calls", metric: "count" },
  );
  assert.equal(
    describeTimed("Line chart", model, format, null),
    "Line chart, Wednesday, Nov 18 to Friday, Nov 20. Lowest 3 on Wednesday, Nov 18, highest 9 on Thursday, Nov 19, latest 4.",
  );
  const { items } = ranked(
    {
      meta: {},
      data: [
        { group: "a", value: 1 },
        { group: "b", value: 3 },
      ],
    },
    { limit: 9, metric: "count" },
  );
  assert.equal(describeRanked("Donut", items, format, null, "count"), "Donut, 2 groups. Largest: b with 3, 75%.");
});

test("a table takes its columns from the measures", () => {
  const answer = {
    data: [{ group: "a", values: [1, 0.5] }],
    meta: {
      group_by: "workspace",
      measures: [{ label: "Calls" }, { metric: "avg", numeric_prop: "error_rate", format: { style: "percent" } }],
    },
  };
  const { columns, rows } = tableOf({ query: {}, viz: {} }, answer, format);
  assert.deepEqual(
    columns.map((c) => c.label),
    ["Workspace", "Calls", "Error rate"],
  );
  assert.deepEqual(rows, [["a", 1, 0.5]]);
  assert.equal(columns[2].text(0.5), "50%");
});

test("nothing sorts last in both directions", () => {
  const sorted = (/** @type {number} */ sign) => [2, null, 1].sort((a, b) => compareCells(a, b, sign));
  assert.deepEqual(sorted(1), [1, 2, null]);
  assert.deepEqual(sorted(-1), [2, 1, null]);
});

test("ticks are few and numbers, whatever the values", () => {
  const ends = [
    [0.15, 0.15000000000000002],
    [19.99, 19.99 + 4e-15],
    [1e16, 1e16 + 4],
    [1.7e308, 1.7e308],
    [-1.7e308, 1.7e308],
    [0, 5e-324],
    [0, 1.7e308],
    [-1e308, 1e308],
    [0, 0],
    [3, 3],
    [-5, -5],
    [0, Infinity],
    [NaN, NaN],
  ];
  for (const [min, max] of ends) {
    for (const whole of [false, true]) {
      const at = ticks(min, max, { whole });
      assert.ok(at.length >= 2 && at.length <= 8, `${min} ${max}: ${at}`);
      if (Number.isNaN(min)) continue;
      assert.ok(
        at.every((t, i) => Number.isFinite(t) && (i === 0 || t > at[i - 1])),
        `${min} ${max}: ${at}`,
      );
      assert.ok(Number.isFinite(linear(at[0], at[at.length - 1], 0, 100)(Math.min(max, 1e290))), `${min} ${max}`);
    }
  }
});
