/** The arrays that a layer names, once each was found and fits the others. */
import type { BiasWords, LayerWords, MaskWords, PartWords } from "../schema";
import { FLOATS, type Floats, Reals, type StoredArray, readInt32 } from "../bytes";
import { type Bias, type Mask, OPEN } from "./mask";
import { ComputedMap, type HeadMap, StoredMap, type MapPart } from "./headMap";
import { short } from "../container";
import { TraceError } from "./traceError";

type Side = number | readonly number[] | null; // what an axis may be: one size, one of some, any
export type Axes = readonly [b: number, h: number, q: number, k: number];

/** Finds arrays by name; a sentence where one is missing, or is not what belongs there. */
export class Arrays {
  private readonly reals = new Map<string, Reals>();
  private readonly checked = new Set<string>();
  constructor(private readonly arrays: ReadonlyMap<string, StoredArray>) {}

  find(where: string, name: string | null, kinds: readonly string[], ...shape: readonly Side[]): StoredArray {
    const array = name === null ? undefined : this.arrays.get(name);
    if (!array) throw damaged(where, `there is no array ${short(String(name))}`);
    const fits = array.shape.length === shape.length && array.shape.every((size, i) => oneOf(size, shape[i]!));
    if (!fits || !kinds.includes(array.dtype))
      throw damaged(
        where, `the array ${short(String(name))} of shape ${array.shape.join(" × ")} and ${array.dtype} is not what belongs there`,
      );
    return array;
  }

  floats(name: string): Reals {
    const known = this.reals.get(name);
    if (known) return known;
    const { dtype, bytes } = this.arrays.get(name)!;
    const reals = new Reals(dtype, bytes);
    this.reals.set(name, reals);
    return reals;
  }

  shape(name: string): readonly number[] {
    return this.arrays.get(name)!.shape;
  }

  stored(name: string): StoredArray {
    return this.arrays.get(name)!;
  }

  /** One head of an array (b|1, h|g|1, n, d), as numbers. */
  head(name: string, batch: number, head: number, heads: number): Floats {
    const [b, g, n, d] = this.shape(name) as Axes;
    const first = ((b === 1 ? 0 : batch) * g + Math.floor((head * g) / heads)) * n * d;
    return this.floats(name).part(first, first + n * d);
  }

  /** Throws a sentence unless every array of the layer is there and fits; nothing is computed. */
  check(where: string, layer: LayerWords): void {
    const [b, h, q, k] = layer.shape;
    const parts = layer.parts;
    if (parts[0]!.weights !== null) {
      const [part] = parts as [PartWords];
      const whole = part.rows[0] === 0 && part.rows[1] === q && part.columns[0] === 0 && part.columns[1] === k;
      if (parts.length > 1 || !whole || part.q !== null || part.k !== null)
        throw damaged(where, "stored weights are all of a map, and nothing stands beside them");
      this.find(where, part.weights, FLOATS, b, h, q, k);
      this.checkMask(where, part.mask, layer.shape);
    } else {
      let at = 0;
      for (const part of parts) {
        const [first, stop] = part.rows, [left, right] = part.columns;
        if (first !== at || stop < first || left > right || right > k)
          throw damaged(where, `rows ${first} to ${stop} with keys ${left} to ${right} are no part of the map`);
        this.checkPart(where, part, [b, h, stop - first, right - left]);
        at = stop;
      }
      if (at !== q) throw damaged(where, `its parts have ${at} rows, but the map has ${q}`);
    }
    if (layer.v !== null) this.find(where, layer.v, FLOATS, [1, b], null, null, null);
    if (layer.seen?.mix) this.find(where, layer.seen.mix, FLOATS, [1, b], h, layer.seen.rows.length, null);
  }

  private checkPart(where: string, part: PartWords, axes: Axes): void {
    const [b, h, rows, columns] = axes;
    const q = this.find(where, part.q, FLOATS, [1, b], [1, h], rows, null).shape;
    const k = this.find(where, part.k, FLOATS, [1, b], null, columns, q[3]!).shape;
    const heads = k[1]!;
    const shared = heads !== h && (h % heads !== 0 || q[1] !== h);
    if (heads === 0 || shared || (q[0] !== b && k[0] !== b)) throw damaged(where, "its q and k do not make its map");
    if (part.weights !== null) throw damaged(where, "a part has q and k, or weights, not both");
    if (part.sink !== null) {
      this.find(where, part.sink, FLOATS, [1, b], [1, h], [1, rows], 1);
      if (part.weigh !== "softmax") throw damaged(where, "a sink belongs to softmax");
    }
    this.checkMask(where, part.mask, axes);
    if (!part.bias) return;
    const { tensor, diagonals } = part.bias;
    if ((tensor === null) === (diagonals === null)) throw damaged(where, "a bias is a tensor or diagonals");
    if (tensor !== null) this.find(where, tensor, FLOATS, [1, b], [1, h], [1, rows], [1, columns]);
    else this.find(where, diagonals, FLOATS, [1, h], rows + columns - 1);
  }

