// Answers questions with the module, off the thread of the page. A module that traps is replaced by a new one.

import type { FromWorker, ToWorker } from "./protocol.ts";
import { Module } from "./module.ts";

declare const self: DedicatedWorkerGlobalScope;

const compiled = WebAssembly.compileStreaming(fetch("entail.wasm"));
let module: Promise<Module> = compiled.then((code) => Module.of(code));

function post(message: FromWorker): void {
  self.postMessage(message);
}

self.onmessage = async ({ data }: MessageEvent<ToWorker>) => {
  try {
    post({ id: data.id, answer: (await module).answer(JSON.stringify(data.question)) });
  } catch (error) {
    module = compiled.then((code) => Module.of(code));
    post({ id: data.id, crashed: error instanceof Error ? error.message : String(error) });
  }
};
