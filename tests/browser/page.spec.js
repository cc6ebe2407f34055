// The page: what it draws, and which states it can be in.

import { card, count, EVERYTHING, expect, full, settled, test } from "./lib/test.js";

test("every kind draws what the API answers", async ({ page, inlay, embed }) => {
  await embed();
  await settled(page);
  const [{ value: total }] = await count(inlay, { period: "30d" });
  await expect(card(page, "API requests").locator(".value")).toContainText(full(total));
  const plans = await count(inlay, { period: "30d", group_by: "plan" });
  for (const { group, value } of plans) {
    const row = card(page, "Requests by plan").getByRole("listitem").filter({ hasText: group });
    await expect(row).toContainText(full(value));
    await expect(card(page, "Plans").getByRole("row").filter({ hasText: group })).toContainText(full(value));
  }
  const endpoints = await count(inlay, { period: "30d", group_by: "endpoint" });
  await expect(card(page, "Top endpoints").getByRole("listitem")).toHaveCount(endpoints.length);
  await expect(card(page, "Activation").getByRole("listitem").filter({ hasText: "Created key" })).toContainText("63%");
  await expect(card(page, "About these numbers")).toContainText("Counted per request.");
  for (const title of ["Requests over time", "Requests by model", "Latency by model"]) {
    await expect(card(page, title).locator("svg path").first()).toBeAttached();
    await expect(card(page, title).getByRole("slider")).toHaveCount(1);
  }
  expect(await page.locator("*").count()).toBeLessThan(2500);
});

test("without scripts the shell says what there is", async ({ inlay, browser }) => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto((await inlay.mint(inlay.dashboard)).embed_url);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("API usage");
  await expect(page.getByRole("heading", { level: 2 })).toHaveCount(EVERYTHING.length);
  await context.close();
});

test("drafts stay unseen until they are published; unpublishing shows its page", async ({ page, inlay, embed }) => {
  const dashboard = await inlay.publish("Before", [EVERYTHING[0]]);
  const { url } = await embed({}, { dashboard });
  await inlay.ask("PATCH", `/v1/dashboards/${dashboard}`, { name: "After" });
  await page.reload();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Before");
  await inlay.ask("POST", `/v1/dashboards/${dashboard}/publish`, undefined, 204);
  await page.reload();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("After");
  await inlay.ask("POST", `/v1/dashboards/${dashboard}/unpublish`, undefined, 204);
  await page.goto(url);
  await expect(page.getByRole("heading", { name: "This dashboard isn’t published" })).toBeVisible();
  await inlay.ask("POST", `/v1/dashboards/${dashboard}/publish`, undefined, 204);
  await page.reload();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("After");
});

test("each tenant sees its own numbers, and a token opens its own dashboard only", async ({
  page,
  inlay,
  embed,
  expected,
}) => {
  await embed({}, { tenant_id: "rival" });
  await settled(page);
  await expect(card(page, "API requests").locator(".value")).toHaveText("77");
  const { token, url } = await embed();
  await settled(page);
  expect(await page.content()).not.toContain("MARKER");
  expected.push(/401/);
  const other = await inlay.publish("Other", [EVERYTHING[0]]);
  await page.goto(url.replace(inlay.dashboard, other));
  await expect(page.getByRole("heading", { name: "This link isn’t valid" })).toBeVisible();
  expect(token).toBeTruthy();
});

test("wrong, missing and ended tokens have their pages", async ({ page, inlay, expected }) => {
  expected.push(/401/);
  const { embed_url, token } = await inlay.mint(inlay.dashboard);
  const tampered = token.slice(0, -3) + (token.endsWith("AAA") ? "BBB" : "AAA");
  for (const url of [
    embed_url.replace(token, tampered),
    embed_url.replace(token, ""),
    embed_url.split("?")[0],
    embed_url.replace(token, "x.y.z"),
  ]) {
    await page.goto(url);
    await expect(page.getByRole("heading", { name: "This link isn’t valid" })).toBeVisible();
  }
  const { data } = await inlay.ask("GET", "/v1/embed-sessions");
  await inlay.ask("DELETE", `/v1/embed-sessions/${data[0].id}`, undefined, 204);
  await page.goto(embed_url);
  await expect(page.getByRole("heading", { name: "Your session has ended" })).toBeVisible();
});

test("a session that ends while the page is open keeps the data and says so", async ({
  page,
  inlay,
  embed,
  expected,
}) => {
  expected.push(/401/);
  await embed();
  await settled(page);
  const before = await card(page, "API requests").locator(".value").textContent();
  const { data } = await inlay.ask("GET", "/v1/embed-sessions");
  await inlay.ask("DELETE", `/v1/embed-sessions/${data[0].id}`, undefined, 204);
  await page.getByRole("button", { name: "7d" }).click();
  await expect(page.getByRole("alert")).toHaveText("Your session has ended. Reload the page to continue.");
  await expect(card(page, "API requests").locator(".value")).toHaveText(before);
});

