// Colours stay readable: the arithmetic, and the tokens as they stand in the style sheet.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { contrast, fromOklab, inkOn, isDark, parseHex, readableOn, toHex, toOklab } from "../shared/color.js";
import { apart, ciede2000, rotate } from "../shared/palette.js";

/** @param {string} hex */
const rgb = (hex) => /** @type {import("../shared/color.js").Rgb} */ (parseHex(hex));
const css = readFileSync(new URL("../shared/tokens.css", import.meta.url), "utf8");
/** @param {string} name @returns {string[]} light, dark */
const token = (name) =>
  /** @type {RegExpExecArray} */ (new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(css)).slice(1);

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
  for (const hex of ["#315ed9", "#d07f0e", "#17181c", "#ffffff"])
    assert.equal(toHex(fromOklab(toOklab(rgb(hex)))), hex);
});

test("a weak colour is moved until it is readable, a good one is left alone", () => {
  assert.deepEqual(readableOn(rgb("#17181c"), rgb("#ffffff"), 4.5), rgb("#17181c"));
  for (const [color, card, ratio] of [
    ["#cbd5e1", "#ffffff", 4.5],
    ["#5b21b6", "#1e1b2e", 3],
    ["#fde047", "#ffffff", 3],
    ["#111827", "#0b0f19", 4.5],
  ]) {
    const moved = readableOn(
      rgb(/** @type {string} */ (color)),
      rgb(/** @type {string} */ (card)),
      /** @type {number} */ (ratio),
    );
    assert.ok(
      contrast(moved, rgb(/** @type {string} */ (card))) >= /** @type {number} */ (ratio),
      `${color} on ${card}`,
    );
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
    for (const name of ["text", "muted", "good", "bad", "warn"])
      assert.ok(contrast(rgb(token(name)[mode]), rgb(card[mode])) >= 4.5, `${name} ${mode}`);
    for (const name of ["primary", "border-strong", "c2", "c3", "c4", "c5", "c6", "c7", "c8"]) {
      assert.ok(contrast(rgb(token(name)[mode]), rgb(card[mode])) >= 3, `${name} ${mode}`);
    }
  }
});

test("colour differences are those of the paper", () => {
  // Pairs 1, 7, 16, 17, 25 and 34 of Sharma, Wu, Dalal: "The CIEDE2000 color-difference formula".
  for (const [one, two, difference] of /** @type {[number[], number[], number][]} */ ([
    [[50, 2.6772, -79.7751], [50, 0, -82.7485], 2.0425],
    [[50, 0, 0], [50, -1, 2], 2.3669],
    [[50, 2.5, 0], [50, 0, -2.5], 4.3065],
    [[50, 2.5, 0], [73, 25, -18], 27.1492],
    [[60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644],
    [[2.0776, 0.0795, -1.135], [0.9033, -0.0636, -0.5514], 0.9082],
  ]))
    assert.ok(Math.abs(ciede2000(one, two) - difference) < 0.0001, `${one} ${two}: ${ciede2000(one, two)}`);
});

test("the palette can be told apart by everybody, in the order it is used", () => {
  for (const mode of [0, 1]) {
    const palette = [token("primary"), ...[2, 3, 4, 5, 6, 7, 8].map((n) => token(`c${n}`))].map((pair) =>
      rgb(pair[mode]),
    );
    const worst = (/** @type {number} */ n) =>
      Math.min(...palette.slice(0, n).flatMap((a, i) => palette.slice(0, i).map((b) => apart(a, b))));
    assert.ok(worst(5) > 13, `five: ${worst(5)}`);
    assert.ok(worst(8) > 9, `eight: ${worst(8)}`);
  }
});

test("a host's colour sends those that look like it to the end", () => {
  const others = [2, 3, 4, 5, 6, 7, 8].map((n) => rgb(token(`c${n}`)[0]));
  for (const brand of [
    "#16a34a",
    "#0ea5e9",
    "#0f766e",
    "#e11d48",
    "#7c3aed",
    "#f59e0b",
    "#111827",
    "#db2777",
    "#ea580c",
  ]) {
    const primary = rgb(brand);
    const worst = (/** @type {any[]} */ colors) =>
      Math.min(...colors.slice(0, 4).map((color) => apart(primary, color)));
    const rotated = rotate(primary, others);
    assert.deepEqual(rotated.map(toHex).sort(), others.map(toHex).sort());
    assert.ok(worst(rotated) >= Math.min(worst(others), 12), brand);
    assert.ok(worst(rotated) >= 10, `${brand}: ${worst(rotated)}`);
  }
});
