// Labels as words, with a sign and a color: color is never the only sign.

import { h } from "./dom.ts";

const KNOWN: Record<string, { kind: string; sign: string; word: string }> = {
  U: { kind: "untrusted", sign: "▲", word: "untrusted" },
  S: { kind: "secret", sign: "◆", word: "secret" },
};

/** Shows a label as a run, a check or a trace has it: a list of components, or whatever its lattice writes. */
export function label(value: unknown): HTMLElement {
  const parts = Array.isArray(value) ? value : value === null || value === undefined ? [] : [value];
  const chips = parts.map((part) => {
    const known = typeof part === "string" ? KNOWN[part] : undefined;
    if (known) return chip(known.kind, known.sign, known.word);
    return chip("other", "●", typeof part === "string" ? part : JSON.stringify(part));
  });
  if (chips.length === 0) chips.push(chip("clear", "○", "trusted, public"));
  return h("span", { class: "label" }, ...chips);
}

function chip(kind: string, sign: string, word: string): HTMLElement {
  return h("span", { class: `chip ${kind}` }, h("span", { "aria-hidden": "true" }, sign), ` ${word}`);
}
