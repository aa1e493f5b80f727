/** Numbers as text, each way for its place: in a cell, in a reckoning, in a list, at the end of a line. */

/** So many significant digits, without a tail of zeros: 0.912, 0.05, 3.1e-5. For a map, where room is scarce. */
export function significant(value: number, count: number): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  if (Math.abs(value) < 0.001) return value.toExponential(Math.max(0, count - 1)).replace(/\.?0*e/, "e");
  const text = value.toPrecision(count);
  if (text.includes("e")) return String(Math.round(value));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/**
 * Four significant digits: 0.3536, 12.35, 3.100e-7; whole from ten thousand on. For reckonings: all are as long, and
 * with a plain minus they can be pasted anywhere.
 */
export function fourDigits(value: number): string {
  if (Number.isNaN(value)) return "?";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e7) return value.toExponential(3);
  return size >= 9999.5 ? value.toFixed(0) : value.toPrecision(4);
}

/** Few digits that still tell small numbers apart: 0.912, 0.0031, 4.2e−7. For lists that are read down. */
export function fewDigits(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  const text = size < 1e-4 || size >= 1e6 ? value.toExponential(1) : size < 0.1 ? value.toPrecision(2)
    : value.toFixed(size < 10 ? 3 : size < 1000 ? 1 : 0);
  return text.replaceAll("-", "−").replace("e+", "e");
}

/** A share in four letters or so: 0.91, 5e-3. For the ends of lines. */
export const shortShare = (share: number): string =>
  (share === 0 ? "0" : share >= 0.0095 ? share.toFixed(2) : share.toExponential(0));

/** A share as a reader says it: 91 %, and "< 1 %" rather than nothing. */
export const percent = (share: number): string =>
  share > 0 && share < 0.005 ? "< 1 %" : `${Math.round(100 * share)} %`;
