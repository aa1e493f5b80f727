/** The flow view on a canvas. Each line is coloured from nothing to its own largest share, which stands at its end. */
import { ramp, type Scale, scaleWeight, weightColor } from "../../paint/color";
import { shortShare } from "../../paint/digits";
import { hatch } from "../../paint/hatch";
import { clipText } from "../../paint/text";
import type { Theme } from "../../paint/theme";
import type { Flow, Row } from "../../trace/source";
import { FAMILY } from "../parts/dom";
import type { TokenNames } from "../parts/names";
import { largest, lineOf } from "./requests";
import { BARS, visibleColumns, edgeOf, everyName, UPRIGHT } from "./layout";
import type { FlowHit, FlowPart, PartName, Plan } from "./layout";

export const FONT = `12px ${FAMILY}`;

export interface FlowDrawing {
  readonly plan: Plan;
  readonly flow: Flow;
  readonly raw: Row | null;
  readonly rawPart: PartName;
  readonly query: number;
  readonly names: Readonly<Record<PartName, TokenNames>>;
  readonly labels: readonly string[]; // of the lines
  readonly words: Readonly<Record<"largest" | "rollout" | "raw" | PartName, string>>;
  readonly over: FlowHit | null;
  readonly scale: Scale;
  readonly theme: Theme;
  readonly width: number; // of the window
  readonly height: number;
  readonly left: number; // scrolled
  readonly top: number;
}

/** The largest of both rows of bars: they stand on one scale, so that they can be compared. */
export function barTop({ flow, raw }: Pick<FlowDrawing, "flow" | "raw">): number {
  let most = largest(flow, 0);
  for (const weight of raw?.weights ?? []) if (weight > most) most = weight;
  return most;
}

/** The values of a row of bars over a part; null where it does not look there. */
export function barsOf(
  drawing: Pick<FlowDrawing, "flow" | "raw" | "rawPart">, which: "rollout" | "raw", part: PartName,
): ArrayLike<number> | null {
  if (which === "rollout") return lineOf(drawing.flow, part, 0);
  return part === drawing.rawPart ? (drawing.raw?.weights ?? null) : null;
}

function paintLines(
  pen: CanvasRenderingContext2D, drawing: FlowDrawing, part: FlowPart, first: number, last: number,
): void {
  const { plan, flow, scale, theme, top, left } = drawing, colors = ramp(theme.dark);
  const strip = document.createElement("canvas"); // one pixel per cell, painted large at once
  strip.width = Math.max(1, last - first + 1);
  strip.height = plan.lines;
  const small = strip.getContext("2d"), image = small?.createImageData(strip.width, strip.height);
  if (small === null || image === undefined) return;
  for (let line = 0; line < plan.lines; line++) {
    const shares = lineOf(flow, part.name, line), most = largest(flow, line);
    const sorted = scale === "rank" ? Float32Array.from(shares).sort() : undefined;
    for (let token = first; token <= last; token++) {
      const from = 4 * Math.round(255 * scaleWeight(shares[token]!, scale, most, sorted));
      const to = 4 * (line * strip.width + token - first);
      for (let i = 0; i < 4; i++) image.data[to + i] = colors[from + i]!;
    }
  }
  small.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  const x = part.start + first * plan.column - left, y = plan.top - top, wide = strip.width * plan.column;
  pen.drawImage(strip, x, y, wide, plan.lines * plan.line);
  pen.fillStyle = theme.ground; // a thin gap, so that each line is read for itself
  for (let line = 0; line <= plan.lines; line++) pen.fillRect(x, y + line * plan.line - 1, wide, 2);
  for (let i = 0; plan.column >= 10 && i <= strip.width; i++)
    pen.fillRect(x + i * plan.column - 0.5, y, 1, plan.lines * plan.line);
}

function paintBars(
  pen: CanvasRenderingContext2D, drawing: FlowDrawing, part: FlowPart, which: "rollout" | "raw", first: number, last: number,
): void {
  const { plan, theme, left, top, raw } = drawing, most = barTop(drawing);
  const values = barsOf(drawing, which, part.name);
  const base = plan.bars[which === "rollout" ? 0 : 1] + BARS - top, inset = plan.column >= 6 ? 1 : 0;
  pen.fillStyle = theme.line;
  pen.fillRect(part.start + first * plan.column - left, base, (last - first + 1) * plan.column, 1);
  if (values === null) return;
  const blocked = which === "raw" && raw !== null ? hatch(pen, theme, "blocked") : null;
  for (let token = first; token <= last; token++) {
    const x = part.start + token * plan.column - left, high = most > 0 ? (values[token]! / most) * BARS : 0;
    if (blocked !== null && raw?.allowed[token] === 0) {
      pen.fillStyle = blocked;
      pen.fillRect(x, base - BARS, plan.column, BARS);
    } else {
      pen.fillStyle = weightColor(0.72, theme.dark);
      pen.fillRect(x + inset, base - high, Math.max(1, plan.column - 2 * inset), high);
    }
  }
}

