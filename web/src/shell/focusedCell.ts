/** The row that the panel and the speaker talk about: what the pointer is over, else what is pinned. */
import { useEffect, useState } from "preact/hooks";
import type { Row, Source } from "../trace/source";
import { isAbort } from "../language/errorText";
import { shownOrOpenSource } from "./shownSource";
import type { Studio } from "./state";

export interface FocusedCell {
  readonly source: Source;
  readonly layer: number;
  readonly head: number;
  readonly batch: number;
  readonly query: number | null;
  readonly key: number | null;
}

/** Which cell is in hand. A pointer over a cell goes before what is pinned. */
export function focusedCell(studio: Studio): FocusedCell {
  const source = shownOrOpenSource(studio);
  const picked = studio.choice.picked.value, hover = studio.choice.hover.value;
  const layer = hover.layer ?? picked.layer, head = hover.head ?? picked.head;
  const pointing = hover.query !== null || hover.key !== null;
  const shape = source.info.layers[layer]?.shape ?? [1, 1, 0, 0];
  const query = pointing ? (hover.query ?? picked.query) : picked.query;
  const key = pointing ? hover.key : picked.key;
  return {
    source, layer, head: Math.min(head, shape[1] - 1), batch: picked.batch,
    query: query !== null && query < shape[2] ? query : null, key: key !== null && key < shape[3] ? key : null,
  };
}

/** The row in hand once it has come; the one before stays until then only if it is the same row. */
export function useRow(hand: FocusedCell, wait = 30): Row | null {
  const { source, layer, head, batch, query } = hand;
  const name = `${layer} ${head} ${batch} ${query}`;
  const [found, setFound] = useState<{ source: Source; name: string; row: Row } | null>(null);
  useEffect(() => {
    if (query === null) return undefined;
    const end = new AbortController();
    const timer = setTimeout(() => {
      source.row({ layer, batch, head }, query, end.signal).then(
        (row) => !end.signal.aborted && setFound({ source, name, row }),
        (error: unknown) => !isAbort(error) && !end.signal.aborted && setFound(null));
    }, wait); // a pointer that sweeps over the map asks only where it rests
    return () => {
      clearTimeout(timer);
      end.abort();
    };
  }, [source, name]);
  return found !== null && query !== null && found.source === source && found.name === name ? found.row : null;
}
