// Filters, periods, dates and drilling down, by hand.

import { card, count, expect, full, settled, test } from "./lib/test.js";

const number = (page) => card(page, "API requests").locator(".value");

test("a period changes every number", async ({ page, inlay, embed }) => {
  await embed();
  for (const period of ["24h", "7d", "90d", "30d"]) {
    await page.getByRole("button", { name: period }).click();
    await expect(page.getByRole("button", { name: period })).toHaveAttribute("aria-pressed", "true");
    const [{ value }] = await count(inlay, { period });
    await expect(number(page)).toContainText(full(value));
  }
});

test("values to filter by come with counts, can be searched, and make chips", async ({ page, inlay, embed }) => {
  await embed();
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Filter" });
  await dialog.getByLabel("Property").selectOption("plan");
  const [{ value: growth }] = await count(inlay, { period: "30d", f_plan: "growth" });
  await expect(dialog.getByRole("listitem").filter({ hasText: "growth" })).toContainText(full(growth));
  await expect(dialog).not.toContainText("MARKER");
  await dialog.getByLabel("Search values").fill("GROW");
  await expect(dialog.getByRole("listitem")).toHaveCount(1);
  await dialog.getByLabel("growth").check();
  await dialog.getByLabel("Search values").fill("");
  await dialog.getByLabel("starter").check();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page.getByRole("list", { name: "Filters" })).toContainText("Plangrowth, starter");
  const both = await count(inlay, { period: "30d", group_by: "plan" });
  const wanted = both
    .filter(({ group }) => ["growth", "starter"].includes(group))
    .reduce((sum, row) => sum + row.value, 0);
  await expect(number(page)).toContainText(full(wanted));
  await page.getByRole("button", { name: "Remove filter Plan" }).click();
  const [{ value: all }] = await count(inlay, { period: "30d" });
  await expect(number(page)).toContainText(full(all));
});

test("a number is filtered between two ends", async ({ page, embed }) => {
  await embed();
  await settled(page);
  const before = await number(page).textContent();
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Filter" });
  await dialog.getByLabel("Property").selectOption("latency_ms");
  await dialog.getByLabel("At least").fill("500");
  await dialog.getByLabel("At most").fill("100");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(dialog.getByRole("alert")).toBeVisible();
  await dialog.getByLabel("At most").fill("");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByRole("list", { name: "Filters" })).toContainText("Latency ms≥ 500");
  await expect(number(page)).not.toHaveText(before);
});

test("dates replace the period and a period replaces the dates", async ({ page, inlay, embed }) => {
  await embed();
  await page.getByRole("button", { name: "Custom" }).click();
  const dialog = page.getByRole("dialog", { name: "Filter" });
  await dialog.getByLabel("From").fill("2026-11-10");
  await dialog.getByLabel("To").fill("2026-11-09");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(dialog.getByRole("alert")).toHaveText("The first day must not be after the last.");
  await dialog.getByLabel("To").fill("2026-11-12");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByRole("list", { name: "Filters" })).toContainText("Nov 10, 2026 – Nov 12, 2026");
  await expect(page.getByRole("button", { name: "Custom" })).toHaveAttribute("aria-pressed", "true");
  const [{ value }] = await count(inlay, { from: "2026-11-10", to: "2026-11-13" });
  await expect(number(page)).toContainText(full(value));
  await page.getByRole("button", { name: "7d" }).click();
  await expect(page.getByRole("list", { name: "Filters" })).toHaveCount(0);
});

test("a session may bound the dates", async ({ page, embed }) => {
  await embed({ max_date_range_days: 7 });
  await expect(page.getByRole("group", { name: "Period" }).getByRole("button")).toHaveText(["24h", "7d", "Custom"]);
  await page.getByRole("button", { name: "Custom" }).click();
  const dialog = page.getByRole("dialog", { name: "Filter" });
  await dialog.getByLabel("From").fill("2026-11-01");
  await dialog.getByLabel("To").fill("2026-11-12");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(dialog.getByRole("alert")).toHaveText("Choose at most 7 days.");
});

