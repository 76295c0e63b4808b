// The page's side of the worker. Of several checks that wait only the newest is asked.

import type { Answer, FromWorker, Question, ToWorker } from "./protocol.ts";

/** An answer that takes longer ends the worker, and a new one takes its place. */
const MAX_MILLISECONDS = 15_000;

interface Waiting {
  question: Question;
  resolve(answer: Answer<unknown>): void;
}

export class Client {
  #worker!: Worker;
  #queue: Waiting[] = [];
  #current: (Waiting & { id: number; timer: number }) | null = null;
  #last = 0;

  constructor() {
    this.#start();
  }

  /** Asks; an older question of the same kind that nobody has begun to answer is dropped. */
  ask<T>(question: Question): Promise<Answer<T>> {
    return new Promise((resolve) => {
      this.#queue = this.#queue.filter((waiting) => {
        const isOld = waiting.question.query === question.query;
        if (isOld) waiting.resolve({ error: SUPERSEDED });
        return !isOld;
      });
      this.#queue.push({ question, resolve: resolve as Waiting["resolve"] });
      this.#next();
    });
  }

  #start(): void {
    this.#worker = window.early ?? new Worker("worker.js");
    window.early = undefined;
    this.#worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.#received(data);
    this.#worker.onerror = (event) => this.#finish({ error: `the worker failed: ${event.message}` });
  }

  #next(): void {
    if (this.#current) return;
    const waiting = this.#queue.shift();
    if (!waiting) return;
    const id = ++this.#last;
    const timer = window.setTimeout(() => this.#giveUp(), MAX_MILLISECONDS);
    this.#current = { ...waiting, id, timer };
    this.#worker.postMessage({ id, question: waiting.question } satisfies ToWorker);
  }

  #received(message: FromWorker): void {
    if (message.id !== this.#current?.id) return;
    if ("crashed" in message) {
      const isDeep = /call stack|out of bounds/.test(message.crashed);
      const why = isDeep ? "it is nested deeper than the stack of a browser" : message.crashed;
      return this.#finish({ error: `the playground can't read this: ${why}; the command may` });
    }
    const answer = JSON.parse(message.answer) as Answer<object>;
    this.#finish(message.without.length > 0 ? { ...answer, without: message.without } : answer);
  }

  #giveUp(): void {
    this.#worker.terminate();
    this.#start();
    this.#finish({ error: `no answer after ${MAX_MILLISECONDS / 1000} seconds` });
  }

  #finish(answer: Answer<unknown>): void {
    const current = this.#current;
    this.#current = null;
    if (current) {
      window.clearTimeout(current.timer);
      current.resolve(answer);
    }
    this.#next();
  }
}

/** The error of a question that a newer one has replaced; nobody is to be told. */
export const SUPERSEDED = "superseded";
