// The console in a test: an organisation of its own for each, made through the API, and a page that is logged in.

import { expect, test as base, EVERYTHING } from "./test.js";

export { EVERYTHING, expect };
export const PASSWORD = "correct horse battery";

let made = 0;

/** An organisation with its owner's cookie and its admin key. */
class Org {
  constructor(inlay, email, cookie, body) {
    Object.assign(this, { inlay, email, cookie, body, key: body.api_key?.key });
  }

  /** One request with the owner's cookie; fails unless it is answered with `status`. */
  async ask(method, path, body, status = 200) {
    const response = await fetch(this.inlay.base + path, {
      method,
      headers: { cookie: this.cookie, "content-type": "application/json" },
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    if (response.status !== status) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  async send(events) {
    const response = await fetch(`${this.inlay.base}/v1/events`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.key}`, "content-type": "application/json" },
      body: JSON.stringify({ events }),
    });
    if (!response.ok) throw new Error(`events: ${response.status} ${await response.text()}`);
  }

  /** Somebody with this role, through an invite. @returns {Promise<string>} the cookie */
  async join(role) {
    const { token } = await this.ask("POST", "/v1/members/invite", { email: `${role}-${this.email}`, role }, 201);
    const response = await fetch(`${this.inlay.base}/v1/auth/accept-invite`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token, name: `A ${role}`, password: PASSWORD }),
    });
    return response.headers.getSetCookie()[0].split(";")[0];
  }

  /** A dashboard, published or not. @returns {Promise<any>} */
  async dashboard(name, widgets, isPublished = false) {
    const board = await this.ask("POST", "/v1/dashboards", { name, widgets }, 201);
    if (isPublished) await this.ask("POST", `/v1/dashboards/${board.id}/publish`, {}, 204);
    return board;
  }

  /** An alert on the widget `calls` of a dashboard. */
  async alert(board, threshold_value) {
    const condition = { condition_type: "threshold", operator: "gt", threshold_value, lookback_minutes: 1440 };
    const watched = { dashboard_id: board.id, widget_id: "calls" };
    return this.ask("POST", "/v1/alerts", { ...watched, ...condition, name: "Busy", email_to: ["a@example.com"] }, 201);
  }

  /** A weekly report of a dashboard. */
  async report(board) {
    const schedule = { cron: "0 8 * * 1", timezone: "UTC" };
    const sent = { schedule, format: "pdf", recipients: ["a@example.com"] };
    return this.ask("POST", "/v1/reports", { ...sent, dashboard_id: board.id, name: "Weekly" }, 201);
  }
}

/** Forty events of three customers, always the same, in the hours before the server's time. */
export function events(now) {
  const models = ["nova", "lyra", "pico"];
  return Array.from({ length: 40 }, (_, n) => ({
    tenant_id: ["acme", "globex", "initech"][n % 3],
    event_name: n % 8 ? "api_call" : "signup",
    event_id: `e${n}`,
    timestamp: new Date(now - n * 7_200_000).toISOString(),
    user_id: `u${n % 11}`,
    string_props: { model: models[n % 3], status: n % 10 ? "ok" : "error" },
    numeric_props: { latency_ms: 100 + n * 5 },
  }));
}

export const test = base.extend({
  /** Makes organisations: `await org()`; `{ filled: true }` with events. */
  org: async ({ inlay }, use) => {
    await use(async ({ filled = false, email = `o${process.pid}-${++made}@example.com` } = {}) => {
      const response = await fetch(`${inlay.base}/v1/auth/register`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ email, password: PASSWORD, name: "Mara Klein", org_name: `Northwind ${made}` }),
      });
      const org = new Org(inlay, email, response.headers.getSetCookie()[0].split(";")[0], await response.json());
      if (filled) await org.send(events(Date.parse("2026-11-20T12:00:00Z")));
      return org;
    });
  },

  /** Opens a page of the console as somebody: `await open(org, "alerts")`. */
  open: async ({ page, inlay, context }, use) => {
    await use(async (who, path = "") => {
      const [name, value] = (who.cookie ?? who).split("=");
      await context.addCookies([{ name, value, url: inlay.base }]);
      await page.goto(`${inlay.base}/console/${path}`);
      await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    });
  },
});

/** A widget of one event. */
export const widget = (id, kind, title, more = {}, layout = { x: 0, y: 0, w: 6, h: 6 }) => ({
  id,
  kind,
  title,
  query: { event_name: "api_call", metric: "count", period: "7d", ...more },
  viz: {},
  layout,
});

/** An organisation with one of everything. */
export async function filled(org) {
  const one = await org({ filled: true });
  const board = await one.dashboard(
    "Usage",
    [
      widget("calls", "number", "Calls", { compare: "previous" }, { x: 0, y: 0, w: 3, h: 3 }),
      widget("models", "bar_list", "By model", { group_by: "model" }, { x: 3, y: 0, w: 5, h: 6 }),
      widget("days", "area", "Per day", { granularity: "day" }, { x: 0, y: 6, w: 12, h: 6 }),
    ],
    true,
  );
  await one.alert(board, 5);
  await one.report(board);
  await one.ask(
    "POST",
    "/v1/saved-queries",
    { name: "Newest", sql: "SELECT * FROM events LIMIT 10", dataset: "events" },
    201,
  );
  await one.ask(
    "POST",
    "/v1/embed-sessions",
    { tenant_id: "acme", dashboard_id: board.id, permissions: { allow_drill_down: true } },
    201,
  );
  await one.ask("POST", "/v1/members/invite", { email: `i-${one.email}`, role: "viewer" }, 201);
  await one.ask("DELETE", "/v1/tenants/nobody/events", undefined, 202);
  const pages = [
    "start",
    "dashboards",
    `dashboards/${board.id}`,
    `dashboards/${board.id}?edit=1`,
    "explore?event=api_call&group=model",
    "sql",
    "data",
    "embed-sessions",
    "alerts",
    "alerts/1",
    "reports",
    "reports/1",
    "deliveries",
    "api-keys",
    "team",
    "usage",
    "audit",
    "erasures",
    "settings",
    "account",
  ];
  return { one, board, pages };
}
