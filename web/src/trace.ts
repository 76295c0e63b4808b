// A finished run as one file: what `entail trace --html` writes. Lines are parsed when they are shown.

import { byId, h, plural } from "./dom.ts";
import { findingList } from "./findings.ts";
import { label } from "./labels.ts";
import { inline } from "./markdown.ts";
import type { Finding, Line, RequestLine, ResponseLine } from "./protocol.ts";
import { type Step, stepItem } from "./run.ts";

/** What is known of the run beside its trace: its bound, and what is to be said of its end. */
interface About {
  bound: { modelCalls: number | null; toolCalls: number | null; usd: number | null } | null;
  findings: Finding[];
}

interface End {
  result?: unknown;
  error?: { code: string; message: string; path?: string; line?: number; column?: number };
  label: unknown;
  usage: { modelCalls: number; toolCalls: number; questions: number; inputTokens: number; outputTokens: number; usd: number | null };
}

/** Steps that are added at once. */
const AT_ONCE = 200;

const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
document.documentElement.dataset.theme = theme;

const texts = (byId("trace").textContent ?? "").trim().split("\n");
const about = JSON.parse(texts[0] ?? "{}") as About;

/** The lines of each request and of its response, not yet parsed. */
const requests: { request: string; response?: string }[] = [];
const byNumber = new Map<string, { request: string; response?: string }>();
let head: { program?: string; entry?: string; input?: unknown } = {};
let end: End | null = null;
for (const text of texts.slice(1)) {
  const [, event, n] = /^\{"event":"([a-z]+)"(?:,"n":(\d+))?/.exec(text) ?? [];
  if (event === "request" && n) {
    const step = { request: text };
    requests.push(step);
    byNumber.set(n, step);
  } else if (event === "response" && n) {
    const step = byNumber.get(n);
    if (step) step.response = text;
  } else if (event === "run") head = JSON.parse(text) as typeof head;
  else if (event === "end") end = JSON.parse(text) as End;
}

function parsed(step: { request: string; response?: string }): Step {
  const request = JSON.parse(step.request) as Line as RequestLine;
  return { request, response: step.response ? (JSON.parse(step.response) as ResponseLine) : undefined };
}

/** The way to the branch of a request; empty for the run itself. */
function branch(request: RequestLine): string {
  return (request.place ?? []).slice(0, -1).join(".");
}

const list = h("ol", { class: "steps" });
const more = h("button", { type: "button", on: { click: () => add() } });
const count = h("p", { class: "muted", role: "status" });
const search = h("input", { id: "search", type: "search", autocomplete: "off", on: { input: () => restart() } });
let found = requests;
let shown = 0;

function add(): void {
  for (const step of found.slice(shown, shown + AT_ONCE)) {
    const { request, response } = parsed(step);
    const item = stepItem({ request, response }, false, {});
    const way = branch(request);
    if (way) item.prepend(h("p", { class: "branch" }, `in branch ${way}`));
    list.append(item);
  }
  shown = Math.min(shown + AT_ONCE, found.length);
  more.textContent = `Show ${Math.min(AT_ONCE, found.length - shown)} more`;
  more.hidden = shown === found.length;
  count.textContent = `${shown.toLocaleString("en")} of ${plural(found.length, "request")}`;
}

function restart(): void {
  const words = search.value;
  found = words === "" ? requests : requests.filter((s) => s.request.includes(words) || s.response?.includes(words));
  shown = 0;
  list.replaceChildren();
  add();
}

function spent(end: End): HTMLElement {
  const { bound } = about;
  const row = (name: string, used: string, most: string) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, used), h("td", {}, most));
  const number = (n: number | null | undefined) => (n === null || n === undefined ? "unknown" : n.toLocaleString("en"));
  const money = (n: number | null | undefined) =>
    n === null || n === undefined ? "unknown" : Number(n).toLocaleString("en", { style: "currency", currency: "USD", maximumFractionDigits: 6 });
  const { usage } = end;
  return h(
    "table",
    {},
    h("caption", {}, "Spent"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "What"), h("th", { scope: "col" }, "Used"), h("th", { scope: "col" }, "Bound"))),
    h(
      "tbody",
      {},
      row("Model calls", number(usage.modelCalls), number(bound?.modelCalls)),
      row("Tool calls", number(usage.toolCalls), number(bound?.toolCalls)),
      row("Tokens in and out", `${number(usage.inputTokens)}, ${number(usage.outputTokens)}`, ""),
      row("Cost", money(usage.usd), money(bound?.usd)),
    ),
  );
}

function outcome(): (HTMLElement | null)[] {
  if (!end) return [h("p", {}, "The trace ends before the run.")];
  const { error } = end;
  return [
    h("h2", {}, error ? "The run failed" : "Result"),
    error && about.findings.length > 0
      ? null
      : error
      ? h("p", { class: "error" }, h("span", { class: "level" }, `✖ ${error.code}: `), ...inline(error.message), error.line ? ` ${error.path}:${error.line}:${error.column}` : "")
      : h("pre", { class: "term" }, h("code", {}, typeof end.result === "string" ? end.result : JSON.stringify(end.result, null, 2))),
    h("p", {}, error ? "Label of the error: " : "Label of the result: ", label(end.label)),
    about.findings.length > 0 ? findingList(about.findings, null) : null,
    spent(end),
  ];
}

const title = `${head.program ?? ""} ${head.entry ?? ""}`;
byId("title").textContent = title;
document.title = `${title}, a run of Entail`;
byId("view").replaceChildren(
  h(
    "section",
    { "aria-label": "Run" },
    head.input === undefined || head.input === null ? "" : h("p", {}, h("b", {}, "Input: "), h("code", {}, JSON.stringify(head.input))),
    ...outcome(),
    h("h2", {}, "Requests"),
    h("p", {}, h("label", { for: "search" }, "Containing "), search),
    count,
    list,
    more,
  ),
);
add();
