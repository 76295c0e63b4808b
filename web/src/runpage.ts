// A run, step by step or as a whole: one view for the playground, exported pages and `entail ui`.

import { type Range, spend, timeline } from "./charts.ts";
import { h, plural } from "./dom.ts";
import { type FindingActions, findingList } from "./findings.ts";
import { label } from "./labels.ts";
import { inline } from "./markdown.ts";
import { programParts } from "./program.ts";
import type { About, Bound, EndLine, Program } from "./protocol.ts";
import { RunLines } from "./runlines.ts";
import { type Step, type StepActions, isMinor, shownMoney, stepItem, subject } from "./steps.ts";

/** Steps that are drawn at once. */
const AT_ONCE = 200;

/** Fewest steps of little importance that are folded. */
const MIN_FOLDED = 3;

export interface RunActions extends StepActions {
  /** Fixes and places of findings, where the program is there. */
  findings?: FindingActions;
  /** Gives the program as a picture with the path of its bound, where that is not shown elsewhere. */
  program?(): Promise<Program>;
}

/** What a state of a run is called. */
const STATES: Record<string, string> = {
  running: "The run is under way",
  waiting: "The run waits for an approval",
  interrupted: "The run was interrupted: its process is gone",
  stopped: "The run was stopped",
};

export class RunPage {
  readonly #panel: HTMLElement;
  readonly #actions: RunActions;
  readonly #list = h("ol", { class: "steps" });
  readonly #count = h("p", { class: "muted", role: "status" });
  readonly #more = h("button", { type: "button", on: { click: () => this.#add() } });
  readonly #search: HTMLInputElement;
  /** The first and the last request that are listed, by their numbers; empty for no limit. */
  readonly #first: HTMLInputElement;
  readonly #last: HTMLInputElement;
  readonly #stepper = h("div", { class: "stepper", role: "group", "aria-label": "Steps of the run" });
  readonly #where = h("span", { class: "muted", role: "status" });
  readonly #buttons: Record<"first" | "back" | "next" | "end", HTMLButtonElement>;
  #about: About = { bound: null, findings: [] };
  #texts: string[] = [];
  #lines = new RunLines([]);
  /** Number of the steps that are shown; `null` for the whole run. */
  #upTo: number | null = null;
  #found: number[] = [];
  #shown = 0;
  /** Adds steps when the end of the list comes into view. */
  readonly #reached: IntersectionObserver;
  /** The program, once somebody wants to see it. */
  readonly #program: HTMLElement | null;
  /** What the panel has besides the list, kept when a run that goes on is drawn again. */
  #open = new Set<string>();

