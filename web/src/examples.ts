// The examples of the playground, put in when it is built.

import type { Shared } from "./share.ts";

export interface Example extends Shared {
  name: string;
  title: string;
  about: string;
}

declare const EXAMPLES: Example[];

/** The example that an address names, or the first one. */
export function exampleOf(hash: string, all: Example[]): Example | undefined {
  return all.find((example) => hash === `#example=${encodeURIComponent(example.name)}`) ?? all[0];
}

/** All examples: in the script that runs first, which the page takes them from. */
export function builtIn(): Example[] {
  return EXAMPLES;
}
