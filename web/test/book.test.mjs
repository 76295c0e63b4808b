// Programs of the book open in the playground.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inflateRawSync } from "node:zlib";
import { browser, root, serve, site } from "./support.mjs";

const GRAPH = readFileSync(join(root, "examples/frameworks/graph.py"), "utf8").replaceAll('"', "'").replaceAll("&", "");

test("each program of a page has a link with its text", () => {
  const folder = mkdtempSync(join(tmpdir(), "entail-book-"));
  mkdirSync(join(folder, "language"));
  const page = join(folder, "language", "types.html");
  const code = (kind, text) => `<pre><code class="language-${kind}">${text}</code></pre>`;
  writeFileSync(page, [
    code("agent wrong", "fn f(x: Number) -&gt; Bool { x &lt; 1 &amp;&amp; <span class=\"boring\">true</span> }\n"),
    code("lam", "send &quot;a&quot;\n"),
    code("console", "$ entail"),
    code("python", "print(1)\n"),
    code("python", GRAPH),
    code("json", "{&quot;a&quot;: 1}\n"),
  ].join("\n"));
  execFileSync("node", [join(root, "web/link-book.mjs"), folder, site]);
  const links = [...readFileSync(page, "utf8").matchAll(/href="([^"]*)#1\.([^"]*)"/g)];
  const shared = links.map(([, , packed]) => JSON.parse(inflateRawSync(Buffer.from(packed, "base64url")).toString()));
  assert.deepEqual(links.map(([, path]) => path), Array(3).fill("../playground/index.html"));
  assert.deepEqual(shared, [
    { path: "p.agent", text: "fn f(x: Number) -> Bool { x < 1 && true }\n" },
    { path: "p.lam", text: 'send "a"\n' },
    { path: "p.py", text: GRAPH },
  ]);
  rmSync(folder, { recursive: true, force: true });
});

test("a program of the book is edited and run in its page", async () => {
  const folder = mkdtempSync(join(tmpdir(), "entail-book-"));
  cpSync(site, join(folder, "playground"), { recursive: true });
  // A root of 10 px, as the book has.
  const program = `<!doctype html><title>Book</title><style>html { font-size: 62.5% } body { font-size: 1.6rem }</style><pre><code class="language-agent">pipeline p() -&gt; String {\n    return 1;\n}\n</code></pre>`;
  writeFileSync(join(folder, "page.html"), program);
  execFileSync("node", [join(root, "web/link-book.mjs"), folder]);
  const [server, chromium] = [await serve(folder), await browser()];
  try {
    const page = await chromium.newPage();
    await page.goto(`${server.address}page.html`);
    await page.waitForTimeout(300);
    assert.deepEqual(server.requests.filter((path) => path.startsWith("/playground")), []);
    await page.getByText("Edit and run it here").click();
    const frame = page.frameLocator("iframe");
    const finding = frame.locator("#panel-findings").getByText("A050");
    await finding.waitFor();
    // It is in the frame as it stands there.
    const [inFrame, around] = [await finding.boundingBox(), await page.locator("iframe").boundingBox()];
    assert.ok(inFrame.y + inFrame.height < around.y + around.height, JSON.stringify([inFrame, around]));
    await frame.locator("#panel-program .cm-content").click();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText('pipeline p() -> String {\n    return "done";\n}\n');
    await frame.getByText("Nothing found").or(frame.locator("#status", { hasText: /no findings|nothing/i })).first().waitFor();
    await frame.getByRole("tab", { name: "Run" }).click();
    await frame.locator("#panel-run .term", { hasText: "done" }).waitFor();
    if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, "book.png"), fullPage: true });
  } finally {
    await chromium.close();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