  constructor(panel: HTMLElement, actions: RunActions) {
    this.#panel = panel;
    this.#actions = actions;
    this.#search = h("input", { type: "search", autocomplete: "off", on: { input: () => this.#relist() } });
    const number = () => h("input", { type: "number", min: 1, autocomplete: "off", on: { change: () => this.#draw() } });
    this.#first = number();
    this.#last = number();
    this.#reached = new IntersectionObserver(([entry]) => entry?.isIntersecting && !this.#more.hidden && this.#add(), { rootMargin: "800px" });
    this.#reached.observe(this.#more);
    const button = (text: string, to: (at: number) => number) =>
      h("button", { type: "button", on: { click: (event) => this.#go(to, event.currentTarget as HTMLButtonElement) } }, text);
    this.#buttons = {
      first: button("First", () => 1),
      back: button("Back", (at) => at - 1),
      next: button("Next", (at) => at + 1),
      end: button("End", () => Number.MAX_SAFE_INTEGER),
    };
    this.#program = this.#programOf();
    this.#stepper.append(...Object.values(this.#buttons), this.#where);
  }

  /** The run, for those who compare or share it. */
  get lines(): RunLines {
    return this.#lines;
  }

  get about(): About {
    return this.#about;
  }

  /** Shows a run. */
  show(about: About, texts: string[]): void {
    this.update(about, 0, texts);
  }

  /** Shows what has become of the run: its first lines are the same, and the others are these. */
  update(about: About, keep: number, texts: string[]): void {
    this.#about = about;
    this.#texts = [...this.#texts.slice(0, keep), ...texts];
    this.#lines = new RunLines(this.#texts);
    if (this.#upTo !== null && this.#upTo > this.#lines.length) this.#upTo = null;
    this.#draw();
  }

  /** Shows why there is no run. */
  error(message: string, help?: string | null): void {
    this.#panel.replaceChildren(
      h("p", { class: "warning" }, ...inline(message)),
      help ? h("p", { class: "help" }, h("b", {}, "Help: "), ...inline(help)) : h("p", {}),
    );
  }

  /** Shows a step, with those before it. */
  goTo(n: number): void {
    this.#go(() => n, null);
  }

  #go(to: (at: number) => number, button: HTMLButtonElement | null): void {
    if (button?.getAttribute("aria-disabled") === "true") return;
    const all = this.#lines.length;
    const n = to(this.#upTo ?? all + 1);
    this.#upTo = n > all ? null : Math.max(n, Math.min(1, all));
    this.#draw();
    button?.focus();
    const at = this.#lines.step(Math.min(this.#upTo ?? all, all) - 1)?.request;
    if (at?.line) this.#actions.place?.(at.line, at.column ?? 1);
    if (this.#upTo !== null) this.#list.lastElementChild?.scrollIntoView({ block: "nearest" });
  }

  #draw(): void {
    const [lines, about, all] = [this.#lines, this.#about, this.#lines.length];
    const isWhole = this.#upTo === null;
    const at = this.#upTo ?? all;
    this.#where.textContent = isWhole ? `${plural(all, "step")}${lines.end ? " and the end" : ""}` : `step ${at} of ${all}`;
    const off = { first: at <= 1 && !isWhole, back: at <= 1 && (all === 0 || !isWhole), next: isWhole, end: isWhole };
    for (const [name, button] of Object.entries(this.#buttons)) {
      button.setAttribute("aria-disabled", String(off[name as keyof typeof off]));
    }
    const { input } = lines.head;
    const folded = isWhole
      ? [this.#folded("timeline", timeline(lines, this.#range(), (range) => this.#choose(range))), this.#folded("spend", spend(lines, about.bound))]
      : [];
    const active = document.activeElement;
    this.#panel.replaceChildren(
      this.#stepper,
      ...(isWhole ? this.#outcome() : []),
      ...(isWhole && lines.end ? [spent(lines.end, about.bound)] : []),
      ...folded.filter((part) => part !== null),
      ...(isWhole && this.#program && !about.unlabeled ? [this.#program] : []),
      h("h2", {}, "Requests"),
      ...(input === undefined || input === null ? [] : [h("p", {}, h("b", {}, "Input: "), h("code", {}, JSON.stringify(input)))]),
      h(
        "div",
        { class: "filters", role: "search", "aria-label": "Requests", hidden: all < 2 },
        h("label", { class: "search" }, "Containing ", this.#search),
        h("label", {}, "From request ", this.#first),
        h("label", {}, "to ", this.#last),
      ),
      this.#count,
      this.#list,
      this.#more,
    );
    this.#relist();
    // A field keeps the focus while the run goes on around it.
    if (active instanceof HTMLElement && this.#panel.contains(active)) active.focus({ preventScroll: true });
  }

  #programOf(): HTMLElement | null {
    const { program } = this.#actions;
    if (!program) return null;
    const inside = h("div", {}, h("p", { class: "muted", role: "status" }, "Loading …"));
    const load = async () => inside.replaceChildren(...programParts(await program(), this.#lines.head.entry ?? "the run", (at) => this.#place(at)));
    const failed = (problem: unknown) => inside.replaceChildren(h("p", { class: "warning" }, problem instanceof Error ? problem.message : String(problem)));
    const part = h("details", {}, h("summary", {}, "Program and bound"), inside);
    part.addEventListener("toggle", () => void load().catch(failed), { once: true });
    return part;
  }

  /** A place `path:line:column`. */
  #place(at: string): HTMLElement {
    const [, path = "", line = "", column = ""] = /^(.*):(\d+):(\d+)$/.exec(at) ?? [];
    const { open } = this.#actions;
    if (!open || !path) return h("span", { class: "muted" }, at);
    return h("button", { class: "place", type: "button", on: { click: () => open(path, Number(line), Number(column)) } }, at);
  }

  /** The positions that are listed. */
  #range(): Range {
    const all = this.#lines.length;
    const from = Math.min(Math.max((Number(this.#first.value) || 1) - 1, 0), all);
    return { from, to: Math.min(Math.max(Number(this.#last.value) || all, from), all) };
  }

  #choose({ from, to }: Range): void {
    this.#first.value = String(from + 1);
    this.#last.value = String(to);
    this.#draw();
  }

  /** A part that stays as open as it was. */
  #folded(name: string, part: HTMLElement | null): HTMLElement | null {
    if (part instanceof HTMLDetailsElement) {
      part.open = this.#open.has(name);
      part.addEventListener("toggle", () => (part.open ? this.#open.add(name) : this.#open.delete(name)));
    }
    return part;
  }

  #relist(): void {
    const { from, to } = this.#range();
    const found = this.#lines.containing(this.#search.value).filter((i) => i >= from && i < to);
    const at = this.#upTo;
    // Of a long run the steps just before the one that is looked at.
    this.#found = at === null ? found : found.filter((i) => i < at && i >= at - AT_ONCE);
    const before = this.#shown;
    this.#shown = 0;
    this.#list.replaceChildren();
    this.#add(at === null ? Math.max(before, AT_ONCE) : AT_ONCE);
  }

  #add(count = AT_ONCE): void {
    // What somebody looks for, or looks at step by step, is not folded.
    const folds = this.#upTo === null && this.#search.value === "";
    let minor: Step[] = [];
    const flush = () => {
      this.#list.append(...this.#items(minor));
      minor = [];
    };
    for (const at of this.#found.slice(this.#shown, this.#shown + count)) {
      const step = this.#lines.step(at);
      if (!step) continue;
      if (folds && isMinor(step)) {
        minor.push(step);
        continue;
      }
      flush();
      this.#list.append(stepItem(step, at + 1 === this.#upTo, this.#actions, this.#pending()));
    }
    flush();
    this.#shown = Math.min(this.#shown + count, this.#found.length);
    const left = this.#found.length - this.#shown;
    this.#more.textContent = `Show ${Math.min(AT_ONCE, left)} more`;
    this.#more.hidden = left === 0;
    this.#count.textContent = `${this.#shown.toLocaleString("en")} of ${plural(this.#found.length, "request")}`;
  }

  /** Steps of little importance: several in a row are folded. */
  #items(steps: Step[]): HTMLElement[] {
    const items = steps.map((step) => stepItem(step, false, this.#actions, this.#pending()));
    const [first, last] = [steps[0], steps.at(-1)];
    if (!first || !last || steps.length < MIN_FOLDED) return items;
    const names = [...new Set(steps.map((step) => `${step.request.kind} ${subject(step)}`))];
    const what = `${names.slice(0, 3).join(", ")}${names.length > 3 ? ", …" : ""}`;
    const summary = h("summary", {}, `${first.request.n} to ${last.request.n}: ${steps.length} minor requests (${what})`);
    return [h("li", { class: "minor" }, h("details", {}, summary, h("ol", { class: "steps" }, ...items)))];
  }

  /** What is said of a request without an answer. */
  #pending(): string {
    const state = this.#about.run?.state;
    if (state === "running") return "not answered yet";
    return state === "waiting" ? "waits for an answer" : "not answered";
  }

  #outcome(): HTMLElement[] {
    const { end } = this.#lines;
    const about = this.#about;
    const notes: HTMLElement[] = [];
    if (about.redacted) notes.push(h("p", { class: "muted" }, "What a reader may not see was left out of this page."));
    if (about.unlabeled) notes.push(h("p", { class: "warning" }, "The program of this run was not kept: labels and places are not known."));
    if (about.differs) notes.push(h("p", { class: "warning" }, "Not all of the run can be shown by this version: ", ...inline(about.differs)));
    const state = about.run?.state ?? about.run?.status;
    if (!end) return [h("h2", {}, STATES[state ?? ""] ?? "The run has not ended"), ...notes];
    const { error } = end;
    const isWaiting = state === "waiting";
    const failed = error && !isWaiting && !about.findings.some((finding) => finding.level === "error");
    return [
      h("h2", {}, error ? (STATES[state ?? ""] ?? "The run failed") : "Result"),
      ...notes,
      ...(failed
        ? [h("p", { class: "error" }, h("span", { class: "level" }, `✖ ${error.code}: `), ...inline(error.message), error.line ? ` ${error.path}:${error.line}:${error.column}` : "")]
        : []),
      ...(error ? [] : [h("pre", { class: "term" }, h("code", {}, typeof end.result === "string" ? end.result : JSON.stringify(end.result, null, 2)))]),
      isWaiting ? null : h("p", {}, error ? "Label of the error: " : "Label of the result: ", label(end.label)),
      ...(about.findings.length > 0 ? [findingList(about.findings, this.#actions.findings ?? null)] : []),
    ].filter((part) => part !== null);
  }
}

/** What was spent, beside the bound. */
function spent(end: EndLine, bound: Bound | null): HTMLElement {
  const row = (name: string, used: string, most: string) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, used), h("td", {}, most));
  const number = (n: number | null | undefined) => (n === null || n === undefined ? "unknown" : n.toLocaleString("en"));
  const money = (n: number | null | undefined) => (n === null || n === undefined ? "unknown" : shownMoney(Number(n)));
  const { usage } = end;
  const column = (name: string) => h("th", { scope: "col" }, name);
  return h(
    "table",
    {},
    h("caption", {}, "Spent"),
    h("thead", {}, h("tr", {}, column("What"), column("Used"), column("Bound"))),
    h(
      "tbody",
      {},
      row("Model calls", number(usage.modelCalls), number(bound?.modelCalls)),
      row("Tool calls", number(usage.toolCalls), number(bound?.toolCalls)),
      row("Tokens", `${number(usage.inputTokens)} in, ${number(usage.outputTokens)} out`, ""),
      row("Cost", money(usage.usd), money(bound?.usd)),
    ),
  );
}
