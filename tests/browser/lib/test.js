// What every test has: a server with data, a host page on another origin, and a page that must stay
// quiet: no console error, no broken policy, no request to anybody else.

import { expect, test as base } from "@playwright/test";
import { startHost } from "./host.js";
import { EVERYTHING, Server, story } from "./server.js";

export { EVERYTHING, expect };

export const test = base.extend({
  inlay: [
    async ({}, use) => {
      const server = await Server.start();
      await server.register();
      await server.send(story());
      server.dashboard = await server.publish("API usage", EVERYTHING);
      await use(server);
      await server.stop();
    },
    { scope: "worker", timeout: 120_000 },
  ],

  host: [
    async ({ inlay }, use) => {
      const host = await startHost(inlay);
      await use(host);
      await host.stop();
    },
    { scope: "worker" },
  ],

  /** Console messages that a test expects, as regular expressions. */
  expected: [async ({}, use) => use([]), {}],

  page: async ({ page, inlay, host, expected }, use) => {
    const faults = [];
    page.on("pageerror", (error) => faults.push(`uncaught: ${error.message}`));
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) faults.push(`${message.type()}: ${message.text()}`);
    });
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (/^https?:$/.test(url.protocol) && ![inlay.base, host.origin].includes(url.origin))
        faults.push(`foreign request: ${request.url()}`);
    });
    await use(page);
    expect(
      faults.filter((fault) => !expected.some((pattern) => pattern.test(fault))),
      "the page stays quiet",
    ).toEqual([]);
  },

  /** Opens the page of a session alone, without a host. */
  embed: async ({ page, inlay }, use) => {
    await use(async (permissions, { dashboard = inlay.dashboard, query = "", tenant_id } = {}) => {
      const session = await inlay.mint(dashboard, { permissions, tenant_id });
      await page.goto(session.embed_url + query);
      return { ...session, url: session.embed_url };
    });
  },

  /** Mounts the helper on the host page and gives the frame. */
  mounted: async ({ page, inlay, host }, use) => {
    await use(async ({ permissions, options = {}, dashboard = inlay.dashboard } = {}) => {
      const session = await inlay.mint(dashboard, { permissions });
      await page.goto(`${host.origin}/`);
      await page.waitForFunction(() => window.loaded);
      await page.evaluate((given) => window.mount(given), { embedUrl: session.embed_url, ...options });
      const frame = page.frameLocator("iframe[title=Dashboard]");
      await expect(frame.getByRole("heading", { level: 1 })).toBeVisible();
      await expect.poll(() => seen(page, "filter")).not.toHaveLength(0);
      return { frame, session };
    });
  },
});

/** Events of a type that the host saw. @param {import("@playwright/test").Page} page @param {string} [type] */
export const seen = (page, type) =>
  page.evaluate((wanted) => window.seen.filter((one) => !wanted || one.type === wanted), type);

/** The card with a title. @param {any} scope page or frame */
export const card = (scope, title) => scope.getByRole("region", { name: title, exact: true });

/** Until no card loads. */
export async function settled(scope) {
  await expect(scope.locator(".card[aria-busy=true]")).toHaveCount(0);
}

/** The sum that the API gives for the tenant, to compare with. */
export async function count(inlay, query) {
  const answer = await inlay.ask(
    "GET",
    `/v1/query?${new URLSearchParams({ tenant_id: "acme", event_name: "api_call", metric: "count", ...query })}`,
  );
  return answer.data;
}

/** As the page writes it. */
export const full = (value) => new Intl.NumberFormat("en-US").format(value);
