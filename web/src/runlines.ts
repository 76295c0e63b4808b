// The lines of a run, parsed when they are shown: a run may have 100,000 of them.

import type { EndLine, KeptLine, RequestLine, ResponseLine } from "./protocol.ts";
import type { Step } from "./steps.ts";

interface Texts {
  request: string;
  response?: string;
  kept?: string;
}

export interface Head {
  program?: string;
  entry?: string;
  input?: unknown;
}

export class RunLines {
  readonly head: Head = {};
  readonly end: EndLine | null = null;
  readonly #requests: Texts[] = [];

  constructor(lines: Iterable<string>) {
    const byNumber = new Map<string, Texts>();
    for (const text of lines) {
      const [, event, n] = /^\{"event":"([a-z]+)"(?:,"n":(\d+))?/.exec(text) ?? [];
      if (event === "request" && n) {
        const step: Texts = { request: text };
        this.#requests.push(step);
        byNumber.set(n, step);
      } else if ((event === "response" || event === "kept") && n) {
        const step = byNumber.get(n);
        if (step) step[event] = text;
      } else if (event === "run") this.head = JSON.parse(text) as Head;
      else if (event === "end") this.end = JSON.parse(text) as EndLine;
    }
  }

  /** Number of requests. */
  get length(): number {
    return this.#requests.length;
  }

  /** A request with its answer, by its position. */
  step(at: number): Step | undefined {
    const texts = this.#requests[at];
    if (!texts) return undefined;
    return {
      request: JSON.parse(texts.request) as RequestLine,
      response: texts.response ? (JSON.parse(texts.response) as ResponseLine) : undefined,
      kept: texts.kept ? (JSON.parse(texts.kept) as KeptLine) : undefined,
    };
  }

  /** Whether a request has been answered, by its position. */
  isAnswered(at: number): boolean {
    return this.#requests[at]?.response !== undefined;
  }

  /** Positions of the requests whose lines contain a text; all for an empty one. */
  containing(text: string): number[] {
    const all = this.#requests.map((_, i) => i);
    if (text === "") return all;
    return all.filter((i) => this.#requests[i]?.request.includes(text) || this.#requests[i]?.response?.includes(text));
  }
}
