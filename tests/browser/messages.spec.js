// Messages between the page and its host: order, payloads, and who is heard.

import { card, expect, seen, settled, test } from "./lib/test.js";

const post = (page, message) =>
  page.evaluate(
    (data) =>
      document.querySelector("inlay-dashboard").shadowRoot.querySelector("iframe").contentWindow.postMessage(data, "*"),
    message,
  );
const types = async (page) => (await seen(page)).map(({ type }) => type);
/** Without `resize`, which follows wherever the chips need or leave a line. */
const talk = async (page) => (await seen(page)).filter(({ type }) => type !== "resize");
const talked = async (page) => (await talk(page)).map(({ type }) => type);
const clear = (page) =>
  page.evaluate(() => {
    window.seen.length = 0;
  });

test("ready, then resize, then filter, each once; then silence", async ({ page, inlay, mounted }) => {
  await mounted();
  expect(await types(page)).toEqual(["ready", "resize", "filter"]);
  const [ready, resize, filter] = await seen(page);
  expect(ready).toEqual({ type: "ready", dashboardId: inlay.dashboard });
  expect(Number.isInteger(resize.height) && resize.height > 500).toBe(true);
  expect(filter).toEqual({ type: "filter", period: "30d", filters: {}, numericRanges: {}, dateRanges: {} });
  const raw = await page.evaluate(() => window.messages);
  expect(raw.every((message) => message._service === true && message.v === 1)).toBe(true);
  expect(
    await page.evaluate(
      () => document.querySelector("inlay-dashboard").shadowRoot.querySelector("iframe").clientHeight,
    ),
  ).toBe(resize.height);
  await page.waitForTimeout(5000);
  expect(await types(page)).toEqual(["ready", "resize", "filter"]);
});

test("the height grows when cards wrap and shrinks when they do not any more", async ({ page, mounted }) => {
  await mounted();
  const height = async () => (await seen(page, "resize")).at(-1).height;
  const wide = await height();
  await page.setViewportSize({ width: 420, height: 900 });
  await expect.poll(height).toBeGreaterThan(wide + 500);
  await page.setViewportSize({ width: 1240, height: 900 });
  await expect.poll(height).toBe(wide);
});

test("setFilters: period-change comes before filter, payloads are exact, charts follow", async ({ page, mounted }) => {
  const { frame } = await mounted();
  const before = await card(frame, "API requests").locator(".value").textContent();
  await clear(page);
  await page.evaluate(() =>
    window.dash.setFilters({
      period: "7d",
      dimensions: { plan: ["growth", "free"] },
      numericRanges: { latency_ms: { min: 10, max: 900 } },
    }),
  );
  await expect.poll(() => talked(page)).toContain("filter");
  expect(await talk(page)).toEqual([
    { type: "period-change", previousPeriod: "30d", period: "7d" },
    {
      type: "filter",
      period: "7d",
      filters: { plan: ["growth", "free"] },
      numericRanges: { latency_ms: { min: 10, max: 900 } },
      dateRanges: {},
    },
  ]);
  expect(await card(frame, "API requests").locator(".value").textContent()).not.toBe(before);
  await clear(page);
  // An absent part stays, an empty one clears.
  await page.evaluate(() => window.dash.setFilters({ dimensions: {} }));
  await expect.poll(() => talked(page)).toEqual(["filter"]);
  expect((await talk(page))[0]).toEqual({
    type: "filter",
    period: "7d",
    filters: {},
    numericRanges: { latency_ms: { min: 10, max: 900 } },
    dateRanges: {},
  });
});

test("dates in setFilters replace the period", async ({ page, mounted }) => {
  const { frame } = await mounted();
  await clear(page);
  await page.evaluate(() =>
    window.dash.setFilters({ dateRanges: { timestamp: { from: "2026-11-02", to: "2026-11-05" } } }),
  );
  await expect.poll(() => talked(page)).toContain("filter");
  expect((await talk(page)).at(-1).dateRanges).toEqual({
    timestamp: { from: "2026-11-02T00:00:00.000Z", to: "2026-11-05T00:00:00.000Z" },
  });
  await expect(frame.getByRole("list", { name: "Filters" })).toContainText("Nov 2, 2026 – Nov 4, 2026");
});

