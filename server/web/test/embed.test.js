// What comes in from the server and from the host page is read safely.

import assert from "node:assert/strict";
import { test } from "node:test";
import { loneNumbers, parseBoot } from "../embed/boot.js";
import { createOrigins, parseMessage } from "../embed/bridge.js";
import { activeFilters, initialFilters, mergeFilters, withoutFilter } from "../embed/filters.js";
import { createLineSplitter, createLoader, createState, parseLine } from "../embed/store.js";
import { createFormat } from "../shared/format.js";

const boot = parseBoot(JSON.stringify({
  protocol: 1, dashboard_id: "d", name: "n", periods: ["7d", "30d"], default_period: "30d",
  widgets: [
    { id: "b", kind: "line", title: "B", query: {}, viz: {}, layout: { x: 0, y: 3, w: 20, h: 4 } },
    { id: "a", kind: "number", title: "A", query: {}, viz: {}, layout: { x: 0, y: 0, w: 3, h: 3 } },
  ],
  permissions: { allow_drill_down: false, locked_filters: { workspace: "x" }, allowed_dimensions: ["plan"], max_date_range_days: 31 },
}));
const start = initialFilters(boot);

test("boot puts widgets in reading order and inside the grid", () => {
  assert.deepEqual(boot.widgets.map((w) => w.id), ["a", "b"]);
  assert.equal(boot.widgets[1].layout.w, 12);
  assert.equal(parseBoot("{}").default_period, "30d");
});

test("the last number of an odd run is lone", () => {
  const kinds = ["number", "number", "number", "line", "number"].map((kind) => ({ kind }));
  assert.deepEqual([...loneNumbers(kinds)], [2, 4]);
});

test("lines are cut wherever the chunks end", () => {
  const splitter = createLineSplitter();
  assert.deepEqual(splitter.push('{"a":1}\n{"b"'), ['{"a":1}']);
  assert.deepEqual(splitter.push(":2}\n\n"), ['{"b":2}']);
  assert.deepEqual(splitter.push("rest"), []);
  assert.deepEqual(splitter.end(), ["rest"]);
});

test("a line is an answer, a failure, the time left, or ignored", () => {
  assert.deepEqual(parseLine('{"widget":"a","data":[],"meta":{}}'), { widget: "a", answer: { data: [], meta: {}, spark: undefined } });
  assert.deepEqual(parseLine('{"widget":"a","error":"slow","code":"query_timeout"}'), { widget: "a", error: "slow", code: "query_timeout" });
  assert.deepEqual(parseLine('{"expires_in_seconds":5}'), { expires_in_seconds: 5 });
  for (const line of ["", "{", "null", "[]", '{"widget":1}', '{"widget":"a","data":{}}']) assert.equal(parseLine(line), null);
});

test("only our messages are commands", () => {
  assert.deepEqual(parseMessage({ _service: true, type: "reload", v: 9, extra: 1 }), { type: "reload" });
  assert.deepEqual(parseMessage({ _service: true, type: "setFilters", filters: { period: "7d" } }), { type: "setFilters", filters: { period: "7d" } });
  const cyclic = /** @type {any} */ ({ _service: true, type: "reload" });
  cyclic.self = cyclic;
  const giant = { _service: true, type: "setTheme", theme: { a: "x".repeat(70_000) } };
  const wrong = [null, "reload", [], { type: "reload" }, { _service: "true", type: "reload" }, { _service: true, type: "drop" },
    { _service: true, type: "setFilters" }, { _service: true, type: "setTheme", theme: "red" }, cyclic, giant];
  for (const message of wrong) assert.equal(parseMessage(message), null);
});

test("configured origins are the only ones", () => {
  const origins = createOrigins(["https://a.example"], "https://b.example");
  assert.equal(origins.allows("https://a.example"), true);
  assert.equal(origins.allows("https://b.example"), false);
  assert.deepEqual(origins.targets(), ["https://a.example"]);
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
    { period: "90d" }, { period: 7 }, { dimensions: { workspace: "y" } }, { dimensions: { model: "m" } }, { dimensions: { plan: 3 } },
    { dimensions: { plan: [] } }, { dimensions: [] }, { numericRanges: { ms: { min: "1" } } }, { dateRanges: long },
    { dateRanges: { timestamp: { from: "2026-02-01", to: "2026-01-01" } } }, { dateRanges: { timestamp: {} } }, null, [],
  ]) assert.ok("refused" in mergeFilters(start, change, boot), JSON.stringify(change));
  assert.ok("filters" in mergeFilters(start, { dimensions: { plan: ["a", "b"] }, numericRanges: { ms: { min: 1 } } }, boot));
});

