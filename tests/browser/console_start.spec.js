// The first run: from an empty server to an embed of one's own, and the ways in and out.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, PASSWORD, test } from "./lib/console.js";

test.use({ permissions: ["clipboard-read", "clipboard-write"] });

const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());

test("register, send the copied curl, generate, publish, embed: at most 25 interactions", async ({
  page,
  inlay,
  host,
  context,
  expected,
}) => {
  // The embed is shown on the console's own origin, where a sandbox is no border.
  expected.push(/allow-same-origin/);
  test.setTimeout(120_000);
  let interactions = 0;
  const fill = (label, value) => (interactions++, page.getByLabel(label, { exact: true }).fill(value));
  const click = (locator) => (interactions++, locator.click());
  await page.goto(`${inlay.base}/`);
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  await click(page.getByRole("link", { name: "Create an account" }));
  await fill("Your name", "Mara Klein");
  await fill("Organization", "Northwind");
  const email = `first-${process.pid}@example.com`;
  await fill("E-mail address", email);
  await fill("Password", PASSWORD);
  await click(page.getByRole("button", { name: "Create an account" }));
  await expect(page.getByRole("heading", { name: "Get started" })).toBeVisible();
  const key = await page.locator(".secret code").textContent();
  expect(key).toMatch(/^inlay_admin_/);
  await click(page.getByRole("button", { name: "Copy key" }));
  await expect.poll(() => clipboard(page)).toBe(key);
  // The copied command is run as it is.
  await expect(page.getByText("Waiting for your first event…")).toBeVisible();
  await click(page.locator(".snippets").getByRole("button", { name: "Copy" }));
  interactions++;
  execFileSync("bash", ["-c", await clipboard(page)]);
  const log = page.getByRole("list", { name: "Newest events" });
  await expect(log).toContainText("api_request");
  await expect(log).toContainText("acme");
  await expect(log).toContainText("latency_ms=412");
  await click(page.getByRole("button", { name: "Generate dashboard" }));
  await expect(page.getByRole("link", { name: /^Open “/ })).toBeVisible();
  await click(page.getByRole("button", { name: /^Publish “/ }));
  await click(page.getByRole("button", { name: "Show it" }));
  const frame = page.frameLocator("iframe");
  await expect(frame.getByRole("heading", { level: 1 })).toBeVisible();
  // In a page of one's own: the server's call is run as it stands there, and the element put into the page.
  await click(page.locator(".embed-panel .snippets").first().getByRole("button", { name: "Copy" }));
  interactions++;
  const minted = JSON.parse(
    execFileSync("bash", ["-c", await clipboard(page)], { env: { ...process.env, INLAY_KEY: key ?? "" } }).toString(),
  );
  const own = await context.newPage();
  await own.goto(`${host.origin}/`);
  await own.waitForFunction(() => window.loaded);
  interactions++;
  await own.evaluate((given) => window.mount(given), { embedUrl: minted.embed_url });
  await expect(own.frameLocator("iframe").getByRole("region", { name: "Api request", exact: true })).toContainText("1");
  expect(interactions, "interactions").toBeLessThanOrEqual(25);
  // Left and come back to: the step is the server's, and the key is not shown again.
  await page.reload();
  await expect(page.getByText("4 of 5 done")).toBeVisible();
  await expect(page.getByText(key ?? "")).toHaveCount(0);
});

test("a wrong sign-up says so at its field, and the key is shown once", async ({ page, inlay, org, expected }) => {
  expected.push(/409/, /400/);
  const { email } = await org();
  await page.goto(`${inlay.base}/console/register`);
  await page.getByLabel("Your name").fill("Ada");
  await page.getByLabel("Organization").fill("Acme");
  await page.getByLabel("E-mail address").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create an account" }).click();
  const field = page.getByLabel("E-mail address");
  await expect(field).toHaveAttribute("aria-invalid", "true");
  await expect(field).toHaveAccessibleDescription(/exists/);
  await expect(field).toBeFocused();
});

test("when nothing arrives the usual mistakes are named, and a test event can be sent", async ({ page, inlay }) => {
  await page.clock.install();
  await page.goto(`${inlay.base}/console/register`);
  await page.getByLabel("Your name").fill("Mara Klein");
  await page.getByLabel("Organization").fill("Northwind");
  await page.getByLabel("E-mail address").fill(`late-${Date.now()}@example.com`);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create an account" }).click();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy key" }).click();
  await expect(page.getByText("Waiting for your first event")).toBeVisible();
  await expect(page.getByText("Usually it is one of these")).toHaveCount(0);
  await page.clock.fastForward(61_000);
  await expect(page.getByText("Usually it is one of these")).toBeVisible();
  const stored = page.waitForResponse((response) => response.url().endsWith("/v1/events"));
  await page.getByRole("button", { name: "Send a test event" }).click();
  await stored;
  const log = page.getByRole("list", { name: "Newest events" });
  await expect
    .poll(async () => {
      await page.clock.runFor(1_600);
      return log.getByText("api_request").count();
    })
    .toBe(1);
  await expect(page.getByText("Usually it is one of these")).toHaveCount(0);
});

