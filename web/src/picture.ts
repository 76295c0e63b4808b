// Pictures that the module or the command has drawn.

import { h } from "./dom.ts";

/** The picture of a program. As an image it can neither run scripts nor load anything. */
export function picture(svg: string, name: string): HTMLElement {
  return image(svg, `The term of ${name} as a graph of its model calls, tool calls, choices and loops`);
}

/** A picture that may be wider than the page. */
export function image(svg: string, alt: string): HTMLElement {
  const src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  return h("div", { class: "picture", role: "group", "aria-label": "Picture", tabindex: 0 }, h("img", { src, alt }));
}
