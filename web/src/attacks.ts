// Attack paths: which text of outsiders reaches which action, as a picture and in words.

import { h } from "./dom.ts";
import { type FindingActions, findingList } from "./findings.ts";
import { image } from "./picture.ts";
import type { Attacks } from "./protocol.ts";

/** The code of findings about what is not known of a tool. */
const UNKNOWN = "S304";

/** The picture, the counts and the findings. Without actions, of a program that is not there. */
export function attackParts({ svg, error, findings, summary }: Attacks, actions: FindingActions | null): HTMLElement[] {
  const hasPath = findings.some((finding) => finding.code !== UNKNOWN);
  const alt = "Attack paths: what brings text of outsiders in, the models that it reaches, and what acts. The findings say the same";
  const drawn = hasPath ? (svg ? image(svg, alt) : h("p", { class: "empty" }, error ?? "There is no picture.")) : null;
  const parts = [drawn, h("p", { class: "muted" }, `${summary}.`), findings.length > 0 ? findingList(findings, actions) : null];
  return parts.filter((part) => part !== null);
}
