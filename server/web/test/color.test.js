// Colours stay readable: the arithmetic, and the tokens as they stand in the style sheet.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { contrast, fromOklab, inkOn, isDark, parseHex, readableOn, toHex, toOklab } from "../shared/color.js";

/** @param {string} hex */
const rgb = (hex) => /** @type {import("../shared/color.js").Rgb} */ (parseHex(hex));
const css = readFileSync(new URL("../shared/tokens.css", import.meta.url), "utf8");
/** @param {string} name @returns {string[]} light, dark */
const token = (name) => /** @type {RegExpExecArray} */ (new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(css)).slice(1);

test("contrast is that of WCAG", () => {
  assert.equal(contrast(rgb("#000"), rgb("#fff")), 21);
  assert.ok(Math.abs(contrast(rgb("#767676"), rgb("#ffffff")) - 4.54) < 0.01);
});

test("hex colours are read strictly", () => {
  assert.deepEqual(parseHex("#315ed9"), [49, 94, 217]);
  assert.deepEqual(parseHex("#fff"), [255, 255, 255]);
  for (const text of ["315ed9", "#ffff", "red", "#ggg"]) assert.equal(parseHex(text), null);
});

test("OKLab goes there and back", () => {
  for (const hex of ["#315ed9", "#d07f0e", "#17181c", "#ffffff"]) assert.equal(toHex(fromOklab(toOklab(rgb(hex)))), hex);
});

test("a weak colour is moved until it is readable, a good one is left alone", () => {
  assert.deepEqual(readableOn(rgb("#17181c"), rgb("#ffffff"), 4.5), rgb("#17181c"));
  for (const [color, card, ratio] of [["#cbd5e1", "#ffffff", 4.5], ["#5b21b6", "#1e1b2e", 3], ["#fde047", "#ffffff", 3], ["#111827", "#0b0f19", 4.5]]) {
    const moved = readableOn(rgb(/** @type {string} */ (color)), rgb(/** @type {string} */ (card)), /** @type {number} */ (ratio));
    assert.ok(contrast(moved, rgb(/** @type {string} */ (card))) >= /** @type {number} */ (ratio), `${color} on ${card}`);
  }
});

test("text on a colour is ink or white, whichever reads better", () => {
  assert.deepEqual(inkOn(rgb("#315ed9")), rgb("#ffffff"));
  assert.deepEqual(inkOn(rgb("#fde047")), rgb("#17181c"));
  assert.equal(isDark(rgb("#16171b")), true);
  assert.equal(isDark(rgb("#f7f7f5")), false);
});

test("the tokens keep their contrast on the card in both modes", () => {
  const card = token("card");
  for (const mode of [0, 1]) {
    for (const name of ["text", "muted", "good", "bad", "warn"]) assert.ok(contrast(rgb(token(name)[mode]), rgb(card[mode])) >= 4.5, `${name} ${mode}`);
    for (const name of ["primary", "border-strong", "c2", "c3", "c4", "c5", "c6", "c7", "c8"]) {
      assert.ok(contrast(rgb(token(name)[mode]), rgb(card[mode])) >= 3, `${name} ${mode}`);
    }
  }
});
