// The pages of the console, each by what people do there, against the real server.

import { readFileSync } from "node:fs";
import { expect, PASSWORD, test, widget } from "./lib/console.js";
import { Server } from "./lib/server.js";

test("explore shows how it was answered, copies the same request, and saves a widget", async ({
  page,
  context,
  inlay,
  org,
  open,
}) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const one = await org({ filled: true });
  await open(one, "explore");
  await page.getByRole("button", { name: "api_call" }).click();
  await page.getByLabel("Group by").selectOption("model");
  await page.getByLabel("By", { exact: true }).selectOption("In all");
  await expect(page).toHaveURL(/event=api_call.*group=model/);
  const result = page.getByRole("region", { name: "Api call by model" });
  await expect(result).toContainText(/Answered from .*: \d+ rows read in \d+ ms/);
  // The copied request gives what the page shows.
  await result.getByRole("button", { name: "Copy as curl" }).click();
  const curl = await page.evaluate(() => navigator.clipboard.readText());
  const path = /'https?:\/\/[^/']+([^']+)'/.exec(curl)?.[1] ?? "";
  const answer = await one.ask("GET", path);
  const [largest] = answer.data;
  await expect(result).toContainText(largest.group);
  await expect(result).toContainText(String(largest.value));
  await result.getByRole("button", { name: "Save as widget" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Save as widget" }).click();
  await expect(page).toHaveURL(/\/console\/dashboards\//);
  await expect(page.getByRole("region", { name: "Api call by model" })).toContainText(largest.group);
  // Opened as SQL it asks the same.
  await page.goto(`${inlay.base}/console/explore?event=api_call&group=model&granularity=`);
  await page.getByRole("link", { name: "Open in SQL" }).click();
  await page.getByRole("button", { name: /^Run/ }).click();
  await expect(page.getByRole("region", { name: "Rows" })).toContainText(String(largest.value));
  // And a statement becomes a widget, which shows the same.
  await page.getByRole("link", { name: "Turn into widget" }).click();
  await page.getByRole("dialog").getByLabel("Title").fill("Of a statement");
  await page.getByRole("dialog").getByLabel("Dashboard").selectOption("A new dashboard");
  await page.getByRole("dialog").getByRole("button", { name: "Save as widget" }).click();
  await expect(page.getByRole("heading", { name: "Of a statement", level: 1 })).toBeVisible();
  await expect(page.getByRole("region", { name: "Of a statement" })).toContainText(String(largest.value));
  await page.goBack();
  await expect(page.getByRole("region", { name: "Api call by model" })).toContainText(largest.group);
  await expect(page.getByRole("dialog")).toHaveCount(0);
});

test("embed sessions: minted, in words, counting down, revoked", async ({ page, org, open }) => {
  const one = await org({ filled: true });
  await one.dashboard("Usage", [widget("calls", "number", "Calls", {}, { x: 0, y: 0, w: 3, h: 3 })], true);
  await open(one, "embed-sessions?new=1");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Tenant", { exact: true }).fill("acme");
  await dialog.getByText("Restrict what is seen").click();
  await dialog.getByLabel("Locked filters").fill("model=nova\nmodel=lyra");
  await dialog.getByRole("button", { name: "Mint a test session" }).click();
  await expect(page.getByText("The session is open")).toBeVisible();
  expect(await page.locator(".secret code").textContent()).toContain("/embed/");
  await page.getByRole("button", { name: "Close" }).click();
  const row = page.getByRole("row", { name: /acme/ });
  await expect(row).toContainText("may drill down; only model = nova, lyra");
  await row.getByRole("button", { name: "Actions for acme" }).click();
  await page.getByRole("menuitem", { name: "Revoke" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await expect(page.getByText("No open sessions")).toBeVisible();
});

test("an alert: made on a widget, tested, fired, its deliveries with what came back", async ({
  page,
  org,
  open,
  expected,
}) => {
  expected.push(/400/);
  const one = await org({ filled: true });
  await one.dashboard("Usage", [widget("calls", "number", "Calls", {}, { x: 0, y: 0, w: 3, h: 3 })]);
  await open(one, "alerts?new=1");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Threshold").fill("1");
  await dialog.getByLabel("Window (minutes)").fill("1440");
  await expect(dialog).toContainText("Fires when the value is above 1 in the last day.");
  await expect(dialog).toContainText(/It would have fired \d+ times? in the last 30 days/);
  await dialog.getByLabel("Mail to").fill("ops@example.com");
  await dialog.getByLabel("Webhook", { exact: true }).fill("http://127.0.0.1:9/hook");
  await dialog.getByRole("button", { name: "New alert" }).click();
  await expect(dialog.getByLabel("Webhook", { exact: true })).toHaveAttribute("aria-invalid", "true");
  await dialog.getByLabel("Webhook", { exact: true }).fill("https://hooks.example.com/a");
  await dialog.getByLabel("Sign what is sent").check();
  // The threshold is a line of the chart, as high as it says.
  await expect(dialog.locator(".threshold.bad")).toHaveText("Threshold");
  await dialog.getByRole("button", { name: "New alert" }).click();
  await expect(page.locator(".secret code")).toHaveText(/^whsec_/);
  await page.getByRole("button", { name: "I stored it" }).click();
  await expect(page.getByRole("heading", { name: "Calls", level: 1 })).toBeVisible();
  await expect(page.getByText("https://hooks.example.com/a")).toBeVisible();
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Threshold").fill("2");
  await expect(page.getByRole("dialog")).toContainText(/Fires when the value is above 2/);
  await expect(page.getByLabel("Sign what is sent")).toBeChecked();
  await page.getByLabel("Webhook", { exact: true }).fill("");
  await page.getByLabel("Mail to").fill("");
  await expect(page.getByText("Nobody is told")).toBeVisible();
  await page.getByLabel("Webhook", { exact: true }).fill("https://hooks.example.com/a");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expect(page.getByText("Fires when the value is above 2 in the last day.")).toBeVisible();
  // It is above 2, so it fires, and nobody answers behind the webhook's name: three attempts.
  const history = page.getByRole("table", { name: "History" });
  await expect(history.getByRole("row", { name: /Fired/ }).first()).toContainText("webhook");
  await page.getByRole("link", { name: "Deliveries" }).click();
  for (const attempt of ["1", "2", "3"]) {
    const cell = page.getByRole("cell", { name: attempt, exact: true }).first();
    await expect(page.getByRole("row").filter({ has: cell }).first()).toContainText("No connection");
  }
  await page.getByRole("link", { name: "Alerts", exact: true }).click();
  await page.getByRole("button", { name: "Actions for Calls" }).click();
  await page.getByRole("menuitem", { name: "Pause" }).click();
  await expect(page.getByRole("row", { name: /Calls/ })).toContainText("Paused");
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page.getByRole("row", { name: /Calls/ })).not.toContainText("Paused");
});

test("a report: its schedule in words, run now, delivered", async ({ page, org, open, expected }) => {
  expected.push(/400/);
  const one = await org({ filled: true });
  await one.dashboard("Usage", [widget("calls", "number", "Calls", {}, { x: 0, y: 0, w: 3, h: 3 })], true);
  await open(one, "reports?new=1");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Weekly usage");
  await dialog.getByLabel("Time zone").fill("Europe/Berlin");
  await expect(dialog).toContainText("Every Monday at 08:00, Europe/Berlin");
  await expect(dialog).toContainText(
    "Next runs, in your time: Mon, Nov 23, 07:00 AM; Mon, Nov 30, 07:00 AM; Mon, Dec 7, 07:00 AM",
  );
  await dialog.getByLabel("Time zone").fill("Europe/Berlun");
  await expect(dialog).toContainText("There is no such time zone");
  await dialog.getByLabel("Time zone").fill("Europe/Berlin");
  await dialog.getByLabel("Format").selectOption("csv");
  await dialog.getByLabel("Mail to").fill("a@example.com\nb@example.com");
  await dialog.getByRole("button", { name: "New report" }).click();
  await expect(page.getByRole("heading", { name: "Weekly usage", level: 1 })).toBeVisible();
  await page.getByRole("button", { name: "Run now" }).click();
  await expect(page.getByRole("row", { name: /Manual/ })).toContainText("Delivered");
  await expect(page.getByRole("row", { name: /Manual/ })).toContainText("b@example.com");
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  const file = await saved;
  expect(file.suggestedFilename()).toBe("Weekly usage.csv");
  expect(readFileSync(await file.path(), "utf8")).toMatch(/^\ufeffwidget_id,.*\r\ncalls,Calls,/);
});

test("dashboards stand as cards with a drawing, and begin with a layout of one's own events", async ({
  page,
  org,
  open,
}) => {
  const one = await org({ filled: true });
  await open(one, "dashboards?new=1");
  await page.getByLabel("Name").fill("Calls");
  await page.getByLabel("Begin with").selectOption("overview");
  await page.getByRole("dialog").getByRole("button", { name: "New dashboard" }).click();
  await expect(page.getByRole("listitem", { name: "Events per day" })).toBeVisible();
  const [made] = (await one.ask("GET", "/v1/dashboards")).data;
  expect(made.widgets.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["number", "area", "bar_list"]));
  await one.ask("POST", `/v1/dashboards/${made.id}/publish`, {}, 204);
  await one.ask("PATCH", `/v1/dashboards/${made.id}`, { name: "Calls of all", widgets: made.widgets.slice(1) });
  await page.getByRole("link", { name: "Dashboards", exact: true }).first().click();
  const card = page.getByRole("list", { name: "Dashboards" }).getByRole("listitem");
  await expect(card).toHaveCount(1);
  await expect(card.locator(".card-preview svg").first()).toBeVisible();
  await expect(card).toContainText("Published");
  await expect(card).toContainText("2 changes");
  await page.getByRole("searchbox", { name: "Search dashboards" }).fill("nothing like it");
  await expect(page.getByText("Nothing matches")).toBeVisible();
});

test("permissions are built, seen in the code to copy, and hold in the embed beside it", async ({
  page,
  org,
  open,
  expected,
}) => {
  // The embed is shown on the console's own origin, where a sandbox is no border.
  expected.push(/can escape its sandboxing/);
  const one = await org({ filled: true });
  const board = await one.dashboard(
    "Usage",
    [
      widget("calls", "number", "Calls", {}, { x: 0, y: 0, w: 3, h: 3 }),
      widget("secret", "number", "Margin", {}, { x: 3, y: 0, w: 3, h: 3 }),
    ],
    true,
  );
  await open(one, `dashboards/${board.id}?tenant=acme`);
  await page.getByRole("button", { name: "Embed" }).click();
  await page.getByText("Restrict what is seen").click();
  // What cannot be meant is refused here, and never a wider session.
  await page.getByLabel("Locked filters").fill("model: nova");
  await page.getByRole("button", { name: "Show it" }).click();
  await expect(page.getByRole("alert")).toContainText("an equals sign");
  expect((await one.ask("GET", "/v1/embed-sessions")).data).toHaveLength(0);
  await page.getByLabel("Locked filters").fill("model=nova");
  await page.getByRole("group", { name: "Hidden widgets" }).getByLabel("Margin").check();
  await page.getByLabel("May drill down").uncheck();
  const code = page.getByLabel("On your server: curl");
  await expect(code).toContainText('"locked_filters":{"model":"nova"},"hidden_widgets":["secret"]');
  await expect(page.getByText("This session: no drill-down; only model = nova; 1 widget hidden.")).toBeVisible();
  await page.getByText("Colors of your product").click();
  await page.getByLabel("Primary").fill("#0f766e");
  await page.getByLabel("Light or dark").selectOption("Dark");
  await expect(page.getByLabel("In your page: HTML")).toContainText('theme = {"primaryColor":"#0f766e","mode":"dark"}');
  await page.getByRole("button", { name: "Python", exact: true }).click();
  await expect(page.getByLabel("On your server: Python")).toContainText('"allow_drill_down": False'.replace(" ", ""));
  await page.getByRole("button", { name: "Show it" }).click();
  const embed = page.frameLocator("inlay-dashboard iframe");
  await expect(embed.getByRole("heading", { name: "Calls" })).toBeVisible();
  await expect(embed.getByRole("heading", { name: "Margin" })).toHaveCount(0);
  // The page's colours are those of the embed, and change while it runs.
  const root = embed.locator("html");
  const primary = () => root.evaluate((html) => html.style.getPropertyValue("--primary"));
  await expect(root).toHaveAttribute("data-mode", "dark");
  expect(await primary()).toBe("#0f766e");
  await page.getByLabel("Light or dark").selectOption("Light");
  await expect(root).toHaveAttribute("data-mode", "light");
  const [session] = (await one.ask("GET", "/v1/embed-sessions")).data;
  expect(session.permissions).toMatchObject({
    allow_drill_down: false,
    hidden_widgets: ["secret"],
    locked_filters: { model: "nova" },
  });
});

test("keys: shown once, used, revoked", async ({ page, inlay, org, open }) => {
  const one = await org();
  await open(one, "api-keys");
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByLabel("Label").fill("backend");
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  const key = (await page.locator(".secret code").textContent()) ?? "";
  expect(key).toMatch(/^inlay_ingest_/);
  // Escape does not close what is shown once.
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "I stored it" }).click();
  await page.reload();
  await expect(page.getByRole("row", { name: /backend/ })).toBeVisible();
  expect(await page.content()).not.toContain(key);
  const send = () =>
    fetch(`${inlay.base}/v1/events`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ events: [{ tenant_id: "a", event_name: "b" }] }),
    });
  expect((await send()).status).toBe(200);
  await page.getByRole("button", { name: "Actions for backend" }).click();
  await page.getByRole("menuitem", { name: "Revoke" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await expect(page.getByRole("row", { name: /backend/ })).toHaveCount(0);
  expect((await send()).status).toBe(401);
});

