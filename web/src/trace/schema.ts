/**
 * The words of a trace file, version 2: what its JSON manifest says. Arrays are named, and stand in the file.
 * Made from src/regard/trace/file/manifest.py: change that, then run
 * `python -m regard.views.explorer.schema web/src/trace/schema.ts`.
 */

export const VERSION = 2;

/** Of which kind one word is; `usual` is what it says where it is left out, `may` whether it may be null. */
export interface Word {
  readonly is: "text" | "flag" | "number" | "whole" | "list" | "words";
  readonly of?: Word | string; // what a list holds; the name of the words
  readonly one?: readonly (string | number)[]; // nothing else is known
  readonly least?: number; // at least, of a number or of the length of a list
  readonly most?: number;
  readonly above?: number;
  readonly below?: number;
  readonly may?: true;
  readonly usual?: unknown;
}

/** A `tensor`, (b|1, h|1, q|1, k|1); or `diagonals`, (h|1, q + k − 1), for key − query from 1 − q on. */
export interface BiasWords {
  readonly tensor: string | null;
  readonly diagonals: string | null;
}

/** How the call dropped weights. */
export interface DroppedWords {
  readonly p: number;
  readonly seed: number | null;
}

/** One attention layer. `queries` and `keys` are numbers of `tokens` in the manifest, one per batch entry. */
export interface LayerWords {
  readonly name: string;
  readonly kind: string;
  readonly door: string;
  readonly shape: readonly [number, number, number, number];
  readonly parts: readonly PartWords[];
  readonly q: string | null;
  readonly k: string | null;
  readonly v: string | null;
  readonly gradient: string | null;
  readonly queries: readonly number[] | null;
  readonly keys: readonly number[] | null;
  readonly seen: SeenWords | null;
  readonly place: PlaceWords | null;
  readonly dropped: DroppedWords | null;
  readonly notes: readonly string[];
  readonly states: readonly ("padding_rows_empty" | "padding_rows_skipped" | "parts_of_picture" | "windows" | "axes_unknown" | "channels" | "keys_changed" | "compared_by_output")[];
  readonly doubts: readonly string[];
  readonly edits: readonly string[];
}

/** One run of keys per row: `start` and `stop`, (b|1, h|1, q|1); or `bits`, (b|1, h|1, q|1, ⌈k / 8⌉). */
export interface MaskWords {
  readonly start: string | null;
  readonly stop: string | null;
  readonly bits: string | null;
}

/** Attention that ran and was not heard: where, what it looked like, how often. */
export interface MissedWords {
  readonly name: string;
  readonly what: string;
  readonly count: number;
}

/** Some rows of a map and the columns they were computed with; q and k decide them, or `weights` are stored. */
export interface PartWords {
  readonly rows: readonly [number, number];
  readonly columns: readonly [number, number];
  readonly q: string | null;
  readonly k: string | null;
  readonly scale: number;
  readonly softcap: number | null;
  readonly sink: string | null;
  readonly weigh: "softmax" | "even";
  readonly mask: MaskWords | null;
  readonly bias: BiasWords | null;
  readonly weights: string | null;
}

/** Where windows stand on a whole of `size` positions; −1 is no position of it. `names` are numbers of `tokens`. */
export interface PlaceWords {
  readonly entries: string;
  readonly rows: string;
  readonly columns: string;
  readonly size: number;
  readonly grid: readonly [number, number] | null;
  readonly names: readonly number[] | null;
}

/** A layer that has no map, and why. */
export interface RefusedWords {
  readonly name: string;
  readonly why: string;
}

/** One call of the model. */
export interface RunWords {
  readonly layers: readonly LayerWords[];
  readonly notes: readonly string[];
  readonly refused: readonly RefusedWords[];
  readonly missed: readonly MissedWords[];
  readonly edits: readonly string[];
}

/** What was copied while the kernel ran, for a few rows. */
export interface SeenWords {
  readonly rows: readonly number[];
  readonly mix: string | null;
  readonly allowed: string | null;
  readonly weights: string | null;
  readonly causal: boolean;
  readonly scale: number | null;
  readonly dropout: number;
  readonly keys: number | null;
}

/** One sequence of tokens; each list has one entry per token. */
export interface TokensWords {
  readonly shown: readonly string[];
  readonly ids: readonly number[] | null;
  readonly offsets: readonly (readonly [number, number] | null)[] | null;
  readonly special: readonly boolean[] | null;
  readonly words: readonly (number | null)[] | null;
  readonly text: string | null;
  readonly grid: readonly [number, number] | null;
}

/** All that a trace file says in words. */
export interface Manifest {
  readonly version: 2;
  readonly model: string;
  readonly fingerprint: string;
  readonly tokens: readonly TokensWords[];
  readonly runs: readonly RunWords[];
  readonly notes: readonly string[];
}

