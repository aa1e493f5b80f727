/** Hatches: what may not be looked at is not the same as zero, and each reason has its own. */
import type { Theme } from "./theme";
import { type Markup, node } from "./svg";

export type HatchKind = "blocked" | "padding" | "unknown";
export const HATCHES: readonly HatchKind[] = ["blocked", "padding", "unknown"];

const SIDE = 8; // CSS pixels

type Stroke = readonly [x0: number, y0: number, x1: number, y1: number];

/** Strokes of one hatch, in a square of SIDE; blocked leans, padding crosses, unknown is dots. */
const STROKES: Readonly<Record<HatchKind, readonly Stroke[]>> = {
  blocked: [[-1, 5, 5, -1], [-1, 9, 9, -1], [3, 9, 9, 3]],
  padding: [[-1, -1, 9, 9], [-1, 9, 9, -1]],
  unknown: [[1.4, 2, 2.6, 2], [5.4, 6, 6.6, 6]],
};
const widthOf = (kind: HatchKind): number => (kind === "unknown" ? 1.4 : 1);

/** A pattern to fill with: `context.fillStyle = hatch(…)`. Sharp at the context's scale, on a ground of its own. */
export function hatch(context: CanvasRenderingContext2D, theme: Theme, kind: HatchKind): CanvasPattern {
  const ratio = Math.max(1, context.getTransform().a || 1);
  const side = Math.round(SIDE * ratio);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = side;
  const pen = canvas.getContext("2d");
  if (pen !== null) {
    pen.fillStyle = theme.raised;
    pen.fillRect(0, 0, side, side);
    pen.scale(side / SIDE, side / SIDE);
    pen.strokeStyle = theme.hatch;
    pen.lineWidth = widthOf(kind);
    pen.beginPath();
    for (const [x0, y0, x1, y1] of STROKES[kind]) {
      pen.moveTo(x0, y0);
      pen.lineTo(x1, y1);
    }
    pen.stroke();
  }
  const pattern = context.createPattern(canvas, "repeat")!;
  if (typeof DOMMatrix === "function") pattern.setTransform(new DOMMatrix([SIDE / side, 0, 0, SIDE / side, 0, 0]));
  return pattern;
}

/** What to fill with in an SVG that holds `hatchSvg` of this kind. */
export const hatchFill = (kind: HatchKind): string => `url(#hatch-${kind})`;

/** The same hatch as the definition of an SVG pattern. */
export const hatchSvg = (kind: HatchKind, theme: Theme): Markup =>
  node(
    "defs",
    {},
    node(
      "pattern",
      { id: `hatch-${kind}`, width: SIDE, height: SIDE, patternUnits: "userSpaceOnUse" },
      node("rect", { width: SIDE, height: SIDE, fill: theme.raised }),
      ...STROKES[kind].map(
        ([x1, y1, x2, y2]) => node("line", { x1, y1, x2, y2, stroke: theme.hatch, "stroke-width": widthOf(kind) })
      ),
    ),
  );
