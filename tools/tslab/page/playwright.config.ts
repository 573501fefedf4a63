// playwright.config: the page in Debian's Chromium, against an agent that is made up.
import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "test/browser",
  outputDir: "results",
  fullyParallel: true,
  forbidOnly: true,
  workers: 2,
  reporter: "line",
  use: {
    viewport: { width: 1280, height: 900 },
    locale: "en-GB",
    timezoneId: "UTC",
    launchOptions: { executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium" },
  },
  projects: [
    { name: "page", testMatch: "*.spec.js" },
    { name: "pictures", testMatch: "pictures.js" },
  ],
});
