// What the tests share: a static server, a browser, and the folder of the page.
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { deflateRawSync } from "node:zlib";
import { chromium } from "playwright-core";

export const root = new URL("../..", import.meta.url).pathname;
export const site = process.env.SITE ?? join(root, "target/site/playground");

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css",
  ".js": "text/javascript",
  ".wasm": "application/wasm",
  ".svg": "image/svg+xml",
};

/** Serves the page; `requests` has the path of each request. */
export async function serve(folder = site) {
  const requests = [];
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    requests.push(path);
    let file = join(folder, path);
    if (existsSync(file) && statSync(file).isDirectory()) file = join(file, "index.html");
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${server.address().port}/`;
  return { address, requests, close: () => new Promise((resolve) => server.close(resolve)) };
}

/** A headless Chromium: Debian's, or the one that `CHROMIUM` names. */
export function browser() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  // The sandbox needs rights that a container's root does not give.
  return chromium.launch({ executablePath, args: process.getuid() === 0 ? ["--no-sandbox"] : [] });
}

/** Opens a page that fails on errors, violations of the security policy and requests to elsewhere. */
export async function open(context, address, fragment = "") {
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && faults.push(`console: ${message.text()}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(address) && !url.startsWith("data:")) faults.push(`request: ${url}`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => {
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  await page.goto(address + fragment);
  await checked(page);
  return { page, faults };
}

/** Waits until the newest text has been checked. */
export async function checked(page, after = 0) {
  await page.waitForFunction((after) => Number(document.documentElement.dataset.checked ?? 0) > after, after);
}

/** The number of the last check. */
export function checks(page) {
  return page.evaluate(() => Number(document.documentElement.dataset.checked ?? 0));
}

/** Types a text in place of what stands in the shown editor. */
export async function write(page, text, panel = "#panel-program") {
  const before = await checks(page);
  await page.locator(`${panel} .cm-content`).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
  await checked(page, before);
  await page.waitForTimeout(50);
}

/** The text of an editor, as far as it is drawn. */
export async function written(page, panel = "#panel-program") {
  const lines = await page.locator(`${panel} .cm-line`).allTextContents();
  return lines.join("\n");
}

/** The fragment of a link to a program. */
export function link(shared) {
  return `#1.${deflateRawSync(Buffer.from(JSON.stringify(shared))).toString("base64url")}`;
}
