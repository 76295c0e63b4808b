// The page of `entail ui` in a real browser, on runs of real processes.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { EVE, HOSTILE, PASSPHRASE, REFUSES, began, begin, command, end, folder, listed, open, pictures, ran, runs, ui, until } from "./ui-support.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

before(begin);
after(end);

test("the link opens the page once, and its token stays nowhere", async () => {
  const dir = folder();
  ran(dir);
  const { link } = await ui(dir);
  const { page, context, faults } = await open(link);
  await listed(page);
  assert.equal(new URL(page.url()).hash, "#/runs");
  const cookies = await context.cookies();
  assert.deepEqual(cookies.map((c) => [c.httpOnly, c.sameSite, c.expires]), [[true, "Strict", -1]]);
  assert.equal(await page.evaluate(() => document.cookie), "");
  const token = link.split("token=")[1];
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state]));
  assert.ok(!stored.includes(token) && !stored.includes(cookies[0].value), stored);
  await page.reload();
  await listed(page);
  assert.deepEqual(faults, []);
  const again = await open(link);
  await again.page.getByText("this browser has no session").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("This browser is signed out").waitFor();
  await page.reload();
  await page.getByText("this browser has no session").waitFor();
});

test("pages of other origins neither read nor answer anything", async () => {
  const dir = folder();
  ran(dir);
  const { link } = await ui(dir);
  const { page, context } = await open(link);
  await listed(page);
  const origin = new URL(link).origin;
  const request = (await (await page.request.get(`${origin}/api/approvals`, { headers: { cookie: await cookie(context) } })).json()).approvals[0].request;
  const elsewhere = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>x</title>"));
  await new Promise((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
  const evil = await context.newPage();
  await evil.goto(`http://127.0.0.1:${elsewhere.address().port}/`);
  const body = JSON.stringify({ decision: "approve", passphrase: PASSPHRASE });
  const tried = await evil.evaluate(
    async ({ origin, request, body }) => {
      const path = `${origin}/api/approvals/${request}`;
      const of = (init) => fetch(path, { method: "POST", body, credentials: "include", ...init }).then((r) => r.type, (e) => e.name);
      const read = await fetch(`${origin}/api/runs`, { credentials: "include" }).then((r) => r.status, (e) => e.name);
      return [read, await of({ mode: "no-cors", headers: { "content-type": "text/plain" } }), await of({ headers: { "content-type": "application/json" } })];
    },
    { origin, request, body },
  );
  assert.deepEqual(tried, ["TypeError", "TypeError", "TypeError"]);
  const framed = await evil.evaluate(async (origin) => {
    const frame = document.createElement("iframe");
    frame.src = origin;
    document.body.append(frame);
    await new Promise((resolve) => (frame.onload = resolve));
    return frame.contentDocument === null;
  }, origin);
  assert.ok(framed);
  elsewhere.closeAllConnections();
  elsewhere.close();
  assert.equal(runs(dir)[0].waiting.length, 1);
});

async function cookie(context) {
  return (await context.cookies()).map((c) => `${c.name}=${c.value}`).join("; ");
}

test("a run is shown from what was kept: labels, origins, the refusal and its remedy, without the program", async () => {
  const dir = folder({ policy: REFUSES });
  const run = ran(dir);
  for (const file of ["pay.agent", "policy.toml", "s.json"]) rmSync(join(dir, file));
  writeFileSync(join(dir, "entail.toml"), "");
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await page.getByRole("link", { name: "pay.agent settle" }).click();
  const steps = page.locator(".step");
  await steps.first().waitFor();
  assert.equal(await steps.count(), 2);
  assert.match(await steps.nth(1).textContent(), /2\. Ask model scripted for recipient pay.agent:4:.*conversation ▲ untrusted/);
  await steps.nth(1).getByText("Where the labels come from").click();
  assert.match(await steps.nth(1).locator("details").textContent(), /the tool page answered/);
  const refused = page.locator(".finding", { hasText: "flow" }).first();
  assert.match(await refused.textContent(), /pay.*Help: to allow it,/s);
  assert.match(await page.getByRole("table").first().textContent(), /Model calls11/);
  await page.getByText("Timeline").click();
  await page.getByRole("img", { name: "Timeline of 2 requests" }).waitFor();
  await page.getByText("Program and bound").click();
  const picture = page.getByRole("img", { name: /The term of settle/ });
  await picture.waitFor();
  const drawn = decodeURIComponent(await picture.getAttribute("src"));
  for (const text of [">recipient<", ">pay<", ">untrusted<"]) assert.ok(drawn.includes(text), text);
  assert.match(await page.locator(".path").textContent(), /the tool page pay.agent:6.*model.*the tool pay pay.agent:8/s);
  await page.getByRole("button", { name: "First" }).click();
  assert.equal(await steps.count(), 1);
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByRole("button", { name: "Next" }).click();
  await refused.waitFor();
  assert.ok(page.url().endsWith(`#/runs/${run}`));
  assert.deepEqual(faults, []);
});

test("runs are found by their state, their program and what stopped them", async () => {
  const dir = folder({ policy: REFUSES });
  ran(dir);
  command(dir, ["run", "pay.agent", "--pipeline", "greet", "--script", "s.json", "--journal", "j", "u"]);
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  const rows = page.locator("tbody tr");
  await rows.nth(1).waitFor();
  const shows = async (names) => {
    await page.waitForFunction((names) => [...document.querySelectorAll("tbody a")].map((a) => a.textContent).join() === names, names.join());
  };
  // Every error that a run may end with is offered.
  const offered = await page.locator("#errors option").evaluateAll((options) => options.map((option) => option.value));
  for (const code of ["flow", "policy", "tool", "tool_timeout", "timeout", "cancelled"]) assert.ok(offered.includes(code), code);
  await page.getByLabel("State").selectOption("done");
  await shows(["pay.agent greet"]);
  await page.getByLabel("State").selectOption("");
  await page.getByLabel("Error").fill("flow");
  await shows(["pay.agent settle"]);
  await page.getByLabel("Error").fill("");
  await page.getByLabel("Program").fill("gree");
  await shows(["pay.agent greet"]);
  await page.getByLabel("Program").fill("%");
  await shows([]);
  assert.deepEqual(faults, []);
});

test("10,000 runs are listed at once, and found by their program", async () => {
  const dir = folder({ policy: REFUSES });
  command(dir, ["run", "pay.agent", "--pipeline", "greet", "--script", "s.json", "--journal", "j", "u"]);
  // The rows of one run, again and again.
  const copy = `import sqlite3
db = sqlite3.connect("j/journal.db")
names = [row[1] for row in db.execute("PRAGMA table_info(runs)")]
row = dict(zip(names, db.execute("SELECT * FROM runs").fetchone()))
db.executemany("INSERT INTO runs (" + ",".join(names) + ") VALUES (" + ",".join("?" * len(names)) + ")",
    [[{"id": "%064x" % i, "created": row["created"] - i, "name": "p%d.agent greet" % i}.get(n, row[n]) for n in names] for i in range(1, 10000)])
db.commit()`;
  execFileSync("python3", ["-c", copy], { cwd: dir });
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await page.getByText("50 shown of 10,000 runs").waitFor();
  const times = await page.evaluate(async () => {
    const times = [];
    for (let i = 0; i < 15; i++) {
      const start = performance.now();
      await (await fetch("/api/runs")).json();
      times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b).map(Math.round);
  });
  console.log(`10,000 runs are listed in ${times[0]} to ${times.at(-1)} ms, median ${times[7]} ms`);
  await page.getByLabel("Program").fill("p9876.agent");
  await page.getByText("1 shown of 10,000 runs").waitFor();
  await page.getByLabel("Program").fill("");
  await page.getByText("50 shown of 10,000 runs").waitFor();
  await page.getByRole("button", { name: "Show older runs" }).click();
  await page.getByText("100 shown of 10,000 runs").waitFor();
  assert.deepEqual(faults, []);
});

test("a long run opens with its first requests, and has all of them later", async () => {
  const count = Number(process.env.LONG_RUN ?? 20_000);
  const dir = folder({ policy: REFUSES });
  writeFileSync(join(dir, "long.agent"), `tool page(url: String) -> String reads untrusted {}
pipeline many(count: Int) -> String { for n in range(0, count) { let text = page("u"); } return "read"; }
`);
  writeFileSync(join(dir, "s.json"), JSON.stringify([{ call: "page", result: "x", repeat: true }]));
  command(dir, ["run", "long.agent", "--script", "s.json", "--journal", "j", JSON.stringify({ count })]);
  const [{ run }] = runs(dir);
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await page.getByText("many").first().waitFor();
  const start = performance.now();
  await page.evaluate((id) => void (location.hash = `#/runs/${id}`), run);
  await page.locator(".step").first().waitFor();
  const first = Math.round(performance.now() - start);
  await page.getByText(`Reading the rest of ${count.toLocaleString("en")} answers`).waitFor();
  await page.getByText(`200 of ${count.toLocaleString("en")} requests`).waitFor();
  console.log(`${count.toLocaleString("en")} requests: the first after ${first} ms, all after ${Math.round(performance.now() - start)} ms`);
  await page.getByText("Reading the rest").waitFor({ state: "hidden" });
  await page.getByRole("heading", { name: "Result" }).waitFor();
  assert.deepEqual(faults, []);
});

test("a run that waits is approved in the inbox, and its page follows it to the end", async () => {
  const dir = folder();
  const waits = await began(dir, ["run", "pay.agent", "--pipeline", "settle", "--script", "s.json", "--journal", "j", "--run-refused", "u"]);
  const ended = new Promise((resolve) => waits.once("exit", resolve));
  await until(() => existsSync(join(dir, "j/journal.db")) && runs(dir)[0]?.waiting.length === 1);
  const { link } = await ui(dir);
  const { page, context, faults } = await open(link);
  await page.getByRole("link", { name: "pay.agent settle" }).click();
  await page.getByRole("heading", { name: "The run waits for an approval" }).waitFor();
  const other = await context.newPage();
  await other.goto(`${new URL(link).origin}/#/approvals`);
  const card = other.locator(".card");
  await card.waitFor();
  const facts = await card.textContent();
  for (const fact of [/Call pay\?/, /to"bob"▲ untrusted/, /without approval this call would be refused:.*argument to is ▲ untrusted, and at most ○ trusted, public/s, /the tool page answered/, /If you refuse: the call is not made/]) {
    assert.match(facts, fact);
  }
  await card.getByLabel("Passphrase").fill("wrong");
  await card.getByRole("button", { name: "Approve" }).click();
  await card.getByText("the passphrase is wrong").waitFor();
  let answers = 0;
  other.on("request", (request) => (answers += request.method() === "POST" ? 1 : 0));
  await card.getByLabel("Passphrase").fill(PASSPHRASE);
  await card.getByRole("button", { name: "Approve" }).dblclick();
  await card.getByText("✔ Approved by alice").waitFor();
  assert.equal(answers, 1);
  assert.equal(await ended, 0);
  await page.getByRole("heading", { name: "Result" }).waitFor();
  assert.match(await page.locator(".term").textContent(), /paid bob/);
  assert.match(await page.locator(".step", { hasText: "Ask for approval" }).textContent(), /Approved.*by alice, signed with a key/s);
  // The same answer again, and the opposite one, are too late.
  const [question] = await other.locator(".card").evaluateAll((cards) => cards.map((c) => c.getAttribute("aria-labelledby")));
  assert.ok(question);
  assert.deepEqual(faults, []);
});

test("a refusal carries its reason to the program, and an answer is taken once", async () => {
  const dir = folder();
  const run = ran(dir);
  const { link } = await ui(dir);
  const { page, context, faults } = await open(`${link}`);
  await listed(page);
  await page.getByRole("link", { name: /Approvals/ }).click();
  const card = page.locator(".card");
  await card.getByLabel("Reason").fill("not to bob");
  await card.getByLabel("Passphrase").fill(PASSPHRASE);
  const sent = page.waitForRequest((request) => request.method() === "POST");
  await card.getByRole("button", { name: "Refuse" }).click();
  await card.getByText("✖ Refused by alice").waitFor();
  const replayed = await page.evaluate(
    ({ url, body }) => fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body }).then(async (r) => [r.status, (await r.json()).error.message]),
    { url: (await sent).url(), body: (await sent).postData() },
  );
  assert.deepEqual(replayed, [409, "the question has been answered already"]);
  const resumed = command(dir, ["run", "pay.agent", "--pipeline", "settle", "--script", "s.json", "--journal", "j", "--run-refused", "--resume", run]);
  assert.match(resumed.stderr, /not to bob/);
  assert.deepEqual(faults, []);
  void context;
});

