// A host's colours: applied live, never harmful, never unreadable.

import { expect, seen, settled, test } from "./lib/test.js";

const NIGHT = {
  primaryColor: "#a78bfa",
  backgroundColor: "#0b0d14",
  cardBackground: "#141824",
  cardBorder: "#262c3d",
  textColor: "#eef0f7",
  mutedColor: "#8d94a8",
};
const token = (frame, name) =>
  frame.locator("html").evaluate((root, one) => getComputedStyle(root).getPropertyValue(one).trim(), name);

/** WCAG contrast of two colours as the browser paints them. */
const contrast = (frame, one, two) =>
  frame.locator("html").evaluate(
    (root, pair) => {
      const [a, b] = pair.map((name) => {
        const probe = document.createElement("i");
        probe.style.color = `var(${name})`;
        root.querySelector("body").append(probe);
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = 1;
        const context = canvas.getContext("2d");
        context.fillStyle = getComputedStyle(probe).color;
        context.fillRect(0, 0, 1, 1);
        probe.remove();
        const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((c) =>
          c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4,
        );
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      });
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    },
    [one, two],
  );

test("six colours are applied live, and a dark card brings the dark palette", async ({ page, mounted }) => {
  const { frame } = await mounted();
  expect(await frame.locator("html").getAttribute("data-mode")).toBeNull();
  await page.evaluate((theme) => window.dash.setTheme(theme), NIGHT);
  await expect(frame.locator("html")).toHaveAttribute("data-mode", "dark");
  expect(await token(frame, "--primary")).toBe("#a78bfa");
  expect(await frame.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor)).toBe(
    "rgb(11, 13, 20)",
  );
  expect(
    await frame
      .locator(".card")
      .first()
      .evaluate((one) => getComputedStyle(one).backgroundColor),
  ).toBe("rgb(20, 24, 36)");
  await page.evaluate(() =>
    window.dash.setTheme({
      cardBackground: "#ffffff",
      backgroundColor: "transparent",
      textColor: "#111111",
      mutedColor: "#666666",
    }),
  );
  await expect(frame.locator("html")).toHaveAttribute("data-mode", "light");
  expect(await frame.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor)).toBe(
    "rgba(0, 0, 0, 0)",
  );
});

test("what is not a colour is skipped, named, and changes nothing else", async ({ page, mounted }) => {
  const { frame } = await mounted();
  const before = await token(frame, "--card");
  for (const bad of [
    "red; } body { display: none",
    "url(https://evil.example/x)",
    "var(--text)",
    "expression(alert(1))",
    "#12",
    "javascript:alert(1)",
    "inherit",
    "currentColor",
    "VAR(--text)",
    "revert-layer",
    7,
    null,
    {},
    "</style><script>",
  ]) {
    await page.evaluate(() => {
      window.seen.length = 0;
    });
    await page.evaluate(
      (cardBackground) => window.dash.setTheme({ cardBackground, primaryColor: "#0f766e", fontFamily: "inherit" }),
      bad,
    );
    await expect.poll(() => seen(page, "error"), String(bad)).toHaveLength(1);
    expect((await seen(page, "error"))[0]).toMatchObject({
      code: "invalid_theme",
      message: "cardBackground is not a color",
    });
    expect(await token(frame, "--card")).toBe(before);
    expect(await token(frame, "--primary")).toBe("#0f766e");
  }
  expect(await frame.locator("body").evaluate((body) => getComputedStyle(body).fontFamily)).toContain("Inter");
});

test("colours that could not be read are moved until they can", async ({ page, mounted }) => {
  const { frame } = await mounted();
  const themes = [
    {
      primaryColor: "#ffff00",
      mutedColor: "#eeeeee",
      textColor: "#fafafa",
      cardBackground: "#ffffff",
      backgroundColor: "#ffffff",
    },
    {
      primaryColor: "#000033",
      mutedColor: "#222222",
      textColor: "#111111",
      cardBackground: "#101010",
      backgroundColor: "#000000",
    },
    {
      primaryColor: "rgb(127 127 127)",
      mutedColor: "gray",
      textColor: "hsl(0 0% 50%)",
      cardBackground: "#808080",
      backgroundColor: "#ffffff",
    },
    {
      primaryColor: "#16a34a",
      mutedColor: "#94a3b8",
      textColor: "#ffffff",
      cardBackground: "#0f172a",
      backgroundColor: "#ffffff",
    },
  ];
  for (const theme of themes) {
    await page.evaluate((one) => window.dash.setTheme(one), theme);
    await expect.poll(() => contrast(frame, "--text", "--card"), JSON.stringify(theme)).toBeGreaterThan(4.4);
    expect(await contrast(frame, "--muted", "--card")).toBeGreaterThan(4.4);
    expect(await contrast(frame, "--primary", "--card")).toBeGreaterThan(2.95);
    expect(await contrast(frame, "--text-page", "--bg")).toBeGreaterThan(4.4);
    for (const series of ["--c2", "--c5", "--c8"])
      expect(await contrast(frame, series, "--card"), series).toBeGreaterThan(2.9);
  }
});

