// The helper: swapping sessions without a flicker, renewing them, and leaving nothing behind.

import { card, expect, seen, settled, test } from "./lib/test.js";

const HOUR_MS = 3_600_000;
const types = async (page) => (await seen(page)).map(({ type }) => type).filter((type) => type !== "resize");
const frames = (page) =>
  page.evaluate(
    () =>
      [...document.querySelectorAll("inlay-dashboard")].flatMap((one) => [...one.shadowRoot.querySelectorAll("iframe")])
        .length,
  );

/** A host whose backend mints a new session for each call; `behave` may change what the callback does. */
async function renewing(page, inlay, host, { expires_in = 600, before = () => {}, behave = "" } = {}) {
  const given = [];
  host.routes.set("/session", async () => {
    const session = await inlay.mint(inlay.dashboard, { expires_in });
    given.push(session.embed_url);
    return { type: "application/json", body: JSON.stringify(session) };
  });
  await page.clock.install();
  await page.addInitScript(before);
  await page.goto(`${host.origin}/`);
  await page.waitForFunction(() => window.loaded);
  await page.evaluate((code) => {
    window.calls = 0;
    window.behave = new Function("call", `return ${code || "null"}`);
    window.mount({
      fetchEmbedUrl: async ({ signal }) => {
        window.calls++;
        const special = window.behave(window.calls);
        if (special) return special;
        return (await fetch("/session", { method: "POST", signal })).json();
      },
    });
  }, behave);
  const frame = page.frameLocator("iframe").first();
  await expect(frame.getByRole("heading", { level: 1 })).toBeVisible();
  await expect.poll(() => types(page)).toEqual(["ready", "filter"]);
  return { given, frame };
}

/** Lets the page's time pass at once; nothing that needs the network falls into it. */
const pass = (page, ms) => page.clock.runFor(ms);

