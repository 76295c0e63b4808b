// What the command says of a file, for the panel with the program. Knows nothing of VS Code.
"use strict";

const { execFile } = require("node:child_process");

/** Entry points that are drawn at most. */
const MAX_ENTRIES = 8;

/** What one command may take and print. */
const LIMITS = { timeout: 60_000, maxBuffer: 64 << 20, encoding: "utf8" };

/** Runs the command; gives what it prints. Findings make it end with 1. */
function printed(command, args, cwd) {
  return new Promise((resolve, reject) => {
    execFile(command, args, { ...LIMITS, cwd }, (error, stdout, stderr) => {
      if (error && typeof error.code === "string") reject(new Error(`\`${command}\` does not start: ${error.message}`));
      else if (error?.killed) reject(new Error(`\`${command} ${args[0]}\` takes too long`));
      else resolve({ stdout, stderr, status: error ? error.code : 0 });
    });
  });
}

const objects = (text) => text.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));

/** The reason why a command gave nothing. */
function reason({ stdout, stderr }) {
  const said = objects(stdout).find((line) => line.error)?.error;
  return said ? [said.message, said.help].filter(Boolean).join("; ") : stderr.trim().split("\n")[0];
}

/** The entry points of a file: types, bounds, flow, the most expensive path, and a picture of each. */
async function programOf(command, file, cwd) {
  const shows = ["types", "effects", "cost", "flow"].flatMap((what) => ["--show", what]);
  const [checked, costs] = await Promise.all([
    printed(command, ["check", "--format", "json", ...shows, file], cwd),
    printed(command, ["cost", "--explain", "--format", "json", file], cwd),
  ]);
  const entries = objects(checked.stdout).filter((line) => line.entry);
  const paths = new Map(objects(costs.stdout).map((line) => [line.entry, line.path_taken ?? []]));
  const drawn = [];
  for (const entry of entries.slice(0, MAX_ENTRIES)) {
    const picture = await printed(command, ["compile", "--format", "svg", "--pipeline", entry.entry, file], cwd);
    const isDrawn = picture.status === 0 && picture.stdout.includes("<svg");
    drawn.push({
      ...entry,
      costPath: paths.get(entry.entry) ?? [],
      svg: isDrawn ? picture.stdout : null,
      error: isDrawn ? null : reason(picture),
    });
  }
  return { entries: drawn, error: entries.length > 0 || checked.status < 2 ? null : reason(checked) };
}

/** The attack paths of a folder as a picture. */
async function auditOf(command, folder) {
  const picture = await printed(command, ["audit", "--format", "svg", "."], folder);
  const isDrawn = picture.stdout.includes("<svg");
  return { svg: isDrawn ? picture.stdout : null, error: isDrawn ? null : reason(picture) || null };
}

module.exports = { programOf, auditOf };
