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
const { sqlOf } = await load("pages/explore_sql.ts");
const { widgetQueryOf } = await load("pages/statements/widget_query.ts");
const { METRICS } = await load("pages/query_names.ts");
const { templatesOf } = await load("pages/statements/templates.ts");

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

const question = {
  event: "api_request",
  metric: "count",
  property: "",
  group: "",
  granularity: "day",
  period: "30d",
  tenant: "",
  zone: "",
  filters: {},
};
/** A question as parameters of the explorer. @param {any} part */
function parametersOf(part) {
  const { filters, zone: _, ...plain } = { ...question, ...part };
  const named = Object.entries(filters).map(([name, value]) => [`f_${name}`, value]);
  const set = Object.entries(plain).filter(
    ([name, value]) => value !== "" || ["property", "granularity"].includes(name),
  );
  return Object.fromEntries([...set, ...named]);
}

test("a statement of the explorer is the same question again", () => {
  for (const metric of METRICS)
    for (const part of [
      {},
      { group: "plan" },
      { granularity: "" },
      { granularity: "week", group: "it's", period: "1h" },
      { period: "24h", filters: { plan: "a, b (c)", "x=y": "AND '' --" } },
    ]) {
      const asked = { ...part, metric, property: /count/.test(metric) ? "" : "latency ms" };
      const { parameters } = widgetQueryOf(sqlOf({ ...question, ...asked }));
      assert.deepEqual(parameters, parametersOf(asked), sqlOf({ ...question, ...asked }));
    }
});

test("a statement becomes a widget in any layout", () => {
  const { parameters } = widgetQueryOf(`-- by hand
    Select Count(*), string_props['plan'] As "Plan" /* shown */ from EVENTS
    where timestamp > now() - INTERVAL '90 days'
      and string_props['region'] = 'eu' and event_name = 'login'
    group by "Plan" order by 1 desc;`);
  const byHand = { event: "login", granularity: "", group: "plan", period: "90d", filters: { region: "eu" } };
  assert.deepEqual(parameters, parametersOf(byHand));
  const good = widgetQueryOf(
    `select count(*) as n, string_props['plan'] as "Plan" from events where event_name='e' and timestamp>=now()-interval '1 week' group by "Plan"`,
  );
  assert.deepEqual(good.parameters, parametersOf({ event: "e", granularity: "", group: "plan", period: "7d" }));
});

test("what no widget can ask has its reason", () => {
  const from = "FROM events WHERE event_name = 'e' AND timestamp >= now() - interval '7 days'";
  for (const [sql, reason] of [
    ["", /reads the table events alone/],
    ["DELETE FROM events", /reads the table events alone/],
    ["SELECT count(*) FROM events", /names no event/],
    ["SELECT count(*) FROM events WHERE event_name = 'e'", /period/],
    ["SELECT count(*) FROM events WHERE event_name = 'e' AND timestamp >= now() - interval '3 days'", /period/],
    [`SELECT count(*) ${from} OR tenant_id = 'x'`, /cannot have the condition .*or tenant_id/],
    [`SELECT count(*) ${from} AND (tenant_id = 'x')`, /cannot have the condition/],
    [`SELECT count(*) ${from} AND numeric_props['ms'] > 5`, /cannot have the condition/],
    [`SELECT count(*) ${from} AND event_name = 'f'`, /two conditions/],
    [`SELECT count(*), sum(numeric_props['ms']) ${from}`, /one metric/],
    [`SELECT count(*) + 1 ${from}`, /one metric/],
    [`SELECT string_props['a'] ${from} GROUP BY 1`, /no aggregate/],
    [`SELECT count(DISTINCT tenant_id) ${from}`, /one metric/],
    [`SELECT date_trunc('quarter', timestamp), count(*) ${from} GROUP BY 1`, /by hour, day, week or month/],
    [`SELECT count(*) ${from} GROUP BY string_props['a']`, /not selected/],
    [`SELECT count(*) ${from} AND tenant_id = 'acme'`, /tenant who looks/],
    [`SELECT count(*) ${from} AND string_props['plan'] = ''`, /empty/],
    [`SELECT date_trunc('day', timestamp) AS timestamp, count(*) ${from} GROUP BY timestamp`, /not selected/],
    [`SELECT count(*) ${from} /* a /* b */ AND string_props['a'] = 'x' --*/`, /alone/],
    ["SELECT count(*) FROM events WHERE event_name = 'e' AND timestamp >= now() - interval '2 weeks'", /period/],
    [`SELECT count(*) AS n, string_props['plan'] "x" ${from} GROUP BY 2`, /one metric/],
    [`SELECT count(*) ${from} LIMIT 5`, /LIMIT/],
    [`SELECT string_props['a'], count(*) ${from} GROUP BY 1 HAVING count(*) > 5`, /HAVING/],
    [`SELECT count(*) FROM events, tenants WHERE event_name = 'e'`, /reads the table events alone/],
    [`SELECT count(*) FROM (SELECT * FROM events) ${from.slice(12)}`, /reads the table events alone/],
    [`WITH x AS (SELECT 1) SELECT count(*) ${from}`, /reads the table events alone/],
    [`SELECT count(*) ${from} UNION ALL SELECT count(*) ${from}`, /reads the table events alone/],
    [`SELECT percentile_cont(0.42) WITHIN GROUP (ORDER BY numeric_props['ms']) ${from}`, /50, 95 and 99/],
  ]) {
    const asked = widgetQueryOf(/** @type {string} */ (sql));
    assert.match(asked.reason ?? JSON.stringify(asked), /** @type {RegExp} */ (reason), String(sql));
  }
  const events = [{ event_name: "e", count: 1, string_props: [{ name: "plan" }], numeric_props: [{ name: "ms" }] }];
  const turned = templatesOf(events).filter(({ sql }) => "parameters" in widgetQueryOf(sql));
  assert.deepEqual(turned.length, 1, "events by a property");
});
