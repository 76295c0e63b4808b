// Questions to `entail ui`. Whatever an answer holds, it is text for the page.

import type { About, Explained, Program } from "../protocol.ts";
import { type Reply, transport } from "./transport.ts";

/** An answer that is a refusal, in words. */
export class Refused extends Error {
  readonly status: number;
  readonly help: string | null;

  constructor(status: number, message: string, help: string | null) {
    super(message);
    this.status = status;
    this.help = help;
  }
}

export interface RunEntry {
  id: string;
  name: string;
  created: number;
  ended: number | null;
  state: string;
  answers: number;
  parent: string | null;
  error: { code: string; message: string } | null;
}

export interface RunList {
  runs: RunEntry[];
  /** Where the next page begins. */
  next: string | null;
  counts: Record<string, number>;
  waiting: number;
}

/** An argument of a call that waits. */
export interface Argument {
  name: string;
  value: unknown;
  label: unknown;
  /** The type of its parameter; `null` if it is not known, and then it can't be edited. */
  type: string | null;
  /** The type as JSON Schema, as far as there is one. */
  schema: { type?: unknown; enum?: unknown[] } | null;
}

export interface Approval {
  request: string;
  run: string;
  name: string;
  tool: string;
  args: Argument[];
  control: unknown;
  /** Whether untrusted data decided that the call is made; `null` if that is not known. */
  decided: boolean | null;
  asked: number;
  expires: number;
  /** Number of the request in the run; `null` if the program was not kept. */
  n: number | null;
  why: Explained[] | null;
  because: { kind: "always" } | { kind: "unknown" } | { kind: "refused"; parts: { part: string; label: unknown; bound: unknown }[] } | null;
  /** The request by which the same call was asked for and refused. */
  refusedBefore: number | null;
}

export interface Inbox {
  approvals: Approval[];
  keys: string[];
}

export interface AboutUi {
  journal: string;
  /** The journal as the command line names it. */
  named: string;
  version: string;
  /** The codes of errors that runs end with. */
  errors: string[];
  approvers: string[];
  keys: string[];
}

export interface Decided {
  verdict: "approved" | "edited" | "denied";
  by: string;
}

async function asked(path: string, method = "GET", body?: string): Promise<Reply> {
  let reply: Reply;
  try {
    reply = await transport().ask(path, method, body);
  } catch {
    throw new Refused(0, "`entail ui` does not answer", "start it again, and open the link that it prints");
  }
  if (reply.status >= 200 && reply.status < 300) return reply;
  const why = reasonIn(reply.text);
  throw new Refused(reply.status, why?.message ?? `status ${reply.status}`, why?.help ?? null);
}

function reasonIn(text: string): { message?: string; help?: string | null } | undefined {
  try {
    return (JSON.parse(text) as { error?: { message?: string; help?: string | null } } | null)?.error;
  } catch {
    // The status has to do.
    return undefined;
  }
}

export async function get<T>(path: string): Promise<T> {
  return JSON.parse((await asked(path)).text) as T;
}

export async function send<T>(path: string, body: unknown, method = "POST"): Promise<T> {
  const reply = await asked(path, method, JSON.stringify(body));
  return (reply.status === 204 ? null : JSON.parse(reply.text)) as T;
}

/** A reply that arrives. */
export interface Arriving {
  request: string;
  model: string;
  purpose: string | null;
  label: unknown;
  /** The end of the text, and the number of bytes before it. */
  text: string;
  before: number;
  /** The typed value so far; `null` for a reply that is a text. */
  value: unknown;
  /** The way to the part that is being written; `null` if the value is whole. */
  open: (string | number)[] | null;
  /** The repetition that this is, from 1, with the reason; `null` for a first attempt. */
  retry: { number: number; cause: string } | null;
}

/** The replies of a run that arrive. */
export async function arriving(id: string): Promise<Arriving[]> {
  return (await get<{ replies: Arriving[] }>(`/api/runs/${encodeURIComponent(id)}/live`)).replies;
}

export interface RunUpdate {
  revision: string;
  /** Number of lines that are as they were. */
  keep: number;
  about: About;
  /** Number of answers of the run, if these lines are only its first ones. */
  more?: number;
  lines: string[];
}

/** A run, or what has changed of it since a revision. If `first` is set, the first lines of a long run are enough. */
export async function run(id: string, have?: string, first = false): Promise<RunUpdate> {
  const query = have ? `?have=${encodeURIComponent(have)}` : first ? "?first=true" : "";
  const { text } = await asked(`/api/runs/${encodeURIComponent(id)}${query}`);
  const end = text.indexOf("\n");
  const head = JSON.parse(end < 0 ? text : text.slice(0, end)) as Omit<RunUpdate, "lines">;
  return { ...head, lines: end < 0 ? [] : text.slice(end + 1).split("\n") };
}

/** The program of a run, drawn. */
export function program(id: string): Promise<Program> {
  return get(`/api/runs/${encodeURIComponent(id)}/program`);
}

/** Calls back whenever something has changed, until it is told to stop. */
export function follow(path: string, changed: () => void, state: (connected: boolean) => void = () => {}): () => void {
  return transport().follow(path, changed, state);
}
