// What comes in from the server and from the host page is read safely.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { fitHeight, loneCards, parseBoot } from "../embed/boot.js";
import { createOrigins, parseMessage } from "../embed/bridge.js";
import { drillOf } from "../embed/drill.js";
import { activeFilters, initialFilters, mergeFilters, withoutFilter } from "../embed/filters.js";
import { createLineSplitter, createLoader, createState, parseLine } from "../embed/store.js";
import { createFormat } from "../shared/format.js";

const boot = parseBoot(
  JSON.stringify({
    protocol: 1,
    dashboard_id: "d",
    name: "n",
    periods: ["7d", "30d"],
    default_period: "30d",
    widgets: [
      { id: "b", kind: "line", title: "B", query: {}, viz: {}, layout: { x: 0, y: 3, w: 20, h: 4 } },
      { id: "a", kind: "number", title: "A", query: {}, viz: {}, layout: { x: 0, y: 0, w: 3, h: 3 } },
    ],
    permissions: {
      allow_drill_down: false,
      locked_filters: { workspace: "x" },
      allowed_dimensions: ["plan", "ms"],
      max_date_range_days: 31,
    },
    allows_dates: true,
  }),
);
const start = initialFilters(boot);

test("boot puts widgets in reading order and inside the grid", () => {
  assert.deepEqual(
    boot.widgets.map((w) => w.id),
    ["a", "b"],
  );
  assert.equal(boot.widgets[1].layout.w, 12);
  assert.equal(parseBoot("{}").default_period, "30d");
});

test("the last number of an odd run is lone, and the last small chart", () => {
  const cards = (...kinds) => kinds.map(([kind, w]) => ({ kind, layout: { x: 0, y: 0, w, h: 4 } }));
  const number = ["number", 3];
  assert.deepEqual([...loneCards(cards(number, number, number, ["line", 12], number))], [2, 4]);
  const small = ["line", 6];
  assert.deepEqual([...loneCards(cards(number, small, small, ["bar_list", 4], ["table", 7], small))], [0, 3, 5]);
  assert.deepEqual([...loneCards(cards(["text", 4], small, ["donut", 5], ["text", 4]))], []);
});

test("a list is as high as its rows, and a chart as it is", () => {
  const answer = (rows, row = {}) => ({ data: Array.from({ length: rows }, () => row), meta: {} });
  const count = { metric: "count", limit: 5 };
  assert.equal(fitHeight("bar_list", count, answer(5)), "247px");
  // One more for the others, which an average has not.
  assert.equal(fitHeight("bar_list", count, answer(40)), "282px");
  assert.equal(fitHeight("bar_list", { ...count, metric: "avg" }, answer(40)), "247px");
  assert.equal(fitHeight("bar", { metric: "sum" }, answer(6)), "312px");
  assert.equal(fitHeight("bar", count, answer(30, { bucket: "2026-11-20" })), undefined);
  assert.equal(fitHeight("table", count, answer(7)), "336px");
  assert.equal(fitHeight("funnel", {}, answer(0)), "196px");
  assert.equal(fitHeight("line", {}, answer(30)), undefined);
});

test("lines are cut wherever the chunks end", () => {
  const splitter = createLineSplitter();
  assert.deepEqual(splitter.push('{"a":1}\n{"b"'), ['{"a":1}']);
  assert.deepEqual(splitter.push(":2}\n\n"), ['{"b":2}']);
  assert.deepEqual(splitter.push("rest"), []);
  assert.deepEqual(splitter.end(), ["rest"]);
});

test("a line is an answer, a failure, the time left, or ignored", () => {
  assert.deepEqual(parseLine('{"widget":"a","data":[],"meta":{}}'), {
    widget: "a",
    answer: { data: [], meta: {}, spark: undefined },
  });
  assert.deepEqual(parseLine('{"widget":"a","error":"slow","code":"query_timeout"}'), {
    widget: "a",
    error: "slow",
    code: "query_timeout",
  });
  assert.deepEqual(parseLine('{"expires_in_seconds":5}'), { expires_in_seconds: 5 });
  for (const line of ["", "{", "null", "[]", '{"widget":1}', '{"widget":"a","data":{}}'])
    assert.equal(parseLine(line), null);
});

