// The page in a real browser.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browser, checked, checks, link, open, root, serve, site, write, written } from "./support.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const WRONG = "pipeline p() -> String {\n    return 1;\n}\n";
const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>'\`{{7*7}}`;

let server;
let chromium;
before(async () => {
  server = await serve();
  chromium = await browser();
});
after(async () => {
  await chromium?.close();
  await server?.close();
});

/** Runs a test in a page of its own; nothing may go wrong in it that the test does not look at. */
async function inPage(fragment, body, options = {}, { address } = server) {
  const context = await chromium.newContext(options);
  try {
    const { page, faults } = await open(context, address, fragment);
    await body(page, context);
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
  }
}

const tab = (page, name) => page.getByRole("tab", { name, exact: true });

test("a wrong program has a finding at its place", () =>
  inPage("", async (page) => {
    await write(page, WRONG);
    const finding = page.locator("#panel-findings .finding").first();
    await finding.getByText("A050").waitFor();
    assert.equal(await page.locator("#status").textContent(), "1 error");
    await finding.getByRole("button", { name: "line 2" }).click();
    assert.equal(await page.locator("#panel-program .cm-activeLine").textContent(), "    return 1;");
  }));

test("a fix is applied by a click", () =>
  inPage("#example=mistake", async (page) => {
    assert.match(await written(page), /maxSteps: 0/);
    const before = await checks(page);
    await page.locator(".finding", { hasText: "L003" }).getByRole("button", { name: "Apply fix" }).click();
    await checked(page, before);
    assert.match(await written(page), /maxSteps: 10/);
    assert.equal(await page.evaluate(() => document.activeElement.id), "panel-program");
    assert.equal(await page.locator(".finding", { hasText: "L003" }).count(), 0);
  }));

test("a refused call is shown with its labels before the run", () =>
  inPage("#example=injection", async (page) => {
    await page.locator(".finding", { hasText: "S101" }).first().waitFor();
    await tab(page, "Bounds and flow").click();
    const site = page.locator(".site.never");
    assert.match(await site.first().textContent(), /refused every time: tool pay/);
    assert.match(await site.first().textContent(), /untrusted/);
  }));

