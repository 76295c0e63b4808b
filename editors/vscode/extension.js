// Starts `entail lsp` and connects the editor with it; registers the panels.
"use strict";

const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");
const lenses = require("./run.js");
const views = require("./views.js");

let client;

async function activate(context) {
  views.register(vscode, context);
  lenses.register(vscode, context);
  const settings = vscode.workspace.getConfiguration("entail");
  const run = { command: settings.get("path", "entail"), args: ["lsp"], transport: TransportKind.stdio };
  const languages = ["entail-agent", "entail-lam"];
  if (settings.get("configurations", true)) {
    languages.push("yaml", "json", "python");
  }
  const documentSelector = languages.map((language) => ({ scheme: "file", language }));
  // What the code around a configuration supplies is read from the disk, so the server is told when that changes.
  const fileEvents = vscode.workspace.createFileSystemWatcher("**/{*.{py,yaml,yml,json,agent,lock,toml},requirements.txt,.env}");
  // The commands of the lenses are those of this extension.
  const options = { documentSelector, synchronize: { fileEvents }, initializationOptions: { commands: true } };
  client = new LanguageClient("entail", "Entail", { run, debug: run }, options);
  context.subscriptions.push(fileEvents);
  context.subscriptions.push({ dispose: () => client && client.stop() });
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(
      `The language server \`${run.command} lsp\` does not start: ${error?.message ?? error}. Is \`entail.path\` right?`,
    );
  }
}

function deactivate() {
  return client ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
