/** Numbers of 16 bits as numbers: float16 by a table of all of them, bfloat16 by their place in float32. */

let table: Float32Array | null = null;

/** What each of the 65,536 patterns of float16 stands for; made once. */
export function float16Table(): Float32Array {
  if (table) return table;
  table = new Float32Array(1 << 16);
  for (let bits = 0; bits < 1 << 16; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31, fraction = bits & 1023;
    if (exponent === 0) table[bits] = sign * fraction * 2 ** -24;
    else if (exponent === 31) table[bits] = fraction ? NaN : sign * Infinity;
    else table[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return table;
}

const word = new Uint32Array(1);
const real = new Float32Array(word.buffer);

/** What a pattern of bfloat16 stands for: the upper half of a float32. */
export function bfloat16(bits: number): number {
  word[0] = bits << 16;
  return real[0]!;
}
