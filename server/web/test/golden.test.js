// @ts-check
// The cases that the server's own drawing is held to are answered here as the file says.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { text } from "./golden.js";

test("the cases of the server's drawing are those of the pages", () => {
  const kept = readFileSync(new URL("golden.json", import.meta.url), "utf8");
  assert.equal(
    text(),
    kept,
    "write it anew with `node server/web/test/golden.js --update`, and look at the server's tests",
  );
});
