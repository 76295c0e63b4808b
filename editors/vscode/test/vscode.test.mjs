// The panels in VS Code itself: its server, with this extension, in a headless Chromium, on runs of the real
// command. `VSCODE_SERVER` is the folder of the server (`.ci/nightly/editors` installs one), `ENTAIL` the command.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browser, root } from "../../../web/test/support.mjs";
import { HOSTILE, PASSPHRASE, command, end, entail, folder, ran, runs, until } from "../../../web/test/ui-support.mjs";

const vscode = process.env.VSCODE_SERVER;
const skip = vscode ? false : "VSCODE_SERVER is not set";
const extension = join(root, "editors/vscode");
const state = mkdtempSync(join(tmpdir(), "entail-vscode-"));
const extensions = join(state, "extensions");

let chromium;
before(async () => {
  if (skip) return;
  chromium = await browser();
  mkdirSync(extensions);
  cpSync(extension, join(extensions, "entail-lang.entail-lang-0.1.0"), { recursive: true, filter: (path) => !/\/(test|\.git)$/.test(path) });
});
after(async () => {
  await chromium?.close();
  await end();
  rmSync(state, { recursive: true, force: true });
});

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Opens a folder in the editor; anything that goes wrong in a panel is a fault. */
async function inEditor(dir, body, { theme = "Default Light Modern", width = 1280 } = {}) {
  const port = await freePort();
  const data = mkdtempSync(join(state, "data-"));
  mkdirSync(join(data, "Machine"));
  const settings = {
    "entail.path": entail,
    "entail.journal": "j",
    "workbench.colorTheme": theme,
    "workbench.startupEditor": "none",
    "telemetry.telemetryLevel": "off",
    "extensions.ignoreRecommendations": true,
    "files.simpleDialog.enable": true,
  };
  writeFileSync(join(data, "Machine/settings.json"), JSON.stringify(settings));
  const args = ["out/server-main.js", "--without-connection-token", "--accept-server-license-terms", "--host", "127.0.0.1"];
  const server = spawn(process.execPath, [...args, "--port", String(port), "--user-data-dir", data, "--extensions-dir", extensions], {
    cwd: vscode,
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, XDG_CONFIG_HOME: join(dir, "config"), EVE: "planted-5f3a9c01d2e84b76" },
  });
  await new Promise((resolve) => server.stdout.on("data", (data) => /agent started/.test(data) && resolve()));
  const context = await chromium.newContext({ viewport: { width, height: 800 } });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const faults = [];
  page.on("dialog", (dialog) => (faults.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on("console", (message) => /Content Security Policy|Refused to/.test(message.text()) && faults.push(message.text()));
  try {
    await page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(dir)}`);
    // Extensions run in folders that are trusted.
    await page.getByRole("button", { name: "Yes, I trust the authors" }).click();
    await page.getByText("pay.agent").first().dblclick();
    await page.locator(".view-lines").waitFor();
    await body(page);
    assert.deepEqual(faults, []);
  } catch (error) {
    await shot(page, `failed-${port}`);
    throw error;
  } finally {
    await context.close();
    server.kill();
  }
}

/** Runs a command of the palette. */
async function run(page, name) {
  await page.keyboard.press("F1");
  const input = page.locator(".quick-input-widget input");
  await input.fill(`>Entail: ${name}`);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: `Entail: ${name}` }).first().waitFor();
  await page.keyboard.press("Enter");
}

/** The newest panel that is visible. */
const panel = (page) => page.frameLocator("iframe.webview.ready >> visible=true").frameLocator("#active-frame");

async function shot(page, name) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  await page.screenshot({ path: join(process.env.SHOTS, `vscode-${name}.png`) });
}

test("a run is found, followed to its origins and to its place in the program", { skip }, async () => {
  const dir = folder({ policy: '[tools.pay]\neffect = "write"\narguments = "trusted"\n' });
  ran(dir);
  await inEditor(dir, async (page) => {
    await run(page, "Show Runs");
    const view = panel(page);
    await view.getByRole("link", { name: "pay.agent settle" }).waitFor();
    await shot(page, "runs");
    await view.getByRole("link", { name: "pay.agent settle" }).click();
    const step = view.locator(".step").nth(1);
    assert.match(await step.textContent(), /2\. Ask model scripted for recipient.*conversation ▲ untrusted/);
    await step.getByText("Where the labels come from").click();
    assert.match(await step.locator("details").textContent(), /the tool page answered/);
    assert.match(await view.locator(".finding.error").textContent(), /to allow it/);
    await view.getByText("Program and bound").click();
    await view.getByRole("img", { name: /The term of settle/ }).waitFor();
    await shot(page, "run");
    await step.locator("p").first().getByRole("button", { name: "pay.agent:" }).click();
    await page.locator(".tab.active", { hasText: "pay.agent" }).waitFor();
    await page.getByText(/Ln 4, Col 6/).waitFor();
  });
});

test("a call that waits is approved in a panel, and the status bar says how many wait", { skip }, async () => {
  const dir = folder({ page: HOSTILE, reply: HOSTILE });
  const id = ran(dir);
  await inEditor(dir, async (page) => {
    await run(page, "Show Approvals");
    const view = panel(page);
    const card = view.locator(".card");
    await card.waitFor();
    assert.ok((await card.textContent()).includes("<img src=x"));
    await page.locator(".statusbar-item", { hasText: "1 approval" }).waitFor();
    await card.getByLabel("Passphrase").fill("wrong");
    await card.getByRole("button", { name: "Approve" }).click();
    await card.getByText("the passphrase is wrong").waitFor();
    await card.getByLabel("Passphrase").fill(PASSPHRASE);
    await shot(page, "approvals-dark");
    await card.getByRole("button", { name: "Approve" }).click();
    await card.getByText("✔ Approved by alice").waitFor();
    await page.locator(".statusbar-item", { hasText: "approval" }).waitFor({ state: "hidden" });
    command(dir, ["run", "pay.agent", "--pipeline", "settle", "--script", "s.json", "--journal", "j", "--run-refused", "--resume", id]);
    assert.equal(runs(dir)[0].status, "done");
    // The page of the run is saved where the dialog of the editor says.
    await view.getByRole("link", { name: "Runs", exact: true }).click();
    await view.getByRole("link", { name: "pay.agent settle" }).click();
    await view.getByRole("link", { name: "Download as a page" }).click();
    await page.locator(".quick-input-widget input").waitFor();
    await page.keyboard.press("Enter");
    const saved = join(dir, `run-${id}.html`);
    await until(() => existsSync(saved));
    assert.match(readFileSync(saved, "utf8"), /"event":"request"/);
    assert.equal(await view.locator("main img[src=x], main script").count(), 0);
  }, { theme: "Default Dark Modern" });
});

test("the program of the editor is shown as a picture with its bounds, and again when it is saved", { skip }, async () => {
  const dir = folder();
  await inEditor(dir, async (page) => {
    await run(page, "Show Picture and Bounds of This File");
    const view = panel(page);
    await view.getByRole("img", { name: /The term of settle/ }).waitFor();
    assert.match(await view.getByRole("table").first().textContent(), /Model calls1/);
    assert.match(await view.locator(".path").first().textContent(), /the tool page/);
    await shot(page, "program");
    await view.locator(".site .place").first().click();
    await page.getByText(/Ln \d+, Col/).first().waitFor();
    await page.locator(".view-line").first().click({ position: { x: 20, y: 5 } });
    await page.keyboard.press("Control+End");
    await page.keyboard.type("pipeline fresh(x: String) -> String { return x; }");
    await page.keyboard.press("Control+s");
    await view.getByRole("heading", { name: "fresh" }).waitFor();
  });
});

test("attack paths of the workspace are shown as a picture", { skip }, async () => {
  const dir = folder();
  cpSync(join(root, "suite/audit/cases/v10_page_to_payment"), join(dir, "project"), { recursive: true });
  await inEditor(dir, async (page) => {
    await run(page, "Show Attack Paths of This Workspace");
    const view = panel(page);
    await view.getByRole("img", { name: /Attack paths/ }).waitFor();
    await shot(page, "attack-paths");
  });
});

test("without a journal a panel says why there is nothing, and what to do", { skip }, async () => {
  const dir = folder();
  await inEditor(dir, async (page) => {
    await run(page, "Show Runs");
    const view = panel(page);
    await view.getByRole("alert").waitFor();
    assert.match(await view.getByRole("alert").textContent(), /journal|`?j`?/);
    ran(dir);
    await view.getByRole("link", { name: "Runs", exact: true }).click();
    await view.getByRole("link", { name: "pay.agent settle" }).waitFor();
  });
});
