// @ts-check
// The cases that the server's own drawing is held to are answered here as the file says.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { golden, text } from "./golden.js";

const UPDATE = "write it anew with `node server/web/test/golden.js --update`, and look at the server's tests";

test("the cases of the server's drawing are those of the pages", () => {
  const stored = readFileSync(new URL("golden.json", import.meta.url), "utf8");
  const { cldr, locales, ...english } = JSON.parse(stored);
  // Languages change with their data: another version of Node may write a month or a symbol otherwise.
  if (cldr === golden.cldr) return assert.equal(text(), stored, UPDATE);
  const { cldr: _, locales: ours, ...rest } = golden;
  assert.deepEqual(JSON.parse(JSON.stringify(rest)), english, UPDATE);
  assert.deepEqual(
    ours.map((/** @type {any} */ one) => one.words),
    locales.map((/** @type {any} */ one) => one.words),
    UPDATE,
  );
});
