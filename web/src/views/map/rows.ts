/** Rows that were asked for, the latest few kept; the same row is never asked twice at once. */
import type { HeadAt, Row, Source } from "../../trace/source";

const MOST = 24;

export interface RowCache {
  readonly peek: (at: HeadAt, query: number) => Row | null;
  readonly get: (at: HeadAt, query: number) => Promise<Row>;
}

export function rowCache(source: Source, signal: AbortSignal): RowCache {
  const here = new Map<string, Row>(), coming = new Map<string, Promise<Row>>();
  const nameOf = (at: HeadAt, query: number): string => [at.layer, at.batch, at.head, query].join("/");
  const peek = (at: HeadAt, query: number): Row | null => here.get(nameOf(at, query)) ?? null;
  const get = (at: HeadAt, query: number): Promise<Row> => {
    const name = nameOf(at, query), known = here.get(name);
    if (known !== undefined) return Promise.resolve(known);
    const request = coming.get(name) ?? source.row(at, query, signal).then(
      (row) => {
        coming.delete(name);
        here.set(name, row);
        if (here.size > MOST) here.delete(here.keys().next().value!);
        return row;
      },
      (error: unknown) => {
        coming.delete(name);
        throw error;
      },
    );
    coming.set(name, request);
    return request;
  };
  return { peek, get };
}
