// @ts-check
// The host's colours, checked and applied.
//
// Values are set one by one as custom properties, never as text of a style sheet, so a value can
// colour the page and do nothing else. A dark card brings the dark palette; a colour that would be
// hard to read on the card is moved until it is not.

import { contrast, inkOn, isDark, parseHex, readableOn, toHex } from "../shared/color.js";

/** Theme key → token. */
const TOKENS = {
  primaryColor: "--primary",
  backgroundColor: "--bg",
  cardBackground: "--card",
  cardBorder: "--card-border",
  textColor: "--text",
  mutedColor: "--muted",
};
/** Least contrast on the card: WCAG 1.4.3 for text, 1.4.11 for marks. */
const TEXT_LEAST = 4.5;
const MARK_LEAST = 3;
/** @type {[string, number][]} */
const LEAST = [
  ["--text", TEXT_LEAST],
  ["--muted", TEXT_LEAST],
  ["--primary", MARK_LEAST],
];
/** Text with more than this on the card may be weakened to 78 % and still reads on fills. */
const STRONG = 9;
const CARD_LIGHT = "#ffffff";
const CARD_DARK = "#16171b";
const SERIES = [2, 3, 4, 5, 6, 7, 8].map((n) => `--c${n}`);
const FONT_CHARS_MAX = 200;
const RADIUS_PX_MAX = 32;

/** What stands for another value is none of its own. */
const NO_VALUE = /^(inherit|initial|unset|revert|revert-layer|currentcolor)$|\b(var|env|attr)\(/i;

/** @typedef {import("../shared/color.js").Rgb} Rgb */

/**
 * Any CSS colour over a surface, by letting the browser paint it. @param {string} text @param {Rgb} under @returns {Rgb}
 */
function paintedOn(text, under) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d");
  if (!context) return parseHex(text) ?? under;
  for (const color of [toHex(under), text]) {
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
  }
  const [r, g, b] = context.getImageData(0, 0, 1, 1).data;
  return [r, g, b];
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
      if (typeof value === "string" && CSS.supports("color", value) && !NO_VALUE.test(value.trim())) out[key] = value;
      else onInvalid(`${key} is not a color`);
    }
    const { mode, fontFamily, radius } = theme;
    if (["light", "dark", "auto"].includes(mode)) out.mode = mode;
    if (
      typeof fontFamily === "string" &&
      fontFamily.length <= FONT_CHARS_MAX &&
      !NO_VALUE.test(fontFamily.trim()) &&
      CSS.supports("font-family", fontFamily)
    )
      out.fontFamily = fontFamily;
    if (["string", "number"].includes(typeof radius) && Number.isFinite(Number.parseFloat(radius)))
      out.radius = `${Math.min(Math.max(Number.parseFloat(radius), 0), RADIUS_PX_MAX)}px`;
    return out;
  }

  const systemDark = matchMedia("(prefers-color-scheme: dark)");

  /** A token as it comes out, on a surface. @param {string} token @param {Rgb} under @returns {Rgb} */
  function shown(token, under) {
    const probe = root.appendChild(document.createElement("i"));
    probe.style.color = `var(${token})`;
    const { color } = getComputedStyle(probe);
    probe.remove();
    return paintedOn(color, under);
  }

  /** Sets a token where a value is given, and leaves it to the style sheet else. @param {string} token @param {string | null | undefined} value */
  const set = (token, value) => (value ? root.style.setProperty(token, value) : root.style.removeProperty(token));

  function paint() {
    // Without a theme the style sheet is right as it is, and the first look need not wait for probes.
    if (!Object.keys(current).length) return;
    const { mode, cardBackground, backgroundColor, primaryColor, fontFamily, radius } = current;
    for (const [key, token] of Object.entries(TOKENS)) set(token, current[key]);
    // What is see-through lies on the page, and that on a host of which nothing is known but its mode.
    const under = /** @type {Rgb} */ (
      parseHex(
        (mode ?? "auto") === "auto"
          ? systemDark.matches
            ? CARD_DARK
            : CARD_LIGHT
          : mode === "dark"
            ? CARD_DARK
            : CARD_LIGHT,
      )
    );
    const page = backgroundColor ? paintedOn(backgroundColor, under) : under;
    const given = cardBackground ? paintedOn(cardBackground, page) : null;
    const fixed = mode && mode !== "auto" ? mode : given ? (isDark(given) ? "dark" : "light") : null;
    if (fixed) root.dataset.mode = fixed;
    else delete root.dataset.mode;
    const dark = fixed ? fixed === "dark" : systemDark.matches;
    const card = given ?? shown("--card", page);
    // Also what the host left alone must be readable on what it gave.
    for (const [token, least] of LEAST) {
      const color = shown(token, card);
      if (contrast(color, card) < least) set(token, toHex(readableOn(color, card, least)));
    }
    set("--on-primary", primaryColor && toHex(inkOn(shown("--primary", card))));
    // Second text is a weaker shade, unless the first has no strength to lose.
    set("--text-2", contrast(shown("--text", card), card) < STRONG ? "var(--text)" : null);
    // Titles stand on the page, which a host may have made as dark as the cards are light.
    const ground = backgroundColor ? page : shown("--bg", page);
    for (const [token, on] of [
      ["--text", "--text-page"],
      ["--muted", "--muted-page"],
    ]) {
      const color = shown(token, ground);
      set(on, contrast(color, ground) < TEXT_LEAST ? toHex(readableOn(color, ground, TEXT_LEAST)) : null);
    }
    paintSeries(dark, card);
    set("--font", fontFamily && `${fontFamily}, system-ui, sans-serif`);
    set("--radius", radius);
  }

  /** The host's colour leads the series; those that look like it come last. @param {boolean} dark @param {Rgb} card */
  function paintSeries(dark, card) {
    for (const token of SERIES) root.style.removeProperty(token);
    if (!current.primaryColor && !current.cardBackground) return;
    if (!palette) {
      loading = import("../shared/palette.js").then(
        (module) => {
          palette = module;
          paint();
        },
        () => {},
      );
      return;
    }
    const rotated = palette.rotate(shown("--primary", card), paletteOf(dark));
    rotated.forEach((color, i) => root.style.setProperty(SERIES[i], toHex(readableOn(color, card, MARK_LEAST))));
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
