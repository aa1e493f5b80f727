/** Colours for numbers. Every scale rises evenly in lightness, so that it reads in grey and for colour-blind eyes. */

export type Scale = "linear" | "log" | "rank";
type Rgb = readonly [number, number, number];

const VIRIDIS: readonly Rgb[] = [
  [68, 1, 84], [72, 36, 117], [65, 68, 135], [53, 95, 141], [42, 120, 142], [33, 145, 140],
  [34, 168, 132], [68, 191, 112], [122, 209, 81], [189, 223, 38], [253, 231, 37],
];
// Differences: blue is less, orange is more, and no difference is the ground. Both arms are lighter or darker than it.
const LESS_MORE = {
  light: [[8, 62, 128], [44, 120, 188], [146, 190, 226], [250, 250, 249], [244, 178, 112], [204, 96, 20], [127, 44, 2]],
  dark: [[168, 214, 255], [74, 150, 224], [34, 74, 120], [22, 27, 35], [122, 62, 18], [226, 122, 40], [255, 205, 150]],
} as const satisfies Record<string, readonly Rgb[]>;
const LIGHT_HEADS = [
  "#0072b2", "#c44e00", "#00916a", "#b5579a", "#002db4", "#4b2d0f", "#f0005a", "#6987ff", "#69002d", "#3c2d78",
  "#a8812f", "#e14bd2",
] as const;
const DARK_HEADS = [
  "#56b4e9", "#ff9248", "#2fc79b", "#e79bd0", "#5a78f0", "#ff3d7d", "#e1e11e", "#c84bd0", "#807000", "#d2e196",
  "#6f9a7e", "#4ba500",
] as const;
const LOWEST_DECADE = 4; // the logarithmic scale ends four powers of ten below its top

const clamp = (t: number): number => (t > 0 ? Math.min(t, 1) : 0); // NaN becomes 0
const css = ([r, g, b]: Rgb): string => `rgb(${Math.round(r)}, ${Math.round(g)}, ${Math.round(b)})`;
const mix = (a: Rgb, b: Rgb, t: number): Rgb =>
  [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t];

function along(stops: readonly Rgb[], t: number): Rgb {
  const at = clamp(t) * (stops.length - 1);
  const first = Math.min(Math.floor(at), stops.length - 2);
  return mix(stops[first]!, stops[first + 1]!, at - first);
}

/** The viridis scale from dark violet (0) to yellow (1), as a CSS colour. */
export const viridis = (t: number): string => css(along(VIRIDIS, t));

/** Weights: nothing is the colour of the ground, much stands out from it: dark on light, bright on dark. */
function sequential(t: number, dark: boolean): Rgb {
  const ground: Rgb = dark ? [22, 27, 35] : [252, 252, 250];
  return mix(ground, along(VIRIDIS, dark ? 0.15 + 0.85 * t : 1 - t), Math.min(1, t / 0.3));
}

const rampBytes = (of: (t: number) => Rgb): Uint8ClampedArray => {
  const out = new Uint8ClampedArray(256 * 4);
  for (let i = 0; i < 256; i++) out.set([...of(i / 255), 255], i * 4);
  return out;
};
const ramps = new Map<string, Uint8ClampedArray>();
const once = (name: string, make: () => Uint8ClampedArray): Uint8ClampedArray => {
  const ramp = ramps.get(name) ?? make();
  ramps.set(name, ramp);
  return ramp;
};

/** The scale of weights as 256 × 4 bytes (r, g, b, 255); do not write into it. */
export const ramp = (dark: boolean): Uint8ClampedArray =>
  once(`ramp ${dark}`, () => rampBytes((t) => sequential(t, dark)));

/** The scale of differences as 256 × 4 bytes: −1 at the start, no difference in the middle, 1 at the end. */
export const divergingRamp = (dark: boolean): Uint8ClampedArray =>
  once(`diverging ${dark}`, () => rampBytes((t) => along(LESS_MORE[dark ? "dark" : "light"], t)));

/** The colour of a weight that `scaled` has brought between 0 and 1. */
export const weightColor = (t: number, dark: boolean): string => css(sequential(clamp(t), dark));

/** The colour of a difference between −1 (blue) and 1 (orange). */
export const diverging = (t: number, dark = false): string =>
  css(along(LESS_MORE[dark ? "dark" : "light"], (Math.max(-1, Math.min(1, t || 0)) + 1) / 2));

/** Twelve colours for heads that colour-blind eyes can tell apart; they repeat after that. */
export function headColor(i: number, dark: boolean): string {
  const colors = dark ? DARK_HEADS : LIGHT_HEADS;
  return colors[((Math.trunc(i) % colors.length) + colors.length) % colors.length]!;
}

/**
 * A weight between 0 and 1 for a colour scale: linear, its share of `top`; log, four powers of ten below `top`;
 * rank, the share of the values in `sorted` (rising) that it exceeds or equals. Without `sorted`, rank is linear.
 */
export function scaleWeight(weight: number, scale: Scale, top: number, sorted?: ArrayLike<number>): number {
  if (!(weight > 0) || !(top > 0)) return 0;
  if (scale === "log") return clamp(1 + Math.log10(weight / top) / LOWEST_DECADE);
  if (scale === "rank" && sorted !== undefined && sorted.length > 0) return rankAmong(weight, sorted);
  return clamp(weight / top);
}

/** The share of rising values that do not exceed this one. */
export function rankAmong(value: number, sorted: ArrayLike<number>): number {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low / sorted.length;
}

/** The weight that stands at t on a scale: what a legend writes beside its bar. */
export function unscaleWeight(t: number, scale: Scale, top: number, sorted?: ArrayLike<number>): number {
  if (scale === "log") return top * 10 ** ((t - 1) * LOWEST_DECADE);
  if (scale === "rank" && sorted !== undefined && sorted.length > 0)
    return sorted[Math.max(0, Math.min(sorted.length - 1, Math.ceil(t * sorted.length) - 1))]!;
  return t * top;
}

/** How light a colour is to the eye, 0 to 1 (WCAG 2). Takes 0–255. */
export function luminance(r: number, g: number, b: number): number {
  const line = (x: number): number => (x <= 10.31 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * line(r) + 0.7152 * line(g) + 0.0722 * line(b);
}

/** Black or white, whichever reads better on this colour. */
export const inkOn = (r: number, g: number, b: number): string => (luminance(r, g, b) > 0.179 ? "#000000" : "#ffffff");