test("the page says by itself when the time is over", async ({ page, inlay }) => {
  const { embed_url } = await inlay.mint(inlay.dashboard, { expires_in: 60 });
  await page.clock.install();
  await page.goto(embed_url);
  await settled(page);
  await page.clock.runFor(50_000);
  await expect(page.getByRole("alert")).toHaveCount(0);
  await page.clock.runFor(20_000);
  await expect(page.getByRole("alert")).toContainText("session has ended");
});

test("a failed card leaves the others alone and can be tried again", async ({ page, embed }) => {
  await embed();
  await settled(page);
  let broken = true;
  // One line of a real answer is spoiled on its way.
  await page.route("**/v1/embed/data", async (route) => {
    const response = await route.fetch();
    const lines = (await response.text())
      .split("\n")
      .map((line) =>
        broken && line.includes('"widget":"plans"')
          ? '{"widget":"plans","error":"the query took longer than 10 s","code":"query_timeout"}'
          : line,
      );
    await route.fulfill({ response, body: lines.join("\n") });
  });
  await page.getByRole("button", { name: "7d" }).click();
  const plans = card(page, "Requests by plan");
  await expect(plans.getByRole("heading", { name: "This chart couldn’t load" })).toBeVisible();
  await expect(plans).toContainText("The query took longer than 10 s.");
  await expect(card(page, "Top endpoints").getByRole("listitem").first()).toBeVisible();
  broken = false;
  await plans.getByRole("button", { name: "Try again" }).click();
  await expect(plans.getByRole("listitem").first()).toBeVisible();
});

test("the old picture stays while a slow answer comes, under a thin bar", async ({ page, embed }) => {
  await embed();
  await settled(page);
  let answer;
  await page.route("**/v1/embed/data", async (route) => {
    await new Promise((resolve) => {
      answer = resolve;
    });
    await route.continue();
  });
  const plans = card(page, "Requests by plan");
  const before = await plans.getByRole("list").textContent();
  await page.getByRole("button", { name: "7d" }).click();
  await expect(plans).toHaveAttribute("aria-busy", "true");
  await expect(plans.locator(".progress")).toBeVisible();
  expect(await plans.getByRole("list").textContent()).toBe(before);
  await expect.poll(() => answer).toBeTruthy();
  answer();
  await settled(page);
  expect(await plans.getByRole("list").textContent()).not.toBe(before);
});

test("without data of the first look there is a skeleton first", async ({ page, inlay }) => {
  const { embed_url } = await inlay.mint(inlay.dashboard);
  let answer;
  await page.route("**/v1/embed/data", async (route) => {
    await new Promise((resolve) => {
      answer = resolve;
    });
    await route.continue();
  });
  // The page as a busy server sends it.
  await page.route(/\/embed\/[0-9a-f-]{36}\?/, async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replace(/,"data":\{.*\}(?=\}<\/script>)/s, ',"data":{}');
    await route.fulfill({ response, body });
  });
  await page.goto(embed_url);
  await expect(card(page, "Requests by plan").locator(".skeleton")).toBeVisible();
  await expect.poll(() => answer).toBeTruthy();
  answer();
  await settled(page);
  await expect(page.locator(".skeleton")).toHaveCount(0);
});

test("offline says since when, and comes back by itself", async ({ page, context, embed, expected }) => {
  expected.push(/ERR_INTERNET_DISCONNECTED/);
  await embed();
  await settled(page);
  await context.setOffline(true);
  await expect(page.getByRole("alert")).toContainText("You’re offline. Showing data from");
  await page.getByRole("button", { name: "7d" }).click();
  await expect(card(page, "Requests by plan").getByRole("listitem").first()).toBeVisible();
  await context.setOffline(false);
  await expect(page.getByRole("alert")).toHaveCount(0);
  await settled(page);
});

test("only the last of many quick choices is drawn, and none is an error", async ({ page, inlay, embed }) => {
  await embed();
  await settled(page);
  let first = true;
  await page.route("**/v1/embed/data", async (route) => {
    if (first) {
      first = false;
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
    await route.continue().catch(() => {});
  });
  for (const period of ["90d", "24h", "90d", "7d"]) await page.getByRole("button", { name: period }).click();
  await settled(page);
  const [{ value }] = await count(inlay, { period: "7d" });
  await expect(card(page, "API requests").locator(".value")).toHaveText(full(value));
  await expect(page.getByText("couldn’t load")).toHaveCount(0);
});

test("a period without events says so", async ({ page, inlay, embed }) => {
  await embed({}, { tenant_id: "nobody" });
  await settled(page);
  await expect(card(page, "Requests by plan").getByRole("heading", { name: "Nothing in this period" })).toBeVisible();
  await expect(card(page, "Requests by plan")).toContainText("No events in the last 30 days.");
  await expect(card(page, "API requests").locator(".value")).toHaveText("0");
  await expect(card(page, "p95 latency").locator(".value")).toHaveText("—");
  expect(inlay.base).toBeTruthy();
});
