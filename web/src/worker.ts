// Answers questions with the module, off the thread of the page. A module that traps is replaced by a new one.

import type { FromWorker, ToWorker } from "./protocol.ts";
import { Module } from "./module.ts";
import { Supplier } from "./supply.ts";

declare const self: DedicatedWorkerGlobalScope;

/** The compiled module, which the page sends first, and an instance of it. */
let code: WebAssembly.Module | null = null;
let module: Promise<Module> | null = null;
let begin: (module: Promise<Module>) => void = () => {};
const begun = new Promise<Promise<Module>>((resolve) => (begin = resolve)).then((module) => module);

/** The files that were loaded, for a new instance. */
const files = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();

function load(file: string): Promise<Uint8Array<ArrayBuffer>> {
  const known = files.get(file);
  if (known) return known;
  const loading = fetch(file, { signal: AbortSignal.timeout(8_000) }).then(async (response) => {
    if (!response.ok) throw new Error(`${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  });
  files.set(file, loading);
  // What failed may succeed the next time.
  loading.catch(() => files.delete(file));
  return loading;
}

const supplier = new Supplier(load);

function post(message: FromWorker): void {
  self.postMessage(message);
}

self.onmessage = async ({ data }: MessageEvent<ToWorker>) => {
  if ("code" in data) {
    code = data.code;
    module = Module.of(code);
    return begin(module);
  }
  const { id, question } = data;
  try {
    const soFar = (answer: string) => post({ id, soFar: answer });
    post({ id, ...(await supplier.answer(await (module ?? begun), JSON.stringify(question), soFar)) });
  } catch (error) {
    if (code) module = Module.of(code);
    post({ id, crashed: error instanceof Error ? error.message : String(error) });
  }
};
