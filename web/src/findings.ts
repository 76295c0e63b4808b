// The list of findings, each with its place, its remedy and its fix.

import { h, plural } from "./dom.ts";
import { inline } from "./markdown.ts";
import type { Finding } from "./protocol.ts";

const LEVELS = {
  error: { sign: "✖", word: "error" },
  warn: { sign: "▲", word: "warning" },
  info: { sign: "ℹ", word: "note" },
  unknown: { sign: "?", word: "unknown" },
} as const;

const ORDER = ["error", "warn", "unknown", "info"] as const;

/** "2 errors, 1 warning", or that there is nothing. */
export function summary(findings: Finding[]): string {
  const counts = ORDER.map((level) => {
    const count = findings.filter((finding) => finding.level === level).length;
    return count > 0 ? plural(count, LEVELS[level].word, level === "unknown" ? "unknown" : undefined) : "";
  });
  return counts.filter(Boolean).join(", ") || "no findings";
}

export interface FindingActions {
  show(finding: { file: "main" | "policy"; from: number; to: number }): void;
  apply(finding: Finding): void;
}

/** A list of findings; without actions, of a program that is not there. */
export function findingList(findings: Finding[], actions: FindingActions | null): HTMLElement {
  if (findings.length === 0) return h("p", { class: "empty" }, "Nothing is wrong here.");
  const sorted = [...findings].sort(
    (a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level) || a.from - b.from,
  );
  return h("ul", { class: "findings" }, ...sorted.map((finding) => item(finding, actions)));
}

function item(finding: Finding, actions: FindingActions | null): HTMLElement {
  const { sign, word } = LEVELS[finding.level];
  const place = (file: Finding["file"], line: number | undefined, from: number | undefined, to: number | undefined) => {
    if (line === undefined) return null;
    if (!actions || from === undefined) return h("span", { class: "muted" }, `line ${line}`);
    const text = `${file === "policy" ? "policy, " : ""}line ${line}`;
    const show = () => actions.show({ file, from, to: to ?? from });
    return h("button", { class: "place", type: "button", on: { click: show } }, text);
  };
  const fix = finding.fix;
  return h(
    "li",
    { class: `finding ${finding.level}` },
    h(
      "p",
      { class: "headline" },
      h("span", { class: "level" }, h("span", { "aria-hidden": "true" }, `${sign} `), `${word} `, h("b", {}, finding.code)),
      " ",
      place(finding.file, finding.line, finding.from, finding.to),
    ),
    h("p", { class: "message" }, ...inline(finding.message)),
    finding.help && h("p", { class: "help" }, h("b", {}, "Help: "), ...inline(finding.help)),
    finding.evidence &&
      h(
        "ul",
        { class: "evidence" },
        ...finding.evidence.map((e) => h("li", {}, place(finding.file, e.line, e.from, e.to), " ", ...inline(e.text))),
      ),
    fix &&
      actions &&
      h(
        "p",
        {},
        h("button", { class: "fix", type: "button", on: { click: () => actions.apply(finding) } }, "Apply fix"),
        " ",
        h("span", { class: "muted" }, ...inline(fix.title), fix.applicability === "unsafe" ? " (may change what it does)" : ""),
      ),
  );
}
