// What an entry point entails: type, effects, bounds, and which calls its labels allow.

import { h } from "./dom.ts";
import { label } from "./labels.ts";
import { inline } from "./markdown.ts";
import { breakdown, costPath } from "./program.ts";
import type { Entry, FlowSite, Interval } from "./protocol.ts";

const VERDICTS = {
  always: { sign: "✓", word: "always allowed" },
  depends: { sign: "?", word: "depends on the run" },
  never: { sign: "✖", word: "refused every time" },
} as const;

export function entails(entry: Entry, show: (place: string) => void): HTMLElement {
  const row = (name: string, ...value: (Node | string)[]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, ...value));
  const code = (text: string) => h("code", {}, text);
  const place = (at: string) => {
    const words = at.split(":").slice(-2);
    return h("button", { class: "place", type: "button", on: { click: () => show(at) } }, `line ${words[0]}`);
  };
  const money = (at: number) => at.toLocaleString("en", { style: "currency", currency: "USD", maximumFractionDigits: 4 });
  const count = (n: number) => n.toLocaleString("en");
  const unpriced = entry.unpriced.map((u) => u.model || 'the default model (an agent names its own: model: "…")').join(", ");
  return h(
    "div",
    {},
    h(
      "table",
      { class: "facts" },
      h("caption", {}, "Types and bounds of a run"),
      h(
        "tbody",
        {},
        row("Input", entry.input === null ? "none" : code(entry.input)),
        row("Result", code(entry.type)),
        row("Effects", code(entry.effects)),
        row("Model calls", interval(entry.modelCalls, count)),
        row("Tool calls", interval(entry.toolCalls, count)),
        row("Input tokens", interval(entry.inputTokens, count)),
        row("Output tokens", interval(entry.outputTokens, count)),
        row("Cost", entry.usd.most === null && unpriced ? `unknown: no price of ${unpriced}` : interval(entry.usd, money)),
      ),
    ),
    ...breakdown(entry.costPath, place),
    ...costPath(entry.costPath, place),
    ...entry.unbounded.map((u) => h("p", { class: "warning" }, "No bound: ", ...inline(u.why), " ", place(u.place))),
    entry.dynamic.length > 0 && h("p", { class: "muted" }, "Types decided when it runs: ", ...entry.dynamic.slice(0, 8).flatMap((at) => [place(at), " "])),
    h("h2", {}, "Flow"),
    entry.flow.sites.length === 0
      ? h("p", { class: "empty" }, "It calls nothing that a label could refuse.")
      : h("ul", { class: "sites" }, ...entry.flow.sites.map((site) => siteItem(site, place))),
    h("p", {}, "Label of the result: ", label(entry.flow.result)),
    entry.flow.gaveUp && h("p", { class: "warning" }, "The analysis gave up: ", ...inline(entry.flow.gaveUp.why), " ", place(entry.flow.gaveUp.place)),
  );
}

function interval({ least, most }: Interval, shown: (n: number) => string): string {
  if (most === null) return `at least ${shown(least)}, no bound known`;
  return least === most ? shown(most) : `${shown(least)} to ${shown(most)}`;
}

function siteItem(site: FlowSite, place: (at: string) => HTMLElement): HTMLElement {
  const { sign, word } = VERDICTS[site.verdict];
  const checks = site.checks.filter((check) => check.verdict !== "always" || check.sources.length > 0);
  return h(
    "li",
    { class: `site ${site.verdict}` },
    h(
      "p",
      {},
      h("span", { class: "verdict" }, h("span", { "aria-hidden": "true" }, `${sign} `), word),
      ": ",
      site.sink,
      site.name ? " " : "",
      site.name && h("code", {}, site.name),
      " ",
      place(site.place),
    ),
    checks.length > 0 &&
      h(
        "ul",
        {},
        ...checks.map((check) =>
          h(
            "li",
            {},
            ...inline(check.what),
            ": ",
            label(check.most),
            " where ",
            label(check.bound),
            " is admitted",
            check.sources.length > 0 &&
              h(
                "ul",
                {},
                ...check.sources.map((source) =>
                  h("li", {}, label(source.label), " from ", ...inline(source.what), " ", place(source.place), source.breaks ? h("b", { class: "breaks" }, " ✖ breaks the bound") : ""),
                ),
              ),
          ),
        ),
      ),
  );
}
