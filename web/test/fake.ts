/** A source in plain loops and float64, to hold views and other sources against. Nothing here is fast. */
import {
  type Flow, type FlowAt, type HeadAt, type Hidden, type LayerInfo, type Measures, type Numbers, type Proof,
  type Source, TILE, type Tokens, type TraceInfo,
} from "../src/trace/source";

export const named = (shown: readonly string[], more: Partial<Tokens> = {}): Tokens => ({
  shown, ids: null, offsets: null, special: null, words: null, text: null, grid: null, ...more,
});

/** Numbers that look random and are the same every time, between −1 and 1. */
export function numbersFrom(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}

export interface Head { readonly q: number[][]; readonly k: number[][]; readonly v: number[][] }
export interface FakeLayer {
  readonly info: LayerInfo;
  readonly heads: readonly Head[];
  readonly allowed: (query: number, key: number) => boolean;
  readonly scale: number;
}

export interface FakeSizes {
  readonly layers?: number; readonly heads?: number; readonly d?: number; readonly causal?: boolean; readonly padded?: number;
}

/** Self-attention layers over these tokens, batch 1; the last `padded` keys are hidden from everybody. */
export function fakeLayers(tokens: readonly string[], sizes: FakeSizes = {}): FakeLayer[] {
  const { layers = 3, heads = 4, d = 5, causal = false, padded = 0 } = sizes;
  const n = tokens.length;
  const draw = numbersFrom(7);
  const matrix = (width: number): number[][] =>
    Array.from({ length: n }, () => Array.from({ length: width }, () => 2 * draw()));
  return Array.from({ length: layers }, (_, layer) => ({
    info: {
      name: `layers.${layer}.attention`, kind: "self", side: "", how: "computed", shape: [1, heads, n, n],
      queries: [0], keys: [0], scores: true, values: true, notes: [], states: [], edits: [],
    },
    heads: Array.from({ length: heads }, () => ({ q: matrix(d), k: matrix(d), v: matrix(d) })),
    allowed: (query, key) => key < n - padded && (!causal || key <= query),
    scale: 1 / Math.sqrt(d),
  }));
}

const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, x, i) => sum + x * b[i]!, 0);

export class Fake implements Source {
  readonly info: TraceInfo;
  constructor(private readonly layers: readonly FakeLayer[], tokens: readonly Tokens[], more: Partial<TraceInfo> = {}) {
    this.info = {
      id: "fake", name: "fake", model: "Fake", run: 0, runs: 1, tokens, layers: layers.map((layer) => layer.info),
      notes: [], edits: [], missed: [], precision: "float64", error: null, output: null, picture: null, ...more,
    };
  }

  scoresOf(at: HeadAt, query: number): number[] {
    const layer = this.layers[at.layer]!;
    const head = layer.heads[at.head]!;
    return head.k.map((key) => dot(head.q[query]!, key) * layer.scale);
  }

  weightsOf(at: HeadAt, query: number): number[] {
    const layer = this.layers[at.layer]!;
    const powers = this.scoresOf(at, query).map((score, key) => (layer.allowed(query, key) ? Math.exp(score) : 0));
    const total = powers.reduce((a, b) => a + b, 0);
    return powers.map((power) => (total ? power / total : 0));
  }

