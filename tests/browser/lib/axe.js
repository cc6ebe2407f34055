// What axe finds on a page.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** What axe finds, as text. The page's own policy would keep axe out, so the test's context is asked past it. */
export async function findings(page) {
  await page.evaluate(axe);
  return page.evaluate(async (tags) => {
    const { violations } = await window.axe.run(document, { runOnly: tags, resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  }, TAGS);
}
