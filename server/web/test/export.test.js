// Files that a viewer takes away.

import assert from "node:assert/strict";
import { test } from "node:test";
import { cell, csv, fileName, longRows } from "../embed/export.js";

test("cells are quoted where they must be and never become formulas", () => {
  assert.equal(cell("plain"), "plain");
  assert.equal(cell('a "b", c'), '"a ""b"", c"');
  assert.equal(cell("two\nlines"), '"two\nlines"');
  assert.equal(cell(null), "");
  assert.equal(cell(-3.5), "-3.5");
  for (const text of ["=1", "+1", "-1", "@a", "\tx", "\rx"]) assert.match(cell(text), /^"?'/, text);
});

test("a file begins with a byte order mark and ends its lines as spreadsheets do", () => {
  assert.equal(
    csv([
      ["a", 1],
      ["é", null],
    ]),
    "\ufeffa,1\r\né,\r\n",
  );
});

test("file names hold nothing that a file system or a reader could stumble over", () => {
  assert.equal(fileName("Calls / day: <all>", "csv"), "Calls day all.csv");
  assert.equal(fileName("\u202egpj.exe", "png"), "gpj.exe.png");
  assert.equal(fileName("///", "csv"), "data.csv");
  assert.equal(fileName("x".repeat(300), "csv").length, 84);
});

test("all widgets in one table, a row a value", () => {
  const rows = longRows([
    {
      widget: { id: "a", title: "A", query: { metric: "sum", numeric_prop: "ms" } },
      answer: { data: [{ bucket: "b1", value: 3 }], meta: {} },
    },
    {
      widget: { id: "t", title: "T", query: {} },
      answer: {
        data: [{ group: "g", values: [1, 2] }],
        meta: { measures: [{ metric: "count" }, { metric: "avg", numeric_prop: "ms" }] },
      },
    },
    { widget: { id: "f", title: "F", query: {} }, answer: { data: [{ group: "step", value: 9 }], meta: {} } },
  ]);
  assert.deepEqual(rows, [
    ["widget_id", "widget_title", "bucket", "group", "metric", "value"],
    ["a", "A", "b1", "", "sum(ms)", 3],
    ["t", "T", "", "g", "count", 1],
    ["t", "T", "", "g", "avg(ms)", 2],
    ["f", "F", "", "step", "count_unique", 9],
  ]);
});
