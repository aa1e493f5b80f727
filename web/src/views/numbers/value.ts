/** The numbers of the cell in hand by name, for whoever checks them. */
import { type Work, cappedOf, scaledOf } from "./work";

/** A step, then a channel; or a step, a query and a key, where the paper shows whole matrices. */
export type Value = readonly [step: string, first?: number, second?: number];

/** The number that stands on the paper; NaN where there is none. */
export function valueIn(work: Work | null, [step, first, second]: Value): number {
  if (!work) return NaN;
  const { numbers } = work;
  const r = second === undefined ? work.r : numbers.rows.indexOf(first!);
  const c = second === undefined ? work.c : numbers.columns.indexOf(second);
  const cell = r < 0 || c < 0 ? -1 : r * numbers.columns.length + c;
  const of = (values: ArrayLike<number> | null, at: number): number => values?.[at] ?? NaN;
  const channel = first ?? 0;
  const dot = of(numbers.dot, cell);
  const capped = cappedOf(numbers, scaledOf(numbers, dot));
  switch (step) {
    case "q": return of(work.q, channel);
    case "k": return of(work.k, channel);
    case "v": return of(work.v, channel);
    case "product": return of(work.products, channel);
    case "dot": return dot;
    case "scale": return scaledOf(numbers, dot);
    case "softcap": return capped;
    case "bias": return capped + of(numbers.bias, cell);
    case "score": return of(numbers.scores, cell);
    case "allowed": case "mask": return of(numbers.allowed, cell);
    case "highest": return of(numbers.highest, work.r);
    case "exp": return work.power ?? NaN;
    case "total": return of(numbers.total, work.r);
    case "sink": return of(numbers.sink, work.r);
    case "weight": case "softmax": return of(numbers.weights, cell);
    case "rest": return of(numbers.rest, work.r);
    case "value": return of(work.weighted, channel);
    case "mix": return of(work.mix, channel);
    case "kernel": return of(numbers.kernel, channel);
    default: return NaN;
  }
}