test("a click on a value filters by it, a second one does not any more", async ({ page, inlay, embed }) => {
  await embed({ allow_drill_down: true });
  const plans = card(page, "Requests by plan");
  await plans.getByRole("button", { name: /^growth/ }).click();
  const [{ value }] = await count(inlay, { period: "30d", f_plan: "growth" });
  await expect(number(page)).toContainText(full(value));
  await expect(page.getByRole("list", { name: "Filters" })).toContainText("Plangrowth");
  await plans.getByRole("button", { name: /Stop filtering by growth/ }).click();
  await expect(page.getByRole("list", { name: "Filters" })).toHaveCount(0);
  // By keyboard, and in a table.
  await card(page, "Plans")
    .getByRole("button", { name: /^starter/ })
    .focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("list", { name: "Filters" })).toContainText("Planstarter");
});

test("details of a value open beside it, part it further, and close", async ({ page, inlay, embed }) => {
  await embed({ allow_drill_down: true });
  await card(page, "Requests by country").getByRole("button", { name: /^DE/ }).click();
  const sheet = page.getByRole("dialog", { name: "DE" });
  const [{ value }] = await count(inlay, { period: "30d", f_country: "DE" });
  await expect(sheet.locator(".value")).toContainText(full(value));
  await expect(sheet.getByRole("heading", { name: "By plan" })).toBeVisible();
  await expect(sheet.getByRole("heading", { name: "By country" })).toHaveCount(0);
  await expect(sheet.getByRole("slider")).toBeAttached();
  await page.keyboard.press("Escape");
  await expect(sheet).toHaveCount(0);
  await expect(card(page, "Requests by country").getByRole("button", { name: /^DE/ })).toBeFocused();
});

test("a click on a day narrows to it, and Enter does too", async ({ page, embed }) => {
  await embed({ allow_drill_down: true });
  const chart = card(page, "Requests over time");
  const box = await chart.locator(".plot").boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await expect(page.getByRole("list", { name: "Filters" })).toContainText("Dates");
  await page.getByRole("button", { name: "30d" }).click();
  await settled(page);
  await chart.getByRole("slider").focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("list", { name: "Filters" })).toContainText("Nov 19, 2026");
});

test("without the right nothing can be chosen, nor looks like it", async ({ page, inlay, embed }) => {
  const { token } = await embed({ allow_drill_down: false });
  await settled(page);
  for (const title of ["Requests by plan", "Top endpoints", "Requests by country"]) {
    await expect(card(page, title).locator(".body").getByRole("button")).toHaveCount(0);
  }
  await expect(page.locator(".pick")).toHaveCount(0);
  const asked = await inlay.viewer(token, "detail", { widget: "countries", dimension: "country", value: "DE" });
  expect([asked.status, (await asked.json()).code]).toEqual([403, "embed_permission"]);
});

test("what a session hides, locks and allows holds in the page and against requests made by hand", async ({
  page,
  inlay,
  embed,
}) => {
  const { token } = await embed({
    locked_filters: { status: "ok" },
    hidden_widgets: ["spend"],
    allowed_dimensions: ["plan"],
    allowed_periods: ["7d", "30d"],
  });
  await settled(page);
  expect(await page.content()).not.toContain(`"spend"`);
  await expect(page.getByRole("region", { name: "Spend" })).toHaveCount(0);
  await expect(page.getByRole("group", { name: "Period" }).getByRole("button")).toHaveText(["7d", "30d"]);
  const chips = page.getByRole("list", { name: "Filters" });
  await expect(chips).toContainText("Statusok");
  await expect(chips.getByRole("button")).toHaveCount(0);
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await expect(page.getByLabel("Property").getByRole("option")).toHaveText(["Plan"]);
  await page.keyboard.press("Escape");
  const [{ value }] = await count(inlay, { period: "30d", f_status: "ok" });
  await expect(number(page)).toContainText(full(value));
  const refused = async (path, body) => {
    const answer = await inlay.viewer(token, path, body);
    expect([answer.status, (await answer.json()).code], JSON.stringify(body)).toEqual([403, "embed_permission"]);
  };
  const data = (filters) => refused("data", { widgets: ["requests"], filters });
  await data({ dimensions: { status: "error" } });
  await data({ dimensions: { status: ["ok", "error"] } });
  await data({ dimensions: { model: "lyra" } });
  await data({ numericRanges: { latency_ms: { min: 1 } } });
  await data({ period: "90d" });
  await data({ dateRanges: { timestamp: { from: "2026-11-01", to: "2026-11-02" } } });
  await refused("data", { widgets: ["spend"] });
  await refused("values", { dimension: "model" });
  await refused("detail", { widget: "plans", dimension: "plan", value: "growth" });
  const whole = await inlay.viewer(token, "dashboard");
  expect(await whole.text()).not.toContain("spend");
});