  private checkMask(where: string, mask: MaskWords | null, [b, h, q, k]: Axes): void {
    if (!mask) return;
    if (mask.start === null) {
      if (mask.stop !== null) throw damaged(where, "a mask says where runs of keys stop, but not where they start");
      this.find(where, mask.bits, ["U8"], [1, b], [1, h], [1, q], Math.ceil(k / 8));
      return;
    }
    const start = this.find(where, mask.start, ["I32"], [1, b], [1, h], [1, q]);
    const stop = this.find(where, mask.stop, ["I32"], ...start.shape);
    const name = `${mask.start} ${String(mask.stop)} ${k}`;
    if (this.checked.has(name)) return; // layers share masks
    const low = readInt32(start), high = readInt32(stop);
    if (mask.bits !== null || low.some((first, i) => first < 0 || first > high[i]! || high[i]! > k))
      throw damaged(where, `a run of keys does not lie within the ${k} keys`);
    this.checked.add(name);
  }

  /** The map of one head of a layer that was checked. */
  map(layer: LayerWords, batch: number, head: number): HeadMap {
    const [, h, q, k] = layer.shape;
    const [first] = layer.parts as [PartWords];
    if (first.weights !== null) {
      const mask = this.mask(first.mask, batch, head);
      return new StoredMap(q, k, this.floats(first.weights), (batch * h + head) * q * k, mask, first.mask !== null);
    }
    return new ComputedMap(q, k, layer.parts.map((part) => this.part(part, h, batch, head)));
  }

  private part(part: PartWords, heads: number, batch: number, head: number): MapPart {
    const sink = part.sink === null ? null : this.shape(part.sink);
    const sinkRows = sink?.[2] ?? 1;
    return {
      first: part.rows[0], stop: part.rows[1], left: part.columns[0], right: part.columns[1],
      q: this.head(part.q!, batch, head, heads), k: this.head(part.k!, batch, head, heads), d: this.shape(part.q!)[3]!,
      scale: part.scale, softcap: part.softcap, even: part.weigh === "even",
      sink: part.sink === null ? null : this.floats(part.sink),
      sinkFirst: sink ? lead(sink, batch, head) * sinkRows : 0, sinkStep: sinkRows > 1 ? 1 : 0,
      mask: this.mask(part.mask, batch, head), bias: this.bias(part.bias, batch, head),
    };
  }

  private mask(words: MaskWords | null, batch: number, head: number): Mask {
    if (!words) return OPEN;
    if (words.start === null) {
      const { shape, bytes } = this.stored(words.bits!);
      const [, , rows, width] = shape as Axes;
      const first = lead(shape, batch, head) * rows * width;
      return { spans: null, bits: { bytes, first, step: rows > 1 ? width : 0 } };
    }
    const start = this.stored(words.start);
    const rows = start.shape[2]!;
    const first = lead(start.shape, batch, head) * rows;
    const stop = readInt32(this.stored(words.stop!));
    return { spans: { start: readInt32(start), stop, first, step: rows > 1 ? 1 : 0 }, bits: null };
  }

  private bias(words: BiasWords | null, batch: number, head: number): Bias | null {
    if (!words) return null;
    if (words.diagonals !== null) {
      const [heads, count] = this.shape(words.diagonals) as readonly [number, number];
      return { values: this.floats(words.diagonals), first: (heads === 1 ? 0 : head) * count, row: -1, key: 1 };
    }
    const shape = this.shape(words.tensor!);
    const [, , rows, keys] = shape as Axes;
    const first = lead(shape, batch, head) * rows * keys;
    return { values: this.floats(words.tensor!), first, row: rows > 1 ? keys : 0, key: keys > 1 ? 1 : 0 };
  }
}

/** Which of the leading places (b|1, h|1) belongs to this entry and head. */
const lead = (shape: readonly number[], batch: number, head: number): number =>
  (shape[0] === 1 ? 0 : batch) * shape[1]! + (shape[1] === 1 ? 0 : head);

const oneOf = (size: number, side: Side): boolean =>
  side === null || size === side || (typeof side !== "number" && side.includes(size));

export const damaged = (where: string, what: string): TraceError =>
  new TraceError(`The trace is damaged at ${short(where)}: ${what}.`, "file.damaged", { where: short(where) });
