// One request of a run with its answer: what the playground, exported pages and `entail ui` show of it.

import { h, plural } from "./dom.ts";
import { kindsOf, label } from "./labels.ts";
import { inline } from "./markdown.ts";
import type { Explained, KeptLine, RequestLine, ResponseLine } from "./protocol.ts";

/** What can be done from a step; nothing of it where the program is not there. */
export interface StepActions {
  /** Shows a place of the program, while the run is followed, too. */
  place?(line: number, column: number): void;
  /** Opens a file of the program at a place. */
  open?(path: string, line: number, column: number): void;
  /** Adds an entry to the script. */
  addAnswer?(entry: unknown): void;
  /** Begins a fork with another answer. */
  fork?(step: Step, item: HTMLElement): void;
}

interface Place {
  path?: string;
  line?: number;
  column?: number;
}

export interface Step {
  request: RequestLine;
  response?: ResponseLine;
  /** What the journal has beside the answer. */
  kept?: KeptLine;
}

const KINDS: Record<string, string> = {
  model: "Ask model",
  tool: "Call tool",
  approve: "Ask for approval of",
  recall: "Recall",
  remember: "Remember",
  sample: "Draw a sample",
};

const VIA: Record<string, string> = {
  key: "signed with a key",
  terminal: "typed at the terminal",
  caller: "a caller of the server",
  program: "said by the program",
};

/** What is asked of whom, without its contents. */
export function subject({ request }: Step): string {
  return request.tool ?? (request.purpose ? `${request.model} for ${request.purpose}` : (request.model ?? request.key ?? ""));
}

/** Whether a step is of little importance. The run says so of its answer. */
export function isMinor({ response }: Step): boolean {
  return response?.importance === "minor";
}

/** Whether the answer is an error, or ended the run. */
export function hasFailed({ response }: Step): boolean {
  return response !== undefined && ("error" in response || "stopped" in response || "late" in response);
}

/** One request of a run with its answer; `pending` is said where there is none. */
export function stepItem(step: Step, isLast: boolean, actions: StepActions, pending = "not answered"): HTMLElement {
  const { request, response, kept } = step;
  const branch = (request.place ?? []).slice(0, -1).join(".");
  const item: HTMLElement = h(
    "li",
    { class: `step ${hasFailed(step) ? "refused" : ""}`, "aria-current": isLast ? "step" : undefined, "data-n": request.n },
    h(
      "p",
      {},
      h("b", {}, `${request.n}. ${KINDS[request.kind] ?? request.kind} `),
      h("code", {}, subject(step)),
      " ",
      placeOf(request, actions),
    ),
    branch ? h("p", { class: "branch" }, `in branch ${branch}`) : null,
    request.attempt ? h("p", { class: "warning" }, `asked again: ${plural(request.attempt, "reply", "replies")} before did not decode`) : null,
    dependsOn(request),
    ...messages(request),
    request.args ? details("Arguments", request.args) : null,
    request.value !== undefined ? details("Value", request.value) : null,
    request.why?.some(hasOrigin) ? whyOf(request.why, actions) : null,
    response ? answer(request, response) : h("p", { class: "muted" }, pending),
    kept?.retries ? repeated(kept.retries) : null,
    kept ? facts(kept) : null,
    response && "stopped" in response && request.kind === "tool" ? offer({ call: request.tool, result: "…" }, actions) : null,
    response && "error" in response && request.kind === "model" && /no reply left/.test(String(response.error))
      ? offer(request.purpose ? { purpose: request.purpose, reply: "…" } : "…", actions)
      : null,
  );
  const { fork } = actions;
  if (fork && response && kept && FORKED.includes(request.kind)) {
    const begin = () => fork(step, item);
    item.append(h("p", {}, h("button", { type: "button", on: { click: begin } }, "Fork with another answer")));
  }
  return item;
}

/** Kinds of requests whose answer a fork may replace. */
const FORKED = ["model", "tool", "recall"];

/** The labels of what a request depends on: its arguments, the conversation, the decision to make it. */
function dependsOn(request: RequestLine): HTMLElement {
  const parts = (request.why ?? []).map((part) => h("span", { class: "part" }, part.of, " ", label(part.label), " "));
  // Without a part that has a label there is the one of those who see the request.
  return h("p", { class: "depends" }, ...(parts.length > 0 ? parts : [h("span", { class: "muted" }, "whoever may see it is cleared for "), label(request.channel)]));
}

function offer(entry: unknown, actions: StepActions): HTMLElement | null {
  if (!actions.addAnswer) return null;
  const add = actions.addAnswer;
  return h("p", {}, h("button", { class: "fix", type: "button", on: { click: () => add(entry) } }, "Add an answer"));
}

