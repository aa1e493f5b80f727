/** Where things stand in the heads view. Both columns scroll together; only numbers here, nothing is painted. */

export const LOWEST_ROW = 24, HIGHEST_ROW = 44; // pixels of one token
export const HEADER = 30; // what stands above the first
const WIDEST = 620; // lines longer than this are hard to follow

/** What is seen of how much. */
export interface Sight {
  readonly width: number;
  readonly height: number;
  readonly row: number; // pixels of one token
  readonly scroll: number;
  readonly queries: number;
  readonly keys: number;
  readonly left: number; // where lines leave the queries
  readonly right: number; // where they reach the keys
  readonly queryWidth: number; // of the names
  readonly keyWidth: number;
}

type Columns = Pick<Sight, "left" | "right" | "queryWidth" | "keyWidth">;

/** Columns as wide as their names, lines between them, all in the middle. */
export function columns(width: number, queryNames: number, keyNames: number): Columns {
  const margin = width < 420 ? 8 : 48; // room for a weight beside a name
  const most = Math.max(36, (width - 2 * margin) * 0.34);
  const queryWidth = Math.min(most, Math.max(36, queryNames + 12));
  const keyWidth = Math.min(most, Math.max(36, keyNames + 12));
  const between = Math.max(40, Math.min(WIDEST, width - 2 * margin - queryWidth - keyWidth));
  const start = Math.max(margin, (width - queryWidth - keyWidth - between) / 2);
  return { left: start + queryWidth, right: start + queryWidth + between, queryWidth, keyWidth };
}

/** How high a token's row is: few tokens have more room. */
export const rowOf = (height: number, tokens: number): number =>
  Math.max(LOWEST_ROW, Math.min(HIGHEST_ROW, Math.floor((height - HEADER - 8) / Math.max(1, tokens))));

/** How tall the whole is. */
export const tall = (row: number, queries: number, keys: number): number => HEADER + row * Math.max(queries, keys) + 8;

/** How far the lines of one of several heads stand off the middle, so that equal ones lie beside each other. */
export function aside(sight: Sight, heads: readonly number[], head: number): number {
  const step = Math.min(4, (sight.row - 10) / Math.max(1, heads.length));
  return (heads.indexOf(head) - (heads.length - 1) / 2) * step;
}

/** The middle of a token's row on the canvas. */
export const middle = (sight: Sight, place: number): number => HEADER + (place + 0.5) * sight.row - sight.scroll;

/** The first and the last of `count` tokens of which anything is seen; [0, −1] where none is. */
export function visibleQueries(sight: Sight, count: number): readonly [number, number] {
  const first = Math.max(0, Math.floor(sight.scroll / sight.row));
  const last = Math.min(count, Math.ceil((sight.scroll + sight.height - HEADER) / sight.row)) - 1;
  return last < first ? [0, -1] : [first, last];
}

/** Where to scroll so that a place is seen; where it is already, nothing moves. */
export function scrollToQuery(sight: Sight, place: number): number {
  const y = middle(sight, place);
  if (y >= HEADER + sight.row / 2 && y <= sight.height - sight.row) return sight.scroll;
  return Math.max(0, (place + 0.5) * sight.row - (sight.height - HEADER) / 2);
}

export interface Token {
  readonly query: number | null;
  readonly key: number | null;
}

/** What a point of the canvas is over: a token, or what is between. */
export function tokenUnder(sight: Sight, x: number, y: number): Token {
  const place = Math.floor((y - HEADER + sight.scroll) / sight.row);
  const inside = (count: number): number | null => (y >= HEADER && place >= 0 && place < count ? place : null);
  if (x <= sight.left && x >= sight.left - sight.queryWidth - 40) return { query: inside(sight.queries), key: null };
  if (x >= sight.right && x <= sight.right + sight.keyWidth + 40) return { query: null, key: inside(sight.keys) };
  return { query: null, key: null };
}

/** A line between two tokens, level at both ends: its height where it has gone this share of the way. */
export const along = (from: number, to: number, share: number): number =>
  from + (to - from) * share * share * (3 - 2 * share);

/** Where a line ends: at its key, or beyond the edge that it leaves through, the further the steeper. */
export function ending(sight: Sight, key: number): { readonly y: number; readonly outside: boolean } {
  const y = middle(sight, key);
  const beyond = (far: number): number => 6 + 14 * Math.log2(1 + far / sight.row);
  if (y < HEADER) return { y: HEADER - beyond(HEADER - y), outside: true };
  if (y > sight.height) return { y: sight.height + beyond(y - sight.height), outside: true };
  return { y, outside: false };
}
