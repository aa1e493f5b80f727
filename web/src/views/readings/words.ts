/** Numbers of a reading as text. */
import { fewDigits } from "../../paint/digits";

/** A share in percent, small ones too: 54.3 %, 0.012 %. */
export function shareText(share: number): string {
  const percent = 100 * share;
  if (percent === 0 || percent === 100) return `${percent} %`;
  return `${percent >= 0.1 ? percent.toFixed(1) : fewDigits(percent)} %`;
}

/** A whole number with its thousands apart. */
export const countText = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");
