// A server of our own: its process, its API, and an organisation with events that are always the same.
//
// The process runs at a fixed time, so that dates in pictures and sums over periods never change. All
// data goes in through the API, as a customer's would.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** When every server starts; a Friday. */
export const NOW = Date.parse("2026-11-20T12:00:00Z");
const DAY_MS = 86_400_000;
const DAYS = 62;
const BATCH = 1000;

const limits = ["ingest", "query", "embed", "sql", "management", "login", "register"]
  .map((name) => `${name}=100000`)
  .join(",");

export class Server {
  /**
   * Starts a process in a new directory; on another port when its own was taken. `options` are more of its command line.
   * @param {string[]} options @returns {Promise<Server>}
   */
  static async start(options = [], tries = 3) {
    const directory = mkdtempSync(join(tmpdir(), "inlay-browser-"));
    const port = 20_000 + Math.floor(Math.random() * 20_000);
    const base = `http://localhost:${port}`;
    const start = new Date(NOW).toISOString().slice(0, 19).replace("T", " ");
    const child = spawn(
      "faketime",
      [
        "-f",
        `@${start}`,
        process.env.TEST_INLAY ?? "inlay",
        "serve",
        "--data-dir",
        join(directory, "data"),
        "--http-addr",
        `127.0.0.1:${port}`,
        "--grpc-addr",
        "127.0.0.1:0",
        "--base-url",
        base,
        "--rate-limits",
        limits,
        "--log",
        "warn",
        "--demo",
        ...options,
      ],
      {
        env: {
          ...process.env,
          TZ: "UTC",
          FAKETIME_DONT_FAKE_MONOTONIC: "1",
          INLAY_ALERT_INTERVAL_SECONDS: "1",
          INLAY_WEBHOOK_BACKOFF_SECONDS: "0,1,1",
        },
        stdio: ["ignore", "pipe", "inherit"],
        detached: true,
      },
    );
    const server = new Server(child, directory, base);
    for (let i = 0; i < 600; i++) {
      if (child.exitCode !== null) {
        if (tries > 1) return Server.start(options, tries - 1);
        throw new Error(`the server ended with ${child.exitCode}`);
      }
      const ready = await fetch(`${base}/readyz`).then(
        (r) => r.ok,
        () => false,
      );
      if (ready) return server;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error("the server did not start");
  }

  constructor(child, directory, base) {
    Object.assign(this, { child, directory, base, key: "" });
  }

  async stop() {
    // `faketime` runs the server as its child: the whole group ends.
    process.kill(-this.child.pid, "SIGTERM");
    const lives = () => {
      try {
        return process.kill(-this.child.pid, 0);
      } catch {
        return false;
      }
    };
    while (lives()) await new Promise((resolve) => setTimeout(resolve, 50));
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** One request with the admin key; fails unless it is answered with `status`. */
  async ask(method, path, body, status = 200) {
    const response = await fetch(this.base + path, {
      method,
      headers: { authorization: `Bearer ${this.key}`, "content-type": "application/json" },
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    if (response.status !== status) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  async register() {
    const response = await fetch(`${this.base}/v1/auth/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        email: "owner@example.com",
        password: "correct horse battery",
        name: "Owner",
        org_name: "Acme",
      }),
    });
    this.key = (await response.json()).api_key.key;
  }

  async send(events) {
    for (let at = 0; at < events.length; at += BATCH)
      await this.ask("POST", "/v1/events", { events: events.slice(at, at + BATCH) });
  }

  /** Makes a dashboard and publishes it. @returns {Promise<string>} its id */
  async publish(name, widgets, settings) {
    const { id } = await this.ask("POST", "/v1/dashboards", { name, widgets, ...(settings && { settings }) }, 201);
    await this.ask("POST", `/v1/dashboards/${id}/publish`, undefined, 204);
    return id;
  }

  /** Mints a session. @returns {Promise<{ embed_url: string, token: string, expires_at: string }>} */
  mint(dashboard_id, { permissions = {}, tenant_id = "acme", expires_in = 3600 } = {}) {
    return this.ask("POST", "/v1/embed-sessions", { dashboard_id, tenant_id, permissions, expires_in }, 201);
  }

  /** A data call as the page makes it, or as somebody makes it by hand. @returns {Promise<Response>} */
  viewer(token, path, body) {
    return fetch(`${this.base}/v1/embed/${path}`, {
      method: body ? "POST" : "GET",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: body && JSON.stringify(body),
    });
  }
}

/** Numbers that look random and are always the same. @param {number} seed */
export function chance(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const pick = (random, choices) => choices[Math.floor(random() ** 1.7 * choices.length)];

/** What two tenants did; the second has a marker in every value, which must never be seen. */
export function story() {
  const random = chance(7);
  const events = [];
  for (let day = DAYS; day >= 0; day--) {
    const weekend = [0, 6].includes(new Date(NOW - day * DAY_MS).getUTCDay());
    const count = Math.round(
      (weekend ? 22 : 52) * (1 + (DAYS - day) / 120) * (0.8 + random() * 0.4) * (day === 8 ? 2 : 1),
    );
    for (let n = 0; n < count; n++) {
      const at = NOW - day * DAY_MS - Math.floor(random() * 0.45 * DAY_MS);
      events.push({
        tenant_id: "acme",
        event_name: "api_call",
        event_id: `a${day}-${n}`,
        timestamp: new Date(at).toISOString(),
        user_id: `u${Math.floor(random() * 90)}`,
        string_props: {
          plan: pick(random, ["enterprise", "growth", "starter", "free"]),
          model: pick(random, ["nova-large", "nova-small", "lyra", "orion-2", "pico", "tiny"]),
          endpoint: pick(random, ["/v1/chat", "/v1/embed", "/v1/images", "/v1/audio", "/v1/files"]),
          status: random() < 0.96 ? "ok" : "error",
          country: pick(random, ["DE", "US", "FR", "GB", "NL", "JP"]),
        },
        numeric_props: { latency_ms: Math.round(120 + 900 * random() ** 3), cost: Math.round(random() * 400) / 100 },
      });
    }
  }
  ["signed_up", "created_key", "first_request"].forEach((event_name, step) => {
    for (let n = 0; n < 120 - step * 45; n++) {
      events.push({
        tenant_id: "acme",
        event_name,
        event_id: `f${step}-${n}`,
        timestamp: new Date(NOW - (1 + (n % 20)) * DAY_MS).toISOString(),
        user_id: `u${n}`,
        string_props: { status: "ok" },
      });
    }
  });
  for (let n = 0; n < 77; n++) {
    events.push({
      tenant_id: "rival",
      event_name: "api_call",
      event_id: `r${n}`,
      timestamp: new Date(NOW - (1 + (n % 25)) * DAY_MS).toISOString(),
      user_id: `MARKER-user-${n}`,
      string_props: {
        plan: "MARKER-plan",
        model: "MARKER-model",
        endpoint: "MARKER-endpoint",
        country: "MARKER-country",
        status: "ok",
      },
      numeric_props: { latency_ms: 424_242 },
    });
  }
  return events;
}

const ask = (metric, more) => ({ event_name: "api_call", metric, ...more });
const cell = (id, kind, title, query, viz, [x, y, w, h]) => ({ id, kind, title, query, viz, layout: { x, y, w, h } });

/** One dashboard with every kind of widget. */
export const EVERYTHING = [
  cell("requests", "number", "API requests", ask("count", { compare: "previous" }), { sparkline: true }, [0, 0, 3, 3]),
  cell(
    "users",
    "number",
    "Active users",
    ask("count_unique", { compare: "previous" }),
    { sparkline: true },
    [3, 0, 3, 3],
  ),
  cell(
    "spend",
    "number",
    "Spend",
    ask("sum", { numeric_prop: "cost", compare: "previous" }),
    { sparkline: true, good_direction: "down", format: { style: "currency", currency: "USD" } },
    [6, 0, 3, 3],
  ),
  cell(
    "slow",
    "number",
    "p95 latency",
    ask("p95", { numeric_prop: "latency_ms", compare: "previous" }),
    { sparkline: true, good_direction: "down", format: { style: "number", unit: "ms" } },
    [9, 0, 3, 3],
  ),
  cell(
    "over_time",
    "area",
    "Requests over time",
    ask("count", { compare: "previous" }),
    { subtitle: "Compared with the period before" },
    [0, 3, 8, 6],
  ),
  cell(
    "plans",
    "donut",
    "Requests by plan",
    ask("count", { group_by: "plan" }),
    { value_label: "requests" },
    [8, 3, 4, 6],
  ),
  cell("models", "stacked_bar", "Requests by model", ask("count", { group_by: "model", limit: 4 }), {}, [0, 9, 7, 6]),
  cell("endpoints", "bar_list", "Top endpoints", ask("count", { group_by: "endpoint" }), {}, [7, 9, 5, 6]),
  cell(
    "latency",
    "line",
    "Latency by model",
    ask("avg", { numeric_prop: "latency_ms", group_by: "model", limit: 3 }),
    { format: { style: "number", unit: "ms" } },
    [0, 15, 7, 6],
  ),
  cell(
    "countries",
    "bar",
    "Requests by country",
    ask("count", { group_by: "country" }),
    { drill: { action: "detail" } },
    [7, 15, 5, 6],
  ),
  cell(
    "table",
    "table",
    "Plans",
    ask("count", {
      group_by: "plan",
      measures: [
        { metric: "count", label: "Requests" },
        { metric: "count_unique", label: "Users" },
        {
          metric: "avg",
          numeric_prop: "latency_ms",
          label: "Latency",
          format: { style: "number", unit: "ms", decimals: 0 },
        },
        { metric: "sum", numeric_prop: "cost", label: "Spend", format: { style: "currency", currency: "USD" } },
      ],
    }),
    {},
    [0, 21, 8, 5],
  ),
  cell(
    "funnel",
    "funnel",
    "Activation",
    {
      metric: "count_unique",
      steps: [
        { event_name: "signed_up", label: "Signed up" },
        { event_name: "created_key", label: "Created key" },
        { event_name: "first_request", label: "First request" },
      ],
    },
    {},
    [8, 21, 4, 5],
  ),
  cell("note", "text", "About these numbers", {}, { text: "Counted per request.\nTimes are in UTC." }, [0, 26, 12, 2]),
];
