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

/** A line of the most expensive path: a call, or how often the deeper lines below it happen. */
export interface CostLine {
  depth: number;
  place: string;
  text: string;
  /** The most that a call spends in a run, all repetitions around it included; `null` where no bound is known. */
  most?: { modelCalls: number | null; toolCalls: number | null; usd: number | null };
}

/** What is drawn, or why not. */
export interface Drawn {
  svg: string | null;
  error: string | null;
}

/** The program of a run, for a page that has not got it. */
export interface Program extends Drawn {
  costPath: CostLine[];
  /** `null` for a program that an audit does not read; absent in pages of before. */
  attacks?: Attacks | null;
}

/** The attack paths of a program, as `entail audit` finds them. */
export interface Attacks extends Drawn {
  findings: Finding[];
  /** What was found and what is not known, in numbers. */
  summary: string;
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
  costPath: CostLine[];
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
  /** What could not be loaded: "table crewai", "character HONEYBEE". */
  without?: string[];
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
  /** Number of replies before to the same question, which did not decode. */
  attempt?: number;
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
  /** Whether the request with this answer says little, as the run tells; absent if not. */
  importance?: "minor";
  [answer: string]: unknown;
}

/** What a journal has of an answer beside the answer. */
export interface KeptLine {
  event: "kept";
  n: number;
  /** Number in the order of the answers. */
  step: number;
  /** When it was written, in milliseconds since 1970. */
  at: number | null;
  ms: number;
  by?: { name: string; via: string };
  /** Attempts that failed before the answer. */
  retries?: { number: number; ms: number; causes: string[] };
}

export interface Usage {
  modelCalls: number;
  toolCalls: number;
  inputTokens: number;
  outputTokens: number;
  usd: number | null;
}

/** The last line of a trace. */
export interface EndLine {
  event: "end";
  result?: unknown;
  error?: { code: string; message: string; path?: string; line?: number; column?: number };
  label: unknown;
  usage: Usage;
}

export type Line =
  | RequestLine
  | ResponseLine
  | KeptLine
  | EndLine
  | { event: "run" | "phase" | "value" | "endorsement" | "replan" };

export interface Bound {
  modelCalls: number | null;
  toolCalls: number | null;
  usd: number | null;
}

/** What is known of a run beside its trace: the first line of a page. */
export interface About {
  bound: Bound | null;
  findings: Finding[];
  run?: { id: string; name?: string; created?: number; ended?: number | null; status?: string; state?: string; parent?: string | null };
  /** The program, in a page that holds everything. */
  program?: Program;
  /** True if a reader is shown what it may see. */
  redacted?: boolean;
  /** True if the program was not kept, so that labels are not known. */
  unlabeled?: boolean;
  /** Why not all answers could be given to the program. */
  differs?: string | null;
}

export interface Ran {
  trace: Line[];
  outcome: { bound: Bound };
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
  | ({ query: "audit" } & Document)
  | ({ query: "run"; entry: string; input: string | null; script: string; now: number } & Document)
  | ({ query: "hover"; at: number } & Document)
  | ({ query: "complete"; at: number } & Document)
  | ({ query: "format" } & Document);

/** An answer, or the reason why there is none. */
export type Answer<T> = T | { error: string; help?: string | null };

/** The question what is wrong with a document, and what it entails. A policy without text is none. */
export function checkOf(path: string, text: string, policy: string): Question {
  return { query: "check", ...documentOf(path, text, policy) };
}

export function documentOf(path: string, text: string, policy: string): Document {
  return { path: path.trim() || "p.agent", text, ...(policy.trim() ? { policy } : {}) };
}

/**
 * What the worker is sent: first the module, then questions. And what it sends: while something is loaded for an
 * answer, the answer without it.
 */
export type ToWorker = { code: WebAssembly.Module } | { id: number; question: Question };
export type FromWorker = { id: number; answer: string; without: string[] } | { id: number; soFar: string } | { id: number; crashed: string };
