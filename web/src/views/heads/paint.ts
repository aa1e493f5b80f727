/** The heads view on a canvas: names left and right, lines between them. */
import { headColor } from "../../paint/color";
import type { Theme } from "../../paint/theme";
import { FAMILY } from "../parts/dom";
import type { TokenNames } from "../parts/names";
import { aside, ending, HEADER, middle, type Sight, visibleQueries } from "./layout";
import type { Line } from "./lines";

export const FONT = `13px ${FAMILY}`;
const SMALL = `12px ${FAMILY}`;

/** What is in hand: a token whose lines stand out, or none; and one head, or all. */
export interface Lit {
  readonly query: number | null;
  readonly key: number | null;
  readonly head: number | null;
}

export interface HeadsDrawing {
  readonly sight: Sight;
  readonly lines: readonly Line[];
  readonly heads: readonly number[];
  readonly lit: Lit;
  readonly pinned: { readonly query: number | null; readonly key: number | null };
  readonly without: ReadonlySet<number>;
  readonly queries: TokenNames;
  readonly keys: TokenNames;
  readonly theme: Theme;
  readonly words: { readonly queries: string; readonly keys: string };
  /** One pixel of the screen while the reader scrolls: lines are made of such strands then. Null at rest. */
  readonly strand: number | null;
}

/** Whether a line belongs to what is in hand. A query in hand goes before a key. */
export function isLit(line: Line, lit: Lit): boolean {
  if (lit.head !== null && line.head !== lit.head) return false;
  return lit.query !== null ? line.query === lit.query : lit.key === null || line.key === lit.key;
}

/** How a line of this weight is drawn: the larger, the thicker and the more of its colour. */
export const strokeOf = (weight: number, lit: boolean): { readonly width: number; readonly alpha: number } => {
  const share = Math.min(1, weight);
  return { width: lit ? 0.8 + 3.4 * share : 0.6, alpha: (0.03 + 0.92 * Math.sqrt(share)) * (lit ? 1 : 0.1) };
};

/** Colours repeat after twelve heads; then lines are dashed, then dotted. */
export const dashOf = (head: number): number[] => [[], [7, 4], [2, 3]][Math.floor(head / 12) % 3]!;

/** The weights that shade the tokens of one column, by place: one per head. */
export function shades(lines: readonly Line[], lit: Lit, heads: readonly number[]): {
  readonly side: "query" | "key" | null; readonly of: ReadonlyMap<number, readonly number[]>;
} {
  const side = lit.query !== null ? "key" : lit.key !== null ? "query" : null;
  const of = new Map<number, number[]>();
  for (const line of side === null ? [] : lines) {
    if (!isLit(line, lit)) continue;
    const place = side === "key" ? line.key : line.query;
    const row = of.get(place) ?? heads.map(() => 0);
    row[heads.indexOf(line.head)] = line.weight;
    of.set(place, row);
  }
  return { side, of };
}

const STEPS = 10; // kinds of strokes between nothing and one

/** Lines that are drawn by one stroke: the same head, about the same weight, both lit or not, both fading or not. */
interface Bundle {
  readonly head: number;
  readonly lit: boolean;
  readonly outside: boolean;
  readonly step: number;
  readonly lines: Line[];
}

/** Lines in bundles, what lies on top last; those that fade lie below. A stroke per line would take much longer. */
export function bundles({ sight, lines, lit }: Pick<HeadsDrawing, "sight" | "lines" | "lit">): Bundle[] {
  const bundles = new Map<string, Bundle>();
  for (const line of lines) {
    const step = Math.ceil(Math.sqrt(Math.min(1, line.weight)) * STEPS), on = isLit(line, lit);
    const outside = ending(sight, line.key).outside, at = `${line.head} ${step} ${on} ${outside}`;
    const bundle = bundles.get(at) ?? { head: line.head, lit: on, outside, step, lines: [] };
    if (bundle.lines.push(line) === 1) bundles.set(at, bundle);
  }
  return [...bundles.values()].sort((a, b) =>
    Number(b.outside) - Number(a.outside) || Number(a.lit) - Number(b.lit) || a.step - b.step);
}

/** How far the strands of a line stand off its middle. A browser draws several of one pixel sooner than a wide one. */
export function strands(width: number, strand: number | null): readonly number[] {
  const count = strand === null ? 1 : Math.max(1, Math.round(width / strand));
  return Array.from({ length: count }, (_, i) => (i - (count - 1) / 2) * (strand ?? 0));
}

