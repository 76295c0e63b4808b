// A run on scripted answers, step by step: each request with its labels and where they came from, its answer,
// and what was refused.

import { h, plural } from "./dom.ts";
import { type FindingActions, findingList } from "./findings.ts";
import { label } from "./labels.ts";
import { inline } from "./markdown.ts";
import type { Explained, Line, Ran, RequestLine, ResponseLine } from "./protocol.ts";

/** What can be done from a step; nothing of it where the program is not there. */
export interface StepActions {
  /** Shows a place of the program. */
  place?(line: number, column: number): void;
  /** Adds an entry to the script. */
  addAnswer?(entry: unknown): void;
}

export interface RunActions extends FindingActions, Required<StepActions> {}

interface Place {
  path?: string;
  line?: number;
  column?: number;
}

export interface Step {
  request: RequestLine;
  response?: ResponseLine;
}

/** The requests of a trace with their answers. */
export function steps(trace: Line[]): Step[] {
  const out: Step[] = [];
  for (const line of trace) {
    if (line.event === "request") out.push({ request: line });
    else if (line.event === "response") {
      const step = out.find((s) => s.request.n === line.n);
      if (step) step.response = line;
    }
  }
  return out;
}

export class RunView {
  readonly #panel: HTMLElement;
  readonly #actions: RunActions;
  #ran: Ran | null = null;
  /** Number of the steps that are shown. */
  #upTo = Number.MAX_SAFE_INTEGER;

  constructor(panel: HTMLElement, actions: RunActions) {
    this.#panel = panel;
    this.#actions = actions;
  }