test("several calls wait side by side, survive a reload, and one that was refused before says so", async () => {
  const dir = folder();
  const program = readFileSync(join(dir, "pay.agent"), "utf8");
  writeFileSync(join(dir, "pay.agent"), `${program}
pipeline twice(url: String) -> String {
    let to = page(url);
    try { let receipt = pay(to); } catch refusal e { let reason = e.message; }
    let receipt = pay(to);
    return receipt;
}
`);
  const again = ["run", "pay.agent", "--pipeline", "twice", "--script", "s.json", "--journal", "j", "--run-refused", "--approvals", "leave"];
  const first = ran(dir);
  command(dir, [...again, "u"]);
  const { run } = runs(dir)[0];
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await page.getByRole("link", { name: "Approvals (2)" }).click();
  const of = (name) => page.locator(".card", { hasText: name });
  await of("pay.agent settle").waitFor();
  await page.reload();
  await of("pay.agent settle").waitFor();
  assert.equal(await of("was refused before").count(), 0);
  await of("pay.agent twice").getByLabel("Passphrase").fill(PASSPHRASE);
  await of("pay.agent twice").getByRole("button", { name: "Refuse" }).click();
  await of("pay.agent twice").getByText("✖ Refused by alice").waitFor();
  // The other one waits on.
  await page.getByText("1 call waits for approval.").waitFor();
  command(dir, [...again, "--resume", run]);
  await of("The same call was refused before, by request 2 of this run.").waitFor();
  await page.getByText("2 calls wait for approval.").waitFor();
  assert.deepEqual(runs(dir).map((r) => [r.run, r.waiting.length]).sort(), [[first, 1], [run, 1]].sort());
  assert.deepEqual(faults, []);
});

