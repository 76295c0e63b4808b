// Makes the pages that are parts of the command, which is built without node: they are committed.
// node assets.mjs
import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const root = new URL("..", import.meta.url).pathname;
const source = (name) => join(root, "web/src", name);
const options = { bundle: true, minify: true, target: "es2022", legalComments: "none", logLevel: "warning", write: false, charset: "ascii" };
const script = async (name) => (await build({ ...options, entryPoints: [source(name)], format: "iife" })).outputFiles[0].text.trim();
const style = (await build({ ...options, entryPoints: [source("style.css")] })).outputFiles[0].text.trim();

// A run as one file: its script and its style are in it, and its policy names them by their hashes.
const hashed = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;
const trace = await script("trace.ts");
const parts = { SCRIPT: trace, STYLE: style, SCRIPT_HASH: hashed(trace), STYLE_HASH: hashed(style) };
const page = readFileSync(source("trace.html"), "utf8").replace(/%(SCRIPT|STYLE|SCRIPT_HASH|STYLE_HASH)%/g, (_, name) => parts[name]);
writeFileSync(join(root, "crates/cli/assets/trace.html"), page);

// The files of `entail ui`.
const assets = join(root, "crates/serve/assets");
writeFileSync(join(assets, "ui.js"), `${await script("ui/main.ts")}\n`);
writeFileSync(join(assets, "ui.css"), `${style}\n`);
copyFileSync(source("ui/index.html"), join(assets, "ui.html"));
