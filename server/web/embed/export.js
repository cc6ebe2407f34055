// @ts-check
// What a viewer takes away: data as CSV, a card as PNG.
//
// Loaded when it is first used. A PNG is the card as it stands,
// its markup with all computed styles inside an SVG image, drawn at twice its size.

import { fileName, save } from "../shared/file.js";
import { tableOf } from "./kit.js";

export { cell, csv, fileName, saveCsv } from "../shared/file.js";

const SCALE = 2;
const MARGIN_PX = 1;

/** The rows of one widget, as its table shows them but unrounded. @param {any} widget @param {any} answer @param {any} format */
export function rowsOf(widget, answer, format) {
  const { columns, rows } = tableOf(widget, answer, format);
  return [columns.map((column) => column.label), ...rows];
}

/** All widgets in one long table, as reports have it. @param {{ widget: any, answer: any }[]} parts */
export function longRows(parts) {
  const rows = [["widget_id", "widget_title", "bucket", "group", "metric", "value"]];
  for (const { widget, answer } of parts) {
    const { query } = widget;
    for (const row of answer.data) {
      const measures = answer.meta.measures ?? [query];
      (row.values ?? [row.value]).forEach((/** @type {any} */ value, /** @type {number} */ i) => {
        const { metric = "count_unique", numeric_prop } = measures[i] ?? {};
        rows.push([
          widget.id,
          widget.title,
          row.bucket ?? "",
          row.group ?? "",
          numeric_prop ? `${metric}(${numeric_prop})` : metric,
          value,
        ]);
      });
    }
  }
  return rows;
}

/** @param {Blob} blob @returns {Promise<string>} */
const dataUrl = (blob) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(/** @type {string} */ (reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });

/** The font as the image needs it: an image loads nothing. */
async function fontRule() {
  const face = [...document.fonts].find((font) => font.family.replaceAll('"', "") === "Inter");
  const sheet =
    face &&
    [...document.styleSheets].flatMap((one) => [...one.cssRules]).find((rule) => rule instanceof CSSFontFaceRule);
  const url = sheet && /url\("?([^")]+)"?\)/.exec(sheet.cssText)?.[1];
  if (!url) return "";
  const base = document.querySelector("link[rel=stylesheet]")?.getAttribute("href") ?? "";
  const response = await fetch(new URL(url, new URL(base, location.href)), { credentials: "omit" });
  return response.ok
    ? `@font-face{font-family:Inter;font-weight:100 900;src:url(${await dataUrl(await response.blob())})}`
    : "";
}

/** A copy that looks the same without any style sheet. @param {Element} from @returns {Element} */
function frozen(from) {
  const to = /** @type {HTMLElement} */ (from.cloneNode(false));
  const style = getComputedStyle(from);
  for (const name of style) to.style.setProperty(name, style.getPropertyValue(name));
  to.style.transition = to.style.animation = "none";
  for (const child of from.childNodes) {
    if (child instanceof Element) {
      if (!child.matches(".icon, .progress, .tip, [popover], .vh")) to.append(frozen(child));
    } else if (child.nodeType === Node.TEXT_NODE) to.append(child.cloneNode());
  }
  return to;
}

/** Draws a card. @param {Element} card @returns {Promise<Blob>} */
export async function pngOf(card) {
  const { width, height } = card.getBoundingClientRect();
  const copy = /** @type {HTMLElement} */ (frozen(card));
  Object.assign(copy.style, {
    position: "static",
    margin: `${MARGIN_PX}px`,
    width: `${width}px`,
    height: `${height}px`,
    boxShadow: "none",
  });
  const [w, h] = [width + 2 * MARGIN_PX, height + 2 * MARGIN_PX].map(Math.ceil);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("width", String(w));
  svg.setAttribute("height", String(h));
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = await fontRule();
  const foreign = document.createElementNS("http://www.w3.org/2000/svg", "foreignObject");
  foreign.setAttribute("width", "100%");
  foreign.setAttribute("height", "100%");
  foreign.append(copy);
  svg.append(style, foreign);
  const image = new Image();
  // Values from the data may hold what XML has no place for.
  const markup = new XMLSerializer()
    .serializeToString(svg)
    .replace(
      /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udfff](?![\udc00-\udfff])(?<![\ud800-\udbff][\udc00-\udfff])/g,
      "",
    );
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(markup)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = w * SCALE;
  canvas.height = h * SCALE;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(SCALE, SCALE);
  context.drawImage(image, 0, 0);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no image"))), "image/png"),
  );
}

/** @param {Element} card @param {string} title */
export async function savePng(card, title) {
  save(await pngOf(card), fileName(title, "png"));
}
