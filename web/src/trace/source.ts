/**
 * Where numbers come from. Views ask a Source and never know whether the browser computes them from bytes (held.ts)
 * or Python answers (asked.ts). Every number is a number of the model; nothing is made up, nothing is averaged unasked.
 *
 * Places are counted from 0. A row is a query, a column is a key. Weights are float32.
 */
import type { ModelOutput, ShownPicture } from "./messages";
import type { Reading } from "./reading";

/** One sequence of tokens, as in the trace file; each list has one entry per token. */
export interface Tokens {
  readonly shown: readonly string[];
  readonly ids: readonly number[] | null;
  readonly offsets: readonly (readonly [number, number] | null)[] | null;
  readonly special: readonly boolean[] | null;
  readonly words: readonly (number | null)[] | null;
  readonly text: string | null;
  readonly grid: readonly [number, number] | null; // rows and columns of image patches
}

export type Kind = "self" | "cross" | "unknown";
export type How = "computed" | "stored" | "implied";

export interface LayerInfo {
  readonly name: string;
  readonly kind: Kind;
  readonly side: "encoder" | "decoder" | ""; // where it stands in an encoder–decoder
  readonly how: How;
  readonly shape: readonly [batch: number, heads: number, queries: number, keys: number];
  readonly queries: readonly number[] | null; // numbers of `tokens`, one per batch entry
  readonly keys: readonly number[] | null;
  readonly scores: boolean; // whether the scores behind the weights are known
  readonly values: boolean; // whether v is known
  readonly notes: readonly string[];
  readonly states: readonly string[]; // what is known to be special about it: "padding_rows_empty", …
  readonly edits: readonly string[]; // what was changed about it while it ran
}

/** All that is known of a run before a number of it is asked. */
export interface TraceInfo {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly run: number; // which run of the trace this is
  readonly runs: number;
  readonly tokens: readonly Tokens[];
  readonly layers: readonly LayerInfo[];
  readonly notes: readonly string[];
  readonly edits: readonly string[]; // what was changed about the model in this run, each once
  readonly missed: readonly string[]; // modules whose attention ran and was not heard: the trace is incomplete
  readonly precision: string; // of the numbers that are held: "float32", "float16", …
  readonly error: number | null; // the largest error of a weight that this precision was measured to make
  readonly output: ModelOutput | null; // what the model said, where that is known
  readonly picture: ShownPicture | null;
  readonly reading?: Reading; // what the model made of its text, where two models are compared
}

/** One head of one batch entry of one layer. */
export interface HeadAt {
  readonly layer: number;
  readonly batch: number;
  readonly head: number;
}

export const TILE = 256; // cells on a side

/** Level z: each cell stands for 2^z × 2^z weights. `row` and `column` count tiles of that level. */
export interface TileAt extends HeadAt {
  readonly level: number;
  readonly row: number;
  readonly column: number;
}

/** TILE × TILE cells, fewer at the lower and right edge: `rows` × `columns`, row by row. */
export interface Tile {
  readonly rows: number;
  readonly columns: number;
  readonly max: Float32Array; // the largest weight of each cell
  readonly mean: Float32Array; // the mean over what may be looked at
  readonly allowed: Uint8Array; // 0: nothing of the cell may be looked at; 255: all of it; between: some
  readonly sampled: number; // 0: every row counts; n: each row of cells shows one query of n, a first look
}

export interface Row {
  readonly weights: Float32Array; // one per key
  readonly scores: Float32Array | null; // before the mask; null where they are not known
  readonly allowed: Uint8Array; // 1 where the query may look
}

/** One key, seen from all queries. */
export interface Column {
  readonly weights: Float32Array; // one per query
  readonly allowed: Uint8Array;
}

/** The strongest keys of the queries from `first` on, `count` each, strongest first; key −1 where there are fewer. */
export interface Top {
  readonly first: number;
  readonly queries: number;
  readonly count: number;
  readonly weights: Float32Array; // queries × count
  readonly keys: Int32Array; // queries × count
}

/** Small pictures of all heads of a layer: heads × rows × columns, the largest weight of each cell. */
export interface Thumbs {
  readonly heads: number;
  readonly rows: number;
  readonly columns: number;
  readonly max: Float32Array;
  readonly allowed: Uint8Array; // heads × rows × columns, as in Tile
  readonly sampled: number;
}

