// The page: what is written goes to the module with each change, and the views show its answers.

import { attackParts } from "./attacks.ts";
import { Client, SUPERSEDED } from "./client.ts";
import { byId, h, plural } from "./dom.ts";
import { Editor } from "./editor.ts";
import { entails } from "./entails.ts";
import { findingList, summary } from "./findings.ts";
import { inline } from "./markdown.ts";
import { picture } from "./picture.ts";
import { exampleOf } from "./examples.ts";
import { type About, type Answer, type Attacks, type Checked, type Completion, type Document, type Entry, type Finding, type Ran, documentOf } from "./protocol.ts";
import { RunPage } from "./runpage.ts";
import { type Shared, fromFragment, toFragment } from "./share.ts";
import { tabs } from "./tabs.ts";

const early = window.early;
const EXAMPLES = early?.examples ?? [];

const status = byId("status");
const path = byId<HTMLInputElement>("path");
const examples = byId<HTMLSelectElement>("example");
const entrySelect = byId<HTMLSelectElement>("entry");

let checked: Checked = { findings: [], entries: [] };
/** Increases with each change; an answer to an older text is not shown. */
let version = 0;
let view = "findings";
/** The entry point of a link, until the program has been checked. */
let wanted: string | undefined;
/** Increases with each run. */
let runs = 0;

const program = new Editor(byId("panel-program"), "Program", "p.agent", {
  changed: () => check(),
  hover: async (at) => {
    const answer = await client.ask<{ markdown: string | null; range: [number, number] | null }>({ query: "hover", at, ...written() });
    return "error" in answer ? { markdown: null, range: null } : answer;
  },
  complete: async (at) => {
    const answer = await client.ask<{ items: Completion[] }>({ query: "complete", at, ...written() });
    return "error" in answer ? [] : answer.items;
  },
});
const policy = new Editor(byId("panel-policy"), "Policy", "policy.toml", { changed: () => check() });
const answers = new Editor(byId("panel-answers"), "Answers", "answers.json", { changed: () => void render() });
const input = byId<HTMLInputElement>("input");
const showText = tabs("texts");
const showView = tabs("views", (name) => {
  view = name;
  render();
});
const client = new Client(early);

/** What is written. */
function written(): Document {
  return documentOf(path.value, program.text, policy.text);
}

/** The chosen entry point. */
function chosen(): Entry | undefined {
  return checked.entries.find((entry) => entry.entry === entrySelect.value) ?? checked.entries[0];
}

/** True while the texts of a program are put into the editors: they are checked together, once. */
let isLoading = false;

async function check(): Promise<void> {
  if (isLoading) return;
  const asked = ++version;
  let isDone = false;
  // Tables of frameworks are loaded: what is known without them is shown meanwhile.
  const soFar = (answer: Answer<Checked>) => {
    if (isDone || asked !== version || view !== "findings" || "error" in answer || answer.findings.length === 0) return;
    status.textContent = `${summary(answer.findings)} so far`;
    byId("panel-findings").replaceChildren(findingList(answer.findings, findingActions));
  };
  const answer = await client.ask<Checked>({ query: "check", ...written() }, soFar);
  isDone = true;
  if (asked !== version || isOld(answer)) return;
  if ("error" in answer) {
    checked = { findings: [], entries: [] };
    status.textContent = answer.error;
    return render();
  }
  checked = { ...answer, findings: [...answer.findings, ...unjudged(answer.without ?? [])] };
  status.textContent = summary(checked.findings);
  program.mark(answer.findings.filter((finding) => finding.file === "main"));
  policy.mark(answer.findings.filter((finding) => finding.file === "policy"));
  offer(answer.entries);
  document.documentElement.dataset.checked = String(asked);
  render();
}

