// Puts the functions of a module into the order in which they compress best: shrink(MODULE.wasm, OUT.wasm).
//
// The copies that the compiler makes of one generic function are alike, and far apart. Compression looks back
// 32 KB only, so copies are put side by side: by their names, then by their sizes. What several functions have in
// common word for word, nobody uses or can be said in fewer instructions is taken out before.
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const HEADER = 8;
const [CUSTOM, IMPORT, CODE] = [0, 2, 10];

/** Reads unsigned numbers of variable length. */
class Reader {
  constructor(bytes, at = 0) {
    Object.assign(this, { bytes, at });
  }

  number() {
    let [value, factor] = [0, 1];
    for (;;) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
  }

  text() {
    const length = this.number();
    this.at += length;
    return this.bytes.toString("utf8", this.at - length, this.at);
  }
}

function encoded(value) {
  const out = [];
  for (; value >= 128; value = Math.floor(value / 128)) out.push((value & 127) | 128);
  return Buffer.from([...out, value]);
}

function sections(bytes) {
  const reader = new Reader(bytes, HEADER);
  const found = [];
  while (reader.at < bytes.length) {
    const start = reader.at;
    const id = bytes[reader.at++];
    const length = reader.number();
    found.push({ id, start, from: reader.at, to: reader.at + length });
    reader.at += length;
  }
  return found;
}

/** The names of functions, by their indices. */
function namesOf(bytes, all) {
  const names = new Map();
  for (const { from, to } of all.filter(({ id }) => id === CUSTOM)) {
    const reader = new Reader(bytes, from);
    if (reader.text() !== "name") continue;
    while (reader.at < to) {
      const kind = bytes[reader.at++];
      const end = reader.number() + reader.at;
      if (kind === 1) {
        for (let left = reader.number(); left > 0; left--) {
          const index = reader.number();
          names.set(index, reader.text());
        }
      }
      reader.at = end;
    }
  }
  return names;
}

/** A section of names. */
function naming(names) {
  const text = (name) => Buffer.concat([encoded(Buffer.byteLength(name)), Buffer.from(name)]);
  const entries = names.map(([index, name]) => Buffer.concat([encoded(index), text(name)]));
  const functions = Buffer.concat([encoded(names.length), ...entries]);
  const payload = Buffer.concat([text("name"), Buffer.from([1]), encoded(functions.length), functions]);
  return Buffer.concat([Buffer.from([CUSTOM]), encoded(payload.length), payload]);
}

export function shrink(from, to) {
  const bytes = readFileSync(from);
  const all = sections(bytes);
  if (all.some(({ id }) => id === IMPORT)) throw new Error(`${from} has imports, which would shift its functions`);
  const names = namesOf(bytes, all);
  const code = all.find(({ id }) => id === CODE);
  if (!code || names.size === 0) throw new Error(`${from} has no names: build it with the profile \`web\``);
  const reader = new Reader(bytes, code.from);
  const functions = Array.from({ length: reader.number() }, (_, index) => {
    const size = reader.number();
    reader.at += size;
    // Copies differ in the hash behind their names.
    return { index, size, name: (names.get(index) ?? "").replace(/17h[0-9a-f]{16}E$/, "") };
  });
  const alike = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.size - b.size || a.index - b.index);
  const order = functions.toSorted(alike).map(({ index }, place) => [index, String(place).padStart(7, "0")]);
  const kept = all.filter(({ id }) => id !== CUSTOM).map(({ start, to }) => bytes.subarray(start, to));
  const named = `${to}.named`;
  writeFileSync(named, Buffer.concat([bytes.subarray(0, HEADER), ...kept, naming(order.sort(([a], [b]) => a - b))]));
  const binaryen = dirname(createRequire(import.meta.url).resolve("binaryen/package.json"));
  const smaller = ["--duplicate-function-elimination", "--remove-unused-module-elements", "--vacuum", "--optimize-instructions", "--reorder-locals"];
  const passes = ["--all-features", ...smaller, "--reorder-functions-by-name", "--strip-debug", "--strip-producers"];
  execFileSync(process.execPath, [join(binaryen, "bin/wasm-opt"), ...passes, named, "-o", to], { stdio: "inherit" });
  rmSync(named);
}