test("log out and in, with the page that was asked for, and never to another site", async ({
  page,
  inlay,
  org,
  open,
  expected,
}) => {
  expected.push(/401/);
  const one = await org({ filled: true });
  await open(one, "team");
  await page.getByRole("button", { name: "Your menu" }).click();
  await page.getByRole("menuitem", { name: "Log out" }).click();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  await page.goto(`${inlay.base}/console/data?q=api`);
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  await page.getByLabel("E-mail address").fill(one.email);
  await page.getByLabel("Password").fill("wrong horse battery");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page).toHaveURL(`${inlay.base}/console/data?q=api`);
  await expect(page.getByRole("heading", { name: "Events and datasets" })).toBeVisible();
  for (const next of ["//evil.example/", "https://evil.example/console/", "javascript:alert(1)", "/docs"]) {
    await page.context().clearCookies();
    await page.goto(`${inlay.base}/console/login?next=${encodeURIComponent(next)}`);
    await page.getByLabel("E-mail address").fill(one.email);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Log in" }).click();
    await expect(page).toHaveURL(`${inlay.base}/console/start`);
  }
});

test("an invite gives its role, once; a forgotten password is set anew by mail", async ({
  page,
  inlay,
  org,
  open,
  expected,
}) => {
  expected.push(/401/);
  const one = await org();
  await open(one, "team?invite=1");
  const email = `bob-${one.email}`;
  await page.getByRole("dialog").getByLabel("E-mail address").fill(email);
  await page.getByRole("dialog").getByLabel("Role").selectOption("editor");
  await page.getByRole("dialog").getByRole("button", { name: "Invite" }).click();
  const link = await page.locator(".secret code").textContent();
  await page.context().clearCookies();
  await page.goto(link ?? "");
  await page.getByLabel("Your name").fill("Bob");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Join" }).click();
  await expect(page.getByRole("heading", { name: "Dashboards", level: 1 })).toBeVisible();
  await page.goto(`${inlay.base}/console/team`);
  await expect(page.getByRole("row", { name: /Bob \(you\)/ })).toContainText("Editor");
  await expect(page.getByText("Admins and owners may invite and remove people.")).toBeVisible();
  await page.context().clearCookies();
  await page.goto(link ?? "");
  await page.getByLabel("Your name").fill("Eve");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Join" }).click();
  await expect(page.getByRole("alert")).toContainText("used or withdrawn");
  // The mail is what a person would get.
  await page.goto(`${inlay.base}/console/forgot-password`);
  await page.getByLabel("E-mail address").fill(email);
  await page.getByRole("button", { name: "Send the link" }).click();
  await expect(page.getByRole("heading", { name: "Look into your mail" })).toBeVisible();
  const outbox = join(inlay.directory, "data", "outbox");
  const mails = () =>
    readdirSync(outbox)
      .map((file) => readFileSync(join(outbox, file), "utf8").replaceAll("=\r\n", "").replaceAll("=3D", "="))
      .filter((mail) => mail.includes(`To: ${email}`) && mail.includes("reset-password?token="));
  await expect.poll(() => mails().length).toBe(1);
  await page.goto(/http\S+reset-password\?token=[\w.-]+/.exec(mails()[0])?.[0] ?? "");
  await page.getByLabel("Password").fill("another horse battery");
  await page.getByRole("button", { name: "Set the password" }).click();
  await expect(page.getByRole("heading", { name: "Dashboards", level: 1 })).toBeVisible();
});

test("a guest of the demo sees pages with data, and actions for nobody", async ({ page, inlay }) => {
  await page.goto(`${inlay.base}/console/login`);
  await page.getByRole("button", { name: "Look around as a guest" }).click();
  await page.getByRole("link", { name: "API usage" }).click();
  await expect(page.getByRole("region", { name: "Requests by plan" })).toContainText("enterprise");
  await expect(page.getByRole("button", { name: "Edit" })).toHaveCount(0);
  await page.getByRole("link", { name: "Alerts", exact: true }).click();
  await expect(page.getByRole("link", { name: "Too many failed requests" })).toBeVisible();
  await expect(page.getByText("Admins and owners may create and change alerts.")).toBeVisible();
});
