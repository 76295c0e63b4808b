// Puts the playground below each program of the book, where it is edited and run: node link-book.mjs FOLDER
//
// Which configurations and modules of Python are programs, the module of the playground says: those with an entry
// point. Others are parts of files, data, or programs around an agent.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { deflateRawSync } from "node:zlib";
import { build } from "esbuild";

const [folder, playgroundFolder = folder && join(folder, "playground")] = process.argv.slice(2);
if (!folder) {
  console.error("usage: node link-book.mjs FOLDER [PLAYGROUND]");
  process.exit(2);
}

const PROGRAM = /<pre><code class="language-(agent|lam|yaml|json|python)[^"]*">([^]*?)<\/code><\/pre>/g;
const EXTENSIONS = { agent: "agent", lam: "lam", yaml: "yaml", json: "json", python: "py" };

const source = new URL("src/module.ts", import.meta.url).pathname;
const { outputFiles } = await build({ entryPoints: [source], bundle: true, format: "esm", write: false });
const { Module } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
const entail = await Module.of(await WebAssembly.compile(readFileSync(join(playgroundFolder, "entail.wasm"))));

/** Whether a text is something that runs. One that the module can't read fails. */
function isProgram(path, text) {
  if (/\.(agent|lam)$/.test(path)) return true;
  return JSON.parse(entail.answer(JSON.stringify({ query: "check", path, text }))).entries.length > 0;
}

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
    const program = { path: `p.${EXTENSIONS[language]}`, text: textOf(code) };
    if (!isProgram(program.path, program.text)) return block;
    count++;
    const shared = JSON.stringify(program);
    const fragment = deflateRawSync(Buffer.from(shared), { level: 9 }).toString("base64url");
    const address = `${playground}#1.${fragment}`;
    // A lazy frame in a closed part is not loaded before somebody opens it.
    const frame = `<iframe src="${address}" title="Playground with this program" loading="lazy" style="width: 100%; height: 704px; border: 1px solid #8886; border-radius: 6px"></iframe>`;
    return `${block}\n<details><summary>Edit and run it here</summary>${frame}</details>\n<p><a href="${address}">Open in the playground</a></p>`;
  });
  if (linked !== html) writeFileSync(path, linked);
}
console.log(`linked ${count} programs`);