/** Lets it pass slowly, so that what waits for the network gets its turn, until something is so. */
async function until(page, isSo, limit_ms = 200_000, step_ms = 250) {
  for (let passed = 0; passed < limit_ms; passed += step_ms) {
    if (await isSo()) return;
    await page.clock.runFor(step_ms);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("it never was so");
}
const swapped = (page) => async () => (await seen(page, "session-swapped")).length > 0;
const calls = (page, n) => async () => (await page.evaluate(() => window.calls)) >= n;
/** Until the host is asked for a new session. Nothing waits for the network before, so that time may pass faster. */
const renewal = (page, limit_ms = 200_000) => until(page, calls(page, 2), limit_ms, 1000);

test("setEmbedUrl swaps behind the picture, keeps the filters, says so once, and removes the old frame", async ({
  page,
  inlay,
  mounted,
}) => {
  const { frame } = await mounted();
  await page.evaluate(() => window.dash.setFilters({ period: "7d", dimensions: { plan: "growth" } }));
  await expect(frame.getByRole("list", { name: "Filters" })).toContainText("growth");
  await settled(frame);
  const value = await card(frame, "API requests").locator(".value").textContent();
  const next = await inlay.mint(inlay.dashboard);
  await page.evaluate(() => {
    window.seen.length = 0;
    // Each frame drawn must show a page that was ready before.
    window.blank = 0;
    const look = () => {
      const shown = [...document.querySelector("inlay-dashboard").shadowRoot.querySelectorAll("iframe")].filter(
        (one) => getComputedStyle(one).opacity === "1",
      );
      if (shown.length !== 1 || shown[0].clientHeight < 500) window.blank++;
      if (!window.done) requestAnimationFrame(look);
    };
    look();
  });
  const shots = [];
  const swap = page.evaluate((url) => window.dash.setEmbedUrl(url), next.embed_url);
  let running = true;
  const watch = (async () => {
    while (running) shots.push(await page.screenshot({ clip: { x: 0, y: 60, width: 600, height: 200 } }));
  })();
  await swap;
  running = false;
  await watch;
  await page.evaluate(() => {
    window.done = true;
  });
  expect(await page.evaluate(() => window.blank)).toBe(0);
  // A picture without content compresses to almost nothing.
  for (const shot of shots) expect(shot.length).toBeGreaterThan(3000);
  expect(await frames(page)).toBe(1);
  await expect(frame.getByRole("list", { name: "Filters" })).toContainText("growth");
  await expect(frame.getByRole("button", { name: "7d" })).toHaveAttribute("aria-pressed", "true");
  await expect(card(frame, "API requests").locator(".value")).toHaveText(value);
  expect(await seen(page, "session-swapped")).toEqual([
    { type: "session-swapped", dashboardId: inlay.dashboard, expiresAt: new Date(next.expires_at).toISOString() },
  ]);
  await page.evaluate(() => {
    window.seen.length = 0;
    window.dash.setFilters({ period: "30d" });
  });
  await expect.poll(() => types(page)).toEqual(["period-change", "filter"]);
});

test("an address that fails keeps the old page", async ({ page, mounted, expected }) => {
  expected.push(/401/);
  const { frame, session } = await mounted();
  for (const bad of [session.embed_url.slice(0, -8), "javascript:alert(1)", "data:text/html,x", "http://"]) {
    const error = await page.evaluate(
      (url) =>
        window.dash.setEmbedUrl(url).then(
          () => null,
          (reason) => String(reason.message ?? reason),
        ),
      bad,
    );
    expect(error, bad).toBeTruthy();
    expect(await frames(page)).toBe(1);
  }
  await expect(frame.getByRole("heading", { level: 1 })).toHaveText("API usage");
  expect((await seen(page, "error")).map(({ code }) => code)).toEqual([
    "swap_failed",
    "swap_failed",
    "swap_failed",
    "swap_failed",
  ]);
  expect(await seen(page, "session-swapped")).toEqual([]);
});

test("a later session cancels an earlier one", async ({ page, inlay, mounted }) => {
  await mounted();
  const [first, second] = [await inlay.mint(inlay.dashboard), await inlay.mint(inlay.dashboard)];
  const results = await page.evaluate(
    ([a, b]) =>
      Promise.allSettled([window.dash.setEmbedUrl(a), window.dash.setEmbedUrl(b)]).then((all) =>
        all.map((one) => one.status),
      ),
    [first.embed_url, second.embed_url],
  );
  expect(results).toEqual(["rejected", "fulfilled"]);
  expect(await frames(page)).toBe(1);
  expect(await seen(page, "session-swapped")).toHaveLength(1);
  expect(await seen(page, "error")).toEqual([]);
});

test("who works in the frame with the keyboard stays in it", async ({ page, inlay, mounted }) => {
  const { frame } = await mounted();
  await frame.getByRole("button", { name: "7d" }).focus();
  const inside = () => page.evaluate(() => document.activeElement?.shadowRoot?.activeElement?.tagName);
  expect(await inside()).toBe("IFRAME");
  await page.evaluate((url) => window.dash.setEmbedUrl(url), (await inlay.mint(inlay.dashboard)).embed_url);
  expect(await inside()).toBe("IFRAME");
});

test("another dashboard drops the filters", async ({ page, inlay, mounted }) => {
  const { EVERYTHING } = await import("./lib/server.js");
  const { frame } = await mounted();
  await page.evaluate(() => window.dash.setFilters({ period: "7d" }));
  await expect.poll(() => types(page)).toContain("period-change");
  const other = await inlay.publish("Another", [EVERYTHING[0]]);
  const { embed_url } = await inlay.mint(other);
  await page.evaluate((url) => window.dash.setEmbedUrl(url), embed_url);
  await expect(frame.getByRole("heading", { level: 1 })).toHaveText("Another");
  await expect(frame.getByRole("button", { name: "30d" })).toHaveAttribute("aria-pressed", "true");
});

for (const [name, offset] of [
  ["right", 0],
  ["an hour ahead", HOUR_MS],
  ["an hour behind", -HOUR_MS],
]) {
  test(`a session is renewed at 80 % of its life with a clock that is ${name}`, async ({ page, inlay, host }) => {
    const { given } = await renewing(page, inlay, host, { expires_in: 600 });
    await page.clock.setSystemTime(Date.now() + offset);
    await pass(page, 425_000);
    expect(given).toHaveLength(1);
    await renewal(page, 110_000);
    await until(page, swapped(page), 20_000);
    expect(given).toHaveLength(2);
    expect((await types(page)).slice(0, 3)).toEqual(["ready", "filter", "session-swapped"]);
    expect(await frames(page)).toBe(1);
  });
}

test("a hidden tab does not renew; it does when it is seen again", async ({ page, inlay, host }) => {
  const { given } = await renewing(page, inlay, host, { expires_in: 600 });
  const visible = (state) =>
    page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
    }, !state);
  await visible(false);
  await pass(page, 700_000);
  await page.waitForTimeout(300);
  expect(given).toHaveLength(1);
  await visible(true);
  await until(page, swapped(page));
  expect(given).toHaveLength(2);
});

