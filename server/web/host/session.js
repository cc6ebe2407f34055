// @ts-check
// When a session ends and when to ask for the next one: pure arithmetic over tokens and times.
//
// The client's wall clock may be wrong by hours, so nothing here compares with it: a token says how
// long it lives, and that time is counted from when it was received.

/** A session is renewed after 80 % of its lifetime, a tenth earlier or later so that many clients are spread. */
const RENEW_FROM = 0.72;
const RENEW_SPREAD = 0.16;
const RENEW_MS_MIN = 10_000;
/** When a token cannot be read. */
const LIFE_MS_DEFAULT = 300_000;
const RETRY_MS = 2000;
const RETRIES = 5;

/** The claims of a token, for timing only, never for trust. @param {string} url @returns {{ exp?: number, iat?: number, sub?: string }} */
export function claimsOf(url) {
  try {
    // Without a token there is nothing to read, which is an error like any other.
    const [, part] = /** @type {string} */ (new URL(url).searchParams.get("token")).split(".");
    return JSON.parse(atob(part.replace(/[-_]/g, (c) => (c === "-" ? "+" : "/"))));
  } catch {
    return {};
  }
}

/** How long after its receipt a session is renewed. @param {string} url @param {number} random 0…1 */
export function renewalMs(url, random) {
  const { exp = NaN, iat = NaN } = claimsOf(url);
  const life_ms = (exp - iat) * 1000 || LIFE_MS_DEFAULT;
  return Math.max(RENEW_MS_MIN, life_ms * (RENEW_FROM + RENEW_SPREAD * random));
}

/** How long to wait after the nth failure in a row, from 0; null: no more. @param {number} n @returns {number | null} */
export const retryMs = (n) => (n < RETRIES ? RETRY_MS << n : null);

/** The address in what a host's callback gave: text, or the answer of `POST /v1/embed-sessions`. @param {any} given @returns {string | null} */
export function addressOf(given) {
  const address = given?.embed_url ?? given;
  return typeof address === "string" ? address : null;
}
