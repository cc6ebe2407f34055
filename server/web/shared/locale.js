// @ts-check
// Which language and customs to follow.

/** @param {string | undefined | null} wanted @returns {string} a locale that Intl accepts */
export function pickLocale(wanted) {
  try {
    return Intl.getCanonicalLocales(wanted || "en")[0] ?? "en";
  } catch {
    return "en";
  }
}
