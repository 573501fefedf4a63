// preview: the page with a made-up agent that goes on by itself, for who works on the page.
import { Agent } from "./agent.js";
import { hostile, server, stranger } from "./answers.js";

const PORT = 9101;

const agent = new Agent();
const start = Date.now();
const tell = (): void => {
  agent.told = [server((Date.now() - start) / 1000), stranger(77, "old-daemon"), hostile()];
};
setInterval(tell, 500);
tell();
console.log(await agent.start(PORT));
