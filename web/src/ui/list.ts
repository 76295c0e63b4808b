// The list of runs, with filters.

import { h, plural } from "../dom.ts";
import { inline } from "../markdown.ts";
import { shownDuration, shownTime } from "../steps.ts";
import { type AboutUi, type RunEntry, type RunList, follow, get } from "./api.ts";
import { transport } from "./transport.ts";
import { type View, failed, stateChip } from "./view.ts";

const STATES = ["running", "waiting", "interrupted", "stopped", "failed", "done"];

export function listView(main: HTMLElement, ui: AboutUi): View {
  const state = h("select", { id: "state" }, h("option", { value: "" }, "any"), ...STATES.map((s) => h("option", { value: s }, s)));
  const program = h("input", { id: "program", type: "search", autocomplete: "off", spellcheck: "false" });
  const error = h("input", { id: "error", list: "errors", autocomplete: "off", spellcheck: "false", size: 12 });
  const errors = h("datalist", { id: "errors" }, ...ui.errors.map((code) => h("option", { value: code })));
  const rows = h("tbody", {});
  const summary = h("p", { class: "muted", role: "status", id: "summary" });
  const more = h("button", { type: "button", hidden: true, on: { click: () => void load(true) } }, "Show older runs");
  const chosen = new Set<string>();
  const compare = h("button", { type: "button", "aria-disabled": "true", on: { click: () => chosen.size === 2 && transport().show(`#/compare/${[...chosen].join("/")}`) } }, "Compare the two chosen runs");
  let next: string | null = null;
  let pages = 1;
  let asked = 0;

  const query = (after: string | null) => {
    const given = { state: state.value, program: program.value.trim(), error: error.value.trim(), after: after ?? "" };
    const set = Object.entries(given).filter(([, value]) => value !== "");
    return `/api/runs?${new URLSearchParams(set)}`;
  };

  const row = (run: RunEntry) => {
    const choose = h("input", { type: "checkbox", "aria-label": `Choose run ${run.id} for a comparison` });
    choose.checked = chosen.has(run.id);
    choose.addEventListener("change", () => {
      if (choose.checked) chosen.add(run.id);
      else chosen.delete(run.id);
      compare.setAttribute("aria-disabled", String(chosen.size !== 2));
    });
    const took = run.ended ? ` · ${shownDuration(Math.max(run.ended - run.created, 0))}` : "";
    return h(
      "tr",
      {},
      h("td", {}, choose),
      h("td", {}, stateChip(run.state)),
      h("td", {}, h("a", { href: `#/runs/${run.id}` }, run.name), run.parent ? h("span", { class: "muted" }, ` fork of ${run.parent.slice(0, 12)}`) : null),
      h("td", {}, run.error ? h("span", { class: "failure" }, h("b", {}, run.error.code), " ", ...inline(run.error.message)) : ""),
      h("td", { class: "when" }, shownTime(run.created), h("span", { class: "muted" }, ` · ${plural(run.answers, "answer")}${took}`)),
    );
  };

  async function load(older: boolean): Promise<void> {
    const mine = ++asked;
    try {
      let list: RunList;
      if (older) {
        list = await get<RunList>(query(next));
        if (mine !== asked) return;
        pages += 1;
        rows.append(...list.runs.map(row));
      } else {
        const all: RunEntry[] = [];
        let after: string | null = null;
        let page = 0;
        do {
          list = await get<RunList>(query(after));
          if (mine !== asked) return;
          all.push(...list.runs);
          after = list.next;
        } while (after && ++page < pages);
        const focused = document.activeElement?.getAttribute("href") ?? document.activeElement?.getAttribute("aria-label");
        rows.replaceChildren(...all.map(row));
        if (focused) rows.querySelector<HTMLElement>(`[href="${CSS.escape(focused)}"], [aria-label="${CSS.escape(focused)}"]`)?.focus();
      }
      next = list.next;
      more.hidden = next === null;
      const total = Object.values(list.counts).reduce((sum, n) => sum + n, 0);
      const waits = list.waiting > 0 ? `, ${plural(list.waiting, "waits", "wait")} for approval` : "";
      summary.textContent = `${rows.children.length.toLocaleString("en")} shown of ${plural(total, "run")}${waits}`;
      document.documentElement.dataset.listed = String(mine);
    } catch (problem) {
      failed(main, problem);
    }
  }

  const restart = () => {
    pages = 1;
    void load(false);
  };
  for (const field of [state, program, error]) field.addEventListener("input", restart);
  const head = (name: string) => h("th", { scope: "col" }, name);
  main.replaceChildren(
    h("h2", { class: "title" }, "Runs"),
    h("div", { class: "filters", role: "search" }, h("label", {}, "State ", state), h("label", {}, "Program ", program), h("label", {}, "Error ", error), errors, compare),
    summary,
    h("div", { class: "scroll" }, h("table", { class: "runs" }, h("thead", {}, h("tr", {}, head("Compare"), head("State"), head("Run"), head("Stopped by"), head("Began"))), rows)),
    more,
  );
  void load(false);
  return { title: "Runs", close: follow("/api/events", () => void load(false)) };
}
