// The SQL editor: run, selection, cancel, errors at their place, saved queries, completion, drafts, the keyboard.

import { expect, test } from "./lib/console.js";

const field = (page) => page.getByRole("textbox", { name: "SQL statement" });
const rows = (page) => page.getByRole("region", { name: "Rows" });

test.use({ permissions: ["clipboard-read", "clipboard-write"] });

/** Pastes a statement over what is there, as people do. */
async function write(page, sql) {
  await page.evaluate((text) => navigator.clipboard.writeText(text), sql);
  await field(page).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("ControlOrMeta+v");
}

test("a statement runs by keyboard, a selection alone, and its rows sort", async ({ page, org, open }) => {
  const one = await org({ filled: true });
  await open(one, "sql");
  await write(page, "SELECT tenant_id, count(*) AS events FROM events GROUP BY 1 ORDER BY 1");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(rows(page).getByRole("row")).toHaveCount(4);
  await expect(page.getByText(/^3 rows in \d+ ms$/)).toBeVisible();
  await rows(page)
    .getByRole("button", { name: /^events/ })
    .click();
  await expect(rows(page).getByRole("row").nth(1)).toContainText("acme");
  await write(page, "SELECT 1 AS one;\nSELECT 'chosen' AS two");
  await page.keyboard.press("Shift+ArrowUp");
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.press("Shift+Home");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(rows(page)).toContainText("chosen");
  await expect(rows(page)).not.toContainText("one");
});

test("an empty page offers statements to run; tables say their definition; the split moves by keyboard", async ({
  page,
  org,
  open,
}) => {
  const one = await org({ filled: true });
  await open(one, "sql");
  await page.getByRole("button", { name: "Largest tenants" }).click();
  await page.getByRole("button", { name: /^Run/ }).click();
  await expect(rows(page)).toContainText("acme");
  await page.getByRole("button", { name: "Definition" }).first().click();
  await expect(page.getByRole("dialog")).toContainText(/CREATE (TABLE|VIEW) events/i);
  await page.keyboard.press("Escape");
  const split = page.getByRole("separator", { name: "Height of the editor" });
  await split.focus();
  const height = async () => (await page.locator(".sql-field").boundingBox())?.height;
  const before = await height();
  await page.keyboard.press("ArrowDown");
  expect(await height()).toBe(before + 20);
  await page.keyboard.press("Home");
  expect(await height()).toBe(120);
});

test("errors stand at their place, writing is refused, and nothing is lost", async ({ page, org, open, expected }) => {
  expected.push(/400/);
  const one = await org({ filled: true });
  await open(one, "sql");
  await write(page, "SELECT tenant_id,\n       nothing_of_this\nFROM events");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(page.getByRole("alert")).toContainText("nothing_of_this");
  await write(page, "SELECT 1\nFROM events\nWHERE ORDER");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(page.getByRole("alert")).toContainText(/Line 3, column \d+:/);
  await expect(page.locator(".sql-error")).toHaveCount(1);
  await write(page, "DELETE FROM events");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(page.getByRole("alert")).toContainText(/SELECT/);
});

test("a long statement is cancelled; many rows are truncated and scroll", async ({ page, org, open }) => {
  const one = await org({ filled: true });
  await open(one, "sql");
  const joins = ["b", "c", "d", "e"]
    .map((name) => `JOIN events ${name} ON ${name}.event_name = a.event_name`)
    .join(" ");
  await write(
    page,
    `SELECT count(DISTINCT a.event_id || b.event_id || c.event_id || d.event_id || e.event_id) FROM events a ${joins}`,
  );
  await page.keyboard.press("ControlOrMeta+Enter");
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect(page.getByText("Cancelled.")).toBeVisible();
  await write(
    page,
    "SELECT row_number() OVER (ORDER BY a.event_id) AS n FROM events a JOIN events b USING (event_name) JOIN events c USING (event_name) LIMIT 20000",
  );
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(page.getByText(/^Truncated at 10,000 rows/)).toBeVisible();
  expect(await rows(page).getByRole("row").count()).toBeLessThan(100);
  await rows(page).evaluate((box) => box.scrollTo(0, box.scrollHeight));
  await expect(rows(page)).toContainText("10,000");
});

test("saved, starred, opened again, deleted; a draft survives a reload", async ({ page, org, open }) => {
  const one = await org({ filled: true });
  await open(one, "sql");
  await write(page, "SELECT 42 AS answer");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByLabel("Name").fill("The answer");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("button", { name: "The answer" }).first()).toBeVisible();
  await write(page, "SELECT 43 AS answer");
  await expect(page.getByTitle("Not saved")).toBeVisible();
  await page.reload();
  await expect(field(page)).toContainText("SELECT 43");
  await page.getByRole("button", { name: "Saved", exact: true }).click();
  await page.getByRole("button", { name: "Star The answer" }).click();
  await expect(page.getByRole("button", { name: "Star The answer" })).toHaveAttribute("aria-pressed", "true");
  await page.keyboard.press("ControlOrMeta+s");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByTitle("Not saved")).toHaveCount(0);
  expect((await one.ask("GET", "/v1/saved-queries")).data[0]).toMatchObject({
    sql: "SELECT 43 AS answer",
    starred: true,
  });
  await page.getByRole("button", { name: "Delete The answer" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByText("Saved statements are listed here")).toBeVisible();
});

test("properties and events are offered; the field lets go of the keyboard; rows become a chart", async ({
  page,
  org,
  open,
}) => {
  const one = await org({ filled: true });
  await open(one, "sql");
  await expect(page.getByRole("button", { name: /^latency_ms/ })).toBeVisible();
  await field(page).click();
  await page.keyboard.type("SELECT string_props['mod");
  const offered = page.locator(".cm-tooltip-autocomplete");
  await offered.getByText("model").click();
  await page.keyboard.type(" AS model, count(*) AS n FROM events WHERE event_name = 'api");
  await offered.getByText("api_call").click();
  await page.keyboard.type(" GROUP BY 1");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(rows(page)).toContainText("nova");
  await page.getByRole("button", { name: "Chart" }).click();
  await expect(page.locator(".bar-list")).toContainText("lyra");
  await expect(page.getByRole("button", { name: /Turn into widget.*Add timestamp >=/ })).toHaveAttribute(
    "aria-disabled",
    "true",
  );
  await field(page).click();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  await expect(field(page)).not.toBeFocused();
});
