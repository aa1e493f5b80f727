/** What a map shows: one head of one layer, with the names of its rows and columns. */
import type { Selection } from "../../choose/choice";
import { type HeadAt, type Source, tokensOf } from "../../trace/source";
import type { MapShape } from "./geometry";
import { type AxisNames, axisNames } from "./names";

export interface Head extends HeadAt {
  readonly shape: MapShape;
  readonly queries: AxisNames;
  readonly keys: AxisNames;
}

export const placeOf = ({ layer, batch, head }: HeadAt): HeadAt => ({ layer, batch, head });

/** The head that is picked; null where there is no such layer or it has no cells. Keeps the names of `before`. */
export function headOf(source: Source, picked: Selection, before: Head | null): Head | null {
  const info = source.info.layers[picked.layer];
  if (info === undefined) return null;
  const [batches, heads, queries, keys] = info.shape;
  if (queries === 0 || keys === 0) return null;
  const layer = picked.layer, batch = Math.min(picked.batch, batches - 1), head = Math.min(picked.head, heads - 1);
  const same = before !== null && before.layer === layer && before.batch === batch ? before : null;
  return {
    layer, batch, head, shape: { queries, keys },
    queries: same?.queries ?? axisNames(tokensOf(source.info, layer, batch, "queries"), queries),
    keys: same?.keys ?? axisNames(tokensOf(source.info, layer, batch, "keys"), keys),
  };
}