test("each role sees its actions, and the server agrees; the last owner stays", async ({
  page,
  inlay,
  org,
  open,
  expected,
}) => {
  expected.push(/409/);
  const one = await org({ filled: true });
  const board = await one.dashboard("Usage", [widget("calls", "number", "Calls", {}, { x: 0, y: 0, w: 3, h: 3 })]);
  for (const [role, edits, administers] of [
    ["viewer", 0, 0],
    ["editor", 1, 0],
    ["admin", 1, 1],
  ]) {
    const cookie = await one.join(role);
    await open(cookie, `dashboards/${board.id}`);
    await expect(page.getByRole("region", { name: "Calls" })).toContainText("35");
    await expect(page.getByRole("button", { name: "Edit" })).toHaveCount(edits);
    await page.getByRole("link", { name: "API keys" }).click();
    await expect(page.getByRole("button", { name: "Create key" })).toHaveCount(administers);
    const status = async (method, path, body) =>
      (
        await fetch(inlay.base + path, {
          method,
          headers: { cookie, "content-type": "application/json" },
          body: JSON.stringify(body),
        })
      ).status;
    expect(await status("PATCH", `/v1/dashboards/${board.id}`, { name: "Usage" })).toBe(edits ? 200 : 403);
    expect(await status("POST", "/v1/api-keys", { label: "x", scope: "ingest" })).toBe(administers ? 201 : 403);
  }
  await open(one, "team");
  await page.getByLabel("Role of Mara Klein").selectOption("admin");
  await expect(page.getByRole("status").filter({ hasText: /owner/i })).toBeVisible();
  await expect(page.getByLabel("Role of Mara Klein")).toHaveValue("owner");
});