test("types, bounds, the term and the picture of an entry point are shown", () =>
  inPage("#example=triage", async (page) => {
    await tab(page, "Bounds and flow").click();
    const facts = page.getByRole("table");
    assert.match(await facts.textContent(), /Model calls0 to 6/);
    assert.match(await page.locator(".path").textContent(), /calls of the run's default model line 25.*a call of the tool queue_of line 44/s);
    assert.match(await page.locator(".path").textContent(), /^2 times up to 3 calls/);
    await tab(page, "Term").click();
    assert.match(await page.locator(".term").textContent(), /classify/);
    await tab(page, "Picture").click();
    const picture = page.getByRole("img", { name: /The term of triage/ });
    await picture.waitFor();
    const width = await picture.evaluate((image) => image.decode().then(() => image.naturalWidth));
    assert.ok(width > 100, `${width}`);
  }));

test("the attack paths of a program in Python are shown, and lead to their places", () =>
  inPage("#example=attack", async (page) => {
    await tab(page, "Attack paths").click();
    const panel = page.locator("#panel-attacks");
    const finding = panel.locator(".finding.error");
    assert.match(await finding.textContent(), /S302.*open_link.*writer.*write_to.*can get what customer reads/s);
    const picture = panel.getByRole("img", { name: /^Attack paths/ });
    assert.ok((await picture.evaluate((image) => image.decode().then(() => image.naturalWidth))) > 100);
    const drawn = decodeURIComponent(await picture.getAttribute("src"));
    for (const text of [">open_link<", ">customer<", ">write_to<", ">private data<"]) assert.ok(drawn.includes(text), text);
    await panel.getByText("1 attack path in 1 program with 4 tools.").waitFor();
    await finding.getByRole("button", { name: /line/ }).first().click();
    assert.match(await page.locator("#panel-program .cm-activeLine").textContent(), /write_to/);
    // Without the way out there is no path, and the picture goes.
    await write(page, readFileSync(join(root, "examples/frameworks/desk.py"), "utf8").replace("tools=[customer, write_to]", "tools=[customer]"));
    await panel.getByText(/^0 attack paths/).waitFor();
    assert.equal(await panel.getByRole("img").count(), 0);
    await page.locator("#path").fill("p.agent");
    await panel.getByText("For this program the flow says what reaches what").waitFor();
  }));

/** Waits for the run after the given one. */
const ran = (page, after = 0) => page.waitForFunction((after) => Number(document.documentElement.dataset.ran ?? 0) > after, after);
const runs = (page) => page.evaluate(() => Number(document.documentElement.dataset.ran ?? 0));

test("a run shows each request with its label, and the refused call with its remedy", () =>
  inPage("#example=injection", async (page) => {
    await tab(page, "Run").click();
    await ran(page);
    const steps = page.locator("#panel-run .step");
    assert.equal(await steps.count(), 2);
    assert.match(await steps.nth(0).textContent(), /1\. Call tool read/);
    assert.match(await steps.nth(1).textContent(), /2\. Ask model scripted for extract .*conversation ▲ untrusted/);
    await steps.nth(1).getByText("Where the labels come from").click();
    assert.match(await steps.nth(1).locator("details").textContent(), /the tool read answered/);
    const refused = page.locator("#panel-run .finding", { hasText: "flow" });
    assert.match(await refused.textContent(), /account.*Help: to allow it,/);
    await page.getByRole("button", { name: "First" }).click();
    assert.equal(await steps.count(), 1);
    assert.match(await page.locator("#panel-program .cm-activeLine").textContent(), /run read/);
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByRole("button", { name: "Next" }).click();
    await refused.waitFor();
  }));

test("a run follows its input and its answers, and asks for those that are missing", () =>
  inPage("#example=triage", async (page) => {
    await tab(page, "Run").click();
    await ran(page);
    assert.match(await page.locator("#panel-run .term").textContent(), /finance\/BILLING/);
    let before = await runs(page);
    await tab(page, "Answers").click();
    await page.locator("#panel-answers .cm-content").click();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText("[]");
    await ran(page, before);
    await page.getByText("no reply left").first().waitFor();
    before = await runs(page);
    await page.getByRole("button", { name: "Add an answer" }).first().click();
    await ran(page, before);
    assert.match(await written(page, "#panel-answers"), /"purpose": "classify"/);
    before = await runs(page);
    await page.getByLabel("Input").fill("{");
    await ran(page, before);
    await page.getByText("the input is wrong").waitFor();
  }));

test("each example is read without an error of the page", async () => {
  const names = ["injection", "triage", "mistake", "langgraph", "crewai", "doubling", "postcode"];
  for (const name of names) {
    await inPage(`#example=${name}`, async (page) => {
      for (const view of ["Bounds and flow", "Term", "Picture", "Run"]) {
        await tab(page, view).click();
        assert.ok(await page.getByRole("tabpanel", { name: view }).textContent() !== null);
      }
      assert.equal(await page.locator("#panel-picture .empty").count(), 0, name);
    });
  }
});

test("a link has the program in it", () =>
  inPage("", async (page, context) => {
    await write(page, WRONG);
    await page.locator("#path").fill("shared.agent");
    await page.getByRole("button", { name: "Share" }).click();
    await page.waitForFunction(() => location.hash.startsWith("#1."));
    const other = await open(context, server.address, await page.evaluate(() => location.hash));
    assert.equal((await written(other.page)).trimEnd(), WRONG.trimEnd());
    assert.equal(await other.page.locator("#path").inputValue(), "shared.agent");
    assert.deepEqual(other.faults, []);
  }));

test("a damaged link and one that unpacks to too much are refused", async () => {
  const bomb = link({ path: "p.agent", text: "x".repeat(5 << 20) });
  for (const fragment of ["#1.%%%", "#1.AAAA", link([1]), link({ path: 1, text: "x" }), bomb]) {
    await inPage(fragment, async (page) => {
      await page.getByText("The link holds no program").waitFor();
    });
  }
});

test("hostile text stays text", async () => {
  const agent = `-- ${HOSTILE}\ntool t(a: String) -> String reads untrusted {}\npipeline p(x: String) -> String { let a = t(x) ${HOSTILE}; return a; }`;
  const yaml = `agentId: ${JSON.stringify(HOSTILE)}\ntype: react\nmodel: {name: ${JSON.stringify(HOSTILE)}}\nreact: {maxSteps: 0}\n`;
  const strings = `tool t(a: String) -> String reads untrusted {}\npipeline p(x: String) -> String { let a = t(${JSON.stringify(HOSTILE)}); return a; }`;
  for (const [path, text] of [["p.agent", agent], ["a.yaml", yaml], ["s.agent", strings], [HOSTILE, agent], [`${HOSTILE}.lam`, `"${HOSTILE.replaceAll('"', "")}" 1`]]) {
    await inPage(link({ path, text, policy: HOSTILE, entry: HOSTILE, input: HOSTILE, script: JSON.stringify([{ call: "t", result: HOSTILE }, HOSTILE]) }), async (page) => {
      for (const view of ["Findings", "Bounds and flow", "Term", "Picture", "Attack paths", "Run"]) {
        await tab(page, view).click();
        await page.waitForTimeout(30);
      }
      await tab(page, "Policy").click();
      assert.equal(await page.locator("body img[src=x], body script:not([src]), body [onerror]").count(), 0);
    });
  }
});

const OLD_NAME = 'from langgraph.prebuilt import create_agent_executor\n\nBEE = "\\N{HONEYBEE}"\n';

test("tables of frameworks and names of characters are loaded when a program needs them", async () => {
  // Other tests have service workers, which load everything.
  const own = await serve();
  const loaded = () => own.requests.filter((path) => /^\/(tables|character_names)/.test(path));
  await inPage("#example=injection", async (page) => {
    assert.deepEqual(loaded(), []);
    await page.locator("#path").fill("graph.py");
    await write(page, OLD_NAME);
    await page.locator("#panel-findings").getByText("L028").waitFor();
    assert.equal(await page.locator(".finding", { hasText: "load" }).count(), 0);
    assert.equal(loaded().filter((path) => path === "/tables/langgraph-prebuilt.z").length, 1);
    assert.equal(loaded().filter((path) => path === "/character_names.wasm").length, 1);
    assert.ok(loaded().length < 8, loaded().join());
    await write(page, OLD_NAME.replace("HONEYBEE", "NO SUCH BEE"));
    await page.locator("#panel-findings .error").first().waitFor();
  }, { serviceWorkers: "block" }, own);
  await own.close();
});

test("what is known without a table is shown while the table is loaded", () =>
  inPage("", async (page) => {
    let go = () => {};
    const held = new Promise((resolve) => (go = resolve));
    await page.route(/tables/, (route) => held.then(() => route.continue()));
    await page.evaluate(() => (location.hash = "#example=langgraph"));
    await page.getByText("1 warning so far").waitFor();
    await page.locator(".finding.warn", { hasText: "L023" }).waitFor();
    go();
    await page.locator("#status", { hasText: /^1 warning$/ }).waitFor();
    await page.locator(".finding.warn", { hasText: "L023" }).waitFor();
  }, { serviceWorkers: "block" }));

test("a program of an address is checked once", async () => {
  for (const fragment of ["", "#example=mistake", link({ path: "p.agent", text: WRONG, policy: "[tools.a]\n", script: "[]" })]) {
    const context = await chromium.newContext({ serviceWorkers: "block" });
    const page = await context.newPage();
    await page.addInitScript(() => {
      const post = Worker.prototype.postMessage;
      globalThis.asked = 0;
      Worker.prototype.postMessage = function (message) {
        if (message.question?.query === "check") globalThis.asked++;
        return post.call(this, message);
      };
    });
    await page.goto(server.address + fragment);
    await checked(page);
    await page.waitForTimeout(300);
    assert.equal(await page.evaluate(() => globalThis.asked), 1, fragment);
    await context.close();
  }
});

test("what can't be loaded is said to be unknown", () =>
  inPage("", async (page) => {
    await page.route(/tables|character_names/, (route) => route.fulfill({ status: 200, body: "no table" }));
    await page.locator("#path").fill("graph.py");
    await write(page, OLD_NAME);
    await page.locator(".finding.unknown", { hasText: "whether langgraph-prebuilt has what the program uses" }).waitFor();
    await page.locator(".finding.unknown", { hasText: "which character HONEYBEE is" }).waitFor();
    assert.equal(await page.locator(".finding.error").count(), 0);
  }, { serviceWorkers: "block" }));

test("the module is smaller than 2.5 MB when compressed", () => {
  const size = execFileSync("gzip", ["-9c", join(site, "entail.wasm")], { maxBuffer: 16_000_000 }).length;
  console.log(`${size.toLocaleString("en")} bytes`);
  assert.ok(size < 2_500_000);
});

test("the first findings are there soon after the page is loaded", async () => {
  const programs = { "the first example": "", "a program of a link": link({ path: "p.agent", text: WRONG }), "a module of Python": "#example=langgraph" };
  for (const [name, fragment] of Object.entries(programs)) {
    const times = [];
    for (let i = 0; i < 5; i++) {
      const context = await chromium.newContext({ serviceWorkers: "block" });
      const page = await context.newPage();
      await page.addInitScript(() => {
        const look = () => {
          if (document.querySelector("#panel-findings .finding")) globalThis.first ??= performance.now();
          if (document.documentElement?.dataset.checked) globalThis.all ??= performance.now();
        };
        new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
      });
      await page.goto(server.address + fragment);
      await page.waitForFunction(() => globalThis.first && globalThis.all);
      times.push(await page.evaluate(() => [globalThis.first - performance.getEntriesByType("navigation")[0].loadEventEnd, globalThis.first, globalThis.all - globalThis.first]));
      await context.close();
    }
    const [median, whole] = times.sort(([a], [b]) => a - b)[2].map(Math.round);
    const rest = times.map(([, , rest]) => Math.round(rest)).sort((a, b) => a - b)[2];
    console.log(`${name}: ${median} ms after the page has been loaded, ${whole} ms after it was asked for, and all of them ${rest} ms later (medians of 5)`);
  }
});

test("a keystroke in a program of 1,000 lines is shown within a frame", async () => {
  const lines = Array.from({ length: 500 }, (_, i) => `pipeline p${i}(x: String) -> String {\n    return x; }`);
  await inPage(link({ path: "p.agent", text: lines.join("\n") }), async (page) => {
    await page.locator("#panel-program .cm-line").first().click();
    await page.keyboard.press("End");
    const times = await page.locator("#panel-program .cm-content").evaluate(async (content) => {
      const times = [];
      for (let i = 0; i < 40; i++) {
        const start = performance.now();
        document.execCommand("insertText", false, " ");
        content.getBoundingClientRect();
        times.push(performance.now() - start);
        await new Promise((resolve) => setTimeout(resolve, 30));
      }
      return times.sort((a, b) => a - b);
    });
    console.log(`a keystroke takes ${times[20].toFixed(1)} ms (median of 40), at most ${times[39].toFixed(1)} ms`);
    assert.equal(times.length, 40);
  });
});

test("a loop that is followed round by round fits into the stack of a browser", async () => {
  const pages = readFileSync(join(root, "docs/rules/L021-unbounded-group.md"), "utf8");
  const text = pages.split("```python\n")[1].split("```")[0];
  assert.match(text, /RoundRobinGroupChat/);
  await inPage(link({ path: "team.py", text }), async (page) => {
    await page.locator(".finding", { hasText: "L021" }).waitFor();
    await tab(page, "Bounds and flow").click();
    await page.getByRole("table", { name: "Types and bounds of a run" }).waitFor();
  });
});

test("a text that is nested too deep for a browser is refused, and the page goes on", () =>
  inPage("", async (page) => {
    await page.locator("#path").fill("deep.py");
    await page.locator("#panel-program .cm-content").click();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(`x = ${"(".repeat(30_000)}`);
    await page.getByText("nested deeper than the stack").waitFor();
    await page.locator("#path").fill("p.agent");
    await write(page, WRONG);
    await page.locator("#panel-findings").getByText("A050").waitFor();
  }));

test("the page works without a network once it has been loaded", () =>
  inPage("", async (page, context) => {
    await page.evaluate(() => navigator.serviceWorker.ready);
    await context.setOffline(true);
    await page.reload();
    await checked(page);
    await write(page, WRONG);
    await page.locator("#panel-findings").getByText("A050").waitFor();
  }));

test("axe finds no violation in any view, light and dark, wide and narrow", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const viewport of [{ width: 1280, height: 800 }, { width: 390, height: 800 }]) {
      // The policy of the page keeps axe out as well; the tool is added past it.
      await inPage("#example=injection", async (page) => {
        await page.addScriptTag({ path: AXE });
        for (const view of ["Findings", "Bounds and flow", "Term", "Picture", "Attack paths", "Run"]) {
          await tab(page, view).click();
          await page.waitForTimeout(200);
          const { violations } = await page.evaluate(() => globalThis.axe.run());
          const shown = violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.failureSummary}`).join("; ")}`);
          assert.deepEqual(shown, [], `${colorScheme} ${viewport.width} ${view}`);
        }
      }, { colorScheme, viewport, bypassCSP: true });
    }
  }
});

