// page: what is shown of processes and epochs, and that it stays true.
import { closed, crowd, dead, host, losing, sampledOf, server, stranger } from "./answers.js";
import { expect, test } from "./setting.js";

test("shows the largest process at once", async ({ page, address }) => {
  await page.goto(address);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("upload-server");
  await expect(page.locator(".tile.rss .value")).toHaveText(/MiB$/);
  await expect(page.locator(".memory .timechart canvas")).toBeVisible();
  await expect(page.getByRole("img", { name: /^Resident against live bytes: RSS/ })).toBeVisible();
  await expect(page.getByRole("navigation").getByRole("link")).toHaveCount(2);
  await expect(page.locator(".link")).toHaveText(/^live \d\d:\d\d:\d\d$/);
});

test("shows one that has ended, though another has its number", async ({
  page,
  address,
  agent,
}) => {
  const [runs, left] = [server(200), stranger(4242, "former-server")];
  const process = { ...left.process, path: "/dev/shm/tslab.4242.5" };
  agent.told = [runs, dead({ ...left, process })];
  await page.goto(address);
  await page.getByText("Ended 1").click();
  const processes = page.getByRole("navigation");
  await processes.getByRole("link", { name: /^former-server/ }).click();
  const title = page.getByRole("heading", { level: 1 });
  await expect(title).toContainText("former-server");
  await expect(page).toHaveURL(/#\/4242\.5$/);
  await expect.poll(() => agent.asked).toContain("/api/v1/processes/4242.5");
  await processes.getByRole("link", { name: /^upload-server/ }).click();
  await expect(title).toContainText("upload-server");
  await expect(page).toHaveURL(/#\/4242$/);
});

test("folds processes that have ended", async ({ page, address, agent }) => {
  agent.told = host();
  await page.goto(address);
  const processes = page.getByRole("navigation");
  const links = processes.getByRole("link");
  await expect(processes.getByRole("heading")).toHaveText("Processes 100");
  await expect(links).toHaveCount(100);
  await page.getByText("Ended 300").click();
  await expect(links).toHaveCount(400);
  await expect(links.nth(100)).toHaveText("job-04.0 KiB live6000last word 60 s ago");
  await expect(links.last()).toContainText("job-299");
});

test("finds a process among many", async ({ page, address, agent }) => {
  agent.told = host();
  await page.goto(address);
  const processes = page.getByRole("navigation");
  await page.getByLabel("Filter processes").fill("WORKER-4");
  await expect(processes.getByRole("link")).toHaveCount(11);
  await expect(processes.getByText(/^Ended/)).toHaveCount(0);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1 })).toContainText("worker-4");
  await page.getByLabel("Filter processes").fill("6299");
  await expect(processes.getByRole("link")).toHaveCount(0);
  await expect(page.getByText("Ended 1")).toBeVisible();
  await page.getByLabel("Filter processes").fill("nobody");
  await expect(page.getByText("No process has “nobody”")).toBeVisible();
});

test("files of other users share a line", async ({ page, address, agent }) => {
  agent.told = [server(200), closed(8), closed(9)];
  await page.goto(address);
  const processes = page.getByRole("navigation");
  await expect(processes.getByRole("heading")).toHaveText("Processes 1");
  await expect(processes.getByRole("link")).toHaveCount(1);
  await expect(processes.getByText(/^Of other users/)).toHaveText(
    "Of other users: 2 files, which only they and root may read.",
  );
  await page.goto(`${address}#/9`);
  await expect(page.getByText("run this command as the user of that process")).toBeVisible();
  await expect(processes.getByRole("link", { name: /^other-daemon/ })).toHaveText(/unreadable9$/);
  await expect(processes.getByText(/^Of other users: 1 file,/)).toBeVisible();
});

test("where all files are of other users, none is chosen", async ({ page, address, agent }) => {
  agent.told = [closed(8), closed(9)];
  await page.goto(address);
  await expect(page.getByText(/^Of other users: 2 files,/)).toBeVisible();
  await expect(page.getByText("Choose a process.")).toBeVisible();
  await expect(page.getByText("No process here runs on tslab.")).toHaveCount(0);
});

