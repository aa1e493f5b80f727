/**
 * A source that asks: Python computes and answers in bytes, over HTTP or by messages of a notebook. What comes back is
 * held against what was asked before a view sees it. Two views that ask the same at once share one question.
 */
import { Coded } from "./errors";
import { isObject } from "./objects";
import { Reply } from "./reply";
import { type Numbered, readSafetensors } from "./safetensors";
import {
  type Column, type Flow, type FlowAt, type HeadAt, type Hidden, type LayerInfo, type Measures, type Numbers,
  type Proof, type Row, type Source, type Thumbs, TILE, type Tile, type TileAt, type Top, type TraceInfo,
} from "./source";

/** What is no array, and the arrays by name; one that is not there is null for views. */
export interface Answer {
  readonly told: Readonly<Record<string, unknown>>;
  readonly arrays: Readonly<Record<string, Numbered>>;
}
export type Ask = (what: string, about: object, signal?: AbortSignal) => Promise<Answer>;

/** An answer from its bytes. */
export function readAnswer(bytes: ArrayBuffer | Uint8Array): Answer {
  const { metadata, arrays } = readSafetensors(bytes);
  let told: unknown;
  try {
    told = JSON.parse(metadata["told"] ?? "");
  } catch {
    told = null;
  }
  if (!isObject(told))
    throw new Coded("The answer cannot be read: it does not tell what it is.", "answer.broken");
  return { told, arrays };
}

/** The source of a run whose numbers somebody else computes. */
export function openAsked(ask: Ask, info: TraceInfo): Source {
  const shared = sharing(ask);
  const reply = async (what: string, about: object, signal?: AbortSignal): Promise<Reply> =>
    new Reply(what, await shared(what, about, signal));
  const at = ({ layer, batch, head }: HeadAt) => ({ layer, batch, head });

  const tile = async (where: TileAt, coarse: boolean, signal?: AbortSignal): Promise<Tile> => {
    const [, , q, k] = layerOf(info, where.layer).shape;
    const { level, row, column } = where;
    const found = await reply("tile", { ...at(where), level, row, column, coarse }, signal);
    const rows = found.exactly("rows", Math.min(TILE, Math.ceil(q / 2 ** level) - row * TILE));
    const columns = found.exactly("columns", Math.min(TILE, Math.ceil(k / 2 ** level) - column * TILE));
    const cells = rows * columns;
    return {
      rows, columns, max: found.floats("max", cells), mean: found.floats("mean", cells),
      allowed: found.marks("allowed", cells), sampled: found.count("sampled"),
    };
  };

  const row = async (head: HeadAt, query: number, signal?: AbortSignal): Promise<Row> => {
    const [, , , k] = layerOf(info, head.layer).shape;
    const found = await reply("row", { ...at(head), query }, signal);
    return { weights: found.floats("weights", k), scores: found.maybe("scores", k), allowed: found.marks("allowed", k) };
  };

  const column = async (head: HeadAt, key: number, signal?: AbortSignal): Promise<Column> => {
    const [, , q] = layerOf(info, head.layer).shape;
    const found = await reply("column", { ...at(head), key }, signal);
    return { weights: found.floats("weights", q), allowed: found.marks("allowed", q) };
  };

  const top = async (head: HeadAt, first: number, queries: number, count: number, signal?: AbortSignal): Promise<Top> => {
    const found = await reply("top", { ...at(head), first, queries, count }, signal);
    const cells = queries * count;
    return { first, queries, count, weights: found.floats("weights", cells), keys: found.whole("keys", cells) };
  };

  const thumbs = async (layer: number, batch: number, size: number, signal?: AbortSignal): Promise<Thumbs> => {
    const found = await reply("thumbs", { layer, batch, size }, signal);
    const heads = found.exactly("heads", layerOf(info, layer).shape[1]);
    const rows = found.count("rows"), columns = found.count("columns");
    const cells = heads * rows * columns;
    return {
      heads, rows, columns, max: found.floats("max", cells), allowed: found.marks("allowed", cells),
      sampled: found.count("sampled"),
    };
  };

  const measures = async (layer: number, batch: number, signal?: AbortSignal): Promise<Measures> => {
    const found = await reply("measures", { layer, batch }, signal);
    return { values: found.lists("values", layerOf(info, layer).shape[1]), notes: found.texts("notes") };
  };

  const proof = async (layer: number, signal?: AbortSignal): Promise<Proof> => {
    const found = await reply("proof", { layer }, signal);
    return {
      status: found.oneOf("status", ["proven", "unproven", "refused"]), output: found.number("output"),
      kernel: found.number("kernel"), normaliser: found.number("normaliser"), why: found.text("why"),
    };
  };

  const hidden = async (head: HeadAt, signal?: AbortSignal): Promise<Hidden> => {
    const [, , q, k] = layerOf(info, head.layer).shape;
    const found = await reply("hidden", at(head), signal);
    return { blind: found.marks("blind", q), unseen: found.marks("unseen", k) };
  };

  const numbers = async (head: HeadAt, query: number, key: number, signal?: AbortSignal): Promise<Numbers> => {
    layerOf(info, head.layer);
    const found = await reply("numbers", { ...at(head), query, key }, signal);
    const rows = found.whole("rows"), columns = found.whole("columns");
    const r = rows.length, c = columns.length, d = found.count("d"), e = found.count("e");
    return {
      rows, columns, q: found.maybe("q", r * d), k: found.maybe("k", c * d), v: found.maybe("v", c * e),
      dot: found.maybe("dot", r * c), bias: found.maybe("bias", r * c), scores: found.maybe("scores", r * c),
      allowed: found.marks("allowed", r * c), weights: found.floats("weights", r * c), rest: found.floats("rest", r),
      highest: found.maybe("highest", r), total: found.maybe("total", r), sink: found.maybe("sink", r),
      mix: found.maybe("mix", r * e), kernel: found.maybe("kernel"), scale: found.number("scale") ?? 1,
      softcap: found.number("softcap"), d, e,
    };
  };

  const flow = async ({ query, batch, residual, by }: FlowAt, signal?: AbortSignal): Promise<Flow> => {
    const found = await reply("flow", { query, batch, residual, by }, signal);
    const lines = found.count("lines"), n = found.count("n"), m = found.count("m");
    return {
      lines, layers: found.texts("layers"), target: found.floats("target", lines * n), n,
      source: found.maybe("source", lines * m), m, targetTokens: found.number("targetTokens") ?? -1,
      sourceTokens: found.number("sourceTokens") ?? -1,
    };
  };

  return { info, tile, row, column, top, thumbs, measures, proof, hidden, numbers, flow };
}