test("only our messages are commands", () => {
  assert.deepEqual(parseMessage({ _service: true, type: "reload", v: 9, extra: 1 }), { type: "reload" });
  assert.deepEqual(parseMessage({ _service: true, type: "setFilters", filters: { period: "7d" } }), {
    type: "setFilters",
    filters: { period: "7d" },
  });
  const cyclic = /** @type {any} */ ({ _service: true, type: "reload" });
  cyclic.self = cyclic;
  const giant = { _service: true, type: "setTheme", theme: { a: "x".repeat(70_000) } };
  const wrong = [
    null,
    "reload",
    [],
    { type: "reload" },
    { _service: "true", type: "reload" },
    { _service: true, type: "drop" },
    { _service: true, type: "setFilters" },
    { _service: true, type: "setTheme", theme: "red" },
    cyclic,
    giant,
  ];
  for (const message of wrong) assert.equal(parseMessage(message), null);
});

test("configured origins are the only ones", () => {
  const origins = createOrigins(["https://a.example"], "https://b.example");
  assert.equal(origins.allows("https://a.example"), true);
  assert.equal(origins.allows("https://b.example"), false);
  assert.deepEqual(origins.targets(), ["https://a.example"]);
});

test("an open label means any host below, and only below", () => {
  const origins = createOrigins(["https://*.example.com", "https://b.example:8443"], null);
  assert.deepEqual(origins.targets(), ["https://b.example:8443"]);
  for (const wrong of [
    "https://example.com",
    "https://evilexample.com",
    "http://a.example.com",
    "https://a.example.com.evil.io",
    "https://a.example.com:444",
    "null",
  ]) {
    assert.equal(origins.allows(wrong), false, wrong);
  }
  assert.equal(origins.allows("https://a.example.com"), true);
  assert.deepEqual(origins.targets(), ["https://a.example.com"]);
  assert.equal(origins.allows("https://b.example:8443"), true);
  assert.equal(
    createOrigins(["https://*.example.com"], "https://x.y.example.com").targets()[0],
    "https://x.y.example.com",
  );
});

test("without configuration the origin found at load counts, else the first one is pinned", () => {
  assert.equal(createOrigins([], "https://a.example").allows("https://b.example"), false);
  const open = createOrigins([], null);
  assert.deepEqual(open.targets(), ["*"]);
  assert.equal(open.allows("null"), false);
  assert.equal(open.allows("https://a.example"), true);
  assert.equal(open.allows("https://b.example"), false);
  assert.deepEqual(open.targets(), ["https://a.example"]);
});

test("present parts replace, absent parts stay", () => {
  const merged = mergeFilters({ ...start, dimensions: { plan: "pro" } }, { period: "7d" }, boot);
  assert.deepEqual(merged, { filters: { ...start, period: "7d", dimensions: { plan: "pro" } } });
  const cleared = mergeFilters({ ...start, dimensions: { plan: "pro" } }, { dimensions: {} }, boot);
  assert.deepEqual(cleared, { filters: start });
});

test("a change that breaks a rule is refused as a whole", () => {
  const long = { timestamp: { from: "2026-01-01", to: "2026-03-01" } };
  for (const change of [
    { period: "90d" },
    { period: 7 },
    { dimensions: { workspace: "y" } },
    { dimensions: { model: "m" } },
    { dimensions: { plan: 3 } },
    { dimensions: { plan: [] } },
    { dimensions: [] },
    { numericRanges: { ms: { min: "1" } } },
    { dateRanges: long },
    { dateRanges: { timestamp: { from: "2026-02-01", to: "2026-01-01" } } },
    { dateRanges: { timestamp: {} } },
    null,
    [],
    { dateRanges: { created: { from: "2026-01-01", to: "2026-01-02" } } },
    { numericRanges: { age: { min: 1 } } },
    { dimensions: { constructor: "x" } },
  ])
    assert.ok("refused" in mergeFilters(start, change, boot), JSON.stringify(change));
  const dates = { dateRanges: { timestamp: { from: "2026-01-01", to: "2026-01-02" } } };
  assert.ok("refused" in mergeFilters(start, dates, { ...boot, allows_dates: false }));
  assert.ok(
    "filters" in mergeFilters(start, { dimensions: { plan: ["a", "b"] }, numericRanges: { ms: { min: 1 } } }, boot),
  );
});

