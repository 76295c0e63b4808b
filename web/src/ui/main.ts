// The page of `entail ui`.

import "../theme.ts";
import { byId, h } from "../dom.ts";
import { type AboutUi, Refused, get, send } from "./api.ts";
import { close, countWaiting, show } from "./shell.ts";
import { failed } from "./view.ts";

const main = byId("view");

/** Exchanges the token of the link for a session. It does not stay in the address. */
async function enter(): Promise<void> {
  const token = /^#token=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (!token) return;
  history.replaceState(null, "", "#/runs");
  await send("/api/session", { token });
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
      show(main, ui);
      byId("view").focus();
    });
    show(main, ui);
    countWaiting();
    byId("leave").addEventListener("click", () => void leave());
  } catch (problem) {
    failed(main, problem);
    byId("leave").hidden = true;
  }
}

async function leave(): Promise<void> {
  await send("/api/session", null, "DELETE").catch((why) => why instanceof Refused);
  close();
  main.replaceChildren(h("p", {}, "This browser is signed out. Start ", h("code", {}, "entail ui"), " again for a new link."));
  byId("leave").hidden = true;
}

void begin();
