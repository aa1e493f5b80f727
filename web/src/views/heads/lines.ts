/** From the strongest keys of each query to the lines that are drawn. */
import type { Top } from "../../trace/source";

const FEWEST = 32, MOST = 256; // keys asked per query

export interface Line {
  readonly query: number;
  readonly key: number;
  readonly head: number;
  readonly weight: number; // renormalised where keys are hidden
}

/** How many keys are asked per query, and whether no line can be missed so. */
export interface AskedKeys {
  readonly count: number;
  readonly whole: boolean;
}

/** Some queries of one head: their strongest keys, and which share of each went to keys that are hidden. */
export interface Block {
  readonly top: Top;
  readonly hidden: Float32Array | null; // one per query; null: nothing is hidden
}

/**
 * How many keys to ask of each query so that no line from `threshold` on is missed: at most 1/threshold weights of a
 * row can be that large, and hidden keys may stand before them. `whole` is false where that would be too many.
 */
export function howMany(keys: number, threshold: number, hidden: number): AskedKeys {
  const needed = threshold > 0 ? Math.ceil(1 / threshold - 1e-9) : Infinity;
  const count = Math.min(keys, MOST, Math.max(FEWEST, needed) + hidden);
  return { count, whole: count >= Math.min(keys, needed + hidden) };
}

/** The special tokens among the keys, or the first key (the sink) where there are none. */
export function hiddenKeys(keys: number, special: (key: number) => boolean): readonly number[] {
  const hidden = Array.from({ length: keys }, (_, key) => key).filter(special);
  return hidden.length > 0 || keys === 0 ? hidden : [0];
}

/** The lines of a block for the queries from `first` to `last`, without hidden keys, renormalised. */
export function linesOf(
  { top, hidden }: Block, head: number, first: number, last: number, without: ReadonlySet<number>, threshold: number,
): Line[] {
  const lines: Line[] = [];
  for (let query = Math.max(first, top.first); query <= Math.min(last, top.first + top.queries - 1); query++) {
    const row = query - top.first;
    const left = hidden === null ? 1 : 1 - hidden[row]!;
    if (left <= 1e-6) continue; // everything is hidden
    for (let i = row * top.count; i < (row + 1) * top.count; i++) {
      const key = top.keys[i]!;
      if (key < 0) break;
      const weight = top.weights[i]! / left;
      if (weight < threshold) break; // strongest first
      if (weight > 0 && !without.has(key)) lines.push({ query, key, head, weight });
    }
  }
  return lines;
}

/** The strongest of many lines, all where they are few: what is drawn while the reader scrolls. */
export const strongest = (lines: readonly Line[], count: number): readonly Line[] =>
  lines.length <= count ? lines : [...lines].sort((a, b) => b.weight - a.weight).slice(0, count);

/** The mean share that was hidden from the queries from `first` to `last`; null where nothing is known. */
export function meanHidden(blocks: readonly Block[], first: number, last: number): number | null {
  let sum = 0, count = 0;
  for (const { top, hidden } of blocks) {
    if (hidden === null) continue;
    for (let query = Math.max(first, top.first); query <= Math.min(last, top.first + top.queries - 1); query++) {
      sum += hidden[query - top.first]!;
      count++;
    }
  }
  return count === 0 ? null : sum / count;
}