test("what a host leaves alone is readable on what it gives, also where that is see-through", async ({
  page,
  inlay,
  host,
}) => {
  const themes = [
    { cardBackground: "#315ed9" },
    { cardBackground: "#808080" },
    { mode: "dark", cardBackground: "#ffffff" },
    { backgroundColor: "#000000" },
    { primaryColor: "#fef08a" },
    {
      backgroundColor: "#0b0d14",
      cardBackground: "rgba(255,255,255,.06)",
      textColor: "#eef0f7",
      mutedColor: "#8d94a8",
    },
    { backgroundColor: "#ffffff", cardBackground: "rgb(0 0 0 / 85%)" },
  ];
  const { embed_url } = await inlay.mint(inlay.dashboard);
  for (const theme of themes) {
    await page.goto(`${host.origin}/`);
    await page.waitForFunction(() => window.loaded);
    await page.evaluate((given) => window.mount(given), { embedUrl: embed_url, theme });
    const frame = page.frameLocator("iframe");
    await settled(frame);
    // The surfaces as they come out, one over the other.
    await frame.locator("html").evaluate((root) => {
      const paint = (...colors) => {
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = 1;
        const context = canvas.getContext("2d");
        for (const color of colors) {
          context.fillStyle = color;
          context.fillRect(0, 0, 1, 1);
        }
        return `rgb(${[...context.getImageData(0, 0, 1, 1).data].slice(0, 3).join(" ")})`;
      };
      const [page_, card_] = [document.body, document.querySelector(".card.is-area")].map(
        (one) => getComputedStyle(one).backgroundColor,
      );
      root.style.setProperty("--seen-card", paint("#fff", page_, card_));
      root.style.setProperty("--seen-page", paint("#fff", page_));
    });
    const said = JSON.stringify(theme);
    expect(await contrast(frame, "--text", "--seen-card"), said).toBeGreaterThan(4.4);
    expect(await contrast(frame, "--muted", "--seen-card"), said).toBeGreaterThan(4.4);
    expect(await contrast(frame, "--primary", "--seen-card"), said).toBeGreaterThan(2.95);
    expect(await contrast(frame, "--text-page", "--seen-page"), said).toBeGreaterThan(4.4);
    for (const series of ["--c2", "--c5", "--c8"])
      expect(await contrast(frame, series, "--seen-card"), `${said} ${series}`).toBeGreaterThan(2.9);
  }
});

test("the palette makes way for the host's colour", async ({ page, mounted }) => {
  const { frame } = await mounted();
  const palette = async () => Promise.all([2, 3, 4, 5, 6, 7, 8].map((n) => token(frame, `--c${n}`)));
  // Our teal is the third colour; beside a teal brand it goes to the end.
  await page.evaluate(() => window.dash.setTheme({ primaryColor: "#0f9e8c", mode: "light" }));
  await expect.poll(palette).toContain("#03a490");
  const rotated = await palette();
  expect(rotated.indexOf("#03a490")).toBeGreaterThanOrEqual(4);
  expect(new Set(rotated).size).toBe(7);
});

test("mode, font and radius can be set, and the mode follows the system until then", async ({ page, mounted }) => {
  const { frame } = await mounted();
  await page.emulateMedia({ colorScheme: "dark" });
  await expect
    .poll(() =>
      frame
        .locator(".card")
        .first()
        .evaluate((one) => getComputedStyle(one).backgroundColor),
    )
    .toBe("rgb(22, 23, 27)");
  await page.evaluate(() => window.dash.setTheme({ mode: "light", fontFamily: "Georgia, serif", radius: 3 }));
  await expect
    .poll(() =>
      frame
        .locator(".card")
        .first()
        .evaluate((one) => getComputedStyle(one).backgroundColor),
    )
    .toBe("rgb(255, 255, 255)");
  expect(await frame.locator("body").evaluate((body) => getComputedStyle(body).fontFamily)).toContain("Georgia");
  expect(
    await frame
      .locator(".card")
      .first()
      .evaluate((one) => getComputedStyle(one).borderRadius),
  ).toBe("3px");
});

test("the first paint has the theme of the dashboard, and of the host over it", async ({ inlay, browser }) => {
  const { EVERYTHING } = await import("./lib/server.js");
  const dashboard = await inlay.publish("Night", [EVERYTHING[0]], { theme: NIGHT });
  const { embed_url } = await inlay.mint(dashboard);
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(embed_url);
  expect(await page.locator(".card").evaluate((one) => getComputedStyle(one).backgroundColor)).toBe("rgb(20, 24, 36)");
  await page.goto(
    `${embed_url}&theme=${encodeURIComponent(JSON.stringify({ cardBackground: "#fffdf8", backgroundColor: "red}body{display:none" }))}`,
  );
  await expect(page.locator(".card")).toBeVisible();
  expect(await page.locator(".card").evaluate((one) => getComputedStyle(one).backgroundColor)).toBe(
    "rgb(255, 253, 248)",
  );
  await context.close();
});

test("a theme given at mount is there without a flash", async ({ page, mounted }) => {
  const { frame } = await mounted({ options: { theme: NIGHT } });
  await settled(frame);
  expect(await frame.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor)).toBe(
    "rgb(11, 13, 20)",
  );
  expect(new URL(page.frames()[1].url()).searchParams.get("theme")).toContain("#a78bfa");
});
