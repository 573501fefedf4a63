// use: keyboard, themes, narrow screens, and what assistive technology finds.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import type { Page } from "@playwright/test";

import { closed, host, server } from "./answers.js";
import { expect, test } from "./setting.js";

const EPOCH = "#/4242/epoch/16777223";

test("is used with the keyboard alone", async ({ page, address }) => {
  await page.goto(address);
  await expect(page.getByRole("table", { name: "Epochs" })).toBeVisible();
  await page.keyboard.press("/");
  await expect(page.getByLabel("Filter epochs")).toBeFocused();
  await page.keyboard.type("upload closed");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/epoch\/16777224$/);
  await expect(page.getByRole("heading", { level: 1 })).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(page.locator('main table a[href$="epoch/16777224"]:focus')).toHaveCount(1);
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: "Help" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
});

test("walks through processes with the arrow keys", async ({ page, address }) => {
  await page.goto(address);
  const links = page.getByRole("navigation").getByRole("link");
  await links.first().focus();
  await page.keyboard.press("ArrowDown");
  await expect(links.nth(1)).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1 })).toContainText("old-daemon");
  await expect(links.nth(1)).toBeFocused();
});

test("walks through the flame graph", async ({ page, address }) => {
  await page.goto(address + EPOCH);
  await expect(page.getByRole("group", { name: /^Flame graph/ })).toBeVisible();
  await page.keyboard.press("/");
  await expect(page.getByLabel("Find functions")).toBeFocused();
  await page.keyboard.press("ArrowDown");
  for (const name of ["main", "worker", "dispatch", "handle_upload"]) {
    await page.keyboard.press("ArrowDown");
    await expect(page.locator(".frame:focus")).toHaveAccessibleName(new RegExp(`^${name}:`));
  }
  await page.keyboard.press("ArrowRight");
  await expect(page.locator(".frame:focus")).toHaveAccessibleName(/^log_request:/);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("button", { name: /^handle_upload:/ })).toHaveCount(0);
  await page.keyboard.press("Escape");
  await expect(page.getByRole("button", { name: /^handle_upload:/ })).toHaveCount(1);
  await expect(page.locator(".frame:focus")).toHaveCount(1);
});

test("follows the system's theme until another is chosen", async ({ page, address }) => {
  const theme = page.locator("html");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(address);
  await expect(theme).toHaveAttribute("data-theme", "dark");
  await page.emulateMedia({ colorScheme: "light" });
  await expect(theme).toHaveAttribute("data-theme", "light");
  await page.keyboard.press("t");
  await page.keyboard.press("t");
  await expect(theme).toHaveAttribute("data-theme", "dark");
  await page.reload();
  await expect(theme).toHaveAttribute("data-theme", "dark");
  await expect(page.getByRole("button", { name: "Theme: dark" })).toBeVisible();
});

for (const width of [360, 768]) {
  test(`fits a screen of ${width} pixels`, async ({ page, address, agent }) => {
    await page.setViewportSize({ width, height: 800 });
    await page.goto(address);
    await expect(page.getByRole("navigation").getByRole("link").first()).toBeVisible();
    await expectFit(page, width);
    await page.getByRole("navigation").getByRole("link").first().click();
    await expect(page.getByRole("table", { name: "Epochs" })).toBeVisible();
    agent.told = [server(260)];
    await expect(page.getByRole("row", { name: /^given back/ })).toContainText("MiB/s");
    await expectFit(page, width);
    await page.goto(address + EPOCH);
    await expect(page.getByRole("button", { name: /^handle_upload:/ })).toBeVisible();
    await expectFit(page, width);
    await page.keyboard.press("?");
    await expectFit(page, width);
  });
}

for (const width of [360, 768]) {
  test(`fits hundreds of processes into ${width} pixels`, async ({ page, address, agent }) => {
    agent.told = [...host(), closed(8)];
    await page.setViewportSize({ width, height: 800 });
    await page.goto(address);
    await showAll(page);
    await expectFit(page, width);
    await page.getByRole("link", { name: /^job-299/ }).click();
    await expect(page.getByRole("heading", { level: 1 })).toContainText("job-299");
    await expect(page.getByText("This process has ended and left its file")).toBeVisible();
    await expectFit(page, width);
  });
}

test("a narrow screen shows either the list or a process", async ({ page, address }) => {
  await page.setViewportSize({ width: 360, height: 800 });
  await page.goto(address);
  await expect(page.getByRole("main")).toBeHidden();
  await page.getByRole("link", { name: /upload-server/ }).click();
  await expect(page.getByRole("navigation")).toBeHidden();
  await page.getByRole("link", { name: "← Processes" }).click();
  await expect(page.getByRole("navigation")).toBeVisible();
});

test("a narrow screen shows a process from its head, and the list where it was left", async ({
  page,
  address,
  agent,
}) => {
  agent.told = host();
  await page.setViewportSize({ width: 360, height: 800 });
  await page.goto(`${address}#/`);
  await page.getByRole("link", { name: /^worker-98/ }).click();
  await expect(page.getByRole("heading", { level: 1 })).toBeFocused();
  await expect(page.getByRole("heading", { level: 1 })).toBeInViewport();
  await page.getByRole("link", { name: "← Processes" }).click();
  await expect(page.getByRole("link", { name: /^worker-98/ })).toBeFocused();
  await expect(page.getByRole("link", { name: /^worker-98/ })).toBeInViewport();
});

for (const colorScheme of ["light", "dark"] as const) {
  test(`is accessible in the ${colorScheme} theme`, async ({ page, address }) => {
    await page.emulateMedia({ colorScheme });
    await page.goto(address);
    await expect(page.getByRole("table", { name: "Survivors" })).toBeVisible();
    await expectAccessible(page);
    await page.goto(address + EPOCH);
    await expect(page.getByRole("button", { name: /^handle_upload:/ })).toBeVisible();
    await expectAccessible(page);
    await page.keyboard.press("?");
    await expectAccessible(page);
  });
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`hundreds of processes are accessible in the ${colorScheme} theme`, async ({
    page,
    address,
    agent,
  }) => {
    agent.told = [...host(), closed(8)];
    await page.emulateMedia({ colorScheme });
    await page.goto(address);
    await showAll(page);
    await expectAccessible(page);
  });
}

/** Also those that have ended. */
async function showAll(page: Page): Promise<void> {
  const processes = page.getByRole("navigation");
  await processes.getByText("Ended 300").click();
  await expect(processes.getByRole("link")).toHaveCount(400);
}

async function expectFit(page: Page, width: number): Promise<void> {
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
    width,
  );
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Axe {
  run(): Promise<{
    violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
  }>;
}

async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  const violations = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: Axe };
    return (await axe.run()).violations.map(({ id, nodes }) => [
      id,
      nodes[0]?.html,
      nodes[0]?.failureSummary,
    ]);
  });
  expect(violations).toEqual([]);
}
