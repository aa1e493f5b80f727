/** What can be said of one row: where a key ranks, which keys are strongest, how spread the row is. */
import type { Row } from "./source";

export interface KeyRank {
  readonly weight: number;
  readonly score: number | null;
  readonly allowed: boolean;
  readonly rank: number; // 1: the strongest; keys of the same weight share a rank
  readonly of: number; // keys that the query may look at
}

/** Where a key stands in its row. */
export function placeIn(row: Row, key: number): KeyRank {
  const weight = row.weights[key] ?? 0;
  let stronger = 0, of = 0;
  row.weights.forEach((other, i) => {
    if (row.allowed[i] === 0) return;
    of++;
    if (other > weight) stronger++;
  });
  return { weight, score: row.scores?.[key] ?? null, allowed: row.allowed[key] === 1, rank: stronger + 1, of };
}

/** The strongest keys of a row that may be looked at, strongest first, the earlier of two equals first. */
export function strongest(row: Row, count: number): { key: number; weight: number }[] {
  const best: { key: number; weight: number }[] = [];
  row.weights.forEach((weight, key) => {
    if (row.allowed[key] === 0 || (best.length === count && weight <= best[count - 1]!.weight)) return;
    const at = best.findIndex((one) => weight > one.weight);
    best.splice(at < 0 ? best.length : at, 0, { key, weight });
    if (best.length > count) best.pop();
  });
  return best;
}

/** The entropy of a row in nats; its weights as they stand, whatever they add up to. */
export const entropyOf = (row: Row): number => -row.weights.reduce((sum, w) => sum + (w > 0 ? w * Math.log(w) : 0), 0);
