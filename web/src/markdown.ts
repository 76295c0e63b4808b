// The small part of Markdown that explanations use: paragraphs, fenced code, `code` and **bold**.

import { h } from "./dom.ts";

export function markdown(text: string): HTMLElement {
  const out = h("div", { class: "markdown" });
  for (const [i, block] of text.split("```").entries()) {
    if (i % 2 === 1) {
      const code = block.replace(/^[a-z]*\n/, "").trimEnd();
      out.append(h("pre", {}, h("code", {}, code)));
      continue;
    }
    for (const paragraph of block.split(/\n{2,}/)) {
      if (paragraph.trim()) out.append(h("p", {}, ...inline(paragraph.trim())));
    }
  }
  return out;
}

/** A line with `code` and **bold**. */
export function inline(text: string): Node[] {
  return text.split(/(`[^`]*`|\*\*[^*]+\*\*)/).map((part): Node => {
    if (part.length > 1 && part.startsWith("`") && part.endsWith("`")) return h("code", {}, part.slice(1, -1));
    if (part.length > 4 && part.startsWith("**")) return h("strong", {}, part.slice(2, -2));
    return document.createTextNode(part);
  });
}