test("what is not allowed is refused whole, with a code, and changes nothing", async ({ page, mounted }) => {
  await mounted({
    permissions: { locked_filters: { status: "ok" }, allowed_dimensions: ["plan"], allowed_periods: ["7d", "30d"] },
  });
  const wrong = [
    { period: "90d" },
    { period: "30d", dimensions: { model: "lyra" } },
    { dimensions: { status: "error" } },
    { dimensions: { status: "ok" } },
    { numericRanges: { latency_ms: { min: 1 } } },
    { dateRanges: { timestamp: { from: "2026-11-01", to: "2026-11-02" } } },
    { dimensions: "plan" },
    { dimensions: { plan: [] } },
    { dimensions: { plan: 7 } },
    { period: 30 },
    { dimensions: JSON.parse('{"__proto__": "x", "constructor": "y"}') },
  ];
  for (const filters of wrong) {
    await clear(page);
    await post(page, { _service: true, type: "setFilters", filters });
    await expect.poll(() => talked(page), JSON.stringify(filters)).toEqual(["error"]);
    expect((await talk(page))[0]).toMatchObject({ code: "filter_not_allowed", retryable: false });
  }
  await clear(page);
  await page.evaluate(() => window.dash.reload());
  await expect.poll(() => talked(page)).toEqual(["filter"]);
  expect((await talk(page))[0]).toEqual({
    type: "filter",
    period: "30d",
    filters: {},
    numericRanges: {},
    dateRanges: {},
  });
});

test("a burst of setFilters is one change", async ({ page, mounted }) => {
  await mounted();
  let requests = 0;
  page.on("request", (request) => {
    if (request.url().endsWith("/v1/embed/data")) requests++;
  });
  await clear(page);
  await page.evaluate(() => {
    for (const period of ["24h", "90d", "7d"]) window.dash.setFilters({ period });
    window.dash.setFilters({ dimensions: { plan: "free" } });
  });
  await expect.poll(() => talked(page)).toEqual(["period-change", "filter"]);
  expect((await talk(page))[1]).toMatchObject({ period: "7d", filters: { plan: "free" } });
  expect(requests).toBe(1);
});

test("filters that come before the page is ready count after it", async ({ page, inlay, host }) => {
  const { embed_url } = await inlay.mint(inlay.dashboard);
  await page.goto(`${host.origin}/`);
  await page.waitForFunction(() => window.loaded);
  // A host without the helper, which posts all the time; the language makes the page begin later.
  await page.evaluate((url) => {
    const frame = document.createElement("iframe");
    frame.title = "Raw";
    frame.src = `${url}&locale=de`;
    document.body.append(frame);
    const timer = setInterval(
      () => frame.contentWindow.postMessage({ _service: true, type: "setFilters", filters: { period: "7d" } }, "*"),
      5,
    );
    setTimeout(() => clearInterval(timer), 1500);
  }, embed_url);
  const frame = page.frameLocator("iframe[title=Raw]");
  await expect(frame.locator(".segments [aria-pressed=true]")).toHaveText("7 T");
  await settled(frame);
  const said = await page.evaluate(() => window.messages.map(({ type }) => type));
  expect(said.slice(0, 2)).toEqual(["ready", "resize"]);
});

test("reload asks again, at most once a second", async ({ page, inlay, mounted }) => {
  const { frame } = await mounted();
  await settled(frame);
  let requests = 0;
  page.on("request", (request) => {
    if (request.url().endsWith("/v1/embed/data")) requests++;
  });
  await page.evaluate(() => {
    for (let i = 0; i < 20; i++) window.dash.reload();
  });
  await expect.poll(() => requests).toBe(2);
  await page.waitForTimeout(1500);
  expect(requests).toBe(2);
  expect(inlay.base).toBeTruthy();
});

test("drilling says apply, clear and detail", async ({ page, mounted }) => {
  const { frame } = await mounted({ permissions: { allow_drill_down: true } });
  await clear(page);
  await card(frame, "Requests by plan")
    .getByRole("button", { name: /^growth/ })
    .click();
  await expect.poll(() => talked(page)).toEqual(["drill", "filter"]);
  await frame.getByRole("button", { name: "Remove filter Plan" }).click();
  await expect.poll(() => talked(page)).toEqual(["drill", "filter", "drill", "filter"]);
  await card(frame, "Requests by country").getByRole("button", { name: /^US/ }).click();
  await expect
    .poll(() => seen(page, "drill"))
    .toEqual([
      { type: "drill", dimension: "plan", value: "growth", action: "apply" },
      { type: "drill", dimension: "plan", value: "growth", action: "clear" },
      { type: "drill", dimension: "country", value: "US", action: "detail" },
    ]);
  await expect(frame.getByRole("dialog", { name: "US" })).toBeVisible();
});

