// @ts-check
// Series told apart by more than colour, for those who ask their system for more contrast.
//
// Areas get a hatch over their colour, lines a dash; the first of every four has neither.

import { html, useEffect, useState } from "../shared/ui.js";

const HATCHES = [null, "M0 6L6 0", "M0 3H6", "M1.5 1.5h.01M4.5 4.5h.01"];
const DASHES = [undefined, "8 3", "2 3", "8 3 2 3"];

/** Whether patterns are asked for. */
export function usePatterns() {
  const [query] = useState(() => matchMedia("(prefers-contrast: more)"));
  const [asked, setAsked] = useState(query.matches);
  useEffect(() => {
    const follow = () => setAsked(query.matches);
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, []);
  return asked;
}

/** The hatches, once in each drawing that uses them. @param {{ id: string }} props */
export function Hatches({ id }) {
  return html`<defs>${HATCHES.map(
    (d, n) =>
      d &&
      html`<pattern key=${n} id=${`${id}-${n}`} width="6" height="6" patternUnits="userSpaceOnUse">
    <path d=${d} stroke="var(--card)" stroke-width="2" stroke-linecap="square" />
  </pattern>`,
  )}</defs>`;
}

/** The fill over the nth series; null for none. @param {string} id @param {number} n */
export const hatchOf = (id, n) => (n % HATCHES.length ? `url(#${id}-${n % HATCHES.length})` : null);

/** The dash of the nth line. @param {number} n */
export const dashOf = (n) => DASHES[n % DASHES.length];
