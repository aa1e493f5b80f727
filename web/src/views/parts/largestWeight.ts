/** Where the colours of a head end. */
import { type HeadAt, type Source, TILE } from "../../trace/source";

/** The largest weight of a head, as far as one tile shows it: of single weights, or of their means. */
export async function largestWeight(
  source: Source, at: HeadAt, pool: "max" | "mean", signal: AbortSignal,
): Promise<number> {
  const [, , queries, keys] = source.info.layers[at.layer]!.shape;
  const level = Math.max(0, Math.ceil(Math.log2(Math.max(queries, keys) / TILE)));
  const tile = await source.tile({ ...at, level, row: 0, column: 0 }, level >= 3, signal);
  return tile[pool].reduce((most, weight) => Math.max(most, weight || 0), 0);
}
