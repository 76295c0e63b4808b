// The editors. Each is in a shadow root: there CodeMirror adds its styles without a `<style>` element, which
// the page's security policy does not allow.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { python } from "@codemirror/lang-python";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { StreamLanguage } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import {
  EditorView,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { h } from "./dom.ts";
import { agentLanguage, lamLanguage } from "./grammar.ts";
import { markdown } from "./markdown.ts";
import type { Completion, Finding } from "./protocol.ts";

/** What an editor asks of the page. */
export interface Services {
  changed(): void;
  hover?(at: number): Promise<{ markdown: string | null; range: [number, number] | null }>;
  complete?(at: number): Promise<Completion[]>;
}

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--editor)", color: "var(--text)", height: "100%", fontSize: "0.875rem" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)", padding: "0.5rem 0" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selection) !important",
  },
  ".cm-gutters": { backgroundColor: "var(--editor)", color: "var(--muted)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--active)" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--border)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-hover": { padding: "0.25rem 0.75rem", maxWidth: "32rem" },
  ".cm-diagnostic": { fontFamily: "inherit", padding: "0.35rem 0.6rem" },
  ".cm-diagnosticAction": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-matchingBracket": { backgroundColor: "var(--selection) !important" },
});

/**
 * Typing over a selection. Chromium would put the new text into an element with the inline style of the old one,
 * which the security policy does not allow.
 */
const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { from, to, empty } = view.state.selection.main;
    const text = event.data;
    if (event.inputType !== "insertText" || text === null || empty) return false;
    const insert = () =>
      view.state.update({ ...view.state.replaceSelection(text), userEvent: "input.type", scrollIntoView: true });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handler) => handler(view, from, to, text, insert))) view.dispatch(insert());
    return true;
  },
});

const highlighting = HighlightStyle.define([
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.atom, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.keyword, tags.definitionKeyword], color: "var(--code-keyword)", fontWeight: "600" },
  { tag: tags.modifier, color: "var(--code-label)", fontWeight: "600" },
  { tag: [tags.typeName, tags.className], color: "var(--code-type)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-type)" },
  { tag: tags.special(tags.variableName), color: "var(--code-string)", fontWeight: "600" },
]);

function languageOf(path: string): Extension {
  if (path.endsWith(".agent")) return agentLanguage;
  if (path.endsWith(".lam")) return lamLanguage;
  if (path.endsWith(".py")) return python();
  if (path.endsWith(".json")) return json();
  if (path.endsWith(".toml")) return StreamLanguage.define(toml);
  return yaml();
}

export class Editor {
  readonly view: EditorView;
  readonly #language = new Compartment();

  constructor(host: HTMLElement, name: string, path: string, services: Services) {
    const root = host.attachShadow({ mode: "open" });
    const extensions: Extension[] = [
      lineNumbers(),
      highlightActiveLineGutter(),
      history(),
      drawSelection(),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      syntaxHighlighting(highlighting),
      this.#language.of(languageOf(path)),
      lintGutter(),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
      theme,
      EditorView.lineWrapping,
      replacing,
      EditorView.contentAttributes.of({ "aria-label": name, tabindex: "0" }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) services.changed();
      }),
    ];
    const { complete, hover } = services;
    if (complete) {
      extensions.push(
        autocompletion({
          activateOnTyping: true,
          override: [
            async (context) => {
              const word = context.matchBefore(/[\p{L}\p{N}_]*/u);
              if (!context.explicit && (!word || word.from === word.to)) return null;
              const items = await complete(context.pos);
              const options = items.map((item) => ({
                label: item.label,
                type: item.kind,
                apply: item.insert ?? undefined,
                detail: item.detail ?? undefined,
                info: item.about ? () => markdown(item.about ?? "") : undefined,
              }));
              return { from: word?.from ?? context.pos, options };
            },
          ],
        }),
      );
    }
    if (hover) {
      extensions.push(
        hoverTooltip(async (_, pos) => {
          const { markdown: text, range } = await hover(pos);
          if (!text) return null;
          const create = () => ({ dom: h("div", { class: "cm-hover" }, markdown(text)) });
          return { pos: range?.[0] ?? pos, end: range?.[1] ?? pos, create };
        }),
      );
    }
    this.view = new EditorView({ state: EditorState.create({ extensions }), parent: root, root });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  /** Replaces the whole text, as a step that can be undone. */
  set text(text: string) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  set path(path: string) {
    this.view.dispatch({ effects: this.#language.reconfigure(languageOf(path)) });
  }

  /** Replaces a part. */
  replace(from: number, to: number, insert: string): void {
    const length = this.view.state.doc.length;
    this.view.dispatch({ changes: { from: Math.min(from, length), to: Math.min(to, length), insert } });
  }

  /** Selects a place and moves the focus there, if it is to. */
  show(from: number, to: number, focus = true): void {
    const length = this.view.state.doc.length;
    const [anchor, head] = [Math.min(from, length), Math.min(to, length)];
    this.view.dispatch({ selection: { anchor, head }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    if (focus) this.view.focus();
  }

  /** The offset of a line and a column, both from 1. */
  offset(line: number, column: number): number {
    const doc = this.view.state.doc;
    const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
    return Math.min(at.from + Math.max(column - 1, 0), at.to);
  }

  /** Marks findings. Those of an older text may point behind its end. */
  mark(findings: Finding[]): void {
    const length = this.view.state.doc.length;
    const diagnostics = findings.map((finding): Diagnostic => {
      const from = Math.min(finding.from, length);
      const fix = finding.fix;
      return {
        from,
        to: Math.min(Math.max(finding.to, from), length),
        severity: SEVERITIES[finding.level],
        source: finding.code,
        message: finding.help ? `${finding.message}\nhelp: ${finding.help}` : finding.message,
        actions: fix
          ? [{ name: "Apply fix", apply: () => this.replace(fix.from, fix.to, fix.replacement) }]
          : undefined,
      };
    });
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }
}

const SEVERITIES = { error: "error", warn: "warning", info: "info", unknown: "hint" } as const;
