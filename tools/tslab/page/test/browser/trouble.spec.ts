// trouble: agents that are gone or locked, hostile texts, and pages that nobody looks at.
import type { Page } from "@playwright/test";

import { hostile, HOSTILE } from "./answers.js";
import { expect, test } from "./setting.js";

test("keeps the last figures while the agent is gone", async ({ page, address, agent }) => {
  await page.goto(address);
  await expect(page.getByRole("table", { name: "Epochs" })).toBeVisible();
  agent.isSilent = true;
  await expect(page.getByRole("alert")).toContainText("The agent has not answered since");
  await expect(page.getByRole("alert")).toContainText("What is shown is stale");
  await expect(page.locator(".link")).toHaveText(/^stale since \d\d:/);
  await expect(page.getByRole("table", { name: "Epochs" })).toBeVisible();
  agent.isSilent = false;
  await expect(page.locator(".banner")).toHaveCount(0);
  await expect(page.locator(".link")).toHaveText(/^live/);
});

test("asks for the token, and keeps it in the tab", async ({ page, address, agent }) => {
  agent.token = "s3cret";
  await page.goto(address);
  const dialog = page.getByRole("dialog", { name: "The agent asks for a token" });
  await dialog.getByLabel("Token").fill("wrong");
  await dialog.getByRole("button").click();
  await expect(dialog).toContainText("The agent refused this token.");
  await dialog.getByLabel("Token").fill("s3cret");
  await page.keyboard.press("Enter");
  await expect(dialog).toHaveCount(0);
  await expect(page.getByRole("table", { name: "Epochs" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("table", { name: "Epochs" })).toBeVisible();
  await expect(dialog).toHaveCount(0);
});

test("a locked page stays locked", async ({ page, address, agent }) => {
  agent.token = "s3cret";
  await page.goto(address);
  const dialog = page.getByRole("dialog");
  await expect(dialog).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(dialog).toBeVisible();
});

test("shows hostile labels as text", async ({ page, address, agent }) => {
  agent.told = [hostile()];
  await page.goto(address);
  const table = page.getByRole("table", { name: "Epochs" });
  await expect(table.getByRole("row")).toHaveCount(HOSTILE.length + 1);
  for (const text of [HOSTILE[0], HOSTILE[1], HOSTILE[4], HOSTILE[5], HOSTILE[8]]) {
    await expect(table.getByText(text ?? "", { exact: true })).toBeVisible();
  }
  await expect(table.getByText("line one\\nline two\\ttab", { exact: true })).toBeVisible();
  await expect(table.getByText("\\u{202e}gnp.exe\\u{202c}", { exact: true })).toBeVisible();
  await expect(table.getByText("(empty label)")).toBeVisible();
  await table.getByRole("link").first().click();
  await expect(page.getByRole("group", { name: /^Flame graph/ }).getByRole("button")).toHaveCount(
    9,
  );
  await expect(page.getByRole("heading", { level: 1 })).toContainText("<script>");
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  await expect(page.locator("img, #page script")).toHaveCount(0);
});

test("rests while nobody looks", async ({ page, address, agent }) => {
  await page.goto(address);
  await expect(page.getByRole("table", { name: "Epochs" })).toBeVisible();
  await look(page, false);
  await page.waitForTimeout(1_200);
  const asked = agent.asked.length;
  await page.waitForTimeout(2_500);
  expect(agent.asked.length).toBe(asked);
  await look(page, true);
  await expect.poll(() => agent.asked.length).toBeGreaterThan(asked);
});

test("pauses when told to", async ({ page, address, agent }) => {
  await page.goto(address);
  await page.getByRole("button", { name: "Pause" }).click();
  await expect(page.locator(".link")).toHaveText(/^paused at/);
  await page.waitForTimeout(1_200);
  const asked = agent.asked.length;
  await page.waitForTimeout(2_500);
  expect(agent.asked.length).toBe(asked);
  await page.getByRole("button", { name: "Go on" }).click();
  await expect.poll(() => agent.asked.length).toBeGreaterThan(asked);
});

async function look(page: Page, isVisible: boolean): Promise<void> {
  await page.evaluate((isHidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, value: isHidden });
    document.dispatchEvent(new Event("visibilitychange"));
  }, !isVisible);
}
