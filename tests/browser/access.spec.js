// For everybody: keyboard, screen readers, zoom, contrast, motion, languages.

import { findings } from "./lib/axe.js";
import { card, expect, settled, test } from "./lib/test.js";

test.use({ bypassCSP: true });

for (const scheme of ["light", "dark"]) {
  test(`axe finds nothing: ${scheme}, in each dialog, as tables, in messages`, async ({
    page,
    inlay,
    embed,
    expected,
  }) => {
    test.setTimeout(90_000);
    expected.push(/401/);
    await page.emulateMedia({ colorScheme: scheme });
    await embed({ allow_drill_down: true, locked_filters: { status: "ok" } });
    await settled(page);
    expect(await findings(page)).toEqual([]);
    await card(page, "Requests by plan")
      .getByRole("button", { name: /^growth/ })
      .click();
    await expect(page.getByRole("list", { name: "Filters" })).toContainText("growth");
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await expect(page.getByRole("dialog").getByRole("checkbox").first()).toBeVisible();
    expect(await findings(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Custom" }).click();
    await expect(page.getByRole("dialog").getByLabel("From")).toBeVisible();
    expect(await findings(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await card(page, "Requests by country").getByRole("button", { name: /^DE/ }).click();
    await expect(page.getByRole("dialog").getByRole("heading", { name: "By plan" })).toBeVisible();
    expect(await findings(page)).toEqual([]);
    await page.keyboard.press("Escape");
    for (const title of ["Requests over time", "Requests by model"]) {
      await page.getByRole("button", { name: `Options of ${title}` }).click();
      expect(await findings(page)).toEqual([]);
      await page.getByRole("button", { name: "View as table" }).click();
    }
    expect(await findings(page)).toEqual([]);
    await page.route("**/v1/embed/data", (route) => route.fulfill({ contentType: "application/x-ndjson", body: "" }));
    await page.getByRole("button", { name: "7d" }).click();
    await expect(page.getByText("This chart couldn’t load").first()).toBeVisible();
    expect(await findings(page)).toEqual([]);
    await page.goto(`${(await inlay.mint(inlay.dashboard)).embed_url}x`);
    expect(await findings(page)).toEqual([]);
  });
}

test("axe finds nothing under a host's colours and in Arabic", async ({ page, embed }) => {
  const theme = {
    primaryColor: "#e11d48",
    backgroundColor: "#0b0d14",
    cardBackground: "#141824",
    cardBorder: "#262c3d",
    textColor: "#9aa",
    mutedColor: "#445",
  };
  await embed({ allow_drill_down: true }, { query: `&locale=ar&theme=${encodeURIComponent(JSON.stringify(theme))}` });
  await settled(page);
  expect(await findings(page)).toEqual([]);
});

test("axe finds nothing on the demo page", async ({ page, inlay, expected }) => {
  expected.push(/can escape its sandboxing/);
  await page.goto(`${inlay.base}/demo`);
  await expect(page.frameLocator("iframe").getByRole("heading", { level: 1 })).toBeVisible();
  expect(await findings(page)).toEqual([]);
});

test("everything can be reached and done with the keyboard alone", async ({ page, embed }) => {
  await embed({ allow_drill_down: true });
  await settled(page);
  const reached = new Set();
  for (let i = 0; i < 120; i++) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => {
      const one = document.activeElement;
      return one === document.body ? "" : (one.getAttribute("aria-label") ?? one.textContent.trim());
    });
    if (!name) break;
    reached.add(name);
    // Where the focus is can be seen: on the element, or on the chart around its hidden slider.
    const seen = () =>
      page.evaluate(() => {
        const one = document.activeElement;
        const shown = one.matches("input[type=range]") ? one.closest(".plot") : one;
        const style = getComputedStyle(shown);
        return style.outlineStyle === "solid" && parseFloat(style.outlineWidth) >= 2 && style.opacity === "1";
      });
    await expect.poll(seen, name).toBe(true);
  }
  for (const wanted of [
    "24h",
    "Custom",
    "Filter",
    "Download",
    "Options of Requests over time",
    "Requests over time, data points",
    "Options of API requests",
  ])
    expect([...reached]).toContain(wanted);
  expect([...reached].some((name) => name.startsWith("enterprise") && name.includes("Filter by"))).toBe(true);
  // The menu, opened and used.
  await page.getByRole("button", { name: "Options of Requests over time" }).focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await expect(card(page, "Requests over time").getByRole("table")).toBeVisible();
});

test("a chart reads as a sentence, point by point, and as a table", async ({ page, embed }) => {
  await embed();
  await settled(page);
  const chart = card(page, "Requests over time");
  const slider = chart.getByRole("slider");
  await expect(slider).toHaveAttribute(
    "aria-valuetext",
    /^Friday, Nov 20 \(so far\): This period \d+, Previous \d+, Change /,
  );
  await slider.focus();
  await page.keyboard.press("Home");
  await expect(slider).toHaveAttribute("aria-valuetext", /^Wednesday, Oct 21 \(partial\)/);
  await expect(chart.locator(".tip")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(chart.locator(".tip")).toHaveCount(0);
  await expect(chart.locator("p.vh").first()).toHaveText(
    /^Area chart, Wednesday, Oct 21 to Friday, Nov 20\. Lowest .+, highest .+, latest .+\.$/,
  );
});

test("at 320 px and at 400 % nothing needs sideways scrolling", async ({ page, embed }) => {
  await page.setViewportSize({ width: 320, height: 600 });
  await embed({ allow_drill_down: true });
  await settled(page);
  const sideways = () =>
    page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(await sideways()).toBeLessThanOrEqual(0);
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await expect(page.getByRole("dialog").getByRole("checkbox").first()).toBeVisible();
  expect(await sideways()).toBeLessThanOrEqual(0);
  const box = await page.getByRole("dialog").boundingBox();
  expect(box.x).toBeGreaterThanOrEqual(0);
  expect(box.x + box.width).toBeLessThanOrEqual(320);
});

test("from right to left arrow keys still go where the arrow points", async ({ page, embed }) => {
  await embed({}, { query: "&locale=ar" });
  await settled(page);
  const chart = card(page, "Requests over time");
  await chart.getByRole("slider").focus();
  const at = async () => Number(await chart.locator(".cross").getAttribute("x1"));
  const last = await at();
  await page.keyboard.press("ArrowLeft");
  expect(await at()).toBeLessThan(last);
});

test("targets are large enough", async ({ page, embed }) => {
  await embed({ allow_drill_down: true });
  await settled(page);
  const small = await page.evaluate(() =>
    [...document.querySelectorAll("button, select, input:not([type=range])")]
      .map((one) => [one.textContent.trim() || one.ariaLabel, one.getBoundingClientRect()])
      .filter(([, box]) => box.width > 0 && (box.width < 24 || box.height < 24))
      .map(([name, box]) => `${name} ${box.width}×${box.height}`),
  );
  expect(small).toEqual([]);
});

test("forced colours and reduced motion are followed", async ({ page, embed }) => {
  await page.emulateMedia({ forcedColors: "active", reducedMotion: "reduce" });
  await embed();
  await settled(page);
  await expect(card(page, "Requests over time").locator(".plot path").first()).toBeVisible();
  expect(
    await card(page, "Top endpoints")
      .locator("i")
      .nth(1)
      .evaluate((one) => getComputedStyle(one).borderTopStyle),
  ).toBe("solid");
  const moving = await page.evaluate(
    () => document.getAnimations().filter((one) => one.effect.getComputedTiming().duration > 0).length,
  );
  expect(moving).toBe(0);
});

const LANGUAGES = [
  ["de", "ltr", { filter: "Filter", number: "1.926", period: "30 T", chip: "10. Nov. 2026 – 12. Nov. 2026" }],
  ["fr", "ltr", { filter: "Filtrer", number: "1 926", period: "30j", chip: "10 nov. 2026 – 12 nov. 2026" }],
  ["ja", "ltr", { filter: "絞り込み", number: "1,926", period: "30d", chip: "2026年11月10日 – 2026年11月12日" }],
  ["ar-EG", "rtl", { filter: "تصفية", number: "١٬٩٢٦", period: "٣٠ ي", chip: "١٠ نوفمبر ٢٠٢٦ – ١٢ نوفمبر ٢٠٢٦" }],
];
for (const [locale, direction, words] of LANGUAGES) {
  test(`the whole page speaks ${locale}`, async ({ page, embed }) => {
    await embed({ allow_drill_down: true }, { query: `&locale=${locale}` });
    await settled(page);
    await expect(page.locator("html")).toHaveAttribute("lang", locale);
    expect(await page.evaluate(() => getComputedStyle(document.documentElement).direction)).toBe(direction);
    await expect(card(page, "API requests").locator(".value")).toHaveText(words.number);
    await expect(page.locator(".segments [aria-pressed=true]")).toHaveText(words.period);
    await page.locator(".segments button").last().click();
    const dialog = page.getByRole("dialog");
    await dialog.locator("input[type=date]").first().fill("2026-11-10");
    await dialog.locator("input[type=date]").last().fill("2026-11-12");
    await dialog.locator("button[type=submit]").click();
    await expect(page.locator(".chips")).toContainText(words.chip);
    await expect(page.getByRole("button", { name: words.filter, exact: true })).toBeVisible();
    const english = await page.evaluate(() =>
      document.body.innerText.match(/Updated|Custom|Times in|vs previous|Independent/g),
    );
    expect(english).toBeNull();
    expect(
      await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
    ).toBeLessThanOrEqual(0);
  });
}

test("a language that is not there, or is no language, is English", async ({ page, embed }) => {
  for (const locale of ["sv-SE", "xx", "%3Cscript%3E", "en-GB"]) {
    await embed({}, { query: `&locale=${locale}` });
    await expect(page.getByRole("button", { name: "Filter", exact: true })).toBeVisible();
  }
});
