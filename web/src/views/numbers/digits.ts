/** Numbers in a reckoning: after a sign, roughly, and whether two ways agree. */
import { fourDigits } from "../../paint/digits";

/** A number that follows a sign: in brackets where it is below zero. */
export const inBrackets = (value: number): string => (value < 0 ? `(${fourDigits(value)})` : fourDigits(value));

/** The same with two digits, for errors and differences. */
export const twoDigits = (value: number): string => (value === 0 ? "0" : value.toExponential(1));

/**
 * Whether two ways to the same number agree: they print the same, or differ by no more than float32 loses over terms
 * that add up to `size` in magnitude.
 */
export function doAgree(one: number, two: number, size: number): boolean {
  if (Object.is(one, two) || fourDigits(one) === fourDigits(two)) return true;
  return Math.abs(one - two) <= 4e-6 * Math.max(size, Math.abs(one), Math.abs(two));
}