test("all of it works inside the helper's frame too, and the focus comes back", async ({ page, mounted }) => {
  const { frame } = await mounted({ permissions: { allow_drill_down: true } });
  const filter = frame.getByRole("button", { name: "Filter", exact: true });
  await filter.click();
  const dialog = frame.getByRole("dialog", { name: "Filter" });
  await dialog.getByLabel("Property").selectOption("plan");
  await dialog.getByLabel("Search values").fill("gro");
  await page.keyboard.press("Enter");
  await dialog.getByLabel("growth").check();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(frame.getByRole("list", { name: "Filters" })).toContainText("Plangrowth");
  await expect(filter).toBeFocused();
  await frame.getByRole("button", { name: "Custom" }).click();
  await dialog.getByLabel("From").fill("2026-11-10");
  await dialog.getByLabel("To").fill("2026-11-12");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(frame.getByRole("list", { name: "Filters" })).toContainText("Nov 10, 2026 – Nov 12, 2026");
  await expect(frame.getByRole("button", { name: "Custom" })).toBeFocused();
  await frame.getByRole("button", { name: "Remove filter Plan" }).click();
  await expect(frame.getByRole("button", { name: "Remove filter Dates" })).toBeFocused();
  await frame.getByRole("button", { name: "Remove filter Dates" }).click();
  await expect(filter).toBeFocused();
  await filter.click();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect(filter).toBeFocused();
  await card(frame, "Requests over time").hover();
  await frame.getByRole("button", { name: "Options of Requests over time" }).click();
  await Promise.all([page.waitForEvent("download"), frame.getByRole("button", { name: "Download CSV" }).click()]);
});

test("the details of a widget that compares with nothing hold nothing of the time before", async ({
  page,
  inlay,
  embed,
}) => {
  const { token } = await embed({ allow_drill_down: true, allowed_periods: ["7d"], locked_filters: { status: "ok" } });
  await settled(page);
  const answer = await inlay.viewer(token, "detail", { widget: "countries", dimension: "country", value: "DE" });
  expect(answer.status).toBe(200);
  expect(await answer.text()).not.toContain("previous");
  for (const path of ["values", "detail"]) {
    const wider = { widget: "countries", dimension: "country", value: "DE", filters: { period: "30d" } };
    if (path === "values") (delete wider.widget, delete wider.value);
    expect((await inlay.viewer(token, path, wider)).status, path).toBe(403);
  }
});

test("a tap reads a value and changes nothing", async ({ inlay, browser }) => {
  const context = await browser.newContext({ hasTouch: true, viewport: { width: 1240, height: 900 } });
  const page = await context.newPage();
  await page.goto((await inlay.mint(inlay.dashboard, { permissions: { allow_drill_down: true } })).embed_url);
  await settled(page);
  for (const title of ["Requests by model", "Requests over time"]) {
    const box = await card(page, title).locator(".plot").boundingBox();
    await page.touchscreen.tap(box.x + box.width - 60, box.y + box.height - 40);
    await expect(card(page, title).locator(".tip")).toBeVisible();
  }
  await expect(page.getByRole("list", { name: "Filters" })).toHaveCount(0);
  await context.close();
});
