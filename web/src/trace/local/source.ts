/**
 * A source from the bytes of a trace file: the browser computes every number that is asked, from q, k and what decides
 * the rest. Any file that `trace.save` wrote can be opened, and what a page holds is such a file.
 */
import { Arrays, damaged } from "./arrays";
import { manifestOf } from "./manifest";
import { readContainer } from "./container";
import { flowOf } from "./flow";
import { measuresOf } from "./measures";
import { numbersOf, type Values } from "./numbers";
import { type Rank, runPaced, throwIfAborted } from "./pace";
import type { Pace } from "./pace";
import { type Pooled, cellsOf, pool } from "./pyramid";
import { LruCache } from "./lruCache";
import { columnOf, hiddenOf, rowOf, topOf } from "./rows";
import { mustChain, sidesOf, stacksOf } from "./stacks";
import { thumbs } from "./thumbs";
import type { HeadMap } from "./headMap";
import { TraceError } from "./traceError";
import type { LayerWords, Manifest, MissedWords, RunWords } from "../schema";
import {
  type Flow, type FlowAt, type HeadAt, type Kind, type LayerInfo, type Measures, type Proof, type Source, type Tile,
  type TileAt, type Tokens, type TraceInfo, tokensOf,
} from "../source";

export { TraceError } from "./traceError";

/** What else is known of a trace; a file says neither its name nor whether it was verified. */
export interface KnownOfTrace {
  readonly info?: Partial<TraceInfo>;
  readonly proofs?: readonly Proof[]; // one per layer
  readonly measures?: readonly (readonly Measures[])[]; // per layer, per batch entry
  readonly run?: number; // which run; the last where it is not said
}

const MAPS = 96 << 20; // bytes of heads that are kept ready
const TILES = 64 << 20;
const SMALL = 64 * 64 * 24; // bytes of a small picture
const NAMES: Readonly<Record<string, string>> = { F16: "float16", BF16: "bfloat16", F32: "float32", F64: "float64" };
const FINE = ["BF16", "F16", "F32", "F64"];

/** The source of a trace file; throws a `TraceError`, one sentence, where the bytes are no whole trace. */
export function openLocalSource(bytes: ArrayBuffer | Uint8Array, more: KnownOfTrace = {}): Source {
  const { metadata, arrays } = readContainer(bytes);
  const words = metadata["regard"];
  if (words === undefined)
    throw new TraceError(
      "This is a safetensors file, but no trace: it has no manifest; give a file from trace.save.", "file.bare",
    );
  const manifest = manifestOf(words);
  const number = more.run ?? manifest.runs.length - 1;
  const run: RunWords = manifest.runs[number] ?? { layers: [], notes: [], refused: [], missed: [], edits: [] };
  if (more.run !== undefined && !manifest.runs[number])
    throw new TraceError(
      `Run ${number} was asked for, but the trace has ${manifest.runs.length}.`, "run.none",
      { run: number, runs: manifest.runs.length },
    );
  const checked = new Arrays(arrays);
  const size = [...arrays.values()].reduce((sum, array) => sum + array.bytes.length, 0);
  run.layers.forEach((layer) => {
    if (Math.max(...layer.shape) > Math.max(size, 1))
      throw damaged(layer.name, `a map of ${layer.shape.join(" × ")} does not come from a file of this size`);
    checked.check(layer.name, layer);
    checkTokenNames(manifest, layer);
  });
  return new LocalSource(infoOf(manifest, run, number, checked, more), run.layers, checked, more);
}

/** Throws where tokens are named that do not fit. */
function checkTokenNames(manifest: Manifest, layer: LayerWords): void {
  const [batch, , q, k] = layer.shape;
  for (const [numbers, length] of [[layer.queries, q], [layer.keys, k]] as const)
    if (numbers && (numbers.length !== batch || numbers.some((one) => manifest.tokens[one]?.shown.length !== length)))
      throw damaged(layer.name, `its tokens are not ${batch} sequences of ${length}`);
}

function infoOf(manifest: Manifest, run: RunWords, number: number, arrays: Arrays, more: KnownOfTrace): TraceInfo {
  const sides = sidesOf(run.layers.map(({ name, kind, shape }) => ({ name, kind: kind as Kind, shape })));
  const kinds = run.layers.flatMap((layer) => layer.parts.flatMap((part) => [part.q, part.k, part.weights]))
    .flatMap((name) => (name === null ? [] : [arrays.stored(name).dtype]));
  const coarsest = FINE.find((dtype) => kinds.includes(dtype)) ?? "F32";
  const tokens = manifest.tokens.map((one): Tokens => one);
  for (const one of tokens)
    for (const list of [one.ids, one.offsets, one.special, one.words])
      if (list && list.length !== one.shown.length) throw damaged("its tokens", "a list of theirs has another length");
  return {
    id: "", name: "", model: manifest.model, run: Math.max(0, number), runs: manifest.runs.length, tokens,
    layers: run.layers.map((layer, i) => layerInfo(layer, sides[i]!, arrays)),
    notes: [
      ...run.refused.map(({ name, why }) => `${name} was refused: ${why}`),
      ...run.missed.map(missedSentence), ...run.notes, ...manifest.notes,
    ],
    missed: [...new Set(run.missed.map(({ name }) => name))],
    edits: [...new Set([...run.edits, ...run.layers.flatMap((layer) => layer.edits)])],
    precision: NAMES[coarsest]!, error: null, output: null, picture: null, ...more.info,
  };
}

