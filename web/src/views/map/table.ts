/** The map as a table: what is seen, or where that is too much, the row in hand. */
import type { Zoom } from "../../choose/choice";
import type { Say } from "../../language/language";
import { type Row, TILE, type Tile } from "../../trace/source";
import type { Head } from "./head";

export type Cells = readonly (readonly (string | number)[])[];
export const MOST = 200; // rows and columns

/** Whether a part is small enough to be a table. */
export const fitsTable = (view: Zoom): boolean =>
  Math.ceil(view.right) - Math.floor(view.left) <= MOST && Math.ceil(view.bottom) - Math.floor(view.top) <= MOST;

export async function tableOf(
  head: Head, view: Zoom, pool: "max" | "mean", query: number | null,
  tileAt: (row: number, column: number) => Promise<Tile>, rowAt: (query: number) => Promise<Row>, say: Say,
): Promise<Cells> {
  if (fitsTable(view)) return wholeTable(head, view, pool, tileAt, say);
  return rowTable(await rowAt(query ?? Math.floor((view.top + view.bottom) / 2)), head, say);
}

/** Queries down, keys across; a cell that may not be looked at is empty. */
async function wholeTable(
  { queries, keys }: Head, view: Zoom, pool: "max" | "mean",
  tileAt: (row: number, column: number) => Promise<Tile>, say: Say,
): Promise<Cells> {
  const tiles = new Map<string, Tile>(), left = Math.floor(view.left);
  const get = async (row: number, column: number): Promise<Tile> => {
    const tile = tiles.get(`${row} ${column}`) ?? (await tileAt(row, column));
    tiles.set(`${row} ${column}`, tile);
    return tile;
  };
  const columns = Array.from({ length: Math.ceil(view.right) - left }, (_, i) => left + i);
  const lines: (string | number)[][] = [
    [`${say("query")} \\ ${say("key")}`, ...columns.map((key) => keys.at(key).full)],
  ];
  for (let query = Math.floor(view.top); query < Math.ceil(view.bottom); query++) {
    const line: (string | number)[] = [queries.at(query).full];
    for (const key of columns) {
      const tile = await get(Math.floor(query / TILE), Math.floor(key / TILE));
      const at = (query % TILE) * tile.columns + (key % TILE);
      line.push(tile.allowed[at] === 0 ? "" : tile[pool][at]!);
    }
    lines.push(line);
  }
  return lines;
}

/** One row, a line per key. */
export function rowTable(row: Row, { keys }: Head, say: Say): Cells {
  const scores = row.scores;
  return [
    ["#", say("key"), say("weight"), ...(scores === null ? [] : [say("score")])],
    ...Array.from(row.weights, (weight, key) => [
      key, keys.at(key).full, row.allowed[key] === 0 ? "" : weight, ...(scores === null ? [] : [scores[key]!]),
    ]),
  ];
}
