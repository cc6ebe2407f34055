// The rules of this folder that a reader cannot see at a glance.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const web = join(dirname(fileURLToPath(import.meta.url)), "..");
const own = ["shared", "lang", "charts", "embed", "host", "demo"].flatMap((folder) =>
  readdirSync(join(web, folder))
    .filter((name) => name.endsWith(".js"))
    .map((name) => `${folder}/${name}`),
);
/** @param {string} file */
const read = (file) => readFileSync(join(web, file), "utf8");

/** Every module that `entry` loads. @param {string} entry @param {Set<string>} [seen] */
function graph(entry, seen = new Set()) {
  if (seen.has(entry)) return seen;
  seen.add(entry);
  for (const [, path] of read(entry).matchAll(/^(?:import|(?:import|export)\b[^;]*?from)\s*"([^"]+)";/gms)) {
    assert.ok(path.startsWith("."), `${entry} imports ${path}, which a browser cannot resolve`);
    graph(join(dirname(entry), path), seen);
  }
  return seen;
}

test("own components stand in calls, not in templates", () => {
  for (const file of own) assert.doesNotMatch(read(file), /<\$\{/, file);
});

test("text enters as text, and nothing is stored", () => {
  for (const file of own) {
    assert.doesNotMatch(
      read(file),
      /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|eval\(|new Function/,
      file,
    );
    assert.doesNotMatch(read(file), /localStorage|sessionStorage|document\.cookie|indexedDB/, file);
  }
});

test("every file is checked and opens with its story", () => {
  for (const file of own) assert.match(read(file), /^\/\/ @ts-check\n\/\/ [A-Z]/, file);
});

test("colours come from tokens.css only", () => {
  for (const file of own.filter((file) => !/color|theme|demo/.test(file)))
    assert.doesNotMatch(read(file), /#[0-9a-f]{6}\b/i, file);
  for (const file of ["embed.css", "cards.css", "dialogs.css"])
    assert.doesNotMatch(read(`embed/${file}`), /#[0-9a-f]{6}\b/i, file);
});

test("the message page loads no view library and no chart", () => {
  for (const file of graph("embed/message.js")) assert.doesNotMatch(file, /^(vendor|charts)|ui\.js/, file);
});

test("the helper depends on nothing but itself", () => {
  for (const file of graph("host/embed.js")) assert.match(file, /^host\//);
});

test("every import of the page resolves", () => {
  for (const file of graph("embed/main.js")) assert.ok(existsSync(join(web, file)), file);
});

test("vendored files are what VENDOR.json says", () => {
  for (const { file, sha256, license_file } of JSON.parse(read("vendor/VENDOR.json")).files) {
    assert.equal(
      createHash("sha256")
        .update(readFileSync(join(web, "vendor", file)))
        .digest("hex"),
      sha256,
      file,
    );
    assert.ok(read(`vendor/${license_file}`).length > 500, license_file);
  }
});

test("each language says everything, with the same things to fill in", async () => {
  const { words: english } = await import("../lang/en.js");
  for (const name of readdirSync(join(web, "lang"))) {
    const { words } = await import(`../lang/${name}`);
    assert.deepEqual(Object.keys(words).sort(), Object.keys(english).sort(), name);
    for (const [key, value] of Object.entries(english)) {
      const own = words[key];
      assert.equal(typeof own, typeof value, `${name} ${key}`);
      assert.equal(Array.isArray(own), Array.isArray(value), `${name} ${key}`);
      if (typeof value !== "function") assert.ok(own.length > 0, `${name} ${key}`);
      else if (value.length === 1 && key !== "lowHigh")
        assert.ok(own("§").includes("§"), `${name} ${key} leaves out its value`);
    }
  }
});
