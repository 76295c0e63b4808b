// Puts the functions of a module into the order in which they compress best: shrink(MODULE.wasm, OUT.wasm).
//
// The copies that the compiler makes of one generic function are alike, and far apart. Compression looks back
// 32 KB only, so each function is put behind those that it has most in common with. What several functions have in
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

/** Bytes of a piece that two functions have in common or not. */
const PIECE = 6;

/** Most pieces by which a function is known: those with the lowest hashes. */
const MAX_PIECES = 200;

/** Functions behind which the next one is put. */
const RECENT = 4;

/** Most functions with a piece that says which are alike. */
const MAX_COMMON = 400;

/** Hashes of pieces of a function. */
function piecesOf(body) {
  const all = new Set();
  for (let at = 0; at + PIECE <= body.length; at++) {
    let hash = 2166136261;
    for (let i = at; i < at + PIECE; i++) hash = Math.imul(hash ^ body[i], 16777619) >>> 0;
    all.add((hash ^ (hash >>> 15)) >>> 0);
  }
  return [...all].sort((a, b) => a - b).slice(0, MAX_PIECES);
}

/** Puts functions, each with its `body`, behind those that they are most alike. Otherwise they keep their order. */
function chained(functions) {
  const pieces = functions.map(({ body }) => piecesOf(body));
  const having = new Map();
  pieces.forEach((of, i) => of.forEach((piece) => having.get(piece)?.push(i) ?? having.set(piece, [i])));
  const isPlaced = new Uint8Array(functions.length);
  const order = [];
  let recent = [];
  let first = 0;
  for (let last = 0; last < functions.length; ) {
    isPlaced[last] = 1;
    order.push(functions[last]);
    recent = [...recent.slice(1 - RECENT), last];
    const common = new Map();
    for (const before of recent)
      for (const piece of pieces[before]) {
        const alike = having.get(piece);
        if (alike.length > MAX_COMMON) continue;
        for (const other of alike) if (!isPlaced[other]) common.set(other, (common.get(other) ?? 0) + (before === last ? 2 : 1));
      }
    let [next, most] = [-1, 2];
    for (const [other, count] of common) {
      const share = count / Math.sqrt(pieces[other].length);
      if (share > most || (share === most && Math.abs(other - last) < Math.abs(next - last))) [next, most] = [other, share];
    }
    if (next < 0) {
      recent = [];
      while (isPlaced[first]) first++;
      next = first;
    }
    last = next;
  }
  return order;
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
    const body = bytes.subarray(reader.at, reader.at + size);
    reader.at += size;
    // Copies differ in the hash behind their names.
    return { index, size, body, name: (names.get(index) ?? "").replace(/17h[0-9a-f]{16}E$/, "") };
  });
  const alike = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.size - b.size || a.index - b.index);
  const order = chained(functions.toSorted(alike)).map(({ index }, place) => [index, String(place).padStart(7, "0")]);
  const kept = all.filter(({ id }) => id !== CUSTOM).map(({ start, to }) => bytes.subarray(start, to));
  const named = `${to}.named`;
  writeFileSync(named, Buffer.concat([bytes.subarray(0, HEADER), ...kept, naming(order.sort(([a], [b]) => a - b))]));
  const binaryen = dirname(createRequire(import.meta.url).resolve("binaryen/package.json"));
  const flow = ["--code-folding", "--remove-unused-brs", "--merge-blocks"];
  const instructions = ["--vacuum", "--optimize-instructions", "--reorder-locals"];
  const smaller = ["--rse", ...flow, ...flow, "--rse", "--duplicate-function-elimination", "--remove-unused-module-elements", ...instructions];
  const passes = ["--all-features", ...smaller, "--reorder-functions-by-name", "--strip-debug", "--strip-producers"];
  execFileSync(process.execPath, [join(binaryen, "bin/wasm-opt"), ...passes, named, "-o", to], { stdio: "inherit" });
  rmSync(named);
}
