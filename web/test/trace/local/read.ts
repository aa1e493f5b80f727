/** What Python wrote for us: traces, and what it says is in them. */
import { readFileSync } from "node:fs";
import { Reals, type StoredArray } from "../../../src/trace/bytes";
import { readContainer } from "../../../src/trace/local/container";
import type { Measures } from "../../../src/trace/source";

export const bytesOf = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(`${import.meta.dirname}/../../fixtures/${name}`));

/** The arrays of Python's answers. */
export class Expected {
  private readonly file: ReturnType<typeof readContainer>;
  constructor(name: string) {
    this.file = readContainer(bytesOf(`${name}.safetensors`));
  }
  get facts(): { readonly measures: readonly (readonly Measures[])[] } {
    return JSON.parse(this.file.metadata["facts"]!) as { measures: Measures[][] };
  }
  has(name: string): boolean {
    return this.file.arrays.has(name);
  }
  stored(name: string): StoredArray {
    return this.file.arrays.get(name)!;
  }
  /** The numbers at these leading places, such as one row of one head. */
  at(name: string, ...lead: readonly number[]): number[] {
    const { dtype, shape, bytes } = this.stored(name);
    const size = shape.slice(lead.length).reduce((a, b) => a * b, 1);
    const first = lead.reduce((sum, place, i) => sum * shape[i]! + place, 0) * size;
    if (dtype === "U8") return [...bytes.subarray(first, first + size)];
    return [...new Reals(dtype, bytes).part(first, first + size)];
  }
}

/** The largest difference of two lists; NaN and infinities must stand in the same places. */
export function apart(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) throw new Error(`${a.length} numbers against ${b.length}`);
  let most = 0;
  for (let i = 0; i < a.length; i++) {
    if (Object.is(a[i], b[i]) || a[i] === b[i]) continue;
    const difference = Math.abs(a[i]! - b[i]!);
    if (!(difference <= Number.MAX_VALUE)) return Infinity;
    most = Math.max(most, difference);
  }
  return most;
}
