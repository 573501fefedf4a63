// setting: a page and its agent for each test. A test fails when the page complains or asks others.
import { expect, test as base } from "@playwright/test";

import { Agent } from "./agent.js";
import { server, stranger } from "./answers.js";

interface Setting {
  readonly agent: Agent;
  readonly address: string;
  /** What the browser complained about, network errors aside. */
  readonly complaints: string[];
}

export const test = base.extend<Setting>({
  agent: async ({}, use) => {
    const agent = new Agent();
    agent.told = [server(200), stranger(77, "old-daemon")];
    await use(agent);
    await agent.stop();
  },
  address: async ({ agent }, use) => use(await agent.start()),
  complaints: [
    async ({ page, address }, use) => {
      const complaints: string[] = [];
      page.on("pageerror", (error) => complaints.push(String(error)));
      page.on("console", (message) => {
        const isNetwork = message.text().startsWith("Failed to load resource");
        if (message.type() === "error" && !isNetwork) complaints.push(message.text());
      });
      page.on("request", (request) => {
        if (!request.url().startsWith(address)) complaints.push(`asks ${request.url()}`);
      });
      await use(complaints);
      expect(complaints).toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };
