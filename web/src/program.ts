// The program as a picture, and what its bound consists of: for the playground and `entail ui`.

import { h } from "./dom.ts";
import { inline } from "./markdown.ts";
import type { CostLine } from "./protocol.ts";

/** The picture of a program. As an image it can neither run scripts nor load anything. */
export function picture(svg: string, name: string): HTMLElement {
  const src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  const alt = `The term of ${name} as a graph of its model calls, tool calls, choices and loops`;
  return h("div", { class: "picture", role: "group", "aria-label": "Picture", tabindex: 0 }, h("img", { src, alt }));
}

/** What the bound consists of: the calls of the most expensive path, each loop with its calls below it. */
export function costPath(lines: CostLine[], place: (at: string) => HTMLElement): HTMLElement[] {
  if (lines.length === 0) return [];
  const top = h("ul", { class: "path" });
  const lists = [top];
  for (const { depth, place: at, text } of lines) {
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
    into.append(h("li", {}, ...inline(text), " ", place(at)));
  }
  return [h("h2", {}, "The most expensive path"), top];
}
