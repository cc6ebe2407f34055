// How the browser tests run: real Chromium, a real server process for each worker, no fixed waits.

import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: ".",
  // Times are measured when nothing else runs.
  projects: [
    { name: "works", testMatch: "*.spec.js", testIgnore: "budget.spec.js" },
    { name: "budget", testMatch: "budget.spec.js", dependencies: ["works"] },
  ],
  fullyParallel: false,
  workers: 2,
  retries: 0,
  timeout: 40_000,
  expect: { timeout: 8000, toHaveScreenshot: { maxDiffPixelRatio: 0.001, animations: "disabled" } },
  reporter: [["list"]],
  outputDir: process.env.TEST_OUTPUT ?? "../../test-results",
  snapshotPathTemplate: "{testDir}/snapshots/{arg}{ext}",
  use: {
    browserName: "chromium",
    viewport: { width: 1240, height: 900 },
    locale: "en-US",
    timezoneId: "UTC",
    colorScheme: "light",
    trace: "retain-on-failure",
    screenshot: "only-on-failure",
    launchOptions: { executablePath: process.env.TEST_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none", "--disable-lcd-text"] },
  },
});
