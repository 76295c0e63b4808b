// `entail ui` as a child process: the extension is the browser that has its link. Knows nothing of VS Code.
"use strict";

const { spawn } = require("node:child_process");
const http = require("node:http");
const { createInterface } = require("node:readline");

/** Time after which a lost connection is tried again. */
const AGAIN_MS = 1000;

/** Time within which the server has to print its link. */
const START_MS = 20_000;

/** An error with the remedy that the command names. */
class StartError extends Error {
  constructor(message, help) {
    super(message);
    this.help = help ?? null;
  }
}

class UiServer {
  #child;
  #origin;
  #cookie = "";
  #stops = new Set();
  #onEnd = [];

  constructor(child, origin) {
    this.#child = child;
    this.#origin = origin;
    child.once("exit", () => {
      this.#child = null;
      for (const stop of [...this.#stops]) stop();
      for (const listener of this.#onEnd) listener();
    });
  }

  /** Starts the command in a folder, and takes its session. Fails if it does not start, with its reason. */
  static async start({ command, cwd, journal, env = process.env }) {
    const args = ["ui", "--format", "json", ...(journal ? ["--journal", journal] : [])];
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "ignore"] });
    let first;
    try {
      first = await firstLine(child, command);
    } catch (error) {
      child.kill();
      throw error;
    }
    const { link, error } = JSON.parse(first);
    if (!link) throw new StartError(error?.message ?? "`entail ui` does not start", error?.help);
    const url = new URL(link);
    const server = new UiServer(child, url.origin);
    const token = url.hash.replace(/^#token=/, "");
    const { status, headers } = await server.#request("/api/session", "POST", JSON.stringify({ token }));
    const [cookie] = headers["set-cookie"] ?? [];
    if (status !== 204 || !cookie) {
      server.stop();
      throw new StartError(`\`entail ui\` gives no session (status ${status})`);
    }
    server.#cookie = cookie.split(";")[0];
    return server;
  }

  get isRunning() {
    return this.#child !== null;
  }

  /** Calls back when the process has ended. */
  onEnd(listener) {
    this.#onEnd.push(listener);
  }

  /** Sends a request; gives the status and the text of the answer. */
  async ask(path, method = "GET", body = undefined) {
    const { status, bytes } = await this.#request(path, method, body);
    return { status, text: bytes.toString("utf8") };
  }

  /** The bytes that stand at a path. */
  async bytes(path) {
    const { status, bytes } = await this.#request(path, "GET");
    if (status !== 200) throw new Error(JSON.parse(bytes.toString("utf8")).error?.message ?? `status ${status}`);
    return bytes;
  }

  /** Calls back for each event `changed` of a path. A lost connection is made again. Returns what ends it. */
  follow(path, changed, state = () => {}) {
    let request = null;
    let timer = null;
    let last = null;
    let isStopped = false;
    const again = () => {
      if (isStopped || timer) return;
      state(false);
      timer = setTimeout(connect, AGAIN_MS);
    };
    const connect = () => {
      timer = null;
      request = http.request(this.#options(path, "GET", last ? { "last-event-id": last } : {}), (response) => {
        if (response.statusCode !== 200) {
          response.resume();
          return again();
        }
        state(true);
        let event = "";
        createInterface({ input: response }).on("line", (line) => {
          if (line.startsWith("event:")) event = line.slice("event:".length).trim();
          else if (line.startsWith("id:")) last = line.slice("id:".length).trim();
          else if (line === "" && event === "changed") changed();
          if (line === "") event = "";
        });
        response.on("close", again);
      });
      request.on("error", again);
      request.end();
    };
    const stop = () => {
      isStopped = true;
      clearTimeout(timer);
      request?.destroy();
      this.#stops.delete(stop);
    };
    this.#stops.add(stop);
    connect();
    return stop;
  }

  /** Ends the process. */
  stop() {
    this.#child?.kill();
  }

  #options(path, method, more = {}) {
    const headers = { origin: this.#origin, cookie: this.#cookie, ...more };
    return { ...urlOptions(this.#origin), path, method, headers };
  }

  #request(path, method, body) {
    return new Promise((resolve, reject) => {
      const more = body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
      const request = http.request(this.#options(path, method, more), (response) => {
        const chunks = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, bytes: Buffer.concat(chunks) }));
      });
      request.on("error", reject);
      request.end(body);
    });
  }
}

function urlOptions(origin) {
  const { hostname, port } = new URL(origin);
  return { hostname, port };
}

/** The first line that a process prints. */
function firstLine(child, command) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new StartError(`\`${command} ui\` prints no link`)), START_MS);
    const done = (finish, value) => {
      clearTimeout(timer);
      finish(value);
    };
    child.once("error", (error) => done(reject, new StartError(`\`${command} ui\` does not start: ${error.message}`, "set `entail.path`")));
    const lines = createInterface({ input: child.stdout });
    lines.once("line", (line) => done(resolve, line));
    lines.once("close", () => done(reject, new StartError(`\`${command} ui\` ended without a link`, "is `entail` of the version of this extension?")));
  });
}

module.exports = { UiServer, StartError };