test("a call that nobody answers in time is refused, and its card says so", async () => {
  const dir = folder();
  const settings = readFileSync(join(dir, "entail.toml"), "utf8");
  writeFileSync(join(dir, "entail.toml"), `${settings}\n[limits]\napproval = 12\n`);
  ran(dir);
  const { link } = await ui(dir);
  const { page, faults } = await open(`${link}`);
  await listed(page);
  await page.getByRole("link", { name: "Approvals (1)" }).click();
  const card = page.locator(".card");
  await card.getByText(/If nobody answers: it is refused in \d+\.\d s/).waitFor();
  const path = await page.evaluate(async () => `/api/approvals/${(await (await fetch("/api/approvals")).json()).approvals[0].request}`);
  await card.getByText("This question no longer waits: it was answered elsewhere, or has expired.").waitFor();
  assert.equal(await card.locator("form").count(), 0);
  const body = JSON.stringify({ decision: "approve", approver: "alice", passphrase: PASSPHRASE });
  const late = await page.evaluate(({ path, body }) => fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body }).then((r) => r.status), { path, body });
  assert.ok([404, 409].includes(late), `${late}`);
  assert.deepEqual(faults, []);
});

test("a call is approved with other arguments, whose types are checked", async () => {
  const dir = folder({ reply: HOSTILE });
  const run = ran(dir);
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await listed(page);
  await page.getByRole("link", { name: /Approvals/ }).click();
  const card = page.locator(".card");
  await card.getByText("Change the arguments").click();
  const field = card.getByLabel("to (Str)");
  assert.equal(await field.inputValue(), HOSTILE);
  await field.fill(`carol ${HOSTILE}`);
  await card.getByLabel("Passphrase").fill("wrong");
  await card.getByRole("button", { name: "Approve with 1 other argument" }).click();
  await card.getByText("the passphrase is wrong").waitFor();
  // What was written stays; what the server does not take is said.
  const sent = await page.evaluate(async () => {
    const { approvals } = await (await fetch("/api/approvals")).json();
    const body = JSON.stringify({ decision: "approve", edit: { to: 7 }, passphrase: "x" });
    const answer = await fetch(`/api/approvals/${approvals[0].request}`, { method: "POST", headers: { "content-type": "application/json" }, body });
    return [answer.status, (await answer.json()).error.message];
  });
  assert.deepEqual(sent, [422, "the argument `to`: $: expected a string, found a number"]);
  await field.fill("carol");
  await card.getByLabel("Passphrase").fill(PASSPHRASE);
  await card.getByRole("button", { name: "Approve with 1 other argument" }).click();
  await card.getByText(/✔ Approved with \{"to":"carol"\} in place of what was asked, by alice/).waitFor();
  command(dir, ["run", "pay.agent", "--pipeline", "settle", "--script", "s.json", "--journal", "j", "--run-refused", "--resume", run]);
  await page.evaluate((hash) => (location.hash = hash), `#/runs/${run}`);
  const step = page.locator(".step", { hasText: "Ask for approval" });
  await step.waitFor();
  assert.match(await step.textContent(), /Approved with other arguments: \{"to":"carol"\}.*by alice, signed with a key/s);
  assert.match(await page.locator(".step", { hasText: "Call tool pay" }).textContent(), /\{"to":"carol"\}/);
  assert.deepEqual(faults, []);
});

