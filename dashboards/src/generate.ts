// generate: write the dashboards to ../generated; with --check, say which files are not up to date.
import { existsSync, writeFileSync } from "node:fs";
import { epochs } from "./epochs.js";
import { build } from "./frame.js";
import { readText, ROOT } from "./metrics.js";
import { processes } from "./processes.js";

let stale = false;
for (const frame of [processes, epochs]) {
  const path = `generated/${frame.uid}.json`;
  const text = JSON.stringify(build(frame), null, 2) + "\n";
  if (!process.argv.includes("--check")) {
    writeFileSync(new URL(path, ROOT), text);
  } else if (!existsSync(new URL(path, ROOT)) || readText(path) !== text) {
    console.error(`dashboards/${path} is not what the sources say: npm run generate`);
    stale = true;
  }
}
process.exitCode = stale ? 1 : 0;