/** The findings about what could not be loaded. */
function unjudged(without: string[]): Finding[] {
  return without.map((what) => {
    const [kind, name] = [what.slice(0, what.indexOf(" ")), what.slice(what.indexOf(" ") + 1)];
    const unknown = kind === "table" ? `whether \`${name}\` has what the program uses` : `which character \`${name}\` is`;
    return {
      code: "load",
      level: "unknown",
      message: `it is not known ${unknown}: a file of the playground could not be loaded`,
      help: "change the program or reload the page once there is a network",
      file: "main",
      from: 0,
      to: 0,
    };
  });
}

const findingActions = {
  show({ file, from, to }: { file: "main" | "policy"; from: number; to: number }): void {
    showText(file === "policy" ? "policy" : "program");
    editorOf(file).show(from, to);
  },
  apply(finding: Finding): void {
    const fix = finding.fix;
    if (!fix) return;
    editorOf(finding.file).replace(fix.from, fix.to, fix.replacement);
    // The button is gone with its finding: the focus goes to what has changed.
    this.show({ file: finding.file, from: fix.from, to: fix.from + fix.replacement.length });
  },
};

const runPage = new RunPage(byId("run"), {
  findings: findingActions,
  place: (line, column) => mark(program.offset(line, column)),
  addAnswer(entry) {
    showText("answers");
    let script: unknown;
    try {
      script = JSON.parse(answers.text || "[]");
    } catch {
      script = null;
    }
    if (!Array.isArray(script)) return void (status.textContent = "the answers are no JSON array");
    answers.text = JSON.stringify([...script, entry], null, 2);
  },
});

function editorOf(file: "main" | "policy"): Editor {
  return file === "policy" ? policy : program;
}

function isOld(answer: Answer<unknown>): boolean {
  return typeof answer === "object" && answer !== null && "error" in answer && answer.error === SUPERSEDED;
}

/** Offers the entry points, if there are several. */
function offer(entries: Entry[]): void {
  const before = wanted ?? entrySelect.value;
  wanted = undefined;
  const names = entries.map((entry) => entry.entry);
  byId("entry-label").hidden = names.length < 2;
  entrySelect.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
  const standard = entries.find((entry) => entry.isDefault) ?? entries[0];
  entrySelect.value = names.includes(before) ? before : (standard?.entry ?? "");
}

/** Fills the view that is shown. */
function render(): void {
  const panel = byId(`panel-${view}`);
  if (view === "findings") {
    const list = findingList(checked.findings, findingActions);
    return panel.replaceChildren(list);
  }
  if (view === "attacks") return void audit(panel);
  const entry = chosen();
  if (view === "run") return void run(entry);
  if (!entry) {
    return panel.replaceChildren(h("p", { class: "empty" }, "There is no entry point to show. The findings may say why."));
  }
  if (view === "entails") return panel.replaceChildren(entails(entry, jump));
  if (view === "term") return panel.replaceChildren(h("pre", { class: "term" }, h("code", {}, entry.term)));
  if (view === "picture") void draw(panel, entry);
}

async function draw(panel: HTMLElement, entry: Entry): Promise<void> {
  const asked = version;
  const answer = await client.ask<{ svg: string }>({ query: "picture", entry: entry.entry, ...written() });
  if (asked !== version || view !== "picture" || isOld(answer)) return;
  if ("error" in answer) return panel.replaceChildren(h("p", { class: "empty" }, answer.error));
  panel.replaceChildren(picture(answer.svg, entry.entry));
}

async function audit(panel: HTMLElement): Promise<void> {
  const asked = version;
  const answer = await client.ask<{ attacks: Attacks | null }>({ query: "audit", ...written() });
  if (asked !== version || view !== "attacks" || isOld(answer)) return;
  const nothing = "Attack paths are those of configurations and of programs in Python. For this program the flow says what reaches what.";
  const empty = (text: string) => panel.replaceChildren(h("p", { class: "empty" }, text));
  if ("error" in answer) return empty(answer.error);
  if (answer.attacks === null) return empty(nothing);
  panel.replaceChildren(...attackParts(answer.attacks, findingActions));
}