  async tile(at: HeadAt & { level: number; row: number; column: number }, coarse: boolean) {
    const { allowed } = this.layers[at.layer]!;
    const [, , q, k] = this.layers[at.layer]!.info.shape;
    const size = 2 ** at.level;
    const first = { row: at.row * TILE, column: at.column * TILE };
    const rows = Math.min(TILE, Math.ceil(q / size) - first.row);
    const columns = Math.min(TILE, Math.ceil(k / size) - first.column);
    const max = new Float32Array(rows * columns), mean = new Float32Array(rows * columns);
    const share = new Uint8Array(rows * columns);
    for (let row = 0; row < rows; row++) {
      const start = (first.row + row) * size;
      const whole = Array.from({ length: Math.min(size, q - start) }, (_, i) => start + i);
      const queries = coarse ? [whole[whole.length >> 1]!] : whole;
      const weights = queries.map((query) => this.weightsOf(at, query));
      for (let column = 0; column < columns; column++) {
        let most = 0, sum = 0, open = 0, all = 0;
        queries.forEach((query, i) => {
          for (let key = (first.column + column) * size; key < Math.min(k, (first.column + column + 1) * size); key++) {
            all++;
            if (!allowed(query, key)) continue;
            open++;
            sum += weights[i]![key]!;
            most = Math.max(most, weights[i]![key]!);
          }
        });
        const cell = row * columns + column;
        max[cell] = most;
        mean[cell] = open ? sum / open : 0;
        share[cell] = open === 0 ? 0 : open === all ? 255 : Math.min(254, Math.max(1, Math.round((255 * open) / all)));
      }
    }
    return { rows, columns, max, mean, allowed: share, sampled: coarse && size > 1 ? size : 0 };
  }

  async row(at: HeadAt, query: number) {
    const { allowed } = this.layers[at.layer]!;
    const scores = this.scoresOf(at, query);
    return {
      weights: Float32Array.from(this.weightsOf(at, query)), scores: Float32Array.from(scores),
      allowed: Uint8Array.from(scores, (_, key) => Number(allowed(query, key))),
    };
  }

  async column(at: HeadAt, key: number) {
    const layer = this.layers[at.layer]!;
    const queries = Array.from({ length: layer.info.shape[2] }, (_, query) => query);
    return {
      weights: Float32Array.from(queries, (query) => this.weightsOf(at, query)[key]!),
      allowed: Uint8Array.from(queries, (query) => Number(layer.allowed(query, key))),
    };
  }

  async top(at: HeadAt, first: number, queries: number, count: number) {
    const weights = new Float32Array(queries * count), keys = new Int32Array(queries * count).fill(-1);
    for (let i = 0; i < queries; i++) {
      const { allowed } = this.layers[at.layer]!;
      const row = this.weightsOf(at, first + i).map((weight, key) => ({ weight, key }));
      const best = row.filter(({ key }) => allowed(first + i, key)).sort((a, b) => b.weight - a.weight || a.key - b.key);
      best.slice(0, count).forEach(({ weight, key }, j) => {
        weights[i * count + j] = weight;
        keys[i * count + j] = key;
      });
    }
    return { first, queries, count, weights, keys };
  }

  async thumbs(layer: number, batch: number, size: number) {
    const [, heads, q, k] = this.layers[layer]!.info.shape;
    const level = Math.max(0, Math.ceil(Math.log2(Math.max(q, k) / size)));
    const tiles = await Promise.all(
      Array.from({ length: heads }, (_, head) => this.tile({ layer, batch, head, level, row: 0, column: 0 }, false)),
    );
    const { rows, columns } = tiles[0]!;
    const max = new Float32Array(heads * rows * columns), allowed = new Uint8Array(heads * rows * columns);
    tiles.forEach((tile, head) => {
      max.set(tile.max, head * rows * columns);
      allowed.set(tile.allowed, head * rows * columns);
    });
    return { heads, rows, columns, max, allowed, sampled: 0 };
  }

