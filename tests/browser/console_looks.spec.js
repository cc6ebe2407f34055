// Pictures of each page: light, dark, and as wide as a phone. Whoever changes one looks at it again.

import { expect, test, widget } from "./lib/console.js";

// The font of code is the machine's own; pictures need the same one everywhere, which the page's policy would keep out.
test.use({ bypassCSP: true });
const MONO = ":root { --mono: 'DejaVu Sans Mono' !important; }";

const PAGES = [
  "start",
  "dashboards",
  "dashboard",
  "editor",
  "widgets",
  "explore",
  "sql",
  "data",
  "embed-sessions",
  "alerts",
  "reports",
  "deliveries",
  "api-keys",
  "team",
  "usage",
  "audit",
  "erasures",
  "settings",
  "account",
];

/** What is never the same twice: ids, times of the test's own doing, and how long something took. */
const moving = (page) => [
  page.locator("time"),
  page.locator("code"),
  page.locator(".note[role=status]"),
  page.locator(".live"),
  page.locator(".event summary span"),
];

/** The same text everywhere, so that columns are as wide each time. */
async function filled(org, name) {
  const one = await org({ filled: true, email: `looks-${name}@example.com` });
  const board = await one.dashboard(
    "Usage",
    [
      widget("calls", "number", "Calls", { compare: "previous" }, { x: 0, y: 0, w: 3, h: 3 }),
      widget("users", "number", "Users", { metric: "count_unique" }, { x: 0, y: 3, w: 3, h: 3 }),
      widget("models", "bar_list", "By model", { group_by: "model" }, { x: 3, y: 0, w: 4, h: 6 }),
      widget("status", "donut", "By status", { group_by: "status" }, { x: 7, y: 0, w: 5, h: 6 }),
      widget("days", "area", "Per day", { granularity: "day" }, { x: 0, y: 6, w: 12, h: 6 }),
    ],
    true,
  );
  await one.ask("PATCH", "/v1/settings/org", { name: "Northwind" });
  await one.ask(
    "POST",
    "/v1/widgets",
    { kind: "number", title: "Calls", query: { event_name: "api_call", metric: "count", period: "7d" } },
    201,
  );
  await one.alert(board, 500);
  await one.report(board);
  await one.ask(
    "POST",
    "/v1/embed-sessions",
    {
      tenant_id: "acme",
      dashboard_id: board.id,
      permissions: { allow_drill_down: true, locked_filters: { model: "nova" } },
    },
    201,
  );
  // Evaluated or not yet makes another picture.
  await expect.poll(async () => (await one.ask("GET", "/v1/alerts")).data[0].last_evaluated_at).not.toBeNull();
  return { one, board };
}

for (const [name, colorScheme, viewport] of [
  ["light", "light", { width: 1360, height: 900 }],
  ["dark", "dark", { width: 1360, height: 900 }],
  ["phone", "light", { width: 390, height: 844 }],
]) {
  test(`each page, ${name}`, async ({ page, inlay, org, open }) => {
    test.setTimeout(180_000);
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(viewport);
    const { one, board } = await filled(org, name);
    // The browser's clock is the server's: what was just made was made now.
    const answer = await fetch(`${inlay.base}/healthz`);
    await page.clock.setFixedTime(new Date(answer.headers.get("date") ?? ""));
    // How many bytes a table has depends on what was written to a segment yet, which moves lines on a narrow page.
    for (const path of PAGES.filter((path) => path !== "data" || name !== "phone")) {
      await open(
        one,
        {
          dashboard: `dashboards/${board.id}`,
          editor: `dashboards/${board.id}?edit=1`,
          explore: "explore?event=api_call&group=model&period=7d",
        }[path] ?? path,
      );
      await expect(page.locator("[aria-busy=true]")).toHaveCount(0);
      await page.addStyleTag({ content: MONO });
      await expect(page.locator(".skeleton")).toHaveCount(0);
      if (path === "sql") await expect(page.locator(".cm-editor")).toBeVisible();
      if (path === "editor") await page.getByRole("listitem", { name: "By model" }).click();
      await expect(page).toHaveScreenshot(`console-${path}-${name}.png`, {
        mask: moving(page),
        maskColor: "#8888",
        maxDiffPixelRatio: 0.003,
      });
    }
  });
}