const missedSentence = ({ name, what, count }: MissedWords): string =>
  `incomplete: ${name} was not heard: ${what}${count > 1 ? ` (${count} times)` : ""}`;

const layerInfo = (layer: LayerWords, side: LayerInfo["side"], arrays: Arrays): LayerInfo => {
  const stored = layer.parts[0]!.weights !== null;
  const kind = layer.kind === "self" || layer.kind === "cross" ? layer.kind : "unknown";
  return {
    name: layer.name, kind, side, how: stored ? "stored" : "computed", shape: layer.shape, queries: layer.queries,
    keys: layer.keys, scores: !stored, values: hasValues(layer, arrays), states: layer.states,
    notes: [...layer.doubts.map((why) => `unverified: ${why}`), ...layer.notes], edits: layer.edits,
  };
};

/** Whether v is there, one for each key. */
function hasValues(layer: LayerWords, arrays: Arrays): boolean {
  if (layer.v === null) return false;
  const [, g, k] = arrays.shape(layer.v);
  return k === layer.shape[3] && g! > 0 && layer.shape[1] % g! === 0;
}

class LocalSource implements Source {
  private readonly maps = new LruCache<HeadMap>(MAPS);
  private readonly tiles = new LruCache<Tile>(TILES);
  private readonly small = new LruCache<Promise<Pooled>>(TILES);
  private readonly measured = new LruCache<Promise<Measures>>(TILES);
  constructor(
    readonly info: TraceInfo, private readonly layers: readonly LayerWords[], private readonly arrays: Arrays,
    private readonly more: KnownOfTrace,
  ) {}

  private map({ layer, batch, head }: HeadAt): HeadMap {
    const words = this.layers[layer];
    const { length } = this.layers;
    if (!words)
      throw new TraceError(`Layer ${layer} was asked for, but there are ${length}.`, "layer.none", { layer, layers: length });
    const [batches, heads] = words.shape;
    if (!isIndex(batch, batches))
      throw new TraceError(
        `${words.name} saw a batch of ${batches}, but entry ${batch} was asked for.`, "batch.none",
        { layer: words.name, batches, batch },
      );
    if (!isIndex(head, heads))
      throw new TraceError(
        `${words.name} has ${heads} heads, but head ${head} was asked for.`, "head.none",
        { layer: words.name, heads, head },
      );
    const name = `${layer} ${batch} ${head}`;
    const known = this.maps.get(name);
    if (known) return known;
    const map = this.arrays.map(words, batch, head);
    return this.maps.put(name, map, map.bytes);
  }

  private shape(layer: number): LayerWords["shape"] {
    return this.layers[layer]?.shape ?? [0, 0, 0, 0];
  }

  private async work<T>(rank: Rank, signal: AbortSignal | undefined, what: (pace: Pace) => Promise<T> | T): Promise<T> {
    return runPaced(rank, signal, async (pace) => what(pace));
  }

  tile(at: TileAt, coarse: boolean, signal?: AbortSignal): Promise<Tile> {
    return this.work(0, signal, async (pace) => {
      const map = this.map(at);
      const { level, row, column } = at;
      const cells = cellsOf(map.queries, map.keys, level, row, column);
      if (![level, row, column].every((one) => isIndex(one, 2 ** 31)) || level > 40 || !cells.rows || !cells.columns)
        throw new TraceError(`There is no tile ${row}, ${column} at level ${level} of ${map.queries} × ${map.keys} weights.`);
      const name = `${at.layer} ${at.batch} ${at.head} ${level} ${row} ${column}`;
      const known = this.tiles.get(name);
      if (known) return known; // exact, so it also serves a first look
      const { open: _, ...tile } = await pool(map, cells, coarse && level > 0, pace);
      return tile.sampled ? tile : this.tiles.put(name, tile, 9 * tile.max.length);
    });
  }

  row(at: HeadAt, query: number, signal?: AbortSignal): ReturnType<Source["row"]> {
    return this.work(0, signal, () => rowOf(this.mapWithQuery(at, query), query));
  }

  column(at: HeadAt, key: number, signal?: AbortSignal): ReturnType<Source["column"]> {
    return this.work(0, signal, (pace) => columnOf(this.mapWithKey(at, key), key, pace));
  }

  top(at: HeadAt, first: number, queries: number, count: number, signal?: AbortSignal): ReturnType<Source["top"]> {
    return this.work(0, signal, (pace) => {
      const map = this.map(at);
      const wanted = isIndex(first, map.queries) && isIndex(queries, 2 ** 31) && isIndex(count, 2 ** 31);
      if (!wanted || count < 1)
        throw new TraceError(`${count} keys of ${queries} queries from ${first} on were asked for, but there are ${map.queries}.`);
      return topOf(map, first, queries, count, pace);
    });
  }