test("what is merged in is what the server understands, and nothing else", () => {
  const change = {
    numericRanges: { ms: { min: 1, max: null, step: 3 } },
    dateRanges: { timestamp: { from: "2026-01-01", to: "2026-01-02T12:00:00+02:00", zone: "x" } },
  };
  const { filters } = /** @type {{ filters: any }} */ (mergeFilters(start, change, boot));
  assert.deepEqual(JSON.parse(JSON.stringify(filters.numericRanges)), { ms: { min: 1 } });
  assert.deepEqual(filters.dateRanges, {
    timestamp: { from: "2026-01-01T00:00:00.000Z", to: "2026-01-02T10:00:00.000Z" },
  });
});

test("drilling follows the session, the widget, and what is locked", () => {
  /** @param {any} more @param {any} [permissions] */
  const drill = (more, permissions) =>
    drillOf({
      boot: { ...boot, permissions: { ...boot.permissions, allow_drill_down: true, ...permissions } },
      widget: { query: { group_by: "plan" }, viz: {}, ...more },
      filters: { ...start, dimensions: { plan: "pro" } },
      onFilter: () => {},
      onDetail: () => {},
      onNarrow: () => {},
    });
  assert.equal(drill({}, { allow_drill_down: false }), null);
  assert.equal(drill({ viz: { drill: { action: "none" } } }), null);
  assert.equal(drill({ viz: { drill: { action: "eval" } } }), null);
  assert.deepEqual(drill({})?.chosen, ["pro"]);
  assert.ok(drill({})?.choose);
  for (const group_by of ["workspace", "model", undefined]) assert.equal(drill({ query: { group_by } })?.choose, null);
  assert.deepEqual(drill({ viz: { drill: { action: "detail" } } })?.chosen, []);
});

test("filters read as words and can be taken away", () => {
  const filters = { ...start, dimensions: { plan: ["a", "b"] }, numericRanges: { latency_ms: { min: 10 } } };
  assert.deepEqual(
    activeFilters(filters, createFormat("en")).map((f) => `${f.name}: ${f.value}`),
    ["Plan: a, b", "Latency ms: ≥ 10"],
  );
  assert.deepEqual(withoutFilter(filters, "dimensions", "plan").dimensions, {});
  const dates = (/** @type {string} */ from, /** @type {string} */ to) =>
    activeFilters({ ...start, dateRanges: { timestamp: { from, to } } }, createFormat("en"))[0].value;
  assert.equal(dates("2026-11-10T00:00:00Z", "2026-11-13T00:00:00Z"), "Nov 10, 2026 – Nov 12, 2026");
  assert.equal(dates("2026-11-10T00:00:00Z", "2026-11-11T00:00:00Z"), "Nov 10, 2026");
});

/** A loader over a fake network; each request is answered by `reply`. @param {(body: any) => Response} reply @param {any} [data] what came with the page */
function harness(reply, data = {}) {
  const state = createState({ ...boot, data });
  const posts = /** @type {any[]} */ ([]);
  const bridge = {
    post: (/** @type {string} */ type, /** @type {any} */ payload) => posts.push({ type, ...payload }),
    error: (/** @type {string} */ code, /** @type {string} */ message) => posts.push({ type: "error", code, message }),
  };
  const seen = /** @type {any[]} */ ([]);
  const fetch = /** @type {any} */ (
    async (/** @type {string} */ url, /** @type {any} */ options) => {
      seen.push({ url, ...options, body: JSON.parse(options.body) });
      return reply(seen[seen.length - 1].body);
    }
  );
  return { state, posts, seen, loader: createLoader({ state, bridge, fetch, token: "t0", clock: String }) };
}

test("one request asks for all cards and answers stand alone", async () => {
  const { state, posts, seen, loader } = harness(
    () =>
      new Response(
        '{"widget":"a","data":[{"value":1}],"meta":{}}\n{"widget":"b","error":"too slow","code":"query_timeout"}\n{"expires_in_seconds":9}\n',
      ),
  );
  await loader.load();
  assert.equal(seen.length, 1);
  assert.deepEqual(seen[0].body.widgets, ["a", "b"]);
  assert.equal(seen[0].headers.authorization, "Bearer t0");
  assert.equal(seen[0].credentials, "omit");
  assert.equal(state.cards.get("a")?.value.answer?.data[0].value, 1);
  assert.deepEqual(state.cards.get("b")?.value.failure, {
    code: "query_timeout",
    message: "Too slow.",
    retryable: true,
  });
  assert.deepEqual(
    posts.map((p) => p.type),
    ["error", "filter"],
  );
  assert.deepEqual(posts[1], { type: "filter", period: "30d", filters: {}, numericRanges: {}, dateRanges: {} });
});

