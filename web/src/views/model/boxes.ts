/** Where in its cell a picture stands. */
import { GAP } from "./layout";

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** As wide to high as it has keys to queries, but never too thin to see; in whole pixels. */
export function boxOf(cell: number, queries: number, keys: number): Box {
  const room = cell - 2 * GAP, most = Math.max(1, queries, keys);
  const side = (count: number): number => Math.round(Math.max(Math.min(6, room), (room * count) / most));
  const width = side(keys), height = side(queries);
  return { x: Math.floor((cell - width) / 2), y: Math.floor((cell - height) / 2), width, height };
}
