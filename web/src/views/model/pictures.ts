/** The small pictures of the heads: asked layer by layer as they are seen, coloured on one scale. */
import { ramp, type Scale, scaleWeight } from "../../paint/color";
import type { Source, Thumbs } from "../../trace/source";
import { isAbort } from "../../language/errorText";

const AT_ONCE = 4; // calls

/** A round number not below this one: 1, 2 or 5 times a power of ten, at most 1. The scale then seldom changes. */
export function roundTop(most: number): number {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most) + 1e-9);
  return Math.min(1, [1, 2, 5, 10].map((step) => step * power).find((top) => top >= most * (1 - 1e-6)) ?? 1);
}

/** How many queries and keys one pixel stands for. */
export function isPooled(thumbs: Thumbs, queries: number, keys: number): number {
  const each = Math.max(queries / Math.max(1, thumbs.rows), keys / Math.max(1, thumbs.columns));
  return each <= 1 ? 1 : 2 ** Math.round(Math.log2(each));
}

/** The pixels of one head, row by row; where nothing may be looked at they are clear, so that a hatch shows through. */
export function pixelsOf(
  thumbs: Thumbs, head: number, scale: Scale, top: number, dark: boolean, all?: ArrayLike<number>,
): Uint8ClampedArray<ArrayBuffer> {
  const size = thumbs.rows * thumbs.columns, colors = ramp(dark), out = new Uint8ClampedArray(size * 4);
  for (let i = 0; i < size; i++) {
    if (thumbs.allowed[head * size + i] === 0) continue;
    const at = 4 * Math.round(255 * scaleWeight(thumbs.max[head * size + i]!, scale, top, all));
    out[4 * i] = colors[at]!;
    out[4 * i + 1] = colors[at + 1]!;
    out[4 * i + 2] = colors[at + 2]!;
    out[4 * i + 3] = 255;
  }
  return out;
}

export class Pictures {
  private readonly found = new Map<number, Thumbs>();
  private readonly waiting = new Map<number, AbortController>();
  private readonly failed = new Set<number>();
  private readonly painted = new Map<number, { how: string; strip: HTMLCanvasElement }>();
  private ranks: { of: number; values: Float32Array } = { of: 0, values: new Float32Array() };
  private most = 0;
  private asked = ""; // for which batch entry, how large
  error: unknown = null;

  constructor(private readonly source: Source, private readonly changed: () => void, signal: AbortSignal) {
    signal.addEventListener("abort", () => this.forget(), { once: true });
  }

  private forget(): void {
    for (const call of this.waiting.values()) call.abort();
    for (const store of [this.found, this.waiting, this.failed, this.painted]) store.clear();
    this.most = 0;
    this.error = null;
  }

  of(layer: number): Thumbs | undefined {
    return this.found.get(layer);
  }

  /** The top of the one scale of all heads that are here. */
  get top(): number {
    return roundTop(this.most);
  }

  get busy(): boolean {
    return this.waiting.size > 0;
  }

  /** Asks for the layers that are seen, the first first, a few at a time. */
  want(layers: readonly number[], batch: number, size: number): void {
    if (this.asked !== `${batch} ${size}`) this.forget();
    this.asked = `${batch} ${size}`;
    for (const layer of layers) {
      if (this.waiting.size >= AT_ONCE) return;
      if (this.found.has(layer) || this.waiting.has(layer) || this.failed.has(layer)) continue;
      const call = new AbortController();
      this.waiting.set(layer, call);
      this.source.thumbs(layer, Math.min(batch, this.source.info.layers[layer]!.shape[0] - 1), size, call.signal).then(
        (thumbs) => {
          if (this.waiting.get(layer) !== call) return;
          this.waiting.delete(layer);
          this.found.set(layer, thumbs);
          for (const weight of thumbs.max) if (weight > this.most) this.most = weight;
          this.changed();
        },
        (error: unknown) => {
          if (this.waiting.get(layer) !== call) return;
          this.waiting.delete(layer);
          this.failed.add(layer);
          if (!isAbort(error)) this.error = error;
          this.changed();
        },
      );
    }
  }

  /** Weights of all heads in rising order, a part of them, for the scale by rank. */
  sorted(): Float32Array {
    if (this.ranks.of !== this.found.size) {
      const some: number[] = [];
      for (const { max, allowed } of this.found.values()) {
        const step = Math.max(1, Math.floor((max.length * this.found.size) / 20_000));
        for (let i = 0; i < max.length; i += step) if (allowed[i] !== 0) some.push(max[i]!);
      }
      this.ranks = { of: this.found.size, values: Float32Array.from(some).sort() };
    }
    return this.ranks.values;
  }

  /** What the colours of all pictures hang on. */
  how(scale: Scale, dark: boolean): string {
    return `${this.asked} ${scale} ${dark} ${this.top} ${scale === "rank" ? this.found.size : 0}`;
  }

  /** All heads of a layer beside each other, painted once: head h begins at pixel h × columns. */
  strip(layer: number, scale: Scale, dark: boolean): HTMLCanvasElement | null {
    const thumbs = this.found.get(layer);
    if (thumbs === undefined) return null;
    const how = this.how(scale, dark), kept = this.painted.get(layer);
    if (kept?.how === how) return kept.strip;
    const strip = kept?.strip ?? document.createElement("canvas");
    strip.width = thumbs.heads * thumbs.columns;
    strip.height = thumbs.rows;
    const pen = strip.getContext("2d");
    for (let head = 0; pen !== null && head < thumbs.heads; head++) {
      const image = pen.createImageData(thumbs.columns, thumbs.rows);
      image.data.set(pixelsOf(thumbs, head, scale, this.top, dark, scale === "rank" ? this.sorted() : undefined));
      pen.putImageData(image, head * thumbs.columns, 0);
    }
    this.painted.set(layer, { how, strip });
    return strip;
  }
}