test("usage works without billing, the audit log has what was just done", async ({ page, org, open }) => {
  const one = await org({ filled: true });
  await open(one, "usage");
  await expect(page.getByText("Billing isn’t configured on this server.")).toBeVisible();
  await expect(page.getByText("Events this month").locator("..")).toContainText("40");
  await one.ask("POST", "/v1/api-keys", { label: "watched", scope: "ingest" }, 201);
  await page.getByRole("link", { name: "Audit log" }).click();
  await page.getByLabel("Action", { exact: true }).selectOption("api_key.create");
  await page.getByRole("button", { name: "API key created" }).first().click();
  await expect(page.getByRole("dialog")).toContainText("watched");
});

test("a limit of the plan is a dialog with the numbers and the plan that lifts it", async ({ page, expected }) => {
  // A server of its own, since the others have no limits.
  expected.push(/402/, /^foreign request: http:\/\/localhost/);
  const inlay = await Server.start(["--default-plan", "free"]);
  try {
    await page.goto(`${inlay.base}/console/register`);
    await page.getByLabel("Your name").fill("Mara Klein");
    await page.getByLabel("Organization").fill("Northwind");
    await page.getByLabel("E-mail address").fill("mara@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Create an account" }).click();
    await expect(page.getByRole("heading", { name: "Get started" })).toBeVisible();
    for (const label of ["second", "third"]) {
      await page.goto(`${inlay.base}/console/api-keys?new=1`);
      await page.getByLabel("Label").fill(label);
      await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
      if (label === "second") await page.getByRole("button", { name: "I stored it" }).click();
    }
    const dialog = page.getByRole("dialog", { name: "Your plan does not include this" });
    await expect(dialog).toContainText("2 of 2 used");
    await dialog.getByRole("link", { name: "See the growth plan" }).click();
    await expect(page.getByRole("region", { name: /growth/i })).toContainText("10 API keys");
  } finally {
    await inlay.stop();
  }
});

