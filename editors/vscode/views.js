// The panels with runs, approvals, the program of the editor and attack paths. What they show is made by
// `web/src`; here are the messages that they send (`web/src/vscode/messages.ts`), and the commands.
"use strict";

const crypto = require("node:crypto");
const path = require("node:path");
const { UiServer, StartError } = require("./ui-server.js");
const { auditOf, programOf } = require("./program.js");

/** Requests that panels may make of `entail ui`. */
const ASKED = /^\/api\/(about|runs|approvals)([/?][^\s#]*)?$/;
const FOLLOWED = /^\/api\/(runs\/[0-9a-f]+\/)?events$/;
const SAVED = /^\/api\/runs\/([0-9a-f]+)\/page(\?for=[^\s#]*)?$/;

/** The page of a panel. It loads its script and its style, and nothing else. */
function html({ script, style, source, nonce }) {
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src ${source}; img-src data:; base-uri 'none'; form-action 'none'`;
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${policy}" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Entail</title>
    <link rel="stylesheet" href="${style}" />
  </head>
  <body class="document">
    <header id="views" hidden>
      <nav aria-label="Views"><a href="#/runs">Runs</a> <a href="#/approvals">Approvals<span id="waiting"></span></a></nav>
      <div class="controls"><span class="muted" id="journal"></span></div>
    </header>
    <main id="view" tabindex="-1"></main>
    <script nonce="${nonce}" src="${script}"></script>
  </body>
</html>`;
}

/** An answer to a panel in the form of a refusal of `entail ui`. */
function refusal(status, message, help = null) {
  return { status, text: JSON.stringify({ error: { message, help } }) };
}

/** Registers the commands. `vscode` is the interface of the editor. */
function register(vscode, context) {
  const views = new Views(vscode, context.extensionUri);
  const command = (name, run) => context.subscriptions.push(vscode.commands.registerCommand(name, run));
  command("entail.showRuns", () => views.show("runs", "#/runs"));
  command("entail.showApprovals", () => views.show("runs", "#/approvals"));
  command("entail.showProgram", () => views.showProgram());
  command("entail.showAttackPaths", () => views.show("audit", "#/audit"));
  context.subscriptions.push(views);
  context.subscriptions.push(vscode.workspace.onDidSaveTextDocument((document) => views.saved(document)));
  return views;
}

class Views {
  #vscode;
  #root;
  /** The open panels by their kind. */
  #panels = new Map();
  #server = null;
  /** The file that the panel with the program shows. */
  #file = null;
  #status;
  #stopCounting = null;

  constructor(vscode, root) {
    this.#vscode = vscode;
    this.#root = root;
    this.#status = vscode.window.createStatusBarItem("entail.approvals", vscode.StatusBarAlignment.Left);
    this.#status.name = "Entail approvals";
    this.#status.command = "entail.showApprovals";
  }

  dispose() {
    this.#stopCounting?.();
    for (const panel of this.#panels.values()) panel.dispose();
    void this.#server?.then((server) => server.stop(), () => {});
    this.#status.dispose();
  }

  /** Opens a panel, or shows what is named in the one that is open. */
  show(kind, hash) {
    const open = this.#panels.get(kind);
    if (open) {
      open.show(hash);
      return open;
    }
    const panel = new Panel(this.#vscode, this.#root, this, kind, hash, () => this.#panels.delete(kind));
    this.#panels.set(kind, panel);
    return panel;
  }

  /** Shows the program or configuration of the active editor. */
  showProgram() {
    const document = this.#vscode.window.activeTextEditor?.document;
    if (!document || document.uri.scheme !== "file") {
      void this.#vscode.window.showInformationMessage("Open a program or a configuration first.");
      return undefined;
    }
    this.#file = document.uri.fsPath;
    return this.show("program", "#/program");
  }

  /** A file was saved. */
  saved(document) {
    if (document.uri.fsPath === this.#file) this.#panels.get("program")?.show("#/program", false);
  }

  /** Answers a request of a panel. */
  async ask(path, method, body) {
    if (path === "/editor/program") return this.#ofEditor(() => this.#program());
    if (path === "/editor/audit") return this.#ofEditor(() => auditOf(this.#command(), this.#folder()));
    if (!ASKED.test(path) || !["GET", "POST"].includes(method)) return refusal(404, "unknown path");
    return (await this.#running()).ask(path, method, body);
  }

  /** Follows a path for a panel; returns what ends it. */
  async follow(path, changed, state) {
    if (!FOLLOWED.test(path)) return () => {};
    return (await this.#running()).follow(path, changed, state);
  }

  /** Opens a file of the workspace. Journals name files, and not every one of them is to be opened. */
  async open(name, line, column) {
    const { Uri, Position, Range, ViewColumn, window, workspace } = this.#vscode;
    const uri = Uri.file(path.resolve(this.#folder(), name));
    if (!workspace.getWorkspaceFolder(uri) && uri.fsPath !== this.#file) {
      return void window.showWarningMessage(`${name} is not in this workspace.`);
    }
    const at = new Position(Math.max(line - 1, 0), Math.max(column - 1, 0));
    try {
      await window.showTextDocument(uri, { selection: new Range(at, at), viewColumn: ViewColumn.One });
    } catch (error) {
      void window.showWarningMessage(`${name} can't be opened: ${error.message}`);
    }
  }

  /** Saves the page of a run. */
  async save(path) {
    const [, run] = SAVED.exec(path) ?? [];
    if (!run) return;
    const { Uri, window, workspace } = this.#vscode;
    try {
      const bytes = await (await this.#running()).bytes(path);
      const defaultUri = Uri.joinPath(Uri.file(this.#folder()), `run-${run}.html`);
      const to = await window.showSaveDialog({ defaultUri, filters: { HTML: ["html"] } });
      if (to) await workspace.fs.writeFile(to, bytes);
    } catch (error) {
      void window.showErrorMessage(`The page can't be saved: ${error.message}`);
    }
  }

  async #program() {
    const file = this.#file;
    const { workspace } = this.#vscode;
    const name = workspace.asRelativePath(file);
    return { name, path: file, ...(await programOf(this.#command(), file, this.#folder())) };
  }

  async #ofEditor(make) {
    try {
      return { status: 200, text: JSON.stringify(await make()) };
    } catch (error) {
      return refusal(500, error.message, "set `entail.path`");
    }
  }

  #setting(name, standard) {
    return this.#vscode.workspace.getConfiguration("entail").get(name, standard);
  }

  #command() {
    return this.#setting("path", "entail");
  }

  #folder() {
    const { workspace, window } = this.#vscode;
    const active = window.activeTextEditor && workspace.getWorkspaceFolder(window.activeTextEditor.document.uri);
    return (active ?? workspace.workspaceFolders?.[0])?.uri.fsPath ?? process.cwd();
  }

  /** The server, started when it is first needed and again after it has ended. */
  #running() {
    this.#server ??= this.#start().catch((error) => {
      this.#server = null;
      throw error;
    });
    return this.#server;
  }

  async #start() {
    const server = await UiServer.start({ command: this.#command(), cwd: this.#folder(), journal: this.#setting("journal", "") });
    server.onEnd(() => {
      this.#server = null;
      this.#stopCounting?.();
      this.#status.hide();
    });
    this.#stopCounting = server.follow("/api/events", () => void this.#count(server).catch(() => {}));
    return server;
  }

  /** Says in the status bar how many calls wait. */
  async #count(server) {
    const { text } = await server.ask("/api/approvals");
    const waiting = JSON.parse(text).approvals.length;
    this.#status.text = `$(question) ${waiting} ${waiting === 1 ? "approval" : "approvals"}`;
    this.#status.tooltip = "Calls of agents that wait for approval";
    if (waiting > 0) this.#status.show();
    else this.#status.hide();
  }
}

const TITLES = { runs: "Entail: runs", program: "Entail: program", audit: "Entail: attack paths" };

class Panel {
  #vscode;
  #panel;
  #views;
  #hash;
  #followed = new Map();

  constructor(vscode, root, views, kind, hash, closed) {
    this.#vscode = vscode;
    this.#views = views;
    this.#hash = hash;
    const media = vscode.Uri.joinPath(root, "media");
    const column = kind === "runs" ? vscode.ViewColumn.Active : vscode.ViewColumn.Beside;
    // A form that is half filled in stays while the panel is hidden.
    const options = { enableScripts: true, localResourceRoots: [media], retainContextWhenHidden: true };
    this.#panel = vscode.window.createWebviewPanel(`entail.${kind}`, TITLES[kind], { viewColumn: column, preserveFocus: kind !== "runs" }, options);
    const { webview } = this.#panel;
    webview.onDidReceiveMessage((message) => this.#received(message));
    this.#panel.onDidDispose(() => {
      for (const stop of this.#followed.values()) stop.then((stop) => stop(), () => {});
      closed();
    });
    const uri = (file) => webview.asWebviewUri(vscode.Uri.joinPath(media, file)).toString();
    const nonce = crypto.randomBytes(16).toString("base64url");
    webview.html = html({ script: uri("panel.js"), style: uri("panel.css"), source: webview.cspSource, nonce });
  }

  dispose() {
    this.#panel.dispose();
  }

  show(hash, reveals = true) {
    this.#hash = hash;
    if (reveals) this.#panel.reveal();
    this.#post({ kind: "show", hash });
  }

  #post(message) {
    void this.#panel.webview.postMessage(message);
  }

  async #received(message) {
    switch (message.kind) {
      case "ready":
        return this.#post({ kind: "show", hash: this.#hash });
      case "shown":
        this.#hash = message.hash;
        return;
      case "ask": {
        const answer = await this.#views.ask(message.path, message.method, message.body).catch(unreachable);
        return this.#post({ kind: "answer", id: message.id, ...answer });
      }
      case "follow": {
        const { id, path } = message;
        const changed = () => this.#post({ kind: "changed", id });
        const state = (isConnected) => this.#post({ kind: "connected", id, isConnected });
        const following = this.#views.follow(path, changed, state);
        following.catch(() => state(false));
        this.#followed.set(id, following);
        return;
      }
      case "unfollow":
        this.#followed.get(message.id)?.then((stop) => stop(), () => {});
        this.#followed.delete(message.id);
        return;
      case "open":
        return this.#views.open(message.path, message.line, message.column);
      case "save":
        return this.#views.save(message.path);
      default:
    }
  }
}

/** The reason why `entail ui` gave no answer. */
function unreachable(error) {
  return refusal(502, error.message, error instanceof StartError ? error.help : "the panel starts `entail ui` again when it is opened again");
}

module.exports = { register, html };
