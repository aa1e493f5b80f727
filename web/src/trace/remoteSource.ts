/**
 * A source that asks somebody else: Python computes and answers in bytes, over HTTP or by messages of a notebook. What comes back is
 * held against what was asked before a view sees it. Two views that ask the same at once share one question.
 */
import { CodedError } from "./errors";
import { isObject } from "./objects";
import { Reply } from "./reply";
import { type Numbered, readSafetensors } from "./safetensors";
import {
  type Column, type Flow, type FlowAt, type HeadAt, type Hidden, type LayerInfo, type Measures, type Numbers,
  type Proof, type Row, type Source, type Thumbs, TILE, type Tile, type TileAt, type Top, type TraceInfo,
} from "./source";

/** What is no array, and the arrays by name; one that is not there is null for views. */
export interface Answer {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly arrays: Readonly<Record<string, Numbered>>;
}
export type Ask = (what: string, about: object, signal?: AbortSignal) => Promise<Answer>;

/** An answer from its bytes. */
export function readAnswer(bytes: ArrayBuffer | Uint8Array): Answer {
  const { metadata, arrays } = readSafetensors(bytes);
  let fields: unknown;
  try {
    fields = JSON.parse(metadata["facts"] ?? "");
  } catch {
    fields = null;
  }
  if (!isObject(fields))
    throw new CodedError("The answer cannot be read: it does not tell what it is.", "answer.broken");
  return { fields, arrays };
}

/** The source of a run whose numbers somebody else computes. */
export const openRemoteSource = (ask: Ask, info: TraceInfo): Source => new RemoteSource(shareRequests(ask), info);

const headAt = ({ layer, batch, head }: HeadAt): HeadAt => ({ layer, batch, head });

class RemoteSource implements Source {
  constructor(private readonly request: Ask, readonly info: TraceInfo) {}

  private async ask(what: string, about: object, signal?: AbortSignal): Promise<Reply> {
    return new Reply(what, await this.request(what, about, signal));
  }

  private shape(layer: number): LayerInfo["shape"] {
    const info = this.info.layers[layer], { length } = this.info.layers;
    if (!info)
      throw new CodedError(
        `Layer ${layer} was asked for, but the run has ${length}; count from 0.`, "layer.none", { layer, layers: length },
      );
    return info.shape;
  }

  async tile(where: TileAt, coarse: boolean, signal?: AbortSignal): Promise<Tile> {
    const [, , q, k] = this.shape(where.layer);
    const { level, row, column } = where;
    const reply = await this.ask("tile", { ...headAt(where), level, row, column, coarse }, signal);
    const rows = reply.exactly("rows", Math.min(TILE, Math.ceil(q / 2 ** level) - row * TILE));
    const columns = reply.exactly("columns", Math.min(TILE, Math.ceil(k / 2 ** level) - column * TILE));
    const cells = rows * columns;
    return {
      rows, columns, max: reply.floats("max", cells), mean: reply.floats("mean", cells),
      allowed: reply.marks("allowed", cells), sampled: reply.count("sampled"),
    };
  }

  async row(head: HeadAt, query: number, signal?: AbortSignal): Promise<Row> {
    const [, , , k] = this.shape(head.layer);
    const reply = await this.ask("row", { ...headAt(head), query }, signal);
    return { weights: reply.floats("weights", k), scores: reply.maybe("scores", k), allowed: reply.marks("allowed", k) };
  }

  async column(head: HeadAt, key: number, signal?: AbortSignal): Promise<Column> {
    const [, , q] = this.shape(head.layer);
    const reply = await this.ask("column", { ...headAt(head), key }, signal);
    return { weights: reply.floats("weights", q), allowed: reply.marks("allowed", q) };
  }

  async top(head: HeadAt, first: number, queries: number, count: number, signal?: AbortSignal): Promise<Top> {
    const reply = await this.ask("top", { ...headAt(head), first, queries, count }, signal);
    const cells = queries * count;
    return { first, queries, count, weights: reply.floats("weights", cells), keys: reply.whole("keys", cells) };
  }

  async thumbs(layer: number, batch: number, size: number, signal?: AbortSignal): Promise<Thumbs> {
    const reply = await this.ask("thumbs", { layer, batch, size }, signal);
    const heads = reply.exactly("heads", this.shape(layer)[1]);
    const rows = reply.count("rows"), columns = reply.count("columns");
    const cells = heads * rows * columns;
    return {
      heads, rows, columns, max: reply.floats("max", cells), allowed: reply.marks("allowed", cells),
      sampled: reply.count("sampled"),
    };
  }

