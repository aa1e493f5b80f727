/** What lies under the pointer: a cell, the name of a row, the name of a column, or nothing. */
import { type Box, type Camera, type MapShape, cellUnder, xOf, yOf } from "./geometry";
import { SLANT } from "./axes";

export interface Hit {
  readonly query: number | null;
  readonly key: number | null;
}

/** `slanted`: whether the names of keys lean to the right. */
export function hitAt(camera: Camera, shape: MapShape, box: Box, x: number, y: number, slanted: boolean): Hit | null {
  const cell = cellUnder(camera, shape, box, x, y);
  if (cell !== null) return cell;
  const left = Math.max(box.x, xOf(camera, box, 0));
  if (x < left && y >= box.y) {
    const row = cellUnder(camera, shape, box, left + 0.5, y);
    return row === null || x < left - 160 ? null : { query: row.query, key: null };
  }
  if (y >= box.y) return null;
  const foot = slanted ? x - (box.y - y) / Math.tan(SLANT) : x;
  const column = cellUnder(camera, shape, box, foot, Math.max(box.y, yOf(camera, box, 0)) + 0.5);
  return column === null ? null : { query: null, key: column.key };
}
