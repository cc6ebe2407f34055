// A real server for tests, in a folder of its own, and things that go wrong on the way to it.

import { spawn } from "node:child_process";
import { mkdtempSync, openSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** `inlay serve` of the program in `TEST_INLAY`, with an organisation and its admin key. */
export async function startServer(environment = {}) {
  const folder = mkdtempSync(join(tmpdir(), "inlay-client-"));
  const [port, grpc] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  const log = openSync(join(folder, "log"), "w");
  const settings = ["--data-dir", join(folder, "data"), "--http-addr", `127.0.0.1:${port}`];
  const child = spawn(process.env.TEST_INLAY, ["serve", ...settings, "--grpc-addr", `127.0.0.1:${grpc}`], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", log, log],
  });
  const limit = Date.now() + 30_000;
  while (
    !(await fetch(`${url}/readyz`).then(
      (response) => response.ok,
      () => false,
    ))
  ) {
    if (Date.now() > limit || child.exitCode !== null) throw new Error("the server does not start");
    await sleep(50);
  }
  const account = { email: "ada@example.com", password: "a long enough password", name: "Ada", org_name: "Acme" };
  const headers = { "content-type": "application/json" };
  const made = await fetch(`${url}/v1/auth/register`, { method: "POST", headers, body: JSON.stringify(account) });
  const key = (await made.json()).api_key.key;
  const stop = async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true });
  };
  return { url, port, key, stop };
}

async function freePort() {
  const listener = createServer();
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return port;
}

/** A proxy that drops the responses of the first requests, which the server has carried out. */
export async function startDroppingProxy(server, dropped) {
  const proxy = { left: dropped };
  const listener = createServer((client) => {
    const upstream = connect(server.port, "127.0.0.1");
    client.pipe(upstream);
    upstream.on("data", (data) => {
      if (proxy.left > 0) {
        proxy.left--;
        client.destroy();
      } else {
        client.write(data);
      }
    });
    client.on("error", () => upstream.destroy());
    client.on("close", () => upstream.destroy());
    upstream.on("error", () => client.destroy());
  });
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  proxy.url = `http://127.0.0.1:${listener.address().port}`;
  proxy.stop = () => listener.close();
  return proxy;
}

/** Answers every request as `answer` says, as something between us and the server may. */
export async function startStub(answer) {
  const stub = { requests: [] };
  const listener = createHttpServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts).toString();
    stub.requests.push(`${request.method} ${request.url}`);
    const { status, headers = {}, text } = answer(body);
    response.writeHead(status, headers).end(text);
  });
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  stub.url = `http://127.0.0.1:${listener.address().port}`;
  stub.stop = () => {
    listener.close();
    listener.closeAllConnections();
  };
  return stub;
}

/** Receives webhooks. */
export async function startReceiver() {
  const received = [];
  const listener = createHttpServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    received.push({ headers: request.headers, body: Buffer.concat(parts) });
    response.writeHead(204).end();
  });
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const stop = () => {
    listener.close();
    listener.closeAllConnections();
  };
  return { received, url: `http://127.0.0.1:${listener.address().port}/hook`, stop };
}
