// What is slow only once is done before the first test: files just built are written to the disk, so
// that no server waits for them at its first sync, and Chromium is started and reads its fonts.

import { execFileSync } from "node:child_process";
import { chromium } from "@playwright/test";

export default async function warm(config) {
  execFileSync("sync");
  const browser = await chromium.launch(config.projects[0].use.launchOptions);
  const page = await browser.newPage();
  await page.setContent("<p>Latin, 漢字, العربية, 👩‍👩‍👧‍👦</p><canvas></canvas>");
  await page.screenshot();
  await browser.close();
}
