// @ts-check
// Which series colours go with a host's primary colour.
//
// The palette was computed so that its entries can be told apart, also by eyes without red, green or
// blue cones. A host's colour takes the first place, and what could be taken for it goes to the end.
// Loaded only where a host has a colour.

/** As in `color.js`: a module that both import would be one more request of every page. @param {number} channel 0…255 */
const toLinear = (channel) => {
  const c = channel / 255;
  return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
};

/** @typedef {import("./color.js").Rgb} Rgb */

/** Linear sRGB as seen with no deficiency and without red, green or blue cones. Source: Machado et al., 2009, severity 1. */
const VISIONS = [
  [1, 0, 0, 0, 1, 0, 0, 0, 1],
  [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
];

/** CIE L*a*b* under D65 of a colour as one kind of vision sees it. @param {Rgb} rgb @param {number[]} vision @returns {number[]} */
function toLab(rgb, vision) {
  const c = rgb.map(toLinear);
  const [r, g, b] = [0, 3, 6].map((i) =>
    Math.min(Math.max(vision[i] * c[0] + vision[i + 1] * c[1] + vision[i + 2] * c[2], 0), 1),
  );
  const [x, y, z] = [
    (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047,
    0.2126729 * r + 0.7151522 * g + 0.072175 * b,
    (0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883,
  ].map((t) => (t > 216 / 24389 ? Math.cbrt(t) : ((24389 / 27) * t + 16) / 116));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/**
 * Colour difference CIEDE2000. Source: Sharma, Wu, Dalal, 2005.
 * @param {number[]} one @param {number[]} two
 */
export function ciede2000([l1, a1, b1], [l2, a2, b2]) {
  const { hypot, atan2, cos, sin, sqrt, abs, exp, PI } = Math;
  const rad = PI / 180;
  const pull = (/** @type {number} */ c) => sqrt(c ** 7 / (c ** 7 + 25 ** 7));
  const g = 0.5 * (1 - pull((hypot(a1, b1) + hypot(a2, b2)) / 2));
  const [p1, p2] = [a1 * (1 + g), a2 * (1 + g)];
  const [c1, c2] = [hypot(p1, b1), hypot(p2, b2)];
  const hue = (/** @type {number} */ b, /** @type {number} */ a) => (a || b ? (atan2(b, a) / rad + 360) % 360 : 0);
  const [h1, h2] = [hue(b1, p1), hue(b2, p2)];
  const grey = c1 * c2 === 0;
  let dh = grey ? 0 : h2 - h1;
  if (abs(dh) > 180) dh -= Math.sign(dh) * 360;
  const sum = h1 + h2;
  const h = grey ? sum : abs(h1 - h2) <= 180 ? sum / 2 : sum < 360 ? (sum + 360) / 2 : (sum - 360) / 2;
  const [l, c] = [(l1 + l2) / 2, (c1 + c2) / 2];
  const t =
    1 -
    0.17 * cos((h - 30) * rad) +
    0.24 * cos(2 * h * rad) +
    0.32 * cos((3 * h + 6) * rad) -
    0.2 * cos((4 * h - 63) * rad);
  const dl = (l2 - l1) / (1 + (0.015 * (l - 50) ** 2) / sqrt(20 + (l - 50) ** 2));
  const dc = (c2 - c1) / (1 + 0.045 * c);
  const dH = (2 * sqrt(c1 * c2) * sin((dh / 2) * rad)) / (1 + 0.015 * c * t);
  const turn = -sin(60 * exp(-(((h - 275) / 25) ** 2)) * rad) * 2 * pull(c);
  return sqrt(dl ** 2 + dc ** 2 + dH ** 2 + turn * dc * dH);
}

/** How far apart two colours are for the eyes that see them closest. @param {Rgb} a @param {Rgb} b */
export const apart = (a, b) => Math.min(...VISIONS.map((vision) => ciede2000(toLab(a, vision), toLab(b, vision))));

/** Less than this between two series is a guess, not a reading. */
const APART_MIN = 12;

/**
 * The palette behind a host's primary colour: entries that could be taken for it go to the end.
 * @param {Rgb} primary @param {Rgb[]} others the palette without its first entry @returns {Rgb[]} all of `others`
 */
export function rotate(primary, others) {
  const close = others.filter((color) => apart(primary, color) < APART_MIN);
  return [...others.filter((color) => !close.includes(color)), ...close];
}