/** Runs the entry point on the scripted answers. */
async function run(entry: Entry | undefined): Promise<void> {
  if (!entry) return runPage.error("There is no entry point to run. The findings may say why.");
  const asked = ++runs;
  const answer = await client.ask<Ran>({
    query: "run",
    entry: entry.entry,
    input: input.value === "" ? null : input.value,
    script: answers.text.trim() || "[]",
    now: Math.floor(Date.now() / 1000),
    ...written(),
  });
  if (asked !== runs || isOld(answer)) return;
  if ("error" in answer) runPage.error(answer.error, answer.help);
  else runPage.show(aboutOf(answer), answer.trace.map((line) => JSON.stringify(line)));
  document.documentElement.dataset.ran = String(asked);
}

/** What is known of a run beside its trace. */
function aboutOf({ outcome, findings, unused }: Ran): About {
  const left = plural(unused, "reply", "replies");
  const surplus: Finding[] = unused > 0 ? [{ code: "script", level: "info", message: `the run did not use ${left} of the answers`, file: "main", from: 0, to: 0 }] : [];
  return { bound: outcome.bound, findings: [...findings, ...surplus] };
}

/** Shows a place of the program without moving the focus. */
function mark(at: number): void {
  showText("program");
  program.show(at, at, false);
}

/** Shows a place `path:line:column` in the program. */
function jump(place: string): void {
  const [line, column] = place.split(":").slice(-2).map(Number);
  const at = program.offset(line ?? 1, column ?? 1);
  showText("program");
  program.show(at, at);
}

function load(shared: Shared, about = ""): void {
  isLoading = true;
  path.value = shared.path;
  wanted = shared.entry;
  program.path = shared.path;
  policy.text = shared.policy ?? "";
  answers.text = shared.script ?? "[]\n";
  input.value = shared.input ?? "";
  program.text = shared.text;
  byId("about").replaceChildren(...inline(about));
  showText("program");
  isLoading = false;
  void check();
}

function loadExample(hash: string): void {
  const example = exampleOf(hash, EXAMPLES);
  if (!example) return;
  examples.value = example.name;
  load(example, example.about);
}

/** Loads what the address says. */
async function follow(read = fromFragment(location.hash)): Promise<void> {
  try {
    const shared = await read;
    if (shared) {
      examples.value = "";
      return load(shared);
    }
  } catch (error) {
    loadExample("");
    byId("about").textContent = `The link holds no program: ${error instanceof Error ? error.message : error}.`;
    return;
  }
  loadExample(location.hash);
}

async function share(): Promise<void> {
  const entry = entrySelect.value;
  const texts = { ...written(), script: answers.text, input: input.value };
  const shared = { ...texts, ...(checked.entries.length > 1 ? { entry } : {}) };
  history.replaceState(null, "", await toFragment(shared));
  examples.value = "";
  try {
    await navigator.clipboard.writeText(location.href);
    status.textContent = "the link is in the clipboard; the program is in the link itself";
  } catch {
    status.textContent = "the link is in the address bar; the program is in the link itself";
  }
}

async function format(): Promise<void> {
  const answer = await client.ask<{ text: string }>({ query: "format", ...written() });
  if ("error" in answer) status.textContent = answer.error;
  else if (answer.text !== program.text) program.text = answer.text;
}

examples.append(h("option", { value: "" }, "(your own)"), ...EXAMPLES.map((e) => h("option", { value: e.name }, e.title)));
examples.addEventListener("change", () => {
  if (examples.value) location.hash = `#example=${encodeURIComponent(examples.value)}`;
});
entrySelect.addEventListener("change", render);
input.addEventListener("input", render);
path.addEventListener("input", () => {
  program.path = path.value;
  void check();
});
byId("share").addEventListener("click", () => void share());
byId("format").addEventListener("click", () => void format());
window.addEventListener("hashchange", () => void follow());
showView("findings");
void follow(early?.shared);
if ("serviceWorker" in navigator) void navigator.serviceWorker.register("sw.js").catch(() => {});
