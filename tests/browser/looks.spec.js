// How it looks: pictures that were looked at by eye once, and are compared from then on.
//
// Data and time are always the same, so are the pictures; `--update-snapshots` makes new ones, which
// somebody has to look at again.

import { card, EVERYTHING, expect, settled, test } from "./lib/test.js";

const whole = { fullPage: true, mask: [] };

/** Fonts are there and nothing moves any more. */
async function still(page) {
  await settled(page);
  await page.evaluate(() => document.fonts.ready);
  await page.mouse.move(0, 0);
}

for (const [name, scheme, width] of [
  ["light", "light", 1240],
  ["dark", "dark", 1240],
  ["tablet", "light", 760],
  ["phone", "light", 390],
]) {
  test(`a whole dashboard: ${name}`, async ({ page, embed }) => {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 900 });
    await embed({ allow_drill_down: true, locked_filters: { status: "ok" } });
    await still(page);
    await expect(page).toHaveScreenshot(`${name}.png`, whole);
  });
}

test("a host's colours", async ({ page, embed }) => {
  const theme = {
    primaryColor: "#0f766e",
    backgroundColor: "#fbf6ef",
    cardBackground: "#fffdf8",
    cardBorder: "#ecdfcd",
    textColor: "#2a211a",
    mutedColor: "#786a5c",
    radius: 6,
  };
  await embed({}, { query: `&theme=${encodeURIComponent(JSON.stringify(theme))}` });
  await still(page);
  await expect(page).toHaveScreenshot("themed.png", whole);
});

test("more contrast: hatches and dashes beside colours", async ({ page, embed }) => {
  await page.emulateMedia({ contrast: "more" });
  await embed();
  await still(page);
  await expect(card(page, "Requests by model")).toHaveScreenshot("contrast-bars.png");
  await expect(card(page, "Requests by plan")).toHaveScreenshot("contrast-donut.png");
  await expect(card(page, "Latency by model")).toHaveScreenshot("contrast-lines.png");
});

test("right to left", async ({ page, embed }) => {
  // Our font has no Arabic; one is named, so that every machine draws the same.
  const theme = encodeURIComponent(JSON.stringify({ fontFamily: "DejaVu Sans" }));
  await embed({ allow_drill_down: true }, { query: `&locale=ar&theme=${theme}` });
  await still(page);
  await expect(page).toHaveScreenshot("arabic.png", whole);
});

test("the point under the pointer", async ({ page, embed }) => {
  await embed();
  await still(page);
  const box = await card(page, "Requests over time").locator(".plot").boundingBox();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 80);
  await expect(card(page, "Requests over time")).toHaveScreenshot("tooltip.png");
});

test("the point under the keyboard", async ({ page, embed }) => {
  await embed();
  await still(page);
  await card(page, "Latency by model").getByRole("slider").focus();
  for (let i = 0; i < 5; i++) await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Tab");
  await expect(card(page, "Latency by model")).toHaveScreenshot("keyboard.png");
});

test("dialogs and menus", async ({ page, embed }) => {
  await embed({ allow_drill_down: true });
  await still(page);
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await expect(page.getByRole("dialog").getByRole("listitem")).toHaveCount(6);
  await expect(page).toHaveScreenshot("filter.png");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Custom" }).click();
  await expect(page).toHaveScreenshot("dates.png");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Options of Requests over time" }).click();
  await expect(page).toHaveScreenshot("menu.png");
  await page.keyboard.press("Escape");
  await card(page, "Requests by country").getByRole("button", { name: /^DE/ }).click();
  await expect(page.getByRole("dialog").getByRole("heading", { name: "By plan" })).toBeVisible();
  await expect(page).toHaveScreenshot("details.png", whole);
});

test("states of cards", async ({ page, embed }) => {
  await embed({}, { tenant_id: "nobody" });
  await still(page);
  await page.route("**/v1/embed/data", (route) =>
    route.fulfill({
      contentType: "application/x-ndjson",
      body: ["plans", "requests", "endpoints"]
        .map((widget) => JSON.stringify({ widget, error: "the query took longer than 10 s", code: "query_timeout" }))
        .join("\n"),
    }),
  );
  await page.getByRole("button", { name: "7d" }).click();
  await still(page);
  await expect(page).toHaveScreenshot("states.png", whole);
});

test("loading for the first time", async ({ inlay, browser }) => {
  const context = await browser.newContext({
    javaScriptEnabled: false,
    viewport: { width: 1240, height: 900 },
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  await page.goto((await inlay.mint(inlay.dashboard)).embed_url);
  await expect(page).toHaveScreenshot("loading.png", whole);
  await context.close();
});

test("pages that are a message", async ({ page, inlay, expected }) => {
  expected.push(/401/);
  const { embed_url } = await inlay.mint(inlay.dashboard);
  await page.setViewportSize({ width: 700, height: 320 });
  await page.goto(`${embed_url}x`);
  await expect(page).toHaveScreenshot("invalid.png");
  const dashboard = await inlay.publish("Gone", [EVERYTHING[0]]);
  await inlay.ask("POST", `/v1/dashboards/${dashboard}/unpublish`, undefined, 204);
  await page.goto((await inlay.mint(dashboard)).embed_url);
  await expect(page).toHaveScreenshot("unpublished.png");
});

test("on paper", async ({ page, embed }) => {
  await embed();
  await still(page);
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width: 1000, height: 900 });
  await expect(page).toHaveScreenshot("print.png", whole);
});
