/** Axis labels on a canvas and in an SVG: the same text at the same place. */
import { type Piece, clipText, isolateText } from "../../paint/text";
import { type Markup, node } from "../../paint/svg";
import type { Theme } from "../../paint/theme";
import { type AxisLabel, SLANT, type Tick } from "./axes";
import { type AxisNames, fontOf } from "./names";

const RIGHT_TO_LEFT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/** The stretches of a label from left to right: a cut name is one, a whole one keeps its marks apart. */
export function stretches(of: AxisLabel, names: AxisNames | null, measure: (text: string) => number): Piece[] {
  const cut = clipText(of.text, of.room, measure);
  if (cut !== of.text || of.index < 0 || names === null) return [{ text: cut, mark: false }];
  const { pieces, text } = names.at(of.index);
  if (text !== of.text) return [{ text: cut, mark: false }];
  return RIGHT_TO_LEFT.test(text) ? [...pieces].reverse() : [...pieces];
}

/** Paints the labels; those in hand come last and stand on a ground of their own. */
export function paintLabels(
  context: CanvasRenderingContext2D, labels: readonly AxisLabel[], namesOf: (of: AxisLabel) => AxisNames | null,
  theme: Theme,
  measure: (text: string) => number, limits: { readonly left: number; readonly right: number },
): void {
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const of of labels) {
    const parts = stretches(of, namesOf(of), measure);
    context.font = fontOf(of.strong);
    const widths = parts.map((part) => (of.strong ? context.measureText(part.text).width : measure(part.text)));
    const width = widths.reduce((sum, one) => sum + one, 0);
    let x = of.align === "right" ? -width : of.align === "center" ? -width / 2 : 0;
    context.save();
    context.translate(of.x, of.y);
    if (of.slanted) context.rotate(-SLANT);
    else if (of.which === "key") x = Math.min(Math.max(x, limits.left - of.x), limits.right - of.x - width);
    if (of.ground) {
      context.fillStyle = theme.ground;
      context.fillRect(x - 4, -9, width + 8, 18);
    }
    parts.forEach((part, i) => {
      context.fillStyle = part.mark ? theme.pale : of.color;
      context.fillText(isolateText(part.text), x, 0.5);
      x += widths[i]!;
    });
    context.restore();
  }
}

export function paintTicks(context: CanvasRenderingContext2D, ticks: readonly Tick[], theme: Theme): void {
  context.strokeStyle = theme.pale;
  context.lineWidth = 1;
  context.beginPath();
  for (const { x, y, across } of ticks) {
    context.moveTo(x, y);
    context.lineTo(across ? x - 4 : x, across ? y : y - 4);
  }
  context.stroke();
}

const ANCHOR = { left: "start", center: "middle", right: "end" } as const;

/** One label as SVG text. */
export function labelSvg(
  of: AxisLabel, names: AxisNames | null, theme: Theme, measure: (text: string) => number,
): Markup {
  const parts = stretches(of, names, measure);
  return node(
    "text",
    {
      x: of.x, y: of.y, fill: of.color, "dominant-baseline": "central", "text-anchor": ANCHOR[of.align],
      "font-weight": of.strong ? 600 : null,
      transform: of.slanted ? `rotate(-60 ${of.x.toFixed(2)} ${of.y.toFixed(2)})` : null,
      "xml:space": "preserve",
    },
    ...parts.map((part) => (part.mark ? node("tspan", { fill: theme.pale }, part.text) : part.text)),
  );
}

export const tickSvg = ({ x, y, across }: Tick, theme: Theme): Markup =>
  node("line", { x1: x, y1: y, x2: across ? x - 4 : x, y2: across ? y : y - 4, stroke: theme.pale });