test("after failures it tries again later", async ({ page, inlay, host, expected }) => {
  expected.push(/inlay-dashboard/);
  const { given } = await renewing(page, inlay, host, {
    behave: "call > 1 && call < 4 ? Promise.reject(new Error('down')) : null",
  });
  await pass(page, 425_000);
  await renewal(page);
  await until(page, swapped(page));
  expect(given).toHaveLength(2);
  expect(await page.evaluate(() => window.calls)).toBe(4);
  expect((await types(page)).slice(0, 3)).toEqual(["ready", "filter", "session-swapped"]);
});

test("offline in the middle of a renewal: online is a reason to try at once", async ({
  page,
  context,
  inlay,
  host,
  expected,
}) => {
  expected.push(/inlay-dashboard|ERR_INTERNET_DISCONNECTED/);
  const { given } = await renewing(page, inlay, host);
  await pass(page, 425_000);
  await context.setOffline(true);
  await renewal(page);
  await until(page, calls(page, 3));
  const before = await page.evaluate(() => window.calls);
  await context.setOffline(false);
  await expect.poll(() => page.evaluate(() => window.calls)).toBeGreaterThan(before);
  await until(page, swapped(page), 20_000);
  expect(given).toHaveLength(2);
});

test("a swap loads where the frame is out of sight, and keeps what was shown although something else was refused", async ({
  page,
  inlay,
  host,
  mounted,
}) => {
  const { frame } = await mounted({ permissions: { allowed_periods: ["7d", "30d"] }, options: { loading: "lazy" } });
  await page.evaluate(() => window.dash.setFilters({ dimensions: { plan: "growth" } }));
  await expect.poll(async () => (await seen(page, "filter")).at(-1).filters.plan).toBe("growth");
  await settled(frame);
  await page.evaluate(() => window.dash.setFilters({ period: "1h" }));
  await expect.poll(() => seen(page, "error")).toHaveLength(1);
  expect(await page.evaluate(() => window.dash.getFilters())).toMatchObject({
    period: "30d",
    dimensions: { plan: "growth" },
  });
  await page.evaluate(() => {
    document.querySelector("#a").style.marginTop = "9000px";
    window.scrollTo(0, 0);
  });
  const { embed_url } = await inlay.mint(inlay.dashboard, { permissions: { allowed_periods: ["7d", "30d"] } });
  await page.evaluate((url) => window.dash.setEmbedUrl(url), embed_url);
  await expect(frame.getByRole("list", { name: "Filters" })).toContainText("growth");
  expect(await page.evaluate(() => window.dash.getFilters())).toMatchObject({
    period: "30d",
    dimensions: { plan: "growth" },
  });
  expect(host.origin).toBeTruthy();
});

test("a callback that rejects with nothing is a failure like others", async ({ page, inlay, host, expected }) => {
  expected.push(/inlay-dashboard/);
  const { given } = await renewing(page, inlay, host, { behave: "call > 1 && call < 3 ? Promise.reject() : null" });
  await pass(page, 425_000);
  await renewal(page);
  await until(page, swapped(page));
  expect(given).toHaveLength(2);
});

