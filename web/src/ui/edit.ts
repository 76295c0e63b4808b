// Other arguments for a call that waits: a field for each, by the type of its parameter.

import { h } from "../dom.ts";
import type { Approval, Argument } from "./api.ts";

export interface Edits {
  element: HTMLElement;
  /** The arguments that are other ones, or why they can't be read. */
  changed(): Record<string, unknown> | string;
}

type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

/** The form of an argument: how it is written, and read again. */
interface Form {
  field: Field;
  read(): unknown;
}

const NUMBERS: unknown[] = ["number", "integer"];

/**
 * The fields of a call, folded; `null` if nothing of it can be edited. `counted` is called with the number of
 * arguments that are other ones, whenever that changes.
 */
export function editor(approval: Approval, counted: (changed: number) => void): Edits | null {
  const known = approval.args.filter((arg) => arg.type !== null);
  if (known.length === 0) return null;
  const forms = known.map((arg) => ({ arg, form: formOf(arg) }));
  const isChanged = (arg: Argument, value: unknown) => JSON.stringify(value) !== JSON.stringify(arg.value);
  const changed = () => {
    const edit: Record<string, unknown> = {};
    for (const { arg, form } of forms) {
      try {
        const value = form.read();
        if (isChanged(arg, value)) edit[arg.name] = value;
      } catch {
        return `The argument ${arg.name} is not a value of type ${arg.type}.`;
      }
    }
    return edit;
  };
  const count = () => {
    const edit = changed();
    counted(typeof edit === "string" ? 0 : Object.keys(edit).length);
  };
  for (const { form } of forms) form.field.addEventListener("input", count);
  const label = ({ arg, form }: (typeof forms)[number]) =>
    h("p", {}, h("label", { class: "wide" }, h("span", {}, arg.name, " ", h("span", { class: "muted" }, `(${arg.type})`), " "), form.field));
  const element = h(
    "details",
    { class: "edit" },
    h("summary", {}, "Change the arguments"),
    h("p", { class: "muted" }, "The call is made with what stands here, in your name. The types and the policy are checked again."),
    ...forms.map(label),
  );
  return { element, changed };
}

function formOf({ schema, value }: Argument): Form {
  const kind = schema?.type;
  if (Array.isArray(schema?.enum)) return choice(schema.enum, value);
  if (kind === "boolean") return choice([true, false], value);
  if (kind === "string" && typeof value === "string") {
    const field = h("textarea", { rows: Math.min(8, value.split("\n").length), spellcheck: "false" }, value);
    return { field, read: () => field.value };
  }
  if (NUMBERS.includes(kind) && typeof value === "number") {
    const field = h("input", { inputmode: "decimal", autocomplete: "off", value: String(value) });
    return { field, read: () => json(field.value) };
  }
  const field = h("textarea", { rows: 3, spellcheck: "false" }, JSON.stringify(value, null, 1));
  return { field, read: () => json(field.value) };
}

/** One of a few values. */
function choice(values: unknown[], value: unknown): Form {
  const all = values.map((v) => JSON.stringify(v));
  const field = h("select", {}, ...all.map((text) => h("option", { value: text }, text.replace(/^"(.*)"$/, "$1"))));
  field.value = JSON.stringify(value);
  return { field, read: () => json(field.value) };
}

function json(text: string): unknown {
  return JSON.parse(text.trim()) as unknown;
}
