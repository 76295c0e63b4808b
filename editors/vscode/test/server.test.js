// Starts the language server as the extension does, and checks that it finds what is wrong and repairs it.
// The command is `$ENTAIL`, or `entail`.
"use strict";

const { spawn } = require("node:child_process");
const assert = require("node:assert");
const path = require("node:path");
const lenses = require("../run.js");

const manifest = require(path.join(__dirname, "..", "package.json"));
for (const grammar of manifest.contributes.grammars) {
  const read = require(path.join(__dirname, "..", grammar.path));
  assert.strictEqual(read.scopeName, grammar.scopeName);
  const patterns = [...read.patterns, ...Object.values(read.repository || {})];
  for (const pattern of patterns.filter((p) => p.match)) {
    new RegExp(pattern.match, "u".repeat(0));
  }
}

const server = spawn(process.env.ENTAIL || manifest.contributes.configuration.properties["entail.path"].default, ["lsp"]);
server.on("error", (error) => {
  console.error(`the server does not start: ${error.message}`);
  process.exit(1);
});

let buffer = Buffer.alloc(0);
const waiting = [];
server.stdout.on("data", (data) => {
  buffer = Buffer.concat([buffer, data]);
  for (;;) {
    const end = buffer.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/Content-Length: (\d+)/i.exec(buffer.toString("utf8", 0, end))[1]);
    if (buffer.length < end + 4 + length) return;
    const message = JSON.parse(buffer.toString("utf8", end + 4, end + 4 + length));
    buffer = buffer.subarray(end + 4 + length);
    const at = waiting.findIndex((w) => w.wants(message));
    if (at >= 0) waiting.splice(at, 1)[0].resolve(message);
  }
});

function send(message) {
  const text = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
  server.stdin.write(`Content-Length: ${text.length}\r\n\r\n`);
  server.stdin.write(text);
}
const next = (wants) => new Promise((resolve) => waiting.push({ wants, resolve }));
async function ask(id, method, params) {
  const answer = next((m) => m.id === id);
  send({ id, method, params });
  return (await answer).result;
}

async function main() {
  const { capabilities } = await ask(1, "initialize", { capabilities: {}, initializationOptions: { commands: true } });
  assert.strictEqual(capabilities.renameProvider.prepareProvider, true);
  send({ method: "initialized", params: {} });
  const uri = "file:///nowhere/p.agent";
  const found = next((m) => m.method === "textDocument/publishDiagnostics");
  const text = 'agent writer { tools: [] }\ntask t() -> String by agent {}\npipeline p() -> String { let x = t() by writr; return x; }\n';
  send({ method: "textDocument/didOpen", params: { textDocument: { uri, languageId: "entail-agent", version: 1, text } } });
  const { diagnostics } = (await found).params;
  assert.deepStrictEqual(diagnostics.map((d) => d.code), ["A033"]);
  const actions = await ask(2, "textDocument/codeAction", {
    textDocument: { uri }, range: diagnostics[0].range, context: { diagnostics },
  });
  assert.strictEqual(actions[0].edit.changes[uri][0].newText, "writer");
  // Each lens has a command of the extension, and its arguments are those of the command line.
  const commands = new Map();
  const vscode = { commands: { registerCommand: (name, run) => commands.set(name, run) } };
  lenses.register(vscode, { subscriptions: [] });
  commands.set("entail.showProgram", () => {});
  const above = await ask(6, "textDocument/codeLens", { textDocument: { uri } });
  assert.ok(above.length >= 1 && above.every((lens) => commands.has(lens.command.command)), JSON.stringify(above));
  assert.deepStrictEqual(lenses.runArguments("p.agent", "p", "-x"), ["run", "p.agent", "--pipeline", "p", "--", "-x"]);
  assert.deepStrictEqual(lenses.runArguments("p.agent", "p", null), ["run", "p.agent", "--pipeline", "p"]);
  assert.deepStrictEqual(lenses.testArguments("p.agent", "-a b"), ["test", "p.agent", "--filter=-a b"]);
  // A configuration, the module that makes its agent, and a name that leads from one to the other.
  const open = (file, languageId, text) => {
    const published = next((m) => m.method === "textDocument/publishDiagnostics" && m.params.uri === file);
    send({ method: "textDocument/didOpen", params: { textDocument: { uri: file, languageId, version: 1, text } } });
    return published;
  };
  const agents = "file:///nowhere/config/agents.yaml";
  const crew = "file:///nowhere/crew.py";
  await open(agents, "yaml", "writer:\n  role: r\n  goal: g\n  backstory: b\n  llm: m\n  tools: [look]\n");
  const line = "a = Agent(config=agents_config['writer'])";
  await open(crew, "python", `from crewai import Agent\n${line}\n`);
  const place = await ask(3, "textDocument/definition", {
    textDocument: { uri: crew }, position: { line: 1, character: line.indexOf("writer") + 1 },
  });
  assert.deepStrictEqual([place.uri, place.range.start.line], [agents, 0]);
  const hover = await ask(4, "textDocument/hover", { textDocument: { uri: agents }, position: { line: 5, character: 3 } });
  assert.match(hover.contents.value, /fix\[n\]/);
  await ask(5, "shutdown", null);
  const ended = new Promise((resolve) => server.on("exit", resolve));
  send({ method: "exit" });
  assert.strictEqual(await ended, 0);
  console.log("the server finds, repairs, and leads from file to file");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
