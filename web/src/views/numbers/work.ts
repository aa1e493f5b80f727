/** The computation of one cell, step by step, from the numbers of a source. Pure: numbers in, numbers out. */
import type { LayerInfo, Numbers, Row } from "../../trace/source";

export const STEPS = [
  "stored", "q", "k", "dot", "score", "scale", "softcap", "bias", "mask", "softmax", "weight", "value", "mix",
] as const;
export type StepName = (typeof STEPS)[number];

/** All numbers of the cell in hand; what this model does not have, or what is not known, is null. */
export interface Work {
  readonly numbers: Numbers;
  readonly row: Row; // all keys of the query
  readonly query: number;
  readonly key: number;
  readonly r: number; // where the query stands in numbers.rows
  readonly c: number; // where the key stands in numbers.columns
  readonly whole: boolean; // all rows and columns are there
  readonly blind: boolean; // the query may look nowhere
  readonly met: boolean; // the model put this query and this key together; while it writes, later keys do not exist yet
  readonly blockedKeys: number; // of the row, how many may not be looked at
  readonly keys: number;
  readonly q: Float32Array | null;
  readonly k: Float32Array | null;
  readonly v: Float32Array | null;
  readonly mix: Float32Array | null;
  readonly products: Float64Array | null; // per channel
  readonly weighted: Float64Array | null; // per channel: weight × v
  readonly others: Float64Array | null; // per channel: what the keys not shown add to the mix
  readonly scaled: number | null;
  readonly capped: number | null;
  readonly bias: number | null;
  readonly score: number | null;
  readonly allowed: boolean;
  readonly power: number | null; // exp(score − highest)
  readonly weight: number;
  readonly steps: readonly StepName[];
}

/** Row `at` of a matrix of that width. */
export const line = (matrix: Float32Array | null, at: number, width: number): Float32Array | null =>
  matrix && at >= 0 ? matrix.subarray(at * width, (at + 1) * width) : null;

/** What a cell of the map has become after a step: scaled, capped, biased; from its q · k. */
export const scaledOf = (numbers: Numbers, dot: number): number => dot * numbers.scale;
export const cappedOf = (numbers: Numbers, scaled: number): number =>
  numbers.softcap === null ? scaled : numbers.softcap * Math.tanh(scaled / numbers.softcap);

export const sum = (values: Iterable<number>): number => {
  let total = 0;
  for (const value of values) total += value;
  return total;
};

/** What is printed of the cell (query, key); `row` tells of all the row's keys. */
export function workOf(layer: LayerInfo, numbers: Numbers, row: Row, query: number, key: number): Work {
  const r = numbers.rows.indexOf(query), c = numbers.columns.indexOf(key);
  const width = numbers.columns.length;
  const cell = r * width + c;
  const q = line(numbers.q, r, numbers.d), k = line(numbers.k, c, numbers.d);
  const v = line(numbers.v, c, numbers.e), mix = line(numbers.mix, r, numbers.e);
  const weight = numbers.weights[cell] ?? 0;
  const dot = numbers.dot?.[cell] ?? null;
  const scaled = dot === null ? null : scaledOf(numbers, dot);
  const score = numbers.scores?.[cell] ?? null;
  const allowed = numbers.allowed[cell] !== 0;
  const highest = numbers.highest?.[r] ?? null;
  const blockedKeys = sum(row.allowed.map((one) => Number(one === 0)));
  const known = {
    numbers, row, query, key, r, c, q, k, v, mix, weight, score, scaled, allowed,
    whole: numbers.rows.length === layer.shape[2] && width === layer.shape[3],
    met: dot === null || !Number.isNaN(dot),
    blind: blockedKeys === row.allowed.length,
    blockedKeys,
    keys: row.allowed.length,
    products: q && k && dot !== null && !Number.isNaN(dot) ? Float64Array.from(q, (x, i) => x * k[i]!) : null,
    weighted: v ? Float64Array.from(v, (x) => weight * x) : null,
    others: othersOf(numbers, r),
    capped: scaled === null ? null : cappedOf(numbers, scaled),
    bias: numbers.bias?.[cell] ?? null,
    power: score === null || highest === null ? null : allowed ? Math.exp(score - highest) : 0,
  };
  return { ...known, steps: STEPS.filter((step) => has(step, known)) };
}

/** What the keys that are not shown add to the mix: the mix without what is shown; zero where all are shown. */
function othersOf(numbers: Numbers, r: number): Float64Array | null {
  const { v, mix, e, columns, weights } = numbers;
  if (!v || !mix || r < 0) return null;
  const left = Float64Array.from(mix.subarray(r * e, (r + 1) * e));
  for (let c = 0; c < columns.length; c++)
    for (
      let channel = 0; channel < e; channel++
    ) left[channel]! -= weights[r * columns.length + c]! * v[c * e + channel]!;
  return left;
}

/** Whether this model has the step, and its numbers are known. */
function has(step: StepName, of: Omit<Work, "steps">): boolean {
  const { numbers } = of;
  switch (step) {
    case "stored": return numbers.scores === null;
    case "q": return of.q !== null && numbers.scores !== null;
    case "k": return of.k !== null && numbers.scores !== null;
    case "dot": return numbers.dot !== null;
    case "score": return numbers.scores !== null && numbers.dot === null;
    case "scale": return numbers.dot !== null && of.met && numbers.scale !== 1;
    case "softcap": return numbers.dot !== null && of.met && numbers.softcap !== null;
    case "bias": return numbers.dot !== null && of.met && numbers.bias !== null;
    case "mask": return numbers.scores !== null && (of.blockedKeys > 0 || numbers.allowed.includes(0));
    case "softmax": return numbers.scores !== null && numbers.highest !== null && numbers.total !== null;
    case "weight": return numbers.highest === null || numbers.total === null || numbers.scores === null;
    case "value": return true;
    case "mix": return of.v !== null && of.mix !== null;
  }
}
