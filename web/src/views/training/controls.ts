/** The controls of a training: which run, which example, which step, and a button that plays the steps. */
import { shortenText } from "../../paint/text";
import type { TrainingCard } from "../../trace/messages";
import type { Say } from "../../language/language";
import { h } from "../parts/element";

const MOST_EXAMPLES = 200; // in the list

export interface PlayerState {
  readonly cards: readonly TrainingCard[];
  readonly card: TrainingCard;
  readonly at: number; // which step of the card
  readonly example: number;
  readonly isPlaying: boolean;
}

export interface PlayerMoves {
  readonly pickRun: (run: number) => void;
  readonly pickExample: (example: number) => void;
  readonly goTo: (at: number) => void;
  readonly stepBy: (by: number) => void;
  readonly togglePlay: () => void;
}

export interface PlayerControls {
  readonly element: HTMLElement;
  readonly show: (state: PlayerState) => void;
}

const select = (name: string, pick: (value: number) => void): HTMLSelectElement => {
  const list = h("select", { "data-do": name });
  list.addEventListener("change", () => pick(Number(list.value)));
  return list;
};

const button = (name: string, press: () => void): HTMLButtonElement =>
  h("button", { type: "button", "data-do": name, onclick: press });

export function playerControls(moves: PlayerMoves, say: Say): PlayerControls {
  const runs = select("run", moves.pickRun), examples = select("example", moves.pickExample);
  const slide = h("input", { type: "range", min: 0, step: 1, "data-do": "step" });
  slide.addEventListener("input", () => moves.goTo(Number(slide.value)));
  slide.addEventListener("keydown", (event) => event.stopPropagation()); // its arrows are its own
  const back = button("back", () => moves.stepBy(-1)), forward = button("forward", () => moves.stepBy(1));
  const play = button("play", moves.togglePlay), where = h("output", { "aria-live": "polite" });
  const read = h("p", { class: "read" }), runLabel = h("label"), exampleLabel = h("label");
  const element = h(
    "div", { class: "top" }, read, runLabel, exampleLabel,
    h("div", { class: "transport" }, back, play, forward, slide, where),
  );

  const showLists = ({ cards, card, example }: PlayerState): void => {
    runLabel.replaceChildren(say("training.run"), runs);
    exampleLabel.replaceChildren(say("training.example"), examples);
    exampleLabel.hidden = card.examples < 2;
    runs.replaceChildren(...cards.map((one, i) => h("option", { value: i }, shortenText(one.name, 60))));
    runs.value = String(cards.indexOf(card));
    const count = Math.min(card.examples, MOST_EXAMPLES);
    examples.replaceChildren(...Array.from({ length: count }, (_, i) => h("option", { value: i }, String(i + 1))));
    examples.value = String(example);
  };
  const showSteps = ({ card, at, isPlaying }: PlayerState): void => {
    const last = card.steps.length - 1;
    slide.max = String(last);
    slide.value = String(at);
    slide.setAttribute("aria-label", say("training.step"));
    slide.setAttribute("aria-valuetext", String(card.steps[at]));
    where.textContent = say("training.at", { step: card.steps[at] ?? "" });
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
      showSteps(state);
    },
  };
}
