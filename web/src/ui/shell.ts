// The views of a journal: runs, one run, approvals, two runs compared. The part behind the # says which.

import { byId } from "../dom.ts";
import { type AboutUi, follow, get } from "./api.ts";
import { compareView } from "./compare.ts";
import { inboxView } from "./inbox.ts";
import { listView } from "./list.ts";
import { runView } from "./run.ts";
import { transport } from "./transport.ts";
import type { View } from "./view.ts";

let view: View | null = null;

/** Shows what the address names. */
export function show(main: HTMLElement, ui: AboutUi): void {
  view?.close?.();
  const [, name = "runs", ...rest] = transport().shown().split("/");
  const [first, second] = rest.map(decodeURIComponent);
  if (name === "approvals") view = inboxView(main, ui);
  else if (name === "compare" && first && second) view = compareView(main, [first, second]);
  else if (name === "runs" && first) view = runView(main, first, second ? Number(second) : null, ui);
  else view = listView(main, ui);
  document.title = `${view.title}, Entail`;
  for (const link of document.querySelectorAll("nav a")) {
    const isIt = link.getAttribute("href") === `#/${name === "approvals" ? "approvals" : "runs"}`;
    if (isIt) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Ends what is shown. */
export function close(): void {
  view?.close?.();
  view = null;
}

/** Keeps the number of calls that wait beside the link to them. */
export function countWaiting(): () => void {
  const count = async () => {
    const { approvals } = await get<{ approvals: unknown[] }>("/api/approvals");
    byId("waiting").textContent = approvals.length > 0 ? ` (${approvals.length.toLocaleString("en")})` : "";
  };
  return follow("/api/events", () => void count().catch(() => {}));
}
