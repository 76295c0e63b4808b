// A program in the fragment of an address. The fragment is never sent to a server.

export interface Shared {
  path: string;
  text: string;
  policy?: string;
  script?: string;
  input?: string;
  entry?: string;
}

const PREFIX = "#1.";

/** A small fragment may unpack to anything: what is longer is refused. */
const MAX_BYTES = 1 << 20;

export async function toFragment(shared: Shared): Promise<string> {
  const packed = await pipe(new TextEncoder().encode(JSON.stringify(shared)), new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of packed) binary += String.fromCharCode(byte);
  return PREFIX + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Reads a fragment; `null` if it holds no program. Throws if it is damaged. */
export async function fromFragment(fragment: string): Promise<Shared | null> {
  if (!fragment.startsWith(PREFIX)) return null;
  const binary = atob(fragment.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/"));
  const packed = Uint8Array.from(binary, (c) => c.charCodeAt(0));
  const text = new TextDecoder().decode(await pipe(packed, new DecompressionStream("deflate-raw")));
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null) throw new Error("not a program");
  const field = (name: string): string | undefined => {
    const found = (value as Record<string, unknown>)[name];
    if (found !== undefined && typeof found !== "string") throw new Error(`\`${name}\` is not a text`);
    return found;
  };
  const [path, program] = [field("path"), field("text")];
  if (path === undefined || program === undefined) throw new Error("not a program");
  return {
    path,
    text: program,
    policy: field("policy"),
    script: field("script"),
    input: field("input"),
    entry: field("entry"),
  };
}

async function pipe(bytes: Uint8Array<ArrayBuffer>, through: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const reader = new Blob([bytes]).stream().pipeThrough(through as ReadableWritablePair<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
    if (length > MAX_BYTES) {
      await reader.cancel();
      throw new Error("longer than 1 MiB");
    }
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
