/** Scores over the steps of a training: one small line chart per score, each with its own axis. Pure. */
import { headColor } from "../../paint/color";
import type { Theme } from "../../paint/theme";
import type { TrainingCard } from "../../trace/messages";
import { fourDigits } from "../../paint/digits";
import { type Shape, shape, textShape } from "../parts/shape";

export interface ScoreLine {
  readonly name: string;
  // `at`: which step of the card; -1 where nothing was shown
  readonly points: readonly { readonly at: number; readonly step: number; readonly value: number }[];
}

const MOST = 8;

/** The loss of training under `name`, then a line per score in the order in which they first come. */
export function linesOf(card: TrainingCard, name: string): ScoreLine[] {
  const losses = card.losses.map(([step, value]) => ({ at: card.steps.indexOf(step), step, value }));
  return [...(losses.length ? [{ name, points: losses }] : []), ...scoresOf(card)];
}

/** From the first to the last step of which anything is known. */
export function spanOf(card: TrainingCard): readonly [number, number] {
  const steps = [...card.steps, ...card.losses.map(([step]) => step)];
  return steps.length ? [Math.min(...steps), Math.max(...steps)] : [0, 1];
}

function scoresOf(card: TrainingCard): ScoreLine[] {
  const names = [...new Set(card.scores.flatMap((score) => Object.keys(score)))].slice(0, MOST);
  return names
    .map((name) => ({
      name,
      points: card.steps.flatMap((step, at) => {
        const value = card.scores[at]?.[name];
        return value === undefined || !Number.isFinite(value) ? [] : [{ at, step, value }];
      }),
    }))
    .filter((line) => line.points.length > 0);
}

export const CHART = { width: 250, height: 142 };
const LEFT = 58, RIGHT = 14, TOP = 26, BOTTOM = 34;

/** Where a step and a value stand, between the first and the last step. A line of equal values lies in the middle. */
export function chartScales(line: ScoreLine, [first, last]: readonly [number, number]): {
  x: (step: number) => number;
  y: (value: number) => number;
  low: number;
  high: number;
} {
  const values = line.points.map((point) => point.value);
  const low = Math.min(...values), high = Math.max(...values);
  const wide = CHART.width - LEFT - RIGHT, tall = CHART.height - TOP - BOTTOM;
  return {
    low, high,
    x: (step) => LEFT + (last === first ? 0.5 : (step - first) / (last - first)) * wide,
    y: (value) => TOP + (high === low ? 0.5 : (high - value) / (high - low)) * tall,
  };
}

/** A chart; the step `now` is marked, and its value stands beside the name. */
export function chartOf(
  line: ScoreLine, span: readonly [number, number], now: number, place: number, theme: Theme,
): Shape {
  const { x, y, low, high } = chartScales(line, span), colour = headColor(place, theme.dark);
  const floor = CHART.height - BOTTOM, edge = CHART.width - RIGHT;
  const here = line.points.find((point) => point.step === now);
  const rule = (y0: number): Shape => shape("line", { x1: LEFT, x2: edge, y1: y0, y2: y0, stroke: theme.line });
  const way = line.points.map(
    ({ step, value }, i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`
  ).join(" ");
  const pale = { fill: theme.pale }, strong = { fill: theme.ink, "font-weight": 600 };
  return shape(
    "g", {},
    textShape(LEFT, 15, line.name, strong),
    ...(here ? [textShape(edge, 15, fourDigits(here.value), { ...strong, "text-anchor": "end" })] : []),
    rule(y(high)), ...(high === low ? [] : [rule(y(low))]),
    textShape(LEFT - 6, y(high) + 4, fourDigits(high), { ...pale, "text-anchor": "end" }),
    ...(high === low ? [] : [textShape(LEFT - 6, y(low) + 4, fourDigits(low), { ...pale, "text-anchor": "end" })]),
    textShape(LEFT, floor + 18, String(span[0]), pale),
    ...(span[1] > span[0] ? [textShape(edge, floor + 18, String(span[1]), { ...pale, "text-anchor": "end" })] : []),
    shape(
      "line",
      {
        x1: x(now), x2: x(now), y1: TOP - 4, y2: floor + 4, stroke: theme.focus,
        "stroke-dasharray": "3 3",
      },
    ),
    shape("path", { d: way, fill: "none", stroke: colour, "stroke-width": 2, "stroke-linejoin": "round" }),
    ...line.points.map((point) =>
      shape(
        "circle",
        { cx: x(point.step), cy: y(point.value), r: point.step === now ? 5 : 2.5, fill: colour, stroke: theme.ground },
        shape("title", {}, `${point.step}: ${point.value}`),
      )),
  );
}

/** Which of the steps that can be shown is nearest to x. */
export function stepAt(steps: readonly number[], [first, last]: readonly [number, number], x: number): number {
  const share = (x - LEFT) / (CHART.width - LEFT - RIGHT);
  const wanted = first + share * (last - first);
  return steps.reduce((best, step, at) => (Math.abs(step - wanted) < Math.abs(steps[best]! - wanted) ? at : best), 0);
}
