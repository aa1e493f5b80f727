/** What each model expects in place of a word: all words with their probabilities, and the likeliest at one of them. */
import { fewDigits } from "../../paint/digits";
import { shortenText } from "../../paint/text";
import type { Guess, LikelyToken } from "../../trace/reading";
import { tokensOf } from "../../trace/source";
import { type Child, h } from "../parts/element";
import { tokenName } from "../parts/names";
import type { Scene } from "../parts/view";
import { type Gap, guessAt, tellingGap, textAround, windowAround } from "./gap";
import type { Side, Sides } from "./sides";
import { shareText } from "./words";

const STRIP = 64; // tokens that are shown at once
const CONTEXT = 48; // characters of the text beside a gap

const tail = (text: string): string => (text.length > CONTEXT ? `…${text.slice(-CONTEXT)}` : text);
const start = (text: string): string => (text.length > CONTEXT ? `${text.slice(0, CONTEXT)}…` : text);

export class Guesses {
  readonly element = h("section", { class: "guesses" });

  constructor(private readonly scene: Scene, private readonly sides: Sides) {
    const { choice, signal } = scene;
    choice.watch(() => {
      void [choice.picked.value, sides.both[1].choice.picked.value];
      const isFocused = this.element.contains(this.element.ownerDocument.activeElement);
      this.draw();
      if (isFocused) this.element.querySelector<HTMLElement>('[aria-pressed="true"]')?.focus();
    }, signal);
  }

  /** The word in hand: the query that is picked, else where the two models differ most. */
  gap(): Gap | null {
    const [left, right] = this.sides.both, picked = left.choice.picked.peek().query;
    const beside = right.choice.picked.peek().query, gap = { left: picked, right: beside };
    const isGuessed = guessAt(left.source.info, picked) !== null || guessAt(right.source.info, beside) !== null;
    return isGuessed ? gap : tellingGap(left.source.info, right.source.info, this.sides.alignment());
  }

  private draw(): void {
    const { say } = this.scene, gap = this.gap();
    if (gap === null) return this.element.replaceChildren(h("p", { class: "pale" }, say("readings.guess.none")));
    const [left, right] = this.sides.both;
    this.element.replaceChildren(
      h("h3", {}, say("readings.guess.title")),
      h("p", { class: "pale" }, say("readings.guess.read", { left: left.title, right: right.title })),
      this.strip(gap),
      h("div", { class: "two" }, this.list(left, gap.left), this.list(right, gap.right)),
    );
  }

  /** All words of the first trace in a row, with both probabilities; those beyond the window are counted. */
  private strip(gap: Gap): HTMLElement {
    const [{ source, choice }] = this.sides.both, { layer } = choice.picked.peek();
    const tokens = tokensOf(source.info, layer, 0, "queries"), { there } = this.sides.alignment();
    const [first, stop] = windowAround(tokens, gap.left ?? 0, STRIP), all = tokens?.shown.length ?? 0;
    const words = Array.from({ length: stop - first }, (_, i) => this.word(first + i, there(first + i), gap));
    const more = (count: number): Child => count > 0 && h("span", { class: "more pale" }, `… ${count}`);
    return h("div", { class: "strip" }, more(first), ...words, more(all - stop));
  }

  private word(place: number, other: number | null, gap: Gap): HTMLElement {
    const [left, right] = this.sides.both;
    const tokens = tokensOf(left.source.info, left.choice.picked.peek().layer, 0, "queries");
    const guesses = [guessAt(left.source.info, place), guessAt(right.source.info, other)];
    return h("button", {
      type: "button", class: "word", disabled: guesses.every((guess) => guess === null), "data-place": place,
      "aria-pressed": String(place === gap.left), onclick: () => left.choice.pick({ query: place, key: null }),
    }, h("bdi", {}, tokenName(tokens, place, 24)), ...guesses.map(shareOf));
  }

  /** The likeliest words of one model at the gap, and the real one. */
  private list({ source: { info }, choice, title }: Side, place: number | null): HTMLElement {
    const { say } = this.scene, guess = guessAt(info, place), { layer } = choice.picked.peek();
    if (guess === null || place === null)
      return h("div", { class: "list" }, h("p", { class: "pale" }, say("readings.guess.no", { model: title })));
    const isNext = info.reading?.objective === "next", [before, after] = textAround(info, layer, place);
    const heading = say(isNext ? "readings.guess.next" : "readings.guess.masked", { model: title });
    const seen = h(
      "p", { class: "seen" }, h("bdi", {}, tail(before)), h("span", { class: "gap" }, "____"),
      !isNext && h("bdi", {}, start(after)),
    );
    const real = say("readings.guess.real", {
      word: tokenName(tokensOf(info, layer, 0, "queries"), place, 24), share: shareText(Math.exp(guess.logProb)),
      rank: guess.rank, nats: fewDigits(guess.logProb),
    });
    const likely = h("ol", {}, ...guess.top.map(likelyItem));
    return h("div", { class: "list" }, h("p", {}, heading), seen, likely, h("p", { "data-part": "real" }, real));
  }
}

const fill = (share: number): HTMLElement => h("i", { style: { width: `${Math.min(100, 100 * share)}%` } });

/** The probability of the real word, as a number and a bar. */
function shareOf(guess: Guess | null): HTMLElement {
  if (guess === null) return h("span", { class: "share" }, "–", h("span", { class: "measure" }));
  const share = Math.exp(guess.logProb);
  return h("span", { class: "share" }, shareText(share), h("span", { class: "measure" }, fill(share)));
}

const likelyItem = ({ name, share }: LikelyToken): HTMLElement => h(
  "li", {}, h("bdi", { class: "name" }, shortenText(name, 24)), h("span", { class: "measure" }, fill(share)),
  h("span", { class: "number", title: String(share) }, shareText(share)),
);
