/** The curves of a training as charts on the screen, as a picture beside the map, and as a table. */
import type { TrainingCard } from "../../trace/messages";
import type { Say } from "../../language/language";
import { svgDocument } from "../../paint/svg";
import { headColor } from "../../paint/color";
import { shortenText } from "../../paint/text";
import type { Theme } from "../../paint/theme";
import { h } from "../parts/element";
import { type Shape, asElement, asMarkup, shape, textShape } from "../parts/shape";
import { CHART, chartOf, stepAt } from "./chart";
import { type Curve, chartsOf, differentSettings, spanOf } from "./curves";

/** What is drawn: a run at one of its steps with maps (-1 where it has none), and perhaps another beside it. */
export interface ShownRuns {
  readonly card: TrainingCard;
  readonly other: TrainingCard | null;
  readonly at: number;
}

const stepOf = ({ card, at }: ShownRuns): number | null => card.steps[at] ?? null;

/** A chart per curve, with the step at `at` marked; a click on one goes to the step below the pointer. */
export function scoreCharts(shown: ShownRuns, theme: Theme, say: Say, goTo: (at: number) => void): HTMLElement[] {
  const { card, other } = shown, span = spanOf(card, other);
  const charts = chartsOf(card, other, say).map((one, i) => {
    const { width, height } = CHART;
    const svg = { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": one.name };
    const chart = asElement(shape("svg", svg, chartOf(one, span, stepOf(shown), i, theme)));
    if (card.steps.length > 0)
      chart.addEventListener("click", (event) =>
        goTo(stepAt(card.steps, span, event.clientX - chart.getBoundingClientRect().left)));
    return chart;
  });
  const none = h("p", { class: "pale" }, say("training.noScores"));
  return [
    h("h3", {}, say("training.scores")),
    ...(other ? [legend(card, other, theme)] : []),
    charts.length === 0 ? none : h("div", { class: "charts" }, ...charts),
    ...(other ? settingsTable(card, other, say) : []),
  ];
}

/** Which line is which run, as the charts draw it. */
function legend(card: TrainingCard, other: TrainingCard, theme: Theme): HTMLElement {
  return h("div", { class: "runs" }, ...[card, other].map(({ name }, i) => {
    const line = asElement(shape("svg", { width: 28, height: 12 }, sampleLine(0, 6, i, theme)));
    return h("span", {}, line, h("span", {}, shortenText(name, 60)));
  }));
}

const sampleLine = (x: number, y: number, place: number, { dark }: Theme): Shape =>
  shape("line", {
    x1: x, x2: x + 26, y1: y, y2: y, stroke: headColor(place, dark), "stroke-width": 2.5,
    ...(place > 0 ? { "stroke-dasharray": "5 3" } : {}),
  });

/** The settings in which the two runs differ. */
function settingsTable(card: TrainingCard, other: TrainingCard, say: Say): HTMLElement[] {
  const rows = differentSettings(card, other), title = h("h3", {}, say("training.differ"));
  if (rows.length === 0) return [title, h("p", { class: "pale" }, say("training.same"))];
  const cells = (kind: "th" | "td", row: readonly string[]): HTMLElement =>
    h("tr", {}, ...row.map((text, i) => h(i === 0 ? "th" : kind, i === 0 ? { scope: "row" } : {}, text)));
  const head = h("tr", {}, ...[say("training.setting"), card.name, other.name]
    .map((text) => h("th", { scope: "col" }, shortenText(text, 60))));
  return [title, h("table", { class: "settings" }, h("thead", {}, head), h("tbody", {}, ...rows.map((row) => cells("td", row))))];
}

const LEGEND = 24; // pixels: a line of the legend in a file

/** The charts to the right of a picture of the map, in one file. */
export function scoresBeside(picture: string, shown: ShownRuns, theme: Theme, say: Say): string {
  const { card, other } = shown, charts = chartsOf(card, other, say), span = spanOf(card, other);
  const size = /width="([\d.]+)" height="([\d.]+)"/.exec(picture);
  const above = other ? 2 * LEGEND + 8 : 0, wide = Number(size?.[1] ?? 0);
  const tall = Math.max(Number(size?.[2] ?? 0), above + charts.length * CHART.height);
  const names = (other ? [card, other] : []).flatMap(({ name }, i) => [
    sampleLine(wide + 12, (i + 0.6) * LEGEND, i, theme),
    textShape(wide + 46, (i + 0.6) * LEGEND + 4, shortenText(name, 28), { fill: theme.ink }),
  ]);
  const drawn = charts.map((one, i) => {
    const chart = chartOf(one, span, stepOf(shown), i, theme);
    return shape("g", { transform: `translate(${wide} ${above + i * CHART.height})` }, chart);
  });
  const ground = asMarkup(shape("rect", { width: wide + CHART.width, height: tall, fill: theme.ground }));
  return svgDocument(wide + CHART.width, tall, [ground, { markup: picture }, ...[...names, ...drawn].map(asMarkup)]);
}

/** One line per step of which anything is known; of two runs, a column for each. */
export function scoreTable({ card, other }: ShownRuns, say: Say): (string | number)[][] {
  const columns = chartsOf(card, other, say).flatMap(({ name, lines }) => lines.map((line, i) =>
    ({ name: other ? `${name}, ${(i ? other : card).name}` : name, line })));
  const steps = new Set(columns.flatMap(({ line }) => line.map(([step]) => step)));
  const value = (line: Curve, step: number): number | "" => line.find(([one]) => one === step)?.[1] ?? "";
  return [
    [say("training.step"), ...columns.map(({ name }) => name)],
    ...[...steps].sort((a, b) => a - b).map((step) => [step, ...columns.map(({ line }) => value(line, step))]),
  ];
}
