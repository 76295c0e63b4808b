// Programs of the book open in the playground.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inflateRawSync } from "node:zlib";
import { root } from "./support.mjs";

test("each program of a page has a link with its text", () => {
  const folder = mkdtempSync(join(tmpdir(), "entail-book-"));
  mkdirSync(join(folder, "language"));
  const page = join(folder, "language", "types.html");
  const code = (kind, text) => `<pre><code class="language-${kind}">${text}</code></pre>`;
  writeFileSync(page, [
    code("agent wrong", "fn f(x: Number) -&gt; Bool { x &lt; 1 &amp;&amp; <span class=\"boring\">true</span> }\n"),
    code("lam", "send &quot;a&quot;\n"),
    code("console", "$ entail"),
  ].join("\n"));
  execFileSync("node", [join(root, "web/link-book.mjs"), folder]);
  const links = [...readFileSync(page, "utf8").matchAll(/href="([^"]*)#1\.([^"]*)"/g)];
  const shared = links.map(([, , packed]) => JSON.parse(inflateRawSync(Buffer.from(packed, "base64url")).toString()));
  assert.deepEqual(links.map(([, path]) => path), ["../playground/index.html", "../playground/index.html"]);
  assert.deepEqual(shared, [
    { path: "p.agent", text: "fn f(x: Number) -> Bool { x < 1 && true }\n" },
    { path: "p.lam", text: 'send "a"\n' },
  ]);
  rmSync(folder, { recursive: true, force: true });
});
