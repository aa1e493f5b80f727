/** One row, one column, the strongest keys, and who sees nothing. */
import type { Column, Hidden, Row, Top } from "../source";
import type { Pace } from "./pace";
import type { HeadMap } from "./headMap";

/** All of one query. */
export function rowOf(map: HeadMap, query: number): Row {
  const line = new Float64Array(map.keys);
  map.weigh(query, 0, map.keys, line);
  const weights = Float32Array.from(line);
  let scores: Float32Array | null = null;
  if (map.hasScores) {
    map.scores(query, 0, map.keys, line);
    scores = Float32Array.from(line);
  }
  return { weights, scores, allowed: visibleMarks(map, query) };
}

/** 1 for each key that the query may look at. */
export function visibleMarks(map: HeadMap, query: number): Uint8Array {
  const marks = new Uint8Array(map.keys);
  const start = map.start(query), stop = map.stop(query);
  if (map.isContiguous) return marks.fill(1, start, Math.max(start, stop));
  for (let key = start; key < stop; key++) marks[key] = Number(map.sees(query, key));
  return marks;
}

/** One key from all queries. */
export async function columnOf(map: HeadMap, key: number, pace: Pace): Promise<Column> {
  const weights = new Float32Array(map.queries), allowed = new Uint8Array(map.queries);
  const one = new Float64Array(1);
  for (let query = 0; query < map.queries; query++) {
    map.weigh(query, key, key + 1, one);
    weights[query] = one[0]!;
    allowed[query] = Number(map.sees(query, key));
    if (pace.due()) await pace.rest();
  }
  return { weights, allowed };
}

/** The strongest keys that each of some queries may look at; ties go to the lower key. */
export async function topOf(map: HeadMap, first: number, queries: number, count: number, pace: Pace): Promise<Top> {
  const weights = new Float32Array(queries * count), keys = new Int32Array(queries * count).fill(-1);
  const line = new Float64Array(map.keys), ranked = new Float64Array(map.keys);
  for (let i = 0; i < Math.min(queries, map.queries - first); i++) {
    const query = first + i, start = map.start(query), stop = map.stop(query);
    if (stop > start) {
      map.weigh(query, start, stop, line);
      if (map.hasScores) map.scores(query, start, stop, ranked); // weights of 0 still have an order
      else ranked.set(line);
      strongest(map, query, start, stop, ranked, count).forEach((key, j) => {
        weights[i * count + j] = line[key - start]!;
        keys[i * count + j] = key;
      });
    }
    if (pace.due()) await pace.rest();
  }
  return { first, queries, count, weights, keys };
}

/** The keys of the largest values that may be looked at, in falling order. */
export function strongest(
  map: HeadMap, query: number, start: number, stop: number, values: Float64Array, count: number,
): readonly number[] {
  const best: number[] = [];
  for (let key = start; key < stop; key++) {
    const value = values[key - start]!;
    if (value === -Infinity || (!map.isContiguous && !map.sees(query, key))) continue;
    if (best.length === count && !(value > values[best[count - 1]! - start]!)) continue;
    let at = best.length < count ? best.length : count - 1;
    for (; at > 0 && value > values[best[at - 1]! - start]!; at--) best[at] = best[at - 1]!;
    best[at] = key;
  }
  return best;
}

/** Rows that see nothing and keys that nobody sees. */
export async function hiddenOf(map: HeadMap, pace: Pace): Promise<Hidden> {
  const blind = new Uint8Array(map.queries), unseen = new Uint8Array(map.keys).fill(1);
  for (let query = 0; query < map.queries; query++) {
    const start = map.start(query), stop = map.stop(query);
    if (map.isContiguous) {
      blind[query] = Number(stop <= start);
      if (stop > start) unseen.fill(0, start, stop);
    } else {
      blind[query] = 1;
      for (let key = start; key < stop; key++)
        if (map.sees(query, key)) {
          blind[query] = 0;
          unseen[key] = 0;
        }
    }
    if (pace.due()) await pace.rest();
  }
  return { blind, unseen };
}
