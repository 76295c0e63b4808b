// Begins before the page itself is read: loads and compiles the module, and asks what is wrong with the
// program of the address. The answer is there when the page has its editor.

import { type Example, builtIn, exampleOf } from "./examples.ts";
import { checkOf } from "./protocol.ts";
import type { FromWorker, Question, ToWorker } from "./protocol.ts";
import { type Shared, fromFragment } from "./share.ts";

export interface Early {
  /** Compiled while it is loaded, for each worker. */
  code: Promise<WebAssembly.Module>;
  worker: Worker;
  examples: Example[];
  /** The program in the address, read once for this question and for the page. */
  shared: Promise<Shared | null>;
  /** The question that was asked, and its answer; `null` if the address holds no program. */
  first: Promise<{ question: Question; answer: Promise<FromWorker> } | null>;
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
    const answer = new Promise<FromWorker>((resolve) => {
      worker.addEventListener("message", ({ data }: MessageEvent<FromWorker>) => resolve(data), { once: true });
    });
    worker.postMessage({ id: 0, question } satisfies ToWorker);
    return { question, answer };
  },
  () => null,
);

window.early = { code, worker, examples, shared, first };