test("few processes need no filter", async ({ page, address }) => {
  await page.goto(address);
  await expect(page.getByRole("navigation").getByRole("link")).toHaveCount(2);
  await expect(page.getByLabel("Filter processes")).toHaveCount(0);
});

test("a long list scrolls beside the process", async ({ page, address, agent }) => {
  agent.told = host();
  await page.goto(address);
  await expect(page.getByRole("table", { name: "Epochs" })).toBeVisible();
  await page.getByRole("link", { name: "worker-98" }).scrollIntoViewIfNeeded();
  await expect(page.getByRole("heading", { level: 1 })).toBeInViewport();
  await page.getByRole("table", { name: "Size classes" }).scrollIntoViewIfNeeded();
  await expect(page.getByRole("link", { name: "worker-98" })).toBeInViewport();
});

test("follows the figures", async ({ page, address, agent }) => {
  await page.goto(address);
  await expect(page.locator(".tile.live .about")).toHaveText(/objects$/);
  const told = server(200);
  agent.told = [{ ...told, process: { ...told.process, rss_bytes: 3 * 1024 ** 3 } }];
  await expect(page.locator(".tile.rss .value")).toHaveText("3.0 GiB");
});

test("shows what is not known as a dash", async ({ page, address }) => {
  await page.goto(`${address}#/77`);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("old-daemon");
  await expect(page.locator(".tile.rss .value")).toHaveText("24.0 MiB");
  await expect(page.locator(".tile .value").nth(1)).toHaveText("–");
  await expect(page.locator(".tile .value").nth(4)).toHaveText("–");
  await expect(page.getByText("does not tell where its memory is")).toBeVisible();
  await expect(page.getByRole("table", { name: "Slow path by cause" })).not.toContainText("0");
});

test("shows survivors with classes, age and what they pin", async ({ page, address }) => {
  await page.goto(address);
  const survivors = page.getByRole("table", { name: "Survivors" });
  const first = survivors.getByRole("row").nth(1);
  await expect(first).toContainText("GET /upload");
  await expect(first).toContainText("2 epochs: 3\u202f400 × 128 B, 310 × 1.0 KiB, 170 × 256 B");
  await expect(first).toContainText("311");
  await expect(first).toContainText("9 min");
});

test("says who allocated survivors, and whether they become more", async ({ page, address }) => {
  await page.goto(address);
  const rows = page.getByRole("table", { name: "Survivors" }).getByRole("row");
  await expect(rows.nth(1)).toContainText(
    "copy_name http.c:211 ← parse_header http.c:180 and 2 other stacks",
  );
  await expect(rows.nth(1)).toContainText("grows: 40 came, 0 went in 10 s");
  await expect(rows.nth(2)).toContainText("turns over: 7 came, 8 went in 10 s");
  // What turns over is no cause of alarm.
  await expect(page.locator(".survivors .verdict")).toContainText("in 2 closed epochs");
});

test("says what is lost outside of epochs, and what may be in a shared one", async ({
  page,
  address,
  agent,
}) => {
  agent.told = [losing(server(200))];
  await page.goto(address);
  await page.getByText("any", { exact: true }).click();
  const survivors = page.getByRole("region", { name: "Survivors" });
  await expect(survivors.getByRole("row").nth(1)).toContainText(
    "4 objects sampled so far, up to 20 s old, may yet be freed",
  );
  await expect(survivors.getByRole("row").nth(1)).toContainText(
    "so far page_new page.c:7 ← worker",
  );
  await expect(survivors.getByText("1 call stack keeps more and more")).toBeVisible();
  const outside = page.getByRole("list", { name: "Outside of epochs" });
  await expect(outside).toContainText("about 1\u202f800 × 512 B");
  await expect(outside).toContainText("session_new login.c:40");
  await expect(outside).toContainText("grows: 120 came, 3 went in 10 s");
});

test("says how to learn what is lost outside of epochs", async ({ page, address }) => {
  await page.goto(address);
  const survivors = page.getByRole("region", { name: "Survivors" });
  await expect(survivors).toContainText("96.0 MiB live outside of epochs.");
  await expect(survivors).toContainText("tslab profile 4242 --keep");
});