test("what came with the page is not asked for again", async () => {
  const { seen, posts, loader } = harness(
    (body) =>
      new Response(
        body.widgets.map((/** @type {string} */ widget) => `{"widget":"${widget}","data":[],"meta":{}}\n`).join(""),
      ),
    { a: { data: [{ value: 5 }], meta: {} } },
  );
  await loader.start();
  assert.deepEqual(seen[0].body.widgets, ["b"]);
  await loader.load();
  assert.deepEqual(seen[1].body.widgets, ["a", "b"]);
  assert.deepEqual(
    posts.map((p) => p.type),
    ["filter", "filter"],
  );
});

test("questions beside the cards fail with a sentence", async () => {
  const over = harness(() => new Response('{"error":"x"}', { status: 401 }));
  await assert.rejects(over.loader.ask("values", {}, new AbortController().signal), /session has ended/);
  assert.deepEqual(
    over.posts.map((p) => p.code),
    ["session_expired"],
  );
  const wrong = harness(() => new Response('{"error":"this session does not allow it"}', { status: 403 }));
  await assert.rejects(
    wrong.loader.ask("values", {}, new AbortController().signal),
    /^Error: This session does not allow it\.$/,
  );
  const gone = harness(() => {
    throw new TypeError("network");
  });
  await assert.rejects(gone.loader.ask("values", {}, new AbortController().signal), /couldn’t be reached/);
});

test("an answer that ends early fails only the cards it left open", async () => {
  const { state, loader } = harness(() => new Response('{"widget":"a","data":[],"meta":{}}\n{"widget":"b","da'));
  await loader.load();
  assert.equal(state.cards.get("a")?.value.failure, null);
  assert.equal(state.cards.get("b")?.value.failure?.message, "The connection was interrupted.");
});

test("a session that ends keeps the data, and says so unless the host renews it first", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let over = false;
  const { state, posts, loader } = harness(() =>
    over
      ? new Response('{"error":"x","code":"token_expired"}', { status: 401 })
      : new Response('{"widget":"a","data":[{"value":1}],"meta":{}}\n{"widget":"b","data":[],"meta":{}}\n'),
  );
  await loader.load();
  over = true;
  state.filters.value = { ...state.filters.value, period: "7d" };
  await loader.load();
  const card = state.cards.get("a")?.value;
  assert.equal(card?.answer?.data[0].value, 1);
  assert.equal(card?.stale, true);
  assert.equal(card?.failure, null);
  assert.equal(state.notice.value, null);
  mock.timers.tick(4000);
  mock.timers.reset();
  assert.match(state.notice.value ?? "", /session has ended/);
  assert.ok(posts.some((p) => p.type === "error" && p.code === "session_expired"));
});

for (const [name, late] of /** @type {[string, Response][]} */ ([
  ["answer", new Response('{"widget":"a","data":[{"value":1}],"meta":{}}\n{"widget":"b","data":[],"meta":{}}\n')],
  ["refusal", new Response('{"error":"x","code":"internal"}', { status: 500 })],
])) {
  test(`a late ${name} to an earlier state is ignored`, async () => {
    /** @type {(r: Response) => void} */ let first = () => {};
    let calls = 0;
    const { state, posts, loader } = harness(
      /** @type {any} */ (
        () =>
          calls++ === 0
            ? new Promise((resolve) => {
                first = resolve;
              })
            : new Response('{"widget":"a","data":[{"value":2}],"meta":{}}\n{"widget":"b","data":[],"meta":{}}\n')
      ),
    );
    const early = loader.load();
    await loader.load();
    first(late);
    await early;
    assert.equal(state.cards.get("a")?.value.answer?.data[0].value, 2);
    assert.deepEqual(
      ["a", "b"].map((id) => state.cards.get(id)?.value.failure),
      [null, null],
    );
    assert.deepEqual(
      posts.map((p) => p.type),
      ["filter"],
    );
  });
}
