// Makes the pages that are parts of the command, which is built without node: they are committed.
// node assets.mjs
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const root = new URL("..", import.meta.url).pathname;
const source = (name) => join(root, "web/src", name);
const options = { bundle: true, minify: true, target: "es2022", legalComments: "none", logLevel: "warning", write: false, charset: "ascii", metafile: true, absWorkingDir: root };
const sources = new Set(["web/src/trace.html", "web/package-lock.json", "web/assets.mjs"]);
const bundled = async (more) => {
  const { outputFiles, metafile } = await build({ ...options, ...more });
  for (const path of Object.keys(metafile.inputs)) sources.add(path);
  return outputFiles[0].text.trim();
};
const script = (name) => bundled({ entryPoints: [source(name)], format: "iife" });
const style = await bundled({ entryPoints: [source("style.css")] });

// A run as one file: its script and its style are in it, and its policy names them by their hashes.
const hashed = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;
const trace = await script("trace.ts");
const parts = { SCRIPT: trace, STYLE: style, SCRIPT_HASH: hashed(trace), STYLE_HASH: hashed(style) };
const page = readFileSync(source("trace.html"), "utf8").replace(/%(SCRIPT|STYLE|SCRIPT_HASH|STYLE_HASH)%/g, (_, name) => parts[name]);
writeFileSync(join(root, "crates/cli/assets/trace.html"), page);

// The files of `entail ui`; its page is web/src/ui/index.html itself.
const assets = join(root, "crates/serve/assets");
writeFileSync(join(assets, "ui.js"), `${await script("ui/main.ts")}\n`);
writeFileSync(join(assets, "ui.css"), `${style}\n`);

// What these files were made from. `cargo test -p xtask` compares it with the sources, without node.
const fnv = (bytes) => bytes.reduce((hash, byte) => BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n), 0xcbf29ce484222325n);
const lines = [...sources].sort().map((path) => `${fnv(readFileSync(join(root, path))).toString(16).padStart(16, "0")} ${path}\n`);
writeFileSync(join(root, "web/assets.txt"), lines.join(""));
