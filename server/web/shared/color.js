// @ts-check
// Colour arithmetic: contrast, lightness in OKLCH, light or dark.
//
// A host gives six colours and must not be able to make text unreadable. So text and mark colours
// are moved in lightness, hue kept, until they stand out enough from the card. Pure functions over
// sRGB triples 0…255; turning CSS text into a triple is the caller's business.

/** @typedef {[number, number, number]} Rgb */

/** @param {number} channel 0…255 */
const toLinear = (channel) => {
  const c = channel / 255;
  return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
};
/** @param {number} c */
const toChannel = (c) => {
  const v = c <= 0.0031308 ? c * 12.92 : 1.055 * Math.max(c, 0) ** (1 / 2.4) - 0.055;
  return Math.round(Math.min(Math.max(v, 0), 1) * 255);
};

/** Relative luminance, WCAG 2. @param {Rgb} rgb */
export function luminance([r, g, b]) {
  return 0.2126 * toLinear(r) + 0.7152 * toLinear(g) + 0.0722 * toLinear(b);
}

/** Contrast ratio 1…21, WCAG 2. @param {Rgb} a @param {Rgb} b */
export function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

/** Dark surfaces take the dark palette: white text reads better on them than black. @param {Rgb} rgb */
export function isDark(rgb) {
  return luminance(rgb) < 0.179;
}

/** `#rgb`, `#rrggbb`; anything else is null. @param {string} text @returns {Rgb | null} */
export function parseHex(text) {
  const hex = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(text.trim())?.[1];
  if (!hex) return null;
  const six = hex.length === 3 ? hex.replace(/./g, "$&$&") : hex;
  return /** @type {Rgb} */ ([0, 2, 4].map((i) => parseInt(six.slice(i, i + 2), 16)));
}

/** @param {Rgb} rgb */
export function toHex(rgb) {
  return "#" + rgb.map((c) => c.toString(16).padStart(2, "0")).join("");
}

/**
 * sRGB to OKLab. Source: Björn Ottosson, "A perceptual color space for image processing", 2020.
 * @param {Rgb} rgb @returns {[number, number, number]}
 */
export function toOklab(rgb) {
  const [r, g, b] = rgb.map(toLinear);
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

/** OKLab to sRGB, clipped. @param {[number, number, number]} lab @returns {Rgb} */
export function fromOklab([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    toChannel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    toChannel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    toChannel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

/**
 * The colour nearest to `rgb` in lightness that reaches `ratio` on `surface`.
 * Black or white may be the best there is; it is never worse than what was given.
 * @param {Rgb} rgb @param {Rgb} surface @param {number} ratio @returns {Rgb}
 */
export function readableOn(rgb, surface, ratio) {
  if (contrast(rgb, surface) >= ratio) return rgb;
  const [L, a, b] = toOklab(rgb);
  const away = isDark(surface) ? 0.01 : -0.01;
  let best = rgb;
  for (let lightness = L + away; lightness >= 0 && lightness <= 1; lightness += away) {
    // Chroma shrinks towards black and white, or clipping would turn the hue.
    const keep = Math.min(1, lightness / Math.max(L, 0.01), (1 - lightness) / Math.max(1 - L, 0.01));
    best = fromOklab([lightness, a * keep, b * keep]);
    if (contrast(best, surface) >= ratio) return best;
  }
  return best;
}

/** Ink or white, whichever reads better on `surface`. @param {Rgb} surface @returns {Rgb} */
export function inkOn(surface) {
  /** @type {Rgb} */ const ink = [23, 24, 28];
  /** @type {Rgb} */ const white = [255, 255, 255];
  return contrast(ink, surface) > contrast(white, surface) ? ink : white;
}