/**
 * A model that fails once, and then writes on when it is told to; with a program that asks it for a book. `go` lets
 * it go on.
 */
async function slowModel(dir, title) {
  const reply = JSON.stringify({ title, year: 1937 });
  const pieces = reply.match(/.{1,5}/gs);
  let go;
  const half = new Promise((resolve) => (go = resolve));
  let asked = 0;
  const model = createServer(async (request, response) => {
    for await (const _ of request);
    if (++asked === 1) return response.writeHead(503, { "content-type": "text/plain" }).end(`overloaded ${HOSTILE}`);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const says = (choice) => response.write(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`);
    for (const [at, piece] of pieces.entries()) {
      if (at === pieces.length - 2) await half;
      says({ delta: { content: piece } });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    says({ delta: {}, finish_reason: "stop" });
    response.end("data: [DONE]\n\n");
  });
  await new Promise((resolve) => model.listen(0, "127.0.0.1", resolve));
  writeFileSync(join(dir, "book.agent"), `tool page(url: String) -> String reads untrusted { exec "echo" "a page about {url}" }
agent reader { tools: [], model: "slow", prompt: "You extract." }
task extract(text: String) -> Obj{title: String, year: Number} by agent { prompt "{text}" }
pipeline main(text: String) -> Number { let page = page(text); let book = run extract with { text: page } by reader; return book.year; }
`);
  const settings = readFileSync(join(dir, "entail.toml"), "utf8");
  const more = `\n[models.slow]\nmodel = "m"\nbase_url = "http://127.0.0.1:${model.address().port}/v1"\n`;
  writeFileSync(join(dir, "entail.toml"), `${settings}${more}`);
  return {
    go,
    close() {
      model.closeAllConnections();
      model.close();
    },
  };
}

// Whoever began the run, and whether somebody reads along there.
for (const by of ["run", "serve"]) {
  test(`a reply of \`entail ${by}\` is shown while it arrives, and stays text`, async (t) => {
    const dir = folder();
    const { go, close } = await slowModel(dir, `The ${HOSTILE} hobbit`);
    t.after(close);
    let ended;
    if (by === "run") {
      const run = await began(dir, ["run", "book.agent", "--journal", "j", "a book"]);
      ended = new Promise((resolve) => run.once("exit", (status) => resolve(status === 0)));
    } else {
      const server = await began(dir, ["serve", "book.agent", "--journal", "j", "--listen", "127.0.0.1:0", "--format", "json"]);
      const [said] = await once(createInterface({ input: server.stdout }), "line");
      const headers = { "content-type": "application/json", authorization: `Bearer ${EVE}` };
      ended = fetch(`${JSON.parse(said).listening}/v1/pipelines/main/runs`, { method: "POST", headers, body: JSON.stringify({ text: "a book" }) }).then((r) => r.text());
    }
    await until(() => existsSync(join(dir, "j/live")));
    const { link } = await ui(dir);
    const { page, faults } = await open(link);
    await page.getByRole("link", { name: "book.agent main" }).click();
    const arriving = page.getByRole("region", { name: "Replies that arrive" });
    await arriving.getByText(/So far: \{"title":"The .*\(writing title\)/).waitFor();
    const shown = await arriving.textContent();
    assert.match(shown, /Arriving: .* for extract ▲ untrusted/);
    assert.match(shown, /Attempt 2. The one before failed: .*overloaded/);
    assert.ok(shown.includes("<script>"));
    await pictures(page, `live-${by}`);
    go();
    if (by === "run") assert.equal(await ended, true);
    else {
      // The page has everything. The caller may not see the reply, neither while it arrives nor later.
      const told = await ended;
      assert.match(told, /"code":"withheld"/);
      assert.ok(!told.includes("hobbit") && !told.includes("1937"), told);
    }
    await page.getByRole("heading", { name: "Result" }).waitFor();
    await arriving.waitFor({ state: "hidden" });
    assert.match(await page.locator(".step", { hasText: "Ask model" }).textContent(), /1 attempt failed before this answer, after waiting .*overloaded/);
    await pictures(page, `lived-${by}`);
    assert.deepEqual(faults, []);
  });
}

test("whoever has no key of an approver is not asked, and is refused", async () => {
  const dir = folder({ key: false });
  ran(dir);
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await listed(page);
  await page.getByRole("link", { name: /Approvals/ }).click();
  await page.getByText("this machine has the key of none of the approvers (alice)").waitFor();
  assert.equal(await page.locator(".card form").count(), 0);
  const refused = await page.evaluate(async () => {
    const { approvals } = await (await fetch("/api/approvals")).json();
    const body = JSON.stringify({ decision: "approve", approver: "alice", passphrase: "x" });
    const answer = await fetch(`/api/approvals/${approvals[0].request}`, { method: "POST", headers: { "content-type": "application/json" }, body });
    return [answer.status, (await answer.json()).error.message];
  });
  assert.equal(refused[0], 403);
  assert.match(refused[1], /no key of `alice`/);
  assert.equal(runs(dir)[0].waiting.length, 1);
  assert.deepEqual(faults, []);
});

test("a run is forked from a step with another answer, continued, and compared", async () => {
  const dir = folder({ policy: '[tools.pay]\neffect = "write"\narguments = "any"\n' });
  const run = ran(dir);
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await page.getByRole("link", { name: "pay.agent settle" }).click();
  const step = page.locator(".step", { hasText: "2. Ask model" });
  await step.getByRole("button", { name: "Fork with another answer" }).click();
  await step.getByLabel("Answer").fill("carol");
  await step.getByRole("button", { name: "Make the fork" }).click();
  const text = await step.locator("pre").textContent();
  assert.match(text, /^entail run pay.agent --pipeline settle --journal j --resume [0-9a-f]+$/);
  writeFileSync(join(dir, "s.json"), JSON.stringify([{ call: "pay", result: "paid carol" }]));
  command(dir, [...text.split(" ").slice(1), "--script", "s.json", "--run-refused"]);
  await step.getByRole("link", { name: "Compare both" }).click();
  await page.getByText("1 request is the same, then the runs differ; they end differently.").waitFor();
  const marked = page.locator("#first-difference");
  assert.equal(await marked.textContent(), "▼ First difference: answer.reply");
  const pair = page.locator("#first-difference + .pair");
  assert.match(await pair.locator(".steps").nth(0).textContent(), /Reply: bob/);
  assert.match(await pair.locator(".steps").nth(1).textContent(), /Reply: carol/);
  // The list compares two runs that are chosen.
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  const boxes = page.getByRole("checkbox");
  await boxes.nth(1).waitFor();
  await boxes.nth(0).check();
  await boxes.nth(1).check();
  await page.getByRole("button", { name: "Compare the two chosen runs" }).click();
  await marked.waitFor();
  assert.ok(page.url().includes(run));
  assert.deepEqual(faults, []);
});

test("a page for a principal has nothing of what it may not see", async () => {
  const dir = folder({ policy: '[tools.pay]\neffect = "write"\narguments = "any"\n[tools.page]\nresult = "secret"\n', page: "PLANTED-SECRET", reply: "PLANTED-REPLY" });
  ran(dir);
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await page.getByRole("link", { name: "pay.agent settle" }).click();
  const saved = async () => {
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download as a page" }).click();
    return readFileSync(await (await download).path(), "utf8");
  };
  assert.match(await saved(), /PLANTED-SECRET.*PLANTED-REPLY/s);
  await page.getByLabel("as far as a principal may see").fill("eve");
  assert.doesNotMatch(await saved(), /PLANTED/);
  assert.deepEqual(faults, []);
});

test("hostile text stays text in every field", async () => {
  const dir = folder({ page: HOSTILE, reply: HOSTILE });
  ran(dir);
  command(dir, ["run", "pay.agent", "--pipeline", "greet", "--script", "s.json", "--journal", "j", HOSTILE]);
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  const clean = async () => assert.equal(await page.locator("main img[src=x], main script, main [onerror]").count(), 0);
  for (const name of ["pay.agent settle", "pay.agent greet"]) {
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByRole("link", { name }).click();
    await page.locator(".step").first().waitFor();
    assert.ok((await page.locator("main").textContent()).includes("<img src=x"));
    // A run of one request has none.
    if ((await page.getByText("Timeline").count()) > 0) await page.getByText("Timeline").click();
    await clean();
  }
  await page.getByRole("link", { name: /Approvals/ }).click();
  await page.locator(".card").waitFor();
  assert.ok((await page.locator(".card").textContent()).includes("<img src=x"));
  await clean();
  for (const hash of [`#/runs/${encodeURIComponent(HOSTILE)}`, `#/compare/${encodeURIComponent(HOSTILE)}/x`]) {
    await page.evaluate((hash) => (location.hash = hash), hash);
    await page.getByRole("alert").waitFor();
    await clean();
  }
  assert.deepEqual(faults, []);
});

test("axe finds no violation, light and dark, wide and narrow; a phone does not scroll sideways", async () => {
  const dir = folder();
  const refused = ran(dir, "refuse");
  const waiting = ran(dir);
  for (const colorScheme of ["light", "dark"]) {
    for (const viewport of [{ width: 1280, height: 800 }, { width: 360, height: 740 }]) {
      const { link, child } = await ui(dir);
      const { page, faults } = await open(link, { colorScheme, viewport, bypassCSP: true });
      await listed(page);
      await page.addScriptTag({ path: AXE });
      const views = { runs: "tbody tr", [`runs/${waiting}`]: ".step", [`runs/${refused}`]: ".step", approvals: ".card", [`compare/${waiting}/${refused}`]: ".pair" };
      for (const [view, ready] of Object.entries(views)) {
        await page.evaluate((hash) => (location.hash = hash), `#/${view}`);
        await page.locator(ready).first().waitFor();
        for (const summary of await page.locator("main summary").all()) await summary.click();
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        const shown = violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.failureSummary}`).join("; ")}`);
        assert.deepEqual(shown, [], `${colorScheme} ${viewport.width} ${view}`);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${viewport.width} ${view}: ${overflow} px too wide`);
        const shots = process.env.SHOTS;
        if (shots) {
          mkdirSync(shots, { recursive: true });
          await page.screenshot({ path: join(shots, `${view.split("/")[0]}${view.includes(refused) ? "-refused" : ""}-${colorScheme}-${viewport.width}.png`), fullPage: true });
        }
      }
      assert.deepEqual(faults, []);
      child.kill();
    }
  }
});

test("a call is approved with the keyboard alone", async () => {
  const dir = folder();
  ran(dir);
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await listed(page);
  const focused = () => page.evaluate(() => document.activeElement?.closest("label")?.textContent?.trim() || document.activeElement?.textContent?.trim() || "");
  const tabTo = async (wanted) => {
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press("Tab");
      if (wanted.test(await focused())) return;
    }
    assert.fail(`${wanted} is not reached`);
  };
  await tabTo(/^Approvals/);
  await page.keyboard.press("Enter");
  await page.locator(".card").waitFor();
  await tabTo(/^Passphrase/);
  await page.keyboard.type(PASSPHRASE);
  await tabTo(/^Approve$/);
  await page.keyboard.press("Enter");
  await page.getByText("✔ Approved by alice").waitFor();
  assert.match(await focused(), /Approved by alice/);
  assert.deepEqual(faults, []);
});