test("properties without a value are attributes that are not there", async ({ page, mounted }) => {
  await mounted({ options: { locale: undefined, label: null, mode: undefined } });
  expect(
    await page.evaluate(() =>
      document
        .querySelector("inlay-dashboard")
        .getAttributeNames()
        .filter((name) => name !== "src" && name !== "style"),
    ),
  ).toEqual([]);
  const error = await page.evaluate(() => {
    window.mount({ embedUrl: { error: "no" } }, "#b");
    return new Promise((resolve) => window.dash.on("error", resolve));
  });
  expect(error.code).toBe("swap_failed");
});

test("who is not allowed any more is not asked again", async ({ page, inlay, host, expected }) => {
  expected.push(/inlay-dashboard/);
  for (const behave of [
    "call > 1 ? Promise.reject(Object.assign(new Error('no'), { status: 401 })) : null",
    "call > 1 ? Promise.resolve(0).then(() => null) : null",
  ]) {
    const { given } = await renewing(page, inlay, host, { behave });
    await pass(page, 425_000);
    await renewal(page);
    await expect.poll(() => seen(page, "error")).toHaveLength(1);
    await pass(page, 60_000);
    for (const type of ["online", "pageshow", "visibilitychange"])
      await page.evaluate((name) => window.dispatchEvent(new Event(name)), type);
    await page.waitForTimeout(100);
    expect(await page.evaluate(() => window.calls)).toBe(2);
    expect(given).toHaveLength(1);
    expect((await seen(page, "error"))[0].code).toBe("renewal_failed");
    expect(await frames(page)).toBe(1);
  }
});

test("a callback that hangs is given up, one that gives the old session is a failure; both end", async ({
  page,
  inlay,
  host,
  expected,
}) => {
  expected.push(/inlay-dashboard/);
  const old = "document.querySelector('inlay-dashboard').shadowRoot.querySelector('iframe').src.split('&theme')[0]";
  for (const behave of ["call > 1 ? new Promise(() => {}) : null", `call > 1 ? Promise.resolve(${old}) : null`]) {
    const { given } = await renewing(page, inlay, host, { expires_in: 3600, behave });
    await pass(page, 2_590_000);
    await until(page, async () => (await seen(page, "error")).length > 0, 900_000, 3000);
    // The first, and five more after 2, 4, 8, 16 and 32 s.
    expect(await page.evaluate(() => window.calls)).toBe(7);
    expect((await seen(page, "error"))[0].code).toBe("renewal_failed");
    expect(given).toHaveLength(1);
    expect(await frames(page)).toBe(1);
  }
});

test("when the page says that the session has ended, a new one comes before the viewer notices", async ({
  page,
  inlay,
  host,
  expected,
}) => {
  expected.push(/401/);
  const { frame, given } = await renewing(page, inlay, host);
  const { data } = await inlay.ask("GET", "/v1/embed-sessions");
  await inlay.ask("DELETE", `/v1/embed-sessions/${data[0].id}`, undefined, 204);
  await frame.getByRole("button", { name: "7d" }).click();
  await until(page, swapped(page), 4000);
  expect(given).toHaveLength(2);
  await pass(page, 6000);
  await expect(page.frameLocator("iframe").getByRole("alert")).toHaveCount(0);
});

test("an element that is taken away in the middle leaves nothing", async ({ page, inlay, host }) => {
  await renewing(page, inlay, host, {
    behave: "call > 1 ? new Promise((resolve) => { window.answer = resolve; }) : null",
  });
  await pass(page, 425_000);
  await renewal(page);
  await page.evaluate(() => {
    window.seen.length = 0;
    window.dash.destroy();
    window.answer("http://localhost/none");
  });
  await pass(page, 600_000);
  await page.waitForTimeout(300);
  expect(
    await page.evaluate(() => [window.calls, window.seen.length, document.querySelectorAll("iframe").length]),
  ).toEqual([2, 0, 0]);
});

