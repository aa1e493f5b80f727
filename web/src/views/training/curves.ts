/** What there is to draw of a training, and of another one beside it. Pure. */
import type { Say } from "../../language/language";
import type { TrainingCard } from "../../trace/messages";

export type Point = readonly [number, number]; // a step and a value
export type Curve = readonly Point[];

export interface Chart {
  readonly name: string;
  readonly lines: readonly Curve[]; // of the run, then of the one beside it; the first may be empty
  readonly best: Point | null; // of the run, where this is the score that decides
}

const MOST = 8; // scores

const finite = (curve: Curve | undefined): Curve =>
  (curve ?? []).filter(([step, value]) => Number.isFinite(step) && Number.isFinite(value));

/** The loss of training, the scores (first the one that decides), the speed; what neither run has is left out. */
export function chartsOf(card: TrainingCard, other: TrainingCard | null, say: Say): Chart[] {
  const chart = (name: string, of: (one: TrainingCard) => Curve | undefined, best: Point | null = null): Chart =>
    ({ name, lines: [card, ...(other ? [other] : [])].map((one) => finite(of(one))), best });
  const named = [card, ...(other ? [other] : [])].flatMap(({ best, scores }) =>
    [...(best ? [best.score] : []), ...Object.keys(scores)]);
  const scores = [...new Set(named)].slice(0, MOST).map((name) => {
    const { best } = card;
    return chart(
      say("training.validation", { score: name }), (one) => (Object.hasOwn(one.scores, name) ? one.scores[name] : []),
      best?.score === name ? [best.step, best.value] : null,
    );
  });
  return [
    chart(say("training.loss"), ({ losses }) => losses), ...scores, chart(say("training.speeds"), ({ speeds }) => speeds),
  ].filter(({ lines }) => lines.some((line) => line.length > 0));
}

/** From the first to the last step of which anything is known. */
export function spanOf(card: TrainingCard, other: TrainingCard | null = null): readonly [number, number] {
  const steps = [card, ...(other ? [other] : [])].flatMap((one) =>
    [...one.steps, ...one.losses.map(([step]) => step), ...Object.values(one.scores).flat().map(([step]) => step)]);
  return steps.length ? [Math.min(...steps), Math.max(...steps)] : [0, 1];
}

/** The settings in which two runs differ: name, of the one, of the other; "–" where one has none. */
export function differentSettings(card: TrainingCard, other: TrainingCard): [string, string, string][] {
  const value = ({ task, settings }: TrainingCard, name: string): string =>
    (name === "task" ? task : Object.hasOwn(settings, name) ? settings[name]! : "–");
  const names = new Set(["task", ...Object.keys(card.settings), ...Object.keys(other.settings)]);
  return [...names].map((name): [string, string, string] => [name, value(card, name), value(other, name)])
    .filter(([, one, two]) => one !== two);
}