  thumbs(layer: number, batch: number, size: number, signal?: AbortSignal): ReturnType<Source["thumbs"]> {
    return this.work(1, signal, (pace) => {
      const [, heads, queries, keys] = this.shape(layer);
      const map = (head: number): HeadMap => this.map({ layer, batch, head });
      const kept = (head: number, make: () => Promise<Pooled>): Promise<Pooled> =>
        computeOnce(this.small, `${layer} ${batch} ${head}`, SMALL, make);
      return thumbs({ heads, queries, keys, map, kept }, size, pace);
    });
  }

  measures(layer: number, batch: number, signal?: AbortSignal): Promise<Measures> {
    const known = this.more.measures?.[layer]?.[batch];
    if (known) return Promise.resolve(known);
    return computeOnce(this.measured, `${layer} ${batch}`, 4096, () => this.work(2, undefined, (pace) => {
      const tokens = (which: "queries" | "keys"): Tokens | null => tokensOf(this.info, layer, batch, which);
      this.map({ layer, batch, head: 0 });
      return measuresOf(
        this.info.layers[layer]!, (head) => this.map({ layer, batch, head }), tokens("queries"), tokens("keys"), pace,
      );
    })).finally(() => throwIfAborted(signal));
  }

  proof(layer: number): Promise<Proof> {
    const [doubt] = this.layers[layer]?.doubts ?? [];
    const why = doubt ?? "the browser cannot run the model's kernel again; trace.verify() in Python verifies the map";
    const none: Proof = { status: "unverified", output: null, kernel: null, normaliser: null, ulp: null, why };
    return Promise.resolve({ ...none, ...this.more.proofs?.[layer] });
  }

  hidden(at: HeadAt, signal?: AbortSignal): ReturnType<Source["hidden"]> {
    return this.work(0, signal, (pace) => hiddenOf(this.map(at), pace));
  }

  numbers(at: HeadAt, query: number, key: number, signal?: AbortSignal): ReturnType<Source["numbers"]> {
    return this.work(0, signal, () => {
      this.mapWithKey(at, key);
      return numbersOf(this.mapWithQuery(at, query), query, key, this.values(at));
    });
  }

  flow(at: FlowAt, signal?: AbortSignal): Promise<Flow> {
    return this.work(2, signal, async (pace) => {
      const { layers } = this.info, { batch } = at;
      const stacks = stacksOf(layers);
      const { n, m } = mustChain(layers, stacks, (layer, which) => tokensOf(this.info, layer, batch, which));
      const values = (layer: number, head: number): { v: NonNullable<Values["v"]>; e: number } | null => {
        const { v, e } = this.values({ layer, batch, head });
        return v && { v, e };
      };
      const flow = await flowOf(
        { layers, stacks, n, m, map: (layer, head) => this.map({ layer, batch, head }), values }, at, pace,
      );
      const cross = stacks.target.find((i) => layers[i]!.kind === "cross");
      const targetTokens = layers[stacks.target[0]!]!.queries?.[batch] ?? -1;
      const sourceTokens = (cross === undefined ? null : layers[cross]!.keys?.[batch]) ?? -1;
      return { ...flow, targetTokens, sourceTokens, error: 0 };
    });
  }

  private mapWithQuery(at: HeadAt, query: number): HeadMap {
    const map = this.map(at);
    if (!isIndex(query, map.queries))
      throw new TraceError(
        `Query ${query} was asked for, but there are ${map.queries}.`, "place.none", { place: query, count: map.queries },
      );
    return map;
  }

  private mapWithKey(at: HeadAt, key: number): HeadMap {
    const map = this.map(at);
    if (!isIndex(key, map.keys))
      throw new TraceError(
        `Key ${key} was asked for, but there are ${map.keys}.`, "place.none", { place: key, count: map.keys },
      );
    return map;
  }

  private values({ layer, batch, head }: HeadAt): Values {
    const words = this.layers[layer]!, { seen, v } = words;
    const heads = words.shape[1];
    const kernel = (query: number): Float32Array | null => {
      const at = seen?.rows.indexOf(query) ?? -1;
      if (!seen?.mix || seen.dropout > 0 || at < 0) return null;
      const e = this.arrays.shape(seen.mix)[3]!;
      return Float32Array.from(this.arrays.head(seen.mix, batch, head, heads).subarray(at * e, (at + 1) * e));
    };
    if (v === null || !this.info.layers[layer]!.values) return { v: null, e: 0, kernel };
    return { v: this.arrays.head(v, batch, head, heads), e: this.arrays.shape(v)[3]!, kernel };
  }
}

/** What is made once, however many ask for it; what failed is made anew. */
function computeOnce<T>(kept: LruCache<Promise<T>>, name: string, bytes: number, make: () => Promise<T>): Promise<T> {
  const known = kept.get(name);
  if (known) return known;
  const result = make();
  result.catch(() => kept.drop(name));
  return kept.put(name, result, bytes);
}

const isIndex = (place: number, length: number): boolean => Number.isInteger(place) && place >= 0 && place < length;