test("filters survivors by size class", async ({ page, address }) => {
  await page.goto(address);
  const rows = page.getByRole("table", { name: "Survivors" }).getByRole("row");
  await expect(rows).toHaveCount(3);
  await page.getByLabel("Size class of survivors").selectOption("1.0 KiB");
  await expect(rows).toHaveCount(2);
  await expect(rows.nth(1)).toContainText("310 × 1.0 KiB");
  await expect(rows.nth(1)).toContainText("thumb_rows image.cpp:77 ← worker");
  await expect(rows.nth(1)).not.toContainText("128 B");
});

test("says what is wrong, and where memory went", async ({ page, address }) => {
  await page.goto(address);
  const findings = page.getByRole("list", { name: "Findings" }).getByRole("listitem");
  await expect(findings).toHaveCount(2);
  await expect(findings.first()).toContainText("leak: 4,932 objects of 812.0 KiB outlived");
  await expect(findings.first()).toContainText("→ tslab leaks 4242 names the call stacks");
  await expect(page.locator(".findings")).toContainText("of the last 42 s");
  const why = page.getByRole("table", { name: "Where memory went" });
  await expect(why.getByRole("row", { name: /^free in slabs and cells/ })).toContainText(
    "20.0 MiB",
  );
  await expect(why.getByRole("row", { name: /^residual/ })).toHaveCount(0);
  await expect(why).toContainText("files: the program and its libraries");
});

test("says what could not be looked for", async ({ page, address }) => {
  await page.goto(`${address}#/77`);
  await expect(page.locator(".findings")).toContainText("Nothing was found.");
  await page.getByText("1 check could not be made").click();
  await expect(page.getByText("outside: needs RSS of a process that runs")).toBeVisible();
  await expect(page.locator(".why")).toContainText("Not known: the system does not tell.");
});

test("lists the events of all processes", async ({ page, address }) => {
  await page.goto(`${address}#/77`);
  const rows = page.getByRole("table", { name: "Events of all processes" }).getByRole("row");
  await expect(rows).toHaveCount(7);
  await expect(rows.nth(1)).toContainText("upload-server 4242Purged1 time, 4.0 MiB");
});

test("asks for survivors of the time that is chosen", async ({ page, address, agent }) => {
  await page.goto(address);
  await page.getByRole("group", { name: "Closed for longer than" }).getByText("10 min").click();
  await expect(page.getByText("No epoch closed for longer than 10 min has")).toBeVisible();
  expect(agent.asked).toContain("/api/v1/processes/4242/leaks?after=600");
});

test("shows causes of the slow path as rates", async ({ page, address, agent }) => {
  await page.goto(address);
  await expect(page.getByRole("table", { name: "Slow path by cause" })).toBeVisible();
  const start = Date.now();
  const timer = setInterval(() => {
    agent.told = [server(200 + (Date.now() - start) / 1000)];
  }, 200);
  const opened = page.getByRole("row", { name: /slab opened/ });
  await expect(opened).toContainText(/\d+ \/s/, { timeout: 10_000 });
  clearInterval(timer);
});

test("sorts, filters and sums up epochs", async ({ page, address }) => {
  await page.goto(address);
  const table = page.getByRole("table", { name: "Epochs" });
  await expect(table.getByRole("row").nth(1)).toContainText("default");
  await table.getByRole("button", { name: "held" }).click();
  await expect(table.getByRole("columnheader", { name: "held" })).toHaveAttribute(
    "aria-sort",
    "descending",
  );
  await table.getByRole("button", { name: "held" }).click();
  await expect(table.getByRole("row").nth(1)).not.toContainText("default");
  await page.getByLabel("Filter epochs").fill("upload closed");
  await expect(table.getByRole("row")).toHaveCount(3);
  await page.getByLabel("Filter epochs").fill("nothing like it");
  await expect(page.getByText("No epoch has “nothing like it”")).toBeVisible();
  await page.getByLabel("Filter epochs").fill("");
  await page.getByRole("group", { name: "Epochs shown as" }).getByText("by label").click();
  const labels = page.getByRole("table", { name: "Epochs by label" });
  await expect(labels.getByRole("row", { name: /POST \/login/ })).toContainText("3");
});

