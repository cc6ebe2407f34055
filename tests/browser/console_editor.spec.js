// The dashboard editor: by mouse and by keyboard, with undo, autosave, two people at once, and publishing.

import { expect, test, widget } from "./lib/console.js";

const WIDGETS = [
  widget("calls", "number", "Calls", {}, { x: 0, y: 0, w: 3, h: 3 }),
  widget("models", "bar_list", "By model", { group_by: "model" }, { x: 3, y: 0, w: 5, h: 6 }),
  widget("days", "area", "Per day", { granularity: "day" }, { x: 0, y: 6, w: 12, h: 6 }),
];

const tile = (page, name) => page.getByRole("listitem", { name, exact: true });
const saved = (page) => expect(page.getByRole("status").filter({ hasText: /^Saved$/ })).toBeVisible();
const layouts = async (one, id) =>
  Object.fromEntries((await one.ask("GET", `/v1/dashboards/${id}`)).widgets.map((w) => [w.id, w.layout]));

test.use({ viewport: { width: 1500, height: 1000 } });

test("a widget is dragged, resized and edited; every step is saved and can be undone", async ({ page, org, open }) => {
  const one = await org({ filled: true });
  const { id } = await one.dashboard("Usage", WIDGETS);
  await open(one, `dashboards/${id}?edit=1`);
  await expect(tile(page, "By model")).toContainText("nova");
  const handle = await tile(page, "Calls").getByRole("button", { name: "Move Calls" }).boundingBox();
  const cell = ((await page.locator(".grid").boundingBox())?.width ?? 0) / 12;
  await page.mouse.move(handle.x + 10, handle.y + 10);
  await page.mouse.down();
  await page.mouse.move(handle.x + 10 + cell * 9, handle.y + 14, { steps: 6 });
  await page.mouse.up();
  await saved(page);
  await expect.poll(async () => (await layouts(one, id)).calls).toEqual({ x: 9, y: 0, w: 3, h: 3 });
  const corner = await tile(page, "Per day").locator(".resize").boundingBox();
  await page.mouse.move(corner.x + 9, corner.y + 9);
  await page.mouse.down();
  await page.mouse.move(corner.x + 9 - cell * 4, corner.y + 9 + 120, { steps: 6 });
  await page.mouse.up();
  await expect.poll(async () => (await layouts(one, id)).days).toMatchObject({ w: 8, h: 8 });
  // The inspector changes what is shown at once.
  await tile(page, "By model").click();
  await page.getByLabel("Title", { exact: true }).fill("By status");
  await page.getByLabel("Group by").selectOption("status");
  await expect(tile(page, "By status")).toContainText("error");
  await page.getByLabel("Kind").selectOption("donut");
  await saved(page);
  const stored = (await one.ask("GET", `/v1/dashboards/${id}`)).widgets.find((w) => w.id === "models");
  expect(stored).toMatchObject({ kind: "donut", title: "By status", query: { group_by: "status" } });
  for (let steps = 0; steps < 5; steps++) await page.getByRole("button", { name: "Undo" }).click();
  await expect(tile(page, "By model")).toContainText("nova");
  await expect.poll(async () => (await layouts(one, id)).calls).toEqual({ x: 0, y: 0, w: 3, h: 3 });
  await page.getByRole("button", { name: "Redo" }).click();
  await expect.poll(async () => (await layouts(one, id)).calls).toEqual({ x: 9, y: 0, w: 3, h: 3 });
});

test("all of it by keyboard: lift, move, resize, drop, put back", async ({ page, org, open }) => {
  const one = await org({ filled: true });
  const { id } = await one.dashboard("Usage", WIDGETS);
  await open(one, `dashboards/${id}?edit=1`);
  const handle = page.getByRole("button", { name: "Move Calls" });
  await handle.focus();
  await page.keyboard.press("Space");
  await expect(page.getByRole("status").filter({ hasText: "Calls is lifted." })).toBeAttached();
  for (let n = 0; n < 8; n++) await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("Shift+ArrowDown");
  await expect(page.getByRole("status").filter({ hasText: "Column 9, row 1, 4 wide, 4 high." })).toBeAttached();
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await layouts(one, id)).calls).toEqual({ x: 8, y: 0, w: 4, h: 4 });
  await page.keyboard.press("Space");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Escape");
  await saved(page);
  expect((await layouts(one, id)).calls).toEqual({ x: 8, y: 0, w: 4, h: 4 });
  await expect(handle).toBeFocused();
  // Numbers do the same.
  await page.keyboard.press("Enter");
  await page.getByLabel("Width").fill("2");
  await page.keyboard.press("Tab");
  await expect.poll(async () => (await layouts(one, id)).calls.w).toBe(2);
});

