// What the console promises of itself: it can do what a session may, and says everything in the texts.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { CONTROLS, ELSEWHERE } from "./controls.js";

const web = join(dirname(fileURLToPath(import.meta.url)), "..");
const files = readdirSync(join(web, "console"), { recursive: true })
  .map(String)
  .filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".d.ts"));
/** @param {string} name */
const read = (name) => readFileSync(join(web, "console", name), "utf8");
const source = files.map(read).join("\n");
// Of one language, a file for each room of the console.
const texts = files
  .filter((name) => name.startsWith("texts/en"))
  .map(read)
  .join("\n");

test("every operation that a session may do has its control in the console", () => {
  const table = readFileSync(join(web, "../README.md"), "utf8").matchAll(
    /^\| (GET|POST|PATCH|DELETE) \| `([^`]+)` \| `\w+` \| `\w+` \| \S \| \S \| \S \| \S \| (\S) \|/gm,
  );
  const allowed = [...table].filter(([, , , owner]) => owner === "y").map(([, method, path]) => `${method} ${path}`);
  assert.ok(allowed.length > 70, `${allowed.length} operations in the table`);
  assert.deepEqual([...Object.keys(CONTROLS), ...Object.keys(ELSEWHERE)].sort(), allowed.sort());
  const asks = (/** @type {string} */ code) =>
    new Set(
      [...code.matchAll(/api\.(GET|POST|PATCH|DELETE)\(\s*"([^"]+)"/g)].map(([, method, path]) => `${method} ${path}`),
    );
  const said = new Set([...texts.matchAll(/: "([^"\n]+)"/g)].map(([, words]) => words));
  for (const [operation, [file, words]] of Object.entries(CONTROLS)) {
    assert.ok(asks(read(file)).has(operation), `${file} does not ask ${operation}`);
    assert.ok(said.has(words), `${operation}: nothing says “${words}”`);
  }
  const asked = asks(source);
  for (const operation of Object.keys(ELSEWHERE)) assert.ok(!asked.has(operation), operation);
});

test("what a page says stands in the texts", () => {
  for (const name of files.filter((name) => name.endsWith(".tsx"))) {
    const code = read(name).replace(/^\s*\/\/.*$|\/\*\*?.*?\*\//gms, "");
    const spoken = code.matchAll(
      />([A-Z][a-z]+(?: [a-z]+)+)<|(?:aria-label|title|placeholder|label)="([A-Z][a-z][^"]+)"/g,
    );
    assert.deepEqual(
      [...spoken].map(([text]) => text),
      [],
      name,
    );
  }
});

test("markup is made of elements, and only drafts and colours are stored", () => {
  for (const name of files) {
    assert.doesNotMatch(
      read(name),
      /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|eval\(|new Function|: any\b|as any\b/,
      name,
    );
    if (name !== "state/drafts.ts") assert.doesNotMatch(read(name), /localStorage|sessionStorage|indexedDB/, name);
    if (name !== "state/mode.ts") assert.doesNotMatch(read(name), /document\.cookie/, name);
    assert.match(read(name), /^\/\/ [A-Z"⌘`]/, name);
  }
});

test("colours come from the tokens, but for code, which is dark in both themes", () => {
  for (const name of readdirSync(join(web, "console/style"))) {
    const css = readFileSync(join(web, "console/style", name), "utf8").replace(/^\.code[^{]*\{[^}]*\}/gm, "");
    assert.doesNotMatch(css, /#[0-9a-f]{6}\b/i, name);
  }
});

test("the audit log has words for every action of the server", () => {
  const app = join(web, "../src/app");
  const rust = readdirSync(app, { recursive: true })
    .filter((name) => String(name).endsWith(".rs"))
    .map((name) => readFileSync(join(app, name), "utf8"));
  const words = texts.match(/  audit: \{.*?\n  \},/s)?.[0] ?? "";
  const known = new Set([...words.matchAll(/^ {6}(\w+): "/gm)].map(([, name]) => name));
  const found = (/** @type {RegExp} */ pattern) =>
    rust.flatMap((code) => [...code.matchAll(pattern)].map(([, name]) => name));
  // Most names stand in the call; some come through a variable, and are known by their object.
  const audited = new Set([
    ...found(/\.audit\([^;]*?"([a-z_]+\.[a-z_]+)"/gs),
    ...found(/"([a-z_]+\.[a-z_]+)"/g).filter((name) => known.has(name.split(".")[0]) && !/\.(html|txt)$/.test(name)),
  ]);
  assert.ok(audited.size > 35, `${audited.size} actions`);
  for (const action of audited) for (const part of action.split(".")) assert.ok(known.has(part), action);
});