test("deleting the organisation needs its name, and ends everything", async ({ page, inlay, org, open, expected }) => {
  expected.push(/401/);
  const one = await org();
  await open(one, "settings");
  await page.getByRole("button", { name: "Delete organization" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^Type Northwind/).fill("Northwind");
  await dialog.getByRole("button", { name: "Delete organization" }).click();
  await expect(dialog).toBeVisible();
  await dialog.getByLabel(/^Type Northwind/).fill(one.body.org.name);
  await dialog.getByRole("button", { name: "Delete organization" }).click();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  const me = await fetch(`${inlay.base}/v1/auth/me`, { headers: { cookie: one.cookie } });
  expect(me.status).toBe(401);
  const keyed = await fetch(`${inlay.base}/v1/dashboards`, { headers: { authorization: `Bearer ${one.key}` } });
  expect(keyed.status).toBe(401);
});

test("a session that ends in the middle of editing loses nothing", async ({ page, org, open, expected }) => {
  expected.push(/401/);
  const one = await org({ filled: true });
  const board = await one.dashboard("Usage", [widget("calls", "number", "Calls", {}, { x: 0, y: 0, w: 3, h: 3 })]);
  await open(one, `dashboards/${board.id}?edit=1`);
  await page.getByRole("listitem", { name: "Calls" }).click();
  const sessions = await one.ask("GET", "/v1/auth/sessions");
  await one.ask("DELETE", `/v1/auth/sessions/${sessions.data[0].id}`, undefined, 204);
  await page.getByLabel("Title", { exact: true }).fill("Calls of everybody");
  const dialog = page.getByRole("dialog", { name: "Your session has ended" });
  await expect(dialog).toBeVisible();
  await dialog.getByLabel("Password").fill(PASSWORD);
  await dialog.getByRole("button", { name: "Log in" }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page.getByLabel("Title", { exact: true })).toHaveValue("Calls of everybody");
  // It is saved without being asked again.
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("listitem", { name: "Calls of everybody" })).toBeVisible();
});

