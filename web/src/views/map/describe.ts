/** Numbers and rows in words. */
import { significant } from "../../paint/digits";
import type { Say } from "../../shell/language";
import type { Row } from "../../trace/source";
import type { Names } from "./names";

/** The most digits, three at most, that fit into a cell; "" where not even one does. */
export function cellText(value: number, width: number, measure: (text: string) => number): string {
  const room = width - (width < 44 ? 6 : 12);
  const short = value === 0 ? [] : [value.toExponential(0)]; // 5e-3 is shorter than 0.005
  const texts = [...[3, 2, 1].map((count) => significant(value, count)), ...short];
  return texts.find((text) => measure(text) <= room) ?? "";
}

export interface Standing {
  readonly weight: number;
  readonly score: number | null;
  readonly rank: number; // 1: no other key takes more
  readonly of: number; // keys that may be looked at
  readonly allowed: boolean;
}

/** How a key stands among all keys of its row. */
export function standing(row: Row, key: number): Standing {
  const weight = row.weights[key]!;
  let rank = 1, of = 0;
  for (let i = 0; i < row.weights.length; i++) {
    if (row.allowed[i] === 0) continue;
    of++;
    if (row.weights[i]! > weight) rank++;
  }
  return { weight, score: row.scores?.[key] ?? null, rank, of, allowed: row.allowed[key] !== 0 };
}

/** The strongest keys of a row that may be looked at, strongest first. */
export function strongest(row: Row, count: number): number[] {
  const best: number[] = [];
  for (let key = 0; key < row.weights.length; key++) {
    if (row.allowed[key] === 0) continue;
    const at = best.findIndex((other) => row.weights[key]! > row.weights[other]!);
    if (at >= 0) best.splice(at, 0, key);
    else if (best.length < count) best.push(key);
    best.length = Math.min(best.length, count);
  }
  return best;
}

const percent = (weight: number): string => significant(100 * weight, weight >= 0.995 ? 3 : 2);

/** A row as a sentence: "猫 looks at cat 91 %, The 5 %". */
export function rowSentence(row: Row, query: number, queries: Names, keys: Names, say: Say): string {
  const shares = strongest(row, 3).map(
    (key) => say("map.share", { key: keys.at(key).full, share: percent(row.weights[key]!) })
  );
  const name = queries.at(query).full;
  return shares.length === 0
    ? say("map.nothing", { query: name })
    : say("map.looks", { query: name, list: shares.join(say("map.comma")) });
}

/** A cell as a sentence, for when the selection moves by keyboard. */
export const cellSentence = (row: Row, query: number, key: number, queries: Names, keys: Names, say: Say): string => {
  const { weight, rank, of, allowed } = standing(row, key);
  const about = { query: queries.at(query).full, key: keys.at(key).full, weight: significant(weight, 3), rank, of };
  return allowed ? say("map.cell", about) : say("map.closed", about);
};
