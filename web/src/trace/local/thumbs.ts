/** Small pictures of all heads. Every size is folded from one, so that two views that ask do not compute twice. */
import type { Thumbs } from "../source";
import type { Pace } from "./pace";
import { type Cells, type Pooled, levelOf, pool, shareOf } from "./pyramid";
import type { HeadMap } from "./headMap";

const ALL = 1 << 22; // weights of a layer that are all looked at
const FINE = 64; // cells on the longer side that are kept
const LARGEST = 256;

export interface LayerMaps {
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  readonly map: (head: number) => HeadMap;
  /** What was made of a head before; `make` is called once. */
  readonly kept: (head: number, make: () => Promise<Pooled>) => Promise<Pooled>;
}

/** Cells of all of a map. */
const wholeMap = (queries: number, keys: number, level: number): Cells => ({
  level, row: 0, column: 0, rows: Math.ceil(queries / 2 ** level), columns: Math.ceil(keys / 2 ** level),
});

export async function thumbs(
  { heads, queries, keys, map, kept }: LayerMaps, size: number, pace: Pace,
): Promise<Thumbs> {
  const level = levelOf(queries, keys, Math.max(1, Math.min(LARGEST, size))), fine = levelOf(queries, keys, FINE);
  const sampled = level > 0 && queries * keys * heads > ALL;
  const cells = wholeMap(queries, keys, level);
  const { rows, columns } = cells;
  const max = new Float32Array(heads * rows * columns), allowed = new Uint8Array(heads * rows * columns);
  for (let head = 0; head < heads; head++) {
    if (pace.due()) await pace.rest();
    if (sampled || level < fine) {
      const tile = await pool(map(head), cells, sampled, pace);
      max.set(tile.max, head * rows * columns);
      allowed.set(tile.allowed, head * rows * columns);
      continue;
    }
    const base = await kept(head, () => pool(map(head), wholeMap(queries, keys, fine), false, pace.alone()));
    poolCells(base, 2 ** (level - fine), cells, queries, keys, max, allowed, head * rows * columns);
  }
  return { heads, rows, columns, max, allowed, sampled: sampled ? 2 ** level : 0 };
}

/** Writes the cells of a coarser level, from those of a finer one. */
function poolCells(
  base: Pooled, by: number, { level, rows, columns }: Cells, queries: number, keys: number,
  max: Float32Array, allowed: Uint8Array, at: number,
): void {
  const size = 2 ** level;
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      let most = 0, open = 0;
      for (let i = row * by; i < Math.min(base.rows, (row + 1) * by); i++)
        for (let j = column * by; j < Math.min(base.columns, (column + 1) * by); j++) {
          most = Math.max(most, base.max[i * base.columns + j]!);
          open += base.open[i * base.columns + j]!;
        }
      const tall = Math.min(queries, (row + 1) * size) - row * size;
      const all = tall * (Math.min(keys, (column + 1) * size) - column * size);
      max[at + row * columns + column] = most;
      allowed[at + row * columns + column] = shareOf(open, all);
    }
}