test("an element can be moved, declared before it is defined, and stand twice on a page", async ({
  page,
  inlay,
  host,
}) => {
  const [a, b] = [await inlay.mint(inlay.dashboard), await inlay.mint(inlay.dashboard, { tenant_id: "rival" })];
  host.routes.set(
    "/early",
    host.page(
      `<inlay-dashboard src="${a.embed_url.replace("&", "&amp;")}" label="First"></inlay-dashboard><div id="a"></div><div id="b"></div>`,
    ),
  );
  await page.goto(`${host.origin}/early`);
  await page.waitForFunction(() => window.loaded);
  await page.evaluate((embedUrl) => window.mount({ embedUrl, label: "Second" }, "#b"), b.embed_url);
  const value = (label) =>
    page.frameLocator(`iframe[title=${label}]`).getByRole("region", { name: "API requests" }).locator(".value");
  await expect(value("Second")).toHaveText("77");
  await expect(value("First")).not.toHaveText("77");
  const first = await value("First").textContent();
  await page.evaluate(() => document.querySelector("#a").append(document.querySelector("[label=First]")));
  await expect(value("First")).toHaveText(first);
  expect(await frames(page)).toBe(2);
});

test("properties set before the element is defined count", async ({ page, inlay, host }) => {
  const { embed_url } = await inlay.mint(inlay.dashboard);
  host.routes.set("/props.js", () => ({
    type: "text/javascript",
    body: `
    const element = document.createElement("inlay-dashboard");
    Object.assign(element, { src: ${JSON.stringify(embed_url)}, filters: { period: "7d" }, theme: { mode: "dark" } });
    document.body.append(element);
    await import("${inlay.base}/sdk/v1/embed.js");
    window.loaded = true;`,
  }));
  host.routes.set("/props", () => ({
    body: '<!doctype html><title>x</title><link rel="icon" href="data:,"><body><script type="module" src="/props.js"></script>',
  }));
  await page.goto(`${host.origin}/props`);
  const frame = page.frameLocator("iframe");
  await expect(frame.getByRole("button", { name: "7d" })).toHaveAttribute("aria-pressed", "true");
  await expect(frame.locator("html")).toHaveAttribute("data-mode", "dark");
});

test("slots show while there is nothing else, attributes set height and language", async ({
  page,
  inlay,
  host,
  expected,
}) => {
  expected.push(/inlay-dashboard/);
  const { embed_url } = await inlay.mint(inlay.dashboard);
  host.routes.set(
    "/slots",
    host.page(`<inlay-dashboard id="one"><p slot="loading">One moment</p><p slot="error">Not today</p></inlay-dashboard>
    <inlay-dashboard src="${embed_url.replace("&", "&amp;")}" height="333" locale="de" loading="lazy"></inlay-dashboard>`),
  );
  await page.goto(`${host.origin}/slots`);
  await page.waitForFunction(() => window.loaded);
  await expect(page.getByText("One moment")).toBeVisible();
  await expect(page.getByText("Not today")).toBeHidden();
  await page.evaluate(() => {
    document.querySelector("#one").fetchEmbedUrl = async () => null;
  });
  await expect(page.getByText("Not today")).toBeVisible();
  await expect(page.getByText("One moment")).toBeHidden();
  const frame = page.locator("iframe");
  await expect(frame).toHaveCSS("height", "333px");
  await expect(page.frameLocator("iframe").getByRole("button", { name: "Filter", exact: true })).toBeVisible();
  await expect(page.frameLocator("iframe").locator("html")).toHaveAttribute("lang", "de");
});

