// The module says what the command says: the same findings at the same places, the same bounds and flows, for
// every program and configuration of `suite` and `examples`.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { build } from "esbuild";
import { root, site } from "./support.mjs";

const entail = process.env.ENTAIL ?? join(root, "target/debug/entail");
const folder = mkdtempSync(join(tmpdir(), "entail-equal-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** What only a run on a machine could miss: handlers, models, stores and settings. */
const OF_A_MACHINE = new Set(["E001", "E002", "E003", "E004"]);

/** Findings of flow and of types, which `entail check` has and `entail lint` has not. */
const OF_A_CHECK = /^(S1|T)\d+/;

/** The files of some folders, by their extension. */
function files(pattern) {
  return ["suite", "examples"].flatMap((top) =>
    readdirSync(join(root, top), { recursive: true })
      .map((path) => join(root, top, path))
      .filter((path) => pattern.test(path)),
  );
}

/** Copies each file into a folder of its own, so that none is read together with others. */
function alone(paths) {
  return paths.map((path, i) => {
    const name = `${i}/${basename(path)}`;
    mkdirSync(join(folder, String(i)), { recursive: true });
    const text = readFileSync(path);
    writeFileSync(join(folder, name), text);
    return { path, name, text: text.toString("utf8") };
  });
}

/** The lines that a command prints. It may fail: that is what findings do. */
function command(...args) {
  const options = { cwd: folder, encoding: "utf8", maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "pipe"] };
  let output;
  try {
    output = execFileSync(entail, args, options);
  } catch (error) {
    assert.equal(error.status, 1, error.stderr);
    output = error.stdout;
  }
  return output.split("\n").filter(Boolean);
}

/** The same as JSON. */
function lines(...args) {
  return command(...args).map((line) => JSON.parse(line));
}

/** Instances of the module: a text that needs more stack than there is ends one. */
async function answerer() {
  let entail = await module();
  const supplier = new Supplier(async (file) => readFileSync(join(site, file)));
  const tooDeep = [];
  return {
    tooDeep,
    check(path, name, text) {
      return this.ask("check", path, name, text);
    },
    async ask(query, path, name, text) {
      try {
        const { answer, without } = await supplier.answer(entail, JSON.stringify({ query, path: name, text }));
        assert.deepEqual(without, [], path);
        return JSON.parse(answer);
      } catch (error) {
        assert.match(String(error), /call stack|out of bounds/, path);
        tooDeep.push(path);
        entail = await module();
        return null;
      }
    },
  };
}

/** Sources of the page, as modules. */
async function source(name) {
  const outfile = join(folder, `${name}.mjs`);
  await build({ entryPoints: [join(root, `web/src/${name}.ts`)], outfile, format: "esm", bundle: true });
  return import(outfile);
}

const { Module } = await source("module");
const { Supplier } = await source("supply");

async function module() {
  return Module.of(await WebAssembly.compile(readFileSync(join(site, "entail.wasm"))));
}

/** What a finding says, without how a page counts its places and fixes that are only shown. */
function shown({ code, level, message, line, column, endLine, endColumn, fix }) {
  const change = fix && fix.applicability !== "display-only" && [fix.line, fix.column, fix.endLine, fix.endColumn, fix.replacement];
  return JSON.stringify([code, level, message, line, column, endLine, endColumn, change || null]);
}

function sorted(findings) {
  return findings.filter((f) => !OF_A_MACHINE.has(f.code)).map(shown).sort();
}

test("programs have the findings, bounds, types and flows that `entail check` says", async () => {
  const own = (path) => !/^\s*(use\s|import\s)/m.test(readFileSync(path, "utf8"));
  const programs = alone(files(/\.(agent|lam)$/).filter(own));
  const options = ["--show", "types", "--show", "effects", "--show", "cost", "--show", "flow"];
  const said = lines("check", "--verbose", "--format", "json", ...options, ...programs.map((p) => p.name));
  const entail = await answerer();
  let entries = 0;
  for (const { path, name, text } of programs) {
    const of = said.filter((line) => line.path === name);
    const answer = await entail.check(path, name, text);
    if (!answer) continue;
    assert.equal(answer.error, undefined, path);
    assert.deepEqual(sorted(answer.findings), sorted(of.filter((line) => line.code)), path);
    const known = of.filter((line) => line.entry);
    assert.deepEqual(answer.entries.map((e) => e.entry), known.map((e) => e.entry), path);
    for (const [i, { host, unknownTools, lacking, ...want }] of known.entries()) {
      const { isDefault, lines, term, costPath, ...got } = answer.entries[i];
      // A browser has less stack than the command, and then says that it has not followed a call.
      if (JSON.stringify(got).includes("calls are nested deeper here than the analysis follows them")) {
        entail.tooDeep.push(path);
        continue;
      }
      assert.deepEqual(got, want, path);
      entries++;
    }
  }
  assert.ok(entail.tooDeep.length <= 3, entail.tooDeep.join());
  console.log(`${programs.length} programs with ${entries} entry points are equal`);
  assert.ok(programs.length > 150 && entries > 150);
});

test("configurations and modules of Python have the findings that `entail lint` says", async () => {
  const configurations = alone(files(/\.(ya?ml|json|py)$/));
  const said = lines("lint", "--no-cache", "--format", "json", ...configurations.map((c) => c.name));
  const entail = await answerer();
  let findings = 0;
  for (const { path, name, text } of configurations) {
    const answer = await entail.check(path, name, text);
    if (!answer) continue;
    assert.equal(answer.error, undefined, path);
    const of = sorted(said.filter((line) => line.path === name));
    // The page says of a configuration what `entail check` says, too.
    assert.deepEqual(sorted(answer.findings.filter((f) => !OF_A_CHECK.test(f.code))), of, path);
    findings += of.length;
  }
  assert.ok(entail.tooDeep.length <= 3, entail.tooDeep.join());
  console.log(`${configurations.length} files with ${findings} findings are equal`);
  assert.ok(configurations.length > 500 && findings > 300);
});

test("configurations and modules of Python have the attack paths that `entail audit` says", async () => {
  const entail = await answerer();
  const audited = [];
  for (const given of alone(files(/\.(ya?ml|json|py)$/))) {
    const answer = await entail.ask("audit", given.path, given.name, given.text);
    if (answer?.attacks) audited.push({ ...given, ...answer.attacks });
  }
  const said = lines("audit", "--verbose", "--format", "json", ...audited.map((a) => a.name));
  let paths = 0;
  for (const { path, name, findings, svg, error } of audited) {
    const of = said.filter((line) => line.path === name && line.code);
    assert.deepEqual(findings.map(shown).sort(), of.map(shown).sort(), path);
    assert.ok(svg || error, path);
    paths += of.filter((line) => line.code !== "S304").length;
  }
  console.log(`${audited.length} files with ${paths} findings about attack paths are equal`);
  assert.ok(audited.length > 500 && paths > 30);
});

test("runs on scripts have the traces that the command writes", async () => {
  const input = { "triage.agent": "I was charged twice.", "invoice.agent": "Pay MALLORY.", "runbook.agent": "checkout answers 502", "quality.agent": "Bees is insects." };
  const scripts = files(/\.script\.json$/).map((script) => {
    const beside = script.replace(".script.json", "");
    return { script, program: [`${beside}.agent`, `${beside}.lam`].find(existsSync) };
  });
  const entail = await module();
  let requests = 0;
  let runs = 0;
  for (const { script, program } of scripts) {
    if (!program || /^\s*use\s/m.test(readFileSync(program, "utf8"))) continue;
    const [{ name, text }] = alone([program]);
    const given = input[basename(program)];
    if (program.endsWith(".agent") && given === undefined) continue;
    const file = join(folder, "trace.jsonl");
    const answers = readFileSync(script, "utf8");
    const options = ["--run-refused", "--explain-flow", "--script", script, "--trace", file, name];
    command("--quiet", program.endsWith(".lam") ? "eval" : "run", ...options, ...(given === undefined ? [] : [given]));
    const want = readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
    const entry = want[0].entry;
    const question = { query: "run", path: name, text, entry, input: given ?? null, script: answers, now: 0 };
    const got = JSON.parse(entail.answer(JSON.stringify(question)));
    assert.equal(got.error, undefined, program);
    assert.deepEqual(withoutTime(got.trace), withoutTime(want), program);
    requests += want.filter((line) => line.event === "request").length;
    runs++;
  }
  console.log(`${runs} runs with ${requests} requests are equal`);
  assert.ok(runs >= 8 && requests > 20);
});

/** A trace without what clocks say. */
function withoutTime(trace) {
  const times = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g;
  return JSON.parse(JSON.stringify(trace).replace(times, "TIME"));
}