test("a widget is added, removed and brought back", async ({ page, org, open }) => {
  const one = await org({ filled: true });
  const { id } = await one.dashboard("Usage", []);
  await open(one, `dashboards/${id}?edit=1`);
  for (const kind of ["Number", "Line", "Stacked bars", "Donut", "Table", "Funnel", "Text"]) {
    await page.getByRole("button", { name: "Add widget" }).first().click();
    await page.getByRole("dialog").getByRole("button", { name: kind, exact: true }).click();
    await expect(tile(page, `New ${kind.toLowerCase()}`)).toBeVisible();
  }
  await saved(page);
  expect((await one.ask("GET", `/v1/dashboards/${id}`)).widgets).toHaveLength(7);
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await expect(tile(page, "New text")).toHaveCount(0);
  await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
  await expect(tile(page, "New text")).toBeVisible();
});

test("colours and thresholds are drawn as they are chosen, and stay", async ({ page, org, open }) => {
  const one = await org({ filled: true });
  const { id } = await one.dashboard("Usage", WIDGETS);
  await open(one, `dashboards/${id}?edit=1`);
  await tile(page, "Per day").click();
  await page.getByRole("button", { name: "Add a threshold" }).click();
  await page.getByLabel("Value of threshold 1").fill("7");
  await page.getByLabel("Name of threshold 1").fill("Budget");
  await page.getByLabel("Colour of threshold 1").selectOption("warn");
  const line = tile(page, "Per day").locator(".threshold");
  await expect(line).toHaveText("Budget");
  await expect(line).toHaveClass("threshold warn");
  await page.getByRole("radio", { name: "Colour 3" }).check({ force: true });
  const stroke = tile(page, "Per day").locator(".line path[stroke]").first();
  await expect(stroke).toHaveAttribute("stroke", "var(--c3)");
  await saved(page);
  const viz = async () => (await one.ask("GET", `/v1/dashboards/${id}`)).widgets.find((w) => w.id === "days").viz;
  expect(await viz()).toEqual({ color: 3, thresholds: [{ value: 7, label: "Budget", tone: "warn" }] });
  await page.getByRole("button", { name: "Remove threshold 1" }).click();
  await expect(line).toHaveCount(0);
  await saved(page);
  await expect.poll(viz).toEqual({ color: 3 });
});

test("two people at once lose nothing", async ({ page, org, open, expected }) => {
  expected.push(/409/);
  const one = await org({ filled: true });
  const { id } = await one.dashboard("Usage", WIDGETS);
  await open(one, `dashboards/${id}?edit=1`);
  await tile(page, "Calls").click();
  await one.ask("PATCH", `/v1/dashboards/${id}`, { name: "Usage of theirs" });
  await page.getByLabel("Title", { exact: true }).fill("Calls of mine");
  const dialog = page.getByRole("dialog", { name: /Somebody else has changed/ });
  await expect(dialog).toContainText("Changed “Calls of mine”");
  await expect(dialog).toContainText("Renamed to “Usage”");
  await dialog.getByRole("button", { name: "Take theirs" }).click();
  await expect(page.getByRole("heading", { name: "Usage of theirs" })).toBeVisible();
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(tile(page, "Calls of mine")).toBeVisible();
  await saved(page);
  expect((await one.ask("GET", `/v1/dashboards/${id}`)).widgets[0].title).toBe("Calls of mine");
});

