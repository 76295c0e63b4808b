// One run, which may be going on; forks from it.

import { h } from "../dom.ts";
import type { About } from "../protocol.ts";
import { RunPage } from "../runpage.ts";
import type { Step } from "../steps.ts";
import { type AboutUi, Refused, type RunUpdate, follow, program, run as fetched, send } from "./api.ts";
import { followReplies } from "./arriving.ts";
import { transport } from "./transport.ts";
import { type View, failed, quoted, stateChip } from "./view.ts";

export function runView(main: HTMLElement, id: string, at: number | null, ui: AboutUi): View {
  const head = h("div", { class: "run-head" });
  const live = h("p", { class: "muted", role: "status" });
  const body = h("section", { "aria-label": "Run" });
  const page = new RunPage(body, { fork: (step, item) => fork(step, item), program: () => program(id), open: transport().open });
  const replies = followReplies(id, () => page.about.run?.state === "running");
  let revision: string | undefined;
  let isShown = false;
  let isBusy = false;
  let isStale = false;
  let isClosed = false;

  function heading(about: About): void {
    const run = about.run;
    if (!run) return;
    const reader = h("input", { id: "reader", autocomplete: "off", spellcheck: "false", size: 12, placeholder: "everything" });
    const link = h("a", { class: "button", download: true, href: address("") }, "Download as a page");
    reader.addEventListener("input", () => link.setAttribute("href", address(reader.value.trim())));
    head.replaceChildren(
      h("h2", { class: "title" }, run.name ?? run.id, " ", stateChip(run.state ?? run.status ?? "")),
      h(
        "p",
        { class: "muted" },
        `run ${run.id}`,
        ...(run.parent ? [", fork of ", h("a", { href: `#/runs/${run.parent}` }, run.parent), " (", h("a", { href: `#/compare/${run.parent}/${run.id}` }, "compare"), ")"] : []),
      ),
      run.state === "waiting" ? h("p", {}, h("a", { href: "#/approvals" }, "Answer what it waits for")) : "",
      h("p", { class: "controls" }, link, h("label", {}, "as far as a principal may see: ", reader)),
    );
  }

  const address = (reader: string) => {
    const query = reader ? `?for=${encodeURIComponent(reader)}` : "";
    return `/api/runs/${encodeURIComponent(id)}/page${query}`;
  };

  function shown(update: RunUpdate): void {
    if (!isShown || update.about.run?.state !== page.about.run?.state) heading(update.about);
    page.update(update.about, update.keep, update.lines);
    if (!isShown) main.replaceChildren(head, live, replies.element, body);
    isShown = true;
  }

  async function load(): Promise<void> {
    // What changes while a run is read is read next.
    if (isBusy) return void (isStale = true);
    isBusy = true;
    try {
      let update = await fetched(id, revision, !isShown);
      if (isClosed) return;
      const isFirst = revision === undefined;
      if (update.more) {
        // A long run takes seconds to read.
        live.textContent = `Reading the rest of ${update.more.toLocaleString("en")} answers …`;
        shown(update);
        update = await fetched(id);
        if (isClosed) return;
        live.textContent = "";
      }
      revision = update.revision;
      // A form that somebody is filling in stays.
      const form = body.querySelector("form");
      if (isFirst || !form) {
        shown(update);
      } else revision = undefined;
      if (isFirst && at !== null) page.goTo(at);
      document.documentElement.dataset.revision = update.revision;
    } catch (problem) {
      if (!isClosed) failed(main, problem);
    } finally {
      isBusy = false;
      if (isStale && !isClosed) {
        isStale = false;
        void load();
      }
    }
  }

  /** Asks for the answer of a fork, below a step. */
  function fork(step: Step, item: HTMLElement): void {
    item.querySelector("form")?.remove();
    const isModel = step.request.kind === "model";
    const before = step.response as Record<string, unknown> | undefined;
    const usual = isModel ? String(before?.reply ?? "") : JSON.stringify(before?.data ?? null);
    const kind = h("select", {}, ...(isModel ? ["reply", "error"] : ["data", "error"]).map((k) => h("option", { value: k }, k === "data" ? "result (JSON)" : k)));
    const text = h("textarea", { rows: 3, spellcheck: "false" }, usual);
    const said = h("p", { role: "status" });
    const form = h(
      "form",
      { class: "fork" },
      h("p", {}, h("label", {}, "Another ", kind), " ", h("label", { class: "wide" }, h("span", { class: "hidden" }, "Answer"), text)),
      h("p", {}, h("button", { class: "fix" }, "Make the fork"), " ", h("button", { type: "button", on: { click: () => form.remove() } }, "Cancel")),
      said,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void make();
    });
    const make = async () => {
      let value: unknown = text.value;
      if (kind.value === "data") {
        try {
          value = JSON.parse(text.value);
        } catch {
          said.textContent = "The result is not JSON. A text stands in quotes.";
          return;
        }
      }
      try {
        const made = await send<{ run: string }>(`/api/runs/${encodeURIComponent(id)}/fork`, {
          step: step.kept?.step,
          response: { [kind.value]: value },
        });
        const { program, entry } = page.lines.head;
        const command = `entail run ${quoted(program ?? "FILE")} --pipeline ${quoted(entry ?? "")} --journal ${quoted(ui.named)} --resume ${made.run}`;
        form.replaceChildren(
          h("p", {}, "The fork is ", h("a", { href: `#/runs/${made.run}` }, `run ${made.run.slice(0, 12)}…`), ". This continues it, in the folder where the first run was begun and with its options, such as --script:"),
          h("pre", {}, h("code", {}, command)),
          h("p", {}, h("a", { href: `#/compare/${id}/${made.run}` }, "Compare both")),
        );
        form.querySelector("a")?.focus();
      } catch (problem) {
        said.textContent = problem instanceof Refused ? problem.message : String(problem);
      }
    };
    item.append(form);
    text.focus();
    text.select();
  }

  main.replaceChildren(h("p", { class: "muted", role: "status" }, "Loading …"));
  const stop = follow(
    `/api/runs/${encodeURIComponent(id)}/events`,
    () => void load(),
    (connected) => (live.textContent = connected ? "" : "No connection to `entail ui`; trying again …"),
  );
  void load();
  const close = () => {
    isClosed = true;
    replies.close();
    stop();
  };
  return { title: "Run", close };
}
