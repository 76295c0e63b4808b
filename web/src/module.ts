// The WebAssembly module: a question in, an answer out.

interface Exports {
  memory: WebAssembly.Memory;
  input(bytes: number): number;
  answer(): number;
  output(): number;
  lacking(): number;
  supply(): number;
}

export class Module {
  readonly #exports: Exports;

  private constructor(exports: Exports) {
    this.#exports = exports;
  }

  /** Makes an instance. The module imports nothing. */
  static async of(code: WebAssembly.Module): Promise<Module> {
    const instance = await WebAssembly.instantiate(code, {});
    return new Module(instance.exports as unknown as Exports);
  }

  /** Answers a question in JSON. Throws if the module traps; the instance is of no use afterwards. */
  answer(question: string): string {
    this.#write(new TextEncoder().encode(question));
    return this.#read(this.#exports.answer());
  }

  /** What the answers so far needed and did not have: "table langgraph", "character HONEYBEE". */
  lacking(): string[] {
    return this.#read(this.#exports.lacking()).split("\n").filter(Boolean);
  }

  /** Gives the module what it lacks: a compressed table, or a character. False if it is damaged. */
  supply(what: string, given: Uint8Array): boolean {
    const head = new TextEncoder().encode(`${what}\n`);
    const bytes = new Uint8Array(head.length + given.length);
    bytes.set(head);
    bytes.set(given, head.length);
    this.#write(bytes);
    return this.#exports.supply() === 1;
  }

  // Each call may let the memory grow, which replaces its buffer: it is looked up afterwards.
  #write(bytes: Uint8Array): void {
    const at = this.#exports.input(bytes.length);
    new Uint8Array(this.#exports.memory.buffer, at, bytes.length).set(bytes);
  }

  #read(length: number): string {
    const from = this.#exports.output();
    return new TextDecoder().decode(new Uint8Array(this.#exports.memory.buffer, from, length));
  }
}