  async measures(layer: number, batch: number, signal?: AbortSignal): Promise<Measures> {
    const reply = await this.ask("measures", { layer, batch }, signal);
    return { values: reply.lists("values", this.shape(layer)[1]), notes: reply.texts("notes") };
  }

  async proof(layer: number, signal?: AbortSignal): Promise<Proof> {
    const reply = await this.ask("proof", { layer }, signal);
    return {
      status: reply.oneOf("status", ["verified", "unverified", "refused"]), output: reply.number("output"),
      kernel: reply.number("kernel"), normaliser: reply.number("normaliser"), ulp: reply.number("ulp"),
      why: reply.text("why"),
    };
  }

  async hidden(head: HeadAt, signal?: AbortSignal): Promise<Hidden> {
    const [, , q, k] = this.shape(head.layer);
    const reply = await this.ask("hidden", headAt(head), signal);
    return { blind: reply.marks("blind", q), unseen: reply.marks("unseen", k) };
  }

  async numbers(head: HeadAt, query: number, key: number, signal?: AbortSignal): Promise<Numbers> {
    this.shape(head.layer);
    const reply = await this.ask("numbers", { ...headAt(head), query, key }, signal);
    const rows = reply.whole("rows"), columns = reply.whole("columns");
    const r = rows.length, c = columns.length, d = reply.count("d"), e = reply.count("e");
    return {
      rows, columns, q: reply.maybe("q", r * d), k: reply.maybe("k", c * d), v: reply.maybe("v", c * e),
      dot: reply.maybe("dot", r * c), bias: reply.maybe("bias", r * c), scores: reply.maybe("scores", r * c),
      allowed: reply.marks("allowed", r * c), weights: reply.floats("weights", r * c), rest: reply.floats("rest", r),
      highest: reply.maybe("highest", r), total: reply.maybe("total", r), sink: reply.maybe("sink", r),
      mix: reply.maybe("mix", r * e), kernel: reply.maybe("kernel"), scale: reply.number("scale") ?? 1,
      softcap: reply.number("softcap"), d, e,
    };
  }

  async flow({ query, batch, residual, by, coarse = false }: FlowAt, signal?: AbortSignal): Promise<Flow> {
    const reply = await this.ask("flow", { query, batch, residual, by, coarse }, signal);
    const lines = reply.count("lines"), n = reply.count("n"), m = reply.count("m");
    return {
      lines, layers: reply.texts("layers"), target: reply.floats("target", lines * n), n,
      source: reply.maybe("source", lines * m), m, targetTokens: reply.number("targetTokens") ?? -1,
      sourceTokens: reply.number("sourceTokens") ?? -1, error: reply.number("error") ?? 0,
    };
  }
}

interface PendingRequest {
  readonly answer: Promise<Answer>;
  readonly stop: AbortController;
  waiting: number;
}

/** The same way to ask, where equal questions at one time are one; it is called off when nobody waits any more. */
function shareRequests(ask: Ask): Ask {
  const pending = new Map<string, PendingRequest>();

  const begin = (key: string, what: string, about: object): PendingRequest => {
    const stop = new AbortController();
    const request: PendingRequest = { answer: ask(what, about, stop.signal), stop, waiting: 0 };
    const over = (): void => {
      if (pending.get(key) === request) pending.delete(key);
    };
    request.answer.then(over, over);
    pending.set(key, request);
    return request;
  };

  return (what, about, signal) => {
    if (signal?.aborted) return Promise.reject(aborted());
    const key = `${what} ${JSON.stringify(about)}`;
    const one = pending.get(key) ?? begin(key, what, about);
    one.waiting += 1;
    return new Promise<Answer>((answered, failed) => {
      const leave = (): void => {
        failed(aborted());
        one.waiting -= 1;
        if (one.waiting > 0) return;
        if (pending.get(key) === one) pending.delete(key);
        one.stop.abort();
      };
      const stay = (): void => signal?.removeEventListener("abort", leave);
      signal?.addEventListener("abort", leave, { once: true });
      one.answer.then((answer) => { stay(); answered(answer); }, (error: unknown) => { stay(); failed(error); });
    });
  };
}

const aborted = (): DOMException => new DOMException("called off", "AbortError");
