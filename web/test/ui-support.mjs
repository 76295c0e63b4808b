// What the tests of `entail ui` share: folders with programs and approvers, the command, the page.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { browser, root } from "./support.mjs";

export const entail = process.env.ENTAIL ?? join(root, "target/debug/entail");
export const PASSPHRASE = "correct horse battery";
/** The token of a caller of a server. */
export const EVE = "planted-5f3a9c01d2e84b76";
export const HOSTILE = `"></script><img src=x onerror=alert(1)><script>alert(2)</script>'\`{{7*7}}`;

/** Says what a program does with a page that it reads. */
const PROGRAM = `tool page(url: String) -> String reads untrusted {}
tool pay(to: String) -> String writes {}
agent clerk { tools: [], prompt: "You extract." }
task recipient(text: String) -> String by agent { prompt "Who is to be paid? {text}" }
pipeline settle(url: String) -> String {
    let text = page(url);
    let to = run recipient with { text: text } by clerk;
    let receipt = run pay with { to: to };
    return receipt;
}
pipeline greet(name: String) -> String { let text = page(name); return text; }
`;
const ASKS = `[tools.pay]\neffect = "write"\narguments = "trusted"\napprove = "if-refused"\n`;
export const REFUSES = `[tools.pay]\neffect = "write"\narguments = "trusted"\n`;

const children = new Set();
const folders = [];
let chromium;

/** Starts the browser. */
export async function begin() {
  chromium = await browser();
}

/** Ends everything that was begun. */
export async function end() {
  await chromium?.close();
  for (const child of children) child.kill();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}

/** A folder with the program, its answers and an approver. */
export function folder({ policy = ASKS, key = true, page = "pay bob", reply = "bob" } = {}) {
  const dir = mkdtempSync(join(tmpdir(), "entail-ui-"));
  folders.push(dir);
  writeFileSync(join(dir, "pay.agent"), PROGRAM);
  writeFileSync(join(dir, "policy.toml"), policy);
  writeFileSync(join(dir, "s.json"), JSON.stringify([{ call: "page", result: page }, { purpose: "recipient", reply }, { call: "pay", result: `paid ${reply}` }]));
  writeFileSync(join(dir, "entail.toml"), 'policy = "policy.toml"\n');
  const made = command(dir, ["approve", "--new-key", "alice", "--passphrase-stdin"], PASSPHRASE).stdout;
  writeFileSync(join(dir, "entail.toml"), `policy = "policy.toml"\n${made}\n[callers.eve]\ntoken_env = "EVE"\nclearance = "public"\n`);
  if (!key) rmSync(join(dir, "config"), { recursive: true });
  return dir;
}

function environment(dir) {
  return { ...process.env, XDG_CONFIG_HOME: join(dir, "config"), EVE };
}

/** Runs the command; its status counts for nothing. */
export function command(dir, args, input = "") {
  try {
    return { status: 0, stdout: execFileSync(entail, args, { cwd: dir, env: environment(dir), input, encoding: "utf8", stdio: ["pipe", "pipe", "pipe"] }) };
  } catch (error) {
    return { status: error.status, stdout: String(error.stdout), stderr: String(error.stderr) };
  }
}

/** Runs the program into the journal until it waits or ends; gives the run. */
export function ran(dir, approvals = "leave") {
  command(dir, ["run", "pay.agent", "--pipeline", "settle", "--script", "s.json", "--journal", "j", "--run-refused", "--approvals", approvals, "u"]);
  return runs(dir)[0].run;
}

export function runs(dir) {
  const { stdout } = command(dir, ["runs", "list", "--journal", "j", "--format", "json"]);
  // Before the first run there is a journal without any.
  return stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** Begins a process of the command; gives it with its first line. */
export async function began(dir, args) {
  const child = spawn(entail, args, { cwd: dir, env: environment(dir), stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  return child;
}

/** Starts the page; gives the link. */
export async function ui(dir) {
  const child = await began(dir, ["ui", "--journal", "j", "--format", "json"]);
  const lines = createInterface({ input: child.stdout });
  const [line] = await Promise.race([
    new Promise((resolve) => lines.once("line", (line) => resolve([line]))),
    new Promise((_, reject) => child.stderr.once("data", (data) => reject(new Error(String(data))))),
  ]);
  return { child, link: JSON.parse(line).link };
}

/** Opens a link; anything that goes wrong in the page is a fault. */
export async function open(link, options = {}) {
  const context = await chromium.newContext(options);
  const page = await context.newPage();
  const faults = [];
  const origin = new URL(link).origin;
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && !/status of (401|403|404|409|422)/.test(message.text()) && faults.push(`console: ${message.text()}`));
  page.on("dialog", (dialog) => (faults.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on("request", (request) => !request.url().startsWith(origin) && !request.url().startsWith("data:") && faults.push(`request: ${request.url()}`));
  await page.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  await page.goto(link);
  return { page, context, faults };
}

/** Waits until the list of runs is shown. */
export const listed = (page) => page.waitForFunction(() => Number(document.documentElement.dataset.listed ?? 0) > 0);

/** Pictures of what is shown, wide and narrow, light and dark. */
export async function pictures(page, name) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  for (const colorScheme of ["light", "dark"]) {
    for (const [width, height] of [[1280, 800], [360, 740]]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height });
      await page.screenshot({ path: join(process.env.SHOTS, `${name}-${colorScheme}-${width}.png`), fullPage: true });
    }
  }
}

/** Waits until something holds, at most for a while. */
export async function until(what) {
  for (let i = 0; i < 300; i++) {
    if (what()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail("it does not come to that");
}
