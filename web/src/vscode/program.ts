// The program or configuration of the editor: what it entails, as a picture and in numbers; and what an audit
// of the workspace finds.

import { h } from "../dom.ts";
import { entails } from "../entails.ts";
import { image, picture } from "../picture.ts";
import type { Drawn, Entry } from "../protocol.ts";
import { get } from "../ui/api.ts";
import { transport } from "../ui/transport.ts";

/** The file of the editor, with what `entail check`, `cost` and `compile` say of it. */
interface OfEditor {
  /** The file, as the user knows it. */
  name: string;
  /** The same with its folder, for places. */
  path: string;
  entries: (Entry & Drawn)[];
  /** Why nothing can be said, if so. */
  error: string | null;
}

export async function programView(main: HTMLElement): Promise<void> {
  if (main.childElementCount === 0) main.replaceChildren(h("p", { class: "muted", role: "status" }, "Loading …"));
  const { name, path, entries, error } = await get<OfEditor>("/editor/program");
  const show = (at: string) => {
    const [line, column] = at.split(":").slice(-2).map(Number);
    transport().open?.(path, line ?? 1, column ?? 1);
  };
  const parts = entries.map((entry) => {
    const drawn = entry.svg ? picture(entry.svg, entry.entry) : h("p", { class: "empty" }, entry.error ?? "");
    return h("section", { "aria-label": entry.entry }, h("h2", { class: "title" }, entry.entry), drawn, entails(entry, show));
  });
  const nothing = error ?? "There is no entry point to show. The findings of the editor may say why.";
  main.replaceChildren(h("p", { class: "muted" }, name), ...(parts.length > 0 ? parts : [h("p", { class: "warning", role: "alert" }, nothing)]));
  document.documentElement.dataset.shown = String(Number(document.documentElement.dataset.shown ?? 0) + 1);
}

export async function auditView(main: HTMLElement): Promise<void> {
  main.replaceChildren(h("p", { class: "muted", role: "status" }, "Reading the workspace …"));
  const { svg, error } = await get<Drawn>("/editor/audit");
  const alt = "Attack paths of the workspace: what brings text in, the models, and what acts. `entail audit` says the same as text";
  main.replaceChildren(
    h("h2", { class: "title" }, "Attack paths"),
    svg ? image(svg, alt) : h("p", { class: "warning", role: "alert" }, error ?? "There is no attack path."),
    h("p", { class: "muted" }, "The same as text, with the evidence of each step: ", h("code", {}, "entail audit"), "."),
  );
  document.documentElement.dataset.shown = String(Number(document.documentElement.dataset.shown ?? 0) + 1);
}
