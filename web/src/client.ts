// The page's side of the worker. Of several checks that wait only the newest is asked.

import type { Early } from "./early.ts";
import type { Answer, FromWorker, Question, ToWorker } from "./protocol.ts";

/** An answer that takes longer ends the worker, and a new one takes its place. */
const MAX_MILLISECONDS = 15_000;

interface Waiting {
  question: Question;
  resolve(answer: Answer<unknown>): void;
  soFar?(answer: Answer<unknown>): void;
}

export class Client {
  #worker!: Worker;
  #queue: Waiting[] = [];
  #current: (Waiting & { id: number; timer: number }) | null = null;
  #last = 0;
  readonly #code: Promise<WebAssembly.Module>;
  /** What was asked before the page was there, until another text is checked. */
  #first: { question: string; answer: Promise<Answer<unknown>>; soFar: Promise<Answer<unknown>> } | null = null;
  #isReady: boolean;

  constructor(early: Early | undefined) {
    this.#code = early?.code ?? WebAssembly.compileStreaming(fetch("entail.wasm"));
    this.#isReady = early === undefined;
    this.#code.catch((error: unknown) => this.#finish({ error: `the playground can't be loaded: ${error}` }));
    if (early) {
      this.#listen(early.worker);
      void early.first.then((first) => this.#take(first));
    } else this.#start();
  }

  /** Takes what was asked early as the question that is being answered. */
  #take(first: Awaited<Early["first"]>): void {
    this.#isReady = true;
    if (!first) return this.#next();
    const { question, answer } = first;
    const soFar = first.soFar.then((text) => JSON.parse(text) as Answer<unknown>);
    const received = new Promise<Answer<unknown>>((resolve) => {
      const timer = window.setTimeout(() => this.#giveUp(), MAX_MILLISECONDS);
      this.#current = { question, resolve, id: 0, timer };
    });
    this.#first = { question: JSON.stringify(question), answer: received, soFar };
    const waiting = this.#queue.findIndex((other) => JSON.stringify(other.question) === this.#first?.question);
    for (const { resolve, soFar: tell } of waiting < 0 ? [] : this.#queue.splice(waiting, 1)) {
      void received.then(resolve);
      if (tell) void soFar.then(tell);
    }
    void answer.then((message) => this.#received(message));
  }

  /**
   * Asks; an older question of the same kind that nobody has begun to answer is dropped. `soFar` is given what can
   * be answered before everything is loaded, once at most.
   */
  ask<T>(question: Question, soFar?: (answer: Answer<T>) => void): Promise<Answer<T>> {
    const early = this.#first;
    const tell = soFar as Waiting["soFar"];
    if (question.query === "check") this.#first = null;
    if (early?.question === JSON.stringify(question)) {
      if (tell) void early.soFar.then(tell);
      return early.answer as Promise<Answer<T>>;
    }
    return new Promise((resolve) => {
      this.#queue = this.#queue.filter((waiting) => {
        const isOld = waiting.question.query === question.query;
        if (isOld) waiting.resolve({ error: SUPERSEDED });
        return !isOld;
      });
      this.#queue.push({ question, resolve: resolve as Waiting["resolve"], soFar: tell });
      this.#next();
    });
  }

  #start(): void {
    const worker = new Worker("worker.js");
    this.#listen(worker);
    void this.#code.then((code) => worker.postMessage({ code } satisfies ToWorker)).catch(() => {});
  }

  #listen(worker: Worker): void {
    this.#worker = worker;
    this.#worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.#received(data);
    this.#worker.onerror = (event) => this.#finish({ error: `the worker failed: ${event.message}` });
  }

  #next(): void {
    if (this.#current || !this.#isReady) return;
    const waiting = this.#queue.shift();
    if (!waiting) return;
    const id = ++this.#last;
    const timer = window.setTimeout(() => this.#giveUp(), MAX_MILLISECONDS);
    this.#current = { ...waiting, id, timer };
    this.#worker.postMessage({ id, question: waiting.question } satisfies ToWorker);
  }

  #received(message: FromWorker): void {
    if (message.id !== this.#current?.id) return;
    if ("soFar" in message) return this.#current.soFar?.(JSON.parse(message.soFar) as Answer<unknown>);
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
