// Begins before the page itself is read: loads and compiles the module, and asks what is wrong with the
// program of the address. The answer is there when the page has its editor.

import { type Example, builtIn, exampleOf } from "./examples.ts";
import { checkOf } from "./protocol.ts";
import type { FromWorker, Question, ToWorker } from "./protocol.ts";
import { type Shared, fromFragment } from "./share.ts";

export interface First {
  question: Question;
  answer: Promise<FromWorker>;
  /** The answer without what has to be loaded for it; never, if that is nothing. */
  soFar: Promise<string>;
}

export interface Early {
  /** Compiled while it is loaded, for each worker. */
  code: Promise<WebAssembly.Module>;
  worker: Worker;
  examples: Example[];
  /** The program in the address, read once for this question and for the page. */
  shared: Promise<Shared | null>;
  /** The question that was asked, and its answer; `null` if the address holds no program. */
  first: Promise<First | null>;
}

declare global {
  interface Window {
    /** Until the page takes it. */
    early?: Early;
  }
}

const code = WebAssembly.compileStreaming(fetch("entail.wasm"));
const worker = new Worker("worker.js");
const examples = builtIn();
code.then((code) => worker.postMessage({ code } satisfies ToWorker), () => {});

const shared = fromFragment(location.hash);
const first = shared.then(
  (inAddress) => {
    const shown = inAddress ?? exampleOf(location.hash, examples);
    if (!shown) return null;
    const question = checkOf(shown.path, shown.text, shown.policy ?? "");
    let tell: (answer: string) => void = () => {};
    const soFar = new Promise<string>((resolve) => (tell = resolve));
    const answer = new Promise<FromWorker>((resolve) => {
      worker.addEventListener("message", ({ data }: MessageEvent<FromWorker>) => ("soFar" in data ? tell(data.soFar) : resolve(data)));
    });
    worker.postMessage({ id: 0, question } satisfies ToWorker);
    return { question, answer, soFar };
  },
  () => null,
);

window.early = { code, worker, examples, shared, first };
