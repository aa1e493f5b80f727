/** Scores over the steps of a training: one small line chart per score, each with its own axis. Pure. */
import { headColor } from "../../paint/color";
import type { Theme } from "../../paint/theme";
import type { TrainingCard } from "../../hosts/server";
import { fourDigits } from "../../paint/digits";
import { type Shape, shape, words } from "../numbers/shape";

export interface Line {
  readonly name: string;
  // `at`: which step of the card
  readonly points: readonly { readonly at: number; readonly step: number; readonly value: number }[];
}

const MOST = 8;

/** One line per score, in the order in which they first come; steps without it are left out. */
export function linesOf(card: TrainingCard): Line[] {
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
const LEFT = 52, RIGHT = 14, TOP = 26, BOTTOM = 34;

/** Where a step and a value stand. A line of equal values lies in the middle. */
export function placing(line: Line, steps: readonly number[]): {
  x: (step: number) => number;
  y: (value: number) => number;
  low: number;
  high: number;
} {
  const values = line.points.map((point) => point.value);
  const low = Math.min(...values), high = Math.max(...values);
  const first = steps[0] ?? 0, last = steps[steps.length - 1] ?? 1;
  const wide = CHART.width - LEFT - RIGHT, tall = CHART.height - TOP - BOTTOM;
  return {
    low, high,
    x: (step) => LEFT + (last === first ? 0.5 : (step - first) / (last - first)) * wide,
    y: (value) => TOP + (high === low ? 0.5 : (high - value) / (high - low)) * tall,
  };
}

/** A chart; the step `now` is marked, and its value stands beside the name. */
export function chartOf(line: Line, steps: readonly number[], now: number, place: number, theme: Theme): Shape {
  const { x, y, low, high } = placing(line, steps), colour = headColor(place, theme.dark);
  const floor = CHART.height - BOTTOM, edge = CHART.width - RIGHT;
  const here = line.points.find((point) => point.at === now);
  const rule = (y0: number): Shape => shape("line", { x1: LEFT, x2: edge, y1: y0, y2: y0, stroke: theme.line });
  const way = line.points.map(
    ({ step, value }, i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`
  ).join(" ");
  const pale = { fill: theme.pale }, strong = { fill: theme.ink, "font-weight": 600 };
  return shape(
    "g", {},
    words(LEFT, 15, line.name, strong),
    ...(here ? [words(edge, 15, fourDigits(here.value), { ...strong, "text-anchor": "end" })] : []),
    rule(y(high)), ...(high === low ? [] : [rule(y(low))]),
    words(LEFT - 6, y(high) + 4, fourDigits(high), { ...pale, "text-anchor": "end" }),
    ...(high === low ? [] : [words(LEFT - 6, y(low) + 4, fourDigits(low), { ...pale, "text-anchor": "end" })]),
    words(LEFT, floor + 18, String(steps[0] ?? ""), pale),
    ...(
      steps.length > 1 ? [
        words(edge, floor + 18, String(steps[steps.length - 1]), { ...pale, "text-anchor": "end" }),
      ] : []
    ),
    shape(
      "line",
      {
        x1: x(steps[now] ?? 0), x2: x(steps[now] ?? 0), y1: TOP - 4, y2: floor + 4, stroke: theme.focus,
        "stroke-dasharray": "3 3",
      },
    ),
    shape("path", { d: way, fill: "none", stroke: colour, "stroke-width": 2, "stroke-linejoin": "round" }),
    ...line.points.map((point) =>
      shape(
        "circle",
        { cx: x(point.step), cy: y(point.value), r: point.at === now ? 5 : 2.5, fill: colour, stroke: theme.ground },
        shape("title", {}, `${point.step}: ${point.value}`),
      )),
  );
}

/** The step whose place is nearest to x. */
export function stepAt(steps: readonly number[], x: number): number {
  const share = (x - LEFT) / (CHART.width - LEFT - RIGHT), first = steps[0] ?? 0, last = steps[steps.length - 1] ?? 0;
  const wanted = first + share * (last - first);
  return steps.reduce((best, step, at) => (Math.abs(step - wanted) < Math.abs(steps[best]! - wanted) ? at : best), 0);
}
