/** Which token of one trace stands for the same characters as a token of another: the same text, two tokenizers. */
import { type TraceInfo, type Tokens, tokensOf } from "../../trace/source";

type Span = readonly [start: number, stop: number] | null;

export interface Alignment {
  readonly there: (place: number | null) => number | null; // from A to B; null where nothing stands for it
  readonly back: (place: number | null) => number | null;
  readonly isSame: boolean; // both have the very same tokens
}

/** The alignment of the queries of two layers. */
export function alignTokens(a: TraceInfo, b: TraceInfo, layerA: number, layerB: number): Alignment {
  const one = tokensOf(a, layerA, 0, "queries"), two = tokensOf(b, layerB, 0, "queries");
  const isSame = one !== null && two !== null && sameNames(one.shown, two.shown);
  if (isSame) return { there: (place) => place, back: (place) => place, isSame };
  const left = spansOf(a, one), right = spansOf(b, two);
  const there = counterparts(left, right), back = counterparts(right, left);
  return {
    there: (place) => (place === null ? null : (there[place] ?? null)),
    back: (place) => (place === null ? null : (back[place] ?? null)), isSame,
  };
}

const sameNames = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((name, i) => name === b[i]);

/** The characters of each token: of the text that was read where that is known, else of what the tokens spell. */
function spansOf(info: TraceInfo, tokens: Tokens | null): readonly Span[] {
  const known = info.reading?.spans;
  if (known) return known;
  const { offsets, text } = tokens ?? { offsets: null, text: null };
  if (!offsets || text === null) return [];
  const before = lettersBefore(text);
  return offsets.map((span) => span && [before[span[0]]!, before[span[1]]!]);
}

/** How many characters that are no space stand before each place: tokenizers differ in the spaces that they keep. */
function lettersBefore(text: string): readonly number[] {
  const counts = [0];
  for (const letter of text) counts.push(counts.at(-1)! + (/\s/.test(letter) ? 0 : 1)); // offsets count code points
  return counts;
}

/** For each span the one that shares most characters with it, the first of them. */
function counterparts(from: readonly Span[], to: readonly Span[]): readonly (number | null)[] {
  return from.map((span) => {
    if (span === null) return null;
    let best: number | null = null, most = 0;
    to.forEach((other, i) => {
      const shared = other === null ? 0 : Math.min(span[1], other[1]) - Math.max(span[0], other[0]);
      if (shared > most) [best, most] = [i, shared];
    });
    return best;
  });
}
