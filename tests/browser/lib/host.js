// The page of a customer's customer: another origin, a strict content policy, a backend that mints.

import { createServer } from "node:http";

/** @param {import("./server.js").Server} inlay */
export async function startHost(inlay) {
  const routes = new Map();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://127.0.0.1");
    const route = routes.get(url.pathname);
    if (!route) return response.writeHead(404).end();
    const { status = 200, type = "text/html", body = "", headers = {} } = await route(url);
    response.writeHead(status, { "content-type": type, ...headers }).end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  const policy = `default-src 'none'; script-src 'self' ${inlay.base}; frame-src 'self' ${inlay.base}; connect-src 'self'; img-src 'self' data:; style-src 'self'`;
  const page = (body) => () => ({
    headers: { "content-security-policy": policy },
    body: `<!doctype html><html lang="en"><head><title>Host</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/host.css">
      <script type="module" src="/host.js"></script></head><body>${body}</body></html>`,
  });
  routes.set("/", page('<h1>Usage</h1><div id="a"></div><div id="b"></div>'));
  routes.set("/host.css", () => ({ type: "text/css", body: "body{margin:0}h1{margin:8px}" }));
  // Everything that the helper says is kept in order.
  routes.set("/host.js", () => ({
    type: "text/javascript",
    body: `import { mountDashboard } from "${inlay.base}/sdk/v1/embed.js";
      window.seen = [];
      window.messages = [];
      addEventListener("message", ({ data }) => messages.push(data));
      const types = ["ready", "resize", "filter", "period-change", "drill", "error", "session-swapped"];
      window.watch = (element) => { for (const type of types) element.addEventListener(type, (event) => seen.push({ type, ...event.detail })); return element; };
      window.mount = (options, into = "#a") => { window.dash = watch(mountDashboard(into, options)); return true; };
      window.loaded = true;`,
  }));
  return {
    origin,
    routes,
    page,
    policy,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(resolve);
      }),
  };
}
