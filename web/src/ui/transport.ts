// How the views reach `entail ui`, and where they are: a browser, or a panel of an editor, which has neither
// the network nor an address of its own.

export interface Reply {
  status: number;
  text: string;
}

export interface Transport {
  /** Sends a request with a body of JSON. Fails if nobody answers. */
  ask(path: string, method: string, body?: string): Promise<Reply>;
  /** Calls back whenever something has changed, until it is told to stop. */
  follow(path: string, changed: () => void, state: (connected: boolean) => void): () => void;
  /** What is shown: the part of an address behind `#`. */
  shown(): string;
  /** Shows something else. */
  show(hash: string): void;
  /** Opens a file of a program, where files are at hand. */
  open?(path: string, line: number, column: number): void;
}

const browser: Transport = {
  async ask(path, method, body) {
    const headers: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
    const response = await fetch(path, { credentials: "same-origin", cache: "no-store", method, headers, body });
    return { status: response.status, text: await response.text() };
  },
  // The browser connects again by itself, and then says what it has seen.
  follow(path, changed, state) {
    const source = new EventSource(path);
    source.addEventListener("changed", changed);
    source.addEventListener("open", () => state(true));
    source.addEventListener("error", () => state(false));
    return () => source.close();
  },
  shown: () => location.hash,
  show: (hash) => void (location.hash = hash),
};

let used = browser;

export function transport(): Transport {
  return used;
}

/** Takes another way than the browser's. */
export function reachBy(transport: Transport): void {
  used = transport;
}
