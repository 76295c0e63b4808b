// The program as a picture, and what its bound consists of: for the playground, pages of runs and VS Code.

import { attackParts } from "./attacks.ts";
import { svg } from "./charts.ts";
import { h, plural } from "./dom.ts";
import { inline } from "./markdown.ts";
import { picture } from "./picture.ts";
import type { CostLine, Program } from "./protocol.ts";
import { shownMoney } from "./steps.ts";

type Place = (at: string) => HTMLElement;

/** The picture, what the bound consists of, its most expensive path, and its attack paths. */
export function programParts({ svg, error, costPath: lines, attacks }: Program, name: string, place: Place): HTMLElement[] {
  const drawn = svg ? picture(svg, name) : h("p", { class: "empty" }, error ?? "There is no picture.");
  const attacked = attacks ? [h("h2", {}, "Attack paths"), ...attackParts(attacks, null)] : [];
  return [drawn, ...breakdown(lines, place), ...costPath(lines, place), ...attacked];
}

/** Lines that a path has at most: `MAX_LINES` of the analysis. */
const MAX_LINES = 200;

/** Each line with how often it stands there in a row. */
function counted(lines: CostLine[]): (CostLine & { times: number })[] {
  const all: (CostLine & { times: number })[] = [];
  for (const line of lines) {
    const last = all.at(-1);
    const isSame = last && line.most && last.depth === line.depth && last.place === line.place && last.text === line.text;
    if (isSame) last.times += 1;
    else all.push({ ...line, times: 1 });
  }
  return all;
}

/** What the bound consists of: the calls of the most expensive path, each loop with its calls below it. */
export function costPath(lines: CostLine[], place: Place): HTMLElement[] {
  if (lines.length === 0) return [];
  const top = h("ul", { class: "path" });
  const lists = [top];
  for (const { depth, place: at, text, times } of counted(lines)) {
    lists.length = Math.min(lists.length, depth + 1);
    const list = lists[lists.length - 1] ?? top;
    // The lines below a loop are one deeper than it.
    const last = list.lastElementChild;
    let into = list;
    if (lists.length < depth + 1 && last) {
      into = h("ul", {});
      last.append(into);
      lists.push(into);
    }
    into.append(h("li", {}, times > 1 ? `${times.toLocaleString("en")} times ` : "", ...inline(text), " ", place(at)));
  }
  const more = lines.length >= MAX_LINES ? [h("p", { class: "muted" }, `The first ${MAX_LINES} calls; more are not listed.`)] : [];
  return [h("h2", {}, "The most expensive path"), top, ...more];
}

/** Bars of a breakdown; what is left is one more. */
const MAX_BARS = 12;

interface Part {
  text: string;
  place: string;
  amount: number;
}

/** What a breakdown counts, the first that is known of all calls and not zero. */
const UNITS = [
  { name: "dollars", of: (line: CostLine) => line.most?.usd, shown: shownMoney },
  { name: "model calls", of: (line: CostLine) => line.most?.modelCalls, shown: (n: number) => plural(n, "call") },
  { name: "tool calls", of: (line: CostLine) => line.most?.toolCalls, shown: (n: number) => plural(n, "call") },
] as const;

/** The parts of the bound as bars, the largest first. Nothing if the bound is not known, or has one part. */
export function breakdown(lines: CostLine[], place: Place): HTMLElement[] {
  const calls = lines.filter((line) => line.most);
  const unit = UNITS.find(({ of }) => calls.every((line) => typeof of(line) === "number") && calls.some((line) => of(line)));
  if (!unit) return [];
  const parts = new Map<string, Part>();
  for (const line of calls) {
    const amount = unit.of(line) ?? 0;
    if (amount === 0) continue;
    const key = `${line.place} ${line.text}`;
    const known = parts.get(key);
    if (known) known.amount += amount;
    else parts.set(key, { text: line.text, place: line.place, amount });
  }
  if (parts.size < 2) return [];
  const sorted = [...parts.values()].sort((a, b) => b.amount - a.amount);
  const rest = sorted.slice(MAX_BARS).reduce((sum, part) => sum + part.amount, 0);
  const total = sorted.reduce((sum, part) => sum + part.amount, 0);
  const largest = Math.max(sorted[0]?.amount ?? 1, rest);
  const row = (amount: number, ...name: (Node | string)[]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, ...name),
      h("td", { class: "share" }, bar(amount / largest)),
      h("td", { class: "when" }, `${unit.shown(amount)} (${((100 * amount) / total).toFixed(0)} %)`),
    );
  const column = (name: string) => h("th", { scope: "col" }, name);
  return [
    h("div", { class: "scroll", role: "group", "aria-label": "What the bound consists of", tabindex: 0 },
      h(
        "table",
        { class: "breakdown" },
        h("caption", {}, `What the bound consists of, in ${unit.name}`),
        h("thead", {}, h("tr", {}, column("Call"), column("Part"), column("At most"))),
        h(
          "tbody",
          {},
          ...sorted.slice(0, MAX_BARS).map((part) => row(part.amount, ...inline(part.text), " ", place(part.place))),
          ...(rest > 0 ? [row(rest, plural(sorted.length - MAX_BARS, "further call"))] : []),
        ),
      ),
    ),
  ];
}

/** A bar whose length is a part of the whole width; the number stands beside it. */
function bar(part: number): SVGElement {
  const width = Math.max(part * 100, 1).toFixed(1);
  return svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true", class: "bar-of" }, svg("rect", { x: 0, y: 0, width, height: 10, class: "bar" }));
}
