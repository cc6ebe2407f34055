// Every page for everybody: axe in both themes, narrow pages, the keyboard, ⌘K.

import { findings } from "./lib/axe.js";
import { expect, filled, test } from "./lib/console.js";

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

test("forced colours and reduced motion are followed", async ({ page, org, open }) => {
  test.setTimeout(120_000);
  await page.emulateMedia({ forcedColors: "active", reducedMotion: "reduce" });
  const { one, pages } = await filled(org);
  for (const path of pages) {
    await open(one, path);
    await still(page);
    const moving = await page.evaluate(
      () => document.getAnimations().filter((one) => one.effect.getComputedTiming().duration > 0).length,
    );
    expect(moving, path).toBe(0);
    // Without colours, the page that one is on must still be told from the others.
    const look = (link) =>
      link.evaluate((one) =>
        JSON.stringify([getComputedStyle(one).outline, getComputedStyle(one).border, getComputedStyle(one).fontWeight]),
      );
    const current = page.locator(".side a[aria-current=page]");
    if (await current.count())
      expect(await look(current), path).not.toBe(await look(page.locator(".side a:not([aria-current])").first()));
  }
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