function paintNames(
  pen: CanvasRenderingContext2D, drawing: FlowDrawing, part: FlowPart, first: number, last: number,
): void {
  const { plan, theme, left, names, query, over } = drawing, each = everyName(plan.column);
  for (let token = first; token <= last; token++) {
    const traced = part.name === "target" && token === query;
    const hovered = over?.part.name === part.name && over.token === token;
    const close = (name: PartName | undefined, other: number): boolean =>
      each > 1 && part.name === name && Math.abs(token - other) * plan.column < 15;
    const near = close("target", query) || close(over?.part.name, over?.token ?? 0); // would lie over it
    if (!traced && !hovered && (token % each !== 0 || near)) continue;
    const x = part.start + (token + 0.5) * plan.column - left;
    pen.fillStyle = traced ? theme.query : theme.key;
    pen.font = traced ? `600 ${FONT}` : FONT;
    if (plan.column >= UPRIGHT) {
      pen.textAlign = "center";
      pen.fillText(names[part.name].short(token, plan.column - 6), x, plan.top - 13);
    } else {
      pen.save();
      pen.translate(x, plan.top - 8);
      pen.rotate(-Math.PI / 3);
      pen.textAlign = "left";
      pen.fillText(names[part.name].short(token, plan.name), 0, 0);
      pen.restore();
    }
  }
}

type Box = readonly [x: number, y: number, width: number, height: number];
function withClip(pen: CanvasRenderingContext2D, [x, y, width, height]: Box, paint: () => void): void {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  paint();
  pen.restore();
}

function paintSides(pen: CanvasRenderingContext2D, drawing: FlowDrawing): void {
  const { plan, flow, labels, theme, width, top, words } = drawing;
  const measure = (text: string): number => pen.measureText(text).width;
  pen.font = FONT;
  for (let line = 0; line < plan.lines; line++) {
    const y = plan.top + (line + 0.5) * plan.line - top;
    pen.textAlign = "right";
    pen.fillStyle = line === plan.lines - 1 ? theme.query : theme.ink;
    pen.fillText(clipText(labels[line] ?? "", plan.left - 14, measure), plan.left - 8, y);
    pen.textAlign = "left";
    pen.fillStyle = theme.pale;
    pen.fillText(shortShare(largest(flow, line)), edgeOf(plan, width) + 8, y);
  }
  (["rollout", "raw"] as const).forEach((which, i) => {
    const values = plan.parts.map((part) => barsOf(drawing, which, part.name)).filter((some) => some !== null);
    let most = 0;
    for (const some of values) for (let token = 0; token < some.length; token++) most = Math.max(most, some[token]!);
    pen.textAlign = "left";
    pen.fillStyle = theme.pale;
    if (values.length > 0) pen.fillText(shortShare(most), edgeOf(plan, width) + 8, plan.bars[i]! + BARS / 2 - top);
    pen.fillStyle = theme.ink;
    pen.fillText(words[which], 8, plan.bars[i]! - 12 - top);
  });
}

/** Paints all that is seen. */
export function paintFlow(pen: CanvasRenderingContext2D, drawing: FlowDrawing): void {
  const { plan, theme, width, height, left, top, over, query, words } = drawing;
  pen.fillStyle = theme.ground;
  pen.fillRect(0, 0, width, height);
  pen.textBaseline = "middle";
  const inner = edgeOf(plan, width) - plan.left;
  withClip(pen, [plan.left, plan.top, inner, height - plan.top], () => {
    for (const part of plan.parts) {
      const [first, last] = visibleColumns(plan, part, left, width);
      if (last < first) continue;
      paintLines(pen, drawing, part, first, last);
      paintBars(pen, drawing, part, "rollout", first, last);
      paintBars(pen, drawing, part, "raw", first, last);
    }
    const box = (part: FlowPart, token: number, line: number, color: string): void => {
      pen.strokeStyle = color;
      pen.lineWidth = 2;
      const x = part.start + token * plan.column - left;
      pen.strokeRect(x, plan.top + line * plan.line - top, plan.column, plan.line);
    };
    const target = plan.parts[plan.parts.length - 1]!;
    box(target, query, plan.lines - 1, theme.query);
    if (over !== null && typeof over.row === "number") box(over.part, over.token, over.row, theme.ink);
  });
  withClip(pen, [0, plan.top, width, height - plan.top], () => paintSides(pen, drawing));
  withClip(pen, [plan.left, 0, width - plan.left, plan.top], () => {
    for (const part of plan.parts) {
      paintNames(pen, drawing, part, ...visibleColumns(plan, part, left, width));
      if (plan.parts.length < 2) continue;
      pen.font = `600 ${FONT}`;
      pen.textAlign = "left";
      pen.fillStyle = theme.ink;
      pen.fillText(words[part.name], Math.max(plan.left, part.start - left), 11);
    }
  });
  pen.font = FONT;
  pen.textAlign = "left";
  pen.fillStyle = theme.pale;
  pen.fillText(words.largest, edgeOf(plan, width) + 8, plan.top - 13);
}
