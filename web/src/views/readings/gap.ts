/** One word as a gap: the token in each trace, and what each model expects there. */
import type { Guess } from "../../trace/reading";
import { type Tokens, type TraceInfo, tokensOf } from "../../trace/source";
import type { Alignment } from "./align";

/** The place of a word in both traces; null where a side has no such token. */
export interface Gap {
  readonly left: number | null;
  readonly right: number | null;
}

/** What a model expects at a token; null where it makes no guess. */
export const guessAt = (info: TraceInfo, place: number | null): Guess | null =>
  (place === null ? null : (info.reading?.guesses[place] ?? null));

/** The gap to begin with: where the two differ most, else the first word that one guesses; null where none does. */
export function tellingGap(left: TraceInfo, right: TraceInfo, { there, back }: Alignment): Gap | null {
  let best: Gap | null = null, most = -1;
  left.reading?.guesses.forEach((guess, i) => {
    const other = guessAt(right, there(i));
    if (guess === null || other === null) return;
    const apart = Math.abs(guess.logProb - other.logProb);
    if (apart > most) [best, most] = [{ left: i, right: there(i) }, apart];
  });
  if (best !== null) return best;
  const first = (info: TraceInfo): number => info.reading?.guesses.findIndex((guess) => guess !== null) ?? -1;
  const mine = first(left), theirs = first(right);
  return mine >= 0 ? { left: mine, right: there(mine) } : theirs >= 0 ? { left: back(theirs), right: theirs } : null;
}

/** The text before and after a token, as its tokenizer spells it; empty where that is not known. */
export function textAround(info: TraceInfo, layer: number, place: number): readonly [before: string, after: string] {
  const tokens = tokensOf(info, layer, 0, "queries");
  const span = tokens?.offsets?.[place];
  if (!tokens || !span || tokens.text === null) return ["", ""];
  const letters = Array.from(tokens.text); // offsets count code points
  return [letters.slice(0, span[0]).join("").trimEnd(), letters.slice(span[1]).join("").trimStart()];
}

/** The places of a strip of at most `count` tokens around one. */
export function windowAround(tokens: Tokens | null, at: number, count: number): readonly [first: number, stop: number] {
  const all = tokens?.shown.length ?? 0;
  const first = Math.max(0, Math.min(at - Math.floor(count / 2), all - count));
  return [first, Math.min(all, first + count)];
}
