// A panel of VS Code reaches nothing but the extension, by messages. The extension has the session of
// `entail ui`: no token and no cookie gets into the panel.

import type { Reply, Transport } from "../ui/transport.ts";
import type { FromPanel, ToPanel } from "./messages.ts";

declare function acquireVsCodeApi(): { postMessage(message: FromPanel): void };

const extension = acquireVsCodeApi();

export function post(message: FromPanel): void {
  extension.postMessage(message);
}

interface Follower {
  changed(): void;
  state(isConnected: boolean): void;
}

/** Makes the way through the extension. `changed` is called when something else is to be shown. */
export function throughExtension(changed: () => void): Transport {
  const asked = new Map<number, (reply: Reply) => void>();
  const followers = new Map<number, Follower>();
  let last = 0;
  let hash = "";
  window.addEventListener("message", ({ data: message }: MessageEvent<ToPanel>) => {
    if (message.kind === "answer") {
      asked.get(message.id)?.(message);
      asked.delete(message.id);
    } else if (message.kind === "changed") followers.get(message.id)?.changed();
    else if (message.kind === "connected") followers.get(message.id)?.state(message.isConnected);
    else if (message.kind === "show") {
      hash = message.hash;
      changed();
    }
  });
  return {
    ask(path, method, body) {
      const id = ++last;
      return new Promise((resolve, reject) => {
        // No status: nobody answered the extension.
        asked.set(id, (reply) => (reply.status === 0 ? reject(new Error(reply.text)) : resolve(reply)));
        post({ kind: "ask", id, path, method, body });
      });
    },
    follow(path, changed, state) {
      const id = ++last;
      followers.set(id, { changed, state });
      post({ kind: "follow", id, path });
      return () => {
        followers.delete(id);
        post({ kind: "unfollow", id });
      };
    },
    shown: () => hash,
    show(to) {
      hash = to;
      changed();
    },
    open: (path, line, column) => post({ kind: "open", path, line, column }),
  };
}
