// Questions to `entail ui`. Whatever an answer holds, it is text for the page.

import type { About, Explained, Program } from "../protocol.ts";

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

export interface Approval {
  request: string;
  run: string;
  name: string;
  tool: string;
  args: { name: string; value: unknown; label: unknown }[];
  control: unknown;
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
  approvers: string[];
  keys: string[];
}

export interface Decided {
  verdict: "approved" | "denied";
  by: string;
}

async function asked(path: string, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...init });
  } catch {
    throw new Refused(0, "`entail ui` does not answer", "start it again, and open the link that it prints");
  }
  if (response.ok) return response;
  const body = (await response.json().catch(() => null)) as { error?: { message?: string; help?: string | null } } | null;
  throw new Refused(response.status, body?.error?.message ?? `status ${response.status}`, body?.error?.help ?? null);
}

export async function get<T>(path: string): Promise<T> {
  return (await (await asked(path)).json()) as T;
}

export async function send<T>(path: string, body: unknown, method = "POST"): Promise<T> {
  const response = await asked(path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  return (response.status === 204 ? null : await response.json()) as T;
}

export interface RunUpdate {
  revision: string;
  /** Number of lines that are as they were. */
  keep: number;
  about: About;
  lines: string[];
}

/** A run, or what has changed of it since a revision. */
export async function run(id: string, have?: string): Promise<RunUpdate> {
  const query = have ? `?have=${encodeURIComponent(have)}` : "";
  const text = await (await asked(`/api/runs/${encodeURIComponent(id)}${query}`)).text();
  const end = text.indexOf("\n");
  const head = JSON.parse(end < 0 ? text : text.slice(0, end)) as Omit<RunUpdate, "lines">;
  return { ...head, lines: end < 0 ? [] : text.slice(end + 1).split("\n") };
}

/** The program of a run, drawn. */
export function program(id: string): Promise<Program> {
  return get(`/api/runs/${encodeURIComponent(id)}/program`);
}

/** Calls back whenever something has changed, until it is told to stop. The browser connects again by itself, and
 * then says what it has seen. */
export function follow(path: string, changed: () => void, state: (connected: boolean) => void = () => {}): () => void {
  const source = new EventSource(path);
  source.addEventListener("changed", changed);
  source.addEventListener("open", () => state(true));
  source.addEventListener("error", () => state(false));
  return () => source.close();
}
