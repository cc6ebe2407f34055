// The client beside a real server.
//
//     TEST_INLAY=target/debug/inlay node --test tools/clients/node/test/client.test.js
//
// The source is bundled for it, since not every Node reads TypeScript.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { build } from "esbuild";

import { startReceiver, startServer, startStub, startDroppingProxy } from "./server.js";

const folder = mkdtempSync(join(tmpdir(), "inlay-client-"));
const bundle = join(folder, "inlay.mjs");
const entry = fileURLToPath(new URL("../src/index.ts", import.meta.url));
await build({ entryPoints: [entry], outfile: bundle, bundle: true, format: "esm", platform: "node" });
const { Inlay, InlayError, WebhookError, verifyWebhook } = await import(bundle);

const DAY_MS = 86_400_000;
const WIDGET = {
  id: "calls",
  kind: "number",
  title: "Calls",
  query: { event_name: "call", metric: "count" },
  viz: {},
  layout: { x: 0, y: 0, w: 4, h: 4 },
};

let server;
let inlay;
let problems;

before(async () => {
  server = await startServer({ INLAY_WEBHOOK_ALLOW: "127.0.0.0/8" });
});
after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});
const clients = [];
beforeEach(() => {
  problems = [];
  inlay = client(server.url);
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((one) => one.close()));
});

function client(url, options = {}) {
  clients.push(new Inlay({ url, key: server.key, onProblem: (problem) => problems.push(problem), ...options }));
  return clients.at(-1);
}

async function count(tenant) {
  const { data } = await inlay.query({ tenant_id: tenant, event_name: "call", metric: "count", period: "7d" });
  return data[0].value;
}

async function board() {
  const { id } = await inlay.request("POST", "/v1/dashboards", { body: { name: "Usage", widgets: [WIDGET] } });
  await inlay.request("POST", `/v1/dashboards/${id}/publish`);
  return id;
}

test("tracked events are there after a flush", async () => {
  for (let n = 0; n < 1_300; n++) {
    const model = n % 2 ? "large" : "small";
    inlay.track({
      tenant_id: "tracked",
      event_name: "call",
      user_id: `u${n % 7}`,
      string_props: { model },
      numeric_props: { ms: n },
    });
  }
  await inlay.flush();
  assert.equal(await count("tracked"), 1_300);
  const asked = { tenant_id: "tracked", event_name: "call", period: "7d" };
  assert.equal((await inlay.query({ ...asked, metric: "count_unique" })).data[0].value, 7);
  const large = await inlay.query({ ...asked, metric: "sum", numeric_prop: "ms", filters: { model: "large" } });
  assert.equal(large.data[0].value, 650 * 650);
  assert.deepEqual(problems, []);
});

test("events are sent without a flush too", async () => {
  const quick = client(server.url, { flushMs: 100 });
  quick.track({ tenant_id: "by itself", event_name: "call" });
  for (let n = 0; n < 100 && (await count("by itself")) === 0; n++) await sleep(50);
  assert.equal(await count("by itself"), 1);
});

test("the end of a process sends what is buffered", async () => {
  const program = `import { Inlay } from ${JSON.stringify(bundle)};
    new Inlay({ url: "${server.url}", key: "${server.key}" }).track({ tenant_id: "ended", event_name: "call" });`;
  await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  assert.equal(await count("ended"), 1);
});

