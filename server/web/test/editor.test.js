// The rules of the console that need no browser: places on the grid, queries that a kind can draw, what differs, schedules in words.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const web = join(dirname(fileURLToPath(import.meta.url)), "..");

/** A module of the console, made for this process. @param {string} file */
function load(file) {
  const { outputFiles } = buildSync({
    entryPoints: [join(web, "console", file)],
    bundle: true,
    format: "esm",
    write: false,
    logLevel: "error",
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

const { settled, placed, added, removed } = await load("pages/editor/layout.ts");
const { fitted, newWidget, KINDS } = await load("pages/editor/kinds.ts");
const { changesOf } = await load("pages/editor/changes.ts");
const { scheduleInWords, cronOf } = await load("pages/schedule.ts");

/** @param {string} id @param {number} x @param {number} y @param {number} w @param {number} h */
const at = (id, x, y, w, h, kind = "number") => ({ id, kind, title: id, query: {}, viz: {}, layout: { x, y, w, h } });
/** @param {any[]} widgets */
const cells = (widgets) => Object.fromEntries(widgets.map(({ id, layout: { x, y, w, h } }) => [id, [x, y, w, h]]));

/** @param {any[]} widgets */
function isSound(widgets) {
  for (const { id, layout: a } of widgets) {
    assert.ok(a.x >= 0 && a.y >= 0 && a.x + a.w <= 12, `${id} is inside`);
    for (const { id: other, layout: b } of widgets) {
      if (id !== other)
        assert.ok(
          a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y,
          `${id} and ${other} overlap`,
        );
    }
  }
}

test("a widget that is moved gets its cells, the others make room, and no row is empty", () => {
  const row = [at("a", 0, 0, 3, 3), at("b", 3, 0, 3, 3), at("c", 0, 3, 12, 4)];
  assert.deepEqual(cells(placed(row, "a", { x: 3, y: 0, w: 3, h: 3 })), {
    a: [3, 0, 3, 3],
    b: [3, 3, 3, 3],
    c: [0, 6, 12, 4],
  });
  assert.deepEqual(cells(placed(row, "c", { x: 0, y: 0, w: 12, h: 4 })), {
    c: [0, 0, 12, 4],
    a: [0, 4, 3, 3],
    b: [3, 4, 3, 3],
  });
  assert.deepEqual(cells(removed(row, "c")), { a: [0, 0, 3, 3], b: [3, 0, 3, 3] });
  assert.deepEqual(cells(added(row, at("d", 5, 99, 3, 3))).d, [5, 7, 3, 3]);
  assert.deepEqual(cells(settled([at("far", 0, 40, 3, 3)])), { far: [0, 0, 3, 3] });
});

test("what is too small, too large or outside is brought in", () => {
  const one = [at("a", 0, 0, 3, 3, "line")];
  assert.deepEqual(cells(placed(one, "a", { x: 11, y: -5, w: 1, h: 1 })), { a: [8, 0, 4, 4] });
  assert.deepEqual(cells(placed(one, "a", { x: -3, y: 0, w: 99, h: 99 })), { a: [0, 0, 12, 40] });
});

test("a thousand moves by chance leave no overlap", () => {
  let seed = 1;
  const below = (/** @type {number} */ n) => (seed = (seed * 48_271) % 2_147_483_647) % n;
  let widgets = [];
  for (let n = 0; n < 12; n++) widgets = added(widgets, at(`w${n}`, below(12), 0, 2 + below(6), 2 + below(5)));
  for (let n = 0; n < 1000; n++) {
    widgets = placed(widgets, `w${below(12)}`, { x: below(14) - 1, y: below(30), w: below(14), h: below(9) });
    isSound(widgets);
  }
});

const event = { event_name: "call", string_props: [{ name: "model" }], numeric_props: [{ name: "latency" }] };

test("changing the kind makes a query that can be drawn", () => {
  const line = {
    ...at("a", 0, 0, 6, 6, "line"),
    query: {
      event_name: "call",
      metric: "p95",
      numeric_prop: "latency",
      granularity: "day",
      period: "7d",
      compare: "previous",
    },
  };
  assert.deepEqual(fitted({ ...line, kind: "donut" }, event).query, {
    event_name: "call",
    metric: "count",
    period: "7d",
    group_by: "model",
  });
  assert.deepEqual(fitted({ ...line, kind: "number" }, event).query, {
    event_name: "call",
    metric: "p95",
    numeric_prop: "latency",
    period: "7d",
    compare: "previous",
  });
  assert.deepEqual(fitted({ ...line, kind: "stacked_bar" }, event).query, {
    event_name: "call",
    metric: "count",
    granularity: "day",
    period: "7d",
    group_by: "model",
  });
  assert.deepEqual(fitted({ ...line, kind: "funnel" }, event).query, {
    event_name: "call",
    metric: "count_unique",
    steps: [{ event_name: "call" }, { event_name: "call" }],
    period: "7d",
  });
  assert.deepEqual(fitted({ ...line, kind: "text" }, event).query, {});
  for (const kind of KINDS) assert.equal(newWidget(kind, event, "New").kind, kind);
});

test("what differs is named, whatever the order of keys", () => {
  const before = {
    name: "Usage",
    settings: { theme: {}, default_period: "30d" },
    widgets: [at("a", 0, 0, 3, 3), at("b", 3, 0, 3, 3)],
  };
  assert.deepEqual(changesOf(before, { ...before, settings: { default_period: "30d", theme: {} } }), []);
  const after = {
    name: "Use",
    settings: before.settings,
    widgets: [{ ...at("a", 1, 0, 3, 3), title: "A" }, at("c", 0, 3, 3, 3)],
  };
  assert.deepEqual(changesOf(before, after), [
    { kind: "renamed", title: "Use", parts: [] },
    { kind: "changed", title: "A", parts: ["title", "layout"] },
    { kind: "added", title: "c", parts: [] },
    { kind: "removed", title: "b", parts: [] },
  ]);
});

test("schedules in words, and words as schedules", () => {
  const said = (/** @type {string} */ cron) => scheduleInWords({ cron, timezone: "Europe/Berlin" });
  assert.equal(said(cronOf("week", 8, 5, 1, 1)), "Every Monday at 08:05, Europe/Berlin");
  assert.equal(said(cronOf("day", 23, 0, 1, 1)), "Every day at 23:00, Europe/Berlin");
  assert.equal(said(cronOf("weekday", 7, 30, 1, 1)), "Every working day at 07:30, Europe/Berlin");
  assert.equal(said(cronOf("month", 6, 0, 1, 15)), "On day 15 of every month at 06:00, Europe/Berlin");
  assert.equal(said(cronOf("hour", 6, 15, 1, 1)), "Every hour at minute 15");
  assert.equal(said("*/5 8 * * 1,3"), "*/5 8 * * 1,3, Europe/Berlin");
  assert.equal(scheduleInWords("weekly"), "Every Monday at 08:00, UTC");
});
