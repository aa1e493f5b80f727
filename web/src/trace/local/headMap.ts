/** The map of one head, row by row: what q, k, scale, cap, bias, mask and sink make, or what was stored. */
import { type Floats, type Reals } from "../bytes";
import { type Bias, type Mask, allows, from, till } from "./mask";

/** Any part of one head's map. Rows and columns count in the whole map; numbers are summed in float64. */
export interface HeadMap {
  readonly queries: number;
  readonly keys: number;
  readonly isContiguous: boolean; // whether a row sees all keys of its span
  readonly bytes: number; // of memory that is held
  /** The keys outside of which a row sees nothing. */
  start(row: number): number;
  stop(row: number): number;
  sees(row: number, key: number): boolean;
  /** Whether a row gives weight where it may not look, as a uniform row that sees nothing does. */
  weighsHidden(row: number): boolean;
  /** Whether q or k is known, so that there are scores. */
  readonly hasScores: boolean;
  /** Writes the scores of some keys into `out`, before the mask; NaN for keys that the row was not computed with. */
  scores(row: number, first: number, stop: number, out: Float64Array): void;
  /** Writes the weights of some keys into `out`. */
  weigh(row: number, first: number, stop: number, out: Float64Array): void;
}

/** Rows that were computed with the same keys. */
export interface MapPart {
  readonly first: number; // rows
  readonly stop: number;
  readonly left: number; // columns
  readonly right: number;
  readonly q: Floats; // rows × d
  readonly k: Floats; // keys × d
  readonly d: number;
  readonly scale: number;
  readonly softcap: number | null;
  readonly sink: Reals | null;
  readonly sinkFirst: number;
  readonly sinkStep: 0 | 1;
  readonly even: boolean; // a row that sees nothing is uniform rather than 0
  readonly mask: Mask;
  readonly bias: Bias | null;
}

/** q · k for some keys; four at a time, so that q is read once for four. */
export function dots(
  q: Floats, at: number, k: Floats, d: number, first: number, stop: number, out: Float64Array, to: number,
): void {
  let key = first;
  for (; key + 3 < stop; key += 4) {
    let a = 0, b = 0, c = 0, e = 0;
    let i = key * d, j = i + d, l = j + d, m = l + d;
    for (let n = at; n < at + d; n++) {
      const x = q[n]!;
      a += x * k[i++]!;
      b += x * k[j++]!;
      c += x * k[l++]!;
      e += x * k[m++]!;
    }
    out[to++] = a;
    out[to++] = b;
    out[to++] = c;
    out[to++] = e;
  }
  for (; key < stop; key++) {
    let a = 0;
    for (let n = 0, i = key * d; n < d; n++) a += q[at + n]! * k[i + n]!;
    out[to++] = a;
  }
}

const UNIFORM = -Infinity; // in place of a normaliser: the row is uniform

/** A map that is asked. The normaliser of a row is kept once it is known, so that a part costs only that part. */
export class ComputedMap implements HeadMap {
  readonly hasScores = true;
  readonly isContiguous: boolean;
  readonly bytes: number;
  private readonly normaliser: Float64Array; // log Σ exp(score); ∞ for a row that sees nothing
  private readonly powers: Float64Array; // exp(score − normaliser) of the last row that was computed whole
  private wholeRow = -1;
  private lastPart: MapPart;

  constructor(readonly queries: number, readonly keys: number, readonly parts: readonly MapPart[]) {
    this.normaliser = new Float64Array(queries).fill(NaN);
    this.powers = new Float64Array(keys);
    this.isContiguous = parts.every((part) => part.mask.bits === null);
    this.lastPart = parts[0]!;
    const vectors = parts.reduce((sum, part) => sum + part.q.byteLength + part.k.byteLength, 0);
    this.bytes = vectors + this.normaliser.byteLength + this.powers.byteLength;
  }

  part(row: number): MapPart {
    if (row < this.lastPart.first || row >= this.lastPart.stop)
      this.lastPart = this.parts.find((part) => row >= part.first && row < part.stop) ?? this.lastPart;
    return this.lastPart;
  }

  start(row: number): number {
    const { left, first, mask } = this.part(row);
    return left + from(mask, row - first);
  }

  stop(row: number): number {
    const { left, right, first, mask } = this.part(row);
    return left + till(mask, row - first, right - left);
  }

  sees(row: number, key: number): boolean {
    const { left, right, first, mask } = this.part(row);
    return key >= left && key < right && allows(mask, row - first, key - left, right - left);
  }

  weighsHidden(row: number): boolean {
    return this.part(row).even && this.rowNormaliser(row) === UNIFORM;
  }

  /** q · k before anything else; for keys of the row's own part. */
  dot(row: number, first: number, stop: number, out: Float64Array): void {
    const part = this.part(row);
    dots(part.q, (row - part.first) * part.d, part.k, part.d, first - part.left, stop - part.left, out, 0);
  }