/** The measures of a layer for one batch entry: each name with one number per head, null where it has no meaning. */
export interface Measures {
  readonly values: Readonly<Record<string, readonly (number | null)[]>>;
  readonly notes: readonly string[];
}

export interface Proof {
  readonly status: "verified" | "unverified" | "refused";
  readonly output: number | null; // errors in units of the last place
  readonly kernel: number | null;
  readonly normaliser: number | null;
  readonly ulp: number | null; // the size of such a unit, relative to the number; null where it is not known
  readonly why: string;
}

/** Rows that see nothing, and keys that nobody sees: 1 each. */
export interface Hidden {
  readonly blind: Uint8Array; // one per query
  readonly unseen: Uint8Array; // one per key
}

/**
 * The whole computation of some rows and columns. Of a small map all of them, of a large one the row in hand and its
 * strongest columns. `mix` is over all keys, also those not shown.
 */
export interface Numbers {
  readonly rows: Int32Array; // which queries, r of them
  readonly columns: Int32Array; // which keys, c of them, in rising order
  readonly q: Float32Array | null; // r × d
  readonly k: Float32Array | null; // c × d
  readonly v: Float32Array | null; // c × e
  readonly dot: Float32Array | null; // r × c: q · k
  readonly bias: Float32Array | null; // r × c: what is added to the score
  readonly scores: Float32Array | null; // r × c: scaled, capped, biased; before the mask
  readonly allowed: Uint8Array; // r × c
  readonly weights: Float32Array; // r × c
  readonly rest: Float32Array; // r: what the keys not shown take together
  readonly highest: Float32Array | null; // r: the largest score that may be looked at
  readonly total: Float32Array | null; // r: Σ exp(score − highest) over all keys, the sink included
  readonly sink: Float32Array | null; // r: the sink's logit
  readonly mix: Float32Array | null; // r × e
  readonly kernel: Float32Array | null; // e: what the model's own kernel gave for the row in hand, where it was copied
  readonly scale: number;
  readonly softcap: number | null;
  readonly d: number;
  readonly e: number;
}

/** Where a token is fed from: line i is the flow at the input of layer i, the last line is the token itself. */
export interface Flow {
  readonly lines: number;
  readonly layers: readonly string[];
  readonly target: Float32Array; // lines × n
  readonly n: number;
  readonly source: Float32Array | null; // lines × m, where there is an encoder
  readonly m: number;
  readonly targetTokens: number; // numbers of `info.tokens`, −1 where they are not known
  readonly sourceTokens: number;
  readonly error: number; // what any part of a line may be off by (95 % sure); 0 where all rows were looked at
}

export interface FlowAt {
  readonly query: number; // a query of the top layer
  readonly batch: number;
  readonly residual: number; // the share that the residual stream keeps, 0.5 by default
  readonly by: "weights" | "values";
  readonly coarse?: boolean; // of a long run at once, by some rows of each layer
}

/** What every host must answer. A call that its signal aborts rejects with an AbortError. */
export interface Source {
  readonly info: TraceInfo;
  /** A tile, exact; with `coarse` at once: from one query of every 2^level, or exact where that is known already. */
  tile(at: TileAt, coarse: boolean, signal?: AbortSignal): Promise<Tile>;
  row(at: HeadAt, query: number, signal?: AbortSignal): Promise<Row>;
  column(at: HeadAt, key: number, signal?: AbortSignal): Promise<Column>;
  top(at: HeadAt, first: number, queries: number, count: number, signal?: AbortSignal): Promise<Top>;
  thumbs(layer: number, batch: number, size: number, signal?: AbortSignal): Promise<Thumbs>;
  measures(layer: number, batch: number, signal?: AbortSignal): Promise<Measures>;
  proof(layer: number, signal?: AbortSignal): Promise<Proof>;
  hidden(at: HeadAt, signal?: AbortSignal): Promise<Hidden>;
  numbers(at: HeadAt, query: number, key: number, signal?: AbortSignal): Promise<Numbers>;
  flow(at: FlowAt, signal?: AbortSignal): Promise<Flow>;
}

/** The tokens of a layer's rows or columns; numbered ones where they are not known. */
export function tokensOf(info: TraceInfo, layer: number, batch: number, which: "queries" | "keys"): Tokens | null {
  const number = info.layers[layer]?.[which]?.[batch];
  return number === undefined ? null : (info.tokens[number] ?? null);
}
