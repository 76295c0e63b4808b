// Five tasks of a new user, from the first click to the answer: each is timed, and with SHOTS there is a picture of
// its end. Three are done in `entail ui`, two in the playground.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browser, checked, open as openPage, serve, write, written } from "./support.mjs";
import { PASSPHRASE, began, begin, command, end, folder, open, ran, runs, ui, until } from "./ui-support.mjs";

let chromium;
let server;
before(async () => {
  await begin();
  chromium = await browser();
  server = await serve();
});
after(async () => {
  await chromium?.close();
  await server?.close();
  await end();
});

/** Does a task, and says how long it took. */
async function timed(name, page, task) {
  const start = performance.now();
  await task();
  console.log(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
  if (process.env.SHOTS) {
    mkdirSync(process.env.SHOTS, { recursive: true });
    await page.screenshot({ path: join(process.env.SHOTS, `task-${name.replaceAll(" ", "-")}.png`), fullPage: true });
  }
}

test("1: find why a call was refused", async () => {
  const dir = folder({ policy: '[tools.pay]\neffect = "write"\narguments = "trusted"\n' });
  for (let i = 0; i < 3; i++) command(dir, ["run", "pay.agent", "--pipeline", "greet", "--script", "s.json", "--journal", "j", "u"]);
  ran(dir);
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await timed("1 refused call", page, async () => {
    await page.getByLabel("State").selectOption("failed");
    await page.getByRole("link", { name: "pay.agent settle" }).click();
    const finding = page.locator(".finding.error");
    assert.match(await finding.textContent(), /`?pay.*untrusted/s);
    assert.match(await finding.textContent(), /the tool page answered/);
    assert.match(await finding.textContent(), /to allow it/);
  });
  assert.deepEqual(faults, []);
});

test("2: approve a payment", async () => {
  const dir = folder();
  const waits = await began(dir, ["run", "pay.agent", "--pipeline", "settle", "--script", "s.json", "--journal", "j", "--run-refused", "u"]);
  const ended = new Promise((resolve) => waits.once("exit", resolve));
  await until(() => runs(dir)[0]?.waiting?.length === 1);
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await timed("2 approve", page, async () => {
    await page.getByRole("link", { name: "Approvals (1)" }).click();
    await page.getByLabel("Passphrase").fill(PASSPHRASE);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("✔ Approved by alice").waitFor();
    assert.equal(await ended, 0);
  });
  assert.deepEqual(faults, []);
});

test("3: fork a run from step 7 with another reply", async () => {
  const dir = folder();
  const task = 'agent a { tools: [], prompt: "p" }\ntask step(n: String) -> String by agent { prompt "step {n}" }\n';
  const lines = Array.from({ length: 9 }, (_, i) => `    let s${i} = run step with { n: ${i ? `s${i - 1}` : "x"} } by a;`);
  writeFileSync(join(dir, "nine.agent"), `${task}pipeline nine(x: String) -> String {\n${lines.join("\n")}\n    return s8;\n}\n`);
  writeFileSync(join(dir, "nine.json"), JSON.stringify(Array.from({ length: 9 }, (_, i) => `reply ${i + 1}`)));
  command(dir, ["run", "nine.agent", "--script", "nine.json", "--journal", "j", "begin"]);
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await timed("3 fork step 7", page, async () => {
    await page.getByRole("link", { name: "nine.agent nine" }).click();
    const step = page.locator(".step", { hasText: "7. Ask model" });
    await step.getByRole("button", { name: "Fork with another answer" }).click();
    await step.getByLabel("Answer").fill("another reply");
    await step.getByRole("button", { name: "Make the fork" }).click();
    await step.getByRole("link", { name: "Compare both" }).click();
    await page.getByText("6 requests are the same, then the runs differ").waitFor();
  });
  assert.deepEqual(faults, []);
});

test("4: find what an agent costs at most", async () => {
  const context = await chromium.newContext();
  const { page, faults } = await openPage(context, server.address, "#example=triage");
  await timed("4 cost", page, async () => {
    await page.getByRole("tab", { name: "Bounds and flow" }).click();
    assert.match(await page.getByRole("table").textContent(), /Model calls0 to 6/);
  });
  assert.deepEqual(faults, []);
  await context.close();
});

test("5: share a wrong program", async () => {
  const context = await chromium.newContext();
  const { page, faults } = await openPage(context, server.address);
  await timed("5 share", page, async () => {
    await write(page, "pipeline p() -> String {\n    return 1;\n}\n");
    await page.locator("#panel-findings").getByText("A050").waitFor();
    await page.getByRole("button", { name: "Share" }).click();
    await page.waitForFunction(() => location.hash.startsWith("#1."));
    const other = await openPage(await chromium.newContext(), server.address, await page.evaluate(() => location.hash));
    await checked(other.page);
    assert.match(await written(other.page), /return 1;/);
    await other.page.locator("#panel-findings").getByText("A050").waitFor();
  });
  assert.deepEqual(faults, []);
  await context.close();
});
