// Labels as words, with a sign and a color: color is never the only sign.

import { h } from "./dom.ts";

interface Chip {
  kind: "untrusted" | "secret" | "clear" | "other";
  sign: string;
  word: string;
}

const UNTRUSTED: Chip = { kind: "untrusted", sign: "▲", word: "untrusted" };
const SECRET: Chip = { kind: "secret", sign: "◆", word: "secret" };
const CLEAR: Chip = { kind: "clear", sign: "○", word: "trusted, public" };
const UNKNOWN: Chip = { kind: "other", sign: "?", word: "label not known" };

/** Shows a label as a run, a check or a trace has it: a list of components, or whatever its lattice writes. */
export function label(value: unknown): HTMLElement {
  return h("span", { class: "label" }, ...chips(value).map(chip));
}

/** The kinds of the components of a label, as classes of what has the label. */
export function kindsOf(value: unknown): string {
  return [...new Set(chips(value).map(({ kind }) => kind))].join(" ");
}

function chips(value: unknown): Chip[] {
  if (value === null || value === undefined) return [UNKNOWN];
  if (typeof value === "object" && "sources" in value && "readers" in value) return named(value.sources, value.readers);
  const parts = Array.isArray(value) ? value : [value];
  return parts.length === 0 ? [CLEAR] : parts.map(component);
}

function component(part: unknown): Chip {
  if (part === "U") return UNTRUSTED;
  if (part === "S") return SECRET;
  return { kind: "other", sign: "●", word: typeof part === "string" ? part : JSON.stringify(part) };
}

/** A label of sources and readers. */
function named(sources: unknown, readers: unknown): Chip[] {
  const out: Chip[] = [];
  if (sources === "*") out.push(UNTRUSTED);
  else if (Array.isArray(sources) && sources.length > 0) out.push({ ...UNTRUSTED, word: `from ${sources.join(", ")}` });
  if (Array.isArray(readers)) {
    out.push(readers.length === 0 ? SECRET : { ...SECRET, word: `for ${readers.join(", ")} only` });
  }
  return out.length > 0 ? out : [CLEAR];
}

function chip({ kind, sign, word }: Chip): HTMLElement {
  return h("span", { class: `chip ${kind}` }, h("span", { "aria-hidden": "true" }, sign), ` ${word}`);
}
