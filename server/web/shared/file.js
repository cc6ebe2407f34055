// @ts-check
// Files that a viewer takes away: CSV for spreadsheets, and saving what was made under a name from a title.
//
//     saveCsv([["day", "events"], ["2026-11-24", 120]], "Events per day")     // Events per day.csv
//
// CSV is UTF-8 with a byte order mark, and text that a spreadsheet would run as a formula gets an apostrophe before it.

/** One cell of a CSV file, RFC 4180. Numbers stay numbers; text never becomes a formula. @param {any} value */
export function cell(value) {
  if (value == null) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {any[][]} rows */
export const csv = (rows) => "\ufeff" + rows.map((row) => row.map(cell).join(",") + "\r\n").join("");

/** A file name from a title. @param {string} title @param {string} ending */
export const fileName = (title, ending) =>
  `${
    title
      .replace(/[\u0000-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069<>:"/\\|?*]+/g, " ")
      .replace(/\s+/g, " ")
      .trim()
      .slice(0, 80) || "data"
  }.${ending}`;

/** @param {Blob} blob @param {string} name */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** @param {any[][]} rows @param {string} title */
export const saveCsv = (rows, title) =>
  save(new Blob([csv(rows)], { type: "text/csv;charset=utf-8" }), fileName(title, "csv"));
