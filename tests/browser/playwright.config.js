// How the browser tests run: real Chromium, a real server process for each worker, no fixed waits.

import { existsSync } from "node:fs";
import { defineConfig } from "@playwright/test";

const chromium = process.env.TEST_CHROMIUM ?? "/usr/bin/chromium";
const SHELL = "/usr/bin/chromium-headless-shell";
/** The same engine without a window, where it is installed. It draws some edges otherwise. */
const shell = process.env.TEST_HEADLESS_SHELL ?? (existsSync(SHELL) ? SHELL : chromium);

/** @param {string} executablePath */
const launched = (executablePath) => ({
  launchOptions: {
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none", "--disable-lcd-text"],
  },
});

export default defineConfig({
  testDir: ".",
  projects: [
    { name: "works", testMatch: "*.spec.js", testIgnore: /(budget|looks)\.spec\.js$/, use: launched(shell) },
    { name: "looks", testMatch: "*looks.spec.js", use: launched(chromium) },
    // Times are measured when nothing else runs: by itself.
    { name: "budget", testMatch: "*budget.spec.js", workers: 1, use: launched(chromium) },
  ],
  fullyParallel: false,
  workers: 2,
  maxFailures: process.env.CI ? 8 : 0,
  // A machine that builds for the first time may stand still for seconds. What passes only when tried
  // again is printed with what it failed with, so that it is not taken for sound.
  retries: process.env.CI ? 1 : 0,
  timeout: 90_000,
  globalSetup: "./lib/warm.js",
  expect: { timeout: 20_000, toHaveScreenshot: { maxDiffPixelRatio: 0.001, animations: "disabled" } },
  reporter: [["list"], ["./lib/summary.js"]],
  outputDir: process.env.TEST_OUTPUT ?? "../../test-results",
  snapshotPathTemplate: "{testDir}/snapshots/{arg}{ext}",
  use: {
    browserName: "chromium",
    viewport: { width: 1240, height: 900 },
    locale: "en-US",
    timezoneId: "UTC",
    colorScheme: "light",
    // Recording takes a third of the time of a test.
    trace: "on-first-retry",
    screenshot: "only-on-failure",
  },
});