function placeOf(at: Place, actions: StepActions): HTMLElement | null {
  const { path, line, column } = at;
  if (!line) return null;
  const { place: show, open } = actions;
  const whole = `${path ?? ""}:${line}:${column ?? 1}`;
  if (open && path) return h("button", { class: "place", type: "button", on: { click: () => open(path, line, column ?? 1) } }, whole);
  if (!show) return h("span", { class: "muted" }, whole);
  return h("button", { class: "place", type: "button", on: { click: () => show(line, column ?? 1) } }, `line ${line}`);
}

/** Where the labels of some parts come from, folded. */
export function whyOf(why: Explained[], actions: StepActions): HTMLElement {
  return h("details", {}, h("summary", {}, "Where the labels come from"), origins(why, actions));
}

/** Whether it is known what brought a label. */
export function hasOrigin(part: Explained): boolean {
  return part.from.length > 0;
}

/** For each labeled part of a request the way back to what brought its label. */
export function origins(why: Explained[], actions: StepActions): HTMLElement {
  const hops = (part: Explained) => part.from.flatMap((chain) => chain.ways[0] ?? []);
  const hop = (at: Place & { says: string }) => h("li", {}, ...inline(at.says), " ", placeOf(at, actions));
  return h(
    "ul",
    {},
    ...why.filter(hasOrigin).map((part) =>
      h("li", {}, h("code", {}, part.of), " ", label(part.label), h("ul", {}, ...hops(part).map(hop))),
    ),
  );
}

function messages(request: RequestLine): HTMLElement[] {
  if (!request.messages) return [];
  // The sign of the label stands above, with the other parts that the request depends on.
  const conversation = request.why?.find((part) => part.of === "conversation");
  const kinds = request.why ? kindsOf(conversation ? conversation.label : []) : "";
  const earlier = request.earlier ? [h("p", { class: "muted" }, `after ${plural(request.earlier, "earlier message")}`)] : [];
  if (request.messages.length === 0) return earlier;
  return [
    ...earlier,
    h(
      "ul",
      { class: `messages ${kinds}` },
      ...request.messages.map((message) =>
        h("li", {}, h("b", {}, `${message.role}: `), message.tool ? `calls ${message.tool} ${JSON.stringify(message.args)}` : (message.content ?? "")),
      ),
    ),
  ];
}

function answer(request: RequestLine, response: ResponseLine): HTMLElement {
  const bad = (what: string, why: unknown) =>
    h("p", {}, h("span", { class: "verdict" }, h("span", { "aria-hidden": "true" }, "✖ "), `${what}: `), ...inline(String(why)));
  if ("error" in response) return bad(request.kind === "approve" ? "refused" : "failed", response.error);
  if ("stopped" in response) return bad("stopped", response.stopped);
  if ("late" in response) return bad("too late", "a time limit of the program had passed");
  if ("withheld" in response) return h("p", { class: "muted" }, "The answer is withheld.");
  if ("edit" in response) return h("p", {}, h("b", {}, "Approved with other arguments: "), h("code", {}, JSON.stringify(response.edit)));
  if (request.kind === "approve") return h("p", {}, h("b", {}, "Approved"));
  if ("reply" in response) return h("p", {}, h("b", {}, "Reply: "), String(response.reply));
  if ("calls" in response) return details("Calls", response.calls);
  if ("tool" in response) return h("p", {}, h("b", {}, "Calls the tool "), h("code", {}, `${response.tool} ${JSON.stringify(response.args)}`));
  if ("sample" in response) return h("p", {}, h("b", {}, "Drawn: "), String(response.sample));
  return details("Answer", response.data ?? null);
}

/** The attempts that failed before an answer. */
function repeated({ number, ms, causes }: NonNullable<KeptLine["retries"]>): HTMLElement {
  const waited = ms > 0 ? `, after waiting ${shownDuration(ms)}` : "";
  return h("p", { class: "warning" }, `${plural(number, "attempt")} failed before this answer${waited}: ${causes.join("; ")}`);
}

/** When the answer came, how long it took, and who decided. */
function facts({ at, ms, by }: KeptLine): HTMLElement | null {
  const parts: string[] = [];
  if (by) parts.push(`by ${by.name}, ${VIA[by.via] ?? by.via}`);
  if (at) parts.push(shownTime(at));
  if (ms > 0) parts.push(`took ${shownDuration(ms)}`);
  return parts.length > 0 ? h("p", { class: "muted" }, parts.join(" · ")) : null;
}

/** A time for people, in their time zone. */
export function shownTime(ms: number): string {
  return new Date(ms).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

/** An amount of money for people. */
export function shownMoney(usd: number): string {
  return usd.toLocaleString("en", { style: "currency", currency: "USD", maximumFractionDigits: 6 });
}

/** A duration for people. */
export function shownDuration(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`;
  return plural(Math.round(ms / 8_640_000) / 10, "day");
}

export function details(name: string, value: unknown): HTMLElement {
  return h("p", {}, h("b", {}, `${name}: `), h("code", {}, JSON.stringify(value)));
}
