/** The scores of a training as charts on the screen, as a picture beside the map, and as a table. */
import type { TrainingCard } from "../../trace/messages";
import type { Say } from "../../language/language";
import { svgDocument } from "../../paint/svg";
import type { Theme } from "../../paint/theme";
import { h } from "../parts/element";
import { asElement, asMarkup, shape } from "../parts/shape";
import { CHART, type ScoreLine, chartOf, linesOf, spanOf, stepAt } from "./chart";

/** A chart per score, with the step at `at` marked; a click on one goes to the step below the pointer. */
export function scoreCharts(
  card: TrainingCard, at: number, theme: Theme, say: Say, goTo: (at: number) => void,
): HTMLElement[] {
  const span = spanOf(card), lines = linesOf(card, say("training.loss"));
  const charts = lines.map((line, i) => {
    const { width, height } = CHART;
    const svg = { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": line.name };
    const chart = asElement(shape("svg", svg, chartOf(line, span, card.steps[at] ?? 0, i, theme)));
    chart.addEventListener("click", (event) =>
      goTo(stepAt(card.steps, span, event.clientX - chart.getBoundingClientRect().left)));
    return chart;
  });
  const none = h("p", { class: "pale" }, say("training.noScores"));
  return [h("h3", {}, say("training.scores")), lines.length === 0 ? none : h("div", { class: "charts" }, ...charts)];
}

/** The charts to the right of a picture of the map, in one file. */
export function scoresBeside(picture: string, card: TrainingCard, at: number, theme: Theme, say: Say): string {
  const lines = linesOf(card, say("training.loss")), span = spanOf(card);
  const size = /width="([\d.]+)" height="([\d.]+)"/.exec(picture);
  const wide = Number(size?.[1] ?? 0), tall = Math.max(Number(size?.[2] ?? 0), lines.length * CHART.height);
  const charts = lines.map((line, i) => {
    const chart = chartOf(line, span, card.steps[at] ?? 0, i, theme);
    return asMarkup(shape("g", { transform: `translate(${wide} ${i * CHART.height})` }, chart));
  });
  const ground = asMarkup(shape("rect", { width: wide + CHART.width, height: tall, fill: theme.ground }));
  return svgDocument(wide + CHART.width, tall, [ground, { markup: picture }, ...charts]);
}

/** One line per step of which anything is known. */
export function scoreTable(card: TrainingCard, say: Say): (string | number)[][] {
  const lines = linesOf(card, say("training.loss"));
  const steps = new Set(lines.flatMap((line) => line.points.map((point) => point.step)));
  const value = (line: ScoreLine, step: number): number | "" =>
    line.points.find((point) => point.step === step)?.value ?? "";
  return [
    [say("training.step"), ...lines.map((line) => line.name)],
    ...[...steps].sort((a, b) => a - b).map((step) => [step, ...lines.map((line) => value(line, step))]),
  ];
}
