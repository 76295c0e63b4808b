// Pictures of a run: what happened when, and how much was used of the bound. The texts beside them say the
// same, so the pictures have a name and no parts that are read out.

import { h } from "./dom.ts";
import type { Bound } from "./protocol.ts";
import { type Step, hasFailed, shownDuration, shownMoney, subject } from "./steps.ts";
import type { RunLines } from "./runlines.ts";

/** Most requests of a picture. */
const MAX_ROWS = 60;
const WIDTH = 640;
const ROW = 16;

/** Widths of the names and of the bars of a timeline, and the most characters of a name. A phone shows both. */
function columns(): { names: number; width: number; most: number } {
  return innerWidth < 600 ? { names: 112, width: 208, most: 16 } : { names: 190, width: WIDTH, most: 28 };
}

export function svg(tag: string, attributes: Record<string, string | number>, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Positions of requests: the first, and the one behind the last. */
export interface Range {
  from: number;
  to: number;
}

interface Interval {
  from: number;
  to: number;
}

interface Bar extends Interval {
  step: Step;
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

/** Shortest idle time in milliseconds that is drawn as a gap. */
const MIN_IDLE = 1000;

/** Whether a request only waits for a person. */
function isIdle({ request }: Step): boolean {
  return request.kind === "approve";
}

/** The times between which something was done. While only a person was waited for, nothing was. */
function busyTimes(step: Step, { from, to }: Interval): Interval[] {
  return isIdle(step) ? [{ from, to: from }, { from: to, to }] : [{ from, to }];
}

/** Maps times to columns: long idle times take little room. Returns the gaps, too. */
function scale(bars: Interval[], full = WIDTH): { column(at: number): number; gaps: { at: number; ms: number }[] } {
  const sorted = [...bars].sort((a, b) => a.from - b.from);
  const busy: Interval[] = [];
  for (const { from, to } of sorted) {
    const last = busy.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else busy.push({ from, to });
  }
  const total = busy.reduce((sum, b) => sum + b.to - b.from, 0) || 1;
  const gap = Math.max(total * LONG_IDLE, MIN_IDLE);
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
  /** The first knot at or behind a time. */
  const behind = (at: number) => {
    let [low, high] = [0, knots.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((knots[middle]?.at ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const column = (at: number) => {
    const next = behind(at);
    const [a, b] = [knots[next - 1], knots[next]];
    if (!b) return full;
    if (!a || b.at === a.at) return (b.x / width) * full;
    return ((a.x + ((b.x - a.x) * (at - a.at)) / (b.at - a.at)) / width) * full;
  };
  return { column, gaps };
}

/** A picture that stays readable on a phone: it is as wide as it has to be, and scrolls. */
function scrolled(name: string, picture: SVGElement): HTMLElement {
  return h("div", { class: "scroll", role: "group", "aria-label": name, tabindex: 0 }, picture);
}

/** A part that is drawn when somebody opens it: a picture of a long run takes a while. */
function folded(name: string, draw: () => HTMLElement[]): HTMLDetailsElement {
  const inside = h("div", {});
  const part = h("details", {}, h("summary", {}, name), inside);
  part.addEventListener("toggle", () => part.open && inside.childElementCount === 0 && inside.append(...draw()));
  return part;
}

/** What happened when, or beside what. A range that is drawn with the pointer is chosen. */
export function timeline(lines: RunLines, range: Range, choose: (range: Range) => void): HTMLDetailsElement | null {
  if (lines.length < 2) return null;
  return folded("Timeline", () => timelineOf(lines, range, choose));
}

function timelineOf(lines: RunLines, range: Range, choose: (range: Range) => void): HTMLElement[] {
  const rows = Math.min(range.to - range.from, MAX_ROWS);
  const steps = Array.from({ length: rows }, (_, i) => lines.step(range.from + i)).filter((s) => s !== undefined);
  if (steps.length === 0) return [h("p", { class: "muted" }, "No request is in the range.")];
  const times = timed(steps);
  const bars = times ?? logical(steps);
  const { names, width, most } = columns();
  const { column, gaps } = times ? scale(bars.flatMap((bar) => busyTimes(bar.step, bar)), width) : scale(bars, width);
  const height = bars.length * ROW + 4;
  const drawn = bars.flatMap(({ step, from, to }, i) => {
    const x = names + column(from);
    const text = `${hasFailed(step) ? "✖ " : ""}${step.request.n}. ${subject(step)}`;
    return [
      svg("text", { x: 0, y: i * ROW + 12, class: "bar-name" }, text.length > most ? `${text.slice(0, most - 1)}…` : text),
      svg("rect", {
        x: x.toFixed(1),
        y: i * ROW + 3,
        width: Math.max(names + column(to) - x, 2).toFixed(1),
        height: ROW - 6,
        rx: 2,
        class: `bar ${hasFailed(step) ? "bad" : step.request.kind}`,
      }),
    ];
  });
  const idle = gaps.map(({ at }) => {
    const x = (names + column(at)).toFixed(1);
    return svg("line", { x1: x, x2: x, y1: 0, y2: height, class: "gap" });
  });
  const first = Math.min(...bars.map((b) => b.from));
  const last = Math.max(...bars.map((b) => b.to));
  const all = range.to - range.from;
  const notes = [
    times ? `${shownDuration(last - first)} from the first request to the last answer` : "the order is shown; times are not known",
    gaps.length > 0 ? `idle time is cut at the dashed lines (${gaps.slice(0, 3).map((g) => shownDuration(g.ms)).join(", ")}${gaps.length > 3 ? ", …" : ""})` : "",
    all > MAX_ROWS ? `the first ${MAX_ROWS} of ${all.toLocaleString("en")} requests` : "",
  ];
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${names + width + 4} ${height}`, role: "img", "aria-label": `Timeline of ${bars.length} requests`, class: "timeline" },
    ...drawn,
    ...idle,
  );
  selectable(picture, { width: names + width + 4, height }, (from, to) => {
    const chosen = bars.flatMap((bar, i) => (names + column(bar.to) >= from && names + column(bar.from) <= to ? [range.from + i] : []));
    if (chosen.length > 0) choose({ from: Math.min(...chosen), to: Math.max(...chosen) + 1 });
  });
  return [scrolled("Timeline", picture), h("p", { class: "muted" }, notes.filter(Boolean).join("; "))];
}

/** Calls back with the columns between which the pointer was drawn. The same can be typed as numbers. */
function selectable(picture: SVGElement, size: { width: number; height: number }, chosen: (from: number, to: number) => void): void {
  const at = (event: PointerEvent) => {
    const { left, width } = picture.getBoundingClientRect();
    return ((event.clientX - left) / width) * size.width;
  };
  const shade = svg("rect", { y: 0, height: size.height, width: 0, class: "selection" });
  let start: number | null = null;
  picture.append(shade);
  picture.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0) return;
    start = at(event);
    picture.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  picture.addEventListener("pointermove", (event) => {
    if (start === null) return;
    const now = at(event);
    shade.setAttribute("x", Math.min(start, now).toFixed(1));
    shade.setAttribute("width", Math.abs(now - start).toFixed(1));
  });
  picture.addEventListener("pointerup", (event) => {
    const [from, to] = [Math.min(start ?? 0, at(event)), Math.max(start ?? 0, at(event))];
    start = null;
    shade.setAttribute("width", "0");
    // A click chooses nothing.
    if (to - from > 3) chosen(from, to);
  });
}

/** What adds up in a run. */
interface Total {
  name: string;
  look: string;
  bound: number | null;
  of(step: Step): number;
  shown(amount: number): string;
}

/** Most points of a curve. */
const MAX_POINTS = 640;

/** Calls, tokens and dollars as they add up, beside their bounds. */
export function spend(lines: RunLines, bound: Bound | null): HTMLDetailsElement | null {
  if (lines.length < 3) return null;
  return folded("Spend over time", () => spendOf(lines, bound));
}

function spendOf(lines: RunLines, bound: Bound | null): HTMLElement[] {
  const count = (n: number) => n.toLocaleString("en");
  const number = (value: unknown) => (typeof value === "number" ? value : 0);
  const totals: Total[] = [
    { name: "Model calls", look: "model", bound: bound?.modelCalls ?? null, of: ({ request }) => Number(request.kind === "model"), shown: count },
    { name: "Tool calls", look: "tool", bound: bound?.toolCalls ?? null, of: ({ request }) => Number(request.kind === "tool"), shown: count },
    { name: "Tokens", look: "model", bound: null, of: ({ response }) => number(response?.inputTokens) + number(response?.outputTokens), shown: count },
    { name: "Dollars", look: "model", bound: bound?.usd ?? null, of: ({ response }) => number(response?.usd), shown: shownMoney },
  ];
  const amounts: number[][] = totals.map(() => []);
  const spans: (Interval | null)[] = [];
  const busy: Interval[] = [];
  for (let i = 0; i < lines.length; i++) {
    const step = lines.step(i);
    if (!step) continue;
    for (const [k, total] of totals.entries()) amounts[k]?.push(total.of(step));
    const { kept } = step;
    const span = kept?.at ? { from: kept.at - kept.ms, to: kept.at } : null;
    spans.push(span);
    if (span) busy.push(...busyTimes(step, span));
  }
  const times = spans.filter((span) => span !== null);
  const isTimed = times.length > 0 && times.length === spans.filter((_, i) => lines.isAnswered(i)).length;
  const { column, gaps } = isTimed ? scale(busy) : { column: () => 0, gaps: [] };
  // In the order of the answers, since branches overlap; a request without an answer has spent nothing yet.
  const order = spans.map((_, i) => i).filter((i) => !isTimed || spans[i]);
  if (isTimed) order.sort((a, b) => (spans[a]?.to ?? 0) - (spans[b]?.to ?? 0));
  const x = (i: number, k: number) => (isTimed ? column(spans[i]?.to ?? 0) * 0.98 : ((k + 0.5) / order.length) * WIDTH);
  const charts = totals.flatMap((total, t) => {
    const sum = (amounts[t] ?? []).reduce((a, b) => a + b, 0);
    return sum > 0 ? [chart(total, sum, order.map((i, k) => ({ x: x(i, k), amount: amounts[t]?.[i] ?? 0 })), gaps.map(({ at }) => column(at) * 0.98))] : [];
  });
  const axis = isTimed ? `time from left to right${gaps.length > 0 ? ", idle time cut at the dashed lines" : ""}` : "in the order of the requests; times are not known";
  return [...charts, h("p", { class: "muted" }, `Horizontally: ${axis}. A dashed line is a bound.`)];
}

/** One curve, with its bound where that is not far above. */
function chart(total: Total, sum: number, points: { x: number; amount: number }[], gaps: number[]): HTMLElement {
  const height = 40;
  const { bound } = total;
  const isNear = bound !== null && bound <= sum * 4;
  const top = Math.max(sum, isNear ? bound : 0) * 1.05;
  const y = (amount: number) => (height - 2 - (amount / top) * (height - 4)).toFixed(1);
  const every = Math.max(1, Math.ceil(points.length / MAX_POINTS));
  let so = 0;
  const curve = [`0,${y(0)}`];
  for (const [i, { x, amount }] of points.entries()) {
    // A step upwards where the answer came.
    if (i % every === 0) curve.push(`${x.toFixed(1)},${y(so)}`);
    so += amount;
    if (i % every === 0 || i === points.length - 1) curve.push(`${x.toFixed(1)},${y(so)}`);
  }
  curve.push(`${WIDTH},${y(so)}`);
  const said = `${total.name}: ${total.shown(sum)}${bound === null ? "" : ` of at most ${total.shown(bound)}`}`;
  // As wide as the page: what is drawn has no texts that could be stretched.
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": `${said}, as they add up`, class: "timeline added" },
    svg("polyline", { points: curve.join(" "), class: `curve ${total.look}`, fill: "none" }),
    ...(isNear ? [svg("line", { x1: 0, x2: WIDTH, y1: y(bound), y2: y(bound), class: `limit ${total.look}` })] : []),
    ...gaps.map((at) => svg("line", { x1: at.toFixed(1), x2: at.toFixed(1), y1: 0, y2: height, class: "gap" })),
  );
  return h("div", { class: "total" }, h("p", {}, said), picture);
}
