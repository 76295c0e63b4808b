// The page of `entail ui`: runs, one run, approvals, two runs compared. The part behind the # says which.

import "../theme.ts";
import { byId, h } from "../dom.ts";
import { type AboutUi, Refused, follow, get, send } from "./api.ts";
import { compareView } from "./compare.ts";
import { inboxView } from "./inbox.ts";
import { listView } from "./list.ts";
import { runView } from "./run.ts";
import { type View, failed } from "./view.ts";

const main = byId("view");
let view: View | null = null;

function show(ui: AboutUi): void {
  view?.close?.();
  const [, name = "runs", ...rest] = location.hash.split("/");
  const [first, second] = rest.map(decodeURIComponent);
  if (name === "approvals") view = inboxView(main, ui);
  else if (name === "compare" && first && second) view = compareView(main, [first, second]);
  else if (name === "runs" && first) view = runView(main, first, second ? Number(second) : null, ui);
  else view = listView(main);
  document.title = `${view.title}, Entail`;
  for (const link of document.querySelectorAll("nav a")) {
    const isIt = link.getAttribute("href") === `#/${name === "approvals" ? "approvals" : "runs"}`;
    if (isIt) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Exchanges the token of the link for a session. It does not stay in the address. */
async function enter(): Promise<void> {
  const token = /^#token=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (!token) return;
  history.replaceState(null, "", "#/runs");
  await send("/api/session", { token });
}

async function countWaiting(): Promise<void> {
  const { approvals } = await get<{ approvals: unknown[] }>("/api/approvals");
  byId("waiting").textContent = approvals.length > 0 ? ` (${approvals.length.toLocaleString("en")})` : "";
}

async function begin(): Promise<void> {
  try {
    let problem: unknown = null;
    await enter().catch((why) => (problem = why));
    const ui = await get<AboutUi>("/api/about").catch((why) => {
      throw problem ?? why;
    });
    byId("journal").textContent = ui.journal;
    window.addEventListener("hashchange", () => {
      show(ui);
      byId("view").focus();
    });
    show(ui);
    follow("/api/events", () => void countWaiting().catch(() => {}));
    byId("leave").addEventListener("click", () => void leave());
  } catch (problem) {
    failed(main, problem);
    byId("leave").hidden = true;
  }
}

async function leave(): Promise<void> {
  await send("/api/session", null, "DELETE").catch((why) => why instanceof Refused);
  view?.close?.();
  main.replaceChildren(h("p", {}, "This browser is signed out. Start ", h("code", {}, "entail ui"), " again for a new link."));
  byId("leave").hidden = true;
}

void begin();
