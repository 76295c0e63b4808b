// The panels of the VS Code extension: the views of `entail ui`, and the program of the editor.

import { byId } from "../dom.ts";
import { type AboutUi, get } from "../ui/api.ts";
import { close, countWaiting, show } from "../ui/shell.ts";
import { reachBy, transport } from "../ui/transport.ts";
import { failed } from "../ui/view.ts";
import { auditView, programView } from "./program.ts";
import { post, throughExtension } from "./transport.ts";

const main = byId("view");
let ui: Promise<AboutUi> | null = null;
let stopCounting: (() => void) | null = null;

/** The editor's theme, light or dark. */
function theme(): void {
  const isLight = document.body.classList.contains("vscode-light") || document.body.classList.contains("vscode-high-contrast-light");
  document.documentElement.dataset.theme = isLight ? "light" : "dark";
}

async function changed(): Promise<void> {
  const hash = transport().shown();
  const [, name = "runs"] = hash.split("/");
  const ofEditor = name === "program" || name === "audit";
  byId("views").hidden = ofEditor;
  try {
    if (ofEditor) {
      close();
      document.title = name === "program" ? "Program, Entail" : "Audit, Entail";
      await (name === "program" ? programView(main) : auditView(main));
    } else {
      ui ??= get<AboutUi>("/api/about");
      const about = await ui;
      byId("journal").textContent = about.journal;
      stopCounting ??= countWaiting();
      show(main, about);
    }
  } catch (problem) {
    ui = null;
    failed(main, problem);
  }
  post({ kind: "shown", hash, title: document.title.split(",")[0] ?? "Entail" });
}

reachBy(throughExtension(() => void changed()));
// The editor takes clicks on links for itself: these are followed here.
document.addEventListener(
  "click",
  (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const href = link?.getAttribute("href");
    if (!href) return;
    if (href.startsWith("#/")) transport().show(href);
    else if (link?.hasAttribute("download")) post({ kind: "save", path: href });
    else return;
    event.preventDefault();
    event.stopPropagation();
    main.focus();
  },
  true,
);
theme();
new MutationObserver(theme).observe(document.body, { attributes: true, attributeFilter: ["class"] });
post({ kind: "ready" });
