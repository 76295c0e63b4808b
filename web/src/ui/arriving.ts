// Replies that arrive, above the requests of a run that is under way.

import { h } from "../dom.ts";
import { kindsOf, label } from "../labels.ts";
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
        const ends = new Map([...element.querySelectorAll("pre")].map((text) => [text.id, isAtEnd(text)]));
        element.replaceChildren(...replies.map(reply));
        // Whoever has scrolled back stays there.
        for (const text of element.querySelectorAll("pre")) if (ends.get(text.id) ?? true) text.scrollTop = text.scrollHeight;
      }
    } catch {
      // The page says elsewhere that nobody answers.
    }
    if (!isClosed) setTimeout(() => void look(), PAUSE);
  };
  void look();
  return { element, close: () => void (isClosed = true) };
}

/** Whether the end of a text that scrolls is in view. */
function isAtEnd(text: HTMLElement): boolean {
  return text.scrollHeight - text.scrollTop - text.clientHeight < 8;
}

function reply(of: Arriving): HTMLElement {
  const who = of.purpose ? `${of.model} for ${of.purpose}` : of.model;
  const typed = of.value === null ? [] : [h("p", {}, h("b", {}, "So far: "), h("code", {}, JSON.stringify(of.value)), state(of.open))];
  return h(
    "div",
    { class: "step" },
    h("p", {}, h("b", {}, "Arriving: "), h("code", {}, who), " ", label(of.label)),
    of.retry ? h("p", { class: "warning" }, `Attempt ${of.retry.number + 1}. The one before failed: ${of.retry.cause}`) : null,
    ...typed,
    of.before > 0 ? h("p", { class: "muted" }, `after ${of.before.toLocaleString("en")} earlier bytes`) : null,
    of.text === "" ? null : h("pre", { id: `reply-${of.request}`, class: `term messages ${kindsOf(of.label)}`, tabindex: 0, role: "group", "aria-label": `Reply of ${who} so far` }, of.text),
  );
}

/** What is being written. */
function state(open: Arriving["open"]): HTMLElement {
  if (open === null) return h("span", { class: "muted" }, " (whole)");
  return h("span", { class: "muted" }, open.length === 0 ? "" : ` (writing ${open.join(".")})`);
}
