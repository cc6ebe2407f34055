// Every page for everybody: axe in both themes, narrow pages, the keyboard, ⌘K, budgets of bytes and time.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, test, widget } from "./lib/console.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

async function findings(page) {
  await page.evaluate(axe);
  return page.evaluate(async (tags) => {
    const { violations } = await window.axe.run(document, { runOnly: tags, resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  }, TAGS);
}

/** An organisation with one of everything. */
async function filled(org) {
  const one = await org({ filled: true });
  const board = await one.dashboard("Usage", [
    widget("calls", "number", "Calls", { compare: "previous" }, { x: 0, y: 0, w: 3, h: 3 }),
    widget("models", "bar_list", "By model", { group_by: "model" }, { x: 3, y: 0, w: 5, h: 6 }),
    widget("days", "area", "Per day", { granularity: "day" }, { x: 0, y: 6, w: 12, h: 6 }),
  ], true);
  await one.ask("POST", "/v1/alerts", { dashboard_id: board.id, widget_id: "calls", name: "Busy", condition_type: "threshold", operator: "gt", threshold_value: 5, lookback_minutes: 1440, email_to: ["a@example.com"] }, 201);
  await one.ask("POST", "/v1/reports", { dashboard_id: board.id, name: "Weekly", schedule: { cron: "0 8 * * 1", timezone: "UTC" }, format: "pdf", recipients: ["a@example.com"] }, 201);
  await one.ask("POST", "/v1/saved-queries", { name: "Newest", sql: "SELECT * FROM events LIMIT 10", dataset: "events" }, 201);
  await one.ask("POST", "/v1/embed-sessions", { tenant_id: "acme", dashboard_id: board.id, permissions: { allow_drill_down: true } }, 201);
  await one.ask("POST", "/v1/members/invite", { email: `i-${one.email}`, role: "viewer" }, 201);
  await one.ask("DELETE", "/v1/tenants/nobody/events", undefined, 202);
  const pages = ["start", "dashboards", `dashboards/${board.id}`, `dashboards/${board.id}?edit=1`, "explore?event=api_call&group=model", "sql", "data", "embed-sessions", "alerts", "alerts/1", "reports", "reports/1", "deliveries", "api-keys", "team", "usage", "audit", "erasures", "settings", "account"];
  return { one, board, pages };
}

const still = (page) => expect(page.locator("[aria-busy=true]")).toHaveCount(0);

test.describe("axe", () => {
  test.use({ bypassCSP: true });
  for (const colorScheme of ["light", "dark"]) {
    test(`finds nothing on any page: ${colorScheme}`, async ({ page, inlay, org, open }) => {
      test.setTimeout(180_000);
          await page.emulateMedia({ colorScheme });
      const { one, pages } = await filled(org);
      for (const path of ["login", "register", "forgot-password"]) {
        await page.goto(`${inlay.base}/console/${path}`);
        await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
        expect(await findings(page), path).toEqual([]);
      }
      for (const path of pages) {
        await open(one, path);
        await still(page);
        expect(await findings(page), path).toEqual([]);
      }
      for (const path of ["alerts?new=1", "reports?new=1", "api-keys?new=1", "embed-sessions?new=1", "team?invite=1"]) {
        await open(one, path);
        await expect(page.getByRole("dialog")).toBeVisible();
        await still(page);
        expect(await findings(page), path).toEqual([]);
      }
      await page.keyboard.press("Escape");
      await page.keyboard.press("ControlOrMeta+k");
      expect(await findings(page), "palette").toEqual([]);
    });
  }
});

test("320 pixels: nothing scrolls sideways, the menu is a drawer", async ({ page, org, open }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 320, height: 640 });
  const { one, pages } = await filled(org);
  for (const path of pages) {
    await open(one, path);
    await still(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), path).toBeLessThanOrEqual(0);
  }
  await page.getByRole("button", { name: "Menu", exact: true }).click();
  await page.getByRole("link", { name: "Team" }).click();
  await expect(page.getByRole("heading", { name: "Team" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Alerts", exact: true })).not.toBeInViewport();
});

test("⌘K finds pages, dashboards, queries and actions; ? shows the keys", async ({ page, org, open }) => {
  const { one } = await filled(org);
  await open(one, "team");
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("usa");
  await expect(page.getByRole("option", { name: /^Usage Dashboard/ })).toBeVisible();
  await page.getByRole("option", { name: /^Usage Dashboard/ }).click();
  await expect(page.getByRole("region", { name: "By model" })).toBeVisible();
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("newest");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("textbox", { name: "SQL statement" })).toContainText("LIMIT 10");
  await page.getByRole("heading", { level: 1 }).click();
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("dark");
  await page.keyboard.press("Enter");
  await expect(page.locator("html")).toHaveAttribute("data-mode", "dark");
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-mode", "dark");
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: "Keyboard shortcuts" })).toBeVisible();
});

