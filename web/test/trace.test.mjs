// The page of a finished run, which the command writes, opened as a file.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browser, root } from "./support.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const HOSTILE = `</script><img src=x onerror=alert(1)><script>alert(2)</script>`;
const entail = process.env.ENTAIL ?? join(root, "target/debug/entail");
const folder = mkdtempSync(join(tmpdir(), "entail-trace-"));

let chromium;
before(async () => {
  chromium = await browser();
});
after(async () => {
  await chromium?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens a page of a run; anything that it asks for or that goes wrong is a fault. */
async function open(file, options = {}) {
  const context = await chromium.newContext({ ...options, offline: true });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("dialog", (dialog) => (faults.push(dialog.message()), dialog.dismiss()));
  page.on("request", (request) => request.url() !== `file://${file}` && faults.push(request.url()));
  await page.goto(`file://${file}`);
  return { page, faults };
}

/** Runs a program on a script and writes its page. */
function written(text, input, script, name) {
  const [program, answers, html] = [`${name}.agent`, `${name}.json`, `${name}.html`].map((file) => join(folder, file));
  writeFileSync(program, text);
  writeFileSync(answers, JSON.stringify(script));
  try {
    execFileSync(entail, ["trace", program, input, "--script", answers, "--run-refused", "--html", html], { stdio: "pipe" });
  } catch (error) {
    assert.equal(error.status, 1, String(error.stderr));
  }
  return html;
}

const PAY = `tool page(url: String) -> String reads untrusted {}
tool pay(to: String requires trusted) -> String writes {}
pipeline p(url: String) -> String { let text = page(url); let done = pay(text); return done; }
`;

test("a run opens as a file, with its labels, its refusal and its remedy", async () => {
  const html = written(PAY, HOSTILE, [{ call: "page", result: HOSTILE }, { call: "pay", result: "paid" }], "refused");
  for (const colorScheme of ["light", "dark"]) {
    const { page, faults } = await open(html, { colorScheme });
    const step = page.locator(".step");
    assert.equal(await step.count(), 1);
    assert.ok((await step.textContent()).includes(HOSTILE));
    assert.match(await page.locator(".finding").first().textContent(), /flow.*untrusted|argument.*to allow it,/s);
    assert.match(await page.getByRole("table").textContent(), /Tool calls12/);
    assert.equal(await page.locator("main img, main script").count(), 0);
    assert.deepEqual(faults, []);
  }
});

test("axe finds no violation in the page of a run", async () => {
  const html = written(PAY, "u", [{ call: "page", result: "MALLORY" }, { call: "pay", result: "paid" }], "axe");
  for (const colorScheme of ["light", "dark"]) {
    const { page } = await open(html, { colorScheme, bypassCSP: true });
    await page.addScriptTag({ content: readFileSync(AXE, "utf8") });
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target)}`), [], colorScheme);
  }
});

test("a run of 100,000 requests opens, and is drawn as it is looked at", async () => {
  const page = readFileSync(written(PAY, "u", [{ call: "page", result: "x" }, { call: "pay", result: "paid" }], "long"), "utf8");
  const [request, response] = ["request", "response"].map((event) => new RegExp(`{"event":"${event}","n":1,.*`).exec(page)[0]);
  const many = Array.from({ length: 100_000 }, (_, i) =>
    [request, response].map((line) => line.replace('"n":1,', `"n":${i + 1},`)).join("\n"),
  ).join("\n");
  const html = join(folder, "many.html");
  writeFileSync(html, page.replace(`${request}\n${response}`, () => many));
  const { page: shown, faults } = await open(html);
  await shown.getByText("200 of 100,000 requests").waitFor();
  await shown.getByRole("button", { name: "Show 200 more" }).click();
  assert.equal(await shown.locator(".step").count(), 400);
  await shown.getByLabel("Containing").fill('"n":99999,');
  await shown.getByText("1 of 1 request").waitFor();
  console.log(`opened in ${await shown.evaluate(() => Math.round(performance.getEntriesByType("navigation")[0].loadEventEnd))} ms`);
  assert.deepEqual(faults, []);
});