test("foreign windows, wrong markers, unknown types and giant payloads are ignored", async ({
  page,
  host,
  mounted,
}) => {
  host.routes.set("/stranger", host.page("<p>stranger</p>"));
  const { frame } = await mounted();
  await clear(page);
  for (const message of [
    { _service: "true", type: "setFilters", filters: { period: "7d" } },
    { type: "setFilters", filters: { period: "7d" } },
    { _service: true, type: "drop" },
    { _service: true, type: "setFilters" },
    { _service: true, type: "setTheme", theme: 7 },
    { _service: true },
    null,
    7,
    "reload",
    [],
    { _service: true, type: "setFilters", filters: { period: "7d", dimensions: { plan: "x".repeat(70_000) } } },
  ])
    await post(page, message);
  // Another window that knows the frame.
  await page.evaluate(() => {
    const stranger = document.createElement("iframe");
    stranger.src = "/stranger";
    document.body.append(stranger);
    return new Promise((resolve) => {
      stranger.onload = resolve;
    });
  });
  const strange = page.frames().find((one) => one.url().endsWith("/stranger"));
  await strange.evaluate(() =>
    parent.document
      .querySelector("inlay-dashboard")
      .shadowRoot.querySelector("iframe")
      .contentWindow.postMessage({ _service: true, type: "setFilters", filters: { period: "7d" } }, "*"),
  );
  // And one that plays the page towards the host.
  await strange.evaluate(() =>
    parent.postMessage(
      { _service: true, type: "filter", period: "1h", filters: {}, numericRanges: {}, dateRanges: {} },
      "*",
    ),
  );
  await page.evaluate(() => window.dash.reload());
  await expect.poll(() => talked(page)).toEqual(["filter"]);
  expect((await talk(page))[0].period).toBe("30d");
  await expect(frame.getByRole("button", { name: "30d" })).toHaveAttribute("aria-pressed", "true");
});

test("the helper hears its own page only, and only what that can say", async ({ page, host, mounted, expected }) => {
  expected.push(/can escape its sandboxing/);
  await mounted();
  await clear(page);
  const inner = page.frames().find((one) => one.url().includes("/embed/"));
  await inner.evaluate(() => {
    for (const message of [
      { _service: true, type: "hack", x: 1 },
      { _service: true, type: "session-swapped" },
      { type: "filter" },
      { _service: true, type: "resize", height: "900" },
      { _service: true, type: "resize", height: 1e9 },
      7,
      null,
    ])
      parent.postMessage(message, "*");
  });
  await expect.poll(() => types(page)).toEqual(["resize"]);
  expect(
    await page.evaluate(
      () => document.querySelector("inlay-dashboard").shadowRoot.querySelector("iframe").clientHeight,
    ),
  ).toBe(20_000);
  // The same frame, taken over by a page of another origin.
  host.routes.set("/taken", () => ({ body: '<!doctype html><title>x</title><script src="/taken.js"></script>' }));
  host.routes.set("/taken.js", () => ({
    type: "text/javascript",
    body: 'parent.postMessage({ _service: true, type: "filter", period: "1h", filters: {}, numericRanges: {}, dateRanges: {} }, "*");',
  }));
  await clear(page);
  await page.evaluate((url) => {
    document.querySelector("inlay-dashboard").shadowRoot.querySelector("iframe").src = url;
  }, `${host.origin}/taken`);
  await page.waitForTimeout(800);
  expect(await seen(page)).toEqual([]);
});

test("configured origins alone may frame the page and speak to it", async ({
  page,
  inlay,
  host,
  expected,
  mounted,
}) => {
  const { EVERYTHING } = await import("./lib/server.js");
  const mine = await inlay.publish("Mine", [EVERYTHING[0]], { allowed_origins: [host.origin] });
  await mounted({ dashboard: mine });
  await clear(page);
  await page.evaluate(() => window.dash.setFilters({ period: "7d" }));
  await expect.poll(() => talked(page)).toEqual(["period-change", "filter"]);
  expected.push(/frame-ancestors|ERR_BLOCKED_BY_RESPONSE|chrome-error/);
  const theirs = await inlay.publish("Theirs", [EVERYTHING[0]], { allowed_origins: ["https://app.example.com"] });
  const { embed_url } = await inlay.mint(theirs);
  await page.goto(`${host.origin}/`);
  await page.waitForFunction(() => window.loaded);
  await page.evaluate((embedUrl) => window.mount({ embedUrl }), embed_url);
  await page.waitForTimeout(1500);
  expect(await talk(page)).toEqual([]);
});

test("an ended or wrong session is told to the host with its code", async ({ page, inlay, host, expected }) => {
  expected.push(/401/);
  const { embed_url } = await inlay.mint(inlay.dashboard);
  const { data } = await inlay.ask("GET", "/v1/embed-sessions");
  await inlay.ask("DELETE", `/v1/embed-sessions/${data[0].id}`, undefined, 204);
  for (const [url, code] of [
    [embed_url, "session_expired"],
    [`${embed_url}x`, "invalid_link"],
  ]) {
    await page.goto(`${host.origin}/`);
    await page.waitForFunction(() => window.loaded);
    await page.evaluate((embedUrl) => window.mount({ embedUrl }), url);
    await expect.poll(() => types(page)).toEqual(["error", "resize"]);
    expect((await seen(page))[0].code).toBe(code);
  }
});