/** One stroke for a bundle; while the reader scrolls, a thin one without dashes. */
function stroke(
  context: CanvasRenderingContext2D, { sight, heads, theme, strand }: HeadsDrawing, bundle: Bundle,
): void {
  const { left, right } = sight, third = (right - left) / 3, off = aside(sight, heads, bundle.head);
  const { width, alpha } = strokeOf((bundle.step / STEPS) ** 2, bundle.lit);
  context.setLineDash(strand === null ? dashOf(bundle.head) : []);
  context.lineWidth = strand === null ? width : Math.min(width, strand);
  context.globalAlpha = alpha;
  context.strokeStyle = headColor(bundle.head, theme.dark);
  context.beginPath();
  for (const shift of strands(width, strand))
    for (const line of bundle.lines) {
      const from = middle(sight, line.query) + off + shift, to = ending(sight, line.key).y + off + shift;
      context.moveTo(left + 4, from);
      context.bezierCurveTo(left + third, from, right - third, to, right - 4, to);
    }
  context.stroke();
}

/** Lines towards keys that are not seen, faded by one veil over all of them; the others over it. */
function paintLines(context: CanvasRenderingContext2D, drawing: HeadsDrawing): void {
  const { sight, theme } = drawing, { left, right } = sight, all = bundles(drawing);
  context.save();
  context.beginPath();
  context.rect(left, HEADER, right - left, sight.height - HEADER);
  context.clip();
  for (const bundle of all) if (bundle.outside) stroke(context, drawing, bundle);
  if (all[0]?.outside) {
    const veil = context.createLinearGradient(left, 0, right, 0); // a gradient in every stroke takes twice as long
    veil.addColorStop(0.4, `${theme.ground}00`);
    veil.addColorStop(1, theme.ground);
    context.globalAlpha = 1;
    context.fillStyle = veil;
    context.fillRect(left, HEADER, right - left, sight.height - HEADER);
  }
  for (const bundle of all) if (!bundle.outside) stroke(context, drawing, bundle);
  context.restore();
}

function paintNames(context: CanvasRenderingContext2D, drawing: HeadsDrawing, side: "query" | "key"): void {
  const { sight, theme, heads, lit, pinned } = drawing;
  const names = side === "query" ? drawing.queries : drawing.keys;
  const width = side === "query" ? sight.queryWidth : sight.keyWidth;
  const start = side === "query" ? sight.left - width : sight.right;
  const shaded = shades(drawing.lines, lit, heads);
  const [first, last] = visibleQueries(sight, names.count), high = Math.min(28, sight.row);
  context.textAlign = side === "query" ? "right" : "left";
  for (let place = first; place <= last; place++) {
    const y = middle(sight, place), weights = shaded.side === side ? shaded.of.get(place) : undefined;
    const inHand = lit[side] === place || pinned[side] === place;
    weights?.forEach((weight, i) => { // one stripe per head
      context.globalAlpha = weight > 0 ? 0.06 + 0.34 * Math.min(1, weight) : 0;
      context.fillStyle = headColor(heads[i]!, theme.dark);
      context.fillRect(start + (i * width) / heads.length, y - high / 2 + 1, width / heads.length, high - 2);
    });
    context.globalAlpha = 1;
    if (inHand) {
      context.strokeStyle = pinned[side] === place ? theme[side] : theme.line;
      context.lineWidth = pinned[side] === place ? 1.5 : 1;
      context.strokeRect(start + 0.75, y - high / 2 + 1.75, width - 1.5, high - 3.5);
    }
    const hidden = side === "key" && drawing.without.has(place);
    const text = names.short(place, width - 12), x = side === "query" ? sight.left - 6 : sight.right + 6;
    context.font = FONT;
    context.fillStyle = hidden ? theme.pale : weights === undefined ? theme[side] : theme.ink;
    context.fillText(text, x, y + 0.5);
    if (hidden) { // struck through: it takes no part
      const long = context.measureText(text).width;
      context.fillRect(x, y, long, 1);
    }
    if (weights !== undefined && heads.length === 1 && sight.width >= 420) {
      context.font = SMALL;
      context.fillStyle = theme.pale;
      context.fillText(weights[0]!.toFixed(2), side === "query" ? start - 6 : start + width + 6, y + 0.5);
    }
  }
}

/** Paints all that is seen; where there are no lines, `nothing` says why. */
export function paintHeads(context: CanvasRenderingContext2D, drawing: HeadsDrawing, nothing: string): void {
  const { sight, theme, words } = drawing;
  context.globalAlpha = 1;
  context.fillStyle = theme.ground;
  context.fillRect(0, 0, sight.width, sight.height);
  context.textBaseline = "middle";
  context.direction = "ltr";
  paintLines(context, drawing);
  paintNames(context, drawing, "query");
  paintNames(context, drawing, "key");
  context.globalAlpha = 1;
  context.fillStyle = theme.ground;
  context.fillRect(0, 0, sight.width, HEADER - 2);
  context.font = `600 ${SMALL}`;
  context.textAlign = "right";
  context.fillStyle = theme.query;
  context.fillText(words.queries, sight.left - 6, HEADER / 2);
  context.textAlign = "left";
  context.fillStyle = theme.key;
  context.fillText(words.keys, sight.right + 6, HEADER / 2);
  context.textAlign = "center";
  context.fillStyle = theme.pale;
  context.font = FONT;
  context.fillText(nothing, (sight.left + sight.right) / 2, 110, sight.right - sight.left - 16);
}
