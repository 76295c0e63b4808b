// Bundles the playground: node build.mjs MODULE.wasm FOLDER
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import "./assets.mjs";

const root = new URL("..", import.meta.url).pathname;
const here = new URL(".", import.meta.url).pathname;
const [wasm, out] = process.argv.slice(2);
if (!wasm || !out) {
  console.error("usage: node build.mjs MODULE.wasm FOLDER");
  process.exit(2);
}

/** The texts of the repository that the examples name. */
function examples() {
  const read = (path) => path && readFileSync(join(root, path), "utf8");
  return JSON.parse(readFileSync(join(here, "examples.json"), "utf8")).map((example) => ({
    ...example,
    path: example.file.split("/").at(-1),
    text: read(example.file),
    policy: read(example.policy),
    script: read(example.script),
  }));
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const options = { bundle: true, minify: true, target: "es2022", legalComments: "none", outdir: out, logLevel: "warning" };
const source = (name) => join(here, "src", name);
await build({
  ...options,
  entryPoints: [source("main.ts")],
  format: "esm",
  define: { EXAMPLES: JSON.stringify(examples()) },
});
await build({ ...options, entryPoints: ["worker.ts", "theme.ts", "early.ts"].map(source), format: "iife" });
for (const file of ["index.html", "style.css"]) copyFileSync(source(file), join(out, file));
copyFileSync(wasm, join(out, "entail.wasm"));

const files = ["index.html", "style.css", "theme.js", "early.js", "main.js", "worker.js", "entail.wasm"];
const hash = createHash("sha256");
for (const file of files) hash.update(readFileSync(join(out, file)));
const version = hash.digest("hex").slice(0, 16);
await build({
  ...options,
  entryPoints: [source("sw.ts")],
  format: "iife",
  define: { VERSION: JSON.stringify(version), FILES: JSON.stringify(["./", ...files]) },
});