test("what others have stored is text in every page", async ({ page, org, open }) => {
  const one = await org();
  const evil = "<img src=x onerror=alert(1)>\"'";
  await one.send([
    {
      tenant_id: evil,
      event_name: evil,
      user_id: evil,
      string_props: { [evil.slice(0, 40)]: evil },
      numeric_props: { [evil.slice(0, 40)]: 1 },
    },
  ]);
  const board = await one.dashboard(
    evil,
    [{ ...widget("w", "bar_list", evil, { event_name: evil, group_by: evil.slice(0, 40) }), viz: { subtitle: evil } }],
    true,
  );
  await one.ask("PATCH", "/v1/settings/org", { name: evil });
  await one.ask("POST", "/v1/api-keys", { label: evil, scope: "ingest" }, 201);
  await one.ask("POST", "/v1/saved-queries", { name: evil, sql: "SELECT 1", dataset: evil }, 201);
  await one.ask(
    "POST",
    "/v1/alerts",
    {
      dashboard_id: board.id,
      widget_id: "w",
      name: evil,
      condition_type: "threshold",
      operator: "gt",
      threshold_value: 0,
      lookback_minutes: 60,
    },
    201,
  );
  await one.ask(
    "POST",
    "/v1/reports",
    { dashboard_id: board.id, name: evil, schedule: "daily", format: "csv", recipients: ["a@example.com"] },
    201,
  );
  await one.ask(
    "POST",
    "/v1/embed-sessions",
    { tenant_id: evil, dashboard_id: board.id, permissions: { locked_filters: { [evil.slice(0, 40)]: evil } } },
    201,
  );
  for (const path of [
    "start",
    "dashboards",
    `dashboards/${board.id}`,
    `dashboards/${board.id}?edit=1`,
    `explore?event=${encodeURIComponent(evil)}`,
    "sql",
    "data",
    "embed-sessions",
    "alerts",
    "alerts/1",
    "reports",
    "reports/1",
    "api-keys",
    "team",
    "usage",
    "audit",
    "settings",
    "account",
  ]) {
    await open(one, path);
    await expect(page.locator("[aria-busy=true]")).toHaveCount(0);
    await expect(page.locator("img[src=x]")).toHaveCount(0);
  }
});

