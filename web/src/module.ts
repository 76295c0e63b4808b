// The WebAssembly module: a question in, an answer out.

interface Exports {
  memory: WebAssembly.Memory;
  input(bytes: number): number;
  answer(): number;
  output(): number;
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
    const { memory, input, answer, output } = this.#exports;
    const bytes = new TextEncoder().encode(question);
    // Both calls may let the memory grow, which replaces its buffer: it is looked up afterwards.
    const at = input(bytes.length);
    new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
    const [length, from] = [answer(), output()];
    return new TextDecoder().decode(new Uint8Array(memory.buffer, from, length));
  }
}