test("publishing lists what changes; restoring goes back; a preview as tenant equals the embed", async ({
  page,
  inlay,
  org,
  open,
}) => {
  const one = await org({ filled: true });
  const { id } = await one.dashboard("Usage", WIDGETS, true);
  await open(one, `dashboards/${id}?edit=1`);
  await tile(page, "Per day").click();
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await tile(page, "Calls").click();
  await page.getByLabel("Title", { exact: true }).fill("All calls");
  await page.getByRole("button", { name: "Publish" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("Removed “Per day”");
  await expect(dialog).toContainText("Changed “All calls” title");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Done" }).click();
  await expect(page.getByText("2 changes")).toBeVisible();
  // As a tenant: the number is the one that the tenant's embed shows.
  await page.getByRole("combobox", { name: "As tenant" }).fill("acme");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "7d", exact: true }).click();
  const shown = page.getByRole("region", { name: "All calls" }).locator(".value");
  const answer = await one.ask("GET", "/v1/query?event_name=api_call&tenant_id=acme&metric=count&period=7d");
  await expect(shown).toHaveText(String(answer.data[0].value));
  const session = await one.ask("POST", "/v1/embed-sessions", { tenant_id: "acme", dashboard_id: id }, 201);
  const embed = await page.context().newPage();
  await embed.goto(session.embed_url);
  await expect(embed.getByRole("region", { name: "Calls" }).locator(".value")).toHaveText(String(answer.data[0].value));
  await embed.close();
  await page.getByRole("button", { name: "Actions for Usage" }).click();
  await page.getByRole("menuitem", { name: "Restore what is published" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Restore what is published" }).click();
  await expect(page.getByRole("region", { name: "Per day" })).toBeVisible();
  await expect(page.getByText("with changes")).toHaveCount(0);
});

test("neither Done nor Publish passes over what is not saved", async ({ page, org, open, expected }) => {
  expected.push(/409/, /404/, /Failed to load/);
  const one = await org({ filled: true });
  const { id } = await one.dashboard("Usage", WIDGETS, true);
  await open(one, `dashboards/${id}?edit=1`);
  await one.ask("PATCH", `/v1/dashboards/${id}`, { name: "Theirs" });
  // The change is stored by itself after a moment; its refusal must not come before the page is to be published.
  let publishing;
  const asked = new Promise((resolve) => (publishing = resolve));
  await page.route("**/v1/dashboards/**", async (route) => {
    if (route.request().method() === "PATCH") await asked;
    await route.continue();
  });
  await page.getByLabel("Name").fill("Mine");
  await page.getByRole("button", { name: "Publish" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Publish" }).click();
  publishing();
  await expect(page.getByText("isn’t saved yet, so nothing was published")).toBeVisible();
  expect((await one.ask("GET", `/v1/dashboards/${id}/published`)).name).toBe("Usage");
  await page
    .getByRole("dialog", { name: /Somebody else/ })
    .getByRole("button", { name: "Keep mine" })
    .click();
  await saved(page);
  expect((await one.ask("GET", `/v1/dashboards/${id}`)).name).toBe("Mine");
  // The server cannot be reached: the page may be left, and the draft is there when it is opened again.
  await page.keyboard.press("Escape");
  await page.route("**/v1/dashboards/**", (route) =>
    route.request().method() === "PATCH" ? route.abort() : route.continue(),
  );
  await page.getByLabel("Name").fill("Later");
  await page.getByRole("button", { name: "Done" }).click();
  await expect(page.getByRole("status").filter({ hasText: "Not saved." })).toBeVisible();
  await page.getByRole("link", { name: "Alerts", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Alerts", level: 1 })).toBeVisible();
  await page.unroute("**/v1/dashboards/**");
  await page.goBack();
  await saved(page);
  await expect(page.getByRole("heading", { name: "Later" })).toBeVisible();
  expect((await one.ask("GET", `/v1/dashboards/${id}`)).name).toBe("Later");
});

test("a widget becomes every kind after every other, and is drawn", async ({ page, org, open }) => {
  test.setTimeout(120_000);
  const one = await org({ filled: true });
  const { id } = await one.dashboard("Usage", WIDGETS);
  await open(one, `dashboards/${id}?edit=1`);
  await tile(page, "By model").click();
  const kinds = [
    "line",
    "funnel",
    "stacked_bar",
    "funnel",
    "area",
    "donut",
    "area",
    "table",
    "line",
    "bar_list",
    "stacked_bar",
    "number",
    "bar",
    "text",
    "bar_list",
  ];
  for (const kind of kinds) {
    await page.getByLabel("Kind").selectOption(kind);
    await expect(tile(page, "By model").locator(".skeleton")).toHaveCount(0);
    await expect(tile(page, "By model")).not.toContainText("couldn’t load");
  }
  await expect(tile(page, "By model")).toContainText("nova");
});
