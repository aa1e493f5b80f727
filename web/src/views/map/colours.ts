/** From a value to one of 256 colours, and the sentence's numbers behind it. */
import { type Scale, divergingRamp, ramp, scaleWeight } from "../../paint/color";
import type { Tile } from "../../trace/source";

/** How values become colours now. `name` changes whenever a picture made with it would. */
export interface Colouring {
  readonly name: string;
  readonly scale: Scale;
  readonly diverging: boolean;
  readonly dark: boolean;
  readonly pool: "max" | "mean";
  readonly top: number; // the largest value, or the largest distance from zero
  readonly sorted: Float32Array; // for ranks: rising values, else empty
  readonly step: number; // for ranks: one value in so many was looked at
  readonly bytes: Uint8ClampedArray; // 256 × 4
}

const MOST_RANKED = 262_144;

export const valuesOf = (tile: Tile, pool: "max" | "mean"): Float32Array => (pool === "max" ? tile.max : tile.mean);

/** The largest distance from zero among cells that may be looked at. */
export function largest(tiles: readonly Tile[], pool: "max" | "mean"): number {
  let top = 0;
  for (const tile of tiles) {
    const values = valuesOf(tile, pool);
    for (let i = 0; i < values.length; i++) if (tile.allowed[i] !== 0) top = Math.max(top, Math.abs(values[i]!) || 0);
  }
  return top;
}

/** All values of these tiles that may be looked at, rising; of very many, one in `step`. */
export function rankedValues(
  tiles: readonly Tile[], pool: "max" | "mean", diverging: boolean,
): { sorted: Float32Array; step: number } {
  const count = tiles.reduce(
    (sum, tile) => sum + tile.allowed.reduce((open, share) => open + Number(share !== 0), 0), 0,
  );
  const step = Math.max(1, Math.ceil(count / MOST_RANKED));
  const sorted = new Float32Array(Math.ceil(count / step));
  let passed = 0;
  for (const tile of tiles) {
    const values = valuesOf(tile, pool);
    for (let i = 0; i < values.length; i++) {
      if (tile.allowed[i] === 0) continue;
      if (passed % step === 0) sorted[passed / step] = diverging ? Math.abs(values[i]!) : values[i]!;
      passed++;
    }
  }
  return { sorted: sorted.sort(), step };
}

let made = 0; // each ranking is its own

/**
 * `overview` fixes the top, so that panning does not change colours; `visible` fixes ranks and the top of means. A
 * `given` top goes before both: maps that are compared share it.
 */
export function colouring(
  overview: readonly Tile[], visible: readonly Tile[], pool: "max" | "mean", scale: Scale, dark: boolean,
  diverging = false,
  given: number | null = null,
): Colouring {
  const near = visible.length > 0 ? visible : overview;
  const top = given ?? largest(pool === "mean" || overview.length === 0 ? near : overview, pool);
  const { sorted, step } = scale === "rank" ? rankedValues(near, pool, diverging) : { sorted: new Float32Array(0), step: 1 };
  const name = [pool, scale, top, dark, diverging, scale === "rank" ? ++made : 0].join(" ");
  return { name, scale, diverging, dark, pool, top, sorted, step, bytes: diverging ? divergingRamp(dark) : ramp(dark) };
}

/** Which of the 256 colours a value has. */
export function shade(value: number, by: Colouring): number {
  const t = scaleWeight(Math.abs(value), by.scale, by.top, by.sorted);
  return Math.round(by.diverging ? 127.5 + (value < 0 ? -127.5 : 127.5) * t : 255 * t);
}

/** The colour of a value as CSS. */
export function colourOf(value: number, by: Colouring): string {
  const at = 4 * shade(value, by);
  return `rgb(${by.bytes[at]}, ${by.bytes[at + 1]}, ${by.bytes[at + 2]})`;
}

/** One pixel per cell; blocked cells are left clear, so that the hatch below shows. What is no number is red. */
export function pixels(tile: Tile, by: Colouring): Uint8ClampedArray<ArrayBuffer> {
  const values = valuesOf(tile, by.pool), out = new Uint8ClampedArray(4 * values.length);
  const linear = by.scale === "linear" && !by.diverging && by.top > 0 ? 255 / by.top : 0;
  for (let i = 0; i < values.length; i++) {
    if (tile.allowed[i] === 0) continue;
    const value = values[i]!;
    if (Number.isNaN(value)) {
      out.set([200, 30, 30, 255], 4 * i);
      continue;
    }
    const at = 4 * (linear > 0 ? Math.min(255, Math.max(0, Math.round(value * linear))) : shade(value, by));
    out[4 * i] = by.bytes[at]!;
    out[4 * i + 1] = by.bytes[at + 1]!;
    out[4 * i + 2] = by.bytes[at + 2]!;
    out[4 * i + 3] = 255;
  }
  return out;
}
