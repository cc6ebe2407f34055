// @ts-check
// The host's colours, checked and applied.
//
// Values are set one by one as custom properties, never as text of a style sheet, so a value can
// colour the page and do nothing else. A dark card brings the dark palette; a colour that would be
// hard to read on the card is moved until it is not.

import { contrast, inkOn, isDark, parseHex, readableOn, toHex } from "../shared/color.js";

/** Theme key → token. */
const TOKENS = {
  primaryColor: "--primary", backgroundColor: "--bg", cardBackground: "--card",
  cardBorder: "--card-border", textColor: "--text", mutedColor: "--muted",
};
/** Least contrast on the card: WCAG 1.4.3 for text, 1.4.11 for marks. */
const LEAST = { textColor: 4.5, mutedColor: 4.5, primaryColor: 3 };
/** Text with more than this on the card may be weakened to 78 % and still reads on fills. */
const STRONG = 9;
const CARD_LIGHT = "#ffffff";
const CARD_DARK = "#16171b";
const SERIES = [2, 3, 4, 5, 6, 7, 8].map((n) => `--c${n}`);
const FONT_CHARS_MAX = 200;
const RADIUS_PX_MAX = 32;

/** Any CSS colour as a triple, by letting the browser paint it; null when it is see-through. @param {string} text */
function rgbOf(text) {
  const hex = parseHex(text);
  if (hex) return hex;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d");
  if (!context) return null;
  context.fillStyle = text;
  context.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
  return a > 200 ? /** @type {import("../shared/color.js").Rgb} */ ([r, g, b]) : null;
}

const THEME_CHARS_MAX = 2000;

/** The theme in a page's address: a mode, or an object as `setTheme` takes it. @param {string | null} text @returns {Record<string, any>} */
export function displayTheme(text) {
  if (!text || text.length > THEME_CHARS_MAX) return {};
  if (!text.startsWith("{")) return { mode: text };
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** Series colours 2 to 8 as the style sheet has them. @param {boolean} dark @returns {import("../shared/color.js").Rgb[]} */
function paletteOf(dark) {
  const style = getComputedStyle(document.documentElement);
  return SERIES.flatMap((token) => {
    const [light, night = light] = style.getPropertyValue(token).match(/#[0-9a-f]{6}/gi) ?? [];
    return /** @type {import("../shared/color.js").Rgb[]} */ ([parseHex((dark ? night : light) ?? "")].filter(Boolean));
  });
}

/**
 * @param {HTMLElement} root @param {(message: string) => void} onInvalid names a value that was skipped
 */
export function createTheme(root, onInvalid) {
  /** @type {Record<string, string>} */ let current = {};
  /** @type {typeof import("../shared/palette.js") | null} */ let palette = null;
  /** @type {Promise<void> | undefined} */ let loading;

  /** @param {Record<string, any>} theme @returns {Record<string, string>} the usable part */
  function usable(theme) {
    /** @type {Record<string, string>} */ const out = {};
    for (const key of Object.keys(TOKENS)) {
      const value = theme[key];
      if (value === undefined) continue;
      if (typeof value === "string" && CSS.supports("color", value) && !value.includes("var(")) out[key] = value;
      else onInvalid(`${key} is not a color`);
    }
    const { mode, fontFamily, radius } = theme;
    if (["light", "dark", "auto"].includes(mode)) out.mode = mode;
    if (typeof fontFamily === "string" && fontFamily.length <= FONT_CHARS_MAX && CSS.supports("font-family", fontFamily)) out.fontFamily = fontFamily;
    if (Number.isFinite(Number.parseFloat(radius))) out.radius = `${Math.min(Math.max(Number.parseFloat(radius), 0), RADIUS_PX_MAX)}px`;
    return out;
  }

  const systemDark = matchMedia("(prefers-color-scheme: dark)");

  function paint() {
    const given = current.cardBackground ? rgbOf(current.cardBackground) : null;
    const fixed = current.mode && current.mode !== "auto" ? current.mode : given ? (isDark(given) ? "dark" : "light") : null;
    if (fixed) root.dataset.mode = fixed;
    else delete root.dataset.mode;
    const dark = fixed ? fixed === "dark" : systemDark.matches;
    const card = given ?? /** @type {import("../shared/color.js").Rgb} */ (parseHex(dark ? CARD_DARK : CARD_LIGHT));
    for (const [key, token] of Object.entries(TOKENS)) {
      const value = current[key];
      if (!value) continue;
      const least = LEAST[/** @type {keyof typeof LEAST} */ (key)];
      const rgb = least ? rgbOf(value) : null;
      const weak = rgb && least && contrast(rgb, card) < least;
      root.style.setProperty(token, weak ? toHex(readableOn(rgb, card, least)) : value);
      if (key === "primaryColor" && rgb) root.style.setProperty("--on-primary", toHex(inkOn(weak ? readableOn(rgb, card, least) : rgb)));
    }
    paintSeries(dark, card);
    // Second text is a weaker shade, unless the first has no strength to lose.
    const text = rgbOf(getComputedStyle(root).getPropertyValue("--text").trim());
    if (current.textColor && text && contrast(text, card) < STRONG) root.style.setProperty("--text-2", "var(--text)");
    else root.style.removeProperty("--text-2");
    // Titles stand on the page, which a host may have made as dark as the cards are light.
    const page = current.backgroundColor ? rgbOf(current.backgroundColor) : null;
    for (const [token, on] of [["--text", "--text-page"], ["--muted", "--muted-page"]]) {
      const color = rgbOf(getComputedStyle(root).getPropertyValue(token).trim());
      if (page && color && contrast(color, page) < LEAST.textColor) root.style.setProperty(on, toHex(readableOn(color, page, LEAST.textColor)));
      else root.style.removeProperty(on);
    }
    if (current.fontFamily) root.style.setProperty("--font", `${current.fontFamily}, system-ui, sans-serif`);
    if (current.radius) root.style.setProperty("--radius", current.radius);
  }

  /** The host's colour leads the series; those that look like it come last. @param {boolean} dark @param {import("../shared/color.js").Rgb} card */
  function paintSeries(dark, card) {
    for (const token of SERIES) root.style.removeProperty(token);
    const primary = current.primaryColor ? rgbOf(current.primaryColor) : null;
    if (!primary) return;
    if (!palette) {
      loading = import("../shared/palette.js").then((module) => { palette = module; paint(); }, () => {});
      return;
    }
    const rotated = palette.rotate(readableOn(primary, card, LEAST.primaryColor), paletteOf(dark));
    rotated.forEach((color, i) => root.style.setProperty(SERIES[i], toHex(readableOn(color, card, LEAST.primaryColor))));
  }

  systemDark.addEventListener("change", paint);
  return {
    /** @param {Record<string, any>} theme keys that are present replace, others stay */
    apply(theme) {
      current = { ...current, ...usable(theme) };
      paint();
    },
    /** Until all that the theme needs is there. */
    ready: () => loading,
  };
}