test("a lost response counts no event twice, and mints no second session", async () => {
  const proxy = await startDroppingProxy(server, 2);
  const retrying = client(proxy.url);
  for (let n = 0; n < 50; n++) retrying.track({ tenant_id: "dropped", event_name: "call" });
  await retrying.flush();
  assert.deepEqual([proxy.left, await count("dropped"), problems], [0, 50, []]);
  proxy.left = 1;
  const session = await retrying.embedSession({ tenant_id: "dropped", dashboard_id: await board() });
  const minted = await inlay.request("GET", "/v1/embed-sessions");
  assert.equal(minted.data.filter((one) => one.tenant_id === "dropped").length, 1);
  assert.match(session.embed_url, /\/embed\//);
  proxy.stop();
});

test("refused events are reported one by one", async () => {
  inlay.track({ tenant_id: "reported", event_name: "call" });
  inlay.track({ tenant_id: "reported", event_name: "", event_id: "nameless" });
  inlay.track({
    tenant_id: "reported",
    event_name: "call",
    event_id: "ahead",
    timestamp: new Date(Date.now() + 3 * DAY_MS),
  });
  await inlay.flush();
  const refused = problems.map(({ kind, events }) => [kind, events[0].event_id]);
  assert.deepEqual(refused, [
    ["rejected", "nameless"],
    ["rejected", "ahead"],
  ]);
  assert.equal(await count("reported"), 1);
  const endless = { tenant_id: "reported", event_name: "call", numeric_props: { ms: Infinity } };
  assert.throws(() => inlay.track(endless), RangeError);
});

test("a server that is away drops events in the end and throws nowhere", async () => {
  const away = client("http://127.0.0.1:1", { sendMs: 500, retryMs: 200, bufferEvents: 10 });
  for (let n = 0; n < 20; n++) away.track({ tenant_id: "away", event_name: "call" });
  await away.flush();
  assert.deepEqual(new Set(problems.map(({ kind }) => kind)), new Set(["dropped"]));
  assert.equal(problems.flatMap(({ events }) => events).length, 20);
  assert.equal(problems[0].error, "the buffer is full");
  await assert.rejects(away.sql("SELECT 1"), (error) => error instanceof InlayError && error.code === "connection");
});

test("a backfill is sent in parts and can be repeated", async () => {
  const timestamp = new Date(Date.now() - 2 * DAY_MS);
  const events = Array.from({ length: 2_500 }, (_, n) => ({
    tenant_id: "old",
    event_name: "call",
    event_id: String(n),
    timestamp,
  }));
  assert.equal(await inlay.send(events), 2_500);
  assert.equal(await inlay.send(events), 2_500);
  assert.equal(await count("old"), 2_500);
});

test("HTML instead of JSON, and a redirect, are reported and do not hang", async () => {
  const stub = await startStub(() => ({ status: 200, text: "<html>log in</html>" }));
  const lost = client(stub.url);
  for (let n = 0; n < 600; n++) lost.track({ tenant_id: "lost", event_name: "call" });
  await lost.flush();
  assert.equal(problems.flatMap(({ events }) => events).length, 600);
  await assert.rejects(lost.sql("SELECT 1"), InlayError);
  stub.stop();
  const moved = await startStub(() => ({ status: 301, headers: { location: "/new" }, text: "" }));
  await assert.rejects(
    client(moved.url).sql("SELECT 1"),
    (error) => error.status === 301 && /\/new/.test(error.message),
  );
  assert.deepEqual(moved.requests, ["POST /v1/query/adhoc"]);
  moved.stop();
});

test("what may not be so large is sent in halves", async () => {
  const stub = await startStub((body) =>
    body.length > 20_000
      ? { status: 413, text: "too large" }
      : { status: 200, text: JSON.stringify({ accepted: JSON.parse(body).events.length, errors: [] }) },
  );
  const text = "x".repeat(1_000);
  const events = Array.from({ length: 100 }, () => ({ tenant_id: "a", event_name: "call", string_props: { text } }));
  assert.equal(await client(stub.url).send(events), 100);
  assert.deepEqual(problems, []);
  stub.stop();
});

test("unsent events are reported on close, and a callback that rejects does not end the process", async () => {
  const reported = [];
  const onProblem = async (problem) => {
    reported.push(problem);
    throw new Error("the callback is away, too");
  };
  const left = client("http://127.0.0.1:1", { onProblem });
  for (let n = 0; n < 100; n++) left.track({ tenant_id: "left", event_name: "call" });
  await left.close(200);
  assert.equal(reported.flatMap(({ events }) => events).length, 100);
  left.track({ tenant_id: "left", event_name: "call" });
  assert.equal(reported.at(-1).error, "the client is closed");
});

test("an event is what it was when it was tracked", async () => {
  const props = { step: "1" };
  inlay.track({ tenant_id: "copied", event_name: "call", string_props: props });
  props.step = "2";
  inlay.track({ tenant_id: "copied", event_name: "call", string_props: props });
  await inlay.flush();
  const asked = { tenant_id: "copied", event_name: "call", metric: "count", period: "7d", group_by: "step" };
  assert.deepEqual((await inlay.query(asked)).data.map(({ group }) => group).sort(), ["1", "2"]);
  assert.throws(() => inlay.track({ tenant_id: "copied", event_name: "call", string_props: { id: 10n } }), TypeError);
});

test("too many requests wait for their turn", async () => {
  const slow = await startServer({ INLAY_RATE_LIMITS: "query=2" });
  const patient = new Inlay({ url: slow.url, key: slow.key });
  const asked = { tenant_id: "a", event_name: "call", metric: "count", period: "1h" };
  await Promise.all(Array.from({ length: 5 }, () => patient.query(asked)));
  await slow.stop();
});

test("errors name the field, and statements answer", async () => {
  const wrong = inlay.query({ tenant_id: "a", event_name: "call", metric: "p95", period: "7d" });
  await assert.rejects(wrong, (error) => {
    assert.deepEqual([error.status, error.code, error.field], [400, "missing_field", "numeric_prop"]);
    return error.requestId.length > 0;
  });
  const stranger = new Inlay({ url: server.url, key: "inlay_admin_wrong" });
  await assert.rejects(stranger.sql("SELECT 1"), { status: 401 });
  assert.deepEqual((await inlay.sql("SELECT 1 AS one")).rows, [[1]]);
});

test("a session opens its dashboard", async () => {
  const session = await inlay.embedSession({ tenant_id: "acme", dashboard_id: await board(), expires_in: 600 });
  assert.ok(Math.abs(Date.parse(session.expires_at) - Date.now() - 600_000) < 60_000);
  assert.match(await (await fetch(session.embed_url)).text(), /Usage/);
});

test("a webhook is verified", async () => {
  const receiver = await startReceiver();
  const rule = { dashboard_id: await board(), widget_id: "calls", name: "Silence", condition_type: "no_data" };
  const made = await inlay.request("POST", "/v1/alerts", {
    body: { ...rule, webhook_url: receiver.url, webhook_signed: true },
  });
  await inlay.request("POST", `/v1/alerts/${made.id}/test`);
  receiver.stop();
  const [{ headers, body }] = receiver.received;
  const secret = made.webhook_secret;
  assert.ok(verifyWebhook(secret, headers, body));
  assert.ok(verifyWebhook(secret, new Headers(headers), body.toString()));
  assert.equal(JSON.parse(body).alert_id, made.id);
  for (const wrong of [
    () => verifyWebhook(secret, headers, `${body} `),
    () => verifyWebhook(`whsec_${"A".repeat(32)}`, headers, body),
    () => verifyWebhook(secret, headers, body, { now: Date.now() + 3_600_000 }),
    () => verifyWebhook(secret, {}, body),
  ]) {
    assert.throws(wrong, WebhookError);
  }
  for (const empty of ["", "whsec_", "whsec_????"]) assert.throws(() => verifyWebhook(empty, headers, body), TypeError);
});
