/** A map from far away: cells of 2^level × 2^level weights, each with its largest, its mean and how much is allowed. */
import { TILE, type Tile } from "../source";
import type { Pace } from "./pace";
import type { HeadMap } from "./headMap";

/** Cells of one level, from a row and a column of cells on. */
export interface Cells {
  readonly level: number;
  readonly row: number;
  readonly column: number;
  readonly rows: number;
  readonly columns: number;
}

/** The cells of a tile; 0 rows or columns where it lies outside of the map. */
export function cellsOf(queries: number, keys: number, level: number, row: number, column: number): Cells {
  const size = 2 ** level;
  return {
    level, row: row * TILE, column: column * TILE,
    rows: Math.max(0, Math.min(TILE, Math.ceil(queries / size) - row * TILE)),
    columns: Math.max(0, Math.min(TILE, Math.ceil(keys / size) - column * TILE)),
  };
}

/** A tile that still knows how many weights of each cell may be looked at. */
export interface Pooled extends Tile {
  readonly open: Float64Array;
}

/** The cells, exact; with `coarse` each row of cells shows only the query in its middle. */
export async function pool(map: HeadMap, cells: Cells, coarse: boolean, pace: Pace): Promise<Pooled> {
  const { level, rows, columns } = cells;
  const size = 2 ** level;
  const max = new Float32Array(rows * columns), mean = new Float32Array(rows * columns);
  const allowed = new Uint8Array(rows * columns), opened = new Float64Array(rows * columns);
  const left = cells.column * size, right = Math.min(map.keys, (cells.column + columns) * size);
  const weights = new Float64Array(Math.max(0, right - left));
  const zeros = (): Float64Array => new Float64Array(columns);
  const line: Line = { most: zeros(), sums: zeros(), open: zeros(), astray: zeros() };
  for (let row = 0; row < rows; row++) {
    const start = (cells.row + row) * size, count = Math.min(size, map.queries - start);
    const first = coarse ? start + (count >> 1) : start, stop = coarse ? first + 1 : start + count;
    for (const values of Object.values(line)) values.fill(0);
    for (let query = first; query < stop; query++) {
      fold(map, query, left, right, size, weights, line);
      if (pace.due()) await pace.rest();
    }
    for (let column = 0; column < columns; column++) {
      const cell = row * columns + column, seen = line.open[column]!;
      const all = (stop - first) * (Math.min(right, left + (column + 1) * size) - left - column * size);
      max[cell] = line.most[column]!;
      mean[cell] = seen > 0 ? line.sums[column]! / seen : line.astray[column]! / all;
      allowed[cell] = shareOf(seen, all);
      opened[cell] = seen;
    }
  }
  return { rows, columns, max, mean, allowed, open: opened, sampled: coarse && size > 1 ? size : 0 };
}

/** 0: nothing may be looked at; 255: all of it; between: some. */
export const shareOf = (seen: number, all: number): number =>
  seen === 0 ? 0 : seen === all ? 255 : Math.min(254, Math.max(1, Math.round((255 * seen) / all)));

/** A line of cells in the making. */
interface Line {
  readonly most: Float64Array;
  readonly sums: Float64Array; // over what may be looked at
  readonly open: Float64Array; // how much that is
  readonly astray: Float64Array; // what went where nobody may look
}

/** Adds one row to a line of cells. */
function fold(
  map: HeadMap, query: number, left: number, right: number, size: number, weights: Float64Array, line: Line,
): void {
  const { most, sums, open } = line;
  const strays = map.weighsHidden(query);
  const low = strays ? left : Math.max(left, map.start(query));
  const high = strays ? right : Math.min(right, map.stop(query));
  if (low >= high) return;
  map.weigh(query, low, high, weights);
  let cell = Math.floor((low - left) / size), key = low;
  while (key < high) {
    const edge = Math.min(high, left + (cell + 1) * size);
    let largest = most[cell]!, sum = 0, seen = 0;
    for (; key < edge; key++) {
      const weight = weights[key - low]!;
      if (weight > largest) largest = weight;
      if ((strays || !map.isContiguous) && !map.sees(query, key)) {
        line.astray[cell]! += weight;
        continue;
      }
      seen++;
      sum += weight;
    }
    most[cell] = largest;
    sums[cell]! += sum;
    open[cell++]! += seen;
  }
}

/** The smallest level at which a map is at most `size` cells on its longer side. */
export function levelOf(queries: number, keys: number, size: number): number {
  let level = 0;
  while (Math.max(queries, keys) / 2 ** level > size) level++;
  return level;
}
