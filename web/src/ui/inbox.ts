// The inbox: each call that waits for approval, with the facts, and the form that answers it.

import { h, plural } from "../dom.ts";
import { label } from "../labels.ts";
import { hasOrigin, origins, shownDuration, shownTime } from "../steps.ts";
import { type AboutUi, type Approval, type Decided, type Inbox, Refused, follow, get, send } from "./api.ts";
import { type Edits, editor } from "./edit.ts";
import { transport } from "./transport.ts";
import { type View, failed } from "./view.ts";

export function inboxView(main: HTMLElement, ui: AboutUi): View {
  const list = h("ul", { class: "inbox" });
  const status = h("p", { class: "muted", role: "status", id: "summary" });
  const cards = new Map<string, HTMLElement>();
  /** What each card says, as text. */
  const facts = new Map<string, string>();
  /** Answers that have been given here; their cards stay. */
  const answered = new Set<string>();

  async function load(): Promise<void> {
    try {
      const inbox = await get<Inbox>("/api/approvals");
      const waiting = new Set(inbox.approvals.map((a) => a.request));
      for (const [request, card] of cards) {
        if (waiting.has(request) || answered.has(request)) continue;
        // Somebody else has answered, or it has expired.
        card.classList.add("gone");
        card.querySelector("form")?.replaceWith(h("p", { class: "muted" }, "This question no longer waits: it was answered elsewhere, or has expired."));
        answered.add(request);
      }
      for (const approval of inbox.approvals) {
        const now = JSON.stringify(approval);
        const before = cards.get(approval.request);
        const card = before ?? h("li", { class: "card", "aria-labelledby": titleOf(approval) });
        if (facts.get(approval.request) !== now && !answered.has(approval.request)) {
          // A question may be there before all of its run is. What somebody has begun to answer stays.
          const active = document.activeElement;
          card.replaceChildren(...factsOf(approval), card.querySelector("form") ?? form(approval, inbox.keys));
          if (active instanceof HTMLElement && card.contains(active)) active.focus({ preventScroll: true });
        }
        facts.set(approval.request, now);
        cards.set(approval.request, card);
        if (!before) list.append(card);
      }
      const n = inbox.approvals.length;
      status.textContent = n === 0 ? "No call waits for approval." : `${plural(n, "call waits", "calls wait")} for approval.`;
      document.documentElement.dataset.inbox = String(Number(document.documentElement.dataset.inbox ?? 0) + 1);
    } catch (problem) {
      failed(main, problem);
    }
  }

  const titleOf = (approval: Approval) => `waits-${approval.request.slice(0, 16)}`;

  function factsOf(approval: Approval): HTMLElement[] {
    const parts = [
      h("h3", { id: titleOf(approval) }, "Call ", h("code", {}, approval.tool), "?"),
      h("p", { class: "muted" }, h("a", { href: `#/runs/${approval.run}${approval.n ? `/${approval.n}` : ""}` }, approval.name), ` asked ${shownTime(approval.asked)}, expires ${shownTime(approval.expires)}`),
      approval.refusedBefore !== null ? h("p", { class: "warning" }, `The same call was refused before, by request ${approval.refusedBefore} of this run.`) : null,
      h(
        "table",
        {},
        h("caption", {}, "Arguments"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Name"), h("th", { scope: "col" }, "Value"), h("th", { scope: "col" }, "Label"))),
        h("tbody", {}, ...approval.args.map((arg) => h("tr", {}, h("th", { scope: "row" }, arg.name), h("td", {}, h("code", {}, JSON.stringify(arg.value))), h("td", {}, label(arg.label))))),
      ),
      h("p", {}, h("b", {}, "The decision to make the call: "), approval.control === null ? "its label is not known" : label(approval.control)),
      approval.decided ? h("p", { class: "warning" }, "Untrusted data decided that this call is made. The labels say so of every argument.") : null,
      h("p", {}, h("b", {}, "Why you are asked: "), ...because(approval)),
      approval.why?.some(hasOrigin)
        ? h("div", {}, h("p", {}, h("b", {}, "Where the labels come from:")), origins(approval.why, { open: transport().open }))
        : h("p", { class: "muted" }, approval.because ? "Everything in the call is trusted and public." : "Where the labels come from is not known: the program was not kept."),
      h("p", {}, h("b", {}, "If you refuse: "), "the call is not made. The program gets an error with your reason and may go on without it. ", h("b", {}, "If nobody answers: "), `it is refused in ${shownDuration(Math.max(approval.expires - Date.now(), 0))}.`),
    ];
    return parts.filter((part) => part !== null);
  }

  function form(approval: Approval, keys: string[]): HTMLElement {
    if (keys.length === 0) {
      return h(
        "p",
        { class: "warning" },
        ui.approvers.length === 0
          ? "Nobody may answer: the settings had no [approvers] when this page was started. Make a key with “entail approve --new-key NAME”, and start the page again."
          : `You may not answer: this machine has the key of none of the approvers (${ui.approvers.join(", ")}).`,
      );
    }
    const approver = h("select", {}, ...keys.map((key) => h("option", { value: key }, key)));
    const reason = h("input", { autocomplete: "off", maxlength: 2000 });
    const passphrase = h("input", { type: "password", autocomplete: "off", required: true });
    const said = h("p", { role: "status" });
    const approve = h("button", { class: "fix", value: "approve" }, "Approve");
    const buttons = [approve, h("button", { class: "refuse", value: "deny" }, "Refuse")];
    const edits: Edits | null = editor(approval, (count) => {
      approve.textContent = count === 0 ? "Approve" : `Approve with ${plural(count, "other argument")}`;
    });
    const element = h(
      "form",
      { class: "answer" },
      edits ? edits.element : null,
      h("p", { class: "fields" }, h("label", {}, "Approver ", approver), h("label", {}, "Passphrase of the key ", passphrase)),
      h("p", {}, h("label", { class: "wide" }, "Reason, if you refuse ", reason)),
      h("p", {}, ...buttons.flatMap((button) => [button, " "])),
      said,
    );
    let isSent = false;
    element.addEventListener("submit", (event) => {
      event.preventDefault();
      const button = (event as SubmitEvent).submitter as HTMLButtonElement | null;
      if (!isSent && button) void answer(button.value as "approve" | "deny");
    });
    const answer = async (decision: "approve" | "deny") => {
      const edit = decision === "approve" ? (edits?.changed() ?? {}) : {};
      if (typeof edit === "string") return void (said.textContent = edit);
      // A second click sends nothing; the server takes one answer at most anyway.
      isSent = true;
      for (const button of buttons) button.disabled = true;
      said.textContent = "Signing …";
      const body = { decision, approver: approver.value, passphrase: passphrase.value, ...(Object.keys(edit).length > 0 ? { edit } : {}), ...(decision === "deny" && reason.value ? { reason: reason.value } : {}) };
      passphrase.value = "";
      try {
        answered.add(approval.request);
        const done = await send<Decided>(`/api/approvals/${encodeURIComponent(approval.request)}`, body);
        const word = done.verdict === "denied" ? "✖ Refused" : "✔ Approved";
        const other = done.verdict === "edited" ? [" with ", h("code", {}, JSON.stringify(edit)), " in place of what was asked,"] : [];
        const note = h("p", { class: "decided", tabindex: -1 }, h("b", {}, word), ...other, ` by ${done.by}. `, h("a", { href: `#/runs/${approval.run}` }, "See the run"));
        element.replaceWith(note);
        note.focus();
        void load();
      } catch (problem) {
        const help = problem instanceof Refused && problem.help ? ` (${problem.help})` : "";
        said.textContent = `${problem instanceof Error ? problem.message : problem}${help}`;
        if (problem instanceof Refused && (problem.status === 403 || problem.status === 422)) {
          answered.delete(approval.request);
          isSent = false;
          for (const button of buttons) button.disabled = false;
          passphrase.focus();
        }
      }
    };
    return element;
  }

  main.replaceChildren(h("h2", { class: "title" }, "Approvals"), status, list);
  void load();
  return { title: "Approvals", close: follow("/api/events", () => void load()) };
}

/** Why the policy asks. */
function because({ because: why, tool }: Approval): (Node | string)[] {
  if (!why) return ["not known: the program of the run was not kept."];
  if (why.kind === "always") return ["the policy wants approval of every call of ", h("code", {}, tool), "."];
  if (why.kind === "unknown") return ["not known."];
  if (why.parts.length === 0) return ["without approval this call would be refused."];
  const parts = why.parts.map(({ part, label: has, bound }) =>
    h("li", {}, part === "control" ? "the decision to make the call" : h("span", {}, "the argument ", h("code", {}, part)), " is ", label(has), ", and at most ", label(bound), " is allowed"),
  );
  return ["without approval this call would be refused:", h("ul", {}, ...parts)];
}
