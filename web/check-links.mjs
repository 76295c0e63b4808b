// Checks the links of the built site: node check-links.mjs FOLDER. What a page links to or loads is in the folder,
// and so is the place behind a `#`. Nothing is loaded from elsewhere.
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const folder = process.argv[2];
if (!folder) {
  console.error("usage: node check-links.mjs FOLDER");
  process.exit(2);
}

const pages = new Map();

/** A page with its places, or null if there is none. */
function page(path) {
  if (!pages.has(path)) pages.set(path, existsSync(path) && statSync(path).isFile() ? readFileSync(path, "utf8") : null);
  return pages.get(path);
}

const decoded = (text) => text.replaceAll("&amp;", "&").replaceAll("&#x2F;", "/").replaceAll("&#47;", "/");

let links = 0;
const problems = [];
for (const name of readdirSync(folder, { recursive: true })) {
  if (!name.endsWith(".html")) continue;
  const path = join(folder, name);
  // Scripts and texts of programs are not links.
  const html = page(path).replace(/<(script|code)\b[^>]*>[^]*?<\/\1>/g, (all) => /^<script[^>]*>/.exec(all)?.[0] ?? "");
  for (const [, tag, attributes] of html.matchAll(/<(a|link|script|img|iframe)\b([^>]*)>/g)) {
    const to = / (?:href|src)="([^"]*)"/.exec(attributes)?.[1];
    if (to === undefined) continue;
    const address = decoded(to);
    links++;
    if (/^[a-z][a-z0-9+.-]*:/i.test(address)) {
      if (tag !== "a" && !address.startsWith("data:")) problems.push(`${name}: loads ${address}`);
      continue;
    }
    const [file, place] = address.split("#");
    let target = file === "" ? path : normalize(join(file.startsWith("/") ? folder : dirname(path), decodeURIComponent(file.split("?")[0])));
    if (existsSync(target) && statSync(target).isDirectory()) target = join(target, "index.html");
    const found = page(target);
    if (found === null) problems.push(`${name}: ${address} is not there`);
    // The playground takes a program behind the `#`.
    else if (place && target.endsWith(".html") && !place.startsWith("1.") && !new RegExp(` (?:id|name)="${RegExp.escape?.(place) ?? place.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}"`).test(found)) problems.push(`${name}: ${address} has no such place`);
  }
}
console.log(`${links.toLocaleString("en")} links of ${pages.size} pages checked`);
for (const problem of problems.slice(0, 50)) console.error(problem);
process.exit(problems.length > 0 ? 1 : 0);
