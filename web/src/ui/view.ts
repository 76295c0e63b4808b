// What the views of the page share.

import { h } from "../dom.ts";
import { inline } from "../markdown.ts";
import { Refused } from "./api.ts";

/** A view that is shown, until another one is. */
export interface View {
  title: string;
  close?(): void;
}

const SIGNS: Record<string, string> = { running: "▶", waiting: "◷", interrupted: "⚡", stopped: "■", failed: "✖", done: "✔" };

/** The state of a run, with a sign. */
export function stateChip(state: string): HTMLElement {
  return h("span", { class: `state ${state}` }, h("span", { "aria-hidden": "true" }, SIGNS[state] ?? "?"), ` ${state}`);
}

/** Shows why something can't be shown. */
export function failed(main: HTMLElement, problem: unknown): void {
  const help = problem instanceof Refused ? problem.help : null;
  const message = problem instanceof Error ? problem.message : String(problem);
  main.replaceChildren(
    h("div", { role: "alert" }, h("p", { class: "warning" }, ...inline(message)), help ? h("p", { class: "help" }, h("b", {}, "Help: "), ...inline(help)) : null),
  );
}

/** A word for a shell. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_\-./:@+,=]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
