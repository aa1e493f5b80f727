/** A source that tells whether it is answered, and that answers twice from memory what is asked often. */
import type { HeadAt, Source } from "../trace/source";
import { isAbort } from "../language/errorText";

const ROWS = 128; // rows that are remembered, the last ones asked

/** The same source; `heard` gets each failure, and null after each answer. */
export function monitorSource(source: Source, heard: (error: unknown) => void): Source {
  const rows = new Map<string, unknown>();
  const once = new Map<string, unknown>();

  async function report<T>(answer: Promise<T>): Promise<T> {
    try {
      const value = await answer;
      heard(null);
      return value;
    } catch (error) {
      if (!isAbort(error)) heard(error);
      throw error;
    }
  }
  async function fromMemory<T>(
    memory: Map<string, unknown>, name: string, most: number, ask: () => Promise<T>,
  ): Promise<T> {
    if (memory.has(name)) return memory.get(name) as T;
    const value = await report(ask());
    memory.set(name, value);
    if (memory.size > most) memory.delete(memory.keys().next().value!);
    return value;
  }
  const place = (at: HeadAt, more: number): string => `${at.layer} ${at.batch} ${at.head} ${more}`;

  return {
    info: source.info,
    tile: (at, coarse, signal) => report(source.tile(at, coarse, signal)),
    row: (at, query, signal) => fromMemory(rows, place(at, query), ROWS, () => source.row(at, query, signal)),
    column: (at, key, signal) => report(source.column(at, key, signal)),
    top: (at, first, queries, count, signal) => report(source.top(at, first, queries, count, signal)),
    thumbs: (layer, batch, size, signal) => report(source.thumbs(layer, batch, size, signal)),
    measures: (layer, batch, signal) =>
      fromMemory(once, `measures ${layer} ${batch}`, 512, () => source.measures(layer, batch, signal)),
    proof: (layer, signal) => fromMemory(once, `proof ${layer}`, 512, () => source.proof(layer, signal)),
    hidden: (at, signal) => report(source.hidden(at, signal)),
    numbers: (at, query, key, signal) => report(source.numbers(at, query, key, signal)),
    flow: (at, signal) => report(source.flow(at, signal)),
  };
}
