/** The arrays of a file as numbers: nothing is read before it is asked, and a part can be had without the rest. */
import { bfloat16, float16Table } from "./float16";

export interface StoredArray {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

export const FLOATS: readonly string[] = ["F16", "BF16", "F32", "F64"];
export const SIZES: Readonly<Record<string, number>> = {
  F64: 8, I64: 8, F32: 4, I32: 4, F16: 2, BF16: 2, I16: 2, I8: 1, U8: 1, BOOL: 1,
};
/** float64 where the file holds it, else float32, which holds every number of the smaller kinds. */
export type Floats = Float32Array | Float64Array;

/** Bytes at a place where numbers of this size may stand; copied only where they do not. */
function alignBytes(bytes: Uint8Array, size: number): Uint8Array {
  return bytes.byteOffset % size === 0 ? bytes : bytes.slice();
}

/** An array of floating-point numbers, any stretch of which can be had. */
export class Reals {
  private readonly values: Uint16Array | Float32Array | Float64Array;
  constructor(readonly dtype: string, bytes: Uint8Array) {
    const { buffer, byteOffset, byteLength } = alignBytes(bytes, SIZES[dtype]!);
    if (dtype === "F64") this.values = new Float64Array(buffer, byteOffset, byteLength >> 3);
    else if (dtype === "F32") this.values = new Float32Array(buffer, byteOffset, byteLength >> 2);
    else this.values = new Uint16Array(buffer, byteOffset, byteLength >> 1);
  }

  get length(): number {
    return this.values.length;
  }

  /** Writes the numbers from `from` to `to` into `out`, from its start on. */
  read(from: number, to: number, out: Float64Array | Float32Array): void {
    const { values } = this;
    if (!(values instanceof Uint16Array)) return out.set(values.subarray(from, to));
    if (this.dtype === "F16") {
      const table = float16Table();
      for (let i = from; i < to; i++) out[i - from] = table[values[i]!]!;
    } else for (let i = from; i < to; i++) out[i - from] = bfloat16(values[i]!);
  }

  at(i: number): number {
    const value = this.values[i]!;
    return this.values instanceof Uint16Array ? (this.dtype === "F16" ? float16Table()[value]! : bfloat16(value)) : value;
  }

  /** The numbers from `from` to `to`, exact; a view where the file holds them as they are. */
  part(from: number, to: number): Floats {
    if (!(this.values instanceof Uint16Array)) return this.values.subarray(from, to);
    const out = new Float32Array(to - from);
    this.read(from, to, out);
    return out;
  }
}

export function readInt32(array: StoredArray): Int32Array {
  const { buffer, byteOffset, byteLength } = alignBytes(array.bytes, 4);
  return new Int32Array(buffer, byteOffset, byteLength >> 2);
}