test("filters read as words and can be taken away", () => {
  const filters = { ...start, dimensions: { plan: ["a", "b"] }, numericRanges: { latency_ms: { min: 10 } } };
  assert.deepEqual(activeFilters(filters, createFormat("en")).map((f) => `${f.name}: ${f.value}`), ["Plan: a, b", "Latency ms: ≥ 10"]);
  assert.deepEqual(withoutFilter(filters, "dimensions", "plan").dimensions, {});
});

/** A loader over a fake network; each request is answered by `reply`. @param {(body: any) => Response} reply */
function harness(reply) {
  const state = createState(boot);
  const posts = /** @type {any[]} */ ([]);
  const bridge = {
    post: (/** @type {string} */ type, /** @type {any} */ payload) => posts.push({ type, ...payload }),
    error: (/** @type {string} */ code, /** @type {string} */ message) => posts.push({ type: "error", code, message }),
  };
  const seen = /** @type {any[]} */ ([]);
  const fetch = /** @type {any} */ (async (/** @type {string} */ url, /** @type {any} */ options) => {
    seen.push({ url, ...options, body: JSON.parse(options.body) });
    return reply(seen[seen.length - 1].body);
  });
  return { state, posts, seen, loader: createLoader({ state, bridge, fetch, token: "t0" }) };
}

test("one request asks for all cards and answers stand alone", async () => {
  const { state, posts, seen, loader } = harness(() => new Response(
    '{"widget":"a","data":[{"value":1}],"meta":{}}\n{"widget":"b","error":"too slow","code":"query_timeout"}\n{"expires_in_seconds":9}\n'));
  await loader.load();
  assert.equal(seen.length, 1);
  assert.deepEqual(seen[0].body.widgets, ["a", "b"]);
  assert.equal(seen[0].headers.authorization, "Bearer t0");
  assert.equal(seen[0].credentials, "omit");
  assert.equal(state.cards.get("a")?.value.answer?.data[0].value, 1);
  assert.deepEqual(state.cards.get("b")?.value.failure, { code: "query_timeout", message: "Too slow.", retryable: true });
  assert.deepEqual(posts.map((p) => p.type), ["error", "filter"]);
  assert.deepEqual(posts[1], { type: "filter", period: "30d", filters: {}, numericRanges: {}, dateRanges: {} });
});

test("an answer that ends early fails only the cards it left open", async () => {
  const { state, loader } = harness(() => new Response('{"widget":"a","data":[],"meta":{}}\n{"widget":"b","da'));
  await loader.load();
  assert.equal(state.cards.get("a")?.value.failure, null);
  assert.equal(state.cards.get("b")?.value.failure?.message, "The connection was interrupted.");
});

test("a session that ends keeps the data and says so", async () => {
  let over = false;
  const { state, posts, loader } = harness(() => over
    ? new Response('{"error":"x","code":"token_expired"}', { status: 401 })
    : new Response('{"widget":"a","data":[{"value":1}],"meta":{}}\n{"widget":"b","data":[],"meta":{}}\n'));
  await loader.load();
  over = true;
  state.filters.value = { ...state.filters.value, period: "7d" };
  await loader.load();
  const card = state.cards.get("a")?.value;
  assert.equal(card?.answer?.data[0].value, 1);
  assert.equal(card?.stale, true);
  assert.equal(card?.failure, null);
  assert.match(state.notice.value ?? "", /session has ended/);
  assert.ok(posts.some((p) => p.type === "error" && p.code === "session_expired"));
});

test("a late answer to an earlier state is ignored", async () => {
  /** @type {(r: Response) => void} */ let first = () => {};
  let calls = 0;
  const { state, loader } = harness(/** @type {any} */ (() => calls++ === 0
    ? new Promise((resolve) => { first = resolve; })
    : new Response('{"widget":"a","data":[{"value":2}],"meta":{}}\n{"widget":"b","data":[],"meta":{}}\n')));
  const early = loader.load();
  await loader.load();
  first(new Response('{"widget":"a","data":[{"value":1}],"meta":{}}\n{"widget":"b","data":[],"meta":{}}\n'));
  await early;
  assert.equal(state.cards.get("a")?.value.answer?.data[0].value, 2);
});
