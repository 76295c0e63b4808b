// Questions to the module and its answers, as `crates/web` has them.

export interface Document {
  path: string;
  text: string;
  policy?: string;
}

export interface Fix {
  title: string;
  from: number;
  to: number;
  replacement: string;
  applicability: "safe" | "unsafe";
}

export interface Evidence {
  text: string;
  line?: number;
  column?: number;
  from?: number;
  to?: number;
}

export interface Finding {
  code: string;
  level: "error" | "warn" | "info" | "unknown";
  message: string;
  help?: string;
  meaning?: string;
  file: "main" | "policy";
  line?: number;
  column?: number;
  from: number;
  to: number;
  evidence?: Evidence[];
  fix?: Fix;
}

export interface Interval {
  least: number;
  most: number | null;
}

export interface FlowSource {
  place: string;
  what: string;
  label: unknown;
  breaks: boolean;
}

export interface FlowCheck {
  what: string;
  most: unknown;
  bound: unknown;
  verdict: string;
  restsOnInput: boolean;
  sources: FlowSource[];
}

export interface FlowSite {
  place: string;
  sink: string;
  name: string | null;
  verdict: "always" | "depends" | "never";
  checks: FlowCheck[];
}

export interface Entry {
  entry: string;
  isDefault: boolean;
  input: string | null;
  type: string;
  effects: string;
  complete: boolean;
  dynamic: string[];
  modelCalls: Interval;
  toolCalls: Interval;
  inputTokens: Interval;
  outputTokens: Interval;
  usd: Interval;
  unpriced: { model: string; calls: number }[];
  unbounded: { place: string; why: string }[];
  flow: {
    sites: FlowSite[];
    result: unknown;
    error: unknown;
    gaveUp: { place: string; why: string } | null;
  };
  term: string;
}

export interface Checked {
  findings: Finding[];
  entries: Entry[];
}

/** Where a label comes from, as a trace has it. */
export interface Explained {
  of: string;
  label: unknown;
  from: { component: string; says: string; ways: { says: string; path?: string; line?: number; column?: number }[][] }[];
}

export interface RequestLine {
  event: "request";
  n: number;
  kind: string;
  channel: unknown;
  place?: number[];
  path?: string;
  line?: number;
  column?: number;
  model?: string;
  purpose?: string;
  tool?: string;
  key?: string;
  args?: unknown;
  value?: unknown;
  earlier?: number;
  messages?: { role: string; content?: string; tool?: string; args?: unknown }[];
  why?: Explained[];
}

export interface ResponseLine {
  event: "response";
  n: number;
  [answer: string]: unknown;
}

export type Line =
  | RequestLine
  | ResponseLine
  | { event: "end"; label: unknown }
  | { event: "run" | "phase" | "value" | "endorsement" | "replan" };

export interface Ran {
  trace: Line[];
  outcome: {
    usage: { modelCalls: number; toolCalls: number };
    bound: { modelCalls: number | null; toolCalls: number | null };
  };
  /** The result as text; `null` if the run failed. */
  shown: string | null;
  findings: Finding[];
  unused: number;
}

export interface Completion {
  label: string;
  kind: string;
  insert: string | null;
  detail: string | null;
  about: string | null;
}

export type Question =
  | ({ query: "check" } & Document)
  | ({ query: "picture"; entry: string } & Document)
  | ({ query: "run"; entry: string; input: string | null; script: string; now: number } & Document)
  | ({ query: "hover"; at: number } & Document)
  | ({ query: "complete"; at: number } & Document)
  | ({ query: "format" } & Document);

/** An answer, or the reason why there is none. */
export type Answer<T> = T | { error: string; help?: string | null };

/** What the worker is sent, and what it sends. */
export type ToWorker = { id: number; question: Question };
export type FromWorker = { ready: true } | { id: number; answer: string } | { id: number; crashed: string };
