/** How numbers are printed: four significant digits, with a plain minus so that they can be pasted anywhere. */

/** Four significant digits: 0.3536, 12.35, 3.100e-7; whole from ten thousand on. */
export function digits(value: number): string {
  if (Number.isNaN(value)) return "?";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e7) return value.toExponential(3);
  return size >= 9999.5 ? value.toFixed(0) : value.toPrecision(4);
}

/** A number that follows a sign: in brackets where it is below zero. */
export const after = (value: number): string => (value < 0 ? `(${digits(value)})` : digits(value));

/** The same with two digits, for errors and differences. */
export const roughly = (value: number): string => (value === 0 ? "0" : value.toExponential(1));

/**
 * Whether two ways to the same number agree: they print the same, or differ by no more than float32 loses over terms
 * that add up to `size` in magnitude.
 */
export function agree(one: number, two: number, size: number): boolean {
  if (Object.is(one, two) || digits(one) === digits(two)) return true;
  return Math.abs(one - two) <= 4e-6 * Math.max(size, Math.abs(one), Math.abs(two));
}
