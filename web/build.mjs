// Bundles the playground: node build.mjs MODULES FOLDER, where cargo put the modules into MODULES.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { build } from "esbuild";
import "./assets.mjs";
import { shrink } from "./shrink.mjs";

const root = new URL("..", import.meta.url).pathname;
const here = new URL(".", import.meta.url).pathname;
const [modules, out] = process.argv.slice(2);
if (!modules || !out) {
  console.error("usage: node build.mjs MODULES FOLDER");
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
});
await build({ ...options, entryPoints: ["worker.ts", "theme.ts"].map(source), format: "iife" });
await build({ ...options, entryPoints: [source("early.ts")], format: "iife", define: { EXAMPLES: JSON.stringify(examples()) } });
for (const file of ["index.html", "style.css"]) copyFileSync(source(file), join(out, file));
shrink(join(modules, "web.wasm"), join(out, "entail.wasm"));
copyFileSync(join(modules, "examples/character_names.wasm"), join(out, "character_names.wasm"));

// The tables that the module asks for.
const tables = join(root, "crates/framework_api/tables");
const packages = readdirSync(tables).filter((file) => file.endsWith(".txt")).map((file) => file.slice(0, -".txt".length));
mkdirSync(join(out, "tables"));
for (const name of packages) {
  writeFileSync(join(out, "tables", `${name}.z`), deflateRawSync(readFileSync(join(tables, `${name}.txt`)), { level: 9 }));
}

const files = ["index.html", "style.css", "theme.js", "early.js", "main.js", "worker.js", "entail.wasm", "character_names.wasm", ...packages.map((name) => `tables/${name}.z`)];
const hash = createHash("sha256");
for (const file of files) hash.update(readFileSync(join(out, file)));
const version = hash.digest("hex").slice(0, 16);
await build({
  ...options,
  entryPoints: [source("sw.ts")],
  format: "iife",
  define: { VERSION: JSON.stringify(version), FILES: JSON.stringify(["./", ...files]) },
});