test("sums up more epochs than anyone reads", async ({ page, address, agent }) => {
  agent.told = [crowd(20_000)];
  await page.goto(address);
  const labels = page.getByRole("table", { name: "Epochs by label" });
  await expect(labels.getByRole("row", { name: /request 1/ })).toContainText("6\u202f667");
  await page.getByRole("group", { name: "Epochs shown as" }).getByText("tree").click();
  await expect(page.getByRole("table", { name: "Epochs" }).getByRole("row")).toHaveCount(201);
  await expect(page.getByText("The first 200 of 20\u202f000")).toBeVisible();
});

test("opens an epoch, with its classes and stacks, and comes back", async ({ page, address }) => {
  await page.goto(address);
  const table = page.getByRole("table", { name: "Epochs" });
  await page.getByLabel("Filter epochs").fill("upload closed");
  await table.getByRole("link", { name: "GET /upload" }).first().click();
  await expect(page).toHaveURL(/#\/4242\/epoch\/16777223$/);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("GET /upload");
  const classes = page.getByRole("table", { name: "Size classes of the epoch" });
  await expect(classes).toContainText("128 B");
  const flame = page.getByRole("group", { name: /^Flame graph/ });
  await expect(flame.getByRole("button", { name: /^handle_upload: 1.6 MiB/ })).toBeVisible();
  await expect(flame.getByRole("button", { name: /^login/ })).toHaveCount(0);
  await page.goBack();
  await expect(table).toBeVisible();
  await expect(page.getByLabel("Filter epochs")).toHaveValue("upload closed");
});

test("widens a frame of the flame graph", async ({ page, address }) => {
  await page.goto(`${address}#/4242/epoch/16777223`);
  const flame = page.getByRole("group", { name: /^Flame graph/ });
  await flame.getByRole("button", { name: /^make_thumbnail/ }).click();
  await expect(flame.getByRole("button", { name: /^read_part/ })).toHaveCount(0);
  await expect(page.locator(".detail")).toHaveText(/^make_thumbnail: 341.8 KiB/);
  await page.getByRole("button", { name: "Whole graph" }).click();
  await expect(flame.getByRole("button", { name: /^read_part/ })).toBeVisible();
  await page.getByLabel("Find functions").fill("PARSE");
  await expect(page.locator(".frame.hit")).toHaveCount(2);
});

test("a flame graph says what it covers, and shows a class or an age", async ({
  page,
  address,
}) => {
  await page.goto(`${address}#/4242/epoch/16777223`);
  const stacks = page.locator(".stacks");
  await expect(stacks).toContainText(
    /54 live samples, a byte in 32.0 KiB; stands for 1.6 MiB ± 4\d\d.\d KiB of 3.4 MiB live./,
  );
  const flame = page.getByRole("group", { name: /^Flame graph/ });
  await page.getByLabel("Size class of objects").selectOption("128 B");
  await expect(flame.getByRole("button", { name: /^copy_name/ })).toBeVisible();
  await expect(flame.getByRole("button", { name: /^read_part/ })).toHaveCount(0);
  await expect(stacks).toContainText("stands for 459.0 KiB ±");
  await page.getByLabel("Age of objects").selectOption("10 s and older");
  await expect(flame.getByRole("button", { name: /^copy_name/ })).toHaveCount(0);
  await expect(stacks).toContainText("No object of this class and age has been sampled.");
  await page.getByLabel("Size class of objects").selectOption("all classes");
  await expect(flame.getByRole("button", { name: /^read_part/ })).toBeVisible();
});

test("shows stacks of the whole process, or of a label, to those who ask", async ({
  page,
  address,
  agent,
}) => {
  await page.goto(address);
  await expect(page.getByRole("table", { name: "Epochs" })).toBeVisible();
  expect(agent.asked.filter((question) => question.endsWith("/profile"))).toEqual([]);
  await page.getByLabel("show stacks").check();
  const flame = page.getByRole("group", { name: /^Flame graph/ });
  await expect(flame.getByRole("button", { name: /^session_new/ })).toBeVisible();
  await page.getByLabel("Label of epochs").selectOption("GET /list");
  await expect(flame.getByRole("button", { name: /^session_new/ })).toHaveCount(0);
  await expect(flame.getByRole("button", { name: /^select_files/ })).toBeVisible();
});

test("shows how long freed objects lived, of a label or of all", async ({ page, address }) => {
  await page.goto(address);
  await page.getByLabel("show stacks").check();
  const rows = page.locator("tr.site");
  await page.getByText("How long freed objects lived").click();
  await expect(page.locator(".lifetimes summary")).toContainText("93 % were temporaries");
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(0)).toHaveText(
    "copy_name ← parse_header ← handle_upload ← … 128 B, GET /upload90\u202f00011.0 MiB99 %2 ms",
  );
  await expect(rows.nth(2)).toHaveText(/^read_part ← .* 2 classes, GET \/upload.*0 %80 s$/);
  await page.getByLabel("Label of epochs").selectOption("POST /login");
  await expect(rows).toHaveCount(1);
  await expect(rows.nth(0)).toContainText("session_new");
});

