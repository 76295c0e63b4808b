// Puts the playground below each program of the book, where it is edited and run: node link-book.mjs FOLDER
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { deflateRawSync } from "node:zlib";

const folder = process.argv[2];
if (!folder) {
  console.error("usage: node link-book.mjs FOLDER");
  process.exit(2);
}

const PROGRAM = /<pre><code class="language-(agent|lam)[^"]*">([^]*?)<\/code><\/pre>/g;

/** The text that a piece of HTML shows. */
function textOf(html) {
  const entities = { lt: "<", gt: ">", quot: '"', amp: "&", "#39": "'", "#x27": "'", "#x2F": "/" };
  return html.replace(/<[^>]*>/g, "").replace(/&(lt|gt|quot|amp|#39|#x27|#x2F);/g, (_, name) => entities[name]);
}

let count = 0;
for (const name of readdirSync(folder, { recursive: true })) {
  if (!name.endsWith(".html") || name.startsWith("playground/")) continue;
  const path = join(folder, name);
  const html = readFileSync(path, "utf8");
  const playground = join(relative(dirname(path), folder), "playground/index.html");
  const linked = html.replace(PROGRAM, (block, language, code) => {
    count++;
    const shared = JSON.stringify({ path: `p.${language}`, text: textOf(code) });
    const fragment = deflateRawSync(Buffer.from(shared), { level: 9 }).toString("base64url");
    const address = `${playground}#1.${fragment}`;
    // A lazy frame in a closed part is not loaded before somebody opens it.
    const frame = `<iframe src="${address}" title="Playground with this program" loading="lazy" style="width: 100%; height: 44rem; border: 1px solid #8886; border-radius: 6px"></iframe>`;
    return `${block}\n<details><summary>Edit and run it here</summary>${frame}</details>\n<p><a href="${address}">Open in the playground</a></p>`;
  });
  if (linked !== html) writeFileSync(path, linked);
}
console.log(`linked ${count} programs`);
