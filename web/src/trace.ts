// A run as one file: what `entail trace --html` writes.

import { byId } from "./dom.ts";
import type { About } from "./protocol.ts";
import { RunPage } from "./runpage.ts";

document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

const [first, ...lines] = (byId("trace").textContent ?? "").trim().split("\n");
const about = JSON.parse(first ?? "{}") as About;
const drawn = about.program;
const page = new RunPage(byId("view"), drawn ? { program: async () => drawn } : {});
page.show(about, lines);
const { program, entry } = page.lines.head;
const title = `${program ?? ""} ${entry ?? ""}`;
byId("title").textContent = title;
document.title = `${title}, a run of Entail`;
