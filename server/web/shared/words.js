// @ts-check
// The language of the page.
//
// English is always there; another language is a module of its own, loaded before anything is drawn.
// `words` is read when a sentence is written, never kept, so that all of the page speaks one language.

import { words as en } from "../lang/en.js";

/** @type {import("../lang/en.js").Words} */
export let words = en;

/** Languages beside English. @type {Record<string, () => Promise<{ words: import("../lang/en.js").Words }>>} */
const LANGUAGES = {
  ar: () => import("../lang/ar.js"),
  de: () => import("../lang/de.js"),
  fr: () => import("../lang/fr.js"),
  ja: () => import("../lang/ja.js"),
};

const language = (/** @type {string} */ locale) => locale.split("-")[0];

/**
 * Speaks the language of a locale from now on; English where there is none, or where it cannot be
 * loaded. The root element says so to browsers and screen readers.
 * @param {string} locale @param {HTMLElement} root
 */
export async function speak(locale, root) {
  const load = LANGUAGES[language(locale)];
  if (!load) return;
  try {
    ({ words } = await load());
  } catch {
    return;
  }
  root.lang = locale;
  root.dir = language(locale) === "ar" ? "rtl" : "ltr";
}