export const WORDS: Readonly<Record<string, Readonly<Record<string, Word>>>> = {
  BiasWords: {
    tensor: { is: "text", may: true, usual: null },
    diagonals: { is: "text", may: true, usual: null },
  },
  DroppedWords: {
    p: { is: "number", least: 0, most: 1 },
    seed: { is: "whole", least: -(2 ** 63), below: 2 ** 64, may: true, usual: null },
  },
  LayerWords: {
    name: { is: "text" },
    kind: { is: "text" },
    door: { is: "text", usual: "" },
    shape: { is: "list", of: { is: "whole", least: 0, below: 2 ** 53 }, least: 4, most: 4 },
    parts: { is: "list", of: { is: "words", of: "PartWords" }, least: 1 },
    q: { is: "text", may: true, usual: null },
    k: { is: "text", may: true, usual: null },
    v: { is: "text", may: true, usual: null },
    gradient: { is: "text", may: true, usual: null },
    queries: { is: "list", of: { is: "whole", least: 0, below: 2 ** 53 }, may: true, usual: null },
    keys: { is: "list", of: { is: "whole", least: 0, below: 2 ** 53 }, may: true, usual: null },
    seen: { is: "words", of: "SeenWords", may: true, usual: null },
    place: { is: "words", of: "PlaceWords", may: true, usual: null },
    dropped: { is: "words", of: "DroppedWords", may: true, usual: null },
    notes: { is: "list", of: { is: "text" }, usual: [] },
    states: { is: "list", of: { is: "text", one: ["padding_rows_empty", "padding_rows_skipped", "parts_of_picture", "windows", "axes_unknown", "channels", "keys_changed", "compared_by_output"] }, usual: [] },
    doubts: { is: "list", of: { is: "text" }, usual: [] },
    edits: { is: "list", of: { is: "text" }, usual: [] },
  },
  MaskWords: {
    start: { is: "text", may: true, usual: null },
    stop: { is: "text", may: true, usual: null },
    bits: { is: "text", may: true, usual: null },
  },
  MissedWords: {
    name: { is: "text" },
    what: { is: "text" },
    count: { is: "whole", least: 1, below: 2 ** 53, usual: 1 },
  },
  PartWords: {
    rows: { is: "list", of: { is: "whole", least: 0, below: 2 ** 53 }, least: 2, most: 2 },
    columns: { is: "list", of: { is: "whole", least: 0, below: 2 ** 53 }, least: 2, most: 2 },
    q: { is: "text", may: true, usual: null },
    k: { is: "text", may: true, usual: null },
    scale: { is: "number", usual: 1.0 },
    softcap: { is: "number", above: 0, may: true, usual: null },
    sink: { is: "text", may: true, usual: null },
    weigh: { is: "text", one: ["softmax", "even"], usual: "softmax" },
    mask: { is: "words", of: "MaskWords", may: true, usual: null },
    bias: { is: "words", of: "BiasWords", may: true, usual: null },
    weights: { is: "text", may: true, usual: null },
  },
  PlaceWords: {
    entries: { is: "text" },
    rows: { is: "text" },
    columns: { is: "text" },
    size: { is: "whole", least: 1, below: 2 ** 53 },
    grid: { is: "list", of: { is: "whole", least: 0, below: 2 ** 53 }, least: 2, most: 2, may: true, usual: null },
    names: { is: "list", of: { is: "whole", least: 0, below: 2 ** 53 }, may: true, usual: null },
  },
  RefusedWords: {
    name: { is: "text" },
    why: { is: "text" },
  },
  RunWords: {
    layers: { is: "list", of: { is: "words", of: "LayerWords" }, usual: [] },
    notes: { is: "list", of: { is: "text" }, usual: [] },
    refused: { is: "list", of: { is: "words", of: "RefusedWords" }, usual: [] },
    missed: { is: "list", of: { is: "words", of: "MissedWords" }, usual: [] },
    edits: { is: "list", of: { is: "text" }, usual: [] },
  },
  SeenWords: {
    rows: { is: "list", of: { is: "whole", least: 0, below: 2 ** 53 }, usual: [] },
    mix: { is: "text", may: true, usual: null },
    allowed: { is: "text", may: true, usual: null },
    weights: { is: "text", may: true, usual: null },
    causal: { is: "flag", usual: false },
    scale: { is: "number", may: true, usual: null },
    dropout: { is: "number", least: 0, most: 1, usual: 0.0 },
    keys: { is: "whole", least: 0, below: 2 ** 53, may: true, usual: null },
  },
  TokensWords: {
    shown: { is: "list", of: { is: "text" } },
    ids: { is: "list", of: { is: "whole", least: -(2 ** 63), below: 2 ** 64 }, may: true, usual: null },
    offsets: { is: "list", of: { is: "list", of: { is: "whole", least: 0, below: 2 ** 53 }, least: 2, most: 2, may: true }, may: true, usual: null },
    special: { is: "list", of: { is: "flag" }, may: true, usual: null },
    words: { is: "list", of: { is: "whole", least: -(2 ** 63), below: 2 ** 64, may: true }, may: true, usual: null },
    text: { is: "text", may: true, usual: null },
    grid: { is: "list", of: { is: "whole", least: 0, below: 2 ** 53 }, least: 2, most: 2, may: true, usual: null },
  },
  Manifest: {
    version: { is: "whole", one: [2], usual: 2 },
    model: { is: "text", usual: "" },
    fingerprint: { is: "text", usual: "" },
    tokens: { is: "list", of: { is: "words", of: "TokensWords" }, usual: [] },
    runs: { is: "list", of: { is: "words", of: "RunWords" }, usual: [] },
    notes: { is: "list", of: { is: "text" }, usual: [] },
  },
};
