// The page of a finished run, which the command writes, opened as a file.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
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
function written(text, input, script, name, kind = "agent") {
  const [program, answers, html] = [`${name}.${kind}`, `${name}.json`, `${name}.html`].map((file) => join(folder, file));
  writeFileSync(program, text);
  writeFileSync(answers, JSON.stringify(script));
  try {
    execFileSync(entail, ["trace", program, ...(input === null ? [] : [input]), "--script", answers, "--run-refused", "--html", html], { stdio: "pipe" });
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

/** A program that asks models with a price, and pays by what it read. */
const WORK = `tool page(url: String) -> String reads untrusted {}
tool pay(to: String requires trusted) -> String writes {}
agent small { model: "gpt-4o-mini", tools: [], max_tokens: 100, prompt: "You sort." }
agent large { model: "gpt-4o", tools: [], max_tokens: 400, prompt: "You write." }
task sort(text: String) -> String by agent { prompt "Sort: {text}" }
task report(text: String) -> String by agent { prompt "Report: {text}" }
pipeline work(url: String) -> String {
    let first = page(url);
    let second = page("other");
    let a = run sort with { text: first } by small;
    let b = run report with { text: second } by large;
    let done = pay(a);
    return done;
}
`;
const ANSWERS = [{ call: "page", result: "MALLORY" }, { call: "page", result: "two" }, { purpose: "sort", reply: "x" }, { purpose: "report", reply: "y" }, { call: "pay", result: "paid" }];

test("a page has the program, the parts of its bound, the timeline and what was spent as pictures", async () => {
  const html = written(WORK, "u", ANSWERS, "pictures");
  // Scripted replies cost nothing.
  const costing = readFileSync(html, "utf8").replaceAll('"inputTokens":0,"outputTokens":0,"usd":0}\n', '"inputTokens":1200,"outputTokens":80,"usd":0.002}\n');
  writeFileSync(html, costing);
  for (const viewport of [{ width: 1280, height: 800 }, { width: 360, height: 740 }]) {
    const { page, faults } = await open(html, { viewport });
    for (const summary of await page.locator("main > details > summary").all()) await summary.click();
    const picture = page.getByRole("img", { name: /The term of work/ });
    await picture.waitFor();
    assert.ok((await picture.evaluate((image) => image.decode().then(() => image.naturalWidth))) > 100);
    const drawn = decodeURIComponent(await picture.getAttribute("src"));
    for (const text of [">sort<", ">report<", ">pay<", ">untrusted<"]) assert.ok(drawn.includes(text), text);
    const parts = page.getByRole("table", { name: /What the bound consists of/ });
    assert.match(await parts.textContent(), /gpt-4o.*%/s);
    await page.getByRole("img", { name: "Timeline of 4 requests" }).waitFor();
    await page.getByRole("img", { name: /Model calls: 2 of at most 2, as they add up/ }).waitFor();
    await page.getByRole("img", { name: /Tool calls: 2 of at most 3/ }).waitFor();
    await page.getByRole("img", { name: "Tokens: 2,560, as they add up" }).waitFor();
    await page.getByRole("img", { name: /Dollars: \$0.004 of at most \$0.34/ }).waitFor();
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    if (process.env.SHOTS) {
      mkdirSync(process.env.SHOTS, { recursive: true });
      await page.screenshot({ path: join(process.env.SHOTS, `page-${viewport.width}.png`), fullPage: true });
    }
    assert.deepEqual(faults, []);
  }
});

test("a page of a program in Python has its attack paths, and one for a reader has not", async () => {
  const desk = join(folder, "desk.py");
  writeFileSync(desk, readFileSync(join(root, "examples/frameworks/desk.py")));
  writeFileSync(join(folder, "desk.json"), JSON.stringify(["done"]));
  writeFileSync(join(folder, "entail.toml"), '[callers.eve]\ntoken_env = "EVE"\nclearance = "public"\n');
  const options = { cwd: folder, stdio: "pipe", env: { ...process.env, EVE: "planted-5f3a9c01d2e84b76" } };
  execFileSync(entail, ["run", "desk.py", "Answer.", "--python-tools", "--script", "desk.json", "--journal", "j"], options);
  const [{ run }] = String(execFileSync(entail, ["runs", "list", "--journal", "j", "--format", "json"], options)).trim().split("\n").map((line) => JSON.parse(line));
  const page = (name, ...more) => {
    execFileSync(entail, ["trace", run, "--journal", "j", "--html", name, ...more], options);
    return join(folder, name);
  };
  const { page: shown, faults } = await open(page("desk.html"));
  await shown.getByText("Program and bound").click();
  const picture = shown.getByRole("img", { name: /^Attack paths/ });
  assert.ok((await picture.evaluate((image) => image.decode().then(() => image.naturalWidth))) > 100);
  assert.match(await shown.locator(".finding.error", { hasText: "S302" }).textContent(), /whoever writes what open_link reads/);
  await shown.getByText("1 attack path in 1 program with 4 tools.").waitFor();
  assert.deepEqual(faults, []);
  const redacted = readFileSync(page("eve.html", "--for", "eve"), "utf8");
  for (const secret of ["whoever writes", "S302", "attacks"]) assert.ok(!redacted.slice(redacted.indexOf('id="trace"'), redacted.indexOf("</script>", redacted.indexOf('id="trace"'))).includes(secret), secret);
});

test("requests that say little are folded, unless somebody looks for them", async () => {
  const program = `tool pay(account: Str) -> Str write
mem (
  let _ = remember a 1 in
  let b = recall a in
  let _ = remember a 2 in
  tool[pay] {account: "x"}
) {a: Num = 0}
`;
  const { page, faults } = await open(written(program, null, [{ call: "pay", result: "paid" }], "folded", "lam"));
  const folded = page.getByText("1 to 3: 3 minor requests (remember a, recall a)");
  await folded.waitFor();
  assert.deepEqual(await page.locator(".step:visible").evaluateAll((steps) => steps.map((step) => step.dataset.n)), ["4"]);
  await folded.click();
  assert.equal(await page.locator(".step:visible").count(), 4);
  await page.getByLabel("Containing").fill("recall");
  await page.getByText("1 of 1 request").waitFor();
  assert.equal(await page.locator(".step:visible").count(), 1);
  assert.deepEqual(faults, []);
});

test("a range of requests is chosen by numbers, and drawn in the timeline", async () => {
  const { page, faults } = await open(written(WORK, "u", ANSWERS, "range"));
  await page.getByLabel("From request").fill("2");
  await page.getByLabel("to", { exact: true }).fill("3");
  await page.keyboard.press("Tab");
  await page.getByText("2 of 2 requests").waitFor();
  assert.deepEqual(await page.locator(".step").evaluateAll((steps) => steps.map((step) => step.dataset.n)), ["2", "3"]);
  await page.getByLabel("From request").fill("");
  await page.getByLabel("to", { exact: true }).fill("");
  await page.keyboard.press("Tab");
  await page.getByText("Timeline").click();
  const box = await page.getByRole("img", { name: "Timeline of 4 requests" }).boundingBox();
  const names = (190 / 834) * box.width;
  await page.mouse.move(box.x + names + 2, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + names + (box.width - names) * 0.4, box.y + 20, { steps: 4 });
  await page.mouse.up();
  await page.getByText("2 of 2 requests").waitFor();
  assert.equal(await page.getByLabel("From request").inputValue(), "1");
  assert.deepEqual(faults, []);
});

test("long idle times are cut in the timeline, and so is waiting for a person; short ones are not", async () => {
  const html = written(WORK, "u", ANSWERS, "idle");
  const text = readFileSync(html, "utf8");
  /** The page with when each answer came and how long it took; the last request is an approval, if it is to be one. */
  const timed = (name, times, asks = false) => {
    let page = text.replace(/{"event":"response","n":(\d+),.*/g, (line, n) => {
      const [at, ms] = times[n - 1];
      return `${line}\n${JSON.stringify({ event: "kept", n: Number(n), step: Number(n), at, ms })}`;
    });
    if (asks) page = page.replace(/({"event":"request","n":4,.*?"kind":)"\w+"/, '$1"approve"');
    const file = join(folder, `${name}.html`);
    writeFileSync(file, page);
    return file;
  };
  const hour = 3_600_000;
  const cases = [
    ["short", timed("short", [[1000, 10], [1030, 10], [1060, 10], [1090, 10]]), /^100 ms from the first request to the last answer$/, [0.05, 0.2]],
    ["long", timed("long", [[1000, 1000], [2000, 1000], [2000 + hour, 1000], [3000 + hour, 1000]]), /idle time is cut at the dashed lines \(59 min 59 s\)/, [0.1, 0.3]],
    ["person", timed("person", [[1000, 1000], [2000, 1000], [3000, 1000], [3000 + hour, hour]], true), /idle time is cut at the dashed lines \(1 h 0 min\)/, [0.1, 0.4]],
  ];
  for (const [name, file, said, [least, most]] of cases) {
    const { page, faults } = await open(file);
    await page.getByText("Timeline").click();
    assert.match(await page.locator("details:has(svg) p.muted").first().textContent(), said, name);
    // The first request has its part of the picture.
    const part = await page.locator("svg.timeline rect.bar").first().evaluate((bar) => Number(bar.getAttribute("width")) / 640);
    assert.ok(part >= least && part <= most, `${name}: ${part}`);
    assert.deepEqual(faults, []);
  }
});

test("axe finds no violation in the page of a run", async () => {
  for (const [name, text, answers] of [["axe", PAY, [{ call: "page", result: "MALLORY" }, { call: "pay", result: "paid" }]], ["axe2", WORK, ANSWERS]]) {
    const html = written(text, "u", answers, name);
    for (const colorScheme of ["light", "dark"]) {
      const { page } = await open(html, { colorScheme, bypassCSP: true });
      await page.addScriptTag({ content: readFileSync(AXE, "utf8") });
      for (const summary of await page.locator("main summary").all()) await summary.click();
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target)}`), [], colorScheme);
    }
  }
});

/** The page of a run with many requests, each answered with a text. */
function manyRequests(count, text, name) {
  const page = readFileSync(written(PAY, "u", [{ call: "page", result: "x" }, { call: "pay", result: "paid" }], name), "utf8");
  const [request, response] = ["request", "response"].map((event) => new RegExp(`{"event":"${event}","n":1,.*`).exec(page)[0]);
  const many = Array.from({ length: count }, (_, i) =>
    [request, response.replace('"x"', JSON.stringify(text))].map((line) => line.replace('"n":1,', `"n":${i + 1},`)).join("\n"),
  ).join("\n");
  const html = join(folder, `${name}-many.html`);
  writeFileSync(html, page.replace(`${request}\n${response}`, () => many));
  return html;
}

/** Opens a page; gives the milliseconds until its requests are there. */
async function opened(html) {
  const start = performance.now();
  const { page, faults } = await open(html);
  await page.locator(".step").first().waitFor();
  return { page, faults, ms: Math.round(performance.now() - start) };
}

test("a run of 100,000 requests opens, is drawn as it is looked at, and scrolls", async () => {
  const { page, faults, ms } = await opened(manyRequests(100_000, "x", "long"));
  console.log(`opened in ${ms} ms`);
  await page.getByText("200 of 100,000 requests").waitFor();
  // The end of the list comes into view, and the list goes on.
  const frames = await page.evaluate(async () => {
    const times = [];
    let last = performance.now();
    while (document.querySelectorAll(".step").length < 2000) {
      scrollBy(0, 900);
      await new Promise(requestAnimationFrame);
      times.push(performance.now() - last);
      last = performance.now();
    }
    return times.sort((a, b) => a - b);
  });
  const [median, late] = [0.5, 0.95].map((part) => Math.round(frames[Math.floor(frames.length * part)]));
  console.log(`2,000 requests in ${frames.length} frames: median ${median} ms, 95 of 100 within ${late} ms`);
  await page.getByLabel("From request").fill("99990");
  await page.keyboard.press("Tab");
  await page.getByText("11 of 11 requests").waitFor();
  await page.getByLabel("Containing").fill('"n":99999,');
  await page.getByText("1 of 1 request").waitFor();
  assert.deepEqual(faults, []);
});

test("a file of 100 MB opens", async () => {
  const html = manyRequests(20_000, "lorem ipsum ".repeat(400), "large");
  const size = statSync(html).size;
  assert.ok(size > 100_000_000, `${size} bytes`);
  const { page, faults, ms } = await opened(html);
  console.log(`${(size / 1e6).toFixed(0)} MB opened in ${ms} ms`);
  await page.getByText("200 of 20,000 requests").waitFor();
  assert.deepEqual(faults, []);
  await page.context().close();
});