test("draws lifetimes by decade, beside the ages of what lives", async ({ page, address }) => {
  await page.goto(address);
  await page.getByLabel("show stacks").check();
  await page.getByText("How long freed objects lived").click();
  const table = page.getByRole("table", { name: "By decade: session_new ← login ← main" });
  await expect(table.getByRole("row")).toHaveText([
    "forfreedlive",
    "0.1-1s25 %",
    "1-10s75 %30 %",
    "10-100s50 %",
    "100-1000s20 %",
  ]);
  const widths = await table.getByRole("row").nth(2).locator(".bar").all();
  const [freed, live] = await Promise.all(widths.map((bar) => bar.evaluate(widthOf)));
  expect(freed).toBe("75%");
  expect(live).toBe("30%");
  await expect(table.locator("caption")).toHaveText(
    "1\u202f000 objects of 250.0 KiB live, 61 s old on average",
  );
  const none = page.getByRole("table", { name: /^By decade: copy_name/ });
  await expect(none.locator("caption")).toHaveText("none lives");
  const shares = ["forfreedlive", "0-10ms99 %", "10-100ms1.0 %"];
  await expect(none.getByRole("row")).toHaveText(shares);
});

const widthOf = (bar: HTMLElement | SVGElement): string => bar.style.width;

test("says how to switch sampling on", async ({ page, address, agent }) => {
  agent.told = [{ ...server(200), profile: null }];
  await page.goto(`${address}#/4242/epoch/16777223`);
  await expect(page.locator(".stacks")).toContainText(
    "which code its memory belongs to, run tslab profile 4242 --keep, or start it with TSLAB_CONF=",
  );
});

test("says what samples are of, and how to have all", async ({ page, address, agent }) => {
  const stacks = page.locator(".stacks");
  const note = stacks.locator(".note");
  const flame = stacks.getByRole("group", { name: /^Flame graph/ });
  await page.goto(`${address}#/4242`);
  await page.getByLabel("show stacks").check();
  await expect(flame).toBeVisible();
  await expect(note).toHaveCount(0);
  const command = "To sample all from now on: tslab profile 4242 --keep";
  for (const [sampled, text] of [
    ["watched", "Only labels and size classes whose objects have outlived"],
    ["ended", "Sampling has ended: these are samples from before"],
  ] as const) {
    agent.told = [sampledOf(server(200), sampled)];
    await expect(note).toContainText(text, { timeout: 15_000 });
    await expect(note).toContainText(command);
    await expect(flame).toBeVisible();
  }
  agent.told = [dead(sampledOf(server(200), "ended"))];
  await expect(note).not.toContainText("tslab profile");
  await expect(note).toContainText("Sampling has ended");
});

test("an epoch that drains stays, with a note", async ({ page, address, agent }) => {
  await page.goto(`${address}#/4242/epoch/16777223`);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("GET /upload");
  const told = server(200);
  const epochs = told.epochs.epochs.filter(({ id }) => id !== 16777223);
  agent.told = [{ ...told, epochs: { ...told.epochs, epochs } }];
  await expect(page.getByText("This epoch has drained")).toBeVisible();
  await expect(page.locator(".tile.rss .value")).toHaveText("1.4 MiB");
});