  /** What is added to the score of this cell; 0 where there is nothing. */
  bias(row: number, key: number): number {
    const { bias, first, stop, left } = this.part(row);
    if (!bias) return 0;
    const across = key - left, down = row - first;
    const place = bias.row < 0 ? across - down + stop - first - 1 : bias.row * down + bias.key * across;
    return bias.values.at(bias.first + place);
  }

  scores(row: number, first: number, stop: number, out: Float64Array): void {
    const part = this.part(row);
    const low = Math.max(first, part.left), high = Math.min(stop, part.right);
    if (low > first || high < stop) out.fill(NaN, 0, stop - first);
    if (low < high) this.scoresInPart(part, row, low, high, low === first ? out : out.subarray(low - first));
  }

  private scoresInPart(part: MapPart, row: number, first: number, stop: number, out: Float64Array): void {
    const { scale, softcap } = part;
    dots(part.q, (row - part.first) * part.d, part.k, part.d, first - part.left, stop - part.left, out, 0);
    const count = stop - first;
    if (softcap === null) for (let i = 0; i < count; i++) out[i]! *= scale;
    else for (let i = 0; i < count; i++) out[i] = softcap * Math.tanh((out[i]! * scale) / softcap);
    if (part.bias) for (let i = 0; i < count; i++) out[i]! += this.bias(row, first + i);
  }

  /** The sink's logit of a row; −∞ where there is none. */
  sink(row: number): number {
    const { sink, sinkFirst, sinkStep, first } = this.part(row);
    return sink === null ? -Infinity : sink.at(sinkFirst + sinkStep * (row - first));
  }

  /** log Σ exp(score) of a row over what it sees, the sink included. */
  rowNormaliser(row: number): number {
    const known = this.normaliser[row]!;
    if (known === known) return known;
    const part = this.part(row);
    const { mask } = part, { powers } = this;
    const start = this.start(row), stop = this.stop(row), count = Math.max(0, stop - start);
    this.scoresInPart(part, row, start, Math.max(start, stop), powers);
    let top = -Infinity, seen = 0;
    if (mask.bits)
      for (let i = 0; i < count; i++) {
        if (!allows(mask, row - part.first, start + i - part.left, 0)) powers[i] = -Infinity;
        else seen++;
      }
    else seen = count;
    for (let i = 0; i < count; i++) if (!(powers[i]! <= top)) top = powers[i]!;
    this.wholeRow = row;
    if (top === -Infinity) {
      powers.fill(0, 0, count);
      return (this.normaliser[row] = part.even && seen === 0 ? UNIFORM : Infinity);
    }
    const sink = this.sink(row);
    if (sink > top) top = sink;
    let total = sink === -Infinity ? 0 : Math.exp(sink - top);
    for (let i = 0; i < count; i++) total += powers[i] = Math.exp(powers[i]! - top);
    for (let i = 0; i < count; i++) powers[i]! /= total;
    return (this.normaliser[row] = top + Math.log(total));
  }

  weigh(row: number, first: number, stop: number, out: Float64Array): void {
    const normal = this.rowNormaliser(row), part = this.part(row);
    if (normal === UNIFORM) {
      const share = 1 / Math.max(1, part.right - part.left);
      for (let key = first; key < stop; key++) out[key - first] = key >= part.left && key < part.right ? share : 0;
      return;
    }
    const start = this.start(row);
    const low = Math.min(stop, Math.max(first, start)), high = Math.max(low, Math.min(stop, this.stop(row)));
    out.fill(0, 0, low - first);
    out.fill(0, high - first, stop - first);
    if (low >= high) return;
    if (this.wholeRow === row) return out.set(this.powers.subarray(low - start, high - start), low - first);
    const some = out.subarray(low - first, high - first);
    if (normal === Infinity) {
      some.fill(0);
      return;
    }
    this.scoresInPart(part, row, low, high, some);
    for (let i = 0; i < some.length; i++) some[i] = Math.exp(some[i]! - normal);
    if (part.mask.bits)
      for (let i = 0; i < some.length; i++)
        if (!allows(part.mask, row - part.first, low + i - part.left, 0)) some[i] = 0;
  }
}

/** A map whose weights somebody kept; its scores are not known. */
export class StoredMap implements HeadMap {
  readonly hasScores = false;
  readonly isContiguous: boolean;
  readonly bytes = 256;
  constructor(
    readonly queries: number, readonly keys: number, private readonly weights: Reals, private readonly place: number,
    readonly mask: Mask, readonly masked: boolean,
  ) {
    this.isContiguous = mask.bits === null;
  }

  start(row: number): number {
    return from(this.mask, row);
  }

  stop(row: number): number {
    return till(this.mask, row, this.keys);
  }

  sees(row: number, key: number): boolean {
    return allows(this.mask, row, key, this.keys);
  }

  weighsHidden(): boolean {
    return this.masked; // whoever stored them says
  }

  scores(_row: number, first: number, stop: number, out: Float64Array): void {
    out.fill(NaN, 0, stop - first);
  }

  weigh(row: number, first: number, stop: number, out: Float64Array): void {
    const line = this.place + row * this.keys;
    this.weights.read(line + first, line + stop, out);
  }
}
