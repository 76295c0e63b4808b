// Two runs side by side, with the first difference marked.

import { h, plural } from "../dom.ts";
import { inline } from "../markdown.ts";
import type { About } from "../protocol.ts";
import { RunLines } from "../runlines.ts";
import { type Step, stepItem, subject } from "../steps.ts";
import { run as fetched } from "./api.ts";
import { type View, failed, stateChip } from "./view.ts";

/** Requests that are shown before the first difference, and from there on. */
const BEFORE = 2;
const BEHIND = 50;

/** The path of the first part that differs between two values, with both; `null` if they are equal. */
export function difference(a: unknown, b: unknown, path = ""): { path: string; a: unknown; b: unknown } | null {
  if (a === b) return null;
  const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
  if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) return { path, a, b };
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const found = difference(a[key], b[key], path ? `${path}.${key}` : key);
    if (found) return found;
  }
  return null;
}

/** What of a step counts: not when it was, nor what it cost. */
function content(step: Step | undefined): unknown {
  if (!step) return null;
  const { kind, model, purpose, tool, key, args, value, messages, why, channel } = step.request;
  const { event: _, n: __, inputTokens: ___, outputTokens: ____, usd: _____, ...answer } = (step.response ?? {}) as Record<string, unknown>;
  const labels = why?.map((part) => ({ of: part.of, label: part.label })) ?? channel;
  return { request: { kind, model, purpose, tool, key, args, value, messages }, labels, answer };
}

/** Position of the first request that differs; `null` if none does. */
export function firstDifference(a: RunLines, b: RunLines): { at: number; path: string } | null {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const found = difference(content(a.step(i)), content(b.step(i)));
    if (found) return { at: i, path: found.path };
  }
  return null;
}

interface Side {
  about: About;
  lines: RunLines;
}

export function compareView(main: HTMLElement, ids: [string, string]): View {
  main.replaceChildren(h("p", { class: "muted", role: "status" }, "Loading …"));
  const load = async (id: string): Promise<Side> => {
    const { about, lines } = await fetched(id);
    return { about, lines: new RunLines(lines) };
  };
  Promise.all([load(ids[0]), load(ids[1])]).then(
    ([left, right]) => draw(main, left, right),
    (problem) => failed(main, problem),
  );
  return { title: "Compare" };
}

function draw(main: HTMLElement, left: Side, right: Side): void {
  const first = firstDifference(left.lines, right.lines);
  const inputs = difference(left.lines.head.input, right.lines.head.input);
  const most = Math.max(left.lines.length, right.lines.length);
  const ends = [left, right].map(({ lines: { end } }) => (end ? { result: end.result, error: end.error?.code } : null));
  const sameEnd = difference(ends[0], ends[1]) === null;
  const from = first ? Math.max(first.at - BEFORE, 0) : 0;
  const to = first ? Math.min(first.at + BEHIND, most) : Math.min(most, BEHIND);
  const rows: HTMLElement[] = [];
  for (let i = from; i < to; i++) {
    const isFirst = first?.at === i;
    const differs = first !== null && i >= first.at && difference(content(left.lines.step(i)), content(right.lines.step(i))) !== null;
    if (isFirst) rows.push(h("p", { class: "first-difference", id: "first-difference", tabindex: -1 }, h("b", {}, "▼ First difference"), first.path ? h("span", {}, ": ", h("code", {}, first.path)) : ""));
    rows.push(h("div", { class: `pair ${differs ? "differs" : "same"}` }, side(left.lines.step(i)), side(right.lines.step(i))));
  }
  const title = ({ about, lines }: Side) =>
    h("div", {}, h("h3", {}, h("a", { href: `#/runs/${about.run?.id}` }, about.run?.name ?? `${lines.head.program} ${lines.head.entry}`), " ", stateChip(about.run?.state ?? "")), h("p", { class: "muted" }, `run ${about.run?.id}, ${plural(lines.length, "request")}`), h("p", {}, "Ends with ", end(lines)));
  main.replaceChildren(
    h("h2", { class: "title" }, "Two runs"),
    h("div", { class: "pair" }, title(left), title(right)),
    h(
      "p",
      { role: "status", id: "summary" },
      inputs ? "The inputs differ. " : "",
      first === null ? `All ${plural(most, "request")} and answers are the same` : first.at === 0 ? "The runs differ from the first request on" : `${plural(first.at, "request is", "requests are")} the same, then the runs differ`,
      sameEnd ? "; both end alike." : "; they end differently.",
    ),
    first && from > 0 ? h("p", { class: "muted" }, `${plural(from, "equal request")} before`) : "",
    ...rows,
    to < most ? h("p", { class: "muted" }, `${plural(most - to, "further request")} not shown`) : "",
  );
}

function end(lines: RunLines): HTMLElement {
  if (!lines.end) return h("span", { class: "muted" }, "nothing yet");
  const { error, result } = lines.end;
  return error ? h("span", { class: "failure" }, h("b", {}, error.code), " ", ...inline(error.message)) : h("code", {}, JSON.stringify(result));
}

function side(step: Step | undefined): HTMLElement {
  if (!step) return h("p", { class: "muted nothing" }, "no request here");
  return h("ol", { class: "steps", "aria-label": `Request ${step.request.n}: ${subject(step)}` }, stepItem(step, false, {}));
}
