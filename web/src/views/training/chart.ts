/** Values over the steps of a training: one small line chart each, with its own axis, of one run or two. Pure. */
import { headColor } from "../../paint/color";
import type { Theme } from "../../paint/theme";
import { fourDigits, significant } from "../../paint/digits";
import { type Shape, shape, textShape } from "../parts/shape";
import type { Chart, Curve } from "./curves";

export const CHART = { width: 256, height: 142 };
const LEFT = 68, RIGHT = 14, TOP = 26, BOTTOM = 34;
const MOST_DOTS = 60; // of a line: more would touch each other
const DASHES = "5 3"; // of the run beside, for eyes that see no colours

/** Where a step and a value stand, between the first and the last step. A line of equal values lies in the middle. */
export function chartScales({ lines }: Chart, [first, last]: readonly [number, number]): {
  x: (step: number) => number;
  y: (value: number) => number;
  low: number;
  high: number;
} {
  const values = lines.flatMap((line) => line.map(([, value]) => value));
  const low = Math.min(...values), high = Math.max(...values);
  const wide = CHART.width - LEFT - RIGHT, tall = CHART.height - TOP - BOTTOM;
  return {
    low, high,
    x: (step) => LEFT + (last === first ? 0.5 : (step - first) / (last - first)) * wide,
    y: (value) => TOP + (high === low ? 0.5 : (high - value) / (high - low)) * tall,
  };
}

/** The colour of a line: of the run `beside` always the same, of the run itself its own in each chart where it is alone. */
export const lineColor = (place: number, isBeside: boolean, isAlone: boolean, theme: Theme): string =>
  headColor(isBeside ? 1 : isAlone ? place : 0, theme.dark);

/** A chart; the step `now` is marked, its value stands beside the name, and the best one has a ring. */
export function chartOf(
  chart: Chart, span: readonly [number, number], now: number | null, place: number, theme: Theme,
): Shape {
  const scales = chartScales(chart, span), { x, y, low, high } = scales;
  const floor = CHART.height - BOTTOM, edge = CHART.width - RIGHT, isAlone = chart.lines.length === 1;
  const here = chart.lines[0]?.find(([step]) => step === now);
  const rule = (y0: number): Shape => shape("line", { x1: LEFT, x2: edge, y1: y0, y2: y0, stroke: theme.line });
  const pale = { fill: theme.pale }, strong = { fill: theme.ink, "font-weight": 600 }, end = { "text-anchor": "end" };
  const beside = (value: number): Shape => // at most eight letters, for which there is room
    textShape(LEFT - 6, y(value) + 4, significant(value, 4), { ...pale, ...end });
  const marked = { stroke: theme.focus, "stroke-dasharray": "3 3" };
  return shape(
    "g", {},
    textShape(LEFT / 4, 15, chart.name, strong), // left of the lines, so that long names leave room for the value
    ...(here ? [textShape(edge, 15, fourDigits(here[1]), { ...strong, ...end })] : []),
    rule(y(high)), beside(high), ...(high === low ? [] : [rule(y(low)), beside(low)]),
    textShape(LEFT, floor + 18, String(span[0]), pale),
    ...(span[1] > span[0] ? [textShape(edge, floor + 18, String(span[1]), { ...pale, ...end })] : []),
    ...(now === null ? [] : [shape("line", { x1: x(now), x2: x(now), y1: TOP - 4, y2: floor + 4, ...marked })]),
    ...chart.lines.map((line, i) => lineShape(line, scales, now, i > 0, lineColor(place, i > 0, isAlone, theme), theme))
      .reverse(), // the run itself above the one beside it
    ...bestRing(chart, scales, lineColor(place, false, isAlone, theme)),
  );
}

type Scales = ReturnType<typeof chartScales>;

function lineShape(
  line: Curve, { x, y }: Scales, now: number | null, isBeside: boolean, colour: string, theme: Theme,
): Shape {
  const way = line.map(([step, value], i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join(" ");
  const dots = line.length <= MOST_DOTS ? line : line.filter(([step]) => step === now);
  const dashed = isBeside ? { "stroke-dasharray": DASHES } : {};
  return shape(
    "g", {},
    shape("path", { d: way, fill: "none", stroke: colour, "stroke-width": 2, "stroke-linejoin": "round", ...dashed }),
    ...dots.map(([step, value]) =>
      shape(
        "circle",
        {
          cx: x(step), cy: y(value), r: step === now && !isBeside ? 5 : 2.5, fill: colour, stroke: theme.ground,
        },
        shape("title", {}, `${step}: ${value}`),
      )),
  );
}

function bestRing({ best }: Chart, { x, y }: Scales, colour: string): Shape[] {
  if (best === null) return [];
  const ring = { cx: x(best[0]), cy: y(best[1]), r: 6.5, fill: "none", stroke: colour, "stroke-width": 1.5 };
  return [shape("circle", { ...ring, class: "best" }, shape("title", {}, `${best[0]}: ${best[1]}`))];
}

/** Which of the steps that can be shown is nearest to x. */
export function stepAt(steps: readonly number[], [first, last]: readonly [number, number], x: number): number {
  const share = (x - LEFT) / (CHART.width - LEFT - RIGHT);
  const wanted = first + share * (last - first);
  return steps.reduce((best, step, at) => (Math.abs(step - wanted) < Math.abs(steps[best]! - wanted) ? at : best), 0);
}