function layerOf(info: TraceInfo, layer: number): LayerInfo {
  const found = info.layers[layer];
  const { length } = info.layers;
  if (!found)
    throw new Coded(
      `Layer ${layer} was asked for, but the run has ${length}; count from 0.`, "layer.none", { layer, layers: length },
    );
  return found;
}

interface Underway {
  readonly answer: Promise<Answer>;
  readonly stop: AbortController;
  waiting: number;
}

/** The same way to ask, where equal questions at one time are one; it is called off when nobody waits any more. */
function sharing(ask: Ask): Ask {
  const underway = new Map<string, Underway>();

  const begin = (key: string, what: string, about: object): Underway => {
    const stop = new AbortController();
    const begun: Underway = { answer: ask(what, about, stop.signal), stop, waiting: 0 };
    const over = (): void => {
      if (underway.get(key) === begun) underway.delete(key);
    };
    begun.answer.then(over, over);
    underway.set(key, begun);
    return begun;
  };

  return (what, about, signal) => {
    if (signal?.aborted) return Promise.reject(aborted());
    const key = `${what} ${JSON.stringify(about)}`;
    const one = underway.get(key) ?? begin(key, what, about);
    one.waiting += 1;
    return new Promise<Answer>((answered, failed) => {
      const leave = (): void => {
        failed(aborted());
        one.waiting -= 1;
        if (one.waiting > 0) return;
        if (underway.get(key) === one) underway.delete(key);
        one.stop.abort();
      };
      const stay = (): void => signal?.removeEventListener("abort", leave);
      signal?.addEventListener("abort", leave, { once: true });
      one.answer.then((answer) => { stay(); answered(answer); }, (error: unknown) => { stay(); failed(error); });
    });
  };
}

const aborted = (): DOMException => new DOMException("called off", "AbortError");