test("deliveries show each attempt, its answer and why it failed", async ({ page, org, open }) => {
  // No receiver may be inside, so none answers here: an address without a server behind it is a failure of its own kind.
  const one = await org({ filled: true });
  const board = await one.dashboard("Usage", [widget("calls", "number", "Calls", {}, { x: 0, y: 0, w: 3, h: 3 })]);
  const alert = await one.ask(
    "POST",
    "/v1/alerts",
    {
      dashboard_id: board.id,
      widget_id: "calls",
      name: "Busy",
      condition_type: "threshold",
      operator: "gt",
      threshold_value: 1,
      lookback_minutes: 1440,
      webhook_url: "https://hooks.example.com/hook",
    },
    201,
  );
  await one.ask("POST", `/v1/alerts/${alert.id}/test`, {});
  await open(one, "deliveries");
  const row = page.getByRole("row", { name: /Busy/ }).first();
  await expect(row).toContainText("No connection");
  await row.getByRole("button", { name: "Details" }).click();
  await expect(page.getByRole("dialog")).toContainText("https://hooks.example.com/hook");
  await expect(page.getByRole("dialog")).toContainText("No response");
  await page.getByRole("dialog").getByRole("button", { name: "Send again" }).click();
  await expect(page.getByText("“Busy” is being sent again.")).toBeVisible();
  await expect(page.getByRole("row", { name: /By hand, 1 of 3/ })).toContainText("No connection");
});

test("what cannot be undone needs the very name, whatever is in it; an address swallows nobody", async ({
  page,
  org,
  open,
}) => {
  const one = await org();
  const name = "Sales - EU & US (100%) <v2>";
  await one.dashboard(name, [], true);
  await open(one, "dashboards");
  await page.getByRole("button", { name: `Actions for ${name}` }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^Type Sales/).fill("x");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await expect(dialog).toBeVisible();
  expect((await one.ask("GET", "/v1/dashboards")).data).toHaveLength(1);
  await dialog.getByLabel(/^Type Sales/).fill(name);
  await dialog.getByRole("button", { name: "Delete" }).click();
  await expect(page.getByText("No dashboards yet")).toBeVisible();
  // `/users/../events` would be all events of the tenant.
  await open(one, "erasures");
  await page.getByRole("button", { name: "Erase events" }).click();
  await page.getByLabel("Tenant").fill("victim");
  await page.getByLabel("User").fill("..");
  await page.getByLabel("Type victim to confirm").fill("victim");
  await page.getByRole("dialog").getByRole("button", { name: "Erase events" }).click();
  await expect(page.getByText("This name can’t be sent in an address.")).toBeVisible();
  expect((await one.ask("GET", "/v1/erasures")).data).toHaveLength(0);
});