  error(message: string, help?: string | null): void {
    this.#ran = null;
    this.#panel.replaceChildren(
      h("p", { class: "warning" }, ...inline(message)),
      help ? h("p", { class: "help" }, h("b", {}, "Help: "), ...inline(help)) : h("p", {}),
    );
  }

  show(ran: Ran): void {
    this.#ran = ran;
    this.#draw();
  }

  #draw(focus?: string): void {
    const ran = this.#ran;
    if (!ran) return;
    const all = steps(ran.trace);
    const count = Math.min(this.#upTo, all.length + 1);
    const to = (n: number, id: string) => {
      this.#upTo = n > all.length ? Number.MAX_SAFE_INTEGER : Math.max(n, 0);
      this.#draw(id);
      const step = all[Math.min(n, all.length) - 1];
      if (step?.request.line) this.#actions.place(step.request.line, step.request.column ?? 1);
    };
    const button = (id: string, text: string, n: number, off: boolean) =>
      h("button", { type: "button", id, "aria-disabled": off ? "true" : undefined, on: { click: () => off || to(n, id) } }, text);
    const isWhole = count > all.length;
    const where = isWhole ? `${plural(all.length, "step")} and the end` : `step ${count} of ${all.length}`;
    this.#panel.replaceChildren(
      h(
        "div",
        { class: "stepper", role: "group", "aria-label": "Steps of the run" },
        button("run-first", "First", 1, count <= 1 && !isWhole),
        button("run-back", "Back", count - 1, count <= 1),
        button("run-next", "Next", count + 1, isWhole),
        button("run-end", "End", all.length + 1, isWhole),
        h("span", { class: "muted", role: "status" }, where),
      ),
      h("ol", { class: "steps" }, ...all.slice(0, count).map((step, i) => stepItem(step, i + 1 === count, this.#actions))),
      ...(isWhole ? this.#end(ran) : []),
    );
    if (focus) document.getElementById(focus)?.focus();
  }

  #end(ran: Ran): HTMLElement[] {
    const end = ran.trace.find((line) => line.event === "end");
    const usage = ran.outcome.usage;
    const bound = ran.outcome.bound;
    const most = (n: number | null) => (n === null ? "no bound known" : `bound: ${n.toLocaleString("en")}`);
    return [
      h("h2", {}, ran.shown === null ? "The run failed" : "Result"),
      ran.shown === null ? h("p", {}) : h("pre", { class: "term" }, h("code", {}, ran.shown)),
      h("p", {}, ran.shown === null ? "Label of the error: " : "Label of the result: ", label(end?.label)),
      h(
        "p",
        { class: "muted" },
        `${plural(usage.modelCalls, "model call")} (${most(bound.modelCalls)}), ${plural(usage.toolCalls, "tool call")} (${most(bound.toolCalls)})`,
        ran.unused > 0 ? `, ${plural(ran.unused, "unused reply", "unused replies")} in the script` : "",
      ),
      ran.findings.length > 0 ? findingList(ran.findings, this.#actions) : h("p", {}),
    ];
  }
}

/** One request of a run with its answer. */
export function stepItem({ request, response }: Step, isLast: boolean, actions: StepActions): HTMLElement {
  const what = request.tool ?? (request.purpose ? `${request.model} for ${request.purpose}` : (request.model ?? request.key ?? ""));
  const failed = response && ("error" in response || "stopped" in response);
  return h(
    "li",
    { class: `step ${failed ? "refused" : ""}`, "aria-current": isLast ? "step" : undefined },
    h(
      "p",
      {},
      h("b", {}, `${request.n}. ${KINDS[request.kind] ?? request.kind} `),
      h("code", {}, what),
      " ",
      placeOf(request, actions),
    ),
    dependsOn(request),
    ...messages(request),
    request.args ? details("Arguments", request.args) : null,
    request.value !== undefined ? details("Value", request.value) : null,
    request.why?.length ? whyOf(request.why, actions) : null,
    response ? answer(response) : h("p", { class: "muted" }, "not answered: the run ended before"),
    response && "stopped" in response && request.kind === "tool" ? offer({ call: request.tool, result: "…" }, actions) : null,
    response && "error" in response && request.kind === "model" && /no reply left/.test(String(response.error))
      ? offer(request.purpose ? { purpose: request.purpose, reply: "…" } : "…", actions)
      : null,
  );
}

/** The labels of what a request depends on: its arguments, the conversation, the decision to make it. */
function dependsOn(request: RequestLine): HTMLElement {
  const parts = (request.why ?? []).map((part) => h("span", { class: "part" }, part.of, " ", label(part.label), " "));
  return h("p", { class: "depends" }, ...(parts.length > 0 ? parts : [label([])]));
}

function offer(entry: unknown, actions: StepActions): HTMLElement | null {
  if (!actions.addAnswer) return null;
  const add = actions.addAnswer;
  return h("p", {}, h("button", { class: "fix", type: "button", on: { click: () => add(entry) } }, "Add an answer"));
}

function placeOf(at: Place, actions: StepActions): HTMLElement | null {
  const { path, line, column } = at;
  if (!line) return null;
  const show = actions.place;
  if (!show) return h("span", { class: "muted" }, `${path ?? ""}:${line}:${column ?? 1}`);
  return h("button", { class: "place", type: "button", on: { click: () => show(line, column ?? 1) } }, `line ${line}`);
}

function whyOf(why: Explained[], actions: StepActions): HTMLElement {
  return h(
    "details",
    {},
    h("summary", {}, "Where the labels come from"),
    h(
      "ul",
      {},
      ...why.map((part) =>
        h(
          "li",
          {},
          h("code", {}, part.of),
          " ",
          label(part.label),
          h(
            "ul",
            {},
            ...part.from.flatMap((chain) =>
              (chain.ways[0] ?? []).map((hop) => h("li", {}, ...inline(hop.says), " ", placeOf(hop, actions))),
            ),
          ),
        ),
      ),
    ),
  );
}

const KINDS: Record<string, string> = {
  model: "Ask model",
  tool: "Call tool",
  approve: "Ask for approval of",
  recall: "Recall",
  remember: "Remember",
  sample: "Draw a sample",
};

function messages(request: RequestLine): HTMLElement[] {
  if (!request.messages) return [];
  const earlier = request.earlier ? [h("p", { class: "muted" }, `after ${plural(request.earlier, "earlier message")}`)] : [];
  return [
    ...earlier,
    h(
      "ul",
      { class: "messages" },
      ...request.messages.map((message) =>
        h("li", {}, h("b", {}, `${message.role}: `), message.tool ? `calls ${message.tool} ${JSON.stringify(message.args)}` : (message.content ?? "")),
      ),
    ),
  ];
}

function answer(response: ResponseLine): HTMLElement {
  if ("error" in response) return h("p", {}, h("span", { class: "verdict" }, h("span", { "aria-hidden": "true" }, "✖ "), "failed: "), ...inline(String(response.error)));
  if ("stopped" in response) return h("p", {}, h("span", { class: "verdict" }, h("span", { "aria-hidden": "true" }, "✖ "), "stopped: "), ...inline(String(response.stopped)));
  if ("reply" in response) return h("p", {}, h("b", {}, "Reply: "), String(response.reply));
  if ("calls" in response) return details("Calls", response.calls);
  if ("tool" in response) return h("p", {}, h("b", {}, "Calls the tool "), h("code", {}, `${response.tool} ${JSON.stringify(response.args)}`));
  if ("sample" in response) return h("p", {}, h("b", {}, "Drawn: "), String(response.sample));
  return details("Answer", response.data ?? null);
}

function details(name: string, value: unknown): HTMLElement {
  return h("p", {}, h("b", {}, `${name}: `), h("code", {}, JSON.stringify(value)));
}