test("React 19 mounts it twice in strict mode and it works", async ({ page, inlay, host }) => {
  const { build } = await import("esbuild");
  const { readFileSync } = await import("node:fs");
  // The wrapper is the one that the documentation tells people to copy.
  const guide = readFileSync(new URL("../../server/doc/embedding.md", import.meta.url), "utf8");
  const wrapper = /```jsx\n(.*?)```/s.exec(guide)[1];
  const source = `
    import { StrictMode, useState } from "react";
    import { createRoot } from "react-dom/client";
    ${wrapper.replaceAll("{base_url}", inlay.base)}
    window.drills = [];
    window.mints = 0;
    const mint = async ({ signal }) => { window.mints++; return (await fetch("/session", { method: "POST", signal })).json(); };
    function App() {
      const [filters, setFilters] = useState({ period: "7d" });
      window.setFilters = setFilters;
      return <UsageDashboard fetchEmbedUrl={mint} theme={{ mode: "dark" }} filters={filters} onDrill={(drill) => window.drills.push(drill)} />;
    }
    createRoot(document.getElementById("root")).render(<StrictMode><App /></StrictMode>);`;
  const { outputFiles } = await build({
    stdin: { contents: source, loader: "jsx", resolveDir: process.cwd() },
    bundle: true,
    write: false,
    format: "esm",
    external: ["http://*"],
    define: { "process.env.NODE_ENV": '"development"' },
    jsx: "automatic",
  });
  host.routes.set("/react.js", () => ({ type: "text/javascript", body: outputFiles[0].text }));
  host.routes.set("/react", () => ({
    body: '<!doctype html><title>x</title><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="/react.js"></script>',
  }));
  host.routes.set("/session", async () => ({
    type: "application/json",
    body: JSON.stringify(await inlay.mint(inlay.dashboard, { permissions: { allow_drill_down: true } })),
  }));
  await page.goto(`${host.origin}/react`);
  const frame = page.frameLocator("iframe");
  await expect(frame.getByRole("button", { name: "7d" })).toHaveAttribute("aria-pressed", "true");
  await expect(frame.locator("html")).toHaveAttribute("data-mode", "dark");
  await settled(frame);
  await page.evaluate(() => window.setFilters({ period: "90d" }));
  await expect(frame.getByRole("button", { name: "90d" })).toHaveAttribute("aria-pressed", "true");
  await card(frame, "Requests by plan")
    .getByRole("button", { name: /^growth/ })
    .click();
  await expect
    .poll(() => page.evaluate(() => window.drills))
    .toEqual([{ dimension: "plan", value: "growth", action: "apply" }]);
  expect(await page.locator("iframe").count()).toBe(1);
});

test("a console of ours cannot be framed, and the API's pages neither", async ({ page, inlay, host, expected }) => {
  expected.push(/frame-ancestors|X-Frame-Options|ERR_BLOCKED_BY_RESPONSE|Refused to frame|violates/);
  for (const path of ["/docs", "/demo", "/v1/plans"]) {
    const response = await fetch(inlay.base + path);
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy + (response.headers.get("x-frame-options") ?? ""), path).toMatch(/frame-ancestors 'none'|DENY/);
  }
  expect(host.origin).toBeTruthy();
  expect(page.url()).toBe("about:blank");
});

test("the demo page shows what a host can do", async ({ page, inlay, expected }) => {
  // Host and embed are of one origin here, and only here.
  expected.push(/can escape its sandboxing/);
  await page.goto(`${inlay.base}/demo`);
  const frame = page.frameLocator("iframe");
  const value = card(frame, "API requests").locator(".value");
  await expect(value).toBeVisible();
  const northwind = await value.textContent();
  await page.getByLabel("Tenant").selectOption("atlas");
  await expect(page.getByRole("list", { name: "Messages" })).toContainText("session-swapped");
  await expect(value).not.toHaveText(northwind);
  await page.getByLabel("Theme").selectOption("night");
  await expect(frame.locator("html")).toHaveAttribute("data-mode", "dark");
  await page.getByRole("button", { name: "Plan: enterprise" }).click();
  await expect(frame.getByRole("list", { name: "Filters" })).toContainText("enterprise");
  await page.getByRole("button", { name: "Clear filters" }).click();
  await expect(frame.getByRole("list", { name: "Filters" })).toHaveCount(0);
  await expect(page.getByLabel("The code")).toContainText("mountDashboard");
});