test("environments are apart, and stand in the address", async ({ page, inlay, org, open }) => {
  const one = await org({ filled: true });
  await open(one, "data");
  await expect(page.getByText("signup")).toBeVisible();
  await page.getByLabel("Environment").selectOption("Development");
  await expect(page).toHaveURL(/env=development/);
  await expect(page.getByText("signup")).toHaveCount(0);
  await page.getByRole("link", { name: "Explore" }).click();
  await expect(page).toHaveURL(`${inlay.base}/console/explore?env=development`);
});

test("bytes of pages, a first paint and a change of page stay within their budgets", async ({ page, inlay, org, open }) => {
  test.setTimeout(120_000);
  const { one, pages } = await filled(org);
  const sizes = new Map();
  const client = await page.context().newCDPSession(page);
  const names = new Map();
  client.on("Network.responseReceived", ({ requestId, response }) => names.set(requestId, new URL(response.url).pathname.split("/").pop()));
  client.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => names.get(requestId)?.endsWith(".js") && sizes.set(names.get(requestId), encodedDataLength));
  await client.send("Network.enable");
  const loaded = async (path) => {
    sizes.clear();
    await open(one, path);
    await still(page);
    await page.waitForLoadState("networkidle");
    return [...sizes.keys()];
  };
  await client.send("Network.setCacheDisabled", { cacheDisabled: true });
  const total = (names) => names.reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0);
  const first = await loaded("team");
  const base = total(first);
  expect(base, "JavaScript of a first page").toBeLessThanOrEqual(70 * 1024);
  for (const path of pages) {
    const scripts = await loaded(path);
    const more = total(scripts.filter((name) => !first.includes(name)));
    expect(more, path).toBeLessThanOrEqual((path === "sql" ? 130 : 40) * 1024);
    console.log(`${path}: ${Math.round(total(scripts) / 1024)} KB of JavaScript`);
  }
  // Slow 4G and a processor four times slower.
  await client.send("Network.emulateNetworkConditions", { offline: false, latency: 150, downloadThroughput: 1.6e6 / 8, uploadThroughput: 750e3 / 8 });
  await client.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  await page.goto(`${inlay.base}/console/team`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  const lcp = await page.evaluate(() => new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries().at(-1)?.startTime)).observe({ type: "largest-contentful-paint", buffered: true })));
  console.log(`largest contentful paint: ${Math.round(lcp)} ms`);
  expect(lcp).toBeLessThanOrEqual(1500);
  await client.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
  await client.send("Emulation.setCPUThrottlingRate", { rate: 1 });
  for (const name of ["Alerts", "Reports", "Audit log", "Dashboards"]) {
    await page.getByRole("link", { name, exact: true }).hover();
    await page.waitForLoadState("networkidle");
    const took = await page.evaluate((title) => new Promise((resolve) => {
      const start = performance.now();
      const look = () => (document.querySelector("h1")?.textContent === title ? requestAnimationFrame(() => resolve(performance.now() - start)) : requestAnimationFrame(look));
      [...document.querySelectorAll("nav a")].find((link) => link.textContent === title)?.click();
      look();
    }), name);
    expect(took, `to ${name}`).toBeLessThanOrEqual(100);
  }
});
