// Highlighting by the TextMate grammars of the editors, so that there is one description of each language.

import { StreamLanguage, type StreamParser, type StringStream } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import agent from "../../editors/vscode/syntaxes/agent.tmLanguage.json";
import lam from "../../editors/vscode/syntaxes/lam.tmLanguage.json";

interface Rule {
  name?: string;
  match?: string;
  begin?: string;
  end?: string;
  include?: string;
  patterns?: Rule[];
}

interface Grammar {
  patterns: Rule[];
  repository?: Record<string, Rule>;
}

interface Compiled {
  tag: string;
  start: RegExp;
  /** Where a rule of several lines ends, and what is inside. */
  until?: RegExp;
  inside: Compiled[];
}

interface State {
  open: Compiled[];
}

const TAGS = {
  comment: tags.comment,
  string: tags.string,
  number: tags.number,
  constant: tags.atom,
  keyword: tags.keyword,
  operator: tags.operator,
  storage: tags.definitionKeyword,
  modifier: tags.modifier,
  type: tags.typeName,
  variable: tags.special(tags.variableName),
};

/** The name in `TAGS` for a scope of TextMate. */
function tagOf(scope: string): string {
  if (scope.startsWith("comment")) return "comment";
  if (scope.startsWith("string")) return "string";
  if (scope.startsWith("constant.numeric")) return "number";
  if (scope.startsWith("constant")) return "constant";
  if (scope.startsWith("keyword.operator")) return "operator";
  if (scope.startsWith("keyword")) return "keyword";
  if (scope.startsWith("storage.modifier")) return "modifier";
  if (scope.startsWith("storage")) return "storage";
  if (scope.startsWith("variable")) return "variable";
  return scope.includes("type") ? "type" : "";
}

function compile(rules: Rule[], grammar: Grammar): Compiled[] {
  return rules.flatMap((rule) => {
    if (rule.include) {
      const included = grammar.repository?.[rule.include.slice(1)];
      return included ? compile([included], grammar) : [];
    }
    const tag = tagOf(rule.name ?? "");
    if (rule.begin && rule.end) {
      const inside = compile(rule.patterns ?? [], grammar);
      return [{ tag, start: new RegExp(rule.begin, "uy"), until: new RegExp(rule.end, "uy"), inside }];
    }
    if (rule.match) return [{ tag, start: new RegExp(rule.match, "uy"), inside: [] }];
    return compile(rule.patterns ?? [], grammar);
  });
}

function parser(grammar: Grammar): StreamParser<State> {
  const top = compile(grammar.patterns, grammar);
  const takes = (stream: StringStream, pattern: RegExp): boolean => {
    pattern.lastIndex = stream.pos;
    const found = pattern.exec(stream.string);
    if (found) stream.pos += found[0].length;
    return found !== null;
  };
  return {
    startState: () => ({ open: [] }),
    copyState: (state) => ({ open: [...state.open] }),
    token(stream, state) {
      const open = state.open.at(-1);
      const start = stream.pos;
      if (open?.until && takes(stream, open.until)) {
        state.open.pop();
        if (stream.pos > start) return open.tag;
      }
      const rules = state.open.at(-1)?.inside ?? top;
      for (const rule of rules) {
        if (takes(stream, rule.start) && stream.pos > start) {
          if (rule.until) state.open.push(rule);
          return rule.tag || null;
        }
      }
      // A word is taken whole: a keyword does not begin in the middle of one.
      if (!stream.match(/^[\p{L}\p{N}_]+/u)) stream.next();
      return state.open.at(-1)?.tag ?? null;
    },
    tokenTable: TAGS,
    languageData: { commentTokens: { line: grammar === (lam as Grammar) ? "#" : "--" } },
  };
}

export const agentLanguage = StreamLanguage.define(parser(agent as Grammar));
export const lamLanguage = StreamLanguage.define(parser(lam as Grammar));
