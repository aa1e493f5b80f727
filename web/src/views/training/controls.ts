/** The controls of a training: which run, beside which other, which example and step, and a button that plays them. */
import { shortenText } from "../../paint/text";
import type { TrainingCard } from "../../trace/messages";
import type { Say } from "../../language/language";
import { h } from "../parts/element";
import { progressParts } from "./progress";

const MOST_EXAMPLES = 200; // in the list

export interface PlayerState {
  readonly cards: readonly TrainingCard[];
  readonly card: TrainingCard;
  readonly other: TrainingCard | null; // what it is compared with
  readonly at: number; // which step of the card; -1 where it has no maps
  readonly example: number;
  readonly isPlaying: boolean;
}

export interface PlayerMoves {
  readonly pickRun: (run: number) => void;
  readonly pickOther: (run: number) => void; // -1: none
  readonly pickExample: (example: number) => void;
  readonly goTo: (at: number) => void;
  readonly stepBy: (by: number) => void;
  readonly togglePlay: () => void;
}

export interface PlayerControls {
  readonly element: HTMLElement;
  readonly show: (state: PlayerState) => void;
  readonly showProgress: (card: TrainingCard) => void; // again and again: the time that is left goes on
}

const select = (name: string, pick: (value: number) => void): HTMLSelectElement => {
  const list = h("select", { "data-do": name });
  list.addEventListener("change", () => pick(Number(list.value)));
  return list;
};

const button = (name: string, press: () => void): HTMLButtonElement =>
  h("button", { type: "button", "data-do": name, onclick: press });

export function playerControls(moves: PlayerMoves, say: Say): PlayerControls {
  const runs = select("run", moves.pickRun), others = select("compare", moves.pickOther);
  const examples = select("example", moves.pickExample), progress = h("p", { class: "progress" });
  const slide = h("input", { type: "range", min: 0, step: 1, "data-do": "step" });
  slide.addEventListener("input", () => moves.goTo(Number(slide.value)));
  slide.addEventListener("keydown", (event) => event.stopPropagation()); // its arrows are its own
  const back = button("back", () => moves.stepBy(-1)), forward = button("forward", () => moves.stepBy(1));
  const play = button("play", moves.togglePlay), where = h("output", { "aria-live": "polite" });
  const read = h("p", { class: "read" }), runLabel = h("label"), otherLabel = h("label"), exampleLabel = h("label");
  const element = h(
    "div", { class: "top" }, read, runLabel, otherLabel, exampleLabel, progress,
    h("div", { class: "transport" }, back, play, forward, slide, where),
  );

  const option = (value: number, name: string): HTMLOptionElement => h("option", { value }, shortenText(name, 60));
  let listed = ""; // a list that somebody has opened stays as it is while a run goes on
  const fillLists = ({ cards, card }: PlayerState): void => {
    const count = Math.min(card.examples, MOST_EXAMPLES), alone = say("training.alone");
    const now = JSON.stringify([cards.map(({ id, name }) => [id, name]), card.id, count, alone]);
    if (now === listed) return;
    listed = now;
    runLabel.replaceChildren(say("training.run"), runs);
    otherLabel.replaceChildren(say("training.compare"), others);
    exampleLabel.replaceChildren(say("training.example"), examples);
    const all = cards.map((one, i) => option(i, one.name));
    runs.replaceChildren(...all);
    others.replaceChildren(option(-1, alone), ...cards.flatMap((one, i) => (one === card ? [] : [option(i, one.name)])));
    examples.replaceChildren(...Array.from({ length: count }, (_, i) => option(i, String(i + 1))));
  };
  const showLists = (state: PlayerState): void => {
    const { cards, card, other, example } = state;
    fillLists(state);
    otherLabel.hidden = cards.length < 2;
    exampleLabel.hidden = card.examples < 2;
    runs.value = String(cards.indexOf(card));
    others.value = String(other === null ? -1 : cards.indexOf(other));
    examples.value = String(example);
  };
  const showProgress = (card: TrainingCard): void => {
    const said = progressParts(card, Date.now(), say).join(" · ");
    if (progress.textContent !== said) progress.textContent = said;
    progress.dataset.state = card.state;
  };
  const showSteps = ({ card, at, isPlaying }: PlayerState): void => {
    const last = card.steps.length - 1;
    slide.max = String(Math.max(last, 0));
    slide.value = String(at);
    slide.disabled = last < 1;
    slide.setAttribute("aria-label", say("training.step"));
    slide.setAttribute("aria-valuetext", String(card.steps[at] ?? ""));
    where.textContent = card.steps[at] === undefined ? "" : say("training.at", { step: card.steps[at] });
    for (const [one, sign, key] of [[back, "←", "training.back"], [forward, "→", "training.forward"]] as const) {
      one.textContent = sign;
      one.title = say(key);
      one.setAttribute("aria-label", say(key));
    }
    back.disabled = at <= 0;
    forward.disabled = at >= last;
    play.textContent = say(isPlaying ? "training.pause" : "training.play");
    play.disabled = last < 1;
  };
  return {
    element,
    show: (state) => {
      read.textContent = say("training.read");
      showLists(state);
      showProgress(state.card);
      showSteps(state);
    },
    showProgress,
  };
}
