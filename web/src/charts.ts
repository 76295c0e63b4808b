// Pictures of a run: what happened when, and how much was used of the bound. The texts beside them say the
// same, so the pictures have a name and no parts that are read out.

import { h } from "./dom.ts";
import type { Bound } from "./protocol.ts";
import { type Step, hasFailed, shownDuration, subject } from "./steps.ts";
import type { RunLines } from "./runlines.ts";

/** Most requests of a picture. */
const MAX_ROWS = 60;
const WIDTH = 640;
const ROW = 16;
const NAMES = 190;

function svg(tag: string, attributes: Record<string, string | number>, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

interface Bar {
  step: Step;
  from: number;
  to: number;
}

/** Times of the requests; `null` without a journal. */
function timed(steps: Step[]): Bar[] | null {
  const bars = steps.flatMap((step) => (step.kept?.at ? [{ step, from: step.kept.at - step.kept.ms, to: step.kept.at }] : []));
  return bars.length > 0 ? bars : null;
}

/** Requests in logical time: each begins when everything that it had to wait for has been answered. */
function logical(steps: Step[]): Bar[] {
  const bars: { bar: Bar; place: number[] }[] = [];
  for (const step of steps) {
    const place = step.request.place ?? [];
    const before = bars.filter((other) => !beside(other.place, place));
    const from = before.reduce((most, other) => Math.max(most, other.bar.to), 0);
    bars.push({ bar: { step, from, to: from + 1 }, place });
  }
  return bars.map(({ bar }) => bar);
}

/** Whether two requests are of different branches of one `par`. */
function beside(a: number[], b: number[]): boolean {
  for (let i = 0; i + 2 < Math.min(a.length, b.length); i += 3) {
    if (a[i] !== b[i] || a[i + 1] !== b[i + 1]) return false;
    if (a[i + 2] !== b[i + 2]) return true;
  }
  return false;
}

/** Idle time longer than this part of the busy time is drawn as a gap. */
const LONG_IDLE = 0.2;

/** Maps times to columns: long idle times take little room. Returns the gaps, too. */
function scale(bars: Bar[]): { column(at: number): number; gaps: { at: number; ms: number }[] } {
  const sorted = [...bars].sort((a, b) => a.from - b.from);
  const busy: { from: number; to: number }[] = [];
  for (const { from, to } of sorted) {
    const last = busy.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else busy.push({ from, to });
  }
  const total = busy.reduce((sum, b) => sum + b.to - b.from, 0) || 1;
  const gap = total * LONG_IDLE;
  const knots: { at: number; x: number }[] = [];
  const gaps: { at: number; ms: number }[] = [];
  let x = 0;
  for (const [i, { from, to }] of busy.entries()) {
    const before = busy[i - 1];
    if (before) {
      const idle = from - before.to;
      if (idle > gap) gaps.push({ at: from, ms: idle });
      x += Math.min(idle, gap);
    }
    knots.push({ at: from, x });
    x += to - from;
    knots.push({ at: to, x });
  }
  const width = x || 1;
  const column = (at: number) => {
    const next = knots.findIndex((knot) => knot.at >= at);
    const [a, b] = [knots[next - 1], knots[next]];
    if (!b) return WIDTH;
    if (!a || b.at === a.at) return (b.x / width) * WIDTH;
    return ((a.x + ((b.x - a.x) * (at - a.at)) / (b.at - a.at)) / width) * WIDTH;
  };
  return { column, gaps };
}

/** A picture that stays readable on a phone: it is as wide as it has to be, and scrolls. */
function scrolled(name: string, picture: SVGElement): HTMLElement {
  return h("div", { class: "scroll", role: "group", "aria-label": name, tabindex: 0 }, picture as unknown as HTMLElement);
}

/** What happened when, or beside what. */
export function timeline(lines: RunLines): HTMLElement | null {
  const steps = Array.from({ length: Math.min(lines.length, MAX_ROWS) }, (_, i) => lines.step(i)).filter((s) => s !== undefined);
  if (steps.length < 2) return null;
  const times = timed(steps);
  const bars = times ?? logical(steps);
  const { column, gaps } = scale(bars);
  const height = bars.length * ROW + 4;
  const rows = bars.flatMap(({ step, from, to }, i) => {
    const x = NAMES + column(from);
    const text = `${step.request.n}. ${subject(step)}`;
    return [
      svg("text", { x: 0, y: i * ROW + 12, class: "bar-name" }, text.length > 28 ? `${text.slice(0, 27)}…` : text),
      svg("rect", {
        x: x.toFixed(1),
        y: i * ROW + 3,
        width: Math.max(NAMES + column(to) - x, 2).toFixed(1),
        height: ROW - 6,
        rx: 2,
        class: `bar ${hasFailed(step) ? "bad" : step.request.kind}`,
      }),
    ];
  });
  const idle = gaps.map(({ at }) => {
    const x = (NAMES + column(at)).toFixed(1);
    return svg("line", { x1: x, x2: x, y1: 0, y2: height, class: "gap" });
  });
  const first = Math.min(...bars.map((b) => b.from));
  const last = Math.max(...bars.map((b) => b.to));
  const notes = [
    times ? `${shownDuration(last - first)} from the first request to the last answer` : "the order is shown; times are not known",
    gaps.length > 0 ? `idle time is cut at the dashed lines (${gaps.slice(0, 3).map((g) => shownDuration(g.ms)).join(", ")}${gaps.length > 3 ? ", …" : ""})` : "",
    lines.length > MAX_ROWS ? `the first ${MAX_ROWS} of ${lines.length.toLocaleString("en")} requests` : "",
  ];
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${NAMES + WIDTH + 4} ${height}`, role: "img", "aria-label": `Timeline of ${bars.length} requests`, class: "timeline" },
    ...rows,
    ...idle,
  );
  return h("details", {}, h("summary", {}, "Timeline"), scrolled("Timeline", picture), h("p", { class: "muted" }, notes.filter(Boolean).join("; ")));
}

/** Calls of models and tools as they add up, beside their bounds. */
export function spend(lines: RunLines, bound: Bound | null): HTMLElement | null {
  const most = 2000;
  if (lines.length < 3 || lines.length > most) return null;
  const height = 90;
  const totals = { model: [0], tool: [0] };
  for (let i = 0; i < lines.length; i++) {
    const kind = lines.step(i)?.request.kind;
    for (const of of ["model", "tool"] as const) totals[of].push((totals[of].at(-1) ?? 0) + (kind === of ? 1 : 0));
  }
  const bounds = { model: bound?.modelCalls ?? null, tool: bound?.toolCalls ?? null };
  const top = Math.max(totals.model.at(-1) ?? 0, totals.tool.at(-1) ?? 0, 1) * 1.25;
  const y = (count: number) => (height - (Math.min(count, top) / top) * (height - 8)).toFixed(1);
  const parts: SVGElement[] = [];
  for (const of of ["model", "tool"] as const) {
    const points = totals[of].map((count, i) => `${((i / lines.length) * WIDTH).toFixed(1)},${y(count)}`);
    parts.push(svg("polyline", { points: points.join(" "), class: `curve ${of}`, fill: "none" }));
    const limit = bounds[of];
    if (limit !== null && limit <= top) parts.push(svg("line", { x1: 0, x2: WIDTH, y1: y(limit), y2: y(limit), class: `limit ${of}` }));
  }
  const said = (["model", "tool"] as const).map((of) => {
    const limit = bounds[of];
    return `${of} calls ${totals[of].at(-1)} of ${limit === null ? "an unknown bound" : `at most ${limit.toLocaleString("en")}`}`;
  });
  const name = `Calls as they add up: ${said.join(", ")}`;
  return h(
    "details",
    {},
    h("summary", {}, "Spend over time"),
    scrolled("Spend over time", svg("svg", { viewBox: `0 0 ${WIDTH} ${height + 4}`, role: "img", "aria-label": name, class: "timeline" }, ...parts)),
    h("p", { class: "muted" }, `${name}. Solid: model calls; dotted: tool calls; dashed: a bound.`),
  );
}