test("everything can be reached and done with the keyboard alone", () =>
  inPage("#example=mistake", async (page) => {
    const focused = () => page.evaluate(() => {
      let at = document.activeElement;
      while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
      return at?.id || at?.getAttribute("aria-label") || at?.textContent || "";
    });
    const seen = [];
    for (let i = 0; i < 60 && !seen.includes("Apply fix"); i++) {
      await page.keyboard.press("Tab");
      seen.push(await focused());
    }
    for (const wanted of ["example", "path", "format", "share", "theme", "tab-program", "Program", "tab-findings", "Apply fix"]) {
      assert.ok(seen.includes(wanted), `${wanted} is not among ${seen.join(", ")}`);
    }
    const before = await checks(page);
    await page.keyboard.press("Enter");
    await checked(page, before);
    assert.match(await written(page), /maxSteps: 10/);
    await tab(page, "Findings").focus();
    await page.keyboard.press("ArrowRight");
    assert.equal(await focused(), "tab-entails");
    assert.ok(await page.getByRole("table").isVisible());
    await page.keyboard.press("End");
    assert.equal(await tab(page, "Run").getAttribute("aria-selected"), "true");
  }));

test("a phone shows everything without scrolling sideways", () =>
  inPage("#example=injection", async (page) => {
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    for (const view of ["Findings", "Bounds and flow", "Term", "Picture", "Attack paths", "Run"]) {
      await tab(page, view).click();
      assert.ok((await overflow()) <= 0, view);
    }
  }, { viewport: { width: 360, height: 740 } }));

test("the chosen theme stays", () =>
  inPage("", async (page) => {
    await page.getByRole("button", { name: "Dark", exact: true }).click();
    await page.reload();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  }, { colorScheme: "light" }));
