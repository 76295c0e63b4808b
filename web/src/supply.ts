// What the module lacks, loaded when an answer needs it: most programs need nothing of it.

import type { Module } from "./module.ts";

/** Gives the bytes of a file beside the page. Throws if it can't be loaded. */
export type Load = (file: string) => Promise<Uint8Array<ArrayBuffer>>;

interface Names {
  memory: WebAssembly.Memory;
  input(bytes: number): number;
  character(): number;
}

/** Supplies a module with tables of frameworks and with characters by their names. */
export class Supplier {
  readonly #load: Load;
  #names: Promise<Names> | null = null;

  constructor(load: Load) {
    this.#load = load;
  }

  /**
   * Answers a question with everything that the answer needs. `without` has what can't be had, as the module names
   * it: "table crewai", "character HONEYBEE". If something has to be loaded, `soFar` is given the answer without it.
   */
  async answer(module: Module, question: string, soFar: (answer: string) => void = () => {}): Promise<{ answer: string; without: string[] }> {
    const without = new Set<string>();
    for (let round = 0; ; round++) {
      const answer = module.answer(question);
      const needed = module.lacking().filter((what) => !without.has(what));
      if (needed.length === 0) return { answer, without: [...without] };
      if (round === 0) soFar(answer);
      // A table may lead to another one. Nothing is asked for twice, so this ends.
      const supply = async (what: string) => {
        const bytes = await this.#find(what).catch(() => null);
        if (!bytes || !module.supply(what, bytes)) without.add(what);
      };
      await Promise.all(needed.map(supply));
    }
  }

  async #find(what: string): Promise<Uint8Array> {
    const [kind, name] = [what.slice(0, what.indexOf(" ")), what.slice(what.indexOf(" ") + 1)];
    if (kind === "table") return this.#load(`tables/${encodeURIComponent(name)}.z`);
    this.#names ??= this.#load("character_names.wasm").then(async (bytes) => {
      const { instance } = await WebAssembly.instantiate(bytes, {});
      return instance.exports as unknown as Names;
    });
    try {
      const { memory, input, character } = await this.#names;
      const bytes = new TextEncoder().encode(name);
      const at = input(bytes.length);
      new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
      const code = character();
      return new TextEncoder().encode(code < 0 ? "" : String.fromCodePoint(code));
    } catch (error) {
      // What failed may succeed the next time.
      this.#names = null;
      throw error;
    }
  }
}