test("another user in another tab, or after logging out, finds nothing of the first", async ({
  page,
  inlay,
  org,
  open,
}) => {
  const [one, two] = [await org({ filled: true }), await org()];
  await open(one, "sql");
  await page.getByRole("textbox", { name: "SQL statement" }).click();
  await page.keyboard.type("SELECT 'secret of one'");
  const other = await page.context().newPage();
  await other.goto(`${inlay.base}/console/login`);
  await other.getByLabel("E-mail address").fill(two.email);
  await other.getByLabel("Password").fill(PASSWORD);
  await other.getByRole("button", { name: "Log in" }).click();
  await expect(other.getByRole("heading", { name: "Get started" })).toBeVisible();
  // The first tab shows whose cookie the browser has now.
  await expect(page.locator(".side-head")).toContainText(two.body.org.name);
  await expect(page.getByRole("textbox", { name: "SQL statement" })).not.toContainText("secret of one");
  await page.getByRole("button", { name: "View as API request" }).click();
  await expect(page.getByRole("dialog")).not.toContainText("secret of one");
  await other.close();
});

test("a form that is opened and saved as it is changes nothing", async ({ page, org, open }) => {
  const one = await org({ filled: true });
  const board = await one.dashboard("Usage", [widget("calls", "number", "Calls", {}, { x: 0, y: 0, w: 3, h: 3 })]);
  const alert = {
    dashboard_id: board.id,
    widget_id: "calls",
    name: "Low",
    condition_type: "threshold",
    operator: "lt",
    threshold_value: 5,
    lookback_minutes: 90,
    for_minutes: 10,
    email_to: ["a@example.com"],
  };
  await one.ask("POST", "/v1/alerts", alert, 201);
  const report = {
    dashboard_id: board.id,
    name: "Weekly",
    schedule: { cron: "5 7 * * 1-5", timezone: "Europe/Berlin" },
    format: "csv",
    period: "7d",
    tenant_id: "acme",
    recipients: ["a@example.com"],
  };
  await one.ask("POST", "/v1/reports", report, 201);
  const worded = { ...report, name: "Daily", schedule: "daily", period: null };
  await one.ask("POST", "/v1/reports", worded, 201);
  await one.ask("PATCH", `/v1/dashboards/${board.id}`, {
    settings: {
      default_period: "7d",
      allowed_origins: ["https://app.example.com"],
      theme: { primaryColor: "#0f766e", cardBorder: "rebeccapurple", mode: "dark" },
    },
  });
  for (const path of ["alerts/1", "reports/1", "reports/2"]) {
    await open(one, path);
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await expect(page.getByRole("dialog")).toHaveCount(0);
  }
  expect(await one.ask("GET", "/v1/alerts/1")).toMatchObject(alert);
  expect(await one.ask("GET", "/v1/reports/1")).toMatchObject(report);
  expect(await one.ask("GET", "/v1/reports/2")).toMatchObject(worded);
  await open(one, `dashboards/${board.id}?edit=1`);
  await page.getByRole("button", { name: "Settings", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("status").filter({ hasText: /^Saved$/ })).toBeVisible();
  expect((await one.ask("GET", `/v1/dashboards/${board.id}`)).settings).toEqual({
    default_period: "7d",
    allowed_origins: ["https://app.example.com"],
    theme: { primaryColor: "#0f766e", cardBorder: "rebeccapurple", mode: "dark" },
  });
});
