// Replies that arrive, above the requests of a run that is under way.

import { h } from "../dom.ts";
import { label } from "../labels.ts";
import { type Arriving, arriving } from "./api.ts";

/** Time between two looks, in milliseconds. */
const PAUSE = 400;

/** Shows the replies of a run that arrive, as long as `isUnderWay` says so and until it is told to stop. */
export function followReplies(id: string, isUnderWay: () => boolean): { element: HTMLElement; close(): void } {
  const element = h("section", { class: "arriving", "aria-label": "Replies that arrive", hidden: true });
  let isClosed = false;
  let shown = "";
  const look = async () => {
    if (isClosed) return;
    try {
      const replies = isUnderWay() ? await arriving(id) : [];
      const now = JSON.stringify(replies);
      if (!isClosed && now !== shown) {
        shown = now;
        element.hidden = replies.length === 0;
        element.replaceChildren(...replies.map(reply));
      }
    } catch {
      // The page says elsewhere that nobody answers.
    }
    if (!isClosed) setTimeout(() => void look(), PAUSE);
  };
  void look();
  return { element, close: () => void (isClosed = true) };
}

function reply(of: Arriving): HTMLElement {
  const who = of.purpose ? `${of.model} for ${of.purpose}` : of.model;
  const typed = of.value === null ? [] : [h("p", {}, h("b", {}, "So far: "), h("code", {}, JSON.stringify(of.value)), state(of.open))];
  return h(
    "div",
    { class: "step" },
    h("p", {}, h("b", {}, "Arriving: "), h("code", {}, who), " ", label(of.label)),
    ...typed,
    of.before > 0 ? h("p", { class: "muted" }, `after ${of.before.toLocaleString("en")} earlier bytes`) : null,
    h("pre", { class: "term" }, of.text),
  );
}

/** What is being written. */
function state(open: Arriving["open"]): HTMLElement {
  if (open === null) return h("span", { class: "muted" }, " (whole)");
  return h("span", { class: "muted" }, open.length === 0 ? "" : ` (writing ${open.join(".")})`);
}
