// pictures: the page as a reader sees it, into compiled/pictures, for people to look at.
import type { Page } from "@playwright/test";

import type { Agent } from "./agent.js";
import { closed, host, hostile, server, stranger } from "./answers.js";
import { test } from "./setting.js";

const FOLDER = "compiled/pictures";
const EPOCH = "#/4242/epoch/16777223";
const SECONDS = 150;

/** As if the page had been looked at for a while. */
async function watch(page: Page, agent: Agent, address: string): Promise<void> {
  await page.clock.install({ time: new Date("2026-03-02T14:00:00Z") });
  agent.told = [server(0)];
  await page.goto(address);
  for (let second = 0; second < SECONDS; second = rounds(agent)) {
    agent.told = [server(second), stranger(77, "old-daemon"), hostile()];
    await page.clock.runFor(100);
  }
  await page.clock.resume();
}

const rounds = ({ asked }: Agent): number =>
  asked.filter((question) => question.endsWith("/processes")).length;

interface Picture {
  readonly name: string;
  readonly path: string;
  readonly width: number;
  readonly colorScheme: "light" | "dark";
}

const PICTURES: readonly Picture[] = [
  { name: "process-light", path: "", width: 1440, colorScheme: "light" },
  { name: "process-dark", path: "", width: 1440, colorScheme: "dark" },
  { name: "process-narrow", path: "#/4242", width: 360, colorScheme: "light" },
  { name: "list-narrow", path: "", width: 360, colorScheme: "dark" },
  { name: "epoch-light", path: EPOCH, width: 1440, colorScheme: "light" },
  { name: "epoch-dark", path: EPOCH, width: 1440, colorScheme: "dark" },
  { name: "epoch-narrow", path: EPOCH, width: 360, colorScheme: "light" },
  { name: "hostile", path: "#/666", width: 1024, colorScheme: "light" },
  { name: "unknown", path: "#/77", width: 1024, colorScheme: "dark" },
];

for (const { name, path, width, colorScheme } of PICTURES) {
  test(name, async ({ page, agent, address }) => {
    test.setTimeout(120_000);
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await watch(page, agent, address + path);
    await page.screenshot({ path: `${FOLDER}/${name}.png`, fullPage: true });
  });
}

for (const [name, width] of [
  ["crowd", 1440],
  ["crowd-narrow", 360],
] as const) {
  test(name, async ({ page, agent, address }) => {
    agent.told = [...host(), closed(8)];
    await page.setViewportSize({ width, height: 900 });
    await page.goto(address);
    await page.getByText("Ended 300").click();
    await page.getByRole("link", { name: /^job-8 / }).scrollIntoViewIfNeeded();
    await page.screenshot({ path: `${FOLDER}/${name}.png` });
  });
}

test("grey", async ({ page, agent, address }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1440, height: 900 });
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setEmulatedVisionDeficiency", { type: "achromatopsia" });
  await watch(page, agent, address);
  await page.screenshot({ path: `${FOLDER}/grey.png` });
});

test("lost", async ({ page, agent, address }) => {
  test.setTimeout(120_000);
  await watch(page, agent, address);
  agent.isSilent = true;
  await page.getByRole("alert").getByText("has not answered").waitFor();
  await page.screenshot({ path: `${FOLDER}/lost.png` });
});

test("help", async ({ page, address }) => {
  await page.goto(address);
  await page.getByRole("table", { name: "Epochs" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await page.screenshot({ path: `${FOLDER}/help.png` });
});

test("token", async ({ page, agent, address }) => {
  agent.token = "s3cret";
  await page.goto(address);
  await page.getByRole("dialog").waitFor();
  await page.screenshot({ path: `${FOLDER}/token.png` });
});
