// Bundles the panels of the VS Code extension: node vscode.mjs FOLDER. `npm run build` of the extension runs it.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const here = new URL(".", import.meta.url).pathname;
const folder = process.argv[2];
if (!folder) {
  console.error("usage: node vscode.mjs FOLDER");
  process.exit(2);
}
mkdirSync(folder, { recursive: true });
const options = { bundle: true, minify: true, target: "es2022", legalComments: "none", logLevel: "warning", charset: "ascii" };
await build({ ...options, entryPoints: [join(here, "src/vscode/main.ts")], format: "iife", outfile: join(folder, "panel.js") });
await build({ ...options, entryPoints: [join(here, "src/style.css")], outfile: join(folder, "panel.css") });
