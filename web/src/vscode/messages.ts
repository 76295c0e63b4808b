// What a panel of VS Code and the extension say to each other. `editors/vscode/views.js` is the other side.

/** From the panel. */
export type FromPanel =
  /** The panel is ready for messages. */
  | { kind: "ready" }
  /** A request to `entail ui`, or to the extension itself (`/editor/…`). */
  | { kind: "ask"; id: number; path: string; method: string; body?: string }
  | { kind: "follow"; id: number; path: string }
  | { kind: "unfollow"; id: number }
  /** Open a file of a program. */
  | { kind: "open"; path: string; line: number; column: number }
  /** Save what stands at a path of `entail ui`. */
  | { kind: "save"; path: string }
  /** What is shown, for the title and the next time. */
  | { kind: "shown"; hash: string; title: string };

/** To the panel. */
export type ToPanel =
  | { kind: "answer"; id: number; status: number; text: string }
  | { kind: "changed"; id: number }
  | { kind: "connected"; id: number; isConnected: boolean }
  | { kind: "show"; hash: string };
