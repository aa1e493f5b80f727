/** Who may look at whom, and what is added to a score, for one head: views of the file's arrays with their steps. */
import type { Reals } from "../bytes";

export interface Spans {
  readonly start: Int32Array;
  readonly stop: Int32Array;
  readonly first: number; // where this head's rows begin
  readonly step: 0 | 1; // 0: the same for all rows
}
export interface Bits {
  readonly bytes: Uint8Array;
  readonly first: number;
  readonly step: number;
}

/** One run of keys per row, one bit per cell, or nothing hidden. Rows and keys count within the part. */
export interface Mask {
  readonly spans: Spans | null;
  readonly bits: Bits | null;
}

export const OPEN: Mask = { spans: null, bits: null };

/** Added to the score: a tensor with steps (0 where it says the same for all), or one number per diagonal. */
export interface Bias {
  readonly values: Reals;
  readonly first: number;
  readonly row: number; // how far the next row stands; −1 for diagonals
  readonly key: number;
}

export const from = (mask: Mask, row: number): number =>
  mask.spans ? mask.spans.start[mask.spans.first + mask.spans.step * row]! : 0;

export const till = (mask: Mask, row: number, keys: number): number =>
  mask.spans ? mask.spans.stop[mask.spans.first + mask.spans.step * row]! : keys;

export function allows(mask: Mask, row: number, key: number, keys: number): boolean {
  const { bits } = mask;
  if (bits) return ((bits.bytes[bits.first + bits.step * row + (key >> 3)]! >> (key & 7)) & 1) === 1;
  return key >= from(mask, row) && key < till(mask, row, keys);
}