test("a process that ends stays, with a note", async ({ page, address, agent }) => {
  await page.goto(address);
  await expect(page.getByRole("table", { name: "Epochs" })).toBeVisible();
  agent.told = [stranger(77, "old-daemon")];
  await expect(page.getByText("This process has ended.")).toBeVisible();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("upload-server");
  await expect(page.getByRole("table", { name: "Epochs" })).toBeVisible();
  await expect(page.getByRole("navigation")).toContainText("gone");
});

test("another process with the same number is another", async ({ page, address, agent }) => {
  await page.goto(`${address}#/4242`);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("upload-server");
  const told = stranger(4242, "newcomer");
  agent.told = [{ ...told, process: { ...told.process, path: "/dev/shm/tslab.4242.999" } }];
  await expect(page.getByRole("heading", { level: 1 })).toContainText("newcomer");
  await expect(page.getByText("This process has ended.")).toHaveCount(0);
});

test("says what it is when there is nothing", async ({ page, address, agent }) => {
  agent.told = [];
  await page.goto(address);
  await expect(page.getByText("No process here runs on tslab.")).toBeVisible();
});

test("begins before the page was opened", async ({ page, address }) => {
  await page.goto(address);
  await page.locator(".memory").getByText("1 d", { exact: true }).click();
  const chart = page.getByRole("img", { name: /^Resident against live bytes/ });
  await expect(chart).toHaveAccessibleName(/live .*, between 110\.\d MiB/);
});

test("shows which label grew before the page was opened", async ({ page, address }) => {
  await page.goto(address);
  const panel = page.getByRole("region", { name: "Live bytes by label" });
  const chart = panel.getByRole("img", { name: /^Live bytes by label/ });
  await expect(chart).toHaveAccessibleName(/tenant 17 31\.7 MiB, between 31\.\d MiB/);
  await panel.getByText("1 d", { exact: true }).click();
  await expect(chart).toHaveAccessibleName(/tenant 17 31\.7 MiB, between 4\.0 MiB and 31\.7 MiB/);
  await expect(panel.locator(".key")).toHaveCount(8);
  const upper = page.getByRole("img", { name: /^Resident against live bytes/ });
  await expect(upper).toHaveAccessibleName(/live .*, between 110\.\d MiB/);
});

test("draws labels without a history, and says when none holds much", async ({
  page,
  address,
  agent,
}) => {
  const told = server(200);
  const history = { ...told.history, kept: false, moments: [], labels: [], events: [] };
  agent.told = [{ ...told, history }];
  await page.goto(address);
  const panel = page.getByRole("region", { name: "Live bytes by label" });
  await expect(panel.locator(".key").first()).toContainText("default");
  agent.told = [stranger(77, "old-daemon")];
  await page.goto(`${address}#/77`);
  await expect(panel).toContainText("No label held 64 KiB in this time.");
});

test("lists the events of the time that is shown", async ({ page, address }) => {
  await page.goto(address);
  const lanes = page.getByRole("img", { name: /^Events: / });
  await expect(lanes).toHaveAccessibleName("Events: survivors 1, purge 1, limit 0, no memory 0");
  await page.locator(".memory").getByText("1 d", { exact: true }).click();
  await expect(lanes).toHaveAccessibleName("Events: survivors 2, purge 2, limit 1, no memory 1");
  await page.getByText("6 events in this time").click();
  const rows = page.getByRole("table", { name: "Events", exact: true }).getByRole("row");
  await expect(rows).toHaveCount(7);
  await expect(rows.nth(1)).toContainText("upload-server");
  await expect(rows.nth(1)).toContainText("Purged");
  await expect(rows.nth(1)).toContainText("4.0 MiB");
  await expect(rows.nth(2)).toContainText("Closed with survivors: GET /upload");
});

test("says when the agent keeps no history", async ({ page, address }) => {
  await page.goto(`${address}#/77`);
  await expect(page.getByText("The agent keeps no history")).toBeVisible();
});