  async measures(layer: number, batch: number): Promise<Measures> {
    const { shape } = this.layers[layer]!.info;
    const heads = Array.from({ length: shape[1] }, (_, head) => head);
    const rows = Array.from({ length: shape[2] }, (_, query) => query);
    const mean = (values: number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
    const over = (of: (weights: number[], query: number) => number): number[] =>
      heads.map((head) => mean(rows.map((query) => of(this.weightsOf({ layer, batch, head }, query), query))));
    return {
      values: {
        entropy: over((weights) => -weights.reduce((sum, w) => sum + (w > 0 ? w * Math.log(w) : 0), 0)),
        distance: over((weights, query) => weights.reduce((sum, w, key) => sum + w * Math.abs(query - key), 0)),
        sink: over((weights) => weights[0]!),
        itself: over((weights, query) => weights[query]!),
      },
      notes: [],
    };
  }

  async proof(): Promise<Proof> {
    return { status: "verified", output: 0.5, kernel: 0.5, normaliser: 0.25, ulp: 2 ** -23, why: "" };
  }

  async hidden(at: HeadAt): Promise<Hidden> {
    const { allowed, info } = this.layers[at.layer]!;
    const [, , q, k] = info.shape;
    const blind = Uint8Array.from({ length: q }, (_, i) => Number(!Array.from({ length: k }).some((_, j) => allowed(i, j))));
    const unseen = Uint8Array.from({ length: k }, (_, j) => Number(!Array.from({ length: q }).some((_, i) => allowed(i, j))));
    return { blind, unseen };
  }

  async numbers(at: HeadAt, query: number, key: number): Promise<Numbers> {
    const layer = this.layers[at.layer]!, head = layer.heads[at.head]!;
    const [, , n, m] = layer.info.shape;
    const small = n * m <= 1024;
    const rows = small ? head.q.map((_, i) => i) : [query];
    const strongest = this.weightsOf(at, query).map((w, j) => ({ w, j })).sort((a, b) => b.w - a.w).slice(0, 10);
    const columns = small ? head.k.map((_, j) => j) : [...new Set([key, ...strongest.map(({ j }) => j)])].sort((a, b) => a - b);
    const weights = rows.map((i) => this.weightsOf(at, i));
    const visible = (i: number): number[] => this.scoresOf(at, i).filter((_, j) => layer.allowed(i, j));
    const highest = rows.map((i) => Math.max(...visible(i)));
    const flat = (of: (i: number, j: number) => number): Float32Array =>
      Float32Array.from(rows.flatMap((i) => columns.map((j) => of(i, j))));
    const d = head.q[0]!.length, e = head.v[0]!.length;
    return {
      rows: Int32Array.from(rows), columns: Int32Array.from(columns),
      q: Float32Array.from(rows.flatMap((i) => head.q[i]!)), k: Float32Array.from(columns.flatMap((j) => head.k[j]!)),
      v: Float32Array.from(columns.flatMap((j) => head.v[j]!)), dot: flat((i, j) => dot(head.q[i]!, head.k[j]!)),
      bias: null, scores: flat((i, j) => dot(head.q[i]!, head.k[j]!) * layer.scale),
      allowed: Uint8Array.from(rows.flatMap((i) => columns.map((j) => Number(layer.allowed(i, j))))),
      weights: flat((i, j) => this.weightsOf(at, i)[j]!),
      rest: Float32Array.from(weights, (row) => row.reduce((sum, w, j) => sum + (columns.includes(j) ? 0 : w), 0)),
      highest: Float32Array.from(highest),
      total: Float32Array.from(rows, (i, r) => visible(i).reduce((sum, s) => sum + Math.exp(s - highest[r]!), 0)),
      sink: null,
      mix: Float32Array.from(weights.flatMap((row) => Array.from({ length: e }, (_, c) => dot(row, head.v.map((v) => v[c]!))))),
      kernel: null, scale: layer.scale, softcap: null, d, e,
    };
  }

  async flow(at: FlowAt): Promise<Flow> {
    const n = this.layers[0]!.info.shape[2];
    let now = Array.from({ length: n }, (_, i) => Number(i === at.query));
    const lines = [now];
    for (let layer = this.layers.length - 1; layer >= 0; layer--) {
      const heads = this.layers[layer]!.heads.length;
      const next = now.map((x) => at.residual * x);
      now.forEach((share, query) => {
        for (let head = 0; share && head < heads; head++)
          this.weightsOf({ layer, batch: 0, head }, query).forEach((w, key) => {
            next[key]! += ((1 - at.residual) * share * w) / heads;
          });
      });
      now = next;
      lines.unshift(now);
    }
    return {
      lines: lines.length, layers: this.layers.map((layer) => layer.info.name), target: Float32Array.from(lines.flat()), n,
      source: null, m: 0, targetTokens: 0, sourceTokens: -1, error: 0,
    };
  }
}

/** A fake run over these words. */
export const fake = (words: readonly string[], sizes: FakeSizes = {}, more: Partial<TraceInfo> = {}): Fake =>
  new Fake(fakeLayers(words, sizes), [named(words)], more);
